# SPDX-License-Identifier: BSD-3-Clause
"""How good a dual point is: bias interval, optimality residual, duality gap."""

from __future__ import annotations

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray, StateArray
from leaveout.kernel import Problem
from leaveout.solve._solution import Solution


def weighted_median_interval(
    values: FloatArray, weights: FloatArray, level: float
) -> tuple[float, float]:
    """Return all minimisers of a convex piecewise linear sum, as order statistics.

    ``argmin_b sum_i C_i max(0, 1 - y_i (g_i + b))`` is the interval between the
    smallest breakpoint ``v_i = y_i - g_i`` whose cumulative weight reaches ``level``,
    the weight of the positive class, and the smallest whose cumulative weight exceeds
    it. Holds for every g, so no dual variable is asked (docs/notation).

    Parameters
    ----------
    values : ndarray of shape (n,)
        Breakpoints.
    weights : ndarray of shape (n,)
        Their weights, C_i.
    level : float
        Weight of the positive class.

    Returns
    -------
    tuple of float
        Lower and upper end, -inf or inf where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_median_interval(np.array([-1.0, 0.0, 1.0]), np.ones(3), 2.0)
    (0.0, 1.0)
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
    """Do what :func:`weighted_median_interval` does for each row of a matrix.

    Parameters
    ----------
    values, weights : ndarray of shape (k, n)
        Breakpoints and their weights; those with weight 0 do not count.
    levels : ndarray of shape (k,)
        Weight of the positive class in each row.

    Returns
    -------
    low, high : ndarray of shape (k,)
        Ends, -inf or inf where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> v, ones = np.array([[-1.0, 0.0, 1.0]]), np.ones((1, 3))
    >>> weighted_median_intervals(v, ones, np.array([2.0]))
    (array([0.]), array([1.]))
    """
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
    """Equal weights: order statistics of given ranks, by selection; inf if absent."""
    n, rows = values.shape[1], np.arange(values.shape[0])
    slack = 1e-12 * n
    # The smallest with at least, and the smallest with more than this many up to it.
    below = np.ceil(ranks - slack).astype(np.intp) - 1
    above = np.floor(ranks + slack).astype(np.intp)
    wanted = np.clip([below, above], 0, n - 1)
    chosen = np.partition(values, np.unique(wanted), axis=1)
    low = np.where(ranks > slack, chosen[rows, wanted[0]], -np.inf)
    return low, np.where(above < n, chosen[rows, wanted[1]], np.inf)


def intercept_interval(
    problem: Problem, beta: FloatArray, F: FloatArray, free: IntArray
) -> tuple[float, float]:
    """All optimal b at an optimal beta with F = y - K beta; a point if one is free."""
    if has_room(problem.C, np.abs(beta), free):
        b = float(np.mean(F[free]))
        return b, b
    level = float(problem.C[problem.y > 0].sum())
    return weighted_median_interval(F, problem.C, level)


def box_unit(C: FloatArray, alpha: FloatArray) -> FloatArray:
    """Return what "near a bound" is relative to: the box, or the largest alpha if less.

    Beside a box of 1e12 that no coefficient comes near, all of them would look like 0.
    """
    return np.minimum(C, alpha.max(initial=0.0))


def has_room(C: FloatArray, alpha: FloatArray, free: IntArray | BoolArray) -> bool:
    """Whether one of the free support vectors is so by more than rounding."""
    room = np.minimum(alpha[free], C[free] - alpha[free])
    return bool(np.any(room > 1e-9 * box_unit(C, alpha)[free]))


def intercept_range_without(
    problem: Problem, solution: Solution, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """How far b may go down and up when a sample with alpha = 0 leaves.

    The machine does not change, but without a free support vector b is an interval, and
    the sample may have been what held its end (docs/method/walk).

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum.
    rows : ndarray of shape (k,)
        Samples with alpha = 0.

    Returns
    -------
    down, up : ndarray of shape (k,)
        Ends of the interval less the intercept of the solution.
    """
    y, C, alpha = problem.y, problem.C, solution.alpha
    near = 1e-9 * box_unit(C, alpha)
    can_rise, can_fall = C - alpha > near, alpha > near
    distance = y - solution.decision_values
    below = np.where(np.where(y > 0, can_rise, can_fall), distance, -np.inf)
    above = np.where(np.where(y > 0, can_fall, can_rise), distance, np.inf)
    return _max_without(below, rows), -_max_without(-above, rows)


def _max_without(values: FloatArray, rows: IntArray) -> FloatArray:
    """Maximum of values when one entry is left out, for each of some entries."""
    first, second = np.sort(values)[:-3:-1]
    only = (values[rows] == first) & (np.count_nonzero(values == first) == 1)
    return np.where(only, second, first)


def kkt_residual(
    problem: Problem, beta: FloatArray, f: FloatArray, state: StateArray
) -> float:
    """Largest violation of the optimality conditions.

    Outside h >= 1, on the margin h = 1, bounded h <= 1, each relative to
    max(1, sum_j |beta_j K_ij|); the box holds by construction; sum(beta) = 0 is
    relative to sum |beta|.
    """
    excess = problem.y * f - 1.0
    violation = np.abs(excess)
    violation[(state == 0) & (excess > 0)] = 0.0
    violation[(state == 2) & (excess < 0)] = 0.0
    violation[problem.C == 0.0] = 0.0
    support = np.flatnonzero(beta)
    violated = np.flatnonzero(violation > 1e-12)
    worst = float(violation.max(initial=0.0))
    if violated.size:
        rows = np.abs(problem.K[np.ix_(violated, support)])
        scale = np.maximum(1.0, rows @ np.abs(beta[support]))
        worst = max(1e-12, float((violation[violated] / scale).max()))
    if problem.fit_intercept and support.size:
        worst = max(worst, abs(float(beta.sum())) / float(np.abs(beta).sum()))
    return worst


def duality_gap(
    problem: Problem, beta: FloatArray, f: FloatArray, b: float
) -> tuple[float, float]:
    """Return (primal, (primal - dual) / primal) at beta with values f = K beta + b.

    The gap is the sum of the complementarity terms C_i xi_i - alpha_i (1 - h_i) >= 0,
    free of the cancellation in primal minus dual.
    """
    alpha, short = np.abs(beta), 1.0 - problem.y * f
    hinge = problem.C * np.maximum(0.0, short)
    primal = 0.5 * float(beta @ (f - b)) + float(hinge.sum())
    gap = float((hinge - alpha * short).sum()) - b * float(beta.sum())
    return primal, gap / primal if primal > 0.0 else 0.0
