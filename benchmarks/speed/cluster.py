# SPDX-License-Identifier: BSD-3-Clause
"""One pass of FeatureSVC over 1 and 2 worker processes against the capacity model.

Rows on disk (p = 20) become 300 Fourier features; gradient and Hessian of ten SVMs
are summed, as in each step of a fit. The model of docs/clusters has three constants:
seconds per row (one block here, without a cluster), seconds per task (a pass that does
nothing) and seconds per byte of a sum (parts of the size of the sums are added up).
It predicts ``tasks * task + busiest * (rows * row + bytes * byte)`` for tasks of so
many rows, ``busiest = ceil(tasks / workers)`` of which one worker gets. The column
"peer" is the prediction, "ours" the measurement.
Run: ``python benchmarks/speed/cluster.py [--quick]``
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter

import dask.array as da
import numpy as np
from dask import delayed
from dask.distributed import Client, LocalCluster
from measure import Benchmark, Row, one_thread
from numpy.lib.format import open_memmap
from sklearn.kernel_approximation import RBFSampler

from leaveout.data import make_mixture
from leaveout.large._features import Encode, FeatureMap, FeatureRows
from leaveout.large._newton import sum_block
from leaveout.large._sources import open_rows
from leaveout.large._window import LinearProblems

D, N_SVMS, ROWS_AT_ONCE, N_FEATURES = 300, 10, 8192, 20
# Bytes of the Hessians, which are nearly all of a sum.
SUM_BYTES = N_SVMS * (D + 1) ** 2 * 8


class Sized:
    """A sum as large as that of a pass, made of nothing."""

    def __init__(self, block: object, n_bytes: int) -> None:
        self.content = np.zeros(n_bytes // 8)

    def add(self, other: Sized) -> None:
        """Add."""
        self.content += other.content


def nothing(block: object) -> Sized:
    """Make a sum of one number."""
    return Sized(block, 8)


def large(block: object) -> Sized:
    """Make a sum of the size of ours."""
    return Sized(block, SUM_BYTES)


def write_rows(folder: Path, n: int) -> tuple[Path, np.ndarray]:
    """Write the columns block by block; return the file and the labels."""
    path = folder / f"{n}.npy"
    X = open_memmap(path, "w+", np.float64, (n, N_FEATURES))
    y = np.empty(n, dtype=np.int64)
    for k, start in enumerate(range(0, n, 50_000)):
        part = slice(start, min(start + 50_000, n))
        X[part], y[part] = make_mixture(
            part.stop - start, N_FEATURES, random_state=1000 + k
        )
    X.flush()
    return path, y


def read_part(path: Path, start: int) -> np.ndarray:
    """Read the rows of one partition."""
    return np.array(np.load(path, mmap_mode="r")[start : start + ROWS_AT_ONCE])


def map_file(path: Path, n: int) -> da.Array:
    """Return the file as a dask array whose workers read their own rows."""
    starts = range(0, n, ROWS_AT_ONCE)
    parts = [
        da.from_delayed(
            delayed(read_part)(path, start),
            (min(ROWS_AT_ONCE, n - start), N_FEATURES),
            np.float64,
        )
        for start in starts
    ]
    return da.concatenate(parts)


def make_work(n_svms: int = N_SVMS) -> tuple[Encode, Callable]:
    """Features, and SVMs that have some rows in their bands."""
    X, _ = make_mixture(4000, N_FEATURES, random_state=1000)
    gamma = 1.0 / (N_FEATURES * X.var())
    map_ = FeatureMap.around(RBFSampler(gamma=gamma, n_components=D, random_state=0)
                             .fit(X), X)  # fmt: skip
    rng = np.random.default_rng(0)
    ones, totals = np.ones(n_svms), np.ones((n_svms, 2))
    positive, negative = ones.astype(np.int32), np.zeros(n_svms, dtype=np.int32)
    points = np.column_stack([rng.normal(size=(n_svms, D)), 0.0 * ones])
    svms = LinearProblems(ones, positive, negative, totals, points)
    job = partial(sum_block, svms, np.full(n_svms, 0.05))
    return Encode(map_, np.array([0, 1]), np.ones(2)), job


@contextmanager
def workers(count: int) -> Iterator[None]:
    """Start so many processes with one thread each."""
    with (
        LocalCluster(
            n_workers=count, threads_per_worker=1, processes=True,
            dashboard_address=":0",
        ) as local,
        Client(local),
    ):  # fmt: skip
        yield


def seconds_per_row(bench: Benchmark, path: Path, y: np.ndarray, n_svms: int) -> float:
    """Time the blocks of a file in this process."""
    encode, job = make_work(n_svms)
    blocks = list(open_rows(path, y, rows_at_once=ROWS_AT_ONCE).blocks())[:2]

    def work() -> None:
        for block in blocks:
            job(encode(block))

    n = sum(len(block.y) for block in blocks)
    seconds = bench.seconds({"row": work}, 3)["row"] / n
    bench.note(f"{n_svms} SVMs: {1e6 * seconds:.3g} microseconds per row")
    return seconds


def fastest(bench: Benchmark, function: Callable[[], object]) -> float:
    """Least time of some calls, after one that loads the libraries."""
    function()
    times = []
    for _ in range(bench.repeats(3)):
        started = perf_counter()
        function()
        times.append(perf_counter() - started)
    return min(times)


def main() -> None:
    bench = Benchmark("speed_cluster", __doc__, sizes=(100_000, 400_000, 800_000))
    with tempfile.TemporaryDirectory() as name, one_thread():
        files = {n: write_rows(Path(name), n) for n in bench.sizes}
        row = seconds_per_row(bench, *files[bench.sizes[-1]], N_SVMS)
        seconds_per_row(bench, *files[bench.sizes[-1]], 50)  # as in docs/clusters
        for count in (1, 2):
            with workers(count):
                measure(bench, count, files, row)
    bench.note(f"{os.cpu_count()} cores, which scheduler and client share")
    bench.close()


def measure(bench: Benchmark, count: int, files: dict, row: float) -> None:
    """Fill the table for one number of workers."""
    encode, job = make_work()
    task = byte = 0.0
    for n, (path, y) in files.items():
        table = map_file(path, n)
        rows = open_rows(table, y, rows_at_once=ROWS_AT_ONCE)
        tasks = len(rows.partitions)
        if not task:
            task = fastest(bench, partial(rows.sum, nothing)) / tasks
            whole = fastest(bench, partial(rows.sum, large))
            byte = max(0.0, whole / tasks - task) * count / SUM_BYTES
            bench.note(
                f"{count} workers: {1e3 * task:.3g} ms per task, "
                f"{1e-6 / max(byte, 1e-15):.3g} MB/s of sums per worker"
            )
        measured = fastest(bench, partial(FeatureRows(rows, encode, n, D + 1).run, job))
        busiest = -(-tasks // count)
        predicted = tasks * task + busiest * (n / tasks * row + SUM_BYTES * byte)
        bench.cells.append(
            {"n": n, "workers": count, "tasks": tasks, "row_s": row, "task_s": task,
             "byte_s": byte, "predicted_s": predicted, "measured_s": measured}
        )  # fmt: skip
        workload = f"n={n}, {count} workers, {tasks} tasks (model | pass)"
        bench.add(Row(workload, predicted, measured, measured / predicted))


if __name__ == "__main__":
    main()
