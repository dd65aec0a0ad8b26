# SPDX-License-Identifier: BSD-3-Clause
"""All folds of one SVM, solved together by smoothing (Wang & Yang 2022, section 2.3).

Fold k is the problem with its own upper bounds C_k, 0 for the samples left out::

    min 1/2 eta'K eta + sum_i C_ki max(0, 1 - y_i f_i) + b total_k,
    f = K eta + offset_k + b

Offsets and totals come from samples with known coefficients, which are not in K.
With an intercept sum(eta) = total_k. ``solve_folds`` repeats for decreasing tau:

1. ``minimise`` replaces the hinge L by L_tau, a parabola for |u - 1| < tau, u = y f,
   and takes accelerated majorise-minimise steps for all folds at once, in BLAS-3 (eqs.
   (9)-(11), corrected in docs/method/consolidated). At the optimum alpha = -C L_tau'.
2. ``finish`` guesses from |u - 1| < tau which samples are on the margin, and corrects
   the guess until the linear system of these sets satisfies the optimality conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import weighted_median_intervals
from leaveout.engine._problem import middle
from leaveout.run._parallel import map_chunks

# A coefficient within this share of C_i of its bound is not free.
ROOM = 1e-9
# Tolerances of a solved fold: KKT residual relative to max(1, sum_j |eta_j K_ij|), and
# duality gap relative to max(1, primal).
KKT_TOL, GAP_TOL = 1e-9, 1e-10
# Finished folds are removed from the arrays when they reach this share.
LEAVE = 0.25
# A fold is abandoned if its residual exceeds this multiple of its largest C_i.
DIVERGED = 1e3
# Largest number of set exchanges per call (most folds need two or three), and without
# improvement.
ROUNDS, PATIENCE = 30, 3
# Matrix entries in one stack of systems.
STACK = 2_000_000
# Violations below this are rounding errors.
SLACK = 1e-12
# Added to K_EE, relative to its diagonal, so that duplicates do not make it singular.
# It must be as small as rounding errors, or it would show in the duality gap for large
# C.
RIDGE = 2e-15
# The paper starts with tau = 1; from the full solution, 1/8 is close enough.
TAUS = tuple(8.0**-k for k in range(1, 6))
# A round may end at this distance from the smoothed optimum, in units of C_i, or after
# this many steps: the exactness step needs the sets, not the point.
TOL, MAX_STEPS = 1e-2, 100
# Folds worked on at a time: enough for BLAS-3, few enough for the cache.
BLOCK = 128


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


class Certificate(NamedTuple):
    """Values K eta of each fold, all its optimal b, and whether eta is optimal."""

    values: FloatArray  # (k, n)
    low: FloatArray  # (k,)
    high: FloatArray  # (k,)
    optimal: BoolArray  # (k,)


def certify(folds: FoldProblems, eta: FloatArray) -> Certificate:
    """Test whether each row of eta, within its bounds, is optimal; without offsets."""
    y, C = folds.y, folds.C
    values = eta @ folds.K
    low, high = intercept_intervals(folds, eta, values)
    b = middle(low, high)
    alpha, short = y * eta, 1.0 - y * (values + b[:, None])
    hinge = C * np.maximum(0.0, short)
    primal = 0.5 * np.einsum("ki,ki->k", eta, values) + hinge.sum(axis=1)
    # Complementarity terms C_i xi_i - alpha_i (1 - h_i) >= 0: no cancellation.
    gap = (hinge - alpha * short).sum(axis=1) - b * eta.sum(axis=1)
    violation, allowed = _kkt_violation(C, alpha, short), np.maximum(1.0, primal)
    optimal = (gap <= GAP_TOL * allowed) & (violation.max(axis=1) <= KKT_TOL)
    # Allow for the rounding error of decision values with large terms, which the hinge
    # multiplies by C.
    rest = np.flatnonzero(~optimal)
    scale = np.maximum(1.0, np.abs(eta[rest]) @ np.abs(folds.K))
    rounding = 4.0 * np.finfo(float).eps * (C[rest] * scale).sum(axis=1)
    optimal[rest] = (gap[rest] <= GAP_TOL * allowed[rest] + rounding) & np.all(
        violation[rest] <= KKT_TOL * scale, axis=1
    )
    if folds.fit_intercept:
        total = np.abs(eta).sum(axis=1)
        optimal &= np.abs(eta.sum(axis=1)) <= KKT_TOL * total
    return Certificate(values, low, high, optimal)


def intercept_intervals(
    folds: FoldProblems, eta: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return all optimal b of each fold with decision values ``values + b``."""
    if not folds.fit_intercept:
        return np.zeros(len(folds)), np.zeros(len(folds))
    y, C = folds.y, folds.C
    alpha, breakpoints = y * eta, y - values
    free = np.minimum(alpha, C - alpha) > ROOM * C
    n_free = free.sum(axis=1)
    low = (breakpoints * free).sum(axis=1) / np.maximum(n_free, 1)
    high = low.copy()
    rest = np.flatnonzero(n_free == 0)
    if rest.size:
        levels = (C[rest] * (y > 0)).sum(axis=1) - folds.totals[rest]
        low[rest], high[rest] = weighted_median_intervals(
            breakpoints[rest], C[rest], levels
        )
    return low, high


