# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of numeric columns in every fold, by subtracting the left-out rows.

All folds together cost O(n p), plus a sort of each column if quantiles are needed
(docs/method/fold). Temporary arrays are made for a block of columns at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.adapt._moments_fast import fold_moments
from leaveout.engine._problem import Folds

EPS = float(np.finfo(np.float64).eps)
# Entries of a temporary array: 1 MB, so that it stays in the cache.
BLOCK = 2**17
# A fold whose variance is a smaller share of its sum of squares is computed directly.
CANCELLED = 1e-2


@dataclass(frozen=True)
class FoldRows:
    """The rows of each fold.

    Parameters
    ----------
    n : int
        Number of rows.
    folds : Folds
        Rows that are left out together. A fold without rows is a fit on all rows.
    y : ndarray of shape (n,)
        Labels or targets.
    clones : Counter
        For each class of steps, in how many folds a clone of it was fitted.
    in_doubt : set of int
        Folds in which rounding decides what a step does.
    """

    n: int
    folds: Folds
    y: NDArray[Any]
    clones: Counter[str] = field(default_factory=Counter)
    in_doubt: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        """Return the number of folds."""
        return len(self.folds)

    def only(self, k: int) -> FoldRows:
        """Return one of the folds."""
        return FoldRows(self.n, Folds.of([self.folds[k]]), self.y, self.clones)

    def kept(self, k: int) -> IntArray:
        """Rows that remain, in order."""
        return np.flatnonzero(self.kept_masks(np.array([k]))[0])

    def kept_masks(self, which: IntArray) -> BoolArray:
        """Whether each row remains in some of the folds, (len(which), n)."""
        masks = np.ones((which.size, self.n), dtype=bool)
        owners = np.repeat(np.arange(which.size), self.folds.sizes[which])
        masks[owners, self.folds.members[self.folds.entries(which)]] = False
        return masks

    @cached_property
    def n_kept(self) -> FloatArray:
        """Number of rows that remain in each fold, (g, 1)."""
        return (self.n - self.folds.sizes[:, None]).astype(np.float64)

    def left_out_sums(self, A: FloatArray) -> FloatArray:
        """Sum the left-out rows of A in each fold, (g, p)."""
        sums = np.zeros((len(self), A.shape[1]))
        some = self.folds.sizes > 0
        if self.folds.sizes.max(initial=0) == 1:
            sums[some] = A[self.folds.members]
        elif some.any():
            begin = self.folds.begin[:-1][some]
            sums[some] = np.add.reduceat(A[self.folds.members], begin, axis=0)
        return sums

    def count_clone(self, step: Any, k: int) -> None:
        """Count a fit of a clone, unless the fold is the fit on all rows."""
        if self.folds[k].size:
            self.clones[type(step).__name__] += 1

    def doubt(self, mask: BoolArray) -> None:
        """Mark folds in which rounding decides about a column, by a mask (g, p)."""
        self.in_doubt.update(np.flatnonzero(mask.any(axis=1)).tolist())

    def describe(self, k: int) -> str:
        """Name a fold in a message."""
        rows = self.folds[k]
        if rows.size == 0:
            return "on all rows"
        names = ", ".join(str(row) for row in rows[:5]) + " …" * (rows.size > 5)
        return f"in the fold that leaves out row{'s' * (rows.size > 1)} {names}"


