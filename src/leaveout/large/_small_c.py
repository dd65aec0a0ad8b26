# SPDX-License-Identifier: BSD-3-Clause
"""Small C: all solutions are multiples of one, and w = 0 may be optimal for every C.

As long as the lighter class has all its alpha at their bounds, alpha / C does not
depend on C. With s the sign of the heavier class (0 if both have the same weight)::

    w(C) = rho w(C_A),   b(C) = s + rho (b(C_A) - s),   rho = C / C_A

up to C_1, where a row of the lighter class reaches the margin. w = 0 and b = s are
optimal at every C if and only if there are 0 <= a_i <= c_i on the heavier class with::

    sum_heavier a_i (z_i, 1) = sum_lighter c_i (z_i, 1)

(alpha = C a). The smoothed loss without the regulariser is stationary at such an a.
Newton's method ends there after a few steps; if there is none, it leaves along a
direction that separates the classes, at least partly (docs/method/large).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import ACCURACY, intercept_interval
from leaveout.engine._certificate_fast import measure
from leaveout.engine._problem import Problem, middle
from leaveout.large._features import FeatureBlock, FeatureRows, Sums
from leaveout.large._newton import BandSums, LineSearch, descend
from leaveout.large._window import LinearOptimum, LinearProblems, WindowProblem

# The loss is homogeneous around (0, s), so any small width serves.
TAU = 1e-3
# The equation holds if the sums differ by less than this, relative to their sizes.
FEASIBLE = 1e-11
# Rows that are left out in one pass.
AT_ONCE = 16
NONE = np.empty(0, dtype=np.intp)


def multiply(points: FloatArray, ratio: Any, sign: Any) -> FloatArray:
    """Return the multiples of points (w, b) around (0, s)."""
    scaled = np.asarray(ratio)[..., None] * points
    scaled[..., -1] += (1.0 - ratio) * sign
    return scaled


def scale_to(problems: LinearProblems, C: FloatArray) -> LinearProblems:
    """Return the multiples of the problems' points at other values of C."""
    points = multiply(problems.points, C / problems.C, problems.heavy_sign)
    return replace(problems, C=C, points=points)


def largest_multiple(problems: LinearProblems, highest: FloatArray) -> FloatArray:
    """Return C_1, up to which the solutions are multiples of these, (L,).

    ``highest`` (L, 2) are the largest h of either class. In the lighter class
    h = -1 + rho (1 + h_A); with equal weights h = rho h_A in both.
    """
    s = problems.heavy_sign
    light = np.where(s > 0.0, highest[:, 1], highest[:, 0])
    reach = np.where(s == 0.0, highest.sum(axis=1), 1.0 + light)
    return problems.C * 2.0 / np.maximum(reach, 1e-300)


def holds_below(head: LinearOptimum, problem: LinearProblems) -> bool:
    """Whether C_1 is not below the C of a head, over all rows."""
    *w, b = head.point - head.window.origin
    moved = float(np.linalg.norm(w)) * head.radius + abs(b)
    limit = largest_multiple(problem, head.highest[None] + moved + head.residual)
    return bool(limit[0] >= problem.C[0])


def scale_window(window: WindowProblem, C: float, sign: float) -> WindowProblem:
    """Return the window of the multiple at a smaller C."""
    ratio = C / window.C
    # Rows outside approach b at most in proportion. With equal weights all rows are
    # inside, and 1 - h = 1 - ratio h_A.
    edges = ratio * window.edges + (1.0 - ratio if sign == 0.0 else 0.0)
    origin = multiply(window.origin, ratio, sign)
    return replace(window, C=C, edges=edges, origin=origin)


def scale_optimum(head: LinearOptimum, C: float, sign: float) -> LinearOptimum:
    """Return the optimum at a smaller C: alpha / C is the same."""
    window, solution = head.window, head.solution
    ratio = C / window.C
    scaled = scale_window(window, C, sign)
    problem = Problem(np.empty((0, 0)), window.y, window.weight)
    F = window.y - ratio * (solution.decision_values - solution.intercept)
    free = np.flatnonzero(solution.free)
    beta = solution.beta.copy()
    _, interval = intercept_interval(problem, beta, F, free)
    b = float(middle(*np.array(interval)))
    f = window.y - F + b
    *_, primal, gap = measure(problem.y, problem.offsets, problem.levels, beta, f, b)
    found = replace(
        solution, intercept=b, intercept_interval=interval, decision_values=f,
        objective=primal, duality_gap=gap / primal if primal > 0.0 else 0.0,
    )  # fmt: skip
    return LinearOptimum(scaled, found, head.radius, head.highest)


