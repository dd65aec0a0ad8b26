# SPDX-License-Identifier: BSD-3-Clause
"""Independent truth for the leave-one-out machine: its primal, written out.

    min  sum_i w_i xi_i
    s.t. y_i (sum_{j != i} a_j y_j K_ij + (1 - nu) a_i y_i K_ii + b) + xi_i >= 1
         a, xi >= 0

Variables are stacked as (a, b, xi). Samples with weight 0 are taken out beforehand.
Each program is solved from scratch, by SciPy's linprog or by clarabel's interior point.
"""

from __future__ import annotations

import numpy as np
from lpm_oracles import by_interior_point
from scipy.optimize import linprog


def _program(K, y, w, fit_intercept, nu):
    """Return cost, A_ub, b_ub and bounds for linprog."""
    n = len(y)
    M = K * np.outer(y, y)
    M[np.diag_indices(n)] = (1.0 - nu) * np.diag(K)
    A = np.hstack([-M, -y[:, None], -np.eye(n)])
    cost = np.concatenate([np.zeros(n + 1), w])
    b_bounds = (None, None) if fit_intercept else (0.0, 0.0)
    bounds = [(0, None)] * n + [b_bounds] + [(0, None)] * n
    return cost, A, -np.ones(n), bounds


def loom_clarabel(K, y, w, fit_intercept=False, nu=1.0):
    """Return the optimal value by an interior point."""
    program = _program(K, y, w, fit_intercept, nu)
    return by_interior_point(*program, tol=1e-10).obj_val


def loom_smallest_sum(K, y, w, fit_intercept=False, nu=1.0):
    """Return (optimal value, smallest sum of a among the optima) by two LPs."""
    cost, A, b, bounds = _program(K, y, w, fit_intercept, nu)
    best = _solved(linprog(cost, A_ub=A, b_ub=b, bounds=bounds)).fun
    A, b = np.vstack([A, cost]), np.append(b, best + 1e-9 * max(1.0, best))
    size = np.concatenate([np.ones(len(y)), np.zeros(len(y) + 1)])
    return best, _solved(linprog(size, A_ub=A, b_ub=b, bounds=bounds)).fun


def loom_range(K, y, w, point, fit_intercept=False, nu=1.0):
    """Return the ends of point @ (a y) + b over the optima with the smallest sum."""
    cost, A, b, bounds = _program(K, y, w, fit_intercept, nu)
    best, least = loom_smallest_sum(K, y, w, fit_intercept, nu)
    n = len(y)
    size = np.concatenate([np.ones(n), np.zeros(n + 1)])
    A = np.vstack([A, cost, size])
    b = np.append(b, [best + 1e-9 * max(1.0, best), least + 1e-8 * max(1.0, least)])
    value = np.concatenate([point * y, [1.0], np.zeros(n)])
    ends = []
    for sign in (1.0, -1.0):
        result = linprog(sign * value, A_ub=A, b_ub=b, bounds=bounds)
        ends.append(-np.inf if result.status == 3 else _solved(result).fun)
    return ends[0], -ends[1]


def loom_loo_ranges(K, y, w, fit_intercept=False, nu=1.0):
    """Return (low, high) of f at each left-out sample, (n, 2)."""
    ranges = []
    for r in range(len(y)):
        rest = np.flatnonzero((np.arange(len(y)) != r) & (w > 0))
        inside = np.ix_(rest, rest)
        ranges.append(
            loom_range(K[inside], y[rest], w[rest], K[r, rest], fit_intercept, nu)
        )
    return np.array(ranges)


def _solved(result):
    assert result.status == 0, result.message
    return result
