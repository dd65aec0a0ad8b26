# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's transformers of numeric columns, for all folds in closed form.

Each function returns the state after a step, or None for parameters or columns that it
does not handle; the step is then fitted in each fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import (
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    f_classif,
    f_regression,
)
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.adapt._columns import CANCELLED, EPS, FoldRows, Source, most_frequent

# scikit-learn replaces NaN scores by the smallest number.
NO_SCORE = float(np.finfo(np.float64).min)
# Scores or variances that differ less, relatively, are recomputed by scikit-learn.
NEAR = 1e-9
# Sums of squares of integers up to this are exact, and F of a constant column NaN.
EXACT = 2.0**20
# One-hot columns are made only if they have at most this many entries: 1 GB.
MOST_ENTRIES = 2**27
# The components of PCA must differ from the others by these shares of the largest
# variance, in an eigendecomposition and in a singular value decomposition.
GAP, EQUAL = 1e-4, 1e-14


class FoldError(Exception):
    """A step cannot be fitted, or its result not be used, in a fold."""

    def __init__(self, k: int, reason: str) -> None:
        super().__init__(reason)
        self.k = k


@dataclass(frozen=True, eq=False)
class Columns:
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
    history : tuple of estimators, optional
        Steps that lead from the values of the source to the features, column by
        column; None if they are not known.
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
    history: tuple[Any, ...] | None = ()
    narrow: bool = False
    categories: tuple[NDArray[Any], ...] | None = None

    @property
    def rows(self) -> FoldRows:
        """The folds."""
        return self.source.rows

    fitted_in_folds = False

    @property
    def varies(self) -> bool:
        """Whether features differ between folds."""
        arrays = (self.source.fill, self.shift, self.factor, self.mask)
        return any(array is not None for array in arrays)

    @property
    def n_columns(self) -> int:
        """Number of columns, selected or not."""
        return self.source.values.shape[1]

    def features(self, k: int) -> FloatArray:
        """Features of all rows in fold k, (n, p_k)."""
        values, fill = self.source.values, self.source.fill
        shift, factor, fill = (
            None if a is None else a[k] for a in (self.shift, self.factor, fill)
        )
        if self.mask is not None:
            columns = np.flatnonzero(self.mask[k])
            values = np.take(values, columns, axis=1)
            shift, factor, fill = (
                None if a is None else a[columns] for a in (shift, factor, fill)
            )
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

    def affine(self, k: int) -> tuple[FloatArray, FloatArray] | None:
        """Return shift and factor of fold k relative to the last fold, if exact."""
        base, p = len(self.rows) - 1, self.n_columns
        fill = self.source.fill
        if fill is not None and not np.array_equal(fill[k], fill[base]):
            return None
        shift, factor = np.zeros(p), np.ones(p)
        if self.factor is not None:
            factor = self.factor[k] / self.factor[base]
        if self.shift is not None:
            unit = 1.0 if self.factor is None else self.factor[base]
            shift = (self.shift[k] - self.shift[base]) * unit
        if self.mask is not None:
            if (self.mask[k] & ~self.mask[base]).any():
                return None
            factor = np.where(self.mask[k], factor, 0.0)[self.mask[base]]
            shift = shift[self.mask[base]]
        return shift, factor

    def key(self, k: int) -> Any:
        """Return the parameters of fold k as bytes."""
        arrays = (self.source.fill, self.shift, self.factor, self.mask)
        return tuple(None if a is None else a[k].tobytes() for a in arrays)

    def variances(self) -> FloatArray:
        """Variance of all entries of the kept rows in each fold, (g,)."""
        mean, variance = self.scaled_moments()
        weight = np.ones(self.n_columns)
        weight = weight if self.mask is None else self.mask.astype(np.float64)
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

    def rescale(
        self, step: Any, shift: FloatArray | None, scale: FloatArray | None
    ) -> Columns:
        """Subtract ``shift``, a value of the source, and divide by ``scale``."""
        factor = self.factor
        if scale is not None:
            factor = (1.0 if factor is None else factor) / scale
        history = None if self.history is None else (*self.history, step)
        shift = self.shift if shift is None else shift
        return replace(self, shift=shift, factor=factor, history=history, narrow=False)

    def take(self, columns: IntArray) -> Columns:
        """Return some of the columns."""
        shift, factor, mask = (
            None if a is None else np.take(a, columns, axis=1)
            for a in (self.shift, self.factor, self.mask)
        )
        source = self.source.take(columns)
        categories = self.categories and tuple(self.categories[j] for j in columns)
        return replace(
            self,
            source=source,
            shift=shift,
            factor=factor,
            mask=mask,
            categories=categories,
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
        () if all(part.history == () for part in parts) else None,
        any(part.narrow for part in parts),
    )


