# SPDX-License-Identifier: BSD-3-Clause
"""``GridSearchCV(SVC(), grid, cv=5)`` ÷ an exact leave-one-out search of the same grid.

Public call against public call from X, refit included: 5 C by 4 gamma around
``gamma="scale"``. scikit-learn fits every candidate five times; ours gives all its
left-out predictions. Breast cancer and digits are scikit-learn's, spam is in DIR. Run:
``python benchmarks/speed/kfold_search.py --data DIR [--quick]``, DIR with bin_spam.npz
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from measure import Benchmark, Row, one_thread
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo

CS = [0.1, 1.0, 10.0, 100.0, 1000.0]
GAMMAS = [0.1, 0.5, 2.0, 10.0]  # in units of "scale"
MUSTS = {
    "breast cancer": "≥ 5", "spam n=500": "≥ 5", "spam n=1000": "≥ 4",
    "spam n=2000": "≥ 3", "spam n=4601": "≥ 2.2", "digits n=500": "≥ 3",
    "digits n=1797": "≥ 3",
}  # fmt: skip


def data_sets(bench: Benchmark) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, scaled X and y; of spam and digits the first rows of an order."""
    rng = np.random.default_rng(bench.args.seed)
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", scale(X), y
    spam, digits = np.load(bench.data / "bin_spam.npz"), load_digits()
    for name, X, y, sizes in (
        ("spam", spam["X"], spam["y"], (500, 1000, 2000, 4601)),
        ("digits", digits.data, digits.target, (500, 1797)),
    ):
        order = rng.permutation(y.size)
        for n in sizes[:1] if bench.quick else sizes:
            rows = order[:n]
            yield f"{name} n={n}", scale(X[rows].astype(float)), y[rows]


def main() -> None:
    bench = Benchmark("speed_kfold_search", __doc__, with_data=True)
    for name, X, y in data_sets(bench):
        grid = {"C": CS, "gamma": [g / (X.shape[1] * X.var()) for g in GAMMAS]}
        peer = GridSearchCV(SVC(), grid, cv=5)
        ours = lo.LooSearchCV(SVC(), grid)
        times = bench.seconds(
            {"peer": lambda s=peer: s.fit(X, y), "ours": lambda s=ours: s.fit(X, y)},  # noqa: B023
            5 if y.size < 1000 else 3 if y.size < 2000 else 1,
        )
        ratio = times["peer"] / times["ours"]
        bench.add(Row(name, times["peer"], times["ours"], ratio, MUSTS[name]))
    bench.close()


if __name__ == "__main__":
    with one_thread():
        main()
