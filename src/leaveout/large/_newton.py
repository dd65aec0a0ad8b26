# SPDX-License-Identifier: BSD-3-Clause
"""Newton's method on the smoothed problems, one pass over the rows per step.

The smoothed primal of one problem is (Wang & Yang 2022, section 2.3)::

    F(w, b) = 1/2 ||w||^2 + C sum_i c_i L_tau(y_i f_i)
    H       = diag(1, ..., 1, 0) + C / (2 tau) sum_{|u - 1| < tau} c_i (z_i, 1)(z_i, 1)'

The *band* is the set of rows with |u - 1| < tau. tau starts at a width that includes a
share of the rows and shrinks until about 2 D rows are left: the exact optimum has at
most D + 1 rows on the margin, so the rows next to it are then known. Width and
intercept of a band come from a histogram of the breakpoints (docs/method/large).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import lapack

from leaveout._typing import FloatArray
from leaveout.large._band_fast import sum_band
from leaveout.large._features import FeatureBlock, FeatureRows, Sums
from leaveout.large._window import LinearProblems
from leaveout.run._parallel import limit_blas, map_in_order

# Offsets are binned by sign, by powers of two from 2^-60 to 2^20, and eighths of these.
HALF = 640
N_BINS = 2 * HALF
_places = np.arange(1, HALF + 1)
_upper = np.ldexp(1.0 + _places % 8 / 8.0, _places // 8 - 60)
EDGES = np.concatenate([-_upper[::-1], [0.0], _upper])
# A point is accurate enough for its tau if another step would gain less than this
# multiple of the smoothing error.
GOOD_ENOUGH = 2.0
# The band shrinks to this share of its rows from one tau to the next, and its width by
# a factor in this range: many equal rows must not determine it.
SHRINK, NARROWEST, WIDEST = 0.2, 0.1, 0.5
# A band with less than this part of its rows carries no information about b.
EMPTY = 0.02
SUFFICIENT_DECREASE = 1e-4
SMALLEST_STEP = 1e-4
# A gain below this, relative to F, counts as rounding error.
ROUNDING = 1e-12
# Weights that differ by less than this part of their sum are equal.
BALANCED = 1e-10
MOST_PASSES = 40
MOST_BANDS = 8
# Augmented Lagrangian: limits, the duality gap per unit of bounds at which the exact
# solver takes over, and the factor of tau from round to round.
MOST_ROUNDS, MOST_STEPS = 60, 30
ACCURATE = 1e-5
FASTER = 0.25


@dataclass
class BandSums(Sums):
    """Sums of one pass at one point, without the factor C of each problem.

    totals : smoothed loss, hinge, complementarity, rows in the band, rows; (L, 5)
    pull : sum of weight * s * q * (z, 1), (L, D + 1); the loss has gradient -C pull
    curvature : sum of weight * (z, 1)(z, 1)' over the band, (L, D + 1, D + 1)
    mass, counts : weight and number of rows by offset v - b, (L, N_BINS)
    radius : largest norm of a row
    """

    totals: FloatArray
    pull: FloatArray
    curvature: FloatArray
    mass: FloatArray
    counts: np.ndarray
    radius: float


def sum_block(
    problems: LinearProblems, tau: FloatArray, block: FeatureBlock
) -> BandSums:
    """Sum the smoothed problems, with half-width tau, over a block."""
    A, n_problems = block.A, len(problems)
    f = problems.decide(A)
    share, band = np.empty(f.shape), np.empty(f.shape, dtype=np.uint8)
    totals, mass = np.empty((n_problems, 5)), np.zeros((n_problems, N_BINS))
    counts = np.zeros((n_problems, N_BINS), dtype=np.int64)
    sum_band(
        f, block.codes, problems.positive, problems.negative, block.weight, tau,
        share, band, totals, mass, counts,
    )  # fmt: skip
    curvature = np.empty((n_problems, A.shape[1], A.shape[1]))
    for rows, out in zip(band, curvature, strict=True):
        near = np.flatnonzero(rows)
        some = A[near] * np.sqrt(block.weight[near])[:, None]
        np.matmul(some.T, some, out=out)
    return BandSums(totals, share @ A, curvature, mass, counts, block.radius)


@dataclass(frozen=True)
class Breakpoints:
    """Histogram of the offsets v - b of the rows of one problem.

    ``level`` is the weight of the negative class. For fixed w the loss is smallest
    where the weight of the offsets above b is ``level``, and the smoothed loss where::

        T(b) = sum_i c_i clip((v_i - b + tau) / 2 tau, 0, 1) = level
    """

    mass: FloatArray
    counts: np.ndarray
    level: float

    def place_band(self, n_rows: float) -> tuple[float, float]:
        """Return the shift of b and the half-width of a band with so many rows."""
        total = float(self.mass.sum())
        above = total - np.concatenate([[0.0], np.cumsum(self.mass)])
        if abs(above[HALF] - self.level) <= BALANCED * total:
            return 0.0, self.half_width(n_rows)  # the best b form an interval around b
        middle = float(np.interp(self.level, above[::-1], EDGES[::-1]))
        tau = self.half_width(n_rows, middle)
        return (self._smoothed_shift(above, tau) if tau > 0.0 else middle), tau

    def half_width(self, n_rows: float, middle: float = 0.0) -> float:
        """Return tau such that about n_rows offsets are within tau of the middle."""
        up_to = np.concatenate([[0.0], np.cumsum(self.counts)])
        width = np.unique(np.abs(EDGES - middle))
        inside = np.interp(middle + width, EDGES, up_to)
        inside -= np.interp(middle - width, EDGES, up_to)
        last = int(np.searchsorted(inside, inside[-1]))
        return float(np.interp(n_rows, inside[: last + 1], width[: last + 1]))

    def _smoothed_shift(self, above: FloatArray, tau: float) -> float:
        """Solve T(b) = level by bisection."""
        area = 0.5 * (above[1:] + above[:-1]) * np.diff(EDGES)
        area = np.concatenate([[0.0], np.cumsum(area)])
        used = np.flatnonzero(self.mass)
        low, high = float(EDGES[used[0]]) - tau, float(EDGES[used[-1] + 1]) + tau
        while high - low > 1e-3 * tau:
            middle = 0.5 * (low + high)
            first, last = np.interp([middle - tau, middle + tau], EDGES, area)
            if last - first > 2.0 * tau * self.level:
                low = middle
            else:
                high = middle
            if middle in (low, high) and high - low <= np.spacing(abs(middle)):
                break
        return 0.5 * (low + high)


@dataclass(kw_only=True)
class LineSearch:
    """A problem on its way: the point (w, b) and tau to evaluate in the next pass.

    The point is on a line from the last accepted one, ``base``, whose value is
    ``value``; ``promised`` is the decrease per unit of ``step`` there.
    """

    point: FloatArray
    tau: float
    done: bool = False
    base: FloatArray = field(init=False)
    direction: FloatArray = field(init=False)
    value: float = np.inf
    promised: float = 0.0
    step: float = 1.0

    def accepts(self, value: float, gradient: FloatArray) -> bool:
        """Whether the value at the point is low enough; if not, move back."""
        wanted = self.value - SUFFICIENT_DECREASE * self.step * self.promised
        if not value <= wanted and self.step > SMALLEST_STEP:
            slope = float(gradient @ self.direction)
            fall = max(self.promised, 0.0)
            # Where a line through both slopes is zero.
            part = fall / (fall + slope) if slope > 0.0 else 0.5
            self.step *= min(max(part, 0.05), 0.6)
            self.go()
            return False
        self.base, self.value, self.step = self.point, value, 1.0
        return True

    def aim(self, direction: FloatArray, gradient: FloatArray) -> None:
        self.direction, self.promised = direction, -float(gradient @ direction)

    def go(self) -> None:
        self.point = self.base + self.step * self.direction

    def absorb(self, sums: BandSums, k: int) -> None:
        """Process the sums of problem k at the point, and propose the next one."""
        raise NotImplementedError


def descend(
    rows: FeatureRows,
    problems: LinearProblems,
    states: Sequence[LineSearch],
    after_pass: Callable[[], None] | None = None,
) -> None:
    """Advance all problems until they are done, one pass per step; changes states."""
    for _ in range(MOST_PASSES):
        open_ = np.array([k for k, s in enumerate(states) if not s.done], np.intp)
        if open_.size == 0:
            break
        at = [states[k] for k in open_]
        here, tau = problems.take(open_).at([s.point for s in at]), [s.tau for s in at]
        sums = rows.run(partial(sum_block, here, np.array(tau)))
        with limit_blas(1):
            steps = map_in_order(partial(_step, sums), enumerate(at), rows.n_threads)
            deque(steps, maxlen=0)
        if after_pass is not None:
            after_pass()


def _step(sums: BandSums, item: tuple[int, LineSearch]) -> None:
    place, state = item
    state.absorb(sums, place)


@dataclass(kw_only=True)
class NewtonState(LineSearch):
    """A smoothed problem.

    ``level`` is the weight of the negative class, ``least`` the number of rows in the
    last band, ``share`` the share of the rows in this one. With tau = 0 the first pass
    places the band.
    """

    C: float
    level: float
    least: int
    share: float
    n_bands: int = 0
    rows: float = 0.0
    breakpoints: Breakpoints = field(init=False)

    def absorb(self, sums: BandSums, k: int) -> None:
        loss, _, slack, in_band, self.rows = sums.totals[k]
        self.breakpoints = Breakpoints(sums.mass[k], sums.counts[k], self.level)
        if self.tau == 0.0:
            self.place_band(self.share)
            return
        w = np.append(self.point[:-1], 0.0)
        value, gradient = 0.5 * float(w @ w) + self.C * loss, w - self.C * sums.pull[k]
        if not self.accepts(value, gradient):
            return
        # The step of b is limited to where the band holds its share of rows.
        wanted = max(self.share * self.rows, float(self.least))
        reach = self.tau + self.breakpoints.half_width(min(wanted, self.rows))
        flat = BALANCED * self.C * float(self.breakpoints.mass.sum())
        factor = self.C / (2.0 * self.tau)
        self.aim(
            _newton_step(sums.curvature[k], factor, gradient, reach, flat), gradient
        )
        bearable = self.C * slack + ROUNDING * value
        if self.promised > GOOD_ENOUGH * bearable:
            if in_band < EMPTY * self.share * self.rows and self.n_bands < MOST_BANDS:
                self.n_bands += 1
                self.place_band(self.share, self.tau)
            else:
                self.go()
        elif in_band > self.least and self.n_bands < MOST_BANDS:
            self._narrow()
        else:
            # The window scans the next point, and proves it or not.
            self.go()
            self.done = True

    def place_band(self, share: float, narrowest: float = 0.0) -> None:
        """Start again with a band that holds this share of the rows at this w."""
        shift, tau = self.breakpoints.place_band(share * self.rows)
        self.point = np.append(self.point[:-1], self.point[-1] + shift)
        self.share, self.tau = share, max(tau, narrowest) or self.tau or 2.0
        self.value, self.promised, self.done = np.inf, 0.0, False

    def _narrow(self) -> None:
        """Take the step with the next narrower band.

        F falls with tau, so its value at the wider band remains an upper limit.
        """
        self.n_bands += 1
        self.share = max(self.share * SHRINK, 0.75 * self.least / self.rows)
        self.direction[-1], tau = self.breakpoints.place_band(self.share * self.rows)
        self.tau = min(max(tau, NARROWEST * self.tau), WIDEST * self.tau)
        self.promised = 0.0
        self.go()


def _newton_step(
    curvature: FloatArray, factor: float, gradient: FloatArray, most: float, flat: float
) -> FloatArray:
    """Return -H^-1 gradient, with a limit on the step of the intercept.

    With an empty band the intercept is undetermined, so it is solved for last: ``H_ww``
    is at least the identity, and the rest of the step follows from db. Slopes up to
    ``flat`` are rounding errors: the classes balance, and any b in a range is optimal.
    """
    H = curvature[:-1, :-1] * factor
    H[np.diag_indices(H.shape[0])] += 1.0
    coupling = curvature[:-1, -1] * factor
    _, x, _ = lapack.dposv(H, np.column_stack([gradient[:-1], coupling]), lower=1)
    slope = float(gradient[-1] - coupling @ x[:, 0])
    bend = float(curvature[-1, -1] * factor - coupling @ x[:, 1])
    if abs(slope) <= flat:
        slope = 0.0
    db = -np.sign(slope) * most if abs(slope) >= most * bend else -slope / bend
    return np.append(-x[:, 0] - db * x[:, 1], db)


def refine_point(
    A: FloatArray, y: FloatArray, bounds: FloatArray, point: FloatArray, tau: float
) -> tuple[FloatArray, FloatArray]:
    """Return a point (w, b) close to the optimum of an SVM, and alpha / C_i there.

    ``bounds`` are the C_i; ``point`` is close to the optimum of the problem smoothed
    with half-width tau. By the augmented Lagrangian method the smoothed hinge is
    shifted by the multipliers q = alpha / C_i of the previous round::

        q_i = clip(q_i' + (1 - h_i) / 2 tau, 0, 1)

    At a fixed point the smoothing has no effect, so tau need not tend to 0. Each round
    is solved by Newton's method with matrices of size D; no Gram matrix is needed.
    """
    q = np.full(len(y), 0.5)
    # Two samples may be means of most rows, with large bounds.
    enough = ACCURATE * float(np.sort(bounds)[:-2].sum())
    for _ in range(MOST_ROUNDS):
        point, q = _solve_round(A, y, bounds, point, q, tau)
        short = 1.0 - y * (A @ point)
        hinge = np.maximum(short, 0.0)
        gap = float(bounds @ (hinge - q * short))
        if gap <= enough:
            break
        tau *= FASTER
    return point, q


def _solve_round(
    A: FloatArray,
    y: FloatArray,
    bounds: FloatArray,
    point: FloatArray,
    before: FloatArray,
    tau: float,
) -> tuple[FloatArray, FloatArray]:
    """Minimise the shifted smoothed loss; return the point and its multipliers."""
    search, best = LineSearch(point=point, tau=tau), before
    flat = BALANCED * float(bounds.sum())
    for _ in range(MOST_STEPS):
        raw = before + (1.0 - y * (A @ search.point)) / (2.0 * tau)
        q = np.clip(raw, 0.0, 1.0)
        loss = tau * q**2 + 2.0 * tau * np.maximum(raw - 1.0, 0.0)
        w = np.append(search.point[:-1], 0.0)
        value, gradient = (
            0.5 * float(w @ w) + float(bounds @ loss),
            w - bounds * y * q @ A,
        )
        if not search.accepts(value, gradient):
            continue
        best, active = q, (raw > 0.0) & (raw < 1.0)
        some = A[active] * np.sqrt(bounds[active])[:, None]
        step = _newton_step(some.T @ some, 0.5 / tau, gradient, 2.0, flat)
        search.aim(step, gradient)
        if search.promised <= 1e-15 * value:
            break
        search.go()
    return search.base, best