class Clipped:
    """Columns that are clipped in every fold: only left-out rows change."""

    fitted_in_folds = False

    def __init__(self, parent: Columns, low: float, high: float) -> None:
        self.parent, self.rows, self.low, self.high = parent, parent.rows, low, high

    def features(self, k: int) -> FloatArray:
        """Features of all rows in fold k."""
        return np.clip(self.parent.features(k), self.low, self.high)

    def affine(self, k: int) -> None:
        """Return None: left-out rows may be clipped."""

    def key(self, k: int) -> Any:
        """Return the parameters of fold k."""
        return self.parent.key(k)


def _is_flag(*values: Any) -> bool:
    return all(type(value) is bool for value in values)


def _is_number(*values: Any) -> bool:
    return all(isinstance(v, Real) and not isinstance(v, bool) for v in values)


def _nonzero(scale: FloatArray) -> FloatArray:
    """Replace scales of constant columns by 1, as scikit-learn does."""
    return np.where(scale < 10 * EPS, 1.0, scale)


def _ranges(state: Columns) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of the source in each fold, (g, p)."""
    source = state.source

    def extremes(columns: slice) -> tuple[FloatArray, FloatArray]:
        size = source.sizes
        last = (size if size.shape[1] == 1 else size[:, columns]) - 1
        first = np.zeros((1, 1))
        statistics = source.order_statistics
        return statistics(columns, first), statistics(columns, last)

    return source.by_blocks(extremes)


def standard_scaler(step: Any, state: Columns) -> Columns | None:
    """Subtract the mean, divide by the standard deviation."""
    if not _is_flag(step.with_mean, step.with_std):
        return None
    source, scale = state.source, None
    if step.with_std:
        mean, variance = state.scaled_moments()
        size = source.sizes
        constant = variance <= size * EPS * variance + (size * mean * EPS) ** 2
        scale = np.where(constant, 1.0, np.sqrt(variance))
    shift = source.moments[0] if step.with_mean else None
    return state.rescale(step, shift, scale)


def min_max_scaler(step: Any, state: Columns) -> Columns | Clipped | None:
    """Map the range of the kept rows to ``feature_range``."""
    bounds = step.feature_range
    if not (isinstance(bounds, tuple) and len(bounds) == 2 and _is_number(*bounds)):
        return None
    low, high = map(float, bounds)
    if not low < high or not _is_flag(step.clip):
        return None
    smallest, largest = _ranges(state)
    scale = _nonzero(state.scaled(largest) - state.scaled(smallest)) / (high - low)
    unit = scale if state.factor is None else scale / state.factor
    scaled = state.rescale(step, smallest - low * unit, scale)
    return Clipped(scaled, low, high) if step.clip else scaled


def max_abs_scaler(step: Any, state: Columns) -> Columns | Clipped | None:
    """Divide by the largest absolute value."""
    if not _is_flag(getattr(step, "clip", False)):
        return None
    largest = np.maximum(*(np.abs(state.scaled(a)) for a in _ranges(state)))
    scaled = state.rescale(step, None, _nonzero(largest))
    return Clipped(scaled, -1.0, 1.0) if getattr(step, "clip", False) else scaled


def robust_scaler(step: Any, state: Columns) -> Columns | None:
    """Subtract the median, divide by a range of quantiles."""
    flags = (step.with_centering, step.with_scaling, step.unit_variance)
    bounds = step.quantile_range
    if not (isinstance(bounds, tuple) and len(bounds) == 2 and _is_number(*bounds)):
        return None
    low, high = (bound / 100 for bound in bounds)
    if not _is_flag(*flags) or not 0 <= low < high <= 1:
        return None
    if step.unit_variance and (low == 0 or high == 1):
        return None
    source, median, scale = state.source, None, None
    if step.with_centering:
        (median,) = source.by_blocks(lambda columns: (source.quantile(columns, 0.5),))
    if step.with_scaling:
        bottom, top = source.by_blocks(
            lambda columns: tuple(source.quantile(columns, q) for q in (low, high))
        )
        scale = _nonzero(state.scaled(top) - state.scaled(bottom))
        if step.unit_variance:
            scale /= ndtri(high) - ndtri(low)
    return state.rescale(step, median, scale)


def simple_imputer(step: Any, state: Columns) -> Columns | None:
    """Fill missing entries by a statistic of the observed ones."""
    source, marker = state.source, step.missing_values
    flags = _is_flag(step.add_indicator, step.keep_empty_features)
    strategies = ("mean", "median", "most_frequent", "constant")
    if not (flags and isinstance(marker, float) and np.isnan(marker)):
        return None
    if not (isinstance(step.strategy, str) and step.strategy in strategies):
        return None
    if state.categories is not None and step.strategy != "most_frequent":
        return _fill_text(step, state) if step.strategy == "constant" else None
    constant = 0.0 if step.fill_value is None else step.fill_value
    if step.strategy == "constant" and not _is_number(constant):
        return None
    if source.complete:
        as_float = step.strategy in ("mean", "median")
        return replace(state, narrow=state.narrow and not as_float)
    empty = source.counts == 0
    if state.mask is not None or (empty.any() and state.factor is not None):
        return None
    fill = _fills(step.strategy, float(constant), state)
    if step.strategy != "constant":
        fill = np.where(empty, 0.0, fill)
    history = None if state.history is None else (*state.history, step)
    filled = replace(state, source=source.filled(fill), history=history)
    if empty.any() and not step.keep_empty_features:
        selected = filled.select(~empty)
        if selected is None:
            return None
        filled = selected
    if not step.add_indicator:
        return filled
    indicators = Source(source.missing.astype(np.float64), source.rows)
    marks = Columns(indicators).select(source.lacking > 0)
    # A fold without missing entries has no indicator.
    return None if marks is None else join_columns([filled, marks])


def _fills(strategy: str, constant: float, state: Columns) -> FloatArray:
    """Values of the missing entries, in units of the source, (g, p)."""
    source, shape = state.source, (len(state.rows), state.n_columns)
    if strategy == "mean":
        return source.moments[0]
    if strategy == "median":
        return source.by_blocks(lambda part: (source.quantile(part, 0.5),))[0]
    if strategy == "constant":
        fill = np.full(shape, constant)
        fill = fill if state.factor is None else fill / state.factor
        return fill if state.shift is None else fill + state.shift
    fill = np.zeros(shape)
    for column in np.flatnonzero(source.missing.any(axis=0)):
        fill[:, column] = most_frequent(source.values[:, column], source.rows)
    return fill


def _fill_text(step: Any, state: Columns) -> Columns | None:
    """Fill missing text by a constant, which becomes a category."""
    text = "missing_value" if step.fill_value is None else step.fill_value
    source = state.source
    if type(text) is not str or step.add_indicator or (source.counts == 0).any():
        return None
    values, categories = np.empty_like(source.values), []
    for x, out, old in zip(source.values.T, values.T, state.categories, strict=True):
        names = np.unique([*old, text]).astype(object) if np.isnan(x).any() else old
        code = np.append(np.searchsorted(names, old), np.searchsorted(names, text))
        out[:] = code[np.where(np.isnan(x), old.size, x).astype(int)]
        categories.append(names)
    return Columns(Source(values, state.rows), categories=tuple(categories))


def variance_threshold(step: Any, state: Columns) -> Columns | None:
    """Select the columns whose variance is above the threshold."""
    threshold = step.threshold
    if not _is_number(threshold) or threshold < 0 or not state.source.complete:
        return None
    if threshold == 0:  # scikit-learn looks at the range as well
        smallest, largest = _ranges(state)
        return state.select(largest > smallest)
    mean, variance = state.scaled_moments()
    mask = variance > threshold
    noise = NEAR * threshold + (state.rows.n_kept * EPS * mean) ** 2
    near = np.abs(variance - threshold) <= noise
    for k in np.flatnonzero(near.any(axis=1)):
        columns = np.flatnonzero(near[k])
        Z = exact_columns(state, k, columns)
        mask[k, columns] = np.nanvar(Z, axis=0) > threshold
    return state.select(mask)


def exact_columns(state: Columns, k: int, columns: IntArray) -> FloatArray:
    """Return some columns of the kept rows of fold k with scikit-learn's rounding."""
    kept = state.rows.kept(k)
    if state.history is None:
        full = state if state.mask is None else replace(state, mask=None)
        return full.take(columns).features(k)[kept]
    # At least two columns: those of a single one are summed in another order.
    pair = columns if columns.size > 1 else np.repeat(columns, 2)
    Z = np.ascontiguousarray(state.source.values[np.ix_(kept, pair)])
    for step in state.history:
        Z = clone(step).fit_transform(Z)
    return Z[:, : columns.size]


