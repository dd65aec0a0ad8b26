# SPDX-License-Identifier: BSD-3-Clause
"""Rows as kernel features: in memory, recomputed in every pass, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import iadd
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from scipy import sparse

from leaveout._typing import FloatArray, IntArray
from leaveout.large._dask import DistributedRows
from leaveout.large._rows import Block, KeptBlocks, RowSource
from leaveout.run._parallel import Summable

S = TypeVar("S", bound=Summable)


@dataclass(frozen=True)
class FeatureMap:
    """Map rows to (z, 1), z centred features; without ``transformer`` z are the rows.

    The intercept is not regularised, so centring changes only the intercept; it makes
    the bounds on decision values smallest.
    """

    transformer: Any
    center: FloatArray

    @classmethod
    def around(cls, transformer: Any, sample: FloatArray) -> FeatureMap:
        """Use the mean of a sample of rows as the centre."""
        return cls(transformer, cls(transformer, np.zeros(1))(sample)[:, :-1].mean(0))

    @property
    def dim(self) -> int:
        """Length of (z, 1)."""
        return self.center.size + 1

    def __call__(self, X: FloatArray) -> FloatArray:
        Z: Any = X if self.transformer is None else self.transformer.transform(X)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        A = np.ones((Z.shape[0], Z.shape[1] + 1))
        np.subtract(Z, self.center, out=A[:, :-1])
        return A


class FeatureBlock(NamedTuple):
    """Rows from ``start`` on: (z, 1), class codes (int32), weights.

    C times ``own`` is the upper bound of a row's coefficient. Of equal rows, the first
    has the ``weight`` of all, and the others 0. ``radius`` is the largest norm of z.
    """

    start: int
    A: FloatArray
    codes: np.ndarray
    weight: FloatArray
    own: FloatArray
    radius: float


def largest_norm(A: FloatArray) -> float:
    """Return the largest norm of z, from rows (z, 1)."""
    Z = A[:, :-1]
    return float(np.sqrt(np.einsum("ij,ij->i", Z, Z).max(initial=0.0)))


@dataclass
class Sums:
    """What a pass computes from a block: fields that add up, lists, and maxima."""

    MAXIMA: ClassVar[tuple[str, ...]] = ("radius",)

    def add(self, other: Self) -> None:
        """Add another block's result; lists are joined, those of sums added up."""
        for name, mine in vars(self).items():
            its = getattr(other, name)
            if name in self.MAXIMA:
                setattr(self, name, np.maximum(mine, its))
            elif isinstance(mine, list) and hasattr(mine[0], "add"):
                for one, more in zip(mine, its, strict=True):
                    one.add(more)
            else:
                setattr(self, name, iadd(mine, its))


class Chosen:
    """Columns of some rows; of those of all blocks, ``_cut`` keeps the closest."""

    COLUMNS: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        self._cut()

    def add(self, other: Self) -> None:
        for name in self.COLUMNS:
            both = [getattr(self, name), getattr(other, name)]
            setattr(self, name, np.concatenate(both))
        self._cut()

    def _keep(self, places: Any) -> None:
        for name in self.COLUMNS:
            setattr(self, name, getattr(self, name)[places])

    def _cut(self) -> None:
        raise NotImplementedError


class Rows(NamedTuple):
    """Selected rows as (z, 1); ``numbers`` are ascending.

    ``first`` is the number of the first row that equals each.
    """

    numbers: np.ndarray
    A: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    own: np.ndarray
    first: np.ndarray

    def take(self, index: IntArray) -> Rows:
        """Return the rows with these numbers, all of which must be present."""
        place = np.searchsorted(self.numbers, index)
        return Rows(*(column[place] for column in self))


@dataclass(frozen=True)
class Encode:
    """Convert rows to features, class codes and weights, with a factor per class.

    Rows whose label is not in ``classes`` (sorted) get weight 0 and code -1. ``merged``
    are the weights of all rows if some are equal.
    """

    feature_map: FeatureMap
    classes: np.ndarray
    class_weight: FloatArray
    merged: FloatArray | None = None

    def __call__(self, block: Block) -> FeatureBlock:
        """Return a block as features."""
        y, weight = block.y, block.weight
        place = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        known = self.classes[place] == y
        codes = np.where(known, place, -1).astype(np.int32)
        factor = np.where(known, self.class_weight[place], 0.0)
        own = total = factor if weight is None else factor * weight
        if self.merged is not None:
            total = factor * self.merged[block.start : block.start + len(y)]
        A = self.feature_map(block.X)
        return FeatureBlock(block.start, A, codes, total, own, largest_norm(A))


@dataclass
class FeatureRows:
    """All rows as features: ``encode`` makes them from the blocks of the source.

    ``first`` has the number of the first row that equals each, if some are equal;
    ``n_passes`` counts how often the rows were read, ``dim`` is the length of (z, 1).
    """

    source: RowSource | DistributedRows
    encode: Callable[[Any], FeatureBlock]
    n_rows: int
    dim: int
    n_threads: int = 1
    n_passes: int = 0
    first: IntArray | None = None

    @classmethod
    def of(
        cls, A: FloatArray, codes: IntArray, weight: FloatArray, *, n_threads: int
    ) -> FeatureRows:
        """Cut arrays into blocks."""
        codes = np.asarray(codes, dtype=np.int32)
        parts = [slice(i, i + 4096) for i in range(0, A.shape[0], 4096)]
        blocks = [
            FeatureBlock(
                p.start, A[p], codes[p], weight[p], weight[p], largest_norm(A[p])
            )
            for p in parts
        ]
        m, dim = A.shape
        return cls(KeptBlocks(blocks), _as_they_are, m, dim, n_threads)

    def run(self, job: Callable[[FeatureBlock], S]) -> S:
        """Add up the results of a job on every block."""
        self.n_passes += 1
        job = partial(_encode_first, self.encode, job)
        return self.source.sum(job, self.n_threads)

    def gather(self, index: IntArray) -> Rows:
        """Fetch the rows with these numbers, ascending."""
        self.n_passes += 1
        pick = partial(_pick, index, self.encode)
        parts = self.source.fetch(pick, index, self.n_threads)
        first = index if self.first is None else self.first[index]
        picked = zip(*(part for part in parts if part), strict=True)
        numbers, A, codes, weight, own = map(np.concatenate, picked)
        return Rows(numbers, A, codes, weight, own, first)

    def in_memory(self) -> FeatureRows:
        """Store the features of all rows where they are computed."""
        kept = self.source.keep(self.encode, self.n_threads)
        n_passes = self.n_passes + 1
        return replace(self, source=kept, encode=_as_they_are, n_passes=n_passes)


def _as_they_are(block: FeatureBlock) -> FeatureBlock:
    return block


def _encode_first(encode: Callable[[Any], Any], job: Callable[[Any], S], b: Any) -> S:
    return job(encode(b))


def _pick(index: IntArray, encode: Callable[[Any], Any], block: Any) -> tuple[Any, ...]:
    """Select rows of a block by their numbers.

    The features of the complete block are computed: those of a part would have other
    rounding errors, and so other bits than stored features.
    """
    start, values = block[:2]
    low, high = np.searchsorted(index, [start, start + values.shape[0]])
    index = index[low:high]
    if low == high:
        return ()
    return index, *(column[index - start] for column in encode(block)[1:-1])