def _kkt_violation(C: FloatArray, alpha: FloatArray, short: FloatArray) -> FloatArray:
    """How far each sample is from alpha = 0, free, = C with h >= 1, = 1, <= 1."""
    violation = np.where(alpha <= ROOM * C, np.maximum(short, 0.0), np.abs(short))
    at_bound = C - alpha <= ROOM * C
    violation = np.where(at_bound, np.maximum(-short, 0.0), violation)
    violation[C == 0.0] = 0.0
    return violation


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
    tol: float,
    max_steps: int,
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


def finish(
    folds: FoldProblems, near: Iterate, tau: float
) -> tuple[FloatArray, BoolArray]:
    """Solve folds exactly from iterates near their optima.

    ``interpolate`` solves for given sets E (on the margin) and B (alpha = C). Samples
    that violate 0 <= alpha_E <= C, or whose margin is on the wrong side of 1, change
    their set, and the system is solved again: a primal-dual active set instead of the
    projection step of Wang & Zou (2022). Return eta, and whether the conditions hold.
    """
    sets = _Sets.near(folds, near, tau)
    eta, solved = near.eta.copy(), np.zeros(len(folds), dtype=bool)
    rows = np.arange(len(folds))
    for _ in range(ROUNDS):
        part = folds.take(rows)
        found, values, b = interpolate(part, sets.margin[rows], sets.bounded[rows])
        wrong = sets.exchange(rows, part, found, values, b)
        eta[rows] = part.y * np.clip(part.y * found, 0.0, part.C)
        solved[rows[~wrong]] = True
        rows = rows[wrong]
        if rows.size == 0:
            break
    return eta, solved


@dataclass
class _Sets:
    """Samples on the margin and at their bound in each fold.

    All samples in a wrong set are moved; if their number does not fall for PATIENCE
    rounds, only the last one is (block principal pivoting, Judice & Pires 1994).
    """

    margin: BoolArray
    bounded: BoolArray
    fewest: IntArray
    patience: IntArray

    @classmethod
    def near(cls, folds: FoldProblems, near: Iterate, tau: float) -> _Sets:
        """Guess from the margins of the smoothed problems."""
        u = folds.y * (near.values + folds.offsets + near.b[:, None])
        present, k = folds.C > 0.0, len(folds)
        return cls(
            present & (np.abs(u - 1.0) < tau),
            present & (u <= 1.0 - tau),
            np.full(k, folds.y.size + 1),
            np.full(k, PATIENCE),
        )

    def exchange(
        self,
        rows: IntArray,
        folds: FoldProblems,
        eta: FloatArray,
        values: FloatArray,
        b: FloatArray,
    ) -> BoolArray:
        """Move samples that are in a wrong set; return which folds have any."""
        y, C = folds.y, folds.C
        alpha, u = y * eta, y * (values + b[:, None])
        on, at_bound = self.margin[rows], self.bounded[rows]
        idle = ~on & ~at_bound & (C > 0.0)
        size = np.maximum(1.0, np.abs(values).max(axis=1, initial=0.0))
        slack = SLACK * size[:, None]
        room = SLACK * np.minimum(C, np.abs(alpha).max(axis=1, initial=0.0)[:, None])
        too_high = on & (alpha > C + room)
        moves = too_high | (on & (alpha < -room))
        moves |= (idle & (u < 1.0 - slack)) | (at_bound & (u > 1.0 + slack))
        if folds.fit_intercept:
            moves |= _determines_b(folds, eta, u, on)
        count = moves.sum(axis=1)
        better = count < self.fewest[rows]
        self.fewest[rows] = np.minimum(count, self.fewest[rows])
        self.patience[rows] = np.where(better, PATIENCE, self.patience[rows] - 1)
        single = np.flatnonzero((self.patience[rows] < 0) & (count > 1))
        last = y.size - 1 - moves[single, ::-1].argmax(axis=1)
        moves[single] = False
        moves[single, last] = True
        self.margin[rows] = on ^ moves
        self.bounded[rows] = (at_bound & ~moves) | (too_high & moves)
        return count > 0


def _determines_b(
    folds: FoldProblems, eta: FloatArray, u: FloatArray, on: BoolArray
) -> BoolArray:
    """For folds with an empty margin and wrong sum(eta), return the nearest sample."""
    C = folds.C
    off = np.abs(eta.sum(axis=1) - folds.totals) > SLACK * C.sum(axis=1)
    stuck = np.flatnonzero(off & ~on.any(axis=1) & (C > 0.0).any(axis=1))
    nearest = np.zeros_like(on)
    distance = np.where(C[stuck] > 0.0, np.abs(u[stuck] - 1.0), np.inf)
    nearest[stuck, distance.argmin(axis=1)] = True
    return nearest


