# SPDX-License-Identifier: BSD-3-Clause
"""FeatureSVC against LIBLINEAR for several class proportions, one thread, CPU time.

Ours: features, 50 fits and all left-out labels. Peer: LIBLINEAR's hinge loss
(scikit-learn's LinearSVC, tol 1e-3) on given features, every fifth of the 50 lambda of
Wang & Yang (2022), scaled to 50 fits, without labels. LIBLINEAR regularises the
intercept, so it is a peer for time, not for accuracy. Simulation with 300 Fourier
features; real sets, standardised, with 150 (mammography: 300). Then left-out labels of
sampled rows, half of them closest to zero, are compared with LIBSVM refits at tol 1e-9.
Run: ``python benchmarks/speed/proportions.py --data DIR``, DIR with bin_spam.npz,
ccv_chess.npz, ida_image.npz, ida_splice.npz, mc_satimage.npz, tables/mammography.csv
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import numpy as np
from features import CENTERS
from measure import FIFTH, LAMBDAS, Benchmark, Row, easy_grid, one_thread
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC

import leaveout as lo
from leaveout.data import make_mixture

SHARES = (0.5, 0.5006, 0.52, 0.7, 0.95)
REAL = {
    "spam": ("bin_spam.npz", None),
    "chess": ("ccv_chess.npz", None),
    "splice": ("ida_splice.npz", None),
    "image": ("ida_image.npz", None),
    "satimage, class 1 against the rest": ("mc_satimage.npz", 1),
}


def mixture(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulate n rows with exactly round(share n) of class 1, in random order."""
    n_first = round(share * n)
    most = max(n_first, n - n_first)
    X, y = make_mixture(2 * most, centers=CENTERS, random_state=seed)
    rows = [np.flatnonzero(y == 1)[:n_first], np.flatnonzero(y == 0)[: n - n_first]]
    order = np.random.default_rng(seed).permutation(np.concatenate(rows))
    return X[order], y[order]


def real_sets(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    """Yield name, X, y and the number of features."""
    table = np.genfromtxt(
        folder / "tables" / "mammography.csv", delimiter=",", dtype=str
    )
    y = np.unique(table[:, -1], return_inverse=True)[1]
    yield "mammography", scale(table[:, :-1].astype(float)), y, 300
    for name, (file, chosen) in REAL.items():
        with np.load(folder / file) as data:
            X, y = data["X"].astype(float), data["y"]
        yield name, scale(X), y if chosen is None else (y == chosen).astype(int), 150


def make_features(X: np.ndarray, n_components: int) -> RBFSampler:
    gamma = 1.0 / (X.shape[1] * X.var())
    return RBFSampler(gamma=gamma, n_components=n_components, random_state=0).fit(X)


def time_ours(X: np.ndarray, y: np.ndarray, D: int) -> tuple[float, lo.FeatureSVC]:
    clf = lo.FeatureSVC(n_components=D, C=easy_grid(len(y)), random_state=0)
    started = process_time()
    with one_thread():
        clf.fit(X, y)
    return process_time() - started, clf


def time_peer(X: np.ndarray, y: np.ndarray, D: int) -> float:
    """CPU seconds of LIBLINEAR for 50 lambda, from every fifth."""
    Z, Cs = make_features(X, D).transform(X), easy_grid(len(y))[FIFTH]
    started = process_time()
    with one_thread():
        for C in Cs:
            LinearSVC(C=C, loss="hinge", tol=1e-3).fit(Z, y)
    return (process_time() - started) * LAMBDAS.size / Cs.size


def compare(
    bench: Benchmark, name: str, X: np.ndarray, y: np.ndarray, D: int, must: str
) -> None:
    """Time both, one after the other, and keep the medians."""
    ours, peers, ratios = [], [], []
    for _ in range(bench.repeats(3)):
        seconds, clf = time_ours(X, y, D)
        ours.append(seconds)
        peers.append(time_peer(X, y, D))
        ratios.append(peers[-1] / ours[-1])
    share = float(np.mean(y == np.unique(y)[1]))
    workload = f"{name}: {len(y)} rows, {D} features, {100 * share:.4g} % of class 1"
    peer, mine = float(np.median(peers)), float(np.median(ours))
    goal = "7" if must == "4" else ""
    bench.add(Row(workload, peer, mine, float(np.median(ratios)), must, goal, " s"))
    path = clf.path_
    bench.cells.append(
        {
            "set": name, "rows": len(y), "features": D, "share": share,
            "cpu_seconds": mine, "liblinear_cpu_seconds": peer,
            "ratio": float(np.median(ratios)), "passes": clf.n_passes_,
            "largest_gap": float(path["duality_gap"].max()),
            "certified_share": 1.0 - path["n_open"].sum() / (len(y) * LAMBDAS.size),
            "constant": bool(np.all(clf.coef_ == 0.0)),
        }
    )  # fmt: skip


def check_labels(bench: Benchmark, share: float, n: int = 3000, D: int = 60) -> None:
    """Compare proved labels of 30 rows at the chosen C with LIBSVM refits."""
    X, y = mixture(n, share, seed=bench.args.seed + 7)
    clf = time_ours(X, y, D)[1]
    Z = clf.transformer_.transform(X)
    close = np.argsort(np.abs(clf.decision_function(X)))[:15]
    others = np.random.default_rng(0).choice(n, 15, replace=False)
    wrong = n_compared = 0
    for r in np.unique(np.concatenate([close, others])):
        rest = np.arange(n) != r
        svc = SVC(kernel="linear", C=clf.C_, tol=1e-9).fit(Z[rest], y[rest])
        f = float(svc.decision_function(Z[[r]])[0])
        if clf.loo_proved_[r] and abs(f) > 1e-6:
            n_compared += 1
            wrong += int(svc.classes_[int(f > 0)] != clf.loo_labels_[r])
    bench.note(
        f"{100 * share:.4g} % of class 1, {n} rows, {D} features, C={clf.C_:.3g}: "
        f"{wrong} of {n_compared} proved labels differ from LIBSVM refits"
    )


def main() -> None:
    bench = Benchmark("speed_proportions", __doc__, sizes=(100_000,), with_data=True)
    warnings.simplefilter("ignore")  # LIBLINEAR's, and that of constant classifiers
    for n in bench.sizes:
        for share in SHARES[1:3] if bench.quick else SHARES:
            X, y = mixture(n, share, seed=bench.args.seed + 1)
            compare(bench, "simulation", X, y, 300, "4")
    for name, X, y, D in real_sets(bench.data):
        compare(bench, name, X, y, D, "0.7")
    for share in SHARES:
        check_labels(bench, share)
    bench.close()


if __name__ == "__main__":
    main()
