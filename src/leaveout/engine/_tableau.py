# SPDX-License-Identifier: BSD-3-Clause
r"""The shared linear algebra of all walks: a principal-pivot tableau, by BLAS-3.

Bordered kernel ``[[0, 1'], [1, K]]``, basis B = {b} and M. With A its inverse on B,
the tableau is (docs/method/walk)::

    rows \ columns        j in M            j not in M
    i in M               A_ij              -Bm_ji           Bm = (1, K_.M) A
    i not in M           Bm_ij             S_ij = K_ij - (1, K_iM) A (1, K_jM)'

A comes from the Cholesky factor L of K_MM + c 11', positive definite although K_MM may
be singular; S and Bm do not depend on c. The row of b is never needed: f is followed
itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, lapack

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._problem import Problem, Solution
from leaveout.engine._walk_fast import fill_factors, write_columns
from leaveout.run._parallel import map_chunks

# Samples worked on at a time: enough for BLAS-3, few enough to share out evenly.
BLOCK = 96
LU = tuple[FloatArray, np.ndarray]


@dataclass(frozen=True)
class Tableau:
    """Factors from which any column of the tableau follows.

    With P = (K_MM + c 11')^-1, V has the columns Y = (K_.M + c) L^-T, then d =
    (1 - (K_.M + c) P 1) / sqrt(1'P 1), then ones, and is zero for members;
    S = K + V diag(weights) V' with weights -1 for Y, +1 for d, c for the ones (the last
    two 0 without an intercept).
    """

    K: FloatArray  # (n, n)
    members: IntArray  # (m,), the free support vectors M
    V: FloatArray  # (n, m + 2)
    weights: FloatArray  # (m + 2,)
    Bm: FloatArray  # (n, m), affine coefficients on M; the identity for M itself
    A: FloatArray  # (m, m), inverse of the bordered matrix without the intercept

    def write_columns(
        self, indices: IntArray, out: FloatArray, n_threads: int = 1
    ) -> None:
        """Write columns of the tableau, one a row, into out (len(indices), n)."""
        indices = np.ascontiguousarray(indices)
        place = np.full(self.K.shape[0], -1)
        place[self.members] = np.arange(self.members.size)

        def write(part: slice) -> None:
            write_columns(
                self.K, self.members, place, self.V, self.weights, self.Bm, self.A,
                indices[part], out[part],
            )  # fmt: skip

        map_chunks(write, indices.size, n_threads, BLOCK)


def build_tableau(problem: Problem, solution: Solution, n_threads: int = 1) -> Tableau:
    """Factor the bordered kernel on the free support vectors; M must not be empty.

    About |M|^3 + 2 (n - |M|) |M|^2 flops; every column outside M costs another
    2 n |M|. Raises ``numpy.linalg.LinAlgError`` if the bordered matrix is numerically
    singular.
    """
    K, n = problem.K, problem.n_samples
    members, others = np.flatnonzero(solution.free), np.flatnonzero(~solution.free)
    m = members.size
    c = (float(K.diagonal().mean()) or 1.0) if problem.fit_intercept else 0.0
    inverse = _inverse_factor(K[np.ix_(members, members)] + c)
    A = _gram_of_triangle(inverse, n_threads)
    unit = np.empty(0)
    if problem.fit_intercept:
        unit = A.sum(axis=0)
        unit /= np.sqrt(unit.sum())
        A -= np.multiply.outer(unit, unit)
    V, Bm = np.zeros((n, m + 2)), np.zeros((n, m))
    Bm[members, np.arange(m)] = 1.0

    def fill(part: slice) -> None:
        fill_factors(K, members, others[part], inverse, unit, c, V, Bm)

    map_chunks(fill, others.size, n_threads, BLOCK)
    weights = np.concatenate([np.full(m, -1.0), [1.0, c]])
    return Tableau(K, members, V, weights, Bm, A)


def _inverse_factor(matrix: FloatArray) -> FloatArray:
    """Return L^-T, upper triangular in Fortran order, of a matrix L L'."""
    upper, failed = lapack.dpotrf(matrix.T, lower=0, overwrite_a=1)
    if failed:
        raise LinAlgError("the bordered kernel on the margin is singular")
    # OpenBLAS multiplies by a triangle two to four times as fast as it solves with one.
    inverse, _ = lapack.dtrtri(upper, lower=0, overwrite_c=1)
    return inverse


def _gram_of_triangle(inverse: FloatArray, n_threads: int) -> FloatArray:
    """(L L')^-1 = L^-T L^-1 as a full symmetric matrix; inverse = L^-T, upper."""
    m = inverse.shape[0]
    full = np.empty((m, m))

    def multiply(part: slice) -> None:
        # Row i of L^-T begins at i: the product of rows i and j <= i does, too.
        start, stop = part.start, part.stop
        np.matmul(
            inverse[part, start:], inverse[:stop, start:].T, out=full[part, :stop]
        )
        full[:start, part] = full[part, :start].T

    map_chunks(multiply, m, n_threads, BLOCK)
    return full


def factor_lu(matrix: FloatArray) -> LU:
    """Return LU factors with pivots; LinAlgError if the matrix is singular."""
    lu, pivots, info = lapack.dgetrf(matrix)
    if info != 0 or not np.isfinite(lu).all():
        raise LinAlgError("singular matrix")
    return lu, pivots


def solve_lu(factors: LU, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    """Solve with the factors of :func:`factor_lu`."""
    return lapack.dgetrs(*factors, right, trans=int(transposed))[0]


def invert(matrix: FloatArray) -> FloatArray | None:
    """Return the inverse, None if the matrix is singular to the last bit."""
    try:
        inverse: FloatArray = np.linalg.inv(matrix).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return None
    return inverse if np.isfinite(inverse).all() else None
