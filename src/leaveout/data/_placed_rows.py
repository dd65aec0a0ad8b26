# SPDX-License-Identifier: BSD-3-Clause
"""Rows that the workers of a cluster read, each its own parts."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from leaveout._typing import IntArray
from leaveout.data._blocks import RowSource
from leaveout.data._row_checks import Block
from leaveout.data._row_parts import Part, PartedRows
from leaveout.run import Cluster, Summable

S = TypeVar("S", bound=Summable)
R = TypeVar("R")

# A task costs the scheduler a millisecond, and its sums a journey.
MOST_TASKS = 1024


@dataclass(frozen=True)
class Bundle:
    """Consecutive parts, which one task reads."""

    parts: tuple[Part, ...]

    def __iter__(self) -> Iterator[Block]:
        """Read all rows in order."""
        for part in self.parts:
            yield from part.read()

    @property
    def stop(self) -> int:
        """Number of the row after the last one."""
        return self.parts[-1].start + (self.parts[-1].n_rows or 0)


@dataclass(frozen=True)
class PackedBundle:
    """A bundle in a form that only its reader opens.

    The scheduler and other workers pass it on, and need not see the files: to pickle
    one of pyarrow's anew means to open it.
    """

    content: bytes

    @classmethod
    def of(cls, parts: Sequence[Part]) -> PackedBundle:
        """Pack parts, functions of the user among them."""
        import cloudpickle  # comes with dask

        return cls(cloudpickle.dumps(Bundle(tuple(parts))))

    def __iter__(self) -> Iterator[Block]:
        """Read all rows in order."""
        return iter(pickle.loads(self.content))


class PlacedRows:
    """Rows on a cluster: what each worker needs to read its own is there.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    bundles : list of futures
        Each an iterable of blocks.
    stops : ndarray of int
        Number of the row after the last one of each bundle.
    """

    def __init__(
        self, cluster: Cluster, bundles: Sequence[Any], stops: IntArray
    ) -> None:
        self.cluster, self.bundles, self.stops = cluster, list(bundles), stops

    @classmethod
    def of(cls, source: RowSource, cluster: Cluster) -> PlacedRows:
        """Send the parts of a source to the workers; files are read there."""
        bundles = bundle_parts(_counted_parts(source, cluster), MOST_TASKS)
        stops = np.array([bundle.stop for bundle in bundles])
        packed = (PackedBundle.of(bundle.parts) for bundle in bundles)
        return cls(cluster, cluster.place(packed), stops)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.stops[-1])

    def sum(self, job: Callable[[Any], S]) -> S:
        """Add up what a job makes of every block: one pass."""
        return self.cluster.sum(job, self.bundles)

    def keep(self, make: Callable[[Any], Any]) -> PlacedRows:
        """Leave what is made of each bundle with the workers."""
        return PlacedRows(
            self.cluster, self.cluster.keep(make, self.bundles), self.stops
        )

    def fetch(self, pick: Callable[[Any], R], index: IntArray) -> list[R]:
        """Return what is picked from the bundles that have rows with these numbers."""
        owners = np.unique(np.searchsorted(self.stops, index, side="right"))
        return self.cluster.fetch(pick, [self.bundles[k] for k in owners])


def bundle_parts(parts: Sequence[Part], most: int) -> list[Bundle]:
    """Join neighbours so that there are no more than so many bundles.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.data import open_rows
    >>> parts = open_rows(np.eye(5), list("aabba"), rows_at_once=1).parts
    >>> [len(bundle.parts) for bundle in bundle_parts(parts, most=2)]
    [3, 2]
    """
    size = -(-len(parts) // most)
    return [Bundle(tuple(parts[i : i + size])) for i in range(0, len(parts), size)]


def _counted_parts(source: RowSource, cluster: Cluster) -> Sequence[Part]:
    """Return the parts, each with its first row; workers count where nobody has."""
    if isinstance(source, PartedRows):
        source.count(lambda parts: _count_there(parts, cluster))
    if source.parts is None:
        raise ValueError(
            "Blocks of an iterable can be read by one process only, from front to "
            "back, and not by the workers of a Dask cluster. Write them to Parquet "
            "files that the workers can read, or fit without "
            'joblib.parallel_config("dask").'
        )
    return source.parts


def _count_there(parts: Sequence[Part], cluster: Cluster) -> list[int]:
    placed = cluster.place(PackedBundle.of([part]) for part in parts)
    return cluster.fetch(_count_rows, placed)


def _count_rows(blocks: Iterable[Block]) -> int:
    return sum(len(block.y) for block in blocks)