def select_best(step: Any, state: Columns) -> Columns | None:
    """Select the columns with the highest F; ties as scikit-learn decides them.

    Where scores at the cut agree up to rounding, scikit-learn computes them for these
    columns of the fold and selects.
    """
    scores = SCORES.get(step.score_func)
    p, mask = state.n_columns, state.mask
    if scores is None or state.narrow or not state.source.complete:
        return None
    count = _n_selected(step, p)
    if mask is not None and (type(step) is SelectPercentile or not count):
        return None
    if count is None or count >= p:
        return None if count is None else state
    if mask is not None and mask.sum(axis=1).min() < count:
        return None
    if step.score_func is f_regression and state.rows.y.dtype.kind not in "iuf":
        return None
    source = state.source
    with np.errstate(all="ignore"):
        F, noise = source.by_blocks(lambda columns: scores(state, columns))
    F[~np.isfinite(F)], noise[~np.isfinite(F)] = 0.0, np.inf
    if mask is not None:
        F[~mask], noise[~mask] = -np.inf, 0.0
    best = np.argpartition(F, p - count, axis=1)[:, p - count :]
    mask = np.zeros(F.shape, dtype=bool)
    np.put_along_axis(mask, best, True, axis=1)
    least = np.where(mask, F - noise, np.inf).min(axis=1)
    most = np.where(mask, -np.inf, F + noise).max(axis=1)
    for k in np.flatnonzero(~(least > most)):
        near = np.where(
            mask[k], F[k] - noise[k] <= most[k], F[k] + noise[k] >= least[k]
        )
        mask[k] = _selected_by(step, state, k, F[k], np.flatnonzero(near))
    return state.select(mask)


