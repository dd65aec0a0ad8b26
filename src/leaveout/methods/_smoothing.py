# SPDX-License-Identifier: BSD-3-Clause
"""All folds of one SVM, smoothed, minimised together (Wang & Yang 2022, section 2.3).

Fold k is the problem with its own upper bounds C_k, 0 for the samples left out::

    min 1/2 eta'K eta + sum_i C_ki max(0, 1 - y_i f_i) + b total_k,
    f = K eta + offset_k + b

Offsets and totals come from samples with known coefficients, which are not in K.
With an intercept sum(eta) = total_k. ``minimise`` replaces the hinge L by L_tau, a
parabola for |u - 1| < tau, u = y f, and takes accelerated majorise-minimise steps for
all folds at once, in BLAS-3 (eqs. (9)-(11), corrected in docs/method/consolidated). At
the optimum alpha = -C L_tau'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from leaveout._typing import BoolArray, FloatArray, IntArray

# Finished folds are removed from the arrays when they reach this share.
LEAVE = 0.25
# A fold is abandoned if its residual exceeds this multiple of its largest C_i.
DIVERGED = 1e3
# The paper decreases tau from 1 by factors of 8. Compared with the smoothed full
# problem, one tau is enough to predict the sets.
TAU = 1.0 / 8.0
# Steps may end at this distance from the smoothed optimum, in units of C_i, or after
# this many: the exactness step needs the sets, not the point.
TOL, MAX_STEPS = 1e-2, 100


@dataclass(frozen=True)
class FoldProblems:
    """Problems that share K and y; C and offsets have one row per fold.

    K must be positive semi-definite. C[k, i] = 0 if fold k leaves sample i out.
    """

    K: FloatArray  # (n, n)
    y: FloatArray  # (n,)
    C: FloatArray  # (k, n)
    offsets: FloatArray  # (k, n)
    totals: FloatArray  # (k,)
    fit_intercept: bool

    def __len__(self) -> int:
        """Return the number of folds."""
        return self.C.shape[0]

    def take(self, which: IntArray | BoolArray) -> FoldProblems:
        """Return some of the folds."""
        some = self.C[which], self.offsets[which], self.totals[which]
        return FoldProblems(self.K, self.y, *some, self.fit_intercept)


@dataclass(frozen=True)
class Majoriser:
    """The inverse shared by the steps of all folds, for one tau.

    With ``D = diag(C) / (2 tau)``, C the largest over the folds, the step ::

        (b, eta) <- (b, eta) - P^-1 gradient,   P = Z'D Z + blockdiag(0, K),  Z = (1, K)

    never increases the objective of a fold. With ``r = eta + y C L_tau'(u)`` it is

        q = M (r - s D1),   M = (I + D K)^-1,   s such that 1'q = sum(eta) - total,

    and ``K q = D^-1 (r - q) - s 1``: one product with M per step, none with K.
    """

    tau: float
    curvature: FloatArray  # diagonal of D
    transposed: FloatArray  # M'
    intercept_column: FloatArray  # M D 1; zeros without an intercept
    intercept_scale: float  # its sum

    @classmethod
    def of(
        cls, K: FloatArray, C: FloatArray, tau: float, fit_intercept: bool
    ) -> Majoriser:
        """Factor ``I + sqrt(D) K sqrt(D)``, positive definite whatever K is."""
        curvature = C / (2.0 * tau)
        root = np.sqrt(curvature)
        matrix = K * root * root[:, None]
        matrix.flat[:: C.size + 1] += 1.0
        upper, _ = lapack.dpotrf(matrix.T, lower=0, overwrite_a=1)
        inverse, _ = lapack.dpotri(upper, lower=0, overwrite_c=1)
        full = np.triu(inverse, 1)
        full += np.triu(inverse).T
        # M = sqrt(D) (I + sqrt(D) K sqrt(D))^-1 / sqrt(D)
        full *= root / root[:, None]
        column = curvature @ full if fit_intercept else np.zeros_like(C)
        return cls(tau, curvature, full, column, float(column.sum()) or 1.0)


@dataclass
class Iterate:
    """Coefficients eta, K eta and b of each fold, one row per fold."""

    eta: FloatArray
    values: FloatArray
    b: FloatArray

    def take(self, which: IntArray | BoolArray) -> Iterate:
        """Return some of the folds."""
        return Iterate(self.eta[which], self.values[which], self.b[which])

    def put(self, which: IntArray | BoolArray, other: Iterate) -> None:
        """Write some of the folds."""
        self.eta[which], self.values[which] = other.eta, other.values
        self.b[which] = other.b


def minimise(
    folds: FoldProblems,
    majoriser: Majoriser,
    start: Iterate,
    tol: float = TOL,
    max_steps: int = MAX_STEPS,
) -> int:
    """Minimise the smoothed problems in place; return the total number of steps.

    Nesterov's momentum, restarted for a fold when it points uphill (O'Donoghue & Candes
    2015). A fold is done when its residual is at most tol times max(C).
    """
    rows = np.arange(len(folds))
    now, ahead = start, start.take(rows)
    age, total = np.zeros(rows.size), 0
    limit = tol * folds.C.max(axis=1, initial=0.0)
    for _ in range(max_steps):
        residual = _residual(folds, majoriser.tau, ahead)
        size = np.abs(residual).max(axis=1, initial=0.0)
        # If I + D K is numerically singular, steps may diverge.
        lost = ~(size <= DIVERGED * np.maximum(limit, folds.C.max(axis=1)))
        done = (size <= limit) | lost
        total += rows.size
        new, uphill = _step(folds, majoriser, now, ahead, residual)
        age = np.where(uphill, 0.0, age + 1.0)
        _extrapolate(ahead, now, new, np.where(uphill, 0.0, age / (age + 3.0)))
        now = new
        if done.mean() >= LEAVE or lost.any():
            start.put(rows[done], now.take(done))
            rows, age, limit = rows[~done], age[~done], limit[~done]
            folds = folds.take(~done)
            now, ahead = now.take(~done), ahead.take(~done)
            if rows.size == 0:
                break
    start.put(rows, now)
    return total


def _residual(folds: FoldProblems, tau: float, at: Iterate) -> FloatArray:
    """Eta + y C L_tau'(u): zero at the smoothed optimum."""
    u = at.values + folds.offsets
    u += at.b[:, None]
    u *= folds.y
    share = np.subtract(1.0 + tau, u, out=u)  # becomes -L_tau'(u), in [0, 1]
    share /= 2.0 * tau
    np.clip(share, 0.0, 1.0, out=share)
    share *= folds.C
    share *= folds.y
    return np.subtract(at.eta, share, out=share)


