# SPDX-License-Identifier: BSD-3-Clause
"""All rows as features, gone through by the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from leaveout._typing import IntArray
from leaveout.data import Block, PlacedRows
from leaveout.kernel._feature_rows import (
    Encode,
    FeatureBlock,
    Rows,
    gather_from,
    pick,
)
from leaveout.run import Summable

S = TypeVar("S", bound=Summable)


class DaskRows:
    """Rows that workers read, and turn into features, anew in every pass.

    Parameters
    ----------
    placed : PlacedRows
        Where they are.
    encode : Encode
        What is made of them.
    """

    def __init__(self, placed: PlacedRows, encode: Encode) -> None:
        self.placed, self.encode = placed, encode
        self.n_rows = placed.n_rows
        self.n_components = encode.feature_map.n_components

    def run(self, job: Callable[[FeatureBlock], S]) -> S:
        """Add up what a job makes of every block."""
        return self.placed.sum(_EncodeFirst(self.encode, job))

    def gather(self, index: IntArray) -> Rows:
        """Fetch the rows with these numbers, ascending."""
        return Rows.join(self.placed.fetch(_Gather(self.encode, index), index))

    def in_memory(self) -> DaskRowsInMemory:
        """Keep the features of all rows, each worker those of its own rows."""
        kept = self.placed.keep(_EncodeAll(self.encode))
        return DaskRowsInMemory(kept, self.n_components)


class DaskRowsInMemory:
    """Rows whose features the workers keep.

    Parameters
    ----------
    placed : PlacedRows
        Blocks of features.
    n_components : int
        Number of features.
    """

    def __init__(self, placed: PlacedRows, n_components: int) -> None:
        self.placed, self.n_components = placed, n_components
        self.n_rows = placed.n_rows

    def run(self, job: Callable[[FeatureBlock], S]) -> S:
        """Add up what a job makes of every block."""
        return self.placed.sum(job)

    def gather(self, index: IntArray) -> Rows:
        """Fetch the rows with these numbers, ascending."""
        return Rows.join(self.placed.fetch(_Pick(index), index))


@dataclass(frozen=True)
class _EncodeFirst:
    """A job on features as one on rows as they come."""

    encode: Encode
    job: Callable[[FeatureBlock], Any]

    def __call__(self, block: Block) -> Any:
        return self.job(self.encode(block))


@dataclass(frozen=True)
class _EncodeAll:
    """Features of all blocks of a bundle."""

    encode: Encode

    def __call__(self, blocks: Iterable[Block]) -> list[FeatureBlock]:
        return [self.encode(block) for block in blocks]


@dataclass(frozen=True)
class _Gather:
    """Features of some rows of a bundle."""

    encode: Encode
    index: IntArray

    def __call__(self, blocks: Iterable[Block]) -> Rows:
        encode, index = self.encode, self.index
        return Rows.join(gather_from(block, encode, index) for block in blocks)


@dataclass(frozen=True)
class _Pick:
    """Some rows of a bundle whose features are kept."""

    index: IntArray

    def __call__(self, blocks: Iterable[FeatureBlock]) -> Rows:
        return Rows.join(pick(blocks, self.index))