def _n_selected(step: Any, p: int) -> int | None:
    """Return the number of columns that are selected if no scores are equal."""
    if type(step) is SelectKBest:
        if step.k == "all":
            return p
        good = isinstance(step.k, Integral) and not isinstance(step.k, bool)
        return int(step.k) if good and step.k >= 1 else None
    if not _is_number(step.percentile) or not 0 < step.percentile <= 100:
        return None
    ranked = clone(step)
    ranked.scores_ = np.arange(p, dtype=np.float64)
    return int(ranked.get_support().sum()) or None


def _selected_by(
    step: Any, state: Columns, k: int, F: FloatArray, near: IntArray
) -> BoolArray:
    """Let scikit-learn select from the scores of a fold, those of ``near`` its own.

    Those of f_classif do not depend on the other columns, nor on the position.
    """
    alone = step.score_func is f_classif
    if not alone:
        near = np.flatnonzero(np.isfinite(F))
    values = np.take(state.source.values, near, axis=1)
    scores = F.copy()
    if alone and (values == values[:, :1]).all() and np.isfinite(F[near]).all():
        scores[near] = F[near[0]]  # equal columns: any common score will do
    else:
        Z = exact_columns(state, k, near)
        with np.errstate(all="ignore"):
            scores[near] = step.score_func(Z, state.rows.y[state.rows.kept(k)])[0]
    chosen = clone(step)
    chosen.scores_ = scores
    return chosen.get_support()