@dataclass(kw_only=True)
class ConstantState(LineSearch):
    """Search for the certificate a = c q(u) of one problem, by Newton's method.

    ``left_out`` is a row (z, 1) of the heavier class that is left out, with its weight.
    Ends ``feasible``, or ``refuted`` with the gain 2 light - hinge > 0, or undecided.
    """

    tau: float = TAU
    sign: float
    light: float
    left_out: tuple[FloatArray, float] | None = None
    feasible: bool = False
    gain: float = 0.0
    pull: FloatArray = field(init=False)
    radius: float = 0.0

    def absorb(self, sums: BandSums, k: int) -> None:
        loss, hinge, _, in_band, _ = sums.totals[k]
        pull, curvature, self.radius = sums.pull[k], sums.curvature[k], sums.radius
        if self.left_out is not None:
            z, c = self.left_out
            short = 1.0 - self.sign * float(z @ self.point)
            q = min(max((short + TAU) / (2.0 * TAU), 0.0), 1.0)
            pull = pull - (c * self.sign * q) * z
            if 0.0 < q < 1.0:
                curvature = curvature - c * np.outer(z, z)
            loss -= c * (short if q == 1.0 else q * q * TAU)
            hinge -= c * max(short, 0.0)
        self.pull, D = pull, pull.size - 1
        size = self.light * np.append(np.full(D, sums.radius), 1.0)
        self.feasible = bool(np.all(np.abs(pull) <= FEASIBLE * size))
        self.gain = max(2.0 * self.light * (1.0 - 1e-12) - float(hinge), 0.0)
        self.done = self.feasible or self.gain > 0.0 or in_band <= D
        if self.done or not self.accepts(float(loss), -pull):
            return
        scale = 1.0 / np.sqrt(np.maximum(curvature.diagonal(), 1e-300))
        H = curvature * (scale[:, None] * scale / (2.0 * TAU))
        H[np.diag_indices_from(H)] *= 1.0 + 1e-11
        H[np.diag_indices_from(H)] += 1e-300
        step = scale * np.linalg.solve(H, scale * pull)
        step /= max(1.0, np.linalg.norm(step[:-1]) * sums.radius)
        self.aim(step, -pull)
        self.go()

    def start(self, C: float) -> FloatArray:
        """Return the certificate, or where to start at this C."""
        if self.feasible:
            return self.point
        if self.gain > 0.0:  # the loss falls along this ray: its best multiple
            ratio = C * self.gain / float(self.point[:-1] @ self.point[:-1])
            return multiply(self.point, ratio, self.sign)
        return np.append(C * self.pull[:-1], self.sign)


def search_certificates(
    rows: FeatureRows, problems: LinearProblems
) -> list[ConstantState]:
    """Search from the problems' points; those of equal weights end at once."""
    columns = zip(problems.points, problems.heavy_sign, problems.light, strict=True)
    states = [
        ConstantState(point=point, sign=float(sign), light=light)
        for point, sign, light in columns
    ]
    descend(rows, problems, states)
    return states


def at_equal_shares(problems: LinearProblems) -> FloatArray:
    """Return the points at which a = c light / heavy."""
    share = problems.light / problems.totals.max(axis=1)
    points = np.zeros_like(problems.points)
    points[:, -1] = problems.heavy_sign * (1.0 - TAU * (2.0 * share - 1.0))
    return points


@dataclass(frozen=True)
class ConstantOptimum:
    """The optimum w = 0, b = s.

    excess : how much heavier one class is
    state : the certificate
    stays : whether it is the optimum without any one row of weight up to ``weight``;
        ``open_rows`` are exceptions
    """

    C: float
    excess: float
    state: ConstantState
    stays: bool = False
    open_rows: IntArray = field(default_factory=lambda: NONE)

    @property
    def point(self) -> FloatArray:
        return np.append(np.zeros(self.state.point.size - 1), self.state.sign)

    @property
    def radius(self) -> float:
        return self.state.radius

    @property
    def proved(self) -> bool:
        """Whether w = 0 is accurate: ||w||^2 is at most twice the duality gap."""
        gap = max(2.0 * self.C * self.state.light - self.window_dual, 0.0)
        return bool(self.radius * np.sqrt(2.0 * gap) <= ACCURACY)

    @property
    def window_dual(self) -> float:
        """Dual value of the certificate, less the error of its equation."""
        *w, excess = self.C * self.state.pull
        light = self.C * self.state.light - abs(float(excess))
        return 2.0 * light - 0.5 * float(np.square(w).sum())

    def settle(self, sign: float, bound: float) -> tuple[float, float]:
        """Return the thresholds of h for a class, as in Thresholds."""
        if sign != self.state.sign:
            return np.inf, np.inf  # without a row its h = -1 does not rise
        if not self.survives(bound) and not self.stays:
            return -np.inf, np.inf
        return -np.inf, -np.inf

    def survives(self, bound: float) -> bool:
        """Whether no row of this bound moves f by 1: 1 - h <= 2 rho R, rho = 2 c R."""
        return bound < self.C * self.excess and 4.0 * bound * self.radius**2 < 1.0


@dataclass
class _Moments(Sums):
    """Sum of room^2 (z, 1)(z, 1)' over the heavier class."""

    H: FloatArray


