# SPDX-License-Identifier: BSD-3-Clause
"""All folds of one SVM solved together by smoothing (Wang & Yang 2022).

The hinge made smooth: a parabola of half-width tau in the place of the corner.

Wang & Yang (2022), section 2.3, with u = y f(x)::

    L_tau(u) = 0                        u >= 1 + tau
               (u - 1 - tau)^2 / 4 tau  in between
               1 - u                    u <= 1 - tau

``L <= L_tau <= L + tau / 4`` and ``|L_tau''| <= 1 / (2 tau)``. At the smoothed optimum
``alpha_i = -C_i L_tau'(u_i)``, so tau says which samples may be on the margin.

Many machines over one kernel matrix that differ in their boxes: the folds.

Machine k is ``min 1/2 eta'K eta + sum_i C_ki max(0, 1 - y_i f_i) + b total_k`` with
``f = K eta + offset_k + b``. Offsets and totals come from samples whose coefficients
are known beforehand and that are left out of K; without such samples they are zero.
With an intercept ``sum(eta) = total_k``.

Accelerated majorise-minimise steps on the smoothed machines of a family, BLAS-3.

Wang & Yang (2022), eqs. (9)-(11), repaired (docs/method/consolidated). The curvature of
the smoothed hinge is at most 1 / (2 tau), so with ``D = diag(C) / (2 tau)`` the step

    (b, eta) <- (b, eta) - P^-1 gradient,   P = Z'D Z + blockdiag(0, K),  Z = (1, K),

never increases the objective of any machine whose boxes are at most C: P is shared.
With r = eta - y C share(u), the residual of ``alpha = -C L_tau'``, it is in closed form

    q = M (r - s D1),   M = (I + D K)^-1,   s such that 1'q = sum(eta) - total,

and ``K q = D^-1 (r - q) - s 1``: one product with M a step, none with K, and K may be
singular.

The exactness step: from who is on the margin to the exact coefficients, BLAS-3.

With the sets E (on the margin) and B (alpha = C) of a machine known, its coefficients
solve a linear system ("projection step" of Wang & Zou 2022; here our own, see
docs/method/consolidated)::

    [[K_EE, 1], [1', 0]] (eta_E; b) = (y_E - offset_E - K_EB eta_B; total - sum(eta_B))

and the sets are right if and only if 0 <= alpha_E <= C and the margins of the others
are on the right side. If not, those that are wrong change their set, and the system is
solved again: a primal-dual active set. Nothing is taken on trust: a machine counts as
solved when its optimality conditions hold.

Solve a family of machines exactly, by smoothing: tau <- tau / 8 until it is proved.

Wang & Yang (2022), end of section 2.3. Each round minimises the smoothed machines with
one shared factorisation, then tries the exactness step. Machines that are solved leave;
what is left after the last round is the caller's to solve otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import lapack

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import weighted_median_intervals
from leaveout.run._parallel import map_chunks

# A coefficient nearer to its bound than this share of the box is not free.
ROOM = 1e-9
# Largest optimality residual, relative to max(1, sum_j |eta_j K_ij|), and largest
# duality gap, relative to max(1, primal), of a machine that counts as solved.
KKT_TOL = 1e-9
GAP_TOL = 1e-10
# Machines that are done leave the matrix when this share of it has gathered.
LEAVE = 0.25
# A residual of this many boxes is that of a machine that is given up.
DIVERGED = 1e3
# Exchanges a call; most machines need two or three.
ROUNDS = 30
PATIENCE = 3
# Numbers in one stack of systems.
STACK = 2_000_000
# Violations below this are rounding.
SLACK = 1e-12
# Added to K_EE, relative to its diagonal, so that copies do not make it singular: as
# small as rounding, or the hinge times a large C would see it in the duality gap.
RIDGE = 2e-15
# tau of the rounds. The paper begins with 1; from the full solution 1/8 is near enough
# and its exactness steps are a third of the work (n = 200, easy and hard C).
TAUS = tuple(8.0**-k for k in range(1, 6))
# How far from the smoothed optimum a round may end, in boxes: the exactness step needs
# the sets, not the point.
TOL = 1e-2
MAX_STEPS = 100
# Machines worked on at a time: enough for BLAS-3, few enough for the cache.
BLOCK = 128


def smoothed_hinge(u: FloatArray, tau: float) -> FloatArray:
    """Return L_tau(u).

    Examples
    --------
    >>> import numpy as np
    >>> smoothed_hinge(np.array([-1.0, 0.5, 1.0, 1.5, 2.0]), 0.5)
    array([2.   , 0.5  , 0.125, 0.   , 0.   ])
    """
    inside = np.clip(1.0 + tau - u, 0.0, 2.0 * tau)
    beyond = np.maximum(1.0 - tau - u, 0.0)
    return inside**2 / (4.0 * tau) + beyond


def box_share(u: FloatArray, tau: float, out: FloatArray | None = None) -> FloatArray:
    """Return -L_tau'(u): the share of its box that alpha takes, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> box_share(np.array([-1.0, 0.5, 1.0, 1.5, 2.0]), 0.5)
    array([1. , 1. , 0.5, 0. , 0. ])
    """
    share = np.subtract(1.0 + tau, u, out=out)
    share /= 2.0 * tau
    return np.clip(share, 0.0, 1.0, out=share)


@dataclass(frozen=True)
class FoldProblems:
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

    def take(self, which: IntArray | slice) -> FoldProblems:
        """Return some of the machines."""
        return FoldProblems(
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


def certify(family: FoldProblems, eta: FloatArray) -> Certificate:
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
        Interval of b as in ``solve_svc``: a point where some
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
    family: FoldProblems, eta: FloatArray, values: FloatArray
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


def _kkt_violation(
    family: FoldProblems, alpha: FloatArray, short: FloatArray
) -> FloatArray:
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
    family: FoldProblems,
    majoriser: Majoriser,
    start: Iterate,
    tol: float,
    max_steps: int,
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


def _residual(family: FoldProblems, tau: float, at: Iterate) -> FloatArray:
    """Eta - y C share(u): zero at the smoothed optimum."""
    u = at.values + family.offsets
    u += at.b[:, None]
    u *= family.y
    share = box_share(u, tau, out=u)
    share *= family.boxes
    share *= family.y
    return np.subtract(at.eta, share, out=share)


def _step(
    family: FoldProblems,
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


def finish(
    family: FoldProblems, near: Iterate, tau: float
) -> tuple[FloatArray, BoolArray]:
    """Solve machines exactly from iterates near their optima.

    Parameters
    ----------
    family : Family
        Some machines.
    near : Iterate
        Minimisers of the smoothed machines, roughly.
    tau : float
        Samples with |u - 1| < tau are taken to be on the margin at first.

    Returns
    -------
    eta : ndarray of shape (n_machines, n)
        Coefficients within their boxes; of unsolved machines, where it ended.
    solved : ndarray of bool, shape (n_machines,)
        Whether the optimality conditions of the machine hold.
    """
    sets = _Sets.near(family, near, tau)
    eta, solved = near.eta.copy(), np.zeros(len(family), dtype=bool)
    rows = np.arange(len(family))
    for _ in range(ROUNDS):
        part = family.take(rows)
        found, values, b = interpolate(part, sets.margin[rows], sets.bounded[rows])
        wrong = sets.exchange(rows, part, found, values, b)
        eta[rows] = part.y * np.clip(part.y * found, 0.0, part.boxes)
        solved[rows[~wrong]] = True
        rows = rows[wrong]
        if rows.size == 0:
            break
    return eta, solved


@dataclass
class _Sets:
    """Who is on the margin and who is bounded in each machine, and how it goes.

    Block principal pivoting: all samples whose set is wrong change it, as long as that
    makes them fewer; after PATIENCE rounds without a new minimum only the last of
    them, which without an intercept cannot cycle (Judice & Pires 1994).
    """

    margin: BoolArray
    bounded: BoolArray
    fewest: IntArray
    patience: IntArray

    @classmethod
    def near(cls, family: FoldProblems, near: Iterate, tau: float) -> _Sets:
        """Guess by the margins of the smoothed machines."""
        u = family.y * (near.values + family.offsets + near.b[:, None])
        present, k = family.boxes > 0.0, len(family)
        return cls(
            present & (np.abs(u - 1.0) < tau),
            present & (u <= 1.0 - tau),
            np.full(k, family.y.size + 1),
            np.full(k, PATIENCE),
        )

    def exchange(
        self,
        rows: IntArray,
        family: FoldProblems,
        eta: FloatArray,
        values: FloatArray,
        b: FloatArray,
    ) -> BoolArray:
        """Move samples whose set is wrong; return the machines that have such."""
        y, C = family.y, family.boxes
        alpha, u = y * eta, y * (values + b[:, None])
        on, at_bound = self.margin[rows], self.bounded[rows]
        idle = ~on & ~at_bound & (C > 0.0)
        size = np.maximum(1.0, np.abs(values).max(axis=1, initial=0.0))
        slack = SLACK * size[:, None]
        room = SLACK * np.minimum(C, np.abs(alpha).max(axis=1, initial=0.0)[:, None])
        too_high = on & (alpha > C + room)
        moves = too_high | (on & (alpha < -room))
        moves |= (idle & (u < 1.0 - slack)) | (at_bound & (u > 1.0 + slack))
        if family.fit_intercept:
            moves |= _holds_bias(family, eta, u, on)
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


def _holds_bias(
    family: FoldProblems, eta: FloatArray, u: FloatArray, on: BoolArray
) -> BoolArray:
    """Where nobody is on the margin and sum(eta) is wrong: whoever holds b."""
    C = family.boxes
    off = np.abs(eta.sum(axis=1) - family.totals) > SLACK * C.sum(axis=1)
    stuck = np.flatnonzero(off & ~on.any(axis=1) & (C > 0.0).any(axis=1))
    holds = np.zeros_like(on)
    distance = np.where(C[stuck] > 0.0, np.abs(u[stuck] - 1.0), np.inf)
    holds[stuck, distance.argmin(axis=1)] = True
    return holds


def interpolate(
    family: FoldProblems, margin: BoolArray, bounded: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Solve the linear systems of given sets.

    Parameters
    ----------
    family : Family
        Some machines.
    margin, bounded : ndarray of bool, shape (n_machines, n)
        Sets E and B.

    Returns
    -------
    eta : ndarray of shape (n_machines, n)
        Coefficients, in or out of their boxes.
    values : ndarray of shape (n_machines, n)
        ``K eta + offset``.
    b : ndarray of shape (n_machines,)
        Biases; where E is empty, one that is best for these values.
    """
    eta = np.where(bounded, family.y * family.boxes, 0.0)
    values = eta @ family.K + family.offsets
    missing = family.totals - eta.sum(axis=1)
    b = np.zeros(len(family))
    size = int(margin.sum(axis=1).max(initial=0))
    if size:
        # Members first, then whoever pads the system to the common size.
        members = np.argsort(~margin, axis=1, kind="stable")[:, :size]
        step = max(1, STACK // (size + 1) ** 2)
        for first in range(0, len(family), step):
            part = slice(first, first + step)
            found, b[part] = _solve_stack(
                family, margin[part], members[part], values[part], missing[part]
            )
            np.put_along_axis(eta[part], members[part], found, axis=1)
        eta[bounded] = (family.y * family.boxes)[bounded]
        values = eta @ family.K + family.offsets
    if family.fit_intercept:
        empty = np.flatnonzero(~margin.any(axis=1))
        low, high = bias_intervals(family.take(empty), eta[empty], values[empty])
        ends = np.where(np.isinf(low), high, low)
        b[empty] = 0.5 * (ends + np.where(np.isinf(high), ends, high))
    return eta, values, b


def _solve_stack(
    family: FoldProblems,
    margin: BoolArray,
    members: IntArray,
    values: FloatArray,
    missing: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Coefficients on E, zero for padding, and b, of some machines."""
    real = np.take_along_axis(margin, members, axis=1)
    k, size = members.shape
    matrix = np.zeros((k, size + 1, size + 1))
    inner = family.K[members[:, :, None], members[:, None, :]]
    inner *= real[:, :, None] & real[:, None, :]
    matrix[:, :size, :size] = inner
    diagonal = np.arange(size)
    matrix[:, diagonal, diagonal] += ~real
    target = np.zeros((k, size + 1))
    target[:, :size] = np.where(
        real, family.y[members] - np.take_along_axis(values, members, axis=1), 0.0
    )
    if family.fit_intercept:
        matrix[:, :size, size] = matrix[:, size, :size] = real
        target[:, size] = missing
    matrix[:, size, size] = ~real.any(axis=1) | (not family.fit_intercept)
    target[:, size] *= matrix[:, size, size] == 0.0
    sizes = family.K.diagonal()
    ridge = RIDGE * (sizes + (float(sizes.mean()) or 1.0))[members]
    matrix[:, diagonal, diagonal] += ridge
    try:
        found = np.linalg.solve(matrix, target[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:  # one of them is singular to the last bit
        matrix[:, diagonal, diagonal] += 1e4 * ridge
        found = np.linalg.solve(matrix, target[:, :, None])[:, :, 0]
    return found[:, :size] * real, found[:, size]


@dataclass(frozen=True)
class Smoothed:
    """What smoothing made of a family.

    Parameters
    ----------
    eta : ndarray of shape (n_machines, n)
        Coefficients within their boxes.
    solved : ndarray of bool, shape (n_machines,)
        Whether the optimality conditions hold.
    n_steps : int
        Majorise-minimise steps of all machines.
    rounds : ndarray of int, shape (n_machines,)
        Values of tau each machine went through.
    """

    eta: FloatArray
    solved: BoolArray
    n_steps: int
    rounds: IntArray


def solve_family(
    family: FoldProblems, C: FloatArray, start: Iterate, *, n_threads: int = 1
) -> Smoothed:
    """Solve machines that share a kernel matrix, all at once.

    Parameters
    ----------
    family : Family
        The machines.
    C : ndarray of shape (n,)
        Largest box of each sample over the machines; > 0.
    start : Iterate
        Where to start; overwritten.
    n_threads : int, default=1
        Threads over blocks of machines.

    Returns
    -------
    Smoothed
        Check ``solved``.
    """
    k = len(family)
    eta, solved = start.eta.copy(), np.zeros(k, dtype=bool)
    rounds, steps = np.zeros(k, dtype=np.intp), np.zeros(k, dtype=np.intp)
    if family.boxes.size == 0:
        return Smoothed(eta, ~solved, 0, rounds)
    open_ = np.arange(k)
    reach = _reach(family, start)
    for tau in TAUS:
        majoriser = Majoriser.of(family.K, C, tau * reach, family.fit_intercept)
        run = partial(_run_block, family, majoriser, start, open_, eta, solved, steps)
        map_chunks(run, open_.size, n_threads, BLOCK)
        rounds[open_] += 1
        open_ = np.flatnonzero(~solved)
        if open_.size == 0:
            break
    return Smoothed(eta, solved, int(steps.sum()), rounds)


def _run_block(
    family: FoldProblems,
    majoriser: Majoriser,
    start: Iterate,
    open_: IntArray,
    eta: FloatArray,
    solved: BoolArray,
    steps: IntArray,
    block: slice,
) -> None:
    """One round of some of the open machines; writes start, eta, solved, steps."""
    rows = open_[block]
    part, at = family.take(rows), start.take(rows)
    steps[rows[0]] += minimise(part, majoriser, at, TOL, MAX_STEPS)
    start.put(rows, at)
    eta[rows], solved[rows] = finish(part, at, majoriser.tau)


def _reach(family: FoldProblems, start: Iterate) -> float:
    """Spread of the decision values, at most 1: the scale that tau is measured in.

    With a small C and an intercept all of the heavier class is next to the margin, at
    distances of the order of C: tau must tell them apart.
    """
    if not family.fit_intercept:
        return 1.0
    spread = float(np.ptp(start.values[0] + family.offsets[0]))
    return min(1.0, spread) or 1.0
