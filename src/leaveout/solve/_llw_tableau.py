# SPDX-License-Identifier: BSD-3-Clause
"""The tableau at the optimum of Lee, Lin & Wahba's machine, shared by all walks.

With alpha of all entries (numbered ``i * Q + k``) and coordinates w of b = -Z w, the
columns of Z spanning the vectors with sum 0, the conditions of the free entries F and
of the column sums are ``(T z)_S = const`` for z = (alpha, w), S = F and all of w::

    T = [ H + eps   E Z  ]      E: the column of each entry
        [ Z' E'    -delta ]

The two tiny terms make T_SS regular for every F. They are proximal terms around the
full optimum: the problem that is walked through has one optimum at every point of the
walk. A column without a free entry moves its b, fast, until an entry comes in.

Let A = T_SS^-1, R the other entries. Column j says how z_S and the slopes of R change

    with the slope of j in S:    -A_j                T_RS A_j
    with alpha_j, j in R:        -A T_Sj             T_RS A T_Sj - T_Rj
"""

from __future__ import annotations

from threading import Lock

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from leaveout._typing import FloatArray, IntArray, StateArray
from leaveout.solve._llw_pivot import zero_sum_basis
from leaveout.solve._llw_walk_fast import padded
from leaveout.solve._solution import MARGIN

# The proximal weight of alpha; that of a singular H_FF; that of b.
REGULAR, SINGULAR, DELTA = 1e-10, 1e-6, 1e-6
# Share of a null vector of H_FF in an entry that makes it singular.
NULL = 0.01
# Columns of entries beside the margin for which there is room at first.
ROOM = 256
# Columns made at once, so that what they are made of stays small.
BATCH = 64