class Source:
    """Columns with missing entries, filled by one value per fold and column.

    Without ``fill``, statistics are those of the observed entries.

    Parameters
    ----------
    values : ndarray of shape (n, p)
        The columns; NaN where an entry is missing.
    rows : FoldRows
        The folds.
    fill : ndarray of shape (g, p), optional
        Values of the missing entries. Finite in all columns.
    """

    def __init__(
        self, values: FloatArray, rows: FoldRows, fill: FloatArray | None = None
    ) -> None:
        self.values, self.rows, self.fill = values, rows, fill

    def filled(self, fill: FloatArray) -> Source:
        """Fill the missing entries."""
        source = Source(self.values, self.rows, fill)
        for name in ("missing", "extremes", "counts", "ordered_values"):
            if name in self.__dict__:
                source.__dict__[name] = self.__dict__[name]
        return source

    def take(self, columns: IntArray) -> Source:
        """Return some of the columns, with their moments if they are known."""
        fill = None if self.fill is None else self.fill[:, columns]
        source = Source(np.take(self.values, columns, axis=1), self.rows, fill)
        if "moments" in self.__dict__:
            mean, variance = (np.take(m, columns, axis=1) for m in self.moments)
            source.moments = mean, variance
        return source

    def blocks(self) -> Iterator[slice]:
        """Cut the columns into blocks that bound the temporary arrays."""
        n, p = self.values.shape
        width = max(1, BLOCK // (n + len(self.rows)))
        return (slice(k, k + width) for k in range(0, p, width))

    def by_blocks(self, statistic: Callable[[slice], tuple[FloatArray, ...]]) -> Any:
        """Return the arrays (g, p) of a statistic that is computed block by block."""
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = [statistic(columns) for columns in self.blocks()]
        return tuple(np.concatenate(part, axis=1) for part in zip(*parts, strict=True))

    @cached_property
    def missing(self) -> BoolArray | None:
        """Mask of the missing entries, None if there are none."""
        mask = np.isnan(self.values)
        return mask if mask.any() else None

    @property
    def complete(self) -> bool:
        """Whether no entry is missing, or all are filled."""
        return self.missing is None or self.fill is not None

    @cached_property
    def extremes(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest observed value of each column over all rows."""
        if self.missing is None:
            return self.values.min(axis=0), self.values.max(axis=0)
        return np.fmin.reduce(self.values), np.fmax.reduce(self.values)

    @cached_property
    def counts(self) -> FloatArray:
        """Observed entries in each fold, (g, p), or (g, 1) if none is missing."""
        if self.missing is None:
            return self.rows.n_kept
        observed = (~self.missing).astype(np.float64)
        return observed.sum(axis=0) - self.rows.left_out_sums(observed)

    @property
    def sizes(self) -> FloatArray:
        """Number of entries of each column in each fold, (g, p) or (g, 1)."""
        return self.counts if self.fill is None else self.rows.n_kept

    @property
    def lacking(self) -> FloatArray:
        """Filled entries of each column in each fold, (g, p) or (g, 1)."""
        return self.rows.n_kept - self.counts

    def deviations(self, columns: slice) -> tuple[FloatArray, FloatArray]:
        """Return values minus a centre, 0 if missing, and the centre.

        The centre is close to the mean, and equal to the value of a constant column.
        """
        low, high = (extreme[columns] for extreme in self.extremes)
        values = self.values[:, columns]
        if self.missing is None:
            centre = np.where(low == high, low, values.mean(axis=0))
            return values - centre, centre
        gone = self.missing[:, columns]
        total = np.where(gone, 0.0, values).sum(axis=0)
        centre = total / np.maximum(1, (~gone).sum(axis=0))
        centre = np.where(low == high, low, centre)
        return np.where(gone, 0.0, values - centre), centre

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each column in each fold, (g, p)."""
        if self.missing is not None:
            return self.by_blocks(self._moments)
        folds, (low, high) = self.rows.folds, self.extremes
        centre = np.where(low == high, low, self.values.mean(axis=0))
        mean, variance = np.empty((2, len(folds), self.values.shape[1]))
        total, cancelled = fold_moments(
            self.values, centre, folds.members, folds.begin, CANCELLED, mean, variance
        )
        if cancelled:
            which = np.nonzero(variance * self.rows.n_kept < CANCELLED * total)
            self._recompute(0, which, mean, variance)
        return mean, variance

    def _moments(self, columns: slice) -> tuple[FloatArray, FloatArray]:
        """Return the same for columns with missing entries."""
        d, centre = self.deviations(columns)
        squares = d * d
        first = d.sum(axis=0) - self.rows.left_out_sums(d)
        total = squares.sum(axis=0)
        second = total - self.rows.left_out_sums(squares)
        size = np.broadcast_to(self.sizes, (len(self.rows), self.values.shape[1]))
        size = size[:, columns]
        if self.fill is not None:
            lacking = self.lacking[:, columns]
            change = self.fill[:, columns] - centre
            first += lacking * change
            second += lacking * change**2
            total = total + lacking * change**2
        mean = first / size
        variance = np.maximum(second / size - mean**2, 0.0)
        mean += centre
        which = np.nonzero(variance * size < CANCELLED * total)
        self._recompute(columns.start, which, mean, variance)
        return mean, variance

    def _recompute(
        self,
        start: int,
        which: tuple[IntArray, ...],
        mean: FloatArray,
        variance: FloatArray,
    ) -> None:
        """Compute some moments from the columns, where the difference cancelled."""
        width = max(1, BLOCK // self.rows.n)
        for at in range(0, which[0].size, width):
            folds, columns = (index[at : at + width] for index in which)
            V = np.take(self.values, columns + start, axis=1).T
            kept = self.rows.kept_masks(folds)
            if self.fill is not None:
                fill = self.fill[folds, columns + start][:, None]
                V = np.where(np.isnan(V), fill, V)
            kept &= ~np.isnan(V)
            size = kept.sum(axis=1)
            m = np.where(kept, V, 0.0).sum(axis=1) / size
            d = np.where(kept, V - m[:, None], 0.0)
            # d.sum() is 0 but for rounding, as in scikit-learn.
            v = ((d * d).sum(axis=1) - d.sum(axis=1) ** 2 / size) / size
            mean[folds, columns], variance[folds, columns] = m, v

    @cached_property
    def ordered_values(self) -> FloatArray:
        """The observed values of each column in order, then NaN, (p, n)."""
        return np.sort(np.ascontiguousarray(self.values.T), axis=1)

    def order_statistics(self, columns: slice, index: NDArray[Any]) -> FloatArray:
        """Return the entry at a position of each column in order, (g, p_block).

        ``index`` is (g, p_block) or (g, 1). With L entries filled, the entry at i is
        the fill, but at least the observed one at i - L and at most that at i.
        """
        shape = (len(self.rows), self.values[:1, columns].shape[1])
        places = np.broadcast_to(index, shape).astype(np.intp)
        if self.fill is None or self.missing is None:
            return self._observed_order(columns, places)
        counts, lacking = (
            np.broadcast_to(a, (shape[0], self.values.shape[1]))[:, columns]
            for a in (self.counts, self.lacking)
        )
        above = self._observed_order(columns, places)
        above[places >= counts] = np.inf
        shifted = places - lacking.astype(np.intp)
        below = self._observed_order(columns, np.maximum(shifted, 0))
        below[shifted < 0] = -np.inf
        return np.maximum(below, np.minimum(self.fill[:, columns], above))

    def _observed_order(self, columns: slice, index: IntArray) -> FloatArray:
        """Return the same for the observed entries.

        Removing v moves the entry at i to i + 1 in the order of all rows if v is not
        larger; several are removed from the smallest to the largest.
        """
        ordered = self.ordered_values[columns]
        index = np.minimum(index, self.rows.n - 1)
        at = np.arange(ordered.shape[0])
        for removed in self._removed(columns):
            index += removed <= ordered[at, index]
            np.minimum(index, self.rows.n - 1, out=index)
        return ordered[at, index]

    def _removed(self, columns: slice) -> Iterator[FloatArray]:
        """Yield the smallest left-out value of each fold, and so on."""
        folds = self.rows.folds
        largest = int(folds.sizes.max(initial=0))
        values = self.values[:, columns]
        removed = np.full((len(folds), largest, values.shape[1]), np.nan)
        places = np.arange(folds.members.size) - np.repeat(
            folds.begin[:-1], folds.sizes
        )
        owners = np.repeat(np.arange(len(folds)), folds.sizes)
        removed[owners, places] = values[folds.members]
        return iter(np.sort(removed, axis=1).swapaxes(0, 1))

    def quantile(self, columns: slice, q: float) -> FloatArray:
        """Linearly interpolated quantile of each column in each fold, as in NumPy."""
        size = np.broadcast_to(self.sizes, (len(self.rows), self.values.shape[1]))
        size = size[:, columns]
        position = (size - 1) * q
        below = np.floor(position)
        t = position - below
        low = self.order_statistics(columns, below)
        high = self.order_statistics(columns, np.minimum(below + 1, size - 1))
        step = high - low
        return np.where(t < 0.5, low + step * t, high - step * (1 - t))

    def class_sums(
        self, columns: slice
    ) -> tuple[list[tuple[FloatArray, FloatArray]], FloatArray]:
        """Return size (g, 1) and sum (g, p) of each class about a centre; the centre.

        The entries are filled.
        """
        d, centre = self.deviations(columns)
        found = []
        for label in np.unique(self.rows.y):
            own = (self.rows.y == label)[:, None].astype(np.float64)
            size = own.sum() - self.rows.left_out_sums(own)
            part = d * own
            sums = part.sum(axis=0) - self.rows.left_out_sums(part)
            if self.fill is not None and self.missing is not None:
                gone = self.missing[:, columns] * own
                lacking = gone.sum(axis=0) - self.rows.left_out_sums(gone)
                sums += lacking * (self.fill[:, columns] - centre)
            found.append((size, sums))
        return found, centre

    def products(self, columns: slice) -> FloatArray:
        """Return sum (x - centre) (y - mean(y)) over each fold, (g, p_block)."""
        rows = self.rows
        y = np.asarray(rows.y, dtype=np.float64)[:, None]
        y = y - y.mean()
        d, centre = self.deviations(columns)
        mean_y = (y.sum() - rows.left_out_sums(y)) / rows.n_kept
        sums = d.sum(axis=0) - rows.left_out_sums(d)
        products = (d * y).sum(axis=0) - rows.left_out_sums(d * y)
        if self.fill is not None and self.missing is not None:
            gone = self.missing[:, columns].astype(np.float64)
            change = self.fill[:, columns] - centre
            sums += self.lacking[:, columns] * change
            gone_y = (gone * y).sum(axis=0) - rows.left_out_sums(gone * y)
            products += gone_y * change
        return products - sums * mean_y


def most_frequent(x: FloatArray, rows: FoldRows) -> FloatArray:
    """Most frequent observed value of one column in each fold, the smallest if tied.

    Leaving out s rows changes the counts of at most s values, so one of the s + 1 most
    frequent ones wins.
    """
    observed = ~np.isnan(x)
    values, codes, counts = np.unique(
        x[observed], return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    order = order[: rows.folds.sizes.max(initial=0) + 1]
    rank = np.full(values.size + 1, order.size)  # the last one is a missing entry
    rank[order] = np.arange(order.size)
    code = np.full(x.size, values.size)
    code[observed] = codes
    g, owners = len(rows), np.repeat(np.arange(len(rows)), rows.folds.sizes)
    removed = np.zeros((g, order.size + 1))
    np.add.at(removed, (owners, rank[code[rows.folds.members]]), 1.0)
    left = counts[order] - removed[:, :-1]
    winners = left == left.max(axis=1, keepdims=True, initial=0.0)
    return np.where(winners, values[order], np.inf).min(axis=1, initial=np.inf)


def variance_of(Z: Any) -> float:
    """Variance of all entries, as scikit-learn computes it for gamma="scale"."""
    if sparse.issparse(Z):
        return float(Z.multiply(Z).mean() - Z.mean() ** 2)
    return float(Z.var())


def variances_of_rest(X: Any, rows: FoldRows) -> FloatArray:
    """Variance of all entries of the kept rows of X in each fold, (g,)."""
    if sparse.issparse(X):
        sums, squares = X.sum(axis=1), X.multiply(X).sum(axis=1)
    else:
        d = X - X.mean()
        sums, squares = d.sum(axis=1), np.einsum("ij,ij->i", d, d)
    moments = np.column_stack([np.ravel(sums), np.ravel(squares)])
    first, second = (moments.sum(axis=0) - rows.left_out_sums(moments)).T
    size = rows.n_kept[:, 0] * X.shape[1]
    variances = second / size - (first / size) ** 2
    for k in np.flatnonzero(variances * size < CANCELLED * moments[:, 1].sum()):
        variances[k] = variance_of(X[rows.kept(int(k))])
    return variances
