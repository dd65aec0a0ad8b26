# SPDX-License-Identifier: BSD-3-Clause
"""How far a solution is from the optimum, and how far rounding may move it.

A certificate is given where a simple bound on the rounding errors supports it. f is a
sum of terms that are at most ``max K_ii * alpha_j``, so it is accurate to a multiple of
``2^-52 max K_ii sum(alpha)``. Where that bound (:func:`rounding_bound`) does not apply,
values are computed but not certified.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import frexp
from typing import Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate_fast import measure, settle_members
from leaveout.engine._problem import (
    BY_ROUNDING,
    CERTIFIED,
    MARGIN,
    NOT_CONVERGED,
    TIE,
    UNTOUCHED,
    Folds,
    LooIntervals,
    Problem,
    Solution,
)

KERNEL_RANGE = 20  # in powers of two: within it kernel values stay as they are
# With max K_ii * sum(C) below this, f differs from a label by less than the tolerances.
SMALLEST_BOUNDS = 2.0**-16
# With K_ii near 1, no coefficient reaches a bound larger than this.
LARGEST_BOUND = 2.0**100
# No left-out solution reaches a bound of this many times the sum of all alpha (a factor
# of 2 is proved), and tolerances relative to it are small compared with a coefficient.
REACH = 4.0
# Errors against exact arithmetic, in units of 2^-52 max K_ii sum(alpha), reach several
# hundred if points nearly coincide, and a multiple of that if folds have several
# samples.
AMPLIFICATION, SEVERAL = 1024.0, 8.0
# Points on or next to the margin nearly coincide if their squared distance is below
# NEAR times K_ii but not 0. An optimum that is accurate to 12 digits may then give
# another f elsewhere. Measured errors were NEAR_AMPLIFICATION times as large, and up to
# NEAR_ROUNDING where other problems have none.
NEAR, NEAR_AMPLIFICATION, NEAR_ROUNDING = 1e-9, 2.0**19, 1e-5
# Samples whose K_ii is more than DOMINATING times the next largest. Without such a
# sample the error of f is up to DOMINATING_ROUNDING times the ratio of the lengths; if
# the ratio of the K_ii exceeds LARGEST_RATIO, nothing is certified.
DOMINATING, DOMINATING_ROUNDING, LARGEST_RATIO = 2.0**10, 6e-11, 2.0**20
LEAST_ROUNDING = 16.0  # smallest error of f, in units of 2^-52
ACCURACY = 1e-2  # nothing is certified if values have fewer than two correct digits
VALUE_ACCURACY = 1e-6  # of certified values of a regression, whose y are of order 1


def weighted_median_interval(
    values: FloatArray, weights: FloatArray, level: float
) -> tuple[float, float]:
    """Return ``argmin_b sum_i C_i max(0, 1 - y_i (g_i + b))``, as order statistics.

    From the smallest breakpoint ``v_i = y_i - g_i`` whose cumulative weight reaches
    ``level``, the weight of the positive class, to the smallest whose cumulative weight
    exceeds it; -inf or inf where there is none (docs/notation).
    """
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    slack = 1e-12 * cumulative[-1]
    below = int(np.searchsorted(cumulative, level - slack, side="left"))
    above = int(np.searchsorted(cumulative, level + slack, side="right"))
    low = float(values[order[below]]) if level > slack else -np.inf
    high = float(values[order[above]]) if above < values.size else np.inf
    return low, high


def weighted_median_intervals(
    values: FloatArray, weights: FloatArray, levels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return :func:`weighted_median_interval` of each row; weights 0 do not count."""
    common = float(weights.max(initial=0.0))
    if np.all((weights == common) | (weights == 0.0)) and common > 0.0:
        return _median_intervals(np.where(weights, values, np.inf), levels / common)
    order = np.argsort(values, axis=1, kind="stable")
    cumulative = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    slack = 1e-12 * cumulative[:, -1]
    n, rows = values.shape[1], np.arange(values.shape[0])
    below = np.count_nonzero(cumulative < (levels - slack)[:, None], axis=1)
    above = np.count_nonzero(cumulative <= (levels + slack)[:, None], axis=1)
    low = values[rows, order[rows, np.minimum(below, n - 1)]]
    high = values[rows, order[rows, np.minimum(above, n - 1)]]
    return np.where(levels > slack, low, -np.inf), np.where(above < n, high, np.inf)


