# SPDX-License-Identifier: BSD-3-Clause
"""The rows next to the margin of a linear SVM, and the exact optimum they prove.

All rows outside the window are on a known side of the margin: those with h > 1 have no
influence, those with h < 1 act through their means. The window is then a small SVM,
whose optimum is that of all rows if no row outside can have reached the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import (
    ACCURACY,
    rounding_of_sum,
    weighted_median_interval,
)
from leaveout.engine._problem import BOUNDED, MARGIN, OUTSIDE, Problem, Solution
from leaveout.engine._solve import solve_at_unit_scale
from leaveout.large._features import Chosen, FeatureBlock, Rows, Sums, largest_norm


@dataclass
class NearMarginRows(Chosen):
    """The rows next to the margin of one problem, equally many on either side of b.

    A row is on the margin if b is at its breakpoint ``v = y - <w, z>``; rows are
    ordered by the offset ``v - b = y (1 - h)``. With offsets of both signs the window
    holds both ends of the interval of optimal intercepts. ``inside`` says whether the
    row was summed as inside (:func:`is_inside`); ``most`` rows of either sign are kept.
    ``edges`` are the distances beyond which rows may be missing, below and above.
    """

    offset: FloatArray
    rows: IntArray
    inside: BoolArray
    most: int
    edges: FloatArray = field(default_factory=lambda: np.array([np.inf, np.inf]))

    COLUMNS = ("offset", "rows", "inside")

    @classmethod
    def of(
        cls, signs: FloatArray, f: FloatArray, start: int, most: int
    ) -> NearMarginRows:
        """Take the rows of a block from row ``start`` on whose sign is not 0."""
        rows = np.flatnonzero(signs)
        offset = signs[rows] - f[rows]
        inside = is_inside(signs[rows] * offset, signs[rows])
        return cls(offset, start + rows, inside, most)

    def add(self, other: NearMarginRows) -> None:
        self.edges = np.minimum(self.edges, other.edges)
        super().add(other)

    def _cut(self) -> None:
        keep = np.ones(self.rows.size, dtype=bool)
        distance = np.abs(self.offset)
        for side, beyond in enumerate((self.offset < 0.0, self.offset >= 0.0)):
            here = np.flatnonzero(beyond)
            if here.size > self.most:
                order = np.argpartition(distance[here], self.most - 1)
                keep[here[order[self.most :]]] = False
                last = distance[here[order[: self.most]]].max()
                self.edges[side] = min(self.edges[side], last)
        self._keep(keep)

    def moved_to(
        self,
        offset: FloatArray,
        inside: BoolArray,
        shift: float,
        reach: float,
        most: int,
    ) -> NearMarginRows:
        """Return the rows nearest to another margin, among these.

        b has moved by ``shift``, and w has moved no breakpoint by more than ``reach``.
        """
        edges = self.edges - reach + np.array([shift, -shift])
        return NearMarginRows(offset, self.rows, inside, most, np.maximum(edges, 0.0))


@dataclass
class MarginScan(Sums):
    """Results of one pass over all rows about the margins.

    inside : sum of weight * (z, 1) over the rows with h < 1 (:func:`is_inside`), of the
        positive and of the negative class; (L, 2, D + 1)
    hinge : sum of weight * max(0, 1 - h), (L,)
    highest : largest h of the positive and of the negative class, (L, 2)
    radius : largest norm of a row
    """

    inside: FloatArray
    hinge: FloatArray
    highest: FloatArray
    nearest: list[NearMarginRows]
    radius: float

    MAXIMA = ("highest", "radius")


def scan_margin(
    problems: LinearProblems, most: tuple[int, ...], block: FeatureBlock
) -> MarginScan:
    """Scan a block; ``most`` rows are kept on either side of each margin."""
    f = problems.decide(block.A)
    signs = problems.signs(block.codes) * (block.weight > 0.0)
    short = 1.0 - signs * f
    inside = is_inside(short, signs)
    sums = np.empty((len(problems), 2, block.A.shape[1]))
    highest = np.empty((len(problems), 2))
    for side, sign in enumerate((1.0, -1.0)):
        mine = signs == sign
        highest[:, side] = np.where(mine, signs * f, -np.inf).max(axis=1)
        sums[:, side] = np.where(inside & mine, block.weight, 0.0) @ block.A
    hinge = np.where(inside, short, 0.0) @ block.weight
    nearest = [
        NearMarginRows.of(signs[k], f[k], block.start, most[k])
        for k in range(len(problems))
    ]
    return MarginScan(sums, hinge, highest, nearest, block.radius)


def is_inside(short: FloatArray, signs: FloatArray) -> BoolArray:
    """Whether the hinge, 1 - h = short, is linear and not zero.

    Rows with breakpoints v above b are inside if positive, those below if negative.
    Rows with v = b count as above, as in :class:`NearMarginRows`: the contribution of a
    row to the primal is then known as long as b stays below v.
    """
    return np.where(signs > 0.0, short >= 0.0, (short > 0.0) & (signs < 0.0))


def combine_rows(
    problems: LinearProblems,
    k: int,
    rows: Rows,
    inside: FloatArray,
    near: NearMarginRows,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (z, 1), y and weights of rows and of the means of others, for problem k.

    ``rows`` must include ``near``; ``inside`` sums all rows with h < 1, (2, D + 1).
    """
    kept = rows.take(near.rows)
    y = np.where(kept.codes == problems.positive[k], 1.0, -1.0)
    A, signs, weights = [kept.A], [y], [kept.weight]
    for side, sign in enumerate((1.0, -1.0)):
        others = inside[side] - ((y == sign) & near.inside) * kept.weight @ kept.A
        # Weights are summed in another order here: ignore a rounding error.
        if others[-1] > 1e-12 * max(inside[side, -1], 1e-300):
            A.append(others[None] / others[-1])
            signs.append(np.array([sign]))
            weights.append(others[-1:])
    return np.concatenate(A), np.concatenate(signs), np.concatenate(weights)