def interpolate(
    folds: FoldProblems, margin: BoolArray, bounded: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Solve the linear systems of given sets E (margin) and B (bounded).

    ::

        [[K_EE, 1], [1', 0]] (eta_E; b) = (y_E - offset_E - K_EB eta_B;
                                           total - sum(eta_B))

    Return eta, which may exceed its bounds, K eta + offset, and b; where E is empty, b
    is optimal for these values.
    """
    eta = np.where(bounded, folds.y * folds.C, 0.0)
    values = eta @ folds.K + folds.offsets
    missing = folds.totals - eta.sum(axis=1)
    b = np.zeros(len(folds))
    size = int(margin.sum(axis=1).max(initial=0))
    if size:
        # Members first, then other samples as padding to the common size.
        members = np.argsort(~margin, axis=1, kind="stable")[:, :size]
        step = max(1, STACK // (size + 1) ** 2)
        for first in range(0, len(folds), step):
            part = slice(first, first + step)
            found, b[part] = _solve_stack(
                folds, margin[part], members[part], values[part], missing[part]
            )
            np.put_along_axis(eta[part], members[part], found, axis=1)
        eta[bounded] = (folds.y * folds.C)[bounded]
        values = eta @ folds.K + folds.offsets
    if folds.fit_intercept:
        empty = np.flatnonzero(~margin.any(axis=1))
        ends = intercept_intervals(folds.take(empty), eta[empty], values[empty])
        b[empty] = middle(*ends)
    return eta, values, b


def _solve_stack(
    folds: FoldProblems,
    margin: BoolArray,
    members: IntArray,
    values: FloatArray,
    missing: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients on E, zero for padding, and b."""
    real = np.take_along_axis(margin, members, axis=1)
    k, size = members.shape
    matrix = np.zeros((k, size + 1, size + 1))
    inner = folds.K[members[:, :, None], members[:, None, :]]
    inner *= real[:, :, None] & real[:, None, :]
    matrix[:, :size, :size] = inner
    diagonal = np.arange(size)
    matrix[:, diagonal, diagonal] += ~real
    target = np.zeros((k, size + 1))
    target[:, :size] = np.where(
        real, folds.y[members] - np.take_along_axis(values, members, axis=1), 0.0
    )
    if folds.fit_intercept:
        matrix[:, :size, size] = matrix[:, size, :size] = real
        target[:, size] = missing
    matrix[:, size, size] = ~real.any(axis=1) | (not folds.fit_intercept)
    target[:, size] *= matrix[:, size, size] == 0.0
    sizes = folds.K.diagonal()
    ridge = RIDGE * (sizes + (float(sizes.mean()) or 1.0))[members]
    matrix[:, diagonal, diagonal] += ridge
    try:
        found = np.linalg.solve(matrix, target[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:  # one of them is exactly singular
        matrix[:, diagonal, diagonal] += 1e4 * ridge
        found = np.linalg.solve(matrix, target[:, :, None])[:, :, 0]
    return found[:, :size] * real, found[:, size]


def solve_folds(
    folds: FoldProblems, C: FloatArray, start: Iterate, *, n_threads: int = 1
) -> tuple[FloatArray, int]:
    """Solve all folds at once, by rounds of decreasing tau.

    ``C`` > 0 is the largest bound of each sample; ``start`` is overwritten. Return the
    coefficients, which may not all be optimal, and the number of steps.
    """
    eta, solved = start.eta.copy(), np.zeros(len(folds), dtype=bool)
    steps = np.zeros(len(folds), dtype=np.intp)
    open_ = np.arange(len(folds))

    def run(majoriser: Majoriser, block: slice) -> None:
        rows = open_[block]
        part, at = folds.take(rows), start.take(rows)
        steps[rows[0]] += minimise(part, majoriser, at, TOL, MAX_STEPS)
        start.put(rows, at)
        eta[rows], solved[rows] = finish(part, at, majoriser.tau)

    if folds.C.size == 0:
        return eta, 0
    unit = _reach(folds, start)
    for tau in TAUS:
        majoriser = Majoriser.of(folds.K, C, tau * unit, folds.fit_intercept)
        map_chunks(partial(run, majoriser), open_.size, n_threads, BLOCK)
        open_ = np.flatnonzero(~solved)
        if open_.size == 0:
            break
    return eta, int(steps.sum())


def _reach(folds: FoldProblems, start: Iterate) -> float:
    """Spread of the decision values, at most 1: the unit of tau.

    With a small C the heavier class is near the margin, at distances of order C.
    """
    if not folds.fit_intercept:
        return 1.0
    spread = float(np.ptp(start.values[0] + folds.offsets[0]))
    return min(1.0, spread) or 1.0
