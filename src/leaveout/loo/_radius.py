# SPDX-License-Identifier: BSD-3-Clause
"""The smallest ball around the samples in feature space, and the L2-SVM."""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray
from leaveout.kernel import Problem
from leaveout.solve import Solution, solve_svc


def enclosing_radius_squared(
    K: FloatArray, *, tol: float = 1e-6, max_iter: int = 10_000
) -> float:
    """Squared radius of a ball that holds all samples, nearly the smallest.

    Maximises ``sum_i beta_i K_ii - beta' K beta`` over the simplex by steps towards the
    farthest point and away from the nearest that has weight. For any beta the largest
    distance from its centre is the radius of a ball around all samples, so the
    answer is never too small; it is too large by a share of at most ``tol`` unless
    ``max_iter`` steps are used up.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([-1.0, 0.0, 3.0])
    >>> round(enclosing_radius_squared(np.outer(x, x)), 4)
    4.0
    """
    n, diagonal = K.shape[0], K.diagonal()
    beta = np.zeros(n)
    first = int(np.argmax(diagonal - 2.0 * K[0]))
    beta[first] = 1.0
    g, norm = K[:, first].copy(), float(K[first, first])
    best = np.inf
    for _ in range(max_iter):
        distance = diagonal - 2.0 * g + norm  # squared, to the centre
        far = int(np.argmax(distance))
        best = min(best, float(distance[far]))
        value = float(beta @ diagonal) - norm  # a lower bound of R^2
        if best - value <= tol * max(best, 1e-300):
            break
        held = np.flatnonzero(beta)
        near = int(held[np.argmin(distance[held])])
        toward = distance[far] - value >= value - distance[near]
        p = far if toward else near
        limit = 1.0 if toward else -beta[near] / max(1.0 - beta[near], 1e-300)
        # beta + t (e_p - beta): the value is concave in t, with slope and curvature
        slope, curvature = distance[p] - value, 2.0 * distance[p]
        t = slope / curvature if curvature > 0.0 else 0.0
        t = min(t, limit) if toward else max(t, limit)
        if t == 0.0:
            break
        beta *= 1.0 - t
        beta[p] = 0.0 if t == limit and not toward else beta[p] + t
        norm = (1.0 - t) ** 2 * norm + 2.0 * t * (1.0 - t) * g[p] + t * t * K[p, p]
        g = (1.0 - t) * g + t * K[:, p]
    return best


def solve_l2_svm(problem: Problem) -> tuple[Problem, Solution]:
    """Solve the machine with squared hinge: a hard margin with K + diag(1 / C).

    ``min 1/2 ||w||^2 + 1/2 sum_i C_i xi_i^2``; the slacks are alpha_i / C_i. The left-
    out values are those of the hard margin, since a sample meets only others.
    """
    K = problem.K + np.diag(1.0 / problem.C)
    # w = 0 costs sum(C) / 2, so C_i xi_i^2 <= sum(C) and alpha_i <= sqrt(C_i sum(C)):
    # twice that is never reached.
    box = 2.0 * np.sqrt(problem.C * problem.C.sum())
    hard = Problem(K, problem.y, box, problem.fit_intercept)
    return hard, solve_svc(hard)
