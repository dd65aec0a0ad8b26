# SPDX-License-Identifier: BSD-3-Clause
"""Solve the machine of Lee, Lin & Wahba as the binary one: SMO, then an active set."""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.solve._llw_active_set_fast import run_llw_active_set
from leaveout.solve._llw_pivot import Pivoted
from leaveout.solve._llw_smo_fast import llw_smo
from leaveout.solve._solution import BOUNDED, MARGIN, OUTSIDE

# SMO finds the neighbourhood, the active set the point: over n = 100...850 and 2...6
# classes the sum of both is smallest around this violation, of slopes 1/(Q-1).
SMO_TOL = 0.15
# On ill-conditioned kernels with large C SMO crawls; the active set does not.
SMO_STEPS_PER_VARIABLE = 10
# Work of the active set before it counts as lost, in units of (Q + 3) n^3, which is a
# step of the interior point; that one's operations run a few times faster.
ACTIVE_SET_WORK = 8
# Steps between two looks at Python's signals, so that Ctrl-C works.
SMO_STEPS_PER_CALL = 20_000
ACTIVE_SET_STEPS_PER_CALL = 200
# Free entries at most: the factor is a square of this order.
MAX_FREE = 4000
# Violation that counts, relative to the terms of a slope.
TOL, ROUNDING = 1e-11, 1e-15
# Stands for no upper bound; the kernels know no infinity.
UNBOUNDED = 1e300
# How the active set ends, as in _llw_active_set_fast.
DONE, MORE = 0, 1


def descend(K: FloatArray, C: FloatArray) -> Pivoted:
    """Solve the dual from alpha = 0.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of unit scale.
    C : ndarray of shape (n, Q)
        Upper bounds, possibly infinite; 0 where there is no variable.

    Returns
    -------
    Pivoted
        ``settled`` if the active set ended at an optimum; b is left to the certificate.
    """
    Q = C.shape[1]
    upper = np.minimum(C.T, UNBOUNDED, order="C")
    alpha, gradient = np.zeros(upper.shape), np.full(upper.shape, 1.0 / (Q - 1))
    n_smo = _run_smo(K, upper, alpha, gradient)
    return _end(K, upper, alpha, gradient, n_smo, "active set")


def purify(K: FloatArray, C: FloatArray, found: Pivoted) -> Pivoted:
    """Leave free entries only that depend on no others, as a walk has to begin.

    Parameters
    ----------
    K, C : ndarray of shape (n, n) and (n, Q)
        As for :func:`descend`.
    found : Pivoted
        An optimum.

    Returns
    -------
    Pivoted
        One with the same w, or ``found`` itself if there rounding decides.
    """
    upper = np.minimum(C.T, UNBOUNDED, order="C")
    alpha = np.minimum(found.alpha.T, upper, order="C")
    W = alpha.mean(axis=0) - alpha
    gradient = 1.0 / (alpha.shape[0] - 1) + W @ K
    pure = _end(K, upper, alpha, gradient, found.n_iter, found.by)
    return pure if pure.settled else found


def _end(
    K: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    gradient: FloatArray,
    n_iter: int,
    by: str,
) -> Pivoted:
    """Go on from a feasible point by the active set."""
    free = np.flatnonzero((alpha > 0.0) & (alpha < upper))
    free, n_active, settled = _finish(K, upper, alpha, gradient, free)
    state = np.where(alpha > 0.0, BOUNDED, OUTSIDE).astype(np.int8)
    state.flat[free] = MARGIN
    return Pivoted(
        np.ascontiguousarray(alpha.T), np.zeros(alpha.shape[0]),
        np.ascontiguousarray(state.T), settled, n_iter + n_active, by,
    )  # fmt: skip


def _run_smo(
    K: FloatArray, upper: FloatArray, alpha: FloatArray, gradient: FloatArray
) -> int:
    """SMO in place, in calls short enough for Ctrl-C; return the steps taken."""
    diag, tol = K.diagonal().copy(), SMO_TOL / (upper.shape[0] - 1)
    total, cap = 0, SMO_STEPS_PER_VARIABLE * upper.size
    while total < cap:
        budget = min(SMO_STEPS_PER_CALL, cap - total)
        steps, violation = llw_smo(K, diag, upper, alpha, gradient, tol, budget)
        total += steps
        if violation <= tol or steps < budget:
            break
    return total


def _finish(
    K: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    gradient: FloatArray,
    free: IntArray,
) -> tuple[IntArray, int, bool]:
    """Active set in place; return the free entries, the steps, whether it ended."""
    (Q, n), capacity = upper.shape, min(upper.size, MAX_FREE)
    if free.size > capacity:
        return free, 0, False
    members, factor = np.empty(capacity, dtype=np.intp), np.empty((capacity, capacity))
    total, work, end = 0, ACTIVE_SET_WORK * (Q + 3) * n**3, MORE
    while end == MORE and work > 0:
        terms = np.abs(alpha.mean(axis=0) - alpha) @ np.abs(K)
        tol = max(TOL, ROUNDING * float(terms.max()))
        members[: free.size] = free
        m, steps, end = run_llw_active_set(
            K, upper, alpha, gradient, members, free.size, factor, 1.0, tol,
            ACTIVE_SET_STEPS_PER_CALL,
        )  # fmt: skip
        total += steps
        work -= steps * (m * m + Q * n * n // 2)
        free = members[:m].copy()
    return free, total, end == DONE and bool(np.isfinite(alpha).all())
