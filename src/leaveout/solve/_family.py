# SPDX-License-Identifier: BSD-3-Clause
"""Many machines over one kernel matrix that differ in their boxes: the folds.

Machine k is ``min 1/2 eta'K eta + sum_i C_ki max(0, 1 - y_i f_i) + b total_k`` with
``f = K eta + offset_k + b``. Offsets and totals come from samples whose coefficients
are known beforehand and that are left out of K; without such samples they are zero.
With an intercept ``sum(eta) = total_k``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.solve._optimality import weighted_median_intervals

# A coefficient nearer to its bound than this share of the box is not free.
ROOM = 1e-9
# Largest optimality residual, relative to max(1, sum_j |eta_j K_ij|), and largest
# duality gap, relative to max(1, primal), of a machine that counts as solved.
KKT_TOL = 1e-9
GAP_TOL = 1e-10


@dataclass(frozen=True)
class Family:
    """Machines that share K and y.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix, symmetric, positive semi-definite.
    y : ndarray of shape (n,)
        Signs.
    boxes : ndarray of shape (n_machines, n)
        Upper bounds of alpha; 0 where a machine does without the sample.
    offsets : ndarray of shape (n_machines, n)
        What samples with known coefficients add to the decision values.
    totals : ndarray of shape (n_machines,)
        Sum of the coefficients with an intercept.
    fit_intercept : bool
        Whether the machines have a bias.
    """

    K: FloatArray
    y: FloatArray
    boxes: FloatArray
    offsets: FloatArray
    totals: FloatArray
    fit_intercept: bool

    def __len__(self) -> int:
        """Return the number of machines."""
        return self.boxes.shape[0]

    def take(self, which: IntArray | slice) -> Family:
        """Return some of the machines."""
        return Family(
            self.K,
            self.y,
            self.boxes[which],
            self.offsets[which],
            self.totals[which],
            self.fit_intercept,
        )


@dataclass(frozen=True)
class Certificate:
    """How good the coefficients of some machines are, and what they say.

    Parameters
    ----------
    values : ndarray of shape (n_machines, n)
        Decision values without the bias, ``K eta + offset``.
    low, high : ndarray of shape (n_machines,)
        All optimal b.
    objective : ndarray of shape (n_machines,)
        Primal values.
    optimal : ndarray of bool, shape (n_machines,)
        Whether optimality residual and duality gap are within KKT_TOL and GAP_TOL.
    """

    values: FloatArray
    low: FloatArray
    high: FloatArray
    objective: FloatArray
    optimal: BoolArray


def certify(family: Family, eta: FloatArray) -> Certificate:
    """Prove, or fail to prove, that each row of eta solves its machine.

    Parameters
    ----------
    family : Family
        Machines without offsets: every sample is in K.
    eta : ndarray of shape (n_machines, n)
        Signed coefficients within their boxes.

    Returns
    -------
    Certificate
        Interval of b as in :func:`~leaveout.solve.solve_svc`: a point where some
        coefficient is free, else order statistics.
    """
    y, C = family.y, family.boxes
    values = eta @ family.K
    low, high = bias_intervals(family, eta, values)
    b = _middle(low, high)
    alpha, short = y * eta, 1.0 - y * (values + b[:, None])
    hinge = C * np.maximum(0.0, short)
    primal = 0.5 * np.einsum("ki,ki->k", eta, values) + hinge.sum(axis=1)
    # Complementarity terms C_i xi_i - alpha_i (1 - h_i) >= 0: no cancellation.
    gap = (hinge - alpha * short).sum(axis=1) - b * eta.sum(axis=1)
    violation, allowed = _kkt_violation(family, alpha, short), np.maximum(1.0, primal)
    optimal = (gap <= GAP_TOL * allowed) & (violation.max(axis=1) <= KKT_TOL)
    # Decision values that are sums of large terms are allowed their rounding, which the
    # hinge multiplies by C.
    rest = np.flatnonzero(~optimal)
    scale = np.maximum(1.0, np.abs(eta[rest]) @ np.abs(family.K))
    rounding = 4.0 * np.finfo(float).eps * (C[rest] * scale).sum(axis=1)
    optimal[rest] = (gap[rest] <= GAP_TOL * allowed[rest] + rounding) & np.all(
        violation[rest] <= KKT_TOL * scale, axis=1
    )
    if family.fit_intercept:
        total = np.abs(eta).sum(axis=1)
        optimal &= np.abs(eta.sum(axis=1)) <= KKT_TOL * total
    return Certificate(values, low, high, primal, optimal)


def bias_intervals(
    family: Family, eta: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return all optimal b of each machine with decision values ``values + b``."""
    k = len(family)
    if not family.fit_intercept:
        return np.zeros(k), np.zeros(k)
    y, C = family.y, family.boxes
    alpha, breakpoints = y * eta, y - values
    free = np.minimum(alpha, C - alpha) > ROOM * C
    n_free = free.sum(axis=1)
    point = (breakpoints * free).sum(axis=1) / np.maximum(n_free, 1)
    low, high = point.copy(), point
    rest = np.flatnonzero(n_free == 0)
    if rest.size:
        levels = (C[rest] * (y > 0)).sum(axis=1) - family.totals[rest]
        low[rest], high[rest] = weighted_median_intervals(
            breakpoints[rest], C[rest], levels
        )
    return low, high


def _kkt_violation(family: Family, alpha: FloatArray, short: FloatArray) -> FloatArray:
    """How far each sample is from alpha = 0, free, = C with h >= 1, = 1, <= 1."""
    C = family.boxes
    violation = np.where(alpha <= ROOM * C, np.maximum(short, 0.0), np.abs(short))
    at_bound = C - alpha <= ROOM * C
    violation = np.where(at_bound, np.maximum(-short, 0.0), violation)
    violation[C == 0.0] = 0.0
    return violation


def _middle(low: FloatArray, high: FloatArray) -> FloatArray:
    """Midpoints; the finite end of a half-line."""
    start = np.where(np.isinf(low), high, low)
    end = np.where(np.isinf(high), start, high)
    return 0.5 * (start + end)
