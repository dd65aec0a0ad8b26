# SPDX-License-Identifier: BSD-3-Clause
"""FeatureSVC from 10^4 to 5 10^6 rows: 300 Fourier features, 50 lambda, two threads.

The simulation of Wang & Yang (2022), p = 20, with the centres of seed 0; the class of
each row is drawn independently. Rows are written to disk in blocks and streamed back;
each size runs in a process of its own, whose peak memory is measured. All 50 SVMs
are solved exactly and every row is left out. The paper's section 5 gives 15.7 s for
100,000 rows and 831 s for 5,000,000, for a number of features it does not tell. The
peer up to 100,000 rows is LIBLINEAR's hinge loss (scikit-learn's LinearSVC, tol 1e-3,
one thread) on the same features: every fifth lambda, fits only, scaled to 50. With
100,000 rows one thread is measured, too, unless CPU times (of both threads) are asked
for by --cpu. Makes growth.png beside the results.
Run: ``python benchmarks/speed/features.py [--quick]``
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from measure import FIFTH, LAMBDAS, Benchmark, Row, easy_grid, one_thread
from numpy.lib.format import open_memmap
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.svm import LinearSVC

import leaveout as lo
from leaveout.data import make_mixture, make_mixture_centers

CENTERS = make_mixture_centers(20, random_state=0)
N_COMPONENTS = 300
BLOCK = 100_000
LARGEST_PEER = WITH_ONE_THREAD = 100_000
PAPER_SECONDS = {100_000: 15.7, 5_000_000: 831.0}
BARS = {100_000: ("15 s", "8 s"), 5_000_000: ("1500 s", "831 s")}


def write_rows(folder: Path, n: int) -> None:
    """Write X.npy and y.npy block by block."""
    X = open_memmap(folder / "X.npy", "w+", np.float64, (n, 20))
    y = open_memmap(folder / "y.npy", "w+", np.int64, (n,))
    for k, start in enumerate(range(0, n, BLOCK)):
        part = slice(start, min(start + BLOCK, n))
        X[part], y[part] = draw_rows(part.stop - start, 1000 + k)
    X.flush()
    y.flush()


def draw_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulate rows whose classes are drawn independently, with equal chances."""
    labels = np.random.default_rng(seed).integers(0, 2, n)
    most = int(max(labels.sum(), n - labels.sum()))
    X, y = make_mixture(2 * most, centers=CENTERS, random_state=seed)
    rows = np.empty(n, dtype=np.intp)
    for label in (0, 1):
        mine = labels == label
        rows[mine] = np.flatnonzero(y == label)[: mine.sum()]
    return X[rows], labels


def bayes_error(X: np.ndarray, y: np.ndarray) -> float:
    """Error of the rule that knows the ten centres of each class."""
    log_density = [
        logsumexp(-((X[:, None] - centers) ** 2).sum(axis=2) / 18.0, axis=1)
        for centers in CENTERS
    ]
    return float(np.mean((log_density[1] > log_density[0]) != y))


def run_ours(folder: str, n: str, n_jobs: str) -> None:
    """Fit and test in this process; print what was found."""
    Cs, n_jobs = easy_grid(int(n)), int(n_jobs)
    clf = lo.FeatureSVC(n_components=N_COMPONENTS, C=Cs, n_jobs=n_jobs, random_state=0)
    started, cpu = perf_counter(), process_time()
    clf.fit(Path(folder, "X.npy"), Path(folder, "y.npy"))
    seconds, cpu = perf_counter() - started, process_time() - cpu
    X, y = make_mixture(10_000, centers=CENTERS, random_state=2)
    found = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "passes": clf.n_passes_,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "lambda": 1.0 / (2.0 * int(n) * clf.C_),
        "loo_low": clf.loo_error_.low,
        "loo_high": clf.loo_error_.high,
        "certified_share": 1.0 - clf.path_["n_open"].sum() / (int(n) * Cs.size),
        "lambdas_all_certified": int((clf.path_["n_open"] == 0).sum()),
        "largest_gap": float(clf.path_["duality_gap"].max()),
        "test_error": float(np.mean(clf.predict(X) != y)),
    }
    print(json.dumps(found))


