# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's ``cross_val_predict(SVC, cv=LeaveOneOut())`` ÷ ``lo.leave_one_out``.

Public call against public call, once with the Gram matrix given to both, once with X
and an RBF kernel. C from the grid of Wang & Yang (2022). From n = 1000 on the loop runs
over a sample of the folds, and its time is scaled up. Run:
``python benchmarks/speed/refit_loop.py [--quick]``
"""

from __future__ import annotations

import numpy as np
from measure import (
    FIFTH,
    Benchmark,
    Row,
    easy_grid,
    libsvm,
    make_simulation,
    one_thread,
)
from sklearn.model_selection import LeaveOneOut, cross_val_predict, cross_val_score
from sklearn.svm import SVC

from leaveout import leave_one_out

BARS = {200: ("≥ 150", "≥ 300"), 400: ("≥ 200", "≥ 400"), 1600: ("≥ 500", "≥ 1600")}
N_ALL_FOLDS = 1000
N_FOLDS = 32


def time_loop(bench: Benchmark, svc: SVC, X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of scikit-learn's loop, scaled up from a sample if n is large."""
    n = y.size
    started = bench.clock()
    if n < N_ALL_FOLDS:
        cross_val_predict(svc, X, y, cv=LeaveOneOut())
        return bench.clock() - started
    left_out = np.random.default_rng(bench.args.seed).choice(n, N_FOLDS, replace=False)
    folds = [(np.delete(np.arange(n), r), np.array([r])) for r in left_out]
    cross_val_score(svc, X, y, cv=folds)
    return (bench.clock() - started) * n / N_FOLDS


def main() -> None:
    bench = Benchmark("speed_refit_loop", __doc__, sizes=(200, 400, 1600))
    for n in bench.sizes:
        data = make_simulation(n, bench.args.seed)
        Cs = easy_grid(n) if n == 200 and not bench.quick else easy_grid(n)[FIFTH]
        rbf = SVC(gamma=data.gamma, tol=1e-3)
        for name, svc, X in (("Gram", libsvm(1.0), data.K), ("RBF", rbf, data.X)):
            leave_one_out(svc, X, data.y)  # the first call loads libraries
            for C in Cs:
                svc.set_params(C=float(C))
                loop = time_loop(bench, svc, X, data.y)
                times = bench.seconds(
                    {"ours": lambda: leave_one_out(svc, X, data.y)},  # noqa: B023
                    5,
                )
                cell = {"n": n, "input": name, "C": float(C), "peer": loop, **times}
                bench.cells.append(cell)
            here = [c for c in bench.cells if c["n"] == n and c["input"] == name]
            peer, ours = (
                float(np.mean([c[k] for c in here])) for k in ("peer", "ours")
            )
            folds = "all folds" if n < N_ALL_FOLDS else f"{N_FOLDS} folds, scaled"
            workload = f"loop n={n}, {name}, mean of {Cs.size} C, {folds}"
            bench.add(Row(workload, peer, ours, peer / ours, *BARS.get(n, ("", ""))))
    bench.note("all 50 lambda at n = 200, every fifth beyond")
    bench.close()


if __name__ == "__main__":
    with one_thread():
        main()
