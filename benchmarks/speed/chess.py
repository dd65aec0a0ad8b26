# SPDX-License-Identifier: BSD-3-Clause
"""All leave-one-out labels of chess, 3196 x 37, for the 50 lambda of Wang & Yang (2022).

Their Table 2 gives ccvsvm about 6 hours and LIBSVM more than 240. Two threads; features
standardised, RBF with kernlab's default width. Also the peak memory, in Gram matrices.
Run: ``python benchmarks/speed/chess.py --data DIR``, DIR with ccv_chess.npz
"""

from __future__ import annotations

import resource
from pathlib import Path
from time import perf_counter

import numpy as np
from measure import Benchmark, Row, easy_grid, kernlab_width
from sklearn.preprocessing import scale

import leaveout as lo


def resident_bytes() -> int:
    """Memory in use now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def main() -> None:
    bench = Benchmark("speed_chess", __doc__, with_data=True)
    file = np.load(bench.data / "ccv_chess.npz")
    X, y = scale(file["X"].astype(float)), file["y"]
    step = 10 if bench.quick else 1
    Cs = easy_grid(len(y))[::step]
    model = lo.SVC(gamma=kernlab_width(X))
    before = resident_bytes()
    started = perf_counter()
    path = lo.loo_path(model, X, y, Cs=Cs, labels_only=True, n_jobs=2)
    seconds = perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    paper = 6 * 3600.0 * Cs.size / 50
    workload = f"chess n={len(y)}, {Cs.size} lambda, labels; peer: the paper's hours"
    bench.add(Row(workload, paper, seconds, paper / seconds, "600 s", "120 s", " s"))
    # An upper bound: the peak may lie before the start, in the distances.
    grams = (peak - before) / (8.0 * len(y) ** 2)
    bench.note(f"peak memory {grams:.2f} Gram matrices above the start (must ≤ 5)")
    bench.note(f"smallest error {path.errors.min():.4f} at C={path.best_C:.4g}")
    refits = sum(result.counts["refits"] for result in path.results)
    bench.note(f"{int(refits)} of {len(y) * Cs.size} left-out problems were refitted")
    bench.close()


if __name__ == "__main__":
    main()
