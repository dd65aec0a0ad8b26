# SPDX-License-Identifier: BSD-3-Clause
"""Interior point for the machine of Lee, Lin & Wahba, one n x n factor per class.

A Newton step solves ``(P x K + D) u = r`` with P = I - 11'/Q and D > 0 diagonal, a
matrix of order n (Q - 1). Row k of it reads ``K (u_k - v) + D_k u_k = r_k`` with
v = (1/Q) sum_k u_k, so with A_k = (K + D_k)^-1 on the rows that class k has::

    u_k = A_k (r_k + K v),      (Q I - sum_k A_k K) v = sum_k A_k r_k

which takes Q Cholesky factors of order n and one LU, Q n^3 + 3 n^3 operations instead
of (Q n)^3 / 3. Every row lacks one class, so the matrix of v is far from singular
whatever K is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.solve._dense import factor_lu, solve_lu
from leaveout.solve._llw_pivot import zero_sum_basis

MAX_ITER = 100
# A step goes this share of the way to the nearest bound.
DAMPING = 0.995
# Added to D, times n: a low-rank kernel with a D of 1e-12 has no digits left.
STEADYING = 1e-11


Residuals = tuple[FloatArray, FloatArray, float]


@dataclass
class Iterate:
    """A point with its multipliers; all arrays (n, Q) unless said.

    Parameters
    ----------
    alpha, z, v : ndarray
        Variables, multipliers of alpha >= 0 and of alpha <= C; 0 where closed.
    room : ndarray
        C - alpha, kept apart since it loses its digits otherwise; 1 without a bound.
    b : ndarray of shape (Q,)
        Intercepts, the multipliers of the column sums.
    s : float
        The common column sum.
    gap : float
        sum(alpha z) + sum((C - alpha) v), relative to the objective.
    n_iter : int
        Newton steps taken.
    """

    alpha: FloatArray
    z: FloatArray
    v: FloatArray
    room: FloatArray
    b: FloatArray
    s: float
    gap: float = np.inf
    n_iter: int = 0

    def take(self, rows: IntArray) -> Iterate:
        """Return the point with its samples in another order."""
        return replace(
            self,
            alpha=self.alpha[rows],
            z=self.z[rows],
            v=self.v[rows],
            room=self.room[rows],
        )


def run_interior_point(
    K: FloatArray,
    open_: BoolArray,
    C: FloatArray,
    tol: float = 1e-10,
    start: Iterate | None = None,
) -> tuple[Iterate, bool]:
    """Minimise ``1/2 a'(P x K) a - sum(a) / (Q - 1)`` by Mehrotra's steps.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of unit scale.
    open_ : ndarray of bool, shape (n, Q)
        Where there is a variable.
    C : ndarray of shape (n, Q)
        Upper bounds, possibly infinite.
    tol : float, default=1e-10
        Wanted complementarity, relative to the objective.
    start : Iterate, optional
        Where an earlier run has ended.

    Returns
    -------
    tuple of Iterate and bool
        The best point, and whether the objective has no lower bound (a hard margin
        on samples that are not separable).
    """
    # Samples that lack the same class stand together: see _runs.
    order = np.argsort(open_.argmin(axis=1), kind="stable")
    newton = _Newton(K[np.ix_(order, order)], open_[order], C[order])
    point = newton.start() if start is None else start.take(order)
    best = point
    for n_iter in range(point.n_iter + 1, MAX_ITER + 1):
        residuals = newton.residuals(point)
        point.gap = newton.gap(point, residuals)
        if point.gap < best.gap:
            best = point
        stalled = n_iter > best.n_iter + 15 and best.gap < 1e-4
        if point.gap <= tol or stalled or not np.isfinite(point.gap):
            break
        if newton.is_unbounded(point):
            return point.take(np.argsort(order)), True
        following = newton.step(point, residuals)
        if following is None:
            break
        point = following
        point.n_iter = n_iter
    # No hard margin within reach of the numbers is none either.
    return best.take(np.argsort(order)), newton.is_hard and best.gap > 1e-2


class _Newton:
    """The linear algebra of one problem."""

    def __init__(self, K: FloatArray, open_: BoolArray, C: FloatArray) -> None:
        self.K, self.open, self.C = K, open_, C
        self.boxed = open_ & np.isfinite(C)
        self.is_hard = not self.boxed.any()
        self.n, self.Q = open_.shape
        self.rows = [np.flatnonzero(open_[:, k]) for k in range(self.Q)]
        self.cost = np.where(open_, 1.0 / (self.Q - 1), 0.0)
        self.count = int(open_.sum() + self.boxed.sum())

    def start(self) -> Iterate:
        """Return a point well inside the box."""
        alpha = np.where(self.open, np.minimum(0.5 * self.C, 1.0), 0.0)
        z, v = self.open.astype(float), self.boxed.astype(float)
        room = np.where(self.boxed, self.C - alpha, 1.0)
        s = float(alpha.sum(axis=0).mean())
        return Iterate(alpha, z, v, room, np.zeros(self.Q), s)

    def curve(self, alpha: FloatArray) -> FloatArray:
        """H alpha, on the open entries."""
        out = self.K @ (alpha - alpha.mean(axis=1, keepdims=True))
        out[~self.open] = 0.0
        return out

    def residuals(self, p: Iterate) -> Residuals:
        """Stationarity (n, Q), column sums (Q,), sum of intercepts."""
        stationary = self.curve(p.alpha) - self.cost - p.b - p.z + p.v
        stationary[~self.open] = 0.0
        return stationary, p.alpha.sum(axis=0) - p.s, float(p.b.sum())

    def gap(self, p: Iterate, residuals: Residuals) -> float:
        """Complementarity and infeasibilities, relative to the objective."""
        linear = float((self.cost * p.alpha).sum())
        quadratic = 0.5 * float((p.alpha * self.curve(p.alpha)).sum())
        scale = max(abs(linear - quadratic), 1e-300)
        loss = float((p.alpha * p.z).sum() + (p.room * p.v).sum())
        loss += float((np.abs(residuals[0]) * p.alpha).sum())
        loss += float(np.abs(residuals[1]) @ (1.0 + np.abs(p.b)))
        return loss / scale

    def is_unbounded(self, p: Iterate) -> bool:
        """Whether a multiple of alpha brings the objective below any sensible value.

        The best multiple t gives -(c'a)^2 / (2 a'Ha), half of ||w||^2: margins below
        1e-5 of the spread of the samples count as none.
        """
        if not self.is_hard:
            return False
        linear = float((self.cost * p.alpha).sum())
        quadratic = float((p.alpha * self.curve(p.alpha)).sum())
        uneven = np.ptp(p.alpha.sum(axis=0)) / max(p.s, 1e-300)
        return linear**2 > 2e10 * max(quadratic, 0.0) and uneven < 1e-6

    def step(self, p: Iterate, residuals: Residuals) -> Iterate | None:
        """Predictor, corrector and a damped step; None if the factors break down."""
        open_, boxed = self.open, self.boxed
        a = np.where(open_, p.alpha, 1.0)
        t = p.room
        try:
            factored = _Factored(self.K, self.rows, open_, p.z / a + p.v / t)
        except linalg.LinAlgError:
            return None
        mu = float((p.alpha * p.z).sum() + (t * p.v).sum()) / self.count
        zero = np.zeros_like(a)
        da, db, ds, dz, dv = self.direction(
            p, a, t, residuals, factored, 0.0, zero, zero
        )
        reach = self.longest(p, t, da, dz, dv)
        ahead = ((p.alpha + reach * da) * (p.z + reach * dz)).sum()
        ahead += ((t - reach * da) * (p.v + reach * dv))[boxed].sum()
        sigma = (float(ahead) / self.count / mu) ** 3
        da, db, ds, dz, dv = self.direction(
            p, a, t, residuals, factored, sigma * mu, da * dz, -da * dv
        )
        reach = min(1.0, DAMPING * self.longest(p, t, da, dz, dv))
        room = np.where(boxed, t - reach * da, 1.0)
        return Iterate(
            p.alpha + reach * da, p.z + reach * dz, p.v + reach * dv, room,
            p.b + reach * db, p.s + reach * ds,
        )  # fmt: skip

    def direction(
        self,
        p: Iterate,
        a: FloatArray,
        t: FloatArray,
        residuals: Residuals,
        factored: _Factored,
        target: float,
        second_z: FloatArray,
        second_v: FloatArray,
    ) -> tuple[FloatArray, FloatArray, float, FloatArray, FloatArray]:
        """Solve the linearised conditions for one target of the complementarity."""
        to_z = np.where(self.open, (target - second_z) / a - p.z, 0.0)
        to_v = np.where(self.boxed, (target - second_v) / t - p.v, 0.0)
        da, db, ds = factored.solve(
            to_z - to_v - residuals[0], -residuals[1], -residuals[2]
        )
        dz = np.where(self.open, to_z - p.z / a * da, 0.0)
        dv = np.where(self.boxed, to_v + p.v / t * da, 0.0)
        return da, db, ds, dz, dv

    def longest(
        self,
        p: Iterate,
        t: FloatArray,
        da: FloatArray,
        dz: FloatArray,
        dv: FloatArray,
    ) -> float:
        """Largest step, at most 1 / DAMPING, that keeps everything positive."""
        reach = 1.0 / DAMPING
        for value, slope, where in (
            (p.alpha, da, self.open), (p.z, dz, self.open),
            (t, -da, self.boxed), (p.v, dv, self.boxed),
        ):  # fmt: skip
            falls = where & (slope < 0.0)
            if falls.any():
                reach = min(reach, float((-value[falls] / slope[falls]).min()))
        return reach


class _Factored:
    """P x K + D, factored, with the column sums and intercepts as its border.

    K + 1 takes the place of K: the same on equal column sums, and regular beside them.
    Arrays are (Q, n, m) in here, for m right-hand sides.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix.
    rows : list of ndarray
        Rows that have a variable, class by class.
    open_ : ndarray of bool, shape (n, Q)
        The same as a mask.
    D : ndarray of shape (n, Q)
        Diagonal.

    Raises
    ------
    LinAlgError
        If K + D_k is not positive definite.
    """

    def __init__(
        self, K: FloatArray, rows: list[IntArray], open_: BoolArray, D: FloatArray
    ) -> None:
        n, Q = open_.shape
        self.K, self.open, self.Q = K + 1.0, open_, Q
        self.D = D.T[:, :, None] + STEADYING * n
        self.inverses = self._invert(rows)
        inner = Q * np.eye(n) - self.inverses.sum(axis=0) @ self.K
        self.inner = factor_lu(inner)
        self.basis = zero_sum_basis(Q)
        columns = np.where(open_.T[:, :, None], self.basis[:, None, :], 0.0)
        self.swing = self._solve_refined(columns)  # M^-1 E, for the b with sum 0
        self.border = self.basis.T @ self.swing.sum(axis=1)

    def solve(
        self, r: FloatArray, sums: FloatArray, total_b: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """(H + D) u - E db = r,  E'u - ds = sums,  1'db = total_b."""
        shift = total_b / self.Q
        more = np.where(self.open, r + (sums - sums.mean() + shift), 0.0)
        u = self._solve_refined(more.T[:, :, None])[:, :, 0]
        change = np.linalg.solve(self.border, self.basis.T @ (sums - u.sum(axis=1)))
        u = (u + self.swing @ change).T
        ds = float((u.sum(axis=0) - sums).mean())
        return u, self.basis @ change + shift, ds

    def _invert(self, rows: list[IntArray]) -> FloatArray:
        """Return A_k for each class, 0 where the class has no row, (Q, n, n)."""
        n = self.K.shape[0]
        out = np.zeros((self.Q, n, n))
        for k, own in enumerate(rows):
            block = _gather(self.K, own).T
            block[np.diag_indices(own.size)] += self.D[k, own, 0]
            factor, failed = lapack.dpotrf(block, lower=1, clean=1, overwrite_a=1)
            if failed:
                raise linalg.LinAlgError
            inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
            _scatter(inverse.T, own, out[k])
        diagonal = out.diagonal(axis1=1, axis2=2).copy()
        out += out.transpose(0, 2, 1)  # dpotri fills one triangle
        out[:, np.arange(n), np.arange(n)] = diagonal
        return out

    def _solve_refined(self, R: FloatArray) -> FloatArray:
        """Solve, and once more for what is missing: K + D_k is ill-conditioned."""
        U = self._solve_once(R)
        missing = R - self.K @ (U - U.mean(axis=0)) - self.D * U
        missing[~self.open.T] = 0.0
        return U + self._solve_once(missing)

    def _solve_once(self, R: FloatArray) -> FloatArray:
        """Solve by the two formulas at the top."""
        first = self.inverses @ R
        v = solve_lu(self.inner, first.sum(axis=0))
        return first + self.inverses @ (self.K @ v)


def _runs(rows: IntArray) -> list[tuple[slice, slice]]:
    """Consecutive rows: where they are, and where they stand among the chosen ones.

    Slices are copied several times as fast as rows one by one; with samples in the
    order of their classes there are two.
    """
    breaks = np.flatnonzero(np.diff(rows) > 1) + 1
    ends = [0, *breaks.tolist(), rows.size]
    return [
        (slice(int(rows[a]), int(rows[b - 1]) + 1), slice(a, b))
        for a, b in pairwise(ends)
    ]


def _gather(A: FloatArray, rows: IntArray) -> FloatArray:
    """Return A[rows][:, rows]."""
    out = np.empty((rows.size, rows.size))
    runs = _runs(rows)
    for there, here in runs:
        for across, along in runs:
            out[here, along] = A[there, across]
    return out


def _scatter(block: FloatArray, rows: IntArray, out: FloatArray) -> None:
    """Write ``out[rows][:, rows] = block``."""
    runs = _runs(rows)
    for there, here in runs:
        for across, along in runs:
            out[there, across] = block[here, along]
