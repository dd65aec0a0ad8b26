# SPDX-License-Identifier: BSD-3-Clause
"""All leave-one-out values of a large set, fit included, ÷ one fit of LIBSVM.

``leave_one_out`` against ``SVC.fit``, from X: the simulation of Wang & Yang (2022) with
10,000 samples, gamma = 1 / median squared distance, and ringnorm (7,400 samples,
standardised, gamma = 1 / p). The first call of each, which touches new memory, is not
counted. Run: ``python benchmarks/speed/large_sets.py --data DIR [--quick]``, DIR with
ida_ringnorm.npz
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from measure import Benchmark, Row, one_thread
from scipy.spatial.distance import pdist
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo
from leaveout.data import make_mixture


class Workload(NamedTuple):
    """One model, and the largest ratio that is acceptable."""

    name: str
    X: np.ndarray
    y: np.ndarray
    svc: SVC
    must: str
    goal: str


def workloads(bench: Benchmark) -> Iterator[Workload]:
    """Yield the models."""
    n = 2_000 if bench.quick else 10_000
    X, y = make_mixture(n, 20, random_state=bench.args.seed)
    gamma = 1.0 / np.median(pdist(X[:1000], "sqeuclidean"))
    yield Workload("mixture, C=1", X, y, SVC(C=1.0, gamma=gamma), "≤ 1.2", "≤ 0.9")
    file = np.load(bench.data / "ida_ringnorm.npz")
    X, y = scale(file["X"].astype(float)), file["y"]
    rows = np.random.default_rng(bench.args.seed).permutation(y.size)
    rows = rows[: n // 2] if bench.quick else rows
    for C in (1.0, 100.0):
        svc = SVC(C=C, gamma=1.0 / X.shape[1])
        yield Workload(f"ringnorm, C={C:g}", X[rows], y[rows], svc, "≤ 2.5", "≤ 2")


def main() -> None:
    bench = Benchmark("speed_large_sets", __doc__, with_data=True)
    for name, X, y, svc, must, goal in workloads(bench):
        calls = {
            "peer": lambda: svc.fit(X, y),  # noqa: B023
            "ours": lambda: lo.leave_one_out(svc, X, y),  # noqa: B023
        }
        for call in calls.values():
            call()
        times = bench.seconds(calls, 5)
        ratio = times["ours"] / times["peer"]
        bench.add(
            Row(f"{name}, n={y.size}", **times, ratio=ratio, must=must, goal=goal)
        )
    bench.close()


if __name__ == "__main__":
    with one_thread():
        main()
