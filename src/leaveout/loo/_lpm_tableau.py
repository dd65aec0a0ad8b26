# SPDX-License-Identifier: BSD-3-Clause
"""What all left-out linear programs share: the full optimum as an exchange tableau."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.solve import (
    BOUNDED,
    MARGIN,
    OUTSIDE,
    LpmBasis,
    design_matrix,
    invert,
    solve_lpm_basis,
)

# Rates end at 1 and margins at 1: what is not known to four digits tells no ties.
UNKNOWN = 1e-4


@dataclass(frozen=True)
class LpmTableau:
    """The optimum of a machine, written in the quantities that are at their kinks.

    The quantities are f_1 … f_n and then z_1 … z_m: coefficients and intercept. See
    ``_lpm_fast.pyx`` for what they mean.

    Parameters
    ----------
    T, transposed : ndarray of shape (n, m) and (m, n)
        Basic quantities per unit of the nonbasic ones.
    basic, nonbasic : ndarray of shape (n,) and (m,)
        Quantity of each row and of each column.
    x, side : ndarray of shape (n,)
        Values of the basic quantities, and the side of the kink they are on.
    D : ndarray of shape (m,)
        Rates of the cost.
    kink, has_kink, low, high : ndarray of shape (n + m,)
        Of each quantity.
    rate_slack, value_slack : float
        Size of the rounding errors of D and x.
    """

    T: FloatArray
    transposed: FloatArray
    basic: IntArray
    nonbasic: IntArray
    x: FloatArray
    side: FloatArray
    D: FloatArray
    kink: FloatArray
    has_kink: np.ndarray
    low: FloatArray
    high: FloatArray
    rate_slack: float
    value_slack: float

    @property
    def values(self) -> FloatArray:
        """F of the full optimum on all samples, (n,)."""
        n = self.x.size
        values = self.kink[:n].copy()
        values[self.basic[self.basic < n]] = self.x[self.basic < n]
        return values


def build_lpm_tableau(problem: Problem, basis: LpmBasis) -> LpmTableau | None:
    """Return the tableau of a basis; None if its matrix is singular, to rounding."""
    y, C, n = problem.y, problem.C, problem.n_samples
    G = design_matrix(problem)
    m, margin, active = G.shape[1], basis.margin, basis.active
    if margin.size != active.size:
        return None
    T = G.copy()
    if margin.size:
        inverse = invert(G[np.ix_(margin, active)])
        if inverse is None:
            return None
        # Exchange f_M and z_A, all at once.
        left, top = G[:, active] @ inverse, inverse @ G[margin]
        T -= left @ G[margin]
        T[margin], T[:, active] = -top, left
        T[np.ix_(margin, active)] = inverse
    basic, nonbasic = np.arange(n), np.arange(n, n + m)
    basic[margin], nonbasic[active] = n + active, margin
    kink = np.concatenate([y, np.zeros(m)])
    present = C > 0.0
    has_kink = np.concatenate([present, present, np.zeros(m - n, dtype=bool)])
    box, reach = np.where(y > 0, C, 0.0), np.where(present, 1.0, np.inf)
    free = np.zeros(m - n)
    low, high = np.r_[box - C, -reach, free], np.r_[box, reach, free]
    side = np.where(basis.rows == BOUNDED, -y, y)
    side[margin] = basis.columns[active]
    side[~present] = 1.0
    # From the factors, not from T: a large inverse would cost digits here.
    z, row_dual = solve_lpm_basis(problem, basis)
    slopes = row_dual * y
    x, D = G @ z, -(slopes @ G)
    x[margin], D[active] = z[active], slopes[margin]
    size = np.abs(G)
    rates, values = np.abs(slopes) @ size, size @ np.abs(z)
    # What the equations of the basis are off by moves the rest by its columns and rows.
    rate_slack = _slack(rates + rates[active] @ np.abs(T[margin]))
    value_slack = _slack(values + np.abs(T[:, active]) @ values[margin])
    if max(rate_slack, value_slack) > UNKNOWN:
        return None
    return LpmTableau(
        T, np.ascontiguousarray(T.T), basic, nonbasic, x, side, D, kink,
        has_kink.astype(np.uint8), low, high, rate_slack, value_slack,
    )  # fmt: skip


def read_basis(problem: Problem, basic: IntArray, side: FloatArray) -> LpmBasis:
    """Return the basis with these quantities off their kinks, on these sides."""
    y, n = problem.y, problem.n_samples
    rows = np.full(n, MARGIN, dtype=np.int8)
    columns = np.zeros(n + int(problem.fit_intercept), dtype=np.int8)
    values = basic < n
    at = basic[values]
    outside = (side[values] * y[at] > 0) | (problem.C[at] == 0.0)
    rows[at] = np.where(outside, OUTSIDE, BOUNDED)
    columns[basic[~values] - n] = np.sign(side[~values])
    return LpmBasis(rows, columns)


def _slack(terms: FloatArray) -> float:
    """Return the rounding of sums whose terms have these sums of sizes."""
    return max(1e-11, 16 * np.finfo(float).eps * float(terms.max()))
