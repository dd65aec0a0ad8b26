# SPDX-License-Identifier: BSD-3-Clause
"""Independent truth for the two classifiers that are linear programs.

The linear programming machine, with the variables stacked as (p, q, b, xi)::

    min  sum_j (p_j + q_j) + sum_i C_i xi_i
    s.t. y_i (sum_j (p_j - q_j) K_ij + b) + xi_i >= 1,   p, q, xi >= 0

The leave-one-out machine, with the variables stacked as (a, b, xi)::

    min  sum_i w_i xi_i
    s.t. y_i (sum_{j != i} a_j y_j K_ij + (1 - nu) a_i y_i K_ii + b) + xi_i >= 1
         a, xi >= 0

Both primals are written out and solved from scratch, by SciPy's linprog or by
clarabel's interior point. Samples with C = 0 or w = 0 are taken out beforehand.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def _lpm_program(K, y, C, fit_intercept):
    """Return cost, A_ub, b_ub and bounds for linprog."""
    n = len(y)
    signed = y[:, None] * K
    A = np.hstack([-signed, signed, -y[:, None], -np.eye(n)])
    cost = np.concatenate([np.ones(2 * n), [0.0], C])
    b_bounds = (None, None) if fit_intercept else (0.0, 0.0)
    bounds = [(0, None)] * (2 * n) + [b_bounds] + [(0, None)] * n
    return cost, A, -np.ones(n), bounds


def lpm_objective(K, y, C, fit_intercept=True):
    """Return the optimal value by linprog."""
    cost, A, b, bounds = _lpm_program(K, y, C, fit_intercept)
    return _solved(linprog(cost, A_ub=A, b_ub=b, bounds=bounds)).fun


def lpm_clarabel(K, y, C, fit_intercept=True):
    """Return (optimal value, row duals) by an interior point."""
    solution = by_interior_point(*_lpm_program(K, y, C, fit_intercept), tol=1e-11)
    return solution.obj_val, np.array(solution.z)[: len(y)]


def by_interior_point(cost, A, b, bounds, tol):
    """Solve linprog's program by clarabel; the multipliers of A come first."""
    N = cost.size
    positive = [k for k, (low, _) in enumerate(bounds) if low == 0]
    fixed = [k for k, (_, high) in enumerate(bounds) if high == 0]
    blocks = [A, -np.eye(N)[positive], np.eye(N)[fixed]]
    right = np.concatenate([b, np.zeros(len(positive) + len(fixed))])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    return clarabel.DefaultSolver(
        sparse.csc_matrix((N, N)),
        cost,
        sparse.csc_matrix(np.vstack(blocks)),
        right,
        [clarabel.NonnegativeConeT(right.size)],
        settings,
    ).solve()


def lpm_range(K, y, C, point, fit_intercept=True, slack=1e-9):
    """Return least and largest value of point @ a + b over all optima, by two LPs.

    Optima are the feasible points whose cost exceeds the smallest by a share of at
    most ``slack``.
    """
    cost, A, b, bounds = _lpm_program(K, y, C, fit_intercept)
    best = _solved(linprog(cost, A_ub=A, b_ub=b, bounds=bounds)).fun
    value = np.concatenate([point, -point, [1.0], np.zeros(len(y))])
    A, b = np.vstack([A, cost]), np.append(b, best + slack * max(1.0, best))
    ends = []
    for sign in (1.0, -1.0):
        result = linprog(sign * value, A_ub=A, b_ub=b, bounds=bounds)
        ends.append(-sign * np.inf if result.status == 3 else _solved(result).fun)
    return ends[0], -ends[1] if np.isfinite(ends[1]) else np.inf


def lpm_loo_ranges(K, y, C, fit_intercept=True, rows=None):
    """Return (low, high) of f at each left-out sample, (n, 2)."""
    rows = range(len(y)) if rows is None else rows
    ranges = []
    for r in rows:
        rest = np.flatnonzero((np.arange(len(y)) != r) & (C > 0))
        inside = np.ix_(rest, rest)
        ranges.append(lpm_range(K[inside], y[rest], C[rest], K[r, rest], fit_intercept))
    return np.array(ranges)


def _loom_program(K, y, w, fit_intercept, nu):
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
    program = _loom_program(K, y, w, fit_intercept, nu)
    return by_interior_point(*program, tol=1e-10).obj_val


def loom_smallest_sum(K, y, w, fit_intercept=False, nu=1.0):
    """Return (optimal value, smallest sum of a among the optima) by two LPs."""
    cost, A, b, bounds = _loom_program(K, y, w, fit_intercept, nu)
    best = _solved(linprog(cost, A_ub=A, b_ub=b, bounds=bounds)).fun
    A, b = np.vstack([A, cost]), np.append(b, best + 1e-9 * max(1.0, best))
    size = np.concatenate([np.ones(len(y)), np.zeros(len(y) + 1)])
    return best, _solved(linprog(size, A_ub=A, b_ub=b, bounds=bounds)).fun


def loom_range(K, y, w, point, fit_intercept=False, nu=1.0):
    """Return the ends of point @ (a y) + b over the optima with the smallest sum."""
    cost, A, b, bounds = _loom_program(K, y, w, fit_intercept, nu)
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