def _noise(state: Columns, columns: slice) -> FloatArray:
    """Bound the rounding error of scikit-learn's sums of squares, by block (g, p)."""
    size = state.rows.n_kept
    mean, variance = (moment[:, columns] for moment in state.source.moments)
    if state.shift is not None:
        mean = mean - state.shift[:, columns]
    return 2 * size * EPS * size * (variance + mean**2)


def _constant(state: Columns, columns: slice) -> BoolArray:
    """Whether a column is a constant integer in a fold, so that sums are exact."""
    mean, variance = (moment[:, columns] for moment in state.source.moments)
    return (variance == 0) & (mean == np.rint(mean)) & (np.abs(mean) < EXACT)


def _f_classif(state: Columns, columns: slice) -> tuple[FloatArray, FloatArray]:
    """F statistics of a block in each fold, and a bound on their rounding error."""
    source, size = state.source, state.rows.n_kept
    mean, variance = (moment[:, columns] for moment in source.moments)
    classes, centre = source.class_sums(columns)
    between = -size * (mean - centre) ** 2
    n_classes = np.zeros_like(size)
    for n_members, sums in classes:
        between += np.where(n_members > 0, sums**2 / n_members, 0.0)
        n_classes += n_members > 0
    within = size * variance - between
    degrees = (size - n_classes) / (n_classes - 1)
    F = degrees * between / within
    relative = _noise(state, columns) / within
    unsure = ~((relative >= 0) & (relative < 0.1))
    noise = np.where(unsure, np.inf, NEAR * F + relative * (degrees + F))
    constant = _constant(state, columns)
    return np.where(constant, NO_SCORE, F), np.where(constant, 0.0, noise)


def _f_regression(state: Columns, columns: slice) -> tuple[FloatArray, FloatArray]:
    """F statistics of a linear regression in each fold, and a bound on the error."""
    source, rows = state.source, state.rows
    variance = source.moments[1][:, columns]
    target = Source(np.asarray(rows.y, dtype=np.float64)[:, None], rows)
    total = rows.n_kept * variance
    squared = source.products(columns) ** 2 / (total * rows.n_kept * target.moments[1])
    rest = np.maximum(1 - squared, 0.0)
    F = squared / rest * (rows.n_kept - 2)
    noise = _noise(state, columns) / total
    relative = noise + 4 * np.sqrt(noise * EPS * rows.n_kept)
    unsure = ~(relative < 0.1 * rest)
    noise = NEAR * F + (rows.n_kept - 2) * relative / rest**2
    constant = _constant(state, columns)
    noise = np.where(constant, 0.0, np.where(unsure, np.inf, noise))
    return np.where(constant, 0.0, F), noise


SCORES: dict[Any, Callable[..., tuple[FloatArray, FloatArray]]] = {
    f_classif: _f_classif,
    f_regression: _f_regression,
}


