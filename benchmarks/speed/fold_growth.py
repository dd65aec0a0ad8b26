# SPDX-License-Identifier: BSD-3-Clause
"""Growth with n and p of leave-one-out with the steps fitted in every fold.

``leave_one_out(make_pipeline(StandardScaler(), SVC()), X, y)``, RBF and linear kernel,
beside scikit-learn's loop, which is timed on 20 rows and scaled to all. The model
counts the operations that no method can avoid and divides by the measured speed of a
matrix product: near samples times support vectors, and one factorisation per fold
(docs/method/fold). Makes growth.png beside the results. Run:
``python benchmarks/speed/fold_growth.py [--quick]``
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np
from fold import loop
from growth import slope
from measure import Benchmark, Row, one_thread
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import leaveout as lo

N_ROWS = 20
SIZES = {
    "n": [(n, 20) for n in (125, 250, 500, 1000)],
    "p": [(100, p) for p in (10, 100, 1000, 10_000)],
}
EXP = 2e-9  # seconds per value of the exponential


def draw(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two classes, 65 % and 35 %, one tenth of the labels wrong."""
    return make_classification(
        n, p, n_informative=5, weights=[0.65], flip_y=0.1, random_state=seed
    )


def model_seconds(X: np.ndarray, y: np.ndarray, kernel: str) -> float:
    """Return the time of the operations that are needed, at the speed of BLAS."""
    n, p = X.shape
    side, times = np.ones((500, 500)), []
    for _ in range(5):
        started = perf_counter()
        side @ side
        times.append(perf_counter() - started)
    speed = 2 * 500**3 / min(times)
    fit = lo.SVC(kernel=kernel, gamma=1 / p).fit(StandardScaler().fit_transform(X), y)
    alpha = np.abs(fit.dual_coef_[0])
    n_free = np.count_nonzero(alpha < fit.C * (1 - 1e-9))
    n_support = alpha.size if kernel == "rbf" else n_free
    values = n_free * (n_support - n_free / 2)  # those of two free ones once
    cost = values * 2 * p + n_free**3 / 3 + 4 * n * p
    return n * (cost / speed + (values * EXP if kernel == "rbf" else 0.0))


def plot(path: Path, found: dict[tuple[str, str], np.ndarray]) -> None:
    """Draw the times against n, then against p, for both kernels."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
    for ax, along in zip(axes, SIZES, strict=True):
        for kernel, color in (("rbf", "C0"), ("linear", "C1")):
            sizes, peer, ours, model = found[along, kernel].T
            ax.plot(sizes, peer, "s--", color=color, label=f"{kernel}: loop")
            ax.plot(sizes, ours, "o-", color=color, label=f"{kernel}: leave_one_out")
            ax.plot(sizes, model, ":", color=color, label=f"{kernel}: model")
        ax.set(xscale="log", yscale="log")
        ticks = [int(size) for size in sizes]
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.set_xticks([], minor=True)
    axes[0].set(xlabel="samples n (20 features)", ylabel="seconds")
    axes[1].set(xlabel="features p (100 samples)")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(
        handles, labels, ncols=6, fontsize="small", loc="outside upper center"
    )
    figure.savefig(path, dpi=150)


def main() -> None:
    bench = Benchmark("speed_fold_growth", __doc__)
    found: dict[tuple[str, str], np.ndarray] = {}
    for along, sizes in SIZES.items():
        for kernel in ("rbf", "linear"):
            pipeline = make_pipeline(StandardScaler(), SVC(kernel=kernel))
            lines = []
            for n, p in sizes[: 2 if bench.quick else None]:
                X, y = draw(n, p, bench.args.seed)
                rows = np.linspace(0, n - 1, N_ROWS).astype(int)
                lo.leave_one_out(pipeline, X, y)
                times = bench.seconds(
                    {
                        "peer": lambda X=X, y=y, r=rows: loop(pipeline, X, y, r),  # noqa: B023
                        "ours": lambda X=X, y=y: lo.leave_one_out(pipeline, X, y),  # noqa: B023
                    },
                    3,
                )
                peer, ours = times["peer"] * n / rows.size, times["ours"]
                size = n if along == "n" else p
                lines.append((size, peer, ours, model_seconds(X, y, kernel)))
                bench.add(Row(f"{n} x {p}, scale + {kernel}", peer, ours, peer / ours))
                bench.cells.append(
                    {
                        "n": n, "p": p, "kernel": kernel, "peer": peer, "ours": ours,
                        "ratio": peer / ours, "model": lines[-1][-1],
                    }
                )  # fmt: skip
            found[along, kernel] = np.array(lines)
            seconds = found[along, kernel]
            slopes = [slope(seconds[:, 0], seconds[:, k]) for k in (1, 2)]
            row = f"slope in {along}, {kernel} (ratio: ours)"
            bench.add(Row(row, *slopes, slopes[1], unit=""))
    folder = bench.close()
    if folder is not None:
        plot(folder / "growth.png", found)


if __name__ == "__main__":
    with one_thread():
        main()
