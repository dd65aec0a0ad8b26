# SPDX-License-Identifier: BSD-3-Clause
"""Rigorous intervals for a left-out value, without solving the left-out problem.

Notation: w, b the machine at hand, w', b' the one trained without r; h_r = y_r f(x_r).

Ball to interval. If ``||w' - w|| <= radius`` then, with ``v_i = y_i - (g_i - g_r)`` and
``e_i = radius ||phi_i - phi_r||`` over i != r, every optimal f'(x_r) lies between order
statistics of v - e and of v + e (docs/method/walk): b never appears, so its being
unregularised does no harm. Without an intercept it is simply g_r -+ radius sqrt(K_rr).
"""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._certificate import (
    weighted_median_interval,
    weighted_median_intervals,
)
from leaveout.engine._problem import Problem, Solution


def loo_interval_in_ball(
    problem: Problem, r: int, g: FloatArray, radius: float
) -> tuple[float, float]:
    """Bound f at x_r of the machine without r, known to be near a given one.

    Parameters
    ----------
    problem : Problem
        The machine with r.
    r : int
        Sample left out.
    g : ndarray of shape (n,)
        K @ beta of the machine at hand, without intercept.
    radius : float
        Bound on the distance of the two weight vectors.

    Returns
    -------
    tuple of float
        Interval that contains every optimal f'(x_r).
    """
    K = problem.K
    if not problem.fit_intercept:
        reach = radius * float(np.sqrt(max(K[r, r], 0.0)))
        return float(g[r]) - reach, float(g[r]) + reach
    others = np.arange(problem.n_samples) != r
    y, C = problem.y[others], problem.C[others]
    at = y - (g[others] - g[r])
    reach = radius * _distances(K, r)[others]
    level = float(C[y > 0].sum())
    low, _ = weighted_median_interval(at - reach, C, level)
    _, high = weighted_median_interval(at + reach, C, level)
    return low, high


def loo_interval_from_solution(
    problem: Problem, solution: Solution, r: int, *, rounds: int = 5
) -> tuple[float, float]:
    """Bound the left-out value of r from the full solution alone.

    The optimum moves by at most ``||w' - w||^2 <= alpha_r (h_r - h_r')`` while alpha_r
    goes to zero. The lower end of the ball's interval is a lower bound of h_r', which
    gives a smaller ball; every round is valid. Without an intercept the bound of
    Jaakkola & Haussler (1999) is used: h_r - alpha_r K_rr <= h_r' <= h_r.

    Parameters
    ----------
    problem : Problem
        The machine with r.
    solution : Solution
        Its optimum.
    r : int
        Sample to leave out.
    rounds : int, default=5
        Number of times the ball is made smaller; more decides hardly any more samples.

    Returns
    -------
    tuple of float
        Interval that contains every optimal f'(x_r).
    """
    y_r, t = float(problem.y[r]), float(solution.alpha[r])
    g = solution.decision_values - solution.intercept
    h = y_r * float(g[r])
    if not problem.fit_intercept:
        return _signed(y_r, h - t * float(problem.K[r, r]), h)
    # h_r at the intercept that makes it smallest: also an upper bound of every h_r'.
    h += min(y_r * b for b in solution.intercept_interval)
    if t == 0.0:
        return loo_interval_in_ball(problem, r, g, 0.0)

    def worst(radius: float) -> float:
        low, high = loo_interval_in_ball(problem, r, g, radius)
        return low if y_r > 0 else -high

    reach = t * float(_distances(problem.K, r).max())
    short = max(0.0, h - worst(0.0))
    if np.isinf(short):  # r is the only one of its class
        return _signed(y_r, -np.inf, h)
    radius = 0.5 * (reach + float(np.sqrt(reach**2 + 4.0 * t * short)))
    for _ in range(rounds):
        radius = min(radius, float(np.sqrt(t * max(0.0, h - worst(radius)))))
    return _signed(y_r, worst(radius), h)