@dataclass
class _Leverages(Sums):
    """Largest room^2 l, and c sqrt(l) of the rows of the heavier class, else 0."""

    largest: float
    own: list[FloatArray]

    MAXIMA = ("largest",)


def _room(state: ConstantState, heavy: int, block: FeatureBlock) -> FloatArray:
    short = 1.0 - state.sign * (block.A @ state.point)
    q = np.clip((short + TAU) / (2.0 * TAU), 0.0, 1.0)
    return np.where(block.codes == heavy, np.minimum(q, 1.0 - q), 0.0) * block.weight


def _sum_moments(state: ConstantState, heavy: int, block: FeatureBlock) -> _Moments:
    room = _room(state, heavy, block)
    A = block.A[room > 0.0] * room[room > 0.0, None]
    return _Moments(A.T @ A)


def _measure_leverages(
    state: ConstantState, heavy: int, root: FloatArray, block: FeatureBlock
) -> _Leverages:
    room = _room(state, heavy, block)
    A = block.A @ root
    own = np.einsum("ij,ij->i", A, A)
    mine = np.where(block.codes == heavy, block.own * np.sqrt(own), 0.0)
    return _Leverages(float((room**2 * own).max(initial=0.0)), [mine])


def rows_that_matter(
    rows: FeatureRows, problem: LinearProblems, state: ConstantState, most: int
) -> tuple[bool, IntArray]:
    """Return whether w = 0 stays optimal without any one row, and the exceptions.

    The sum that row r leaves is shared by the rows with room = min(a, c - a), as
    d_i = kappa room_i^2 (z_i, 1)' H^-1 (z_r, 1), kappa <= c_r. With the leverages
    l_i = (z_i, 1)' H^-1 (z_i, 1) all fit if c_r max(room_i sqrt(l_i)) sqrt(l_r) <= 1.
    Beyond that bound, the certificate is searched without the row, ``most`` times.
    """
    heavy = int((problem.positive if state.sign > 0.0 else problem.negative)[0])
    H = rows.run(partial(_sum_moments, state, heavy)).H
    scale = 1.0 / np.sqrt(np.maximum(H.diagonal(), 1e-300))
    values, vectors = np.linalg.eigh(H * (scale[:, None] * scale))
    if values[0] <= 1e-12 * values[-1]:
        return False, np.empty(0, dtype=np.intp)
    root = scale[:, None] * vectors / np.sqrt(values)
    found = rows.run(partial(_measure_leverages, state, heavy, root))
    reach = np.concatenate(found.own) * np.sqrt(found.largest)
    beyond = np.flatnonzero(reach > 0.99)
    tried = np.sort(beyond[np.argsort(-reach[beyond], kind="stable")[:most]])
    parts = np.split(tried, np.arange(AT_ONCE, tried.size, AT_ONCE))
    stays = [_stays_without(rows, problem, state, part) for part in parts if part.size]
    proved = tried[np.concatenate(stays)] if stays else tried
    return True, np.setdiff1d(beyond, proved)


def _stays_without(
    rows: FeatureRows, problem: LinearProblems, state: ConstantState, part: IntArray
) -> BoolArray:
    """Search the certificate without each of some rows of the heavier class."""
    picked, start = rows.gather(part), state.point
    states = [
        ConstantState(point=start, sign=state.sign, light=state.light, left_out=left)
        for left in zip(picked.A, picked.own, strict=True)
    ]
    descend(rows, problem.take(np.zeros(part.size, dtype=np.intp)), states)
    return np.array([each.feasible for each in states])


@dataclass(frozen=True)
class LinearPath:
    """All problems at their optima; most may be multiples of a few.

    of, ratio : f = ratio (f_A - b_A) + b, A the problem with number ``of``
    """

    problems: LinearProblems
    optima: list[LinearOptimum | ConstantOptimum]
    of: IntArray
    ratio: FloatArray

    @cached_property
    def solved(self) -> IntArray:
        return np.unique(self.of)

    def window(self, k: int) -> IntArray:
        """Return the rows in the window of a problem."""
        optimum = self.optima[k]
        return optimum.window.index if isinstance(optimum, LinearOptimum) else NONE

    def expand(self, f: FloatArray) -> FloatArray:
        """Return f of all problems from those of the solved ones, (L, m)."""
        if self.solved.size == len(self.problems):
            return f
        b = self.problems.points[:, -1]
        out = f[np.searchsorted(self.solved, self.of)]
        out *= self.ratio[:, None]
        out += (b - self.ratio * b[self.of])[:, None]
        return out

    def total_hinge(self, hinge: FloatArray) -> FloatArray:
        """Return the sums of hinge losses of all problems from the solved ones."""
        hinge = hinge[np.searchsorted(self.solved, self.of)]
        return self.ratio * hinge + 2.0 * (1.0 - self.ratio) * self.problems.light