def one_hot_encoder(step: Any, state: Columns) -> Columns | None:
    """Make one column per category; a fold lacks those that only its rows have."""
    plain = isinstance(step.categories, str) and step.categories == "auto"
    infrequent = step.min_frequency is not None or step.max_categories is not None
    if not plain or infrequent or step.dtype is not np.float64:
        return None
    drop = step.drop
    if not (drop is None or (isinstance(drop, str) and drop in ("first", "if_binary"))):
        return None
    source = state.source
    scaled = any(a is not None for a in (state.shift, state.factor, state.mask))
    if step.handle_unknown not in ("error", "ignore") or scaled or not source.complete:
        return None
    uniques = [np.unique(column[~np.isnan(column)]) for column in source.values.T]
    if source.rows.n * sum(map(len, uniques)) > MOST_ENTRIES:
        return None
    encoded = _indicators(source, uniques)
    if encoded is None:
        return None
    total = np.where(np.isnan(encoded.values), 0.0, encoded.values)
    counts = total.sum(axis=0) - source.rows.left_out_sums(total)
    if encoded.fill is not None:
        counts += encoded.lacking * encoded.fill
    present = counts > 0
    if step.handle_unknown == "error" and not present.all():
        _raise_unknown(state, uniques, present)
    if drop is not None:
        _drop_first(present, [values.size for values in uniques], drop)
    history = () if encoded.fill is None else None
    return Columns(encoded, history=history).select(present)


def _indicators(source: Source, uniques: list[FloatArray]) -> Source | None:
    """Return indicators of all categories; None if a fill is none of them."""
    parts, fills = [], []
    for column, values in enumerate(uniques):
        x = source.values[:, column, None]
        parts.append(np.where(np.isnan(x), np.nan, x == values))
        if source.fill is not None:
            fills.append((source.fill[:, column, None] == values).astype(np.float64))
            if np.isnan(x).any() and not fills[-1].any(axis=1).all():
                return None
    fill = np.concatenate(fills, axis=1) if fills else None
    return Source(np.concatenate(parts, axis=1), source.rows, fill)


def _drop_first(present: BoolArray, sizes: list[int], drop: str) -> None:
    """Drop the first category that a fold has of each column."""
    for part in np.split(present, np.cumsum(sizes)[:-1], axis=1):
        first = np.arange(len(part)), part.argmax(axis=1)
        dropped = part.any(axis=1) if drop == "first" else part.sum(axis=1) == 2
        part[first] &= ~dropped


def _raise_unknown(
    state: Columns, uniques: list[FloatArray], present: BoolArray
) -> None:
    """Report the first category that only left-out rows have."""
    k, place = np.argwhere(~present)[0]
    column = int(np.searchsorted(np.cumsum([u.size for u in uniques]), place, "right"))
    value = uniques[column][place - sum(u.size for u in uniques[:column])]
    if state.categories is not None:
        value = state.categories[column][int(value)]
    raise FoldError(
        int(k),
        f"found unknown category {value!r} in column {column} of the left-out rows; no "
        "other row has it. Use handle_unknown='ignore', or drop or merge the category.",
    )


def pca(step: Any, state: Columns) -> PrincipalComponents | None:
    """Project on the directions of largest variance."""
    count, least = step.n_components, float(state.rows.n_kept.min())
    solvers = ("auto", "full", "covariance_eigh")
    if step.svd_solver not in solvers or not _is_flag(step.whiten):
        return None
    if count is None:
        count = state.n_columns
    share = isinstance(count, float) and 0 < count < 1
    whole = isinstance(count, Integral) and not isinstance(count, bool) and count > 0
    if not (share or whole) or count > min(least, state.n_columns):
        return None
    if state.source.missing is not None or (state.varies and len(state.rows) > 1):
        return None
    return PrincipalComponents(step, state, count)


