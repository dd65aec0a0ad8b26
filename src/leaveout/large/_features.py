# SPDX-License-Identifier: BSD-3-Clause
"""Rows as kernel features: in memory, recomputed in every pass, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from leaveout._typing import FloatArray, IntArray
from leaveout.large._dask import DistributedRows
from leaveout.large._rows import Block, KeptBlocks, RowSource
from leaveout.run._parallel import Summable

S = TypeVar("S", bound=Summable)


@dataclass(frozen=True)
class FeatureMap:
    """Map rows to centred features z; ``transformer`` is None for the rows themselves.

    The intercept is not regularised, so centring changes only the intercept; it makes
    the bounds on decision values smallest.
    """

    transformer: Any
    center: FloatArray

    @classmethod
    def around(cls, transformer: Any, sample: FloatArray) -> FeatureMap:
        """Use the mean of a sample of rows as the centre."""
        plain = cls(transformer, np.zeros(1))
        return cls(transformer, plain(sample).mean(axis=0))

    @property
    def n_components(self) -> int:
        return self.center.shape[0]

    def __call__(self, X: FloatArray) -> FloatArray:
        if self.transformer is None:
            return X - self.center
        if X.shape[0] == 0:  # scikit-learn's transformers refuse empty arrays
            return np.empty((0, self.n_components))
        Z = self.transformer.transform(X)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        if np.may_share_memory(Z, X):
            return Z - self.center
        Z -= self.center
        return Z


class FeatureBlock(NamedTuple):
    """Rows from ``start`` on: centred features, class codes (int32), weights.

    C times ``own`` is the upper bound of a row's coefficient. Of equal rows, the first
    has the ``weight`` of all, and the others 0.
    """

    start: int
    Z: FloatArray
    codes: np.ndarray
    weight: FloatArray
    own: FloatArray


class Rows(NamedTuple):
    """Selected rows as features; ``numbers`` are ascending.

    ``first`` is the number of the first row that equals each.
    """

    numbers: np.ndarray
    Z: np.ndarray
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
        return FeatureBlock(block.start, self.feature_map(block.X), codes, total, own)


@dataclass
class FeatureRows:
    """All rows as features: stored, or recomputed in every pass if encode is given.

    ``first`` has the number of the first row that equals each, if some are equal;
    ``n_passes`` counts how often the rows were read.
    """

    source: RowSource | DistributedRows
    encode: Encode | None
    n_rows: int
    n_components: int
    n_threads: int = 1
    n_passes: int = 0
    first: IntArray | None = None

    @classmethod
    def of(
        cls, Z: FloatArray, codes: IntArray, weight: FloatArray, *, n_threads: int
    ) -> FeatureRows:
        """Cut arrays into blocks."""
        codes = np.asarray(codes, dtype=np.int32)
        parts = [slice(i, i + 4096) for i in range(0, Z.shape[0], 4096)]
        blocks = [
            FeatureBlock(p.start, Z[p], codes[p], weight[p], weight[p]) for p in parts
        ]
        return cls(KeptBlocks(blocks), None, Z.shape[0], Z.shape[1], n_threads)

    def run(self, job: Callable[[FeatureBlock], S]) -> S:
        """Add up the results of a job on every block."""
        self.n_passes += 1
        if self.encode is not None:
            job = partial(_encode_first, self.encode, job)
        return self.source.sum(job, self.n_threads)

    def gather(self, index: IntArray) -> Rows:
        """Fetch the rows with these numbers, ascending."""
        self.n_passes += 1
        pick = partial(_pick, index, self.encode)
        parts = self.source.fetch(pick, index, self.n_threads)
        first = index if self.first is None else self.first[index]
        numbers, Z, codes, weight, own = map(np.concatenate, zip(*parts, strict=True))
        return Rows(numbers, Z, codes, weight, own, first)

    def in_memory(self) -> FeatureRows:
        """Store the features of all rows where they are computed."""
        assert self.encode is not None
        kept = self.source.keep(self.encode, self.n_threads)
        size = (self.n_rows, self.n_components, self.n_threads)
        return FeatureRows(kept, None, *size, self.n_passes + 1, self.first)


def _encode_first(
    encode: Encode, job: Callable[[FeatureBlock], Any], block: Block
) -> Any:
    return job(encode(block))


def _pick(index: IntArray, encode: Encode | None, block: Any) -> tuple[Any, ...]:
    """Select rows of a block by their numbers.

    The features of the complete block are computed: those of a part would have other
    rounding errors, and so other bits than stored features.
    """
    m = len(block.codes if encode is None else block.y)
    low, high = np.searchsorted(index, [block.start, block.start + m])
    if encode is not None:
        block = encode(block if low < high else block.part(0, 0))
    index = index[low:high]
    return index, *(column[index - block.start] for column in block[1:])