class LlwTableau:
    """Columns of the tableau: those of S at once, others when they are asked for.

    K + 1 takes the place of K: the same on equal column sums, and regular beside them.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of unit scale.
    state : ndarray of int8, shape (n, Q)
        The sets at the full optimum.

    Attributes
    ----------
    columns : ndarray of shape (n_columns, length)
        Columns, those of S first; rows behind ``n Q + Q - 1`` are padding.
    where : ndarray of int, shape (n Q + Q - 1,)
        Row in ``columns``, or -1.
    """

    def __init__(self, K: FloatArray, state: StateArray) -> None:
        self.K, self.shape = K + 1.0, state.shape
        self.Q = state.shape[1]
        self.n_entries = state.size
        self.basis = zero_sum_basis(self.Q)
        self.entries = np.flatnonzero(state == MARGIN)
        self.coordinates = np.arange(self.n_entries, self.n_entries + self.Q - 1)
        self.basic = np.concatenate([self.entries, self.coordinates])
        self.is_basic = (state == MARGIN).reshape(-1)
        self.length = padded(self.n_entries + self.Q - 1)
        self.where = np.full(self.n_entries + self.Q - 1, -1)
        self.where[self.basic] = np.arange(self.basic.size)
        self.inverse = self._invert()
        self.columns = np.zeros((self.basic.size + ROOM, self.length))
        self._fill_basic()
        self._size, self._lock = self.basic.size, Lock()

    def pull(self, alpha: FloatArray) -> FloatArray:
        """-H alpha = K W, (n, Q)."""
        return self.K @ (alpha.sum(axis=1, keepdims=True) / self.Q - alpha)

    def provide(self, entry: int) -> None:
        """Make the column of an entry, unless it is there."""
        with self._lock:
            if self.where[entry] >= 0:
                return
            if self._size == self.columns.shape[0]:
                # Walks that run keep the old array, whose rows stay what they are.
                grown = np.zeros((2 * self._size, self.length))
                grown[: self._size] = self.columns
                self.columns = grown
            alpha = np.zeros((1, self.Q))
            alpha[0, entry % self.Q] = 1.0
            rows = np.array([entry // self.Q])
            self.columns[self._size] = self.respond(rows, alpha)[0]
            self.where[entry] = self._size
            self._size += 1

    def respond(self, rows: IntArray, alpha: FloatArray) -> FloatArray:
        """Change of all as entries of a sample beside the margin change, (m, length).

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            Samples.
        alpha : ndarray of shape (m, Q)
            The change of each; 0 for entries on the margin.
        """
        moved = np.zeros((rows.size, self.length))
        # T z for z that is not 0 in one sample only
        W = alpha.mean(axis=1, keepdims=True) - alpha
        n_all = self.n_entries
        moved[:, :n_all] = (self.K[rows][:, :, None] * -W[:, None]).reshape(-1, n_all)
        moved[:, n_all : n_all + self.Q - 1] = alpha @ self.basis
        for m, r in enumerate(rows):
            moved[m, r * self.Q : (r + 1) * self.Q] += self.eps * alpha[m]
        force = moved[:, self.basic]
        moved[:, self.basic] = 0.0
        return force @ self.columns[: self.basic.size] - moved

    def shift(self, slope: FloatArray, sums: FloatArray, also: IntArray) -> FloatArray:
        """Change of z_S, and of the slopes of some others, as the constants change.

        Parameters
        ----------
        slope : ndarray of shape (n, Q)
            Added to the slope of every entry.
        sums : ndarray of shape (Q,)
            Added to the column sums.
        also : ndarray of int
            Entries beside S whose change is wanted.
        """
        force = np.concatenate([slope.ravel()[self.entries], sums @ self.basis])
        change = np.zeros(self.length)
        change[self.basic] = self.inverse @ force
        change[also] = slope.ravel()[also] - force @ self.columns[: force.size, also]
        return change

    def _invert(self) -> FloatArray:
        """Cholesky for H + eps, then its border."""
        i, k = np.divmod(self.entries, self.Q)
        H = self.K[np.ix_(i, i)] * ((k[:, None] == k) - 1.0 / self.Q)
        for self.eps in (REGULAR, SINGULAR):
            A = _invert_shifted(H, self.eps)
            if self.eps * A.diagonal().max(initial=0.0) < NULL:
                break
        U = A @ self.basis[k]
        T = np.linalg.inv(self.basis[k].T @ U + DELTA * np.eye(self.Q - 1))
        UT = U @ T
        return np.block([[A - UT @ U.T, UT], [UT.T, -T]])

    def _fill_basic(self) -> None:
        """Columns of S: T_RS A_j beside S, -A_j on it."""
        n, Q = self.shape
        n_free, size = self.entries.size, self.basic.size
        for first in range(0, size, BATCH):
            part = slice(first, min(first + BATCH, size))
            A = self.inverse[part]
            alpha = np.zeros((A.shape[0], n, Q))
            alpha.reshape(-1, n * Q)[:, self.entries] = A[:, :n_free]
            W = alpha.mean(axis=2, keepdims=True) - alpha
            stacked = np.ascontiguousarray(W.transpose(1, 0, 2)).reshape(n, -1)
            slopes = (self.K @ stacked).reshape(n, -1, Q).transpose(1, 0, 2)
            b = A[:, n_free:] @ self.basis.T
            self.columns[part, : self.n_entries] = (b[:, None] - slopes).reshape(
                -1, n * Q
            )
            self.columns[part, self.basic] = -A


def _invert_shifted(H: FloatArray, eps: float) -> FloatArray:
    """(H + eps I)^-1, H positive semi-definite."""
    if H.size == 0:
        return H
    shifted = H.T.copy()
    shifted[np.diag_indices(H.shape[0])] += eps
    factor, failed = lapack.dpotrf(shifted, lower=1, overwrite_a=1)
    if failed:
        raise linalg.LinAlgError
    inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    diagonal = inverse.diagonal().copy()
    lower = np.tril(inverse)
    lower += lower.T.copy()
    lower[np.diag_indices_from(lower)] = diagonal
    return lower
