# SPDX-License-Identifier: BSD-3-Clause
"""Kernel features of rows.

Finite features whose inner product is the kernel, and their centre.

All rows as features, gone through block by block.

All rows as features, gone through by the workers of a Dask cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy import sparse

from leaveout._typing import FloatArray, IntArray
from leaveout.large._rows import Block, RowSource
from leaveout.large._sources import DistributedRows
from leaveout.run._parallel import Summable, map_in_order, sum_in_order


@dataclass(frozen=True)
class FeatureMap:
    """Rows to features z, moved by a centre.

    The intercept is not regularised, so moving all z by the same vector changes the
    intercept alone; around the centre the bounds on a decision value are smallest.

    Parameters
    ----------
    transformer : object with ``transform``, or None
        None for the rows themselves.
    center : ndarray of shape (n_components,)
        What is taken off.

    Examples
    --------
    >>> import numpy as np
    >>> FeatureMap(None, np.array([1.0, 0.0]))(np.array([[3.0, 2.0]]))
    array([[2., 2.]])
    """

    transformer: Any
    center: FloatArray

    @classmethod
    def around(cls, transformer: Any, sample: FloatArray) -> FeatureMap:
        """Take the mean of a sample of rows as the centre."""
        plain = cls(transformer, np.zeros(1))
        return cls(transformer, plain(sample).mean(axis=0))

    @property
    def n_components(self) -> int:
        """Number of features."""
        return self.center.shape[0]

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the features of some rows, (m, n_components)."""
        if self.transformer is None:
            return X - self.center
        if X.shape[0] == 0:  # which scikit-learn's transformers refuse
            return np.empty((0, self.n_components))
        Z = self.transformer.transform(X)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        if np.may_share_memory(Z, X):
            return Z - self.center
        Z -= self.center
        return Z


class FeatureBlock(NamedTuple):
    """Some consecutive rows as features.

    Parameters
    ----------
    start : int
        Number of the first row.
    Z : ndarray of shape (m, n_components)
        Features around their centre.
    codes : ndarray of int32, shape (m,)
        Class of each row.
    weight : ndarray of shape (m,)
        Its weight; C times this is its box.
    """

    start: int
    Z: FloatArray
    codes: np.ndarray
    weight: FloatArray


@dataclass
class Rows:
    """Some rows, not consecutive ones, as features.

    Parameters
    ----------
    index : ndarray of int, shape (m,)
        Their numbers, ascending.
    Z : ndarray of shape (m, n_components)
        Features.
    codes : ndarray of int32, shape (m,)
        Classes.
    weight : ndarray of shape (m,)
        Weights.
    """

    index: IntArray
    Z: FloatArray
    codes: np.ndarray
    weight: FloatArray

    @classmethod
    def join(cls, parts: Iterable[Rows]) -> Rows:
        """Put rows together."""
        parts = list(parts)
        return cls(
            np.concatenate([part.index for part in parts]),
            np.concatenate([part.Z for part in parts]),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.weight for part in parts]),
        )

    def take(self, index: IntArray) -> Rows:
        """Return the rows with these numbers, which must be among them."""
        place = np.searchsorted(self.index, index)
        return Rows(
            self.index[place], self.Z[place], self.codes[place], self.weight[place]
        )


S = TypeVar("S", bound=Summable)


class FeatureRows(Protocol):
    """What an engine needs of the rows, wherever they are.

    Attributes
    ----------
    n_rows : int
        How many there are.
    n_components : int
        Number of features.
    """

    n_rows: int
    n_components: int

    def run(self, job: Callable[[FeatureBlock], S]) -> S:
        """Add up what a job makes of every block."""

    def gather(self, index: IntArray) -> Rows:
        """Fetch the rows with these numbers, ascending."""


