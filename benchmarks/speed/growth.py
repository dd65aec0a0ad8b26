# SPDX-License-Identifier: BSD-3-Clause
"""Growth with n: slope of log(time) over log(n) for all leave-one-out values.

Every fifth of the 50 lambda of Wang & Yang (2022) at each size; the fit is included.
Makes growth.png beside the results. Run:
``python benchmarks/speed/growth.py [--quick]``
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from grid import time_grid
from measure import FIFTH, Benchmark, Row, easy_grid, make_simulation, one_thread


def slope(sizes: list[int], seconds: list[float]) -> float:
    """Least-squares slope in log-log coordinates."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def plot(path: Path, sizes: list[int], peer: list[float], ours: list[float]) -> None:
    """Draw both times against n, with guides of slope 2 and 3."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
    n = np.array(sizes, dtype=float)
    for power, style in ((2, ":"), (3, "--")):
        guide = 1e3 * ours[0] * (n / n[0]) ** power
        ax.plot(n, guide, style, color="0.7", label=f"slope {power}")
    named = {"one LIBSVM fit": peer, "all leave-one-out values": ours}
    for (name, seconds), marker in zip(named.items(), "so", strict=True):
        label = f"{name}, slope {slope(sizes, seconds):.2f}"
        ax.plot(n, 1e3 * np.array(seconds), f"{marker}-", label=label)
    ax.set(xscale="log", yscale="log", xlabel="samples n", ylabel="ms per C")
    ax.set_xticks(n, [str(size) for size in sizes], minor=False)
    ax.set_xticks([], minor=True)
    ax.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    bench = Benchmark("speed_growth", __doc__, sizes=(400, 800, 1600, 3200))
    peers, ours = [], []
    with one_thread():
        for n in bench.sizes:
            data = make_simulation(n, bench.args.seed)
            Cs = easy_grid(n)[FIFTH]
            peer_n, ours_n, cells = time_grid(bench, data, Cs, 3)
            bench.cells += cells
            peers.append(peer_n)
            ours.append(ours_n)
            workload = f"growth n={n}, mean of {Cs.size} C"
            bench.add(Row(workload, peer_n, ours_n, ours_n / peer_n))
    slopes = slope(bench.sizes, peers), slope(bench.sizes, ours)
    workload = f"slope n={bench.sizes[0]} to {bench.sizes[-1]} (ratio: ours)"
    bench.add(Row(workload, *slopes, slopes[1], "≤ 2.6", "≤ 2.2", unit=""))
    bench.note("every fifth lambda at every size")
    folder = bench.close()
    if folder is not None:
        plot(folder / "growth.png", bench.sizes, peers, ours)


if __name__ == "__main__":
    main()
