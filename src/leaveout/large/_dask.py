# SPDX-License-Identifier: BSD-3-Clause
"""Rows of dask arrays and dataframes.

Partitions are read and summed where dask computes them: on the workers if there is a
``distributed.Client``, else in threads. Neighbours are added up in an order that
depends only on their number, so the sums have the same bits on every cluster. Dask
recomputes the results of a lost worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from leaveout._typing import IntArray
from leaveout.exceptions import ClusterLostError
from leaveout.large._rows import (
    Block,
    RawRows,
    Schema,
    check_rows,
    column_names,
    no_rows,
    split_frame,
)
from leaveout.run._parallel import Summable, sum_in_order

# Number of neighbours that are added up at a time.
FAN_IN = 8
# Retries for transient errors, such as a disk that is briefly unavailable. A worker
# that dies does not count: see dask's distributed.scheduler.allowed-failures.
RETRIES = 2
R = TypeVar("R")
S = TypeVar("S", bound=Summable)


@dataclass(frozen=True)
class DistributedRows:
    """Partitions of dask: Delayed iterables of blocks, and the row after each."""

    partitions: Sequence[Any]
    stops: IntArray
    schema: Schema

    def sum(self, job: Callable[[Any], S], n_threads: int = 1) -> S:
        """Add up the results of a job on every block: one pass."""
        from dask import delayed

        level = _apply(_sum_blocks, job, self.partitions)
        while len(level) > 1:
            level = [
                delayed(_add_up, pure=False)(level[i : i + FAN_IN])
                for i in range(0, len(level), FAN_IN)
            ]
        # A copy: arrays received over the network may be read-only.
        return deepcopy(_compute(level, n_threads)[0])

    def keep(self, make: Callable[[Any], Any], n_threads: int = 1) -> DistributedRows:
        """Keep the result for each block where it is computed."""
        import dask

        with _report_losses(), dask.config.set(num_workers=n_threads):
            tasks = _apply(_each_block, make, self.partitions)
            kept = dask.persist(*tasks, retries=RETRIES)
        return DistributedRows(kept, self.stops, self.schema)

    def fetch(
        self, pick: Callable[[Any], R], index: IntArray, n_threads: int = 1
    ) -> list[R]:
        """Return what is picked from each block of the partitions with these rows."""
        owners = np.unique(np.searchsorted(self.stops, index, side="right"))
        tasks = _apply(_each_block, pick, [self.partitions[k] for k in owners])
        return [picked for part in _compute(tasks, n_threads) for picked in part]


def _apply(
    loop: Callable[..., Any], job: Callable[[Any], Any], partitions: Sequence[Any]
) -> list[Any]:
    """Return one task per partition; the job is sent once for all."""
    from dask import delayed

    shared = delayed(job, pure=False, traverse=False)
    return [delayed(loop, pure=False)(shared, part) for part in partitions]


def _sum_blocks(job: Callable[[Any], S], blocks: Iterable[Any]) -> S:
    return sum_in_order(job, blocks, n_threads=1)


def _each_block(job: Callable[[Any], R], blocks: Iterable[Any]) -> list[R]:
    return [job(block) for block in blocks]


def _add_up(sums: list[Any]) -> Any:
    """Add up neighbours. Dask may need them again, so they must not change."""
    first, *others = map(deepcopy, sums)
    for other in others:
        first.add(other)
    return first


def _compute(tasks: Sequence[Any], n_threads: int) -> list[Any]:
    import dask

    with _report_losses(), dask.config.set(num_workers=n_threads):
        return list(dask.compute(*tasks, retries=RETRIES))


@contextmanager
def _report_losses() -> Iterator[None]:
    """Raise ClusterLostError if the cluster is lost; errors of tasks pass through."""
    try:
        from distributed import CancelledError, KilledWorker
        from distributed.client import ClosedClientError
        from distributed.comm import CommClosedError
        from distributed.scheduler import NoWorkerError
    except ImportError:  # dask without distributed computes in threads
        yield
        return
    try:
        yield
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        reason = _first_line(error)
        raise ClusterLostError(f"The Dask scheduler was lost: {reason}") from error
    except (KilledWorker, NoWorkerError) as error:
        raise ClusterLostError(
            f"The workers of the Dask cluster were lost: {_first_line(error)} If "
            "they ran out of memory, use smaller partitions or give them more memory."
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


@dataclass(frozen=True)
class Partition:
    """A computed partition; iterating over it checks its rows block by block."""

    X: Any
    y: Any
    weight: Any
    k: int
    start: int
    n_rows: int
    schema: Schema
    rows_at_once: int

    def __iter__(self) -> Iterator[Block]:
        name = f"partition {self.k} of the dask collection"
        if len(self.X) != self.n_rows:
            raise ValueError(
                f"{name} had {self.n_rows} rows when they were counted and now has "
                f"{len(self.X)}. The rows must stay the same until the fit is done."
            )
        X, y, weight = split_frame(self.X, self.y, self.weight)
        rows = [RawRows(X, y, weight, name)]
        return check_rows(rows, self.schema, self.start, self.rows_at_once)


def is_dask(X: Any) -> bool:
    return hasattr(X, "__dask_graph__")


def open_dask(X: Any, y: Any, sample_weight: Any, rows_at_once: int) -> DistributedRows:
    from dask import delayed

    if getattr(X, "ndim", 0) != 2:
        raise ValueError(
            "Expected 2D array or dask dataframe, got a "
            f"{type(X).__module__}.{type(X).__name__} instead. Reshape your data."
        )
    counts: Any = [np.nan]
    if hasattr(X, "columns"):
        names = list(split_frame(X, y, sample_weight)[0].columns)
        schema = Schema(len(names), column_names(X[names]))
    else:
        X = X.rechunk({1: X.shape[1]})  # a chunk must hold complete rows
        schema, counts = Schema(int(X.shape[1])), X.chunks[0]
    parts = _delayed(X)
    if np.isnan(counts).any():
        counts = _compute([delayed(len)(part) for part in parts], 1)
    stops = np.cumsum(counts, dtype=np.intp)
    if not stops.size or stops[-1] == 0:
        raise no_rows()
    labels = _cut_at(stops, y, "y")
    weights = _cut_at(stops, sample_weight, "sample_weight")
    filled = np.flatnonzero(counts)
    partitions = []
    for k in filled.tolist():
        make = partial(
            Partition, k=k, start=int(stops[k] - counts[k]), n_rows=int(counts[k]),
            schema=schema, rows_at_once=rows_at_once,
        )  # fmt: skip
        task = delayed(make, pure=False, traverse=False)
        partitions.append(task(parts[k], labels[k], weights[k]))
    return DistributedRows(partitions, stops[filled], schema)


def _delayed(collection: Any) -> list[Any]:
    """Return the partitions; optimization would fuse those of X and y differently."""
    return list(np.ravel(collection.to_delayed(optimize_graph=False)))


def _cut_at(stops: IntArray, values: Any, argument: str) -> list[Any]:
    """Return labels or weights cut at the same rows as X; scalars are repeated."""
    if values is None or isinstance(values, str) or np.ndim(values) == 0:
        return [values] * len(stops)
    if not is_dask(values):
        return np.split(np.asarray(values), stops[:-1])
    if hasattr(values, "chunks") and values.shape[0] == stops[-1]:
        values = values.rechunk({0: tuple(np.diff(stops, prepend=0).tolist())})
    parts = _delayed(values)
    if len(parts) != len(stops):
        raise ValueError(
            f"X has {len(stops)} partition(s), {argument} has {len(parts)}. Cut both "
            "at the same rows."
        )
    return parts
