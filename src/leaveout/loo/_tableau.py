# SPDX-License-Identifier: BSD-3-Clause
"""The shared linear algebra of all walks: a principal-pivot tableau, by BLAS-3.

Bordered kernel ``[[0, 1'], [1, K]]``, basis B = {bias} and M. With A its inverse on B,
the tableau is (docs/method/walk)::

    rows \\ columns       j in M            j not in M
    i in M               A_ij              -Bm_ij           Bm = A (1; K_M.)
    i not in M           Bm_ji             S_ij = K_ij - (1; K_Mi)' A (1; K_Mj)

A comes from the Cholesky factor L of K_MM + c 11', positive definite although K_MM may be
singular; S and Bm do not depend on c. The bias row is never needed: f is followed itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.solve import Solution


@dataclass(frozen=True)
class Tableau:
    """Factors from which any column of the tableau follows.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix.
    members : ndarray of shape (m,)
        M, the free support vectors.
    shift : float
        c, zero without an intercept.
    Y : ndarray of shape (m, n)
        L^-1 (K_M. + c).
    Bm : ndarray of shape (m, n)
        Affine coefficients of every point on M; the identity on M's own columns.
    A : ndarray of shape (m, m)
        Inverse of the bordered matrix, without its bias row and column.
    d : ndarray of shape (n,)
        (1 - 1'(K_MM + c)^-1 (K_M. + c)) / sqrt(1'(K_MM + c)^-1 1); 0 without intercept.
    """

    K: FloatArray
    members: IntArray
    shift: float
    Y: FloatArray
    Bm: FloatArray
    A: FloatArray
    d: FloatArray

    def columns(self, indices: IntArray) -> FloatArray:
        """Columns of the tableau, one a row, (len(indices), n)."""
        place = np.full(self.K.shape[0], -1)
        place[self.members] = np.arange(self.members.size)
        out = np.empty((indices.size, self.K.shape[0]))
        inside = place[indices] >= 0
        own = place[indices[inside]]
        out[inside] = self.Bm[own]
        out[np.ix_(inside, self.members)] = self.A[own]
        others = indices[~inside]
        out[~inside] = self._schur(others)
        out[np.ix_(~inside, self.members)] = -self.Bm[:, others].T
        return out

    def _schur(self, indices: IntArray) -> FloatArray:
        """Rows of S = K + c - Y'Y + d d', (len(indices), n)."""
        S = self.Y[:, indices].T @ self.Y
        np.subtract(self.K[indices], S, out=S)
        S += self.shift
        S += np.multiply.outer(self.d[indices], self.d)
        return S


def build_tableau(problem: Problem, solution: Solution) -> Tableau:
    """Factor the bordered kernel on the free support vectors; M must not be empty.

    About n |M|^2 flops twice; every column costs another 2 n |M|. Raises
    ``numpy.linalg.LinAlgError`` if the bordered matrix is numerically singular.
    """
    K = problem.K
    members = np.flatnonzero(solution.free)
    c = float(K.diagonal().mean()) if problem.fit_intercept else 0.0
    rows = K[members] + c
    L = cholesky(rows[:, members], lower=True, check_finite=False)
    Y = solve_triangular(L, rows, lower=True, check_finite=False)
    Bm = solve_triangular(L, Y, lower=True, trans="T", check_finite=False)
    inverse = solve_triangular(L, np.eye(members.size), lower=True, check_finite=False)
    A = inverse.T @ inverse
    d = np.zeros(K.shape[0])
    if problem.fit_intercept:
        u = inverse.sum(axis=1)
        w, norm = inverse.T @ u, float(np.sqrt(u @ u))
        d = (1.0 - u @ Y) / norm
        A -= np.multiply.outer(w / norm, w / norm)
        Bm += np.multiply.outer(w / norm, d)
    return Tableau(K, members, c, Y, Bm, A, d)
