# SPDX-License-Identifier: BSD-3-Clause
"""Interior point for the machine of Lee, Lin & Wahba, one n x n factor per class.

A Newton step solves ``(P x K + D) u - E b = r`` with P = I - 11'/Q, D > 0 diagonal and
given column sums ``E'u = s + sums``, an order of n (Q - 1) + Q + 1. Column k of it is
``K (u_k - v) + D_k u_k - b_k = r_k`` with v = (1/Q) sum_k u_k, so with the inverses
A_k = (K + D_k)^-1 on the rows that class k has, and their row sums a_k = A_k 1::

    u_k = A_k (r_k + K v + b_k)
    (Q I - sum_k A_k K) v - sum_k a_k b_k = sum_k A_k r_k
    a_k' K v + (1'a_k) b_k - s            = sums_k - a_k' r_k,     sum_k b_k given

which takes Q Cholesky factors of order n and one LU of order n + Q + 1, Q n^3 + 3 n^3
operations instead of (Q n)^3 / 3. Every row lacks one class, so the matrix of v is far
from singular whatever K is.

Samples are ordered by class and variables by column, so that the rows of column k are
all but one run, and its variables one run.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import blas, lapack

from leaveout._typing import BoolArray, FloatArray, IntArray

MAX_ITER = 100
# A step goes this share of the way to the nearest bound.
DAMPING = 0.995
# With less than this in D, K + D_k is ill-conditioned, and solves are refined.
ROUGH = 1e-7
# Added to D, times n: a low-rank kernel with a D of 1e-12 has no digits left.
STEADYING = 1e-11
# Margins below 1e-5 of the spread of the samples count as none.
LARGEST_SQUARED_NORM = 2e10


@dataclass
class Iterate:
    """A point with its multipliers; one entry per variable unless said.

    Parameters
    ----------
    alpha, z, v : ndarray
        Variables, multipliers of alpha >= 0 and of alpha <= C.
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


