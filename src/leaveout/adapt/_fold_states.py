# SPDX-License-Identifier: BSD-3-Clause
"""Features of all folds, as known steps pass them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.adapt._columns import EPS, FoldRows, Source
from leaveout.adapt._pipeline import take_columns

# Rounding of a column by a larger share of its spread is that of scikit-learn.
ACCURACY = 1e-9
# Squares of larger numbers would overflow.
LARGEST = 1e150


class InDoubtError(Exception):
    """Rounding decides what a step does in a fold: scikit-learn has to fit it."""


class State:
    """Features of all rows in every fold after some steps.

    Attributes
    ----------
    rows : FoldRows
        The folds.
    fitted_in_folds : bool
        Whether a step is fitted, in each fold, when its features are computed.
    own_variances : ndarray of shape (g,), optional
        Variance of all entries of the kept rows, NaN where that is not known. It may be
        known after the features are computed.
    """

    fitted_in_folds = False
    own_variances: FloatArray | None = None

    def features(self, k: int) -> Any:
        """Return the features of all rows in fold k, (n, p_k)."""
        raise NotImplementedError

    def factors(self) -> FloatArray | None:
        """Return the factor of each column relative to the last fold, if exact."""
        return None

    def unshifted(self, k: int) -> tuple[FloatArray, Any, Any] | None:
        """Return columns of fold k, their fill and factor, if they are the features.

        They may differ from the features by a shift.
        """
        return None

    def key(self, k: int) -> Any:
        """Return a key of fold k; folds with equal keys have equal features."""
        return k


class Table(State):
    """Features that are the same in every fold, in the container they came in."""

    def __init__(self, X: Any, rows: FoldRows) -> None:
        self.X, self.rows = X, rows

    def features(self, k: int) -> Any:
        """Return the features of all rows."""
        return self.X

    def key(self, k: int) -> Any:
        """Return the same key for all folds."""
        return None

    def take(self, columns: IntArray) -> Table:
        """Return some of the columns."""
        return Table(take_columns(self.X, columns), self.rows)

    @cached_property
    def numbers(self) -> Columns | None:
        """The features as numeric columns, None if they are not float64 or integers."""
        X = self.X
        if hasattr(X, "to_numpy") and hasattr(X, "columns"):
            X = X.to_numpy()
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "biuf":
            return None
        if X.dtype.kind == "f" and X.dtype != np.float64:
            return None  # scikit-learn's steps would compute in single precision
        values = np.ascontiguousarray(X, dtype=np.float64)
        if not (np.fmax.reduce(np.abs(values), axis=None, initial=0) < LARGEST):
            return None
        narrow = X.dtype.kind != "f" and X.dtype.itemsize <= 4
        return Columns(Source(values, self.rows), narrow=narrow)

    @cached_property
    def codes(self) -> Columns | None:
        """Columns of text, numbered in alphabetical order; None if they are not."""
        X = self.X
        if hasattr(X, "iloc"):
            X = np.asarray(X.astype(object))
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype != object:
            return None
        values, categories = np.empty(X.shape), []
        for column in range(X.shape[1]):
            x = X[:, column]
            missing = np.array([type(v) is float and v != v for v in x], dtype=bool)
            if not all(type(v) is str for v in x[~missing]):
                return None
            names, numbers = np.unique(x[~missing], return_inverse=True)
            values[missing, column], values[~missing, column] = np.nan, numbers
            categories.append(names)
        return Columns(Source(values, self.rows), categories=tuple(categories))


@dataclass(frozen=True, eq=False)
class Columns(State):
    """Columns that each fold fills, shifts, scales and selects.

    In fold k the features are ``(filled - shift[k]) * factor[k]``, columns mask[k].

    Parameters
    ----------
    source : Source
        The columns before shift and factor.
    shift, factor : ndarray of shape (g, p), optional
        0 and 1 if None.
    mask : ndarray of bool, shape (g, p), optional
        Columns of each fold; all if None.
    narrow : bool
        Whether the values are integers of at most 4 bytes, for which f_classif uses
        single precision.
    categories : tuple of ndarray, optional
        What the numbers in each column stand for, if they are codes.
    """

    source: Source
    shift: FloatArray | None = None
    factor: FloatArray | None = None
    mask: BoolArray | None = None
    narrow: bool = False
    categories: tuple[NDArray[Any], ...] | None = None

    @property
    def rows(self) -> FoldRows:
        """The folds."""
        return self.source.rows

    @property
    def varies(self) -> bool:
        """Whether features differ between folds."""
        arrays = (self.source.fill, self.shift, self.factor, self.mask)
        return any(array is not None for array in arrays)

    @property
    def n_columns(self) -> int:
        """Number of columns, selected or not."""
        return self.source.values.shape[1]

    def _in_fold(self, k: int) -> tuple[FloatArray, Any, Any, Any]:
        """Return the columns of fold k, their fill, shift and factor, or None each."""
        values, arrays = self.source.values, (self.source.fill, self.shift, self.factor)
        fill, shift, factor = (None if a is None else a[k] for a in arrays)
        if self.mask is not None:
            columns = np.flatnonzero(self.mask[k])
            values = np.take(values, columns, axis=1)
            fill, shift, factor = (
                None if a is None else a[columns] for a in (fill, shift, factor)
            )
        return values, fill, shift, factor

    def unshifted(self, k: int) -> tuple[FloatArray, Any, Any] | None:
        """Return the columns of fold k, their fill and factor, or None each."""
        values, fill, _, factor = self._in_fold(k)
        return None if self.categories is not None else (values, fill, factor)

    def features(self, k: int) -> FloatArray:
        """Features of all rows in fold k, (n, p_k)."""
        values, fill, shift, factor = self._in_fold(k)
        if fill is not None and self.source.missing is not None:
            values = np.where(np.isnan(values), fill, values)
        if shift is not None:
            values = values - shift
        if factor is not None:
            out = None if values is self.source.values else values
            values = np.multiply(values, factor, out=out)
        if self.categories is not None:
            labels = [self.categories[j][x.astype(int)] for j, x in enumerate(values.T)]
            return np.array(labels, dtype=object).T
        return values

    def factors(self) -> FloatArray | None:
        """Return the factor of each column relative to the last fold, if exact."""
        fill, factor, mask = self.source.fill, self.factor, self.mask
        if any(a is not None and (a != a[-1]).any() for a in (fill, mask)):
            return None
        if factor is None:
            return None
        factor = factor if mask is None else factor[:, mask[-1]]
        return factor[:-1] / factor[-1]

    def key(self, k: int) -> Any:
        """Return the parameters of fold k as bytes."""
        arrays = (self.source.fill, self.shift, self.factor, self.mask)
        return tuple(None if a is None else a[k].tobytes() for a in arrays)

    def variances(self) -> FloatArray:
        """Variance of all entries of the kept rows in each fold, (g,)."""
        mean, variance = self.scaled_moments()
        if self.mask is None:
            within: FloatArray = variance.mean(axis=1)
            return within + mean.var(axis=1)
        weight = self.mask.astype(np.float64)
        total = np.broadcast_to(weight, mean.shape).sum(axis=1, keepdims=True)
        centre = (mean * weight).sum(axis=1, keepdims=True) / total
        spread = (variance + (mean - centre) ** 2) * weight
        return (spread.sum(axis=1, keepdims=True) / total)[:, 0]

    def scaled_moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the features in each fold, (g, p)."""
        mean, variance = self.source.moments
        if self.shift is not None:
            mean = mean - self.shift
        if self.factor is not None:
            mean, variance = mean * self.factor, variance * self.factor**2
        return mean, variance

    def scaled(self, values: FloatArray) -> FloatArray:
        """Apply shift and factor to values of the source, (g, p)."""
        if self.shift is not None:
            values = values - self.shift
        return values if self.factor is None else values * self.factor

    def rescale(self, shift: FloatArray | None, scale: FloatArray | None) -> Columns:
        """Subtract ``shift``, a value of the source, and divide by ``scale``.

        Of columns whose spread is tiny beside their mean, rounding decides.
        """
        mean, variance = self.source.moments
        largest = max(mean.max(), -mean.min())
        if not variance.min() > (EPS * largest / ACCURACY) ** 2:
            noise = (EPS * mean) ** 2
            least = 0.0 if self.varies else 1e-2 * noise
            self.rows.doubt((variance > least) & (variance < noise / ACCURACY**2))
        factor = self.factor
        if scale is not None:
            factor = (1.0 if factor is None else factor) / scale
        shift = self.shift if shift is None else shift
        return replace(self, shift=shift, factor=factor, narrow=False)

    def take(self, columns: IntArray) -> Columns:
        """Return some of the columns."""

        def taken(array: Any) -> Any:
            return None if array is None else np.take(array, columns, axis=1)

        return replace(
            self,
            source=self.source.take(columns),
            shift=taken(self.shift),
            factor=taken(self.factor),
            mask=taken(self.mask),
            categories=self.categories and tuple(self.categories[j] for j in columns),
        )

    def select(self, mask: BoolArray) -> Columns | None:
        """Select columns in each fold; None if a fold has none."""
        if self.mask is not None:
            mask = mask & self.mask
        if not mask.any(axis=1).all():
            return None
        union = np.flatnonzero(mask.any(axis=0))
        mask = np.take(mask, union, axis=1)
        state = self if union.size == self.n_columns else self.take(union)
        return replace(state, mask=None if mask.all() else mask)