class PrincipalComponents:
    """Principal components of the kept rows of each fold.

    In at most n coordinates A of the centred rows, the scatter matrix of the kept rows
    is A'A minus a matrix of rank at most one more than the number of left-out rows. If
    rounding could mix the components with the others, they come from the singular
    values of the kept rows, and if they are not even determined then, because two
    variances are equal, from scikit-learn.

    Parameters
    ----------
    step : PCA
        The step.
    parent : Columns
        Its input, which is the same in all folds.
    count : int or float
        Number of components, or the share of the variance they explain.
    """

    fitted_in_folds = False

    def __init__(self, step: Any, parent: Columns, count: float) -> None:
        self.step, self.parent, self.count = step, parent, count
        self.rows = parent.rows
        X = parent.features(0)
        n, self.n_columns = X.shape
        self.centred = X - X.mean(axis=0)
        self.centred -= self.centred.mean(axis=0)  # sums are 0 beside large means
        self.signed = False
        A, self.weights = self.centred, None
        if self.n_columns > n:
            squares, U = np.linalg.eigh(A @ A.T)
            s = np.sqrt(np.maximum(squares, EPS * squares[-1]))
            A, self.weights = U * s, U / s
        self.coordinates, self.scatter = A, A.T @ A

    def features(self, k: int) -> FloatArray:
        """Scores of all rows in fold k, (n, n_components)."""
        A, size = self.coordinates, float(self.rows.n_kept[k, 0])
        left = A[self.rows.folds[k]]
        total = left.sum(axis=0)
        scatter = self.scatter - left.T @ left - np.outer(total, total) / size
        values, vectors = np.linalg.eigh(scatter)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        A, weights = A + total / size, self.weights
        lost = values.sum() < CANCELLED * np.trace(self.scatter)
        if lost or not self._determined(values, GAP):
            A, weights = self.centred, None
            kept = self.rows.kept(k)
            A = A - A[kept].mean(axis=0)
            _, s, vectors = linalg.svd(A[kept], full_matrices=False)
            values, vectors = s * s, vectors.T
            if not self._determined(values, EQUAL):
                return self._fitted(k)
        vectors = vectors[:, : self._n_components(values)]
        scores = A @ vectors
        if self.step.whiten:
            scores /= np.sqrt(values[: scores.shape[1]] / (size - 1))
        if self.signed:  # scikit-learn makes the largest loading positive
            loadings = (
                vectors if weights is None else self.centred.T @ (weights @ vectors)
            )
            largest = np.abs(loadings).argmax(axis=0)
            scores *= np.sign(loadings[largest, np.arange(scores.shape[1])])
        return scores

    def _n_components(self, values: FloatArray) -> int:
        """Return the number of components for these squared singular values."""
        if self.count >= 1:
            return int(self.count)
        ratio = np.cumsum(values / values.sum())
        return int(np.searchsorted(ratio, self.count, side="right")) + 1

    def _determined(self, values: FloatArray, gap: float) -> bool:
        """Whether the components differ from the others by a share of the first."""
        count = self._n_components(values)
        last = values[count - 1]
        if count < self.n_columns:
            last = last - (values[count] if count < values.size else 0.0)
        elif not self.step.whiten:
            return True
        return bool(last > gap * values[0])

    def _fitted(self, k: int) -> FloatArray:
        """Scores of scikit-learn's PCA, fitted on the kept rows."""
        X = self.parent.features(k)
        own = clone(self.step).set_params(svd_solver="full")
        self.rows.count_clone(self.step, k)
        return own.fit(X[self.rows.kept(k)]).transform(X)

    def affine(self, k: int) -> None:
        """Return None: the components are rotated."""

    def key(self, k: int) -> Any:
        """Return k: every fold has its own components."""
        return k


# By exact type: a subclass may do something else.
KNOWN: dict[type, Callable[[Any, Columns], Any]] = {
    StandardScaler: standard_scaler,
    MinMaxScaler: min_max_scaler,
    MaxAbsScaler: max_abs_scaler,
    RobustScaler: robust_scaler,
    SimpleImputer: simple_imputer,
    VarianceThreshold: variance_threshold,
    SelectKBest: select_best,
    SelectPercentile: select_best,
    OneHotEncoder: one_hot_encoder,
    PCA: pca,
}