def _step(
    folds: FoldProblems,
    majoriser: Majoriser,
    now: Iterate,
    ahead: Iterate,
    residual: FloatArray,
) -> tuple[Iterate, BoolArray]:
    """Take one step from ``ahead``; also return whether its momentum pointed uphill."""
    q = residual @ majoriser.transposed
    s = np.zeros(len(folds))
    if folds.fit_intercept:
        unbalanced = ahead.eta.sum(axis=1) - folds.totals
        s = (q.sum(axis=1) - unbalanced) / majoriser.intercept_scale
        q -= s[:, None] * majoriser.intercept_column
    moved = residual - q  # D (s 1 + K q)
    moved /= majoriser.curvature
    moved -= s[:, None]
    np.subtract(ahead.values, moved, out=moved)
    new = Iterate(np.subtract(ahead.eta, q, out=q), moved, ahead.b - s)
    # Gradient in (b, eta) is (sum of slopes + total, K residual).
    slope = residual.sum(axis=1) - ahead.eta.sum(axis=1) + folds.totals
    climb = np.einsum("ki,ki->k", residual, new.values - now.values)
    if folds.fit_intercept:
        climb += slope * (new.b - now.b)
    return new, climb > 0.0


def _extrapolate(
    ahead: Iterate, now: Iterate, new: Iterate, momentum: FloatArray
) -> None:
    """Write ``new + momentum (new - now)`` into ahead."""
    for name in ("eta", "values"):
        out = getattr(ahead, name)
        np.subtract(getattr(new, name), getattr(now, name), out=out)
        out *= momentum[:, None]
        out += getattr(new, name)
    ahead.b = new.b + momentum * (new.b - now.b)