class Joined(State):
    """Features of several states side by side."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts, self.rows = parts, parts[0].rows
        self.fitted_in_folds = any(part.fitted_in_folds for part in parts)

    def features(self, k: int) -> Any:
        """Features of all rows in fold k."""
        parts = [part.features(k) for part in self.parts]
        if any(map(sparse.issparse, parts)):
            return sparse.hstack(parts, format="csr")
        return np.hstack(parts)

    def key(self, k: int) -> Any:
        """Return the keys of the parts."""
        return tuple(part.key(k) for part in self.parts)


class Mapped(State):
    """Features after a function that transforms one row at a time."""

    def __init__(self, parent: Any, function: Callable[[Any], Any]) -> None:
        self.parent, self.rows, self.function = parent, parent.rows, function

    def features(self, k: int) -> Any:
        """Features of all rows in fold k."""
        return self.function(self.parent.features(k))

    def key(self, k: int) -> Any:
        """Return the key of the input."""
        return self.parent.key(k)


def join_columns(parts: Sequence[Columns]) -> Columns | None:
    """Put columns side by side; None if only some of them are filled."""
    if len(parts) == 1:
        return parts[0]
    rows = parts[0].rows
    if not all(part.source.complete for part in parts):
        return None

    def joined(arrays: list[Any], default: float | bool) -> Any:
        if all(array is None for array in arrays):
            return None
        shapes = [(len(rows), part.n_columns) for part in parts]
        filled = [
            np.full(shape, default) if array is None else array
            for shape, array in zip(shapes, arrays, strict=True)
        ]
        return np.concatenate(filled, axis=1)

    values = np.concatenate([part.source.values for part in parts], axis=1)
    if any(part.categories is not None for part in parts):
        return None
    return Columns(
        Source(values, rows, joined([part.source.fill for part in parts], 0.0)),
        joined([part.shift for part in parts], 0.0),
        joined([part.factor for part in parts], 1.0),
        joined([part.mask for part in parts], True),
        any(part.narrow for part in parts),
    )