def _median_intervals(
    values: FloatArray, ranks: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Equal weights: order statistics of given ranks, by selection; inf if none."""
    n, rows = values.shape[1], np.arange(values.shape[0])
    slack = 1e-12 * n
    # The smallest values with at least, and with more than, this many up to them.
    below = np.ceil(ranks - slack).astype(np.intp) - 1
    above = np.floor(ranks + slack).astype(np.intp)
    wanted = np.clip([below, above], 0, n - 1)
    chosen = np.partition(values, np.unique(wanted), axis=1)
    low = np.where(ranks > slack, chosen[rows, wanted[0]], -np.inf)
    return low, np.where(above < n, chosen[rows, wanted[1]], np.inf)


def intercept_interval(
    problem: Problem, beta: FloatArray, F: FloatArray, members: IntArray
) -> tuple[IntArray, tuple[float, float]]:
    """Return the free samples and all optimal b, with F = y - K beta.

    If all ``members`` of the working set are on their levels up to rounding, they are
    set to these, in place, and none is free. b is a point if a sample is free.
    """
    # All beta may be 0 in a regression; what is left of a start does not move f.
    top = 0.0 if problem.epsilon is None else float(problem.diagonal.max())
    unseen = 1e-15 / top if top > 0.0 else 0.0
    stays, is_free, b = settle_members(
        problem.offsets, problem.levels, problem.C, beta, F, members, unseen
    )
    members = members if stays else members[:0]
    if is_free:
        return members, (b, b)
    weights = problem.levels[:, :-1] - problem.levels[:, 1:]
    values = F[:, None] + problem.offsets
    level = float(problem.levels[:, 0].sum())
    return members, weighted_median_interval(values.ravel(), weights.ravel(), level)


def is_any_free(problem: Problem, solution: Solution) -> bool:
    """Whether a free support vector is off its levels by more than rounding errors."""
    members = np.flatnonzero(solution.state == MARGIN)
    beta = solution.beta.copy()
    fixed = problem.offsets, problem.levels, problem.C
    return settle_members(*fixed, beta, solution.beta, members, 0.0)[1]


def bound_scale(C: FloatArray, alpha: FloatArray) -> FloatArray:
    """Return the scale of "near a bound": C, or the largest alpha if that is smaller.

    Relative to a C of 1e12 that is far from every alpha, all alpha would look like 0.
    """
    return np.minimum(C, alpha.max(initial=0.0))


def has_room(C: FloatArray, alpha: FloatArray, free: IntArray | BoolArray) -> bool:
    """Whether a free support vector is off its bounds by more than rounding errors."""
    room = np.minimum(alpha[free], C[free] - alpha[free])
    return bool(np.any(room > 1e-9 * bound_scale(C, alpha)[free]))


def intercept_range_without(
    problem: Problem, solution: Solution, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return how far b can move down and up when a sample with alpha = 0 is left out.

    The other coefficients do not change. But without a free support vector the optimal
    b form an interval, and the sample may determine its end (docs/method/walk).
    """
    near = 1e-9 * bound_scale(problem.C, solution.alpha)
    below, above = problem.bracket(solution.beta, near)
    f = solution.decision_values
    return _max_without(below - f, rows), -_max_without(f - above, rows)


def _max_without(values: FloatArray, rows: IntArray) -> FloatArray:
    """Maximum of values when one entry is left out, for each of some entries."""
    first, second = np.sort(values)[:-3:-1]
    only = (values[rows] == first) & (np.count_nonzero(values == first) == 1)
    return np.where(only, second, first)


def certify(
    problem: Problem, beta: FloatArray, f: FloatArray, b: float
) -> tuple[float, float, float]:
    """Return (KKT residual, primal, (primal - dual) / primal) at f = K beta + b.

    The residual is the largest violation of the optimality conditions: f must be
    between the kinks around its beta, relative to max(1, sum_j |beta_j K_ij|);
    sum(beta) = 0 is relative to sum |beta|.
    """
    y, offsets, levels = problem.y, problem.offsets, problem.levels
    worst, total, size, primal, gap = measure(y, offsets, levels, beta, f, b)
    if worst > 1e-12:
        below, above = problem.bracket(beta)
        violation = np.maximum(below - f, f - above)
        violated = np.flatnonzero(violation > 1e-12)
        scale = np.abs(problem.K[violated]) @ np.abs(beta)
        share = violation[violated] / np.maximum(1.0, scale)
        worst = max(1e-12, float(share.max()))
    if problem.fit_intercept and size > 0.0:
        worst = max(worst, abs(total) / size)
    return worst, primal, gap / primal if primal > 0.0 else 0.0


def unit_exponent(K: FloatArray, kernel_range: int = KERNEL_RANGE) -> int:
    """Return e such that 2^-e K has its largest K_ii near 1; 0 if K already does.

    ``K -> 2^-e K, C -> 2^e C`` does not change f and is free of rounding.
    """
    top = float(K.diagonal().max(initial=0.0))
    exponent = frexp(top)[1] if 0.0 < top < np.inf else 0
    return exponent if abs(exponent) > kernel_range else 0


def cap_unreachable_bounds(problem: Problem, solution: Solution) -> Problem:
    """Return the problem with lower C_i where no left-out solution can reach them.

    ``sum(alpha) = ||w||^2 + sum C xi`` lies between the optimal value D and 2 D, and
    leaving samples out lowers D: no left-out coefficient exceeds ``2 sum(alpha)``.
    Relative to C = 1e12 a coefficient of 1 would look like 0. In a regression D does
    not bound the coefficients: nearly equal samples with different y have large ones.
    """
    if problem.epsilon is not None:
        return problem
    reach = REACH * float(solution.alpha.sum())
    if not reach > 0.0 or problem.C.max() <= reach or not solution.converged:
        return problem
    return replace(problem, C=np.minimum(problem.C, reach))


def rounding_bound(
    problem: Problem, solution: Solution, folds: Folds | None = None
) -> float:
    """Return how far rounding may move a left-out value; inf if no bound is known.

    f is a sum of alpha_j times kernel values; the bound holds for every fold. The
    factors were chosen from errors measured against exact arithmetic (see the constants
    above): this is a policy for giving certificates, not a proof.
    """
    diagonal = problem.K.diagonal()
    top = float(diagonal.max(initial=0.0))
    with np.errstate(over="ignore"):
        small = 0.0 < top * float(problem.C.sum()) < SMALLEST_BOUNDS
    if not solution.converged or small:
        return np.inf
    rounding = rounding_of_sum(top, float(solution.alpha.sum()))
    # f is stored as y - (y - f), so it is at most as accurate as y and the kinks.
    largest_kink = float(np.abs(problem.kinks).max(initial=0.0))
    rounding = max(rounding, LEAST_ROUNDING * 2.0**-52 * largest_kink)
    if not problem.regular:
        rounding = max(rounding, _rounding_if_irregular(problem, solution, rounding))
    if folds is not None and len(folds) < folds.members.size:
        rounding *= SEVERAL
    if folds is not None and folds.C_factors is not None:
        # The optimal value is concave in the bounds: it grows by no larger factor.
        rounding *= max(1.0, float(folds.C_factors.max()))
    return rounding


def _rounding_if_irregular(
    problem: Problem, solution: Solution, rounding: float
) -> float:
    """Return the rounding error if samples nearly coincide or one dominates, else 0."""
    f, found = solution.decision_values, 0.0
    near_kink = (np.abs(problem.kinks - f[:, None]) < 1e-2).any(axis=1)
    rows = np.flatnonzero((solution.beta != 0.0) | near_kink)
    if nearly_coincide(problem.K, rows):
        found = max(NEAR_AMPLIFICATION * rounding, NEAR_ROUNDING)
    sizes = -np.sort(-problem.K.diagonal()[problem.C > 0.0])
    few = sizes[: sizes.size // 2 + 1]
    gaps = (few[:-1] > DOMINATING * few[1:]) & (few[1:] > 0.0)
    if gaps.any():
        ratio = float(few[0] / few[1:][gaps][-1])
        if ratio > LARGEST_RATIO:
            return np.inf
        found = max(found, DOMINATING_ROUNDING * np.sqrt(ratio))
    return found


def is_regular(K: FloatArray) -> bool:
    """Whether no two samples nearly coincide and none dominates, for any solution."""
    diagonal = K.diagonal()
    similar = diagonal.max() <= DOMINATING * diagonal.min()
    return bool(similar) and not nearly_coincide(K, np.arange(diagonal.size))


def nearly_coincide(K: FloatArray, rows: IntArray) -> bool:
    """Whether two of some points nearly coincide without being equal.

    Such points have nearly the same product with any vector. Sorting by the product
    with a random vector leaves few pairs to compare.
    """
    diagonal = K.diagonal()[rows]
    largest = float(diagonal.max(initial=0.0))
    probe = _random_vector(K.shape[0])
    products = K @ probe
    # |<phi_i - phi_j, v>| <= ||phi_i - phi_j|| ||v||, times 2 to be safe
    reach = 2.0 * np.sqrt(NEAR * largest) * np.sqrt(max(float(probe @ products), 0.0))
    order = np.argsort(products[rows])
    rows, diagonal, products = rows[order], diagonal[order], products[rows[order]]
    for shift in range(1, rows.size):
        first = np.flatnonzero(~(products[shift:] - products[:-shift] > reach))
        if first.size == 0:
            break
        i, j = rows[first], rows[first + shift]
        own = K[i, j]
        distances = (diagonal[first] - own) + (diagonal[first + shift] - own)
        zero, near = 4.0 * 2.0**-52 * largest, NEAR * largest
        if np.any((distances > zero) & (distances < near)):
            return True
    return False


@lru_cache(maxsize=8)
def _random_vector(n: int) -> FloatArray:
    """Return a vector of normal numbers, the same in every run."""
    return np.random.default_rng(0).standard_normal(n)


def rounding_of_sum(largest: float, size: Any) -> Any:
    """Return how far rounding may move f, a sum of alpha_j times kernel values.

    ``largest`` is the largest kernel value, ``size`` the sum of alpha.
    """
    # f is stored as y - (y - f), so it is at most as accurate as a number of size 1.
    return 2.0**-52 * (AMPLIFICATION * largest * size + LEAST_ROUNDING)


def clear_of_rounding(
    lower: FloatArray, upper: FloatArray, rounding: Any, fit_intercept: bool
) -> BoolArray:
    """Whether rounding cannot have changed the sign of either end of intervals of f.

    With an intercept f is of order 1, and values below ``TIE`` count as 0 and as
    ambiguous; without one f may have any scale.
    """
    ends = np.minimum(np.abs(lower), np.abs(upper))
    clear = ((ends > rounding) | (ends == 0.0)) & (rounding <= ACCURACY)
    return clear | (fit_intercept & (rounding <= TIE))


def drop_unsafe_certificates(
    problem: Problem, found: LooIntervals, rounding: float
) -> LooIntervals:
    """Mark as not certified what rounding may have changed: signs, or values."""
    clear: Any = np.bool_(rounding <= VALUE_ACCURACY)
    if problem.epsilon is None:
        clear = clear_of_rounding(
            found.lower, found.upper, rounding, problem.fit_intercept
        )
    reason = np.where(found.certified & ~clear, BY_ROUNDING, found.uncertified_by)
    counts = {**found.counts, "rounding": rounding}
    return replace(found, uncertified_by=reason.astype(np.int8), counts=counts)


def intervals_at_new_rows(
    problem: Problem,
    solution: Solution,
    products: FloatArray,
    largest: float,
    rounding: float | None = None,
) -> LooIntervals:
    """Return f at samples that are not in the training set.

    ``products`` (m,) are their kernel values times beta, ``largest`` is the largest of
    these kernel values, and ``rounding`` the :func:`rounding_bound`, if it is known.
    """
    found = LooIntervals.empty(products.shape[0], UNTOUCHED)
    found.lower[:], found.upper[:] = (products + b for b in solution.intercept_interval)
    found.uncertified_by[:] = CERTIFIED if solution.converged else NOT_CONVERGED
    if rounding is None:
        rounding = rounding_bound(problem, solution)
    own = rounding_of_sum(largest, float(solution.alpha.sum()))
    return drop_unsafe_certificates(problem, found, max(rounding, own))
