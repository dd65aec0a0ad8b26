# SPDX-License-Identifier: BSD-3-Clause
"""Independent reference solutions of epsilon-SVR: an interior-point QP.

The problem, for n points with Gram matrix K, targets y and upper bounds C::

    min_{w,b}  1/2 ||w||^2 + sum_i C_i max(0, |y_i - <w, phi_i> - b| - epsilon)
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse

from oracles.problems import KERNELS, gram


def svr_clarabel(K, y, C, epsilon):
    """Return beta, the lowest and the highest optimal b.

    The interior point is solved in several units of beta; the best end is returned.
    """
    best, least, scale = None, np.inf, C.max()
    for _ in range(3):
        beta = _interior_point(K, y, C, epsilon, scale)
        low, high = optimal_intercepts(y - K @ beta, C, epsilon)
        losses = np.maximum(np.abs(y - K @ beta - 0.5 * (low + high)) - epsilon, 0.0)
        objective = 0.5 * beta @ K @ beta + C @ losses
        if objective < least:
            best, least = (beta, low, high), objective
        scale = max(np.abs(beta).max(), 1e-3 * scale) * 0.7
    return best


def _interior_point(K, y, C, epsilon, scale):
    """Return the dual beta; clarabel sees x / scale, where beta = S x + offset.

    x is alpha+ and alpha-, with beta = alpha+ - alpha-, and if epsilon is 0, where only
    their difference is determined, beta + C. With v = L^T beta and K = L L^T the dual
    is well posed for a singular K, too.
    """
    n = len(y)
    eigenvalues, vectors = np.linalg.eigh(K)
    keep = eigenvalues > 1e-15 * max(eigenvalues[-1], 1e-300)
    L = vectors[:, keep] * np.sqrt(eigenvalues[keep])
    rank = L.shape[1]
    S, offset, top = np.hstack([np.eye(n), -np.eye(n)]), np.zeros(n), np.tile(C, 2)
    if epsilon == 0.0:
        S, offset, top = np.eye(n), -C, 2.0 * C
    m = S.shape[1]
    with_sum = np.vstack([L.T, np.ones(n)])
    equal = np.hstack([with_sum @ S, -np.eye(rank + 1, rank)])
    box = np.hstack([np.eye(m), np.zeros((m, rank))])
    A = sparse.csc_matrix(np.vstack([equal, box, -box]))
    bounds = np.concatenate([-with_sum @ offset, top, np.zeros(m)]) / scale
    P = sparse.csc_matrix(np.diag(np.r_[np.zeros(m), np.full(rank, scale)]))
    q = np.concatenate([epsilon - y @ S, np.zeros(rank)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    cones = [clarabel.ZeroConeT(rank + 1), clarabel.NonnegativeConeT(2 * m)]
    solution = clarabel.DefaultSolver(P, q, A, bounds, cones, settings).solve()
    return S @ (scale * np.asarray(solution.x[:m])) + offset


def optimal_intercepts(rest, C, epsilon):
    """All b that minimise sum_i C_i max(0, |rest_i - b| - epsilon)."""
    ends = np.sort(np.concatenate([rest - epsilon, rest + epsilon]))
    middles = 0.5 * (ends[1:] + ends[:-1])
    # The slope of the sum between two neighbouring kinks.
    away = middles[:, None] - rest
    slopes = (C * np.sign(away) * (np.abs(away) > epsilon)).sum(axis=1)
    flat = 1e-9 * C.sum()
    below, above = slopes < -flat, slopes > flat
    return ends[np.count_nonzero(below)], ends[-1 - np.count_nonzero(above)]


def loo_predictions(K, y, C, epsilon, rows=None):
    """Lowest and highest prediction of each row by the model without it, (n, 2)."""
    found = []
    for r in range(len(y)) if rows is None else rows:
        others = np.delete(np.arange(len(y)), r)
        beta, low, high = svr_clarabel(
            K[np.ix_(others, others)], y[others], C[others], epsilon
        )
        found.append(K[r, others] @ beta + np.array([low, high]))
    return np.array(found)


def random_regression(rng, n=None, epsilon=None):
    """Draw K, y, C and epsilon; ties, duplicates and singular kernels are common."""
    n = int(rng.integers(2, 25)) if n is None else n
    X = rng.normal(size=(n, int(rng.integers(1, 4))))
    y = np.sin(X[:, 0]) + 0.4 * rng.normal(size=n)
    if rng.random() < 1 / 3:
        X = np.round(X)
    if rng.random() < 1 / 3:
        y = np.round(2.0 * y) / 2.0
    if epsilon is None:
        epsilon = float(rng.choice([0.0, 0.05, 0.25, 1.0, 4.0]))
    decades = 3.0 if rng.random() < 1 / 3 else 0.0
    C = 10 ** (rng.uniform(-2, 2) + rng.uniform(-decades / 2, decades / 2, n))
    return gram(X, str(rng.choice(list(KERNELS)))), y, C, epsilon