@dataclass(frozen=True)
class WindowProblem:
    """The rows of a window and the means of all others, as an SVM.

    A : (z, 1), first of the rows, then of up to two means; (m, D + 1)
    y, weight : signs and weights, (m,)
    gram : inner products of z
    index : numbers of the rows
    edges : distance |h - 1| beyond which rows are missing, for breakpoints below and
        above b
    origin : the point (w, b) at which all rows were scanned
    """

    C: float
    A: FloatArray
    y: FloatArray
    weight: FloatArray
    gram: FloatArray
    index: IntArray
    edges: FloatArray
    origin: FloatArray

    @classmethod
    def build(
        cls,
        problems: LinearProblems,
        k: int,
        rows: Rows,
        inside: FloatArray,
        near: NearMarginRows,
    ) -> WindowProblem:
        """Combine rows and means of problem k, as in :func:`combine_rows`."""
        A, y, weight = combine_rows(problems, k, rows, inside, near)
        gram, C = A[:, :-1] @ A[:, :-1].T, float(problems.C[k])
        return cls(
            C, A, y, weight, gram, near.rows, near.edges, problems.points[k]
        )  # fmt: skip

    @property
    def problem(self) -> Problem:
        """The SVM of this window.

        Kernel values are multiplied by C, and the upper bounds are the weights:
        coefficients are alpha / C, and with weights of one their sums are integers,
        free of rounding.
        """
        return Problem(self.C * self.gram, self.y, self.weight)

    @property
    def n_rows(self) -> int:
        return self.index.size

    def start(self, share: FloatArray) -> FloatArray | None:
        """Return feasible coefficients from alpha / C_i of the rows."""
        y, weight = self.y, self.weight
        beta = y * weight
        beta[: self.n_rows] *= share
        excess = float(beta.sum())
        # The rows are scaled to balance the sum; the means stay.
        room = np.where(y * np.sign(excess) > 0.0, np.abs(beta), weight - np.abs(beta))
        room[self.n_rows :] = 0.0
        if room.sum() <= abs(excess):
            return None
        return np.asarray(beta - excess * room / room.sum())

    def solve(self, start: FloatArray | None = None) -> Solution:
        return solve_at_unit_scale(self.problem, start)

    def known_range(
        self, W: FloatArray, radius: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the range of b in which all rows outside the window keep their sides.

        Their breakpoints are at least an edge away from the origin's b, minus the
        distance that w moves them.
        """
        moved = np.linalg.norm(W - self.origin[:-1], axis=-1) * radius
        b = self.origin[-1]
        return b - self.edges[0] + moved, b + self.edges[1] - moved


@dataclass(frozen=True)
class LinearOptimum:
    """The optimum of a window; ``proved`` if it is the optimum of all rows.

    ``radius`` is the largest norm of a row; ``highest`` are the largest h of a row of
    the positive and of the negative class at the origin.
    """

    window: WindowProblem
    solution: Solution
    radius: float
    highest: FloatArray

    @cached_property
    def point(self) -> FloatArray:
        window, solution = self.window, self.solution
        w = window.C * (solution.beta @ window.A[:, :-1])
        return np.append(w, solution.intercept)

    @cached_property
    def proved(self) -> bool:
        """No row outside may change sides or be at an end of the intercept's range."""
        ends = self.solution.intercept_interval
        return bool(self.solution.converged and self.knows(self.point[:-1], *ends))

    @property
    def window_dual(self) -> float:
        """Dual value of the window, a lower bound of the primal value of all rows."""
        share = 1.0 - self.solution.duality_gap
        return self.window.C * self.solution.objective * share

    @cached_property
    def residual(self) -> float:
        """Error bound of values; rows on the margin have h = 1 only up to this."""
        window, state = self.window, self.solution.state
        f = window.A @ self.point
        off = window.y * f - 1.0
        violation = np.abs(off)
        violation[(state == OUTSIDE) & (off > 0.0)] = 0.0
        violation[(state == BOUNDED) & (off < 0.0)] = 0.0
        violation[window.weight == 0.0] = 0.0
        largest = float(np.abs(f).max(initial=1.0))
        return 10.0 * float(violation.max(initial=0.0)) + 1e-12 * largest

    @cached_property
    def top(self) -> float:
        """Largest kernel value of the window, times C."""
        return self.window.C * largest_norm(self.window.A) ** 2

    @cached_property
    def noise(self) -> float:
        """Error bound of values; inf if fewer than two digits are correct."""
        rounding = rounding_of_sum(self.top, float(self.solution.alpha.sum()))
        noise = max(self.residual, rounding)
        return noise if noise <= ACCURACY else np.inf

    def knows(
        self,
        W: FloatArray,
        lowest: FloatArray | float,
        highest: FloatArray | float,
    ) -> BoolArray:
        """Whether all rows outside keep their sides, for each w and range of b."""
        low, high = self.window.known_range(W, self.radius)
        noise = self.residual
        return np.asarray((low + noise < lowest) & (highest < high - noise))

    def with_rows(self, rows: Rows, y: FloatArray) -> tuple[LinearOptimum, IntArray]:
        """Return the optimum with some rows as samples, and the places of these.

        The optimum must be proved. A row with h < 1 outside the window leaves the mean
        of its class. A row that equals one of the window takes its part of that one.
        """
        window, m = self.window, self.window.n_rows
        f = rows.A @ self.point
        order = np.argsort(window.index, kind="stable")
        host = np.searchsorted(window.index, rows.first, sorter=order)
        host = order[np.minimum(host, m - 1)]
        equal = window.index[host] == rows.first
        alone = equal & (rows.own >= (1.0 - 1e-12) * window.weight[host])
        if alone.all():
            return self, host
        new = np.flatnonzero(~alone)

        def insert(old: FloatArray, more: FloatArray) -> FloatArray:
            return np.concatenate([old[:m], more, old[m:]])

        A, signs = insert(window.A, rows.A[new]), insert(window.y, y[new])
        weight = insert(window.weight, rows.own[new])
        beta = insert(self.solution.beta, np.zeros(new.size))
        host[~equal] = -1
        for mean in range(m + new.size, signs.size):
            host[~equal & (y == signs[mean]) & (y * f < 1.0)] = mean
        least = 1e-12 * weight
        place = host.copy()
        place[new] = m + np.arange(new.size)
        for r, k in zip(place[new], host[new], strict=True):
            if k >= 0:
                c, left = weight[r], weight[k] - weight[r]
                left = left if left > least[k] else 0.0
                beta[r] = min(max(beta[k], -c), c)
                beta[k] = min(max(beta[k] - beta[r], -left), left)
                if k >= m and left > 0.0:
                    A[k] += (A[k] - A[r]) * (c / left)
                weight[k] = left
        index = np.append(window.index, rows.first[new])
        return self._changed(A, signs, weight, index, beta), place

    def _changed(
        self, A: FloatArray, y: FloatArray, weight: FloatArray, index: IntArray,
        beta: FloatArray,
    ) -> LinearOptimum:  # fmt: skip
        """Return the optimum with more samples, and other means."""
        m = self.window.n_rows
        gram = np.zeros((y.size, y.size))
        gram[:m, :m] = self.window.gram[:m, :m]
        gram[m:] = A[m:, :-1] @ A[:, :-1].T
        gram[:, m:] = gram[m:].T
        old = self.solution.decision_values[:m]
        f = np.append(old, A[m:] @ self.point)
        state = np.where(np.abs(beta) >= weight, BOUNDED, MARGIN).astype(np.int8)
        state[beta == 0.0] = OUTSIDE
        window = self.window
        window = replace(window, A=A, y=y, weight=weight, gram=gram, index=index)
        solution = replace(self.solution, beta=beta, decision_values=f, state=state)
        return replace(self, window=window, solution=solution)

    def intercept_without(self, sign: float, C_r: float) -> tuple[float, float]:
        """Bound b when a row of one class is left out and w stays the same.

        Returns the lower end of b, and the order statistic of the breakpoints that it
        becomes if the positive class loses the upper bound C_r (docs/notation), or
        -inf if rows outside the window would matter. With ``sign=-1`` the same for -b
        and the negative class. The optimum must be proved, so the lower end is known.
        """
        window, solution = self.window, self.solution
        y, b = sign * window.y, sign * solution.intercept
        breakpoints = y - sign * solution.decision_values + b
        level = float(window.weight[y > 0].sum()) - C_r / window.C
        low, high = window.known_range(self.point[:-1], self.radius)
        lowest = (low if sign > 0 else -high) + self.residual
        first, last = solution.intercept_interval
        end = first if sign > 0 else -last
        far = weighted_median_interval(breakpoints, window.weight, level)[0]
        return end, min(far, end) if far > lowest else -np.inf


@dataclass(frozen=True)
class LinearProblems:
    """Binary SVMs ``f(z) = <w, z> + b``, one per pair of classes and C.

    points (L, D + 1) are (w, b), the others (L,); the classes are int32 codes.
    ``totals`` (L, 2) are the weights of the positive and of the negative class.
    """

    C: FloatArray
    positive: np.ndarray
    negative: np.ndarray
    totals: FloatArray
    points: FloatArray

    def __len__(self) -> int:
        return self.C.shape[0]

    def take(self, which: IntArray | slice) -> LinearProblems:
        return LinearProblems(*(array[which] for array in vars(self).values()))

    def at(self, points: FloatArray | Sequence[FloatArray]) -> LinearProblems:
        return replace(self, points=np.array(points))

    @property
    def light(self) -> FloatArray:
        """Weight of the lighter class."""
        return self.totals.min(axis=1)

    @property
    def heavy_sign(self) -> FloatArray:
        """Sign of the heavier class; 0 if both have the same weight."""
        difference = self.totals[:, 0] - self.totals[:, 1]
        same = np.abs(difference) <= 1e-12 * self.totals.sum(axis=1)
        return np.where(same, 0.0, np.sign(difference))

    def decide(self, A: FloatArray) -> FloatArray:
        """Return f on some rows (z, 1), as (L, m)."""
        return self.points @ A.T

    def signs(self, codes: np.ndarray) -> FloatArray:
        """Return +1, -1, or 0 for a row that is not in the problem, (L, m)."""
        plus = codes == self.positive[:, None]
        minus = codes == self.negative[:, None]
        return plus.astype(np.float64) - minus
