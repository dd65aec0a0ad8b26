# SPDX-License-Identifier: BSD-3-Clause
"""Predicted left-out errors of a fitted LPM ÷ exact ones.

Exact ones as ``leave_one_out`` gives them, by pivots (``method="walk"``), which fits
the LPM once, and by warm-started linear programs (``method="refit"``), once, n=200.
Run: ``python benchmarks/speed/predictor.py [--quick]``
"""

from __future__ import annotations

import numpy as np
from measure import Benchmark, Row, make_simulation, one_thread

import leaveout as lo

PENALTIES = (0.3, 3.0, 30.0)
MOST_REFITS = 200


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
        times = bench.seconds(calls, 5)
        if n <= MOST_REFITS:
            times |= bench.seconds({"refit": lambda: exact("refit")}, 1)
        bench.cells.append({"n": n, "C": C, "refit": np.nan} | times)
    here = [cell for cell in bench.cells if cell["n"] == n]
    ours, fit, walk, refit = (
        float(np.mean([cell[name] for cell in here]))
        for name in ("predict", "fit", "walk", "refit")
    )
    mean = f"mean of {len(here)} C, n={n}"
    bench.add(Row(f"prediction ÷ walk, {mean}", walk, ours, ours / walk, "≤ 0.05"))
    less = walk - fit
    bench.add(Row(f"prediction ÷ walk less the fit, {mean}", less, ours, ours / less))
    if n <= MOST_REFITS:
        bench.add(Row(f"prediction ÷ refits, {mean}", refit, ours, ours / refit))


def main() -> None:
    bench = Benchmark("speed_predictor", __doc__, sizes=(200, 400, 800))
    with one_thread():
        for n in bench.sizes:
            measure(bench, n)
    bench.close()


if __name__ == "__main__":
    main()
