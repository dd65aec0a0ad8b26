# SPDX-License-Identifier: BSD-3-Clause
"""Rigorous intervals for a left-out value, without solving the left-out problem.

w, b is the full solution or a point near it, w', b' the solution without r, g = K beta,
and h_r = y_r f(x_r). If ``||w' - w|| <= radius`` then, with ``v_i = y_i - (g_i - g_r)``
and ``e_i = radius ||phi_i - phi_r||`` over i != r, every optimal f'(x_r) lies between
order statistics of v - e and of v + e (docs/method/walk). b does not appear, so it need
not be regularised. Without an intercept the interval is g_r -+ radius sqrt(K_rr).

The radius: ``||w' - w||^2 <= alpha_r (h_r - h_r')``. The lower end of the interval
bounds h_r' from below, which gives a smaller radius, and so on; every round is valid.
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
    problem: Problem, r: int, g: FloatArray, reach: FloatArray
) -> tuple[float, float]:
    """Bound f'(x_r), with an intercept; reach = radius ||phi_i - phi_r|| per sample."""
    others = np.arange(problem.n_samples) != r
    y, C = problem.y[others], problem.C[others]
    at = y - (g[others] - g[r])
    reach = reach[others]
    level = float(C[y > 0].sum())
    low, _ = weighted_median_interval(at - reach, C, level)
    _, high = weighted_median_interval(at + reach, C, level)
    return low, high


def loo_interval_from_solution(
    problem: Problem, solution: Solution, r: int, *, rounds: int = 5
) -> tuple[float, float]:
    """Return an interval that contains every optimal f'(x_r), from the full solution.

    Without an intercept it is the bound of Jaakkola & Haussler (1999):
    h_r - alpha_r K_rr <= h_r' <= h_r. Further rounds than five settle hardly any
    more samples.
    """
    y_r, t = float(problem.y[r]), float(solution.alpha[r])
    g = solution.decision_values - solution.intercept
    h = y_r * float(g[r])
    if not problem.fit_intercept:
        return _signed(y_r, h - t * float(problem.K[r, r]), h)
    # h_r at the b that makes it smallest: an upper bound of every h_r'.
    h += min(y_r * b for b in solution.intercept_interval)
    if t == 0.0:
        return loo_interval_in_ball(problem, r, g, np.zeros_like(g))
    distances = distances_from(problem.K, slice(r, r + 1))[0]

    def worst(radius: float) -> float:
        low, high = loo_interval_in_ball(problem, r, g, radius * distances)
        return low if y_r > 0 else -high

    reach = t * float(distances.max())
    short = max(0.0, h - worst(0.0))
    if np.isinf(short):  # the only sample of its class
        return _signed(y_r, -np.inf, h)
    radius = 0.5 * (reach + float(np.sqrt(reach**2 + 4.0 * t * short)))
    for _ in range(rounds):
        radius = min(radius, float(np.sqrt(t * max(0.0, h - worst(radius)))))
    return _signed(y_r, worst(radius), h)


def left_out_radii(
    problem: Problem, solution: Solution, rows: IntArray, *, rounds: int = 3
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bound ``||w' - w||`` and h_r' for each of some samples; with an intercept only.

    No sample may be the only one of its class. Return radius, lower and upper bounds of
    h_r'; the same as :func:`loo_interval_from_solution`, many samples at a time.
    """
    y, C, K = problem.y, problem.C, problem.K
    sign, t = y[rows], solution.alpha[rows]
    g = solution.decision_values - solution.intercept
    ends = np.asarray(solution.intercept_interval)
    high = sign * g[rows] + np.minimum(sign * ends[0], sign * ends[1])
    distances = distances_from(K, rows)
    # Multiplied by the sign of r, so that the lower end is the relevant one.
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


def distances_from(K: FloatArray, rows: IntArray | slice) -> FloatArray:
    """Distances of some samples to all samples in feature space, (k, n)."""
    diagonal = K.diagonal()
    squared = diagonal + diagonal[rows, None] - 2.0 * K[rows]
    return np.sqrt(np.maximum(squared, 0.0))


def _signed(y_r: float, low: float, high: float) -> tuple[float, float]:
    """Convert an interval of the margin h = y f to one of f."""
    return (low, high) if y_r > 0 else (-high, -low)
