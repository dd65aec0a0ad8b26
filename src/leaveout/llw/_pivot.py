# SPDX-License-Identifier: BSD-3-Clause
"""Exact finish for the machine of Lee, Lin & Wahba: guess the sets, solve, correct.

Once it is known which alpha are 0, which are C and which are free, alpha and b follow
from one linear system. Entries that break a condition there change sides, all at once
(block principal pivoting, Júdice & Pires 1994) or, if that does not help, one at a
time. A tiny proximal term towards the last point keeps the system regular where kernel
rows repeat each other, and does not move the point it ends at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from leaveout._typing import BoolArray, FloatArray, IntArray, StateArray
from leaveout.engine._problem import BOUNDED, MARGIN, OUTSIDE

# Weight of the proximal term: near an optimum, and further away.
NEAR, FAR = 1e-8, 1e-11
# Block exchanges without fewer violations before single ones, and those at most.
PATIENCE = 5
MAX_ROUNDS = 60


@dataclass
class LlwPoint:
    """Where the pivots ended.

    Parameters
    ----------
    alpha : ndarray of shape (n, Q)
        0 and C to the last bit where ``state`` says so.
    b : ndarray of shape (Q,)
        Intercepts that go with it.
    state : ndarray of int8, shape (n, Q)
        OUTSIDE, MARGIN or BOUNDED.
    settled : bool
        Whether no condition is violated.
    n_iter : int
        Linear systems solved.
    by : str
        The way to it.
    """

    alpha: FloatArray
    b: FloatArray
    state: StateArray
    settled: bool
    n_iter: int
    by: str = "pivots"


def pivot(
    K: FloatArray,
    open_: BoolArray,
    C: FloatArray,
    state: StateArray,
    alpha: FloatArray,
    b: FloatArray,
    tol: float = 1e-11,
    proximity: float = FAR,
    max_rounds: int = MAX_ROUNDS,
) -> LlwPoint:
    """Exchange entries until alpha and b are optimal, or patience ends.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of unit scale.
    open_ : ndarray of bool, shape (n, Q)
        Where there is a variable.
    C : ndarray of shape (n, Q)
        Upper bounds.
    state : ndarray of int8, shape (n, Q)
        The guess.
    alpha, b : ndarray of shape (n, Q) and (Q,)
        A point nearby.
    tol : float, default=1e-11
        Violation of ``G + b <= 0`` or ``>= 0`` that counts, relative to its terms.
    proximity : float, default=1e-11
        Weight of the proximal term.
    max_rounds : int, default=60
        Linear systems at most.

    Returns
    -------
    Pivoted
    """
    state = np.where(open_, state, OUTSIDE).astype(np.int8)
    raised = K + 1.0
    fewest, patience = np.inf, PATIENCE
    settled, n_iter = False, 0
    while not settled and n_iter < max_rounds:
        n_iter += 1
        try:
            alpha, b = _solve_face(raised, C, state, alpha, b, proximity)
        except linalg.LinAlgError:  # an indefinite kernel
            break
        violated, off = violations(K, open_, C, state, alpha, b, tol)
        count = int(violated.sum())
        if count == 0 and off <= tol:
            settled = True
            continue
        if count < fewest:
            fewest, patience = count, PATIENCE
        elif count:
            patience -= 1
            if patience < 0:  # one at a time: the last one (Murty 1974)
                last = np.flatnonzero(violated)[-1]
                violated = np.zeros_like(violated)
                violated.flat[last] = True
        exchange(state, violated, alpha, C)
    outside, bounded = state == OUTSIDE, state == BOUNDED
    alpha = np.clip(np.where(outside, 0.0, np.where(bounded, C, alpha)), 0.0, C)
    return LlwPoint(alpha, b, state, settled, n_iter)


def _solve_face(
    K: FloatArray,
    C: FloatArray,
    state: StateArray,
    alpha: FloatArray,
    b: FloatArray,
    proximity: float,
) -> tuple[FloatArray, FloatArray]:
    """Solve for the free alpha, b and the column sum s, the rest at their bounds.

    ``H_FF a + eps (a - a0) - b_k = 1/(Q-1) - H_FR a_R``, column sums equal to s,
    sum(b) = 0. A column without a free entry keeps its b, or moves it a little if its
    sum does not fit. K + 1 takes the place of K: the same on equal column sums, and
    regular beside them.
    """
    Q = state.shape[1]
    free, fixed = state == MARGIN, np.where(state == BOUNDED, C, 0.0)
    k, i = np.nonzero(free.T)
    factor = _factor_face(K, i, k, Q, proximity)
    basis = zero_sum_basis(Q)
    columns = basis[k]
    stiff = np.where(free.any(axis=0), 0.0, _softness(fixed, alpha))
    swing = _solve_factored(factor, columns)
    border = columns.T @ swing + basis.T @ (stiff[:, None] * basis)
    point, new_b = np.where(free, np.clip(alpha, 0.0, C), fixed), b
    for _ in range(3):  # the first solves, the others refine
        pull = K @ (point.mean(axis=1, keepdims=True) - point)
        u = _solve_factored(factor, 1.0 / (Q - 1) + (pull + new_b)[i, k])
        sums = point.sum(axis=0) + np.bincount(k, u, minlength=Q)
        change = np.linalg.solve(border, (stiff * (b - new_b) - sums) @ basis)
        point[i, k] += u + swing @ change
        new_b = new_b + basis @ change
    return point, new_b


def _factor_face(
    K: FloatArray, i: IntArray, k: IntArray, Q: int, eps: float
) -> FloatArray:
    """Cholesky factor of H_FF + eps I, with a larger eps if rounding asks for it.

    The entries stand column by column; H is -K/Q, on the blocks of a column K (Q-1)/Q.
    """
    H = K[np.ix_(i, i)]
    H /= -Q
    ends = np.append(0, np.cumsum(np.bincount(k, minlength=Q)))
    for a, b in pairwise(ends.tolist()):
        H[a:b, a:b] *= 1 - Q
    while i.size:
        shifted = H.T.copy(order="F")
        shifted[np.diag_indices(i.size)] += eps
        factor, failed = lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return factor
        eps *= 100.0
        if eps > 1.0:
            raise linalg.LinAlgError
    return H


def _solve_factored(factor: FloatArray, right: FloatArray) -> FloatArray:
    """Solve by a Cholesky factor; LAPACK has no systems without unknowns."""
    return lapack.dpotrs(factor, right, lower=1)[0] if right.size else right


@cache
def zero_sum_basis(Q: int) -> FloatArray:
    """Return orthonormal columns that span the vectors with sum 0, (Q, Q - 1)."""
    return linalg.helmert(Q).T


def _softness(fixed: FloatArray, alpha: FloatArray) -> float:
    """How much sum is worth one unit of b, for a column without a free entry."""
    return 0.1 * float(max(fixed.max(initial=0.0), alpha.max(initial=0.0))) + 1e-12


def violations(
    K: FloatArray,
    open_: BoolArray,
    C: FloatArray,
    state: StateArray,
    alpha: FloatArray,
    b: FloatArray,
    tol: float,
) -> tuple[BoolArray, float]:
    """Entries on the wrong side, and how far free ones and sums are from equality."""
    W = alpha.mean(axis=1, keepdims=True) - alpha
    terms = np.maximum(1.0, np.abs(K) @ np.abs(W))
    slope = (1.0 / (state.shape[1] - 1) + K @ W + b) / terms
    return wrong_side(open_, C, state, alpha, slope, tol), strain(state, alpha, slope)


def wrong_side(
    open_: BoolArray,
    C: FloatArray,
    state: StateArray,
    alpha: FloatArray,
    slope: FloatArray,
    tol: float,
    slack: float = 0.0,
) -> BoolArray:
    """Entries that break a condition: slopes by tol, free alpha by a slack."""
    wrong = (state == MARGIN) & ((alpha < -slack) | (alpha > C + slack))
    wrong |= open_ & (state == OUTSIDE) & (slope > tol)
    wrong |= (state == BOUNDED) & (slope < -tol)
    return wrong


def strain(state: StateArray, alpha: FloatArray, slope: FloatArray) -> float:
    """How far slopes of free entries are from 0, and column sums from each other."""
    sums = alpha.sum(axis=0)
    uneven = float(sums.max() - sums.min()) / max(float(sums.max()), 1e-300)
    return max(uneven, float(np.abs(slope[state == MARGIN]).max(initial=0.0)))


def exchange(
    state: StateArray, violated: BoolArray, alpha: FloatArray, C: FloatArray
) -> None:
    """Move the violated entries: free ones to the bound they passed, others free."""
    free = violated & (state == MARGIN)
    state[violated & ~free] = MARGIN
    state[free & (alpha < 0.0)] = OUTSIDE
    state[free & (alpha > C)] = BOUNDED
