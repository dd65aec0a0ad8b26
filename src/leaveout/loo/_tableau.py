# SPDX-License-Identifier: BSD-3-Clause
r"""The shared linear algebra of all walks: a principal-pivot tableau, by BLAS-3.

Bordered kernel ``[[0, 1'], [1, K]]``, basis B = {bias} and M. With A its inverse on B,
the tableau is (docs/method/walk)::

    rows \ columns        j in M            j not in M
    i in M               A_ij              -Bm_ij           Bm = A (1; K_M.)
    i not in M           Bm_ji             S_ij = K_ij - (1; K_Mi)' A (1; K_Mj)

A comes from the Cholesky factor L of K_MM + c 11', positive definite although K_MM may
be singular; S and Bm do not depend on c. The bias row is never needed: f is followed
itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, blas, lapack

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
    V : ndarray of shape (m + 2, n)
        Y = L^-1 (K_M. + c), then d = (1 - 1'P (K_M. + c)) / sqrt(1'P 1) with
        P = (K_MM + c 11')^-1, then ones.
    weights : ndarray of shape (m + 2,)
        S = K + V' diag(weights) V: -1 for Y, +1 for d, c for the ones (the last two 0
        without an intercept).
    Bm : ndarray of shape (m, n)
        Affine coefficients of every point on M; the identity on M's own columns.
    A : ndarray of shape (m, m)
        Inverse of the bordered matrix, without its bias row and column.
    """

    K: FloatArray
    members: IntArray
    V: FloatArray
    weights: FloatArray
    Bm: FloatArray
    A: FloatArray

    def write_columns(self, indices: IntArray, out: FloatArray) -> None:
        """Write columns of the tableau, one a row, into out (len(indices), n)."""
        place = np.full(self.K.shape[0], -1)
        place[self.members] = np.arange(self.members.size)
        inside = np.flatnonzero(place[indices] >= 0)
        outside = np.flatnonzero(place[indices] < 0)
        own = place[indices[inside]]
        out[inside] = self.Bm[own]
        out[inside[:, None], self.members] = self.A[own]
        others = indices[outside]
        coefficients = self.V[:, others].T * self.weights
        if inside.size == 0:
            S = np.matmul(coefficients, self.V, out=out)
        else:
            S = coefficients @ self.V
        S += self.K[others]
        S[:, self.members] = -self.Bm[:, others].T
        if inside.size:
            out[outside] = S


def build_tableau(problem: Problem, solution: Solution) -> Tableau:
    """Factor the bordered kernel on the free support vectors; M must not be empty.

    About n |M|^2 flops twice; every column costs another 2 n |M|. Raises
    ``numpy.linalg.LinAlgError`` if the bordered matrix is numerically singular.
    """
    K, n = problem.K, problem.n_samples
    members = np.flatnonzero(solution.free)
    m = members.size
    c = (float(K.diagonal().mean()) or 1.0) if problem.fit_intercept else 0.0
    V = np.empty((m + 2, n))
    np.take(K, members, axis=0, out=V[:m])
    V[:m] += c
    V[m], V[m + 1] = 0.0, 1.0
    # LAPACK reads a C-ordered array as its transpose: L' there is our L.
    upper, failed = lapack.dpotrf(V[:m, members].T, lower=0, overwrite_a=1)
    if failed:
        raise LinAlgError("the bordered kernel on the margin is singular")
    # OpenBLAS multiplies by a triangle two to four times as fast as it solves with one.
    inverse, _ = lapack.dtrtri(upper, lower=0, overwrite_c=1)
    # Y' := (K_M. + c)' L^-T,  Bm' := Y' L^-1, in place
    _multiply_in_place(inverse, V[:m], transposed=False)
    Bm = V[:m].copy()
    _multiply_in_place(inverse, Bm, transposed=True)
    A = _gram_of_triangle(inverse)
    if problem.fit_intercept:
        w = A.sum(axis=0)
        w /= np.sqrt(w.sum())
        # 1'P (K_M. + c) = 1'(P (K_M. + c)), the column sums of Bm so far
        V[m] = (1.0 - Bm.sum(axis=0)) / w.sum()
        _add_outer(A, w, -w)
        _add_outer(Bm, w, V[m])
    weights = np.concatenate([np.full(m, -1.0), [1.0, c]])
    return Tableau(K, members, V, weights, Bm, A)


def _multiply_in_place(
    inverse: FloatArray, rows: FloatArray, *, transposed: bool
) -> None:
    """Replace the C-ordered rows by L^-1 rows, or by L^-T rows; inverse = L^-T."""
    product = blas.dtrmm(
        1.0, inverse, rows.T, side=1, lower=0, trans_a=int(transposed), overwrite_b=1
    )
    if not np.shares_memory(product, rows):
        rows[:] = product.T


def _gram_of_triangle(inverse: FloatArray) -> FloatArray:
    """(L L')^-1 = L^-T L^-1 as a full symmetric matrix; inverse = L^-T, upper."""
    product, _ = lapack.dlauum(inverse, lower=0, overwrite_c=1)
    full = np.triu(product, 1)
    full += product.T
    return full


def _add_outer(matrix: FloatArray, left: FloatArray, right: FloatArray) -> None:
    """Add ``left right'`` to a C-ordered matrix, in place."""
    total = blas.dger(1.0, right, left, a=matrix.T, overwrite_a=1)
    if not np.shares_memory(total, matrix):
        matrix[:] = total.T
