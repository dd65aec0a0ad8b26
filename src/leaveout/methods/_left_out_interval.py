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
from leaveout.engine._certificate import weighted_median_intervals
from leaveout.engine._problem import Problem, Solution

# Samples at a time.
BLOCK = 256


def left_out_intervals(
    problem: Problem, solution: Solution, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return intervals that contain every optimal f'(x_r), from the full solution.

    With an intercept no sample may be the only one of its class. Without one it is the
    bound of Jaakkola & Haussler (1999): h_r - alpha_r K_rr <= h_r' <= h_r.
    """
    sign = problem.y[rows]
    if problem.fit_intercept:
        parts = np.split(rows, range(BLOCK, rows.size, BLOCK))
        # Further rounds than five settle hardly any more samples.
        ends = [left_out_radii(problem, solution, r, rounds=5)[1:] for r in parts]
        low, high = np.concatenate(ends, axis=1)
    else:
        high = sign * solution.decision_values[rows]
        low = high - solution.alpha[rows] * problem.K.diagonal()[rows]
    return np.where(sign > 0, low, -high), np.where(sign > 0, high, -low)


def left_out_radii(
    problem: Problem, solution: Solution, rows: IntArray, *, rounds: int = 3
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bound ``||w' - w||`` and h_r' for each of some samples; with an intercept only.

    No sample may be the only one of its class. Return radius, lower and upper bounds of
    h_r'.
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


def distances_from(K: FloatArray, rows: IntArray) -> FloatArray:
    """Distances of some samples to all samples in feature space, (k, n)."""
    diagonal = K.diagonal()
    squared = diagonal + diagonal[rows, None] - 2.0 * K[rows]
    return np.sqrt(np.maximum(squared, 0.0))
