# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's scalers, imputers and encoders, for all folds in closed form.

Each function returns the state after a step, or None for parameters or columns that it
does not handle; the step is then fitted in each fold.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtri

from leaveout._typing import BoolArray, FloatArray
from leaveout.adapt._columns import EPS, Source, most_frequent
from leaveout.adapt._fold_states import Columns, Mapped, join_columns

# One-hot columns are made only if they have at most this many entries: 1 GB.
MOST_ENTRIES = 2**27


class FoldError(Exception):
    """A step cannot be fitted, or its result not be used, in a fold."""

    def __init__(self, k: int, reason: str) -> None:
        super().__init__(reason)
        self.k = k


def is_flag(*values: Any) -> bool:
    return all(type(value) is bool for value in values)


def is_number(*values: Any) -> bool:
    return all(isinstance(v, Real) and not isinstance(v, bool) for v in values)


def standard_scaler(step: Any, state: Columns) -> Columns | None:
    """Subtract the mean, divide by the standard deviation."""
    if not is_flag(step.with_mean, step.with_std):
        return None
    source, scale = state.source, None
    if step.with_std:
        mean, variance = state.scaled_moments()
        size, scale = source.sizes, np.sqrt(variance)
        noise = (float(size.max()) * EPS * max(mean.max(), -mean.min())) ** 2
        if not variance.min() > 1000 * noise:  # some columns may be constant
            constant = variance <= size * EPS * variance + (size * mean * EPS) ** 2
            scale[constant] = 1.0
    shift = source.moments[0] if step.with_mean else None
    return state.rescale(shift, scale)


def min_max_scaler(step: Any, state: Columns) -> Columns | Mapped | None:
    """Map the range of the kept rows to ``feature_range``."""
    bounds = step.feature_range
    if not (isinstance(bounds, tuple) and len(bounds) == 2 and is_number(*bounds)):
        return None
    low, high = map(float, bounds)
    if not low < high or not is_flag(step.clip):
        return None
    smallest, largest = ranges(state)
    doubt_ranges(state, smallest, largest)
    scale = _nonzero(state.scaled(largest) - state.scaled(smallest)) / (high - low)
    unit = scale if state.factor is None else scale / state.factor
    scaled = state.rescale(smallest - low * unit, scale)
    return _clip(scaled, low, high) if step.clip else scaled


def max_abs_scaler(step: Any, state: Columns) -> Columns | Mapped | None:
    """Divide by the largest absolute value."""
    if not is_flag(getattr(step, "clip", False)):
        return None
    smallest, largest = ranges(state)
    doubt_ranges(state, smallest, largest, shifted=state.shift is not None)
    largest = np.maximum(*(np.abs(state.scaled(a)) for a in (smallest, largest)))
    scaled = state.rescale(None, _nonzero(largest))
    return _clip(scaled, -1.0, 1.0) if getattr(step, "clip", False) else scaled


def _clip(state: Columns, low: float, high: float) -> Mapped:
    """Clip the features: only left-out rows are outside the bounds."""
    return Mapped(state, partial(np.clip, a_min=low, a_max=high))


def robust_scaler(step: Any, state: Columns) -> Columns | None:
    """Subtract the median, divide by a range of quantiles."""
    flags = (step.with_centering, step.with_scaling, step.unit_variance)
    bounds = step.quantile_range
    if not (isinstance(bounds, tuple) and len(bounds) == 2 and is_number(*bounds)):
        return None
    low, high = (bound / 100 for bound in bounds)
    if not is_flag(*flags) or not 0 <= low < high <= 1:
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
        doubt_ranges(state, bottom, top)
        scale = _nonzero(state.scaled(top) - state.scaled(bottom))
        if step.unit_variance:
            scale /= ndtri(high) - ndtri(low)
    return state.rescale(median, scale)


def ranges(state: Columns) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of the source in each fold, (g, p)."""
    source = state.source

    def extremes(columns: slice) -> tuple[FloatArray, FloatArray]:
        size = source.sizes
        last = (size if size.shape[1] == 1 else size[:, columns]) - 1
        first = np.zeros((1, 1))
        statistics = source.order_statistics
        return statistics(columns, first), statistics(columns, last)

    return source.by_blocks(extremes)


def doubt_ranges(
    state: Columns, low: FloatArray, high: FloatArray, *, shifted: bool = False
) -> None:
    """Mark folds in which rounding decides whether a column is constant.

    Equal values stay equal under shift and factor, but not equal to a fill; a
    difference of rounding errors need not stay one. ``shifted`` says that the distance
    of equal values from the shift matters, too.
    """
    largest = np.maximum(np.abs(low), np.abs(high))
    tiny = high - low <= 8 * state.source.sizes * EPS * largest
    filled = state.source.fill is not None and state.source.missing is not None
    equal = high == low
    if filled:
        equal &= state.source.lacking == 0
    if state.varies:
        state.rows.doubt(tiny & (shifted | ~equal) & (largest > 0))


def _nonzero(scale: FloatArray) -> FloatArray:
    """Replace scales of constant columns by 1, as scikit-learn does."""
    return np.where(scale < 10 * EPS, 1.0, scale)


def simple_imputer(step: Any, state: Columns) -> Columns | None:
    """Fill missing entries by a statistic of the observed ones."""
    source, marker = state.source, step.missing_values
    flags = is_flag(step.add_indicator, step.keep_empty_features)
    strategies = ("mean", "median", "most_frequent", "constant")
    if not (flags and isinstance(marker, float) and np.isnan(marker)):
        return None
    if not (isinstance(step.strategy, str) and step.strategy in strategies):
        return None
    if state.categories is not None and step.strategy != "most_frequent":
        return _fill_text(step, state) if step.strategy == "constant" else None
    constant = 0.0 if step.fill_value is None else step.fill_value
    if step.strategy == "constant" and not is_number(constant):
        return None
    if source.missing is None or source.fill is not None:
        as_float = step.strategy in ("mean", "median")
        return replace(state, narrow=state.narrow and not as_float)
    empty = source.counts == 0
    if state.mask is not None or (empty.any() and state.factor is not None):
        return None
    fill = _fills(step.strategy, float(constant), state)
    if step.strategy != "constant":
        fill = np.where(empty, 0.0, fill)
    filled = replace(state, source=source.filled(fill))
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
    for column in np.flatnonzero(np.isnan(source.values).any(axis=0)):
        fill[:, column] = most_frequent(source.values[:, column], source.rows)
    return fill


def _fill_text(step: Any, state: Columns) -> Columns | None:
    """Fill missing text by a constant, which becomes a category."""
    text = "missing_value" if step.fill_value is None else step.fill_value
    source, old_names = state.source, state.categories or ()
    if type(text) is not str or step.add_indicator or (source.counts == 0).any():
        return None
    values, categories = np.empty_like(source.values), []
    for x, out, old in zip(source.values.T, values.T, old_names, strict=True):
        names = np.unique([*old, text]).astype(object) if np.isnan(x).any() else old
        code = np.append(np.searchsorted(names, old), np.searchsorted(names, text))
        out[:] = code[np.where(np.isnan(x), old.size, x).astype(int)]
        categories.append(names)
    return Columns(Source(values, state.rows), categories=tuple(categories))


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
    return Columns(encoded).select(present)


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