def time_peer(folder: Path, n: int, clock: Callable[[], float]) -> float:
    """Seconds of LIBLINEAR for 50 lambda, from every fifth."""
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    gamma = 1.0 / (X.shape[1] * X.var())
    map_ = RBFSampler(gamma=gamma, n_components=N_COMPONENTS, random_state=0)
    Z = map_.fit_transform(X)
    Cs = easy_grid(n)[FIFTH]
    started = clock()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for C in Cs:
            LinearSVC(C=C, loss="hinge", tol=1e-3).fit(Z, y)
    return (clock() - started) * LAMBDAS.size / Cs.size


def plot(path: Path, cells: list[dict]) -> None:
    """Draw time and memory against the number of rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    n = np.array([cell["n"] for cell in cells], dtype=float)
    seconds = np.array([cell["seconds"] for cell in cells])
    axes[0].plot(n, seconds[-1] * n / n[-1], ":", color="0.6", label="slope 1")
    axes[0].plot(n, seconds, "o-", label="FeatureSVC, 50 λ, all rows left out")
    peer = [(c["n"], c["peer_seconds"]) for c in cells if c["peer_seconds"] > 0]
    axes[0].plot(*zip(*peer, strict=True), "s-", label="LIBLINEAR, 50 fits")
    paper = [(k, v) for k, v in PAPER_SECONDS.items() if k in n]
    if paper:
        axes[0].plot(*zip(*paper, strict=True), "^", label="the paper, its computer")
    axes[0].set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds")
    axes[0].legend(fontsize=8)
    axes[1].plot(n, [cell["peak_gib"] for cell in cells], "o-")
    axes[1].set(xscale="log", xlabel="rows", ylabel="peak memory, GiB", ylim=(0, None))
    figure.savefig(path, dpi=150)


def run_apart(folder: str, n: int, n_jobs: int) -> dict:
    """Run in a process of its own."""
    command = [sys.executable, __file__, "--one", folder, str(n), str(n_jobs)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    sizes = (10_000, 100_000, 1_000_000, 5_000_000)
    bench = Benchmark("speed_features", __doc__, sizes=sizes)
    X, y = make_mixture(10_000, centers=CENTERS, random_state=2)
    bench.note(f"Bayes error on the 10,000 test points {bayes_error(X, y):.4f}")
    for n in bench.sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_rows(Path(folder), n)
            found = run_apart(folder, n, 2)
            if bench.args.cpu:  # that of both threads
                found["seconds"] = found["cpu_seconds"]
            elif n == WITH_ONE_THREAD:
                one = run_apart(folder, n, 1)["seconds"]
                workload = f"n={n}, two threads; peer: one thread"
                ratio = found["seconds"] / one
                bench.add(Row(workload, one, found["seconds"], ratio, "0.65", "", " s"))
            peer = (
                time_peer(Path(folder), n, bench.clock) if n <= LARGEST_PEER else -1.0
            )
        bench.cells.append({"n": n, **found, "peer_seconds": peer})
        against = PAPER_SECONDS.get(n, peer if peer > 0 else float("nan"))
        who = "paper" if n in PAPER_SECONDS else "LIBLINEAR"
        must, goal = BARS.get(n, ("", ""))
        workload = f"n={n}, 50 lambda, fits and all labels; peer: {who}"
        ratio = against / found["seconds"]
        bench.add(Row(workload, against, found["seconds"], ratio, must, goal, " s"))
        bench.note(f"n={n}: " + ", ".join(f"{k} {v:.6g}" for k, v in found.items()))
    folder = bench.close()
    if folder is not None:
        plot(folder / "growth.png", bench.cells)


if __name__ == "__main__":
    if "--one" in sys.argv:
        run_ours(*sys.argv[2:])
    else:
        main()
