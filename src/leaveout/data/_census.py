# SPDX-License-Identifier: BSD-3-Clause
"""The first pass over rows: which classes there are, how many, and a sample of each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout._typing import FloatArray, IntArray
from leaveout.data._row_checks import Block


@dataclass
class ClassSample:
    """One class: how many rows, with weight, and those with the smallest hash.

    The hash is one of the number of the row alone, so that the sample is the same
    however the rows are cut into blocks, and whoever reads them.
    """

    n_rows: int
    n_weighted: int
    total_weight: float
    hashes: NDArray[np.uint64]
    X: FloatArray
    weight: FloatArray

    def add(self, other: ClassSample) -> None:
        """Take over rows of another block."""
        self.n_rows += other.n_rows
        self.n_weighted += other.n_weighted
        self.total_weight += other.total_weight
        self.hashes = np.concatenate([self.hashes, other.hashes])
        self.X = np.concatenate([self.X, other.X])
        self.weight = np.concatenate([self.weight, other.weight])

    def cut(self, most: int) -> None:
        """Keep no more rows than this, in the order of their hashes."""
        order = np.argsort(self.hashes)[:most]
        self.hashes, self.X = self.hashes[order], self.X[order]
        self.weight = self.weight[order]


@dataclass
class Census:
    """What a pass over rows tells.

    Parameters
    ----------
    classes : dict
        Label to :class:`ClassSample`.
    most : int
        Rows to keep, over all classes.
    n_rows : int
        Number of rows.
    n_values, mean, spread : float
        Number of entries of X, their mean, and the sum of their squared deviations.
    largest_weight : float
        Of any row.
    weighted : bool
        Whether rows came with weights.
    """

    classes: dict[Hashable, ClassSample]
    most: int
    n_rows: int
    n_values: float
    mean: float
    spread: float
    largest_weight: float
    weighted: bool

    def add(self, other: Census) -> None:
        """Take over what another block tells."""
        for label, sample in other.classes.items():
            if label in self.classes:
                self.classes[label].add(sample)
            else:
                self.classes[label] = sample
        self._cut()
        self.n_rows += other.n_rows
        # Chan, Golub & LeVeque (1983): variance of two samples put together
        total = self.n_values + other.n_values
        apart = other.mean - self.mean
        # Where squares overflow the spread is infinite, which its user refuses.
        shift = apart * (self.n_values * other.n_values / total)
        self.spread += other.spread + apart * shift
        self.mean += apart * other.n_values / total
        self.n_values = total
        self.largest_weight = max(self.largest_weight, other.largest_weight)
        self.weighted |= other.weighted

    def _cut(self) -> None:
        """Sort the samples when they have grown too large by half."""
        for sample in self.classes.values():
            if sample.hashes.size > self._share + self._share // 2:
                sample.cut(self._share)

    @property
    def _share(self) -> int:
        """Rows to keep of each class; fewer as classes turn up, never more."""
        return max(1, self.most // len(self.classes))

    @property
    def variance(self) -> float:
        """Variance of all entries of X."""
        return self.spread / self.n_values

    def labels(self) -> NDArray[Any]:
        """Return the labels of the classes that have weight, sorted."""
        heavy = [k for k, sample in self.classes.items() if sample.total_weight > 0.0]
        return np.unique(np.array(heavy))

    def samples(self, labels: NDArray[Any]) -> Iterator[ClassSample]:
        """Go through the samples of some classes, in the order of their hashes."""
        for label in labels.tolist():
            sample = self.classes[label]
            sample.cut(self._share)
            yield sample


@dataclass(frozen=True)
class CensusJob:
    """Count a block.

    Parameters
    ----------
    seed : int
        Of the hashes.
    most : int
        Rows to keep, over all classes.
    """

    seed: int
    most: int

    def __call__(self, block: Block) -> Census:
        """Return the census of the block."""
        X, m = block.X, block.X.shape[0]
        weight = np.ones(m) if block.weight is None else block.weight
        hashes = _hashes(block.start + np.arange(m), self.seed)
        classes: dict[Hashable, ClassSample] = {}
        labels, codes = np.unique(block.y, return_inverse=True)
        for code, label in enumerate(labels.tolist()):
            rows = np.flatnonzero(codes == code)
            sample = ClassSample(
                rows.size,
                int(np.count_nonzero(weight[rows])),
                float(weight[rows].sum()),
                hashes[rows],
                X[rows],
                weight[rows],
            )
            sample.cut(self.most)
            classes[label] = sample
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(X.mean()) if X.size else 0.0
            spread = float(((X - mean) ** 2).sum())
        return Census(
            classes, self.most, m, float(X.size), mean, spread,
            float(weight.max(initial=0.0)), block.weight is not None,
        )  # fmt: skip


def _hashes(rows: IntArray, seed: int) -> NDArray[np.uint64]:
    """Mix the bits of row numbers (SplitMix64; Steele, Lea & Flood 2014)."""
    offset = (seed + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(offset)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
