# SPDX-License-Identifier: BSD-3-Clause
"""Predicted left-out errors of an LPM ÷ exact ones, the fit of neither included.

Exact ones by pivots (``method="walk"``) and by warm-started linear programs
(``method="refit"``, once). Run: ``python benchmarks/speed/predictor.py [--quick]``
"""

from __future__ import annotations

import numpy as np
from measure import Benchmark, Row, make_simulation, one_thread

import leaveout as lo

PENALTIES = (0.3, 3.0, 30.0)


def measure(bench: Benchmark, n: int) -> None:
    """Fill the rows of one size."""
    data = make_simulation(n, bench.args.seed)
    predictor = lo.LooPredictor.load_default("lpm")
    for C in PENALTIES:
        lpm = lo.LPMClassifier(C=C, gamma=0.01).fit(data.X, data.y)

        def exact(method: str, lpm: lo.LPMClassifier = lpm) -> object:
            return lo.leave_one_out(lpm, data.X, data.y, method=method)

        calls = {
            "predict": lambda lpm=lpm: predictor.predict_errors(lpm, data.X, data.y),
            "fit": lambda C=C: lo.LPMClassifier(C=C, gamma=0.01).fit(data.X, data.y),
            "walk": lambda: exact("walk"),
        }
        times = bench.seconds(calls, 7)
        times |= bench.seconds({"refit": lambda: exact("refit")}, 1)
        bench.cells.append({"n": n, "C": C, **times})
    here = [cell for cell in bench.cells if cell["n"] == n]
    ours = float(np.mean([cell["predict"] for cell in here]))
    for method in ("walk", "refit"):
        peer = float(np.mean([cell[method] - cell["fit"] for cell in here]))
        name = f"prediction ÷ leave-one-out by {method}, mean of {len(here)} C, n={n}"
        bench.add(Row(name, peer, ours, ours / peer, "≤ 0.05"))


def main() -> None:
    bench = Benchmark("speed_predictor", __doc__, sizes=(200, 400, 800))
    with one_thread():
        for n in bench.sizes:
            measure(bench, n)
    bench.note("the fit is in neither: exact leave-one-out less the time of the fit")
    bench.close()


if __name__ == "__main__":
    main()
