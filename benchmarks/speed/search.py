# SPDX-License-Identifier: BSD-3-Clause
"""``GridSearchCV(SVC(), grid, cv=LeaveOneOut())`` ÷ ``lo.LooSearchCV(SVC(), grid)``.

Public call against public call, one process each, refit included: 4 C by 3 gamma, 12
candidates. scikit-learn's sets, scaled, and two generators. Says too whether both take
the same parameters. Run: ``python benchmarks/speed/search.py [--quick]``
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from measure import Benchmark, Row, make_simulation, one_thread
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_moons
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo

GRID = {"C": [0.5, 4.0, 32.0, 256.0], "gamma": [0.01, 0.08, 0.64]}
N_CANDIDATES = 12
Data = tuple[np.ndarray, np.ndarray]


def bundled(load: Callable[..., Data], step: int = 1) -> Data:
    """Every step-th row of a set of scikit-learn, scaled."""
    X, y = load(return_X_y=True)
    return scale(X)[::step], y[::step]


def simulation(seed: int) -> Data:
    """Return 200 samples of the simulation of Wang & Yang (2022)."""
    data = make_simulation(200, seed)
    return data.X, data.y


def main() -> None:
    bench = Benchmark("speed_search", __doc__)
    sets = {
        "iris": bundled(load_iris),
        "wine": bundled(load_wine),
        "moons": make_moons(200, noise=0.3, random_state=bench.args.seed),
        "simulation": simulation(bench.args.seed),
        "breast cancer, every third row": bundled(load_breast_cancer, 3),
    }
    lo.LooSearchCV(SVC(), GRID).fit(*sets["iris"])  # the first call loads libraries
    for name, (X, y) in list(sets.items())[: 1 if bench.quick else None]:
        slow = GridSearchCV(SVC(), GRID, cv=LeaveOneOut())
        fast = lo.LooSearchCV(SVC(), GRID)
        times = bench.seconds(
            {"peer": lambda s=slow: s.fit(X, y), "ours": lambda s=fast: s.fit(X, y)},  # noqa: B023
            3,
        )
        gap = slow.cv_results_["mean_test_score"] - fast.cv_results_["mean_test_score"]
        cell = {
            "data": name, "n": y.size, "p": X.shape[1], "candidates": N_CANDIDATES,
            **times,
            "same best": slow.best_params_ == fast.best_params_,
            "largest difference of scores in samples": np.abs(gap).max() * y.size,
        }  # fmt: skip
        bench.cells.append(cell)
        workload = f"{name}, n={y.size}, {N_CANDIDATES} candidates"
        ratio = times["peer"] / times["ours"]
        bench.add(Row(workload, times["peer"], times["ours"], ratio))
    bench.note(
        "scikit-learn's SVC at its default tol=1e-3 in the loop and in the refit"
    )
    bench.close()


if __name__ == "__main__":
    with one_thread():
        main()