class InteriorPoint:
    """Minimise ``1/2 a'(P x K) a - sum(a) / (Q - 1)`` by Mehrotra's steps.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of unit scale.
    open_ : ndarray of bool, shape (n, Q)
        Where there is a variable: in all columns of a row but one, or in none.
    C : ndarray of shape (n, Q)
        Upper bounds, possibly infinite.

    Attributes
    ----------
    best : Iterate
        The best point so far.
    unbounded : bool
        Whether the objective has no lower bound (a hard margin on samples that are not
        separable).
    """

    def __init__(self, K: FloatArray, open_: BoolArray, C: FloatArray) -> None:
        codes = open_.argmin(axis=1)
        present = np.flatnonzero(open_.any(axis=1))
        order = present[np.argsort(codes[present], kind="stable")]
        self.layout = _Layout(order, np.bincount(codes[order], minlength=C.shape[1]))
        self.shape = open_.shape
        self.K = K[np.ix_(order, order)]
        self.system = _NewtonSystem(self.K, self.layout)
        box = C.ravel()[self.layout.cells]
        self.boxed = np.isfinite(box)
        self.is_hard = not self.boxed.any()
        self.cost = 1.0 / (C.shape[1] - 1)
        self.count = box.size + np.count_nonzero(self.boxed)
        self.point = self.best = self._start(box)
        self.unbounded = False

    def run(self, tol: float = 1e-10) -> None:
        """Go on until the gap is below ``tol``, or no step helps any more."""
        while self.point.n_iter < MAX_ITER:
            p, n_iter = self.point, self.point.n_iter
            curve = self._curve(p.alpha)
            residuals = self._residuals(p, curve)
            p.gap = self._gap(p, curve, *residuals)
            if p.gap < self.best.gap:
                self.best = p
            stalled = n_iter > self.best.n_iter + 14 and self.best.gap < 1e-4
            if p.gap <= tol or stalled or not np.isfinite(p.gap):
                break
            if self.is_hard and self._is_unbounded(p, curve):
                self.unbounded = True
                return
            following = self._step(p, *residuals)
            if following is None:
                break
            self.point = following
            self.point.n_iter = n_iter + 1
        # No hard margin within reach of the numbers is none either.
        self.unbounded = self.is_hard and self.best.gap > 1e-2

    def spread(self, values: FloatArray) -> FloatArray:
        """Return the entries of the variables as an (n, Q) matrix, 0 elsewhere."""
        out = np.zeros(self.shape)
        out.flat[self.layout.cells] = values
        return out

    def _start(self, box: FloatArray) -> Iterate:
        """Return a point well inside the box."""
        alpha = np.minimum(0.5 * box, 1.0)
        room = np.where(self.boxed, box - alpha, 1.0)
        s = float(self.layout.sums(alpha).mean())
        ones, zero = np.ones(alpha.size), np.zeros(self.shape[1])
        return Iterate(alpha, ones, self.boxed * 1.0, room, zero, s)

    def _curve(self, alpha: FloatArray) -> FloatArray:
        """H alpha."""
        columns = self.layout.pad(alpha)
        return self.layout.pick((columns - columns.mean(axis=0)) @ self.K)

    def _residuals(
        self, p: Iterate, curve: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Stationarity (one per variable), column sums (Q,), sum of intercepts."""
        stationary = curve - self.cost - self.layout.share(p.b) - p.z + p.v
        return stationary, self.layout.sums(p.alpha) - p.s, float(p.b.sum())

    def _gap(
        self,
        p: Iterate,
        curve: FloatArray,
        stationary: FloatArray,
        sums: FloatArray,
        _: float,
    ) -> float:
        """Complementarity and infeasibilities, relative to the objective."""
        value = self.cost * float(p.alpha.sum()) - 0.5 * float(p.alpha @ curve)
        loss = float(p.alpha @ p.z + p.room @ p.v + np.abs(stationary) @ p.alpha)
        loss += float(np.abs(sums) @ (1.0 + np.abs(p.b)))
        return loss / max(abs(value), 1e-300)

    def _is_unbounded(self, p: Iterate, curve: FloatArray) -> bool:
        """Whether a multiple of alpha brings the objective below any sensible value.

        The best multiple t gives -(c'a)^2 / (2 a'Ha), half of ||w||^2.
        """
        linear = self.cost * float(p.alpha.sum())
        uneven = float(np.ptp(self.layout.sums(p.alpha))) / max(p.s, 1e-300)
        return (
            linear**2 > LARGEST_SQUARED_NORM * max(float(p.alpha @ curve), 0.0)
            and uneven < 1e-6
        )

    def _step(
        self, p: Iterate, stationary: FloatArray, sums: FloatArray, total_b: float
    ) -> Iterate | None:
        """Predictor, corrector and a damped step; None if the factors break down."""
        if not self.system.factor(p.z / p.alpha + p.v / p.room):
            return None

        def direction(
            to_z: FloatArray, to_v: FloatArray
        ) -> tuple[FloatArray, FloatArray, float, FloatArray, FloatArray]:
            """Solve for products alpha z and room v that change by these."""
            to_z, to_v = to_z / p.alpha, to_v / p.room
            da, db, ds = self.system.solve(to_z - to_v - stationary, -sums, -total_b)
            return da, db, ds, to_z - p.z / p.alpha * da, to_v + p.v / p.room * da

        az, rv = p.alpha * p.z, p.room * p.v
        mu = float(az.sum() + rv.sum()) / self.count
        da, _, _, dz, dv = direction(-az, -rv)
        reach = self._longest(p, da, dz, dv)
        ahead = float((p.alpha + reach * da) @ (p.z + reach * dz))
        ahead += float((p.room - reach * self.boxed * da) @ (p.v + reach * dv))
        target = (ahead / self.count / mu) ** 3 * mu
        da, db, ds, dz, dv = direction(
            target - da * dz - az, self.boxed * (target + da * dv) - rv
        )
        reach = min(1.0, DAMPING * self._longest(p, da, dz, dv))
        return Iterate(
            p.alpha + reach * da, p.z + reach * dz, p.v + reach * dv,
            p.room - reach * self.boxed * da, p.b + reach * db, p.s + reach * ds,
        )  # fmt: skip

    def _longest(
        self, p: Iterate, da: FloatArray, dz: FloatArray, dv: FloatArray
    ) -> float:
        """Largest step, at most 1 / DAMPING, that keeps everything positive."""
        fastest = max(DAMPING, float((-da / p.alpha).max()), float((-dz / p.z).max()))
        if not self.is_hard:
            v = np.where(self.boxed, p.v, 1.0)
            rises = float((self.boxed * da / p.room).max())
            fastest = max(fastest, rises, float((-dv / v).max()))
        return 1.0 / fastest


class _Layout:
    """Where the variables are: column by column, samples in the order of their classes.

    Parameters
    ----------
    order : ndarray of int, shape (m,)
        The samples that are present.
    counts : ndarray of int, shape (Q,)
        How many each class has of them.
    """

    def __init__(self, order: IntArray, counts: IntArray) -> None:
        self.m, self.Q = order.size, counts.size
        ends = np.cumsum(counts)
        # Rows from, to: the ones that column k lacks.
        self.lacks = list(zip((ends - counts).tolist(), ends.tolist(), strict=True))
        column, row = np.nonzero(
            np.repeat(np.arange(self.Q), counts) != np.arange(self.Q)[:, None]
        )
        self.places = column * self.m + row
        self.cells = order[row] * self.Q + column
        self.sizes = self.m - counts
        self.starts = np.append(0, np.cumsum(self.sizes))
        self.parts = [slice(a, b) for a, b in pairwise(self.starts.tolist())]

    def pad(self, values: FloatArray) -> FloatArray:
        """(Q, m), 0 where there is no variable."""
        out = np.zeros(self.Q * self.m)
        out[self.places] = values
        return out.reshape(self.Q, self.m)

    def pick(self, columns: FloatArray) -> FloatArray:
        """Entries of a (Q, m) matrix that belong to variables."""
        return columns.ravel()[self.places]

    def share(self, b: FloatArray) -> FloatArray:
        """b_k for every variable of column k."""
        return np.repeat(b, self.sizes)

    def sums(self, values: FloatArray) -> FloatArray:
        """Column sums, (Q,)."""
        return np.add.reduceat(values, self.starts[:-1])


class _NewtonSystem:
    """The matrix of a Newton step and its factors; memory is taken once.

    K + 1 takes the place of K: the same on equal column sums, and regular beside them.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel matrix of the samples in the order of the layout.
    layout : _Layout
        Of the variables.
    """

    def __init__(self, K: FloatArray, layout: _Layout) -> None:
        m, Q = layout.m, layout.Q
        self.K, self.layout = np.asfortranarray(K + 1.0), layout
        self.inverses = [np.zeros((size, size), order="F") for size in layout.sizes]
        self.total, self.product = np.zeros((2, m, m)).transpose(0, 2, 1)
        self.lu = np.zeros((m + Q + 1, m + Q + 1), order="F")
        self.D = self.pivots = np.empty(0)

    def factor(self, D: FloatArray) -> bool:
        """Factor for one diagonal; return whether that is possible."""
        layout, M, m, Q = self.layout, self.lu, self.layout.m, self.layout.Q
        self.D = D + STEADYING * m
        self.total[...] = 0.0
        if not all(self._invert(k) for k in range(Q)):
            return False
        row_sums = layout.pad(self._apply(np.ones(D.size)))
        M[:m, :m] = blas.dsymm(
            -1.0, self.total, self.K, c=self.product, lower=1, overwrite_c=1
        )
        M[:m, m:-1], M[:m, -1] = -row_sums.T, 0.0
        M[m:-1, :m], M[m:-1, m:-1] = row_sums @ self.K, 0.0
        M[m:-1, -1], M[-1, m:-1] = -1.0, 1.0
        M[-1, :m] = M[-1, -1] = 0.0
        diagonal = M.T.reshape(-1)[:: m + Q + 2]
        diagonal[:m] += Q
        diagonal[m:-1] = row_sums.sum(axis=1)
        _, self.pivots, failed = lapack.dgetrf(M, overwrite_a=1)
        return failed == 0

    def solve(
        self, r: FloatArray, sums: FloatArray, total_b: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return u, b and s, in need once more for what is missing."""
        layout = self.layout
        r = r + layout.share(sums - sums.mean())  # what K + 1 adds to K
        u, b, s = self._solve_once(r, sums, total_b)
        if self.D.min() >= ROUGH:
            return u, b, s
        columns = layout.pad(u)
        bent = layout.pick((columns - columns.mean(axis=0)) @ self.K)
        du, db, ds = self._solve_once(
            r - bent - self.D * u + layout.share(b),
            sums - columns.sum(axis=1) + s,
            total_b - float(b.sum()),
        )
        return u + du, b + db, s + ds

    def _solve_once(
        self, r: FloatArray, sums: FloatArray, total_b: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """Solve by the formulas at the top."""
        layout, m = self.layout, self.layout.m
        first = self._apply(r)
        columns = layout.pad(first)
        right = np.empty(m + layout.Q + 1)
        right[:m] = columns.sum(axis=0)
        right[m:-1] = sums - columns.sum(axis=1)
        right[-1] = total_b
        x, _ = lapack.dgetrs(self.lu, self.pivots, right, overwrite_b=1)
        v, b, s = x[:m], x[m:-1], float(x[-1])
        pull = np.tile(self.K @ v, layout.Q)[layout.places] + layout.share(b)
        return first + self._apply(pull), b, s

    def _apply(self, values: FloatArray) -> FloatArray:
        """A_k times column k, for all k."""
        return np.concatenate(
            [
                blas.dsymv(1.0, inverse, values[part], lower=1)
                for inverse, part in zip(self.inverses, self.layout.parts, strict=True)
            ]
        )

    def _invert(self, k: int) -> bool:
        """Make the lower triangle of A_k, and add it to those of the others."""
        K, (a, b) = self.K, self.layout.lacks[k]
        A, total = self.inverses[k], self.total
        A[:a, :a] = K[:a, :a]
        A[a:, :a] = K[b:, :a]
        A[a:, a:] = K[b:, b:]
        A.T.reshape(-1)[:: A.shape[0] + 1] += self.D[self.layout.parts[k]]
        _, failed = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
        if failed:
            return False
        lapack.dpotri(A, lower=1, overwrite_c=1)
        total[:a, :a] += A[:a, :a]
        total[b:, :a] += A[a:, :a]
        total[b:, b:] += A[a:, a:]
        return True
