# SPDX-License-Identifier: BSD-3-Clause
"""Reference solutions of the two linear programming classifiers.

LPM, with a = (p, q)::

    min  sum_j (p_j + q_j) + sum_i C_i xi_i
    s.t. y_i (sum_j (p_j - q_j) K_ij + b) + xi_i >= 1,   p, q, xi >= 0

LOOM::

    min  sum_i w_i xi_i
    s.t. y_i (sum_{j != i} a_j y_j K_ij + (1 - nu) a_i y_i K_ii + b) + xi_i >= 1
         a, xi >= 0

Both are written out over (a, b, xi) and solved from scratch. Samples with C = 0 or
w = 0 are removed first.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def lpm_program(K, y, C, fit_intercept=True):
    signed = y[:, None] * K
    return _program(np.hstack([signed, -signed]), 1.0, y, C, fit_intercept)


def loom_program(K, y, w, fit_intercept, nu):
    M = K * np.outer(y, y)
    np.fill_diagonal(M, (1.0 - nu) * np.diag(K))
    return _program(M, 0.0, y, w, fit_intercept)


def _program(M, price, y, C, fit_intercept):
    """Return cost, A_ub, b_ub and bounds for linprog: M a + y b + xi >= 1."""
    n, m = M.shape
    A = -np.hstack([M, y[:, None], np.eye(n)])
    cost = np.concatenate([np.full(m, price), [0.0], C])
    b_bounds = (None, None) if fit_intercept else (0.0, 0.0)
    return cost, A, -np.ones(n), [(0, None)] * m + [b_bounds] + [(0, None)] * n


def solve_by_clarabel(cost, A, b, bounds):
    """Return the optimal value of linprog's program by an interior point."""
    N = cost.size
    positive = [k for k, (low, _) in enumerate(bounds) if low == 0]
    fixed = [k for k, (_, high) in enumerate(bounds) if high == 0]
    rows = np.vstack([A, -np.eye(N)[positive], np.eye(N)[fixed]])
    right = np.concatenate([b, np.zeros(len(positive) + len(fixed))])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    P, rows = sparse.csc_matrix((N, N)), sparse.csc_matrix(rows)
    cones = [clarabel.NonnegativeConeT(right.size)]
    solver = clarabel.DefaultSolver(P, cost, rows, right, cones, settings)
    return solver.solve().obj_val


def loom_smallest_sum(cost, *constraints):
    """Return the smallest sum of a among the optima, by two linear programs."""
    return _smallest(_sum_of(cost.size // 2), *_at_its_best(cost, *constraints))


def lpm_range(K, y, C, point, fit_intercept=True, slack=1e-9):
    """Return least and largest value of point @ a + b over all optima."""
    value = np.concatenate([point, -point, [1.0], np.zeros(len(y))])
    optima = _at_its_best(*lpm_program(K, y, C, fit_intercept), slack)
    return _smallest(value, *optima), -_smallest(-value, *optima)


def loom_range(K, y, w, point, fit_intercept=False, nu=1.0):
    """Return the ends of point @ (a y) + b over the optima with the smallest sum."""
    value = np.concatenate([point * y, [1.0], np.zeros(len(y))])
    optima = _at_its_best(*loom_program(K, y, w, fit_intercept, nu))
    optima = _at_its_best(_sum_of(len(y)), *optima, slack=1e-8)
    return _smallest(value, *optima), -_smallest(-value, *optima)


def loo_ranges(range_of, K, y, C, fit_intercept, *nu, rows=None):
    """Return (low, high) of f at each left-out sample, (n, 2)."""
    ranges = []
    for r in range(len(y)) if rows is None else rows:
        rest = np.flatnonzero((np.arange(len(y)) != r) & (C > 0))
        part = K[np.ix_(rest, rest)], y[rest], C[rest], K[r, rest]
        ranges.append(range_of(*part, fit_intercept, *nu))
    return np.array(ranges)


def _sum_of(n):
    """Return the cost sum_j a_j of the LOOM."""
    return np.repeat([1.0, 0.0], [n, n + 1])


def _at_its_best(cost, A, b, bounds, slack=1e-9):
    """Return the points whose cost exceeds the smallest by a factor of ``slack``."""
    best = _smallest(cost, A, b, bounds)
    return np.vstack([A, cost]), np.append(b, best + slack * max(1.0, best)), bounds


def _smallest(cost, A, b, bounds):
    """Return the smallest cost by linprog; -inf if there is none."""
    result = linprog(cost, A_ub=A, b_ub=b, bounds=bounds)
    if result.status == 3:
        return -np.inf
    assert result.status == 0, result.message
    return result.fun