def loo_interval_from_point(
    problem: Problem, beta: FloatArray, r: int
) -> tuple[float, float]:
    """Bound the left-out value of r from any feasible point of the left-out dual.

    ``||w' - w||^2 <= F(w, b) - G(beta)``, the duality gap of the problem without r: the
    interval shrinks as a solver runs, and settles the label once it excludes zero.

    Parameters
    ----------
    problem : Problem
        The machine with r.
    beta : ndarray of shape (n,)
        Signed coefficients, feasible and zero at r.
    r : int
        Sample left out.

    Returns
    -------
    tuple of float
        Interval that contains every optimal f'(x_r).
    """
    g = problem.K @ beta
    others = np.arange(problem.n_samples) != r
    y, C = problem.y[others], problem.C[others]
    b = 0.0
    if problem.fit_intercept:
        ends = weighted_median_interval(y - g[others], C, float(C[y > 0].sum()))
        b = next(end for end in ends if np.isfinite(end))
    norm = float(beta @ g)
    primal = 0.5 * norm + float(C @ np.maximum(0.0, 1.0 - y * (g[others] + b)))
    dual = float(np.abs(beta).sum()) - 0.5 * norm
    # The gap is a difference of rounded sums: never take it for smaller than that.
    gap = max(primal - dual, 1e-15 * (abs(primal) + abs(dual)))
    return loo_interval_in_ball(problem, r, g, float(np.sqrt(gap)))


def left_out_radii(
    problem: Problem, solution: Solution, rows: IntArray, *, rounds: int = 3
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bound how far the machine moves when each of some samples leaves.

    The balls of :func:`loo_interval_from_solution`, many samples at a time; with an
    intercept only.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum.
    rows : ndarray of shape (k,)
        Samples to leave out, none of them alone in its class.
    rounds : int, default=3
        Number of times the balls are made smaller.

    Returns
    -------
    radius : ndarray of shape (k,)
        Bound of ``||w' - w||``.
    low, high : ndarray of shape (k,)
        Interval that contains every optimal h_r' = y_r f'(x_r).
    """
    y, C, K = problem.y, problem.C, problem.K
    sign, t = y[rows], solution.alpha[rows]
    g = solution.decision_values - solution.intercept
    ends = np.asarray(solution.intercept_interval)
    high = sign * g[rows] + np.minimum(sign * ends[0], sign * ends[1])
    diagonal = K.diagonal()
    squared = diagonal + diagonal[rows, None] - 2.0 * K[rows]
    distances = np.sqrt(np.maximum(squared, 0.0))
    # In the sign of r, so that the lower end is the one that is asked for.
    at = sign[:, None] * (y - (g - g[rows, None]))
    weights = np.tile(C, (rows.size, 1))
    weights[np.arange(rows.size), rows] = 0.0
    level = (weights * (y == sign[:, None])).sum(axis=1)

    def worst(radius: FloatArray) -> FloatArray:
        return weighted_median_intervals(
            at - radius[:, None] * distances, weights, level
        )[0]

    reach = t * distances.max(axis=1)
    short = np.maximum(0.0, high - worst(np.zeros(rows.size)))
    radius = 0.5 * (reach + np.sqrt(reach**2 + 4.0 * t * short))
    low = worst(radius)
    for _ in range(rounds):
        radius = np.minimum(radius, np.sqrt(t * np.maximum(0.0, high - low)))
        low = worst(radius)
    return radius, low, high


def _distances(K: FloatArray, r: int) -> FloatArray:
    """Distances of all samples to sample r in feature space, (n,)."""
    squared: FloatArray = K.diagonal() + K[r, r] - 2.0 * K[r]
    return np.sqrt(np.maximum(squared, 0.0))


def _signed(y_r: float, low: float, high: float) -> tuple[float, float]:
    """Turn an interval of the margin h = y f into one of f."""
    return (low, high) if y_r > 0 else (-high, -low)