class RowsInMemory:
    """Rows whose features are kept.

    Parameters
    ----------
    blocks : iterable of FeatureBlock
        All rows, in order.
    n_threads : int, default=1
        Threads over blocks.

    Examples
    --------
    >>> import numpy as np
    >>> rows = RowsInMemory.of(np.eye(3), np.array([0, 1, 1]), np.ones(3), size=2)
    >>> rows.gather(np.array([0, 2])).Z
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """

    def __init__(self, blocks: Iterable[FeatureBlock], n_threads: int = 1) -> None:
        self.blocks = list(blocks)
        self.n_threads = n_threads
        last = self.blocks[-1]
        self.n_rows = last.start + last.Z.shape[0]
        self.n_components = last.Z.shape[1]

    @classmethod
    def of(
        cls,
        Z: FloatArray,
        codes: IntArray,
        weight: FloatArray,
        *,
        size: int = 4096,
        n_threads: int = 1,
    ) -> RowsInMemory:
        """Cut arrays into blocks."""
        codes = np.asarray(codes, dtype=np.int32)
        parts = (slice(i, i + size) for i in range(0, Z.shape[0], size))
        return cls(
            (FeatureBlock(p.start, Z[p], codes[p], weight[p]) for p in parts), n_threads
        )

    def run(self, job: Callable[[FeatureBlock], S]) -> S:
        """Add up what a job makes of every block."""
        return sum_in_order(job, self.blocks, self.n_threads)

    def gather(self, index: IntArray) -> Rows:
        """Fetch the rows with these numbers, ascending."""
        return Rows.join(pick(self.blocks, index))


@dataclass(frozen=True)
class Encode:
    """From rows as they come to features, class codes and weights.

    Parameters
    ----------
    feature_map : FeatureMap
        Rows to features.
    classes : ndarray of shape (n_classes,)
        Sorted labels; rows with another one have no weight and get the code -1.
    class_weight : ndarray of shape (n_classes,)
        Factor of the weights of each class.
    """

    feature_map: FeatureMap
    classes: np.ndarray
    class_weight: FloatArray

    def __call__(self, block: Block, keep: IntArray | None = None) -> FeatureBlock:
        """Return a block as features, or some of its rows."""
        X, y, weight = block.X, block.y, block.weight
        if keep is not None:
            X, y = X[keep], y[keep]
            weight = None if weight is None else weight[keep]
        place = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        known = self.classes[place] == y
        codes = np.where(known, place, -1).astype(np.int32)
        factor = np.where(known, self.class_weight[place], 0.0)
        if weight is not None:
            factor *= weight
        return FeatureBlock(block.start, self.feature_map(X), codes, factor)


class StreamedRows:
    """Rows that are read, and turned into features, anew in every pass.

    Parameters
    ----------
    source : RowSource
        Where they come from.
    encode : Encode
        What is made of them.
    n_rows : int
        How many there are.
    n_threads : int, default=1
        Threads over blocks; reading is done by one.
    """

    def __init__(
        self, source: RowSource, encode: Encode, n_rows: int, n_threads: int = 1
    ) -> None:
        self.source, self.encode, self.n_rows = source, encode, n_rows
        self.n_threads = n_threads
        self.n_components = encode.feature_map.n_components

    def run(self, job: Callable[[FeatureBlock], S]) -> S:
        """Add up what a job makes of every block."""
        return sum_in_order(
            lambda block: job(self.encode(block)), self.source.blocks(), self.n_threads
        )

    def gather(self, index: IntArray) -> Rows:
        """Fetch the rows with these numbers, ascending."""

        def pick_from(block: Block) -> Rows:
            return gather_from(block, self.encode, index)

        blocks = self.source.blocks()
        return Rows.join(map_in_order(pick_from, blocks, self.n_threads))

    def in_memory(self) -> RowsInMemory:
        """Keep the features of all rows."""
        blocks = map_in_order(self.encode, self.source.blocks(), self.n_threads)
        return RowsInMemory(blocks, self.n_threads)


def gather_from(block: Block, encode: Encode, index: IntArray) -> Rows:
    """Take rows by their numbers out of a block; only these become features."""
    low, high = np.searchsorted(index, [block.start, block.start + len(block.y)])
    picked = encode(block, index[low:high] - block.start)
    return Rows(index[low:high], picked.Z, picked.codes, picked.weight)


def pick(blocks: Iterable[FeatureBlock], index: IntArray) -> Iterator[Rows]:
    """Take rows by their numbers out of each block that has some."""
    for block in blocks:
        low, high = np.searchsorted(index, [block.start, block.start + len(block.Z)])
        here = index[low:high] - block.start
        yield Rows(
            index[low:high], block.Z[here], block.codes[here], block.weight[here]
        )


class DaskRows:
    """Rows that workers read, and turn into features, anew in every pass.

    Parameters
    ----------
    placed : DistributedRows
        Where they are.
    encode : Encode
        What is made of them.
    """

    def __init__(self, placed: DistributedRows, encode: Encode) -> None:
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
    placed : DistributedRows
        Blocks of features.
    n_components : int
        Number of features.
    """

    def __init__(self, placed: DistributedRows, n_components: int) -> None:
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
