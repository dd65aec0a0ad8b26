# SPDX-License-Identifier: BSD-3-Clause
"""Proof that the coefficients of many folds are optimal, on all samples.

b is optimal for p = y - K beta if ``max p <= b`` over the samples whose beta may rise
and ``b <= min p`` over those whose beta may fall. A screened sample is on the same side
in all folds, so only the kept samples need masks and a product with K.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._problem import Problem, middle
from leaveout.methods._screening import Screened

# A coefficient within this share of C_i of its bound is not free.
ROOM = 1e-9
# Tolerances of a solved fold: violation of the optimality conditions, and duality gap
# relative to max(1, primal).
KKT_TOL, GAP_TOL = 1e-9, 1e-10
# Rounding errors of f, in units of 2^-52 sum_j |beta_j K_ij|.
ROUNDING, EPS = 1024.0, float(np.finfo(float).eps)


class Proof(NamedTuple):
    """What follows from the coefficients of each fold, and whether they are optimal."""

    own: FloatArray  # (k,), K beta at the left-out sample
    low: FloatArray  # (k,), all optimal b
    high: FloatArray
    norms: FloatArray  # (k,), ||w||
    optimal: BoolArray  # (k,)
    values: FloatArray  # (k, n), K beta; (0, n) if not requested


class Prover:
    """Checks folds that leave out one sample each; known coefficients are shared.

    Columns are ordered: kept samples, screened ones whose beta may rise, then those
    whose beta may fall, then samples with C = 0.
    """

    def __init__(self, problem: Problem, screened: Screened) -> None:
        y, C, K = problem.y, problem.C, problem.K
        kept, is_kept = screened.kept, ~(screened.bounded | screened.outside)
        rises = ~is_kept & (C > 0.0) & (screened.bounded == (y < 0))
        falls = ~is_kept & (C > 0.0) & ~rises
        sides = np.select([is_kept, rises, falls], [0, 1, 2], 3)
        order = np.argsort(sides, kind="stable")
        ends = np.searchsorted(sides[order], [1, 2, 3])
        self.kept, self.rise = slice(0, ends[0]), slice(*ends[:2])
        self.fall, self.rest = slice(*ends[1:]), slice(ends[0], None)
        self.problem, self.order, self.place = problem, order, np.argsort(order)
        # The left-out sample is on neither side.
        self.unbounded = np.array([0.0, -np.inf, np.inf, 0.0])[sides[order]]
        self.y, self.C = y[order], C[order]
        known = np.where(screened.bounded, y * C, 0.0)
        self.known, self.base = known[order], (known @ K)[order]
        self.K = K if kept.size == y.size else K[np.ix_(kept, order)]

    def prove(self, rows: IntArray, eta: FloatArray, everywhere: bool = False) -> Proof:
        """Check coefficients of the kept samples, (k, n_kept), without each row."""
        k, own, kept = np.arange(rows.size), self.place[rows], self.kept
        gone = self.known[own]
        values = eta @ self.K
        values += self.base
        lost = np.flatnonzero(gone)
        if lost.size:
            others = self.problem.K[np.ix_(rows[lost], self.order)]
            values[lost] -= gone[lost, None] * others
        at_own = values[k, own]
        found = values[: k.size if everywhere else 0, self.place]
        p = np.subtract(self.y, values, out=values)
        p[k, own] = self.unbounded[own]
        up, down = self._sides(eta, own)
        low = np.where(up, p[:, kept], -np.inf).max(axis=1, initial=-np.inf)
        low = np.maximum(low, p[:, self.rise].max(axis=1, initial=-np.inf))
        high = np.where(down, p[:, kept], np.inf).min(axis=1, initial=np.inf)
        high = np.minimum(high, p[:, self.fall].min(axis=1, initial=np.inf))
        ends = self._interval(p[:, kept], up & down, low, high)
        b = middle(*ends)
        violation = np.maximum(low - b, b - high)
        p -= b[:, None]
        p[k, own] = 0.0
        hinge = np.maximum(self.y * p, 0.0) @ self.C
        # The gap is the sum of C_i xi_i - alpha_i (1 - h_i) = C_i xi_i - beta_i p_i.
        cross = np.einsum("ki,ki->k", eta, p[:, kept])
        cross += p[:, self.rest] @ self.known[self.rest]
        total = eta.sum(axis=1) + self.known.sum() - gone
        size = np.abs(eta).sum(axis=1) + np.abs(self.known).sum() - np.abs(gone)
        gap = hinge - cross - b * total
        squared = np.maximum(size - cross - b * total, 0.0)
        allowed = GAP_TOL * np.maximum(1.0, 0.5 * squared + hinge)
        optimal = (gap <= allowed) & (violation <= KKT_TOL)
        optimal &= self._is_feasible(eta, up & down, total, size)
        return Proof(at_own, *ends, np.sqrt(squared), optimal, found)

    def _sides(self, eta: FloatArray, own: IntArray) -> tuple[BoolArray, BoolArray]:
        """Whether beta of the kept samples may rise, and may fall."""
        y, C = self.y[self.kept], self.C[self.kept]
        alpha, near = y * eta, ROOM * C
        more, less = alpha < C - near, alpha > near
        here = np.flatnonzero(own < self.kept.stop)
        more[here, own[here]] = less[here, own[here]] = False
        return np.where(y > 0, more, less), np.where(y > 0, less, more)

    def _is_feasible(
        self, eta: FloatArray, free: BoolArray, total: FloatArray, size: FloatArray
    ) -> BoolArray:
        """Whether sum(beta) is 0 and what is not free on a bound, as far as f shows."""
        alpha, C = np.abs(eta), self.C[self.kept]
        room = np.where(free, 0.0, np.minimum(alpha, np.abs(C - alpha))).sum(axis=1)
        top = float(np.abs(self.problem.K.diagonal()).max(initial=0.0))
        allowed = np.maximum(KKT_TOL, ROUNDING * EPS * top * size)
        feasible = top * room <= allowed
        if self.problem.fit_intercept:
            off = np.abs(total)
            feasible &= (off <= KKT_TOL * size) & (top * off <= allowed)
        return feasible

    def _interval(
        self, p: FloatArray, free: BoolArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """All optimal b; one point if a coefficient is free."""
        if not self.problem.fit_intercept:
            return np.zeros_like(low), np.zeros_like(low)
        count = free.sum(axis=1)
        mean = np.where(free, p, 0.0).sum(axis=1) / np.maximum(count, 1)
        # Without a free coefficient, low > high is a rounding error or not optimal.
        ends = np.minimum(low, high), np.maximum(low, high)
        return np.where(count > 0, mean, ends[0]), np.where(count > 0, mean, ends[1])
