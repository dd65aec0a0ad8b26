# SPDX-License-Identifier: BSD-3-Clause
r"""Accelerated majorise-minimise steps on the smoothed machines of a family, BLAS-3.

Wang & Yang (2022), eqs. (9)-(11), repaired (docs/method/consolidated). The curvature of
the smoothed hinge is at most 1 / (2 tau), so with ``D = diag(C) / (2 tau)`` the step

    (b, eta) <- (b, eta) - P^-1 gradient,   P = Z'D Z + blockdiag(0, K),  Z = (1, K),

never increases the objective of any machine whose boxes are at most C: P is shared.
With r = eta - y C share(u), the residual of ``alpha = -C L_tau'``, it is in closed form

    q = M (r - s D1),   M = (I + D K)^-1,   s such that 1'q = sum(eta) - total,

and ``K q = D^-1 (r - q) - s 1``: one product with M a step, none with K, and K may be
singular.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from leaveout._typing import BoolArray, FloatArray
from leaveout.solve._family import Family
from leaveout.solve._smoothed_hinge import box_share

# Machines that are done leave the matrix when this share of it has gathered.
LEAVE = 0.25
# A residual of this many boxes is that of a machine that is given up.
DIVERGED = 1e3


@dataclass(frozen=True)
class Majoriser:
    """The shared inverse for one tau.

    Parameters
    ----------
    tau : float
        Half-width of the smoothed corner.
    curvature : ndarray of shape (n,)
        D, the largest curvature of each sample's loss.
    transposed : ndarray of shape (n, n)
        M', so that rows of a matrix are multiplied by M.
    bias_column : ndarray of shape (n,)
        M D 1 over its sum; zeros without an intercept.
    """

    tau: float
    curvature: FloatArray
    transposed: FloatArray
    bias_column: FloatArray
    bias_scale: float

    @classmethod
    def of(cls, K: FloatArray, C: FloatArray, tau: float, bias: bool) -> Majoriser:
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
        column = curvature @ full if bias else np.zeros_like(C)
        return cls(tau, curvature, full, column, float(column.sum()) or 1.0)


@dataclass
class Iterate:
    """Where each machine is: coefficients, K eta, bias. One row a machine.

    Parameters
    ----------
    eta, values : ndarray of shape (n_machines, n)
        Coefficients, and K eta.
    b : ndarray of shape (n_machines,)
        Biases.
    """

    eta: FloatArray
    values: FloatArray
    b: FloatArray

    def take(self, which: slice | BoolArray | np.ndarray) -> Iterate:
        """Return some of the machines."""
        return Iterate(self.eta[which], self.values[which], self.b[which])

    def put(self, which: slice | BoolArray | np.ndarray, other: Iterate) -> None:
        """Write some of the machines."""
        self.eta[which], self.values[which] = other.eta, other.values
        self.b[which] = other.b


def minimise(
    family: Family, majoriser: Majoriser, start: Iterate, tol: float, max_steps: int
) -> int:
    """Minimise the smoothed machines in place; return the steps of all machines.

    Nesterov's momentum, restarted for a machine when it points uphill (O'Donoghue &
    Candes 2015).

    Parameters
    ----------
    family : Family
        Some machines.
    majoriser : Majoriser
        Shared inverse for one tau.
    start : Iterate
        Where to start; overwritten by where it ends.
    tol : float
        A machine is done when ``|eta - y C share(u)|`` is at most tol times its box.
    max_steps : int
        Steps of a machine at most.
    """
    rows = np.arange(len(family))
    now, ahead = start, start.take(rows)
    age, total = np.zeros(rows.size), 0
    limit = tol * family.boxes.max(axis=1, initial=0.0)
    for _ in range(max_steps):
        residual = _residual(family, majoriser.tau, ahead)
        size = np.abs(residual).max(axis=1, initial=0.0)
        # Where I + D K is singular to rounding, steps may lead away.
        lost = ~(size <= DIVERGED * np.maximum(limit, family.boxes.max(axis=1)))
        done = (size <= limit) | lost
        total += rows.size
        new, uphill = _step(family, majoriser, now, ahead, residual)
        age = np.where(uphill, 0.0, age + 1.0)
        _extrapolate(ahead, now, new, np.where(uphill, 0.0, age / (age + 3.0)))
        now = new
        if done.mean() >= LEAVE or lost.any():
            start.put(rows[done], now.take(done))
            rows, age, limit = rows[~done], age[~done], limit[~done]
            family = family.take(~done)
            now, ahead = now.take(~done), ahead.take(~done)
            if rows.size == 0:
                break
    start.put(rows, now)
    return total


def _residual(family: Family, tau: float, at: Iterate) -> FloatArray:
    """Eta - y C share(u): zero at the smoothed optimum."""
    u = at.values + family.offsets
    u += at.b[:, None]
    u *= family.y
    share = box_share(u, tau, out=u)
    share *= family.boxes
    share *= family.y
    return np.subtract(at.eta, share, out=share)


def _step(
    family: Family,
    majoriser: Majoriser,
    now: Iterate,
    ahead: Iterate,
    residual: FloatArray,
) -> tuple[Iterate, BoolArray]:
    """One step from ``ahead``; also, whether its momentum pointed uphill."""
    q = residual @ majoriser.transposed
    s = np.zeros(len(family))
    if family.fit_intercept:
        unbalanced = ahead.eta.sum(axis=1) - family.totals
        s = (q.sum(axis=1) - unbalanced) / majoriser.bias_scale
        q -= s[:, None] * majoriser.bias_column
    moved = residual - q  # D (s 1 + K q)
    moved /= majoriser.curvature
    moved -= s[:, None]
    np.subtract(ahead.values, moved, out=moved)
    new = Iterate(np.subtract(ahead.eta, q, out=q), moved, ahead.b - s)
    # Gradient in (b, eta) is (sum of slopes + total, K residual).
    slope = residual.sum(axis=1) - ahead.eta.sum(axis=1) + family.totals
    climb = np.einsum("ki,ki->k", residual, new.values - now.values)
    if family.fit_intercept:
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
