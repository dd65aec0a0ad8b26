# SPDX-License-Identifier: BSD-3-Clause
"""Rows of dask arrays and dask dataframes, one partition at a time.

A partition is computed where its part is read: on a cluster, by the worker that needs
it. Nothing but that partition, and what it is made from, is then in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from leaveout.data._row_checks import Form, Piece, column_names
from leaveout.data._row_parts import Part, PartedRows


def is_dask(X: Any) -> bool:
    """Whether X is a collection of dask."""
    return hasattr(X, "__dask_graph__")


def open_dask(X: Any, y: Any, sample_weight: Any, rows_at_once: int) -> PartedRows:
    """Return the rows of a dask array or dataframe; every partition is a part."""
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(
            "Expected 2D array or a dataframe of dask, got a "
            f"{type(X).__module__}.{type(X).__name__} instead. Reshape your data."
        )
    if not hasattr(X, "columns") and X.numblocks[1] > 1:
        X = X.rechunk({1: X.shape[1]})  # rows must be whole
    if y is None:
        raise ValueError(
            "The classifier requires y to be passed, but the target y is None. Pass "
            "one label per row of X, or the name of their column."
        )
    form = Form(int(X.shape[1]), column_names(X))
    sizes = _sizes(X)
    y = _cut_like(sizes, y, "y")
    if sample_weight is not None and not isinstance(sample_weight, Real):
        sample_weight = _cut_like(sizes, sample_weight, "sample_weight")
    parts = []
    for k, n_rows in enumerate(sizes):
        X_k, y_k, weight_k = (_partition(c, k) for c in (X, y, sample_weight))
        reader = PartitionReader(X_k, y_k, weight_k, k)
        parts.append(Part(reader, form, rows_at_once, n_rows=n_rows))
    return PartedRows(parts, form)


@dataclass(frozen=True)
class PartitionReader:
    """One partition of X and y, yet to be computed; weights too, or one, or none."""

    X: Any
    y: Any
    weight: Any
    k: int

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"partition {self.k} of the dask collection"

    def pieces(self) -> Iterator[Piece]:
        """Compute the partition with the scheduler that dask finds, and yield it."""
        import dask

        X, y, weight = dask.compute(*self._delayed())
        yield Piece(X, y, weight, self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        import dask

        return PartitionReader, (*dask.optimize(*self._delayed()), self.k)

    def _delayed(self) -> list[Any]:
        """Arrays and frames in one form, whose graphs can be cut to what they need."""
        from dask.delayed import Delayed

        return [
            np.ravel(lazy.to_delayed())[0]
            if is_dask(lazy) and not isinstance(lazy, Delayed)
            else lazy
            for lazy in (self.X, self.y, self.weight)
        ]


def _partition(values: Any, k: int) -> Any:
    return values.partitions[k] if is_dask(values) else values


def _sizes(collection: Any) -> list[int | None]:
    """Return the rows of each partition, None where dask does not know them."""
    if not hasattr(collection, "chunks"):
        return [None] * collection.npartitions
    return [None if np.isnan(size) else int(size) for size in collection.chunks[0]]


def _cut_like(sizes: list[int | None], values: Any, argument: str) -> Any:
    """Return labels or weights as a collection that is cut at the same rows as X."""
    if not is_dask(values):
        if None in sizes:
            raise ValueError(
                f"{argument} is a {type(values).__name__}, but dask does not know how "
                "many rows each partition of X has. Pass the name of a column, or a "
                f"dask collection that is partitioned as X is, as {argument}."
            )
        from dask import array as da

        values = da.from_array(np.asarray(values), chunks=-1)
    found = _sizes(values)
    unknown = None in found or None in sizes
    if found == sizes or (unknown and len(found) == len(sizes)):
        return values
    if not unknown and _total(found) == _total(sizes):
        return values.rechunk({0: tuple(sizes)})
    raise ValueError(
        f"X has {_describe(sizes)}, {argument} has {_describe(found)}. Cut both at the "
        "same rows."
    )


def _total(sizes: list[int | None]) -> int:
    return sum(size or 0 for size in sizes)


def _describe(sizes: list[int | None]) -> str:
    rows = "" if None in sizes else f" with {_total(sizes)} rows"
    return f"{len(sizes)} partition(s){rows}"
