# SPDX-License-Identifier: BSD-3-Clause
"""Selection of columns and principal components of each fold.

Each function returns the state after a step, or None for parameters or columns that it
does not handle; the step is then fitted in each fold.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import clone
from sklearn.feature_selection import (
    SelectKBest,
    SelectPercentile,
    f_classif,
    f_regression,
)

from leaveout._typing import BoolArray, FloatArray
from leaveout.adapt._columns import CANCELLED, EPS, Source
from leaveout.adapt._fold_states import Columns, InDoubtError, State
from leaveout.adapt._known_steps import doubt_ranges, is_flag, is_number, ranges

# scikit-learn replaces NaN scores by the smallest number.
NO_SCORE = float(np.finfo(np.float64).min)
# Of scores or variances that differ less, relatively, rounding decides.
NEAR = 1e-9
# Sums of squares of integers up to this are exact, and F of a constant column NaN.
EXACT = 2.0**20
# The components of PCA must differ from the others by these shares of the largest
# variance, in an eigendecomposition and in a singular value decomposition.
GAP, EQUAL = 1e-6, 1e-8
# So must those that are features of another step, each from the next.
APART = 1e-7
TINY = float(np.finfo(np.float64).tiny)


def variance_threshold(step: Any, state: Columns) -> Columns | None:
    """Select the columns whose variance is above the threshold."""
    threshold = step.threshold
    if not is_number(threshold) or threshold < 0 or not state.source.complete:
        return None
    if threshold == 0:  # scikit-learn looks at the range as well
        smallest, largest = ranges(state)
        doubt_ranges(state, smallest, largest)
        return state.select(largest > smallest)
    mean, variance = state.scaled_moments()
    mask = variance > threshold
    noise = NEAR * threshold + (state.rows.n_kept * EPS * mean) ** 2
    state.rows.doubt(np.abs(variance - threshold) <= noise)
    return state.select(mask)


def select_best(step: Any, state: Columns) -> Columns | None:
    """Select the columns with the highest F."""
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
    state.rows.doubt(~(least > most)[:, None])
    return state.select(mask)


def _n_selected(step: Any, p: int) -> int | None:
    """Return the number of columns that are selected if no scores are equal."""
    if type(step) is SelectKBest:
        if step.k == "all":
            return p
        good = isinstance(step.k, Integral) and not isinstance(step.k, bool)
        return int(step.k) if good and step.k >= 1 else None
    if not is_number(step.percentile) or not 0 < step.percentile <= 100:
        return None
    ranked = clone(step)
    ranked.scores_ = np.arange(p, dtype=np.float64)
    return int(ranked.get_support().sum()) or None


def _noise(state: Columns, columns: slice) -> FloatArray:
    """Bound the rounding error of sums of squares, by block (g, p).

    scikit-learn does not centre the columns, and steps before round them relative to
    their mean. We subtract the left-out rows from sums over all, of the last fold.
    """
    size = state.rows.n_kept
    mean, variance = (moment[:, columns] for moment in state.source.moments)
    centred = mean if state.shift is None else mean - state.shift[:, columns]
    squares = np.maximum(size * (variance + centred**2), size[-1] * variance[-1])
    return 2 * EPS * size * (squares + 2 * np.abs(mean) * np.sqrt(variance))


def _constant(state: Columns, columns: slice) -> BoolArray:
    """Whether a column is a constant integer in a fold, so that sums are exact."""
    mean, variance = (moment[:, columns] for moment in state.source.moments)
    constant: BoolArray = variance == 0
    if constant.any():
        mean = state.scaled_moments()[0][:, columns]
        constant &= (mean == np.rint(mean)) & (np.abs(mean) < EXACT)
    return constant


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


def pca(step: Any, state: Columns) -> PrincipalComponents | None:
    """Project on the directions of largest variance."""
    count, least = step.n_components, float(state.rows.n_kept.min())
    solvers = ("auto", "full", "covariance_eigh")
    if step.svd_solver not in solvers or not is_flag(step.whiten):
        return None
    if count is None:
        count = state.n_columns
    share = isinstance(count, float) and 0 < count < 1
    whole = (
        isinstance(count, Integral) and not isinstance(count, bool) and int(count) > 0
    )
    if not (share or whole) or float(count) > min(least, state.n_columns):
        return None
    if not state.source.complete or state.varies:
        return None
    return PrincipalComponents(step, state, count)


class PrincipalComponents(State):
    """Principal components of the kept rows of each fold.

    In at most n coordinates A of the centred rows, the scatter matrix of the kept rows
    is A'A minus a matrix of rank at most one more than the number of left-out rows. If
    rounding could mix the components with the others, they come from the singular
    values of the kept rows, and if they are not even determined then, because two
    variances are equal, rounding decides.

    Parameters
    ----------
    step : PCA
        The step.
    parent : Columns
        Its input, which is the same in all folds.
    count : int or float
        Number of components, or the share of the variance they explain.
    """

    def __init__(self, step: Any, parent: Columns, count: float) -> None:
        self.step, self.parent, self.count = step, parent, count
        self.rows = parent.rows
        X = parent.features(0)
        n, self.n_columns = X.shape
        self.centred = X - X.mean(axis=0)
        self.centred -= self.centred.mean(axis=0)  # sums are 0 beside large means
        self.signed = False
        self.own_variances: FloatArray = np.full(len(self.rows), np.nan)
        A = self.centred
        if self.n_columns > n:
            squares, U = np.linalg.eigh(A @ A.T)
            A = U * np.sqrt(np.maximum(squares, EPS * squares[-1]))
        else:
            A = A @ np.linalg.eigh(A.T @ A)[1]
        self.coordinates, self.squares = A, (A * A).sum(axis=0)
        self.squares_sum = float(self.squares.sum())
        self.roots = np.sqrt(np.maximum(0, self.squares[-1] - self.squares[::-1]))

    def features(self, k: int) -> FloatArray:
        """Scores of all rows in fold k, (n, n_components)."""
        A, size = self.coordinates, float(self.rows.n_kept[k, 0])
        left = A[self.rows.folds[k]]
        total = left[0] if len(left) == 1 else left.sum(axis=0)
        lost = np.vdot(left, left) + np.vdot(total, total) / size
        share = 1 - lost / self.squares_sum
        found = self._secular(total, size) if len(left) == 1 else None
        if found is None:
            scatter = np.diag(self.squares) - left.T @ left
            values, vectors = np.linalg.eigh(scatter - np.outer(total, total) / size)
            found = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        values, vectors = found
        direct = share < CANCELLED or not self._determined(values, GAP)
        if direct:
            kept = self.rows.kept(k)
            A = self.centred - self.centred[kept].mean(axis=0)
            _, s, vectors = linalg.svd(A[kept], full_matrices=False)
            values, vectors = s * s, vectors.T
            if not self._determined(values, EQUAL):
                raise InDoubtError
        vectors = vectors[:, : self._n_components(values)]
        scores = A @ vectors
        if not direct:
            scores += total @ vectors / size
        variances = values[: scores.shape[1]] / size
        self.own_variances[k] = variances.sum() / variances.size
        if self.step.whiten:
            self.own_variances[k] = (size - 1) / size
            scores /= np.sqrt(variances * (size / (size - 1)))
        if self.signed:  # scikit-learn makes the largest loading positive
            loadings = vectors
            if not direct:
                loadings = vectors / np.maximum(self.squares, TINY)[:, None]
                loadings = self.centred.T @ (self.coordinates @ loadings)
            largest = np.abs(loadings).argmax(axis=0)
            scores *= np.sign(loadings[largest, np.arange(scores.shape[1])])
        return scores

    def _secular(
        self, a: FloatArray, size: float
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the first components without one row of coordinates a.

        They are eigenvectors of diag(squares) - (1 + 1 / size) a a': the roots of a
        rational function, found by LAPACK for the negative of the matrix plus a
        constant. None if all components together are faster or rounding interferes.
        """
        q, length = a.size, float(np.sqrt(a @ a))
        if not (q >= 40 and 1 <= self.count < q / 5 and length > 0):
            return None
        count = int(self.count) + 1
        d, z = self.roots, a[::-1]
        roots, differences = np.empty(count), np.empty((count, q))
        unit, square = z / length, (1 + 1 / size) * length**2
        for i in range(count):
            below, roots[i], above, info = linalg.lapack.dlasd4(i, d, unit, square)
            if info:
                return None
            np.multiply(below, above, out=differences[i])
        vectors = z / differences
        vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
        if not np.abs(vectors @ vectors.T - np.eye(count)).max() < 1e-12:
            return None
        return self.squares[-1] - roots**2, vectors.T[::-1]

    def _n_components(self, values: FloatArray) -> int:
        """Return the number of components for these squared singular values."""
        if self.count >= 1:
            return int(self.count)
        ratio = np.cumsum(values / values.sum())
        if np.abs(ratio - self.count).min() < NEAR:
            raise InDoubtError
        return int(np.searchsorted(ratio, self.count, side="right")) + 1

    def _determined(self, values: FloatArray, gap: float) -> bool:
        """Whether the components differ from the others by a share of the first."""
        count = self._n_components(values)
        next_ones = np.append(values[1:], 0.0)[:count]
        gaps = values[:count] - next_ones
        if self.signed:  # a step follows, for which each component counts
            return bool(gaps.min() > max(gap, APART) * values[0])
        if count == self.n_columns:
            return not self.step.whiten or bool(values[count - 1] > gap * values[0])
        return bool(gaps[-1] > gap * values[0])
