# SPDX-License-Identifier: BSD-3-Clause
"""The span: how far a support vector is from what the free ones can stand in for."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.solve import Solution, invert

# Below this reciprocal condition number distances come from least squares.
SINGULAR = 1e-12


def span_squared(problem: Problem, solution: Solution) -> FloatArray:
    r"""Squared distance of each support vector to the hull of the free ones.

    Vapnik & Chapelle (2000), eq. (5) of Tsuda et al. (2001), with **free** support
    vectors M only: :math:`S_p^2` is the squared distance of :math:`\varphi_p` to the
    affine hull of :math:`M \setminus p` (to the linear span without an intercept).
    With :math:`\tilde K = [[K_{MM}, 1], [1', 0]]`, or :math:`K_{MM}`::

        p free:     1 / (inverse of K~)_pp
        p bounded:  K_pp - v' (inverse of K~) v,   v = (K_Mp; 1)

    If M, less p, and the bounded samples stay the same while alpha_p goes to 0, the
    left-out margin is exactly :math:`h_p - \alpha_p S_p^2`.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum.

    Returns
    -------
    ndarray of shape (n,)
        0 where alpha = 0; inf where no other free support vector holds the intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.kernel import Problem
    >>> from leaveout.loo import span_squared
    >>> from leaveout.solve import solve_svc
    >>> x = np.array([-2.0, -1.0, 1.0, 3.0])
    >>> problem = Problem(np.outer(x, x), np.sign(x), np.full(4, 10.0), False)
    >>> span_squared(problem, solve_svc(problem))
    array([0., 1., 0., 0.])
    """
    free = np.flatnonzero(solution.free)
    rest = np.flatnonzero((solution.beta != 0.0) & ~solution.free)
    spans = np.zeros(problem.n_samples)
    inverse = _inverse(_bordered(problem, free))
    if inverse is None:
        for p in np.concatenate([free, rest]):
            spans[p] = _distance_squared(problem, np.setdiff1d(free, [p]), int(p))
        return spans
    with np.errstate(divide="ignore"):
        spans[free] = 1.0 / np.maximum(np.diag(inverse)[: free.size], 0.0)
    if free.size or not problem.fit_intercept:
        v = _columns(problem, free, rest)
        spans[rest] = problem.K.diagonal()[rest] - np.einsum("ip,ip->p", v, inverse @ v)
    else:
        spans[rest] = np.inf
    return np.maximum(spans, 0.0)


def _bordered(problem: Problem, free: IntArray) -> FloatArray:
    """K_MM, with a border of ones if there is an intercept."""
    K = problem.K[np.ix_(free, free)]
    if not problem.fit_intercept:
        return K
    return np.block([[K, np.ones((free.size, 1))], [np.ones(free.size), 0.0]])


def _columns(problem: Problem, free: IntArray, points: IntArray) -> FloatArray:
    """Return v = (K_Mp; 1) of each point, as columns."""
    v = problem.K[np.ix_(free, points)]
    return np.vstack([v, np.ones(points.size)]) if problem.fit_intercept else v


def _inverse(matrix: FloatArray) -> FloatArray | None:
    """Inverse, or None if the matrix is singular to rounding."""
    if matrix.size == 0 or (matrix.shape == (1, 1) and matrix[0, 0] == 0.0):
        return np.zeros_like(matrix)  # nobody is free: the caller knows
    inverse = invert(matrix)
    if inverse is None:
        return None
    size = np.abs(matrix).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
    return inverse if size * SINGULAR < 1.0 else None


def _distance_squared(problem: Problem, hull: IntArray, p: int) -> float:
    """Squared distance of point p to the hull of some others, by least squares."""
    if hull.size == 0:
        return np.inf if problem.fit_intercept else float(problem.K[p, p])
    matrix, v = _bordered(problem, hull), _columns(problem, hull, np.array([p]))[:, 0]
    weights = linalg.lstsq(matrix, v, check_finite=False)[0]
    return max(0.0, float(problem.K[p, p] - v @ weights))
