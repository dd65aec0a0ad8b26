# SPDX-License-Identifier: BSD-3-Clause
"""``GridSearchCV(SVC(), grid, cv=k)`` ÷ searches of the same grid with ``LooSearchCV``.

Public call against public call from X, refit included: 5 C by 4 gamma around
``gamma="scale"``. Rows "LOO": scikit-learn fits every candidate five times; ours gives
all its left-out predictions. Rows "5-fold", "10-fold": both use the same stratified
folds, and the labels that differ are counted. Breast cancer and digits are
scikit-learn's, spam is in DIR. Run:
``python benchmarks/speed/kfold_search.py --data DIR [--quick]``, DIR with bin_spam.npz
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from measure import Benchmark, Row, one_thread
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import GridSearchCV, StratifiedKFold
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
KFOLD_MUSTS = {
    name: "≥ 3" if "digits" in name or name[-4:] in ("2000", "4601") else "≥ 5"
    for name in MUSTS
}


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


def folds_of(X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Return the fold of each row in GridSearchCV with ``cv=k``."""
    folds = np.empty(y.size, dtype=int)
    for fold, (_, test) in enumerate(StratifiedKFold(k).split(X, y)):
        folds[test] = fold
    return folds


def labels_that_differ(
    peer: GridSearchCV, ours: lo.LooSearchCV, folds: np.ndarray
) -> float:
    """Return how many labels differ over all candidates, at least."""
    sizes = np.bincount(folds)
    scores = [peer.cv_results_[f"split{k}_test_score"] for k in range(sizes.size)]
    right = np.sum([s * size for s, size in zip(scores, sizes, strict=True)], axis=0)
    return float(np.abs(right - ours.cv_results_["mean_test_score"] * folds.size).sum())


def main() -> None:
    bench = Benchmark("speed_kfold_search", __doc__, with_data=True)
    for name, X, y in data_sets(bench):
        grid = {"C": CS, "gamma": [g / (X.shape[1] * X.var()) for g in GAMMAS]}
        ours = lo.LooSearchCV(SVC(), grid)
        repeats = 5 if y.size < 1000 else 3 if y.size < 2000 else 1
        for k in (5,) if bench.quick or y.size > 4000 else (5, 10):
            peer, folds = GridSearchCV(SVC(), grid, cv=k), folds_of(X, y, k)
            calls = {
                "peer": lambda s=peer: s.fit(X, y),  # noqa: B023
                "folds": lambda s=ours, g=folds: s.fit(X, y, groups=g),  # noqa: B023
            }
            if k == 5:
                calls["loo"] = lambda s=ours: s.fit(X, y)  # noqa: B023
            times = bench.seconds(calls, repeats)
            base = times.pop("peer")
            musts = {"loo": MUSTS[name], "folds": KFOLD_MUSTS[name]}
            for way, seconds in times.items():
                label = f"{name} {'LOO' if way == 'loo' else f'{k}-fold'}"
                bench.add(Row(label, base, seconds, base / seconds, musts[way]))
            ours.fit(X, y, groups=folds)
            n_other = labels_that_differ(peer, ours, folds)
            bench.note(
                f"{name}, {k} folds: {n_other:.0f} of {20 * y.size} labels differ"
            )
    bench.close()


if __name__ == "__main__":
    with one_thread():
        main()
