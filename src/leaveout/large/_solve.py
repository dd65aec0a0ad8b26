# SPDX-License-Identifier: BSD-3-Clause
"""Solve the linear SVMs of a FeatureSVC, each to the exact optimum.

Newton's method (:mod:`leaveout.large._newton`) solves the smoothed problems on samples
of growing size, then on all rows, each time from the previous result; one pass serves
every problem. The window of the rows next to the margin
(:mod:`leaveout.large._window`) then gives the exact optimum with a proof, in one or a
few scans of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import weighted_median_intervals
from leaveout.engine._problem import middle
from leaveout.large._features import FeatureRows, Rows
from leaveout.large._newton import NewtonState, descend, refine_point
from leaveout.large._small_c import (
    ConstantOptimum,
    ConstantState,
    LinearPath,
    at_equal_shares,
    holds_below,
    largest_multiple,
    scale_optimum,
    scale_to,
    search_certificates,
)
from leaveout.large._window import (
    LinearOptimum,
    LinearProblems,
    MarginScan,
    WindowProblem,
    combine_rows,
    is_inside,
    scan_margin,
)
from leaveout.run._parallel import map_in_order

MOST_SCANS = 12
MOST_PROBES = 3
# A head has at most this part of the largest C whose solution is a multiple.
SAFE = 0.25
# Problems with C up to this multiple of the head's start from its solution.
NEAR_HEAD = 4.0
# Multiples of the difference of the class means that are tried as starts.
N_STARTS = 12


def guess_starts(rows: Rows, problems: LinearProblems) -> LinearProblems:
    """Return the best multiple of the difference of the class means, from some rows.

    It is never w = 0, where f has no spread and says nothing about other directions.
    """
    points = [_guess_start(rows, problems, k) for k in range(len(problems))]
    W, b = zip(*points, strict=True)
    return problems.moved(np.array(W), np.array(b))


def _guess_start(
    rows: Rows, problems: LinearProblems, k: int
) -> tuple[FloatArray, float]:
    y = problems.take(np.array([k])).signs(rows.codes)[0]
    Z, y, c = rows.Z[y != 0.0], y[y != 0.0], rows.weight[y != 0.0]
    sums = [max(float(c[y == sign].sum()), 1e-300) for sign in (1.0, -1.0)]
    share = np.where(y > 0.0, c / sums[0], -c / sums[1])
    difference = share @ Z
    c = np.abs(share) * np.where(y > 0.0, *problems.totals[k])
    g, C = Z @ difference, float(problems.C[k])
    most = C * float(problems.light[k])
    # Where f has spread 1; C light is the multiple if all alpha are at their bounds.
    natural = min(most, 1.0 / max(float(g.std()), 1e-300))
    t = np.geomspace(0.1 * natural, most, N_STARTS)
    level = np.full(N_STARTS, problems.totals[k, 0])
    weights = np.broadcast_to(c, (N_STARTS, c.size))
    b = middle(*weighted_median_intervals(y - t[:, None] * g, weights, level))
    hinge = np.maximum(0.0, 1.0 - y * (t[:, None] * g + b[:, None])) @ c
    best = np.argmin(0.5 * t**2 * (difference @ difference) + C * hinge)
    return t[best] * difference, float(b[best])


@dataclass(frozen=True)
class Sizes:
    """Sizes at which the solver starts to use samples and windows."""

    # Up to this many rows, or this many per component, are solved exactly at once.
    few_rows: int = 2000
    few_per_component: int = 8
    # The largest sample stays in memory. A sample of 1/8 of the rows costs an eighth of
    # a pass and saves several.
    largest_sample: int = 131_072
    smallest_sample: int = 500
    sample_factor: int = 8
    # A window has at least this many rows, and three times those that can be on the
    # margin; at most this many on either side, because its Gram matrix is in memory.
    smallest_window: int = 500
    largest_window: int = 4000
    # Most rows on either side of the margin from which the window is chosen.
    surroundings: int = 16_000

    def is_small(self, rows: FeatureRows) -> bool:
        """Whether all rows are solved exactly at once."""
        per_component = self.few_per_component * (rows.n_components + 1)
        return rows.n_rows <= max(self.few_rows, per_component)

    def window(self, n_components: int) -> int:
        """Return the number of rows on either side of b in a window."""
        return max(self.smallest_window, 3 * (n_components + 1)) // 2

    def samples(self, n_rows: int, n_components: int) -> list[int]:
        """Sizes of the samples that are solved before all rows, ascending."""
        sizes: list[int] = []
        size = min(n_rows // self.sample_factor, self.largest_sample)
        while size > max(4 * (n_components + 1), self.smallest_sample):
            sizes.append(size)
            size //= self.sample_factor
        return sizes[::-1]


@dataclass
class LinearProgress:
    """Progress of a fit: the point of every problem, with tau and share of its band.

    of : problem whose multiple each is; its own number if it is solved
    done : whether only the window remains
    constant : whether w = 0 is optimal at every C; the point is then the certificate
    """

    W: FloatArray
    b: FloatArray
    tau: FloatArray
    share: FloatArray
    of: IntArray
    done: BoolArray
    constant: BoolArray

    @classmethod
    def begin(cls, start: LinearProblems) -> LinearProgress:
        """Start with every problem to be solved."""
        L = len(start)
        zeros, no = np.zeros(L), np.zeros(L, dtype=bool)
        half = np.full(L, 0.5)
        return cls(start.W, start.b, zeros, half, np.arange(L), no, no.copy())

    def states(
        self, problems: LinearProblems, which: IntArray, least: int
    ) -> list[NewtonState]:
        return [
            NewtonState(
                self.W[k], float(self.b[k]), float(problems.C[k]),
                float(problems.totals[k, 1]), least,
                float(self.share[k]), float(self.tau[k]), bool(self.done[k]),
            )
            for k in which
        ]  # fmt: skip

    def record(self, which: IntArray, states: Sequence[NewtonState]) -> None:
        for k, state in zip(which, states, strict=True):
            self.W[k], self.b[k], self.tau[k] = state.w, state.b, state.tau
            self.share[k], self.done[k] = state.share, state.done

    def choose_head(self, C: FloatArray, members: IntArray, limit: float) -> None:
        """Let the largest C up to a limit stand for all smaller ones."""
        below = members[C[members] <= limit]
        self.of[members] = members
        if below.size:
            self.of[below] = below[np.argmax(C[below])]


AfterPass = Callable[[LinearProgress], None]


def solve_linear(
    rows: FeatureRows,
    problems: LinearProblems,
    *,
    some: Rows,
    samples: Sequence[FeatureRows],
    progress: LinearProgress | None,
    sizes: Sizes,
    after_pass: AfterPass,
) -> LinearPath:
    """Solve all problems; ``after_pass`` is called after each pass over all rows.

    Samples grow in size, and their weights add up to those of all rows in each class;
    starts come from ``some`` rows. With ``progress`` the solver resumes from there.
    """
    certificates: dict[int, ConstantState] = {}
    if progress is not None:
        samples, heads = (), np.flatnonzero(progress.constant)
        if heads.size:
            at = problems.take(heads).moved(progress.W[heads], progress.b[heads])
            found = search_certificates(rows, at)
            certificates = dict(zip(heads.tolist(), found, strict=True))
    elif sizes.is_small(rows):
        progress = LinearProgress.begin(problems)
        progress.done[:] = True
    else:
        progress, certificates = _make_plan(rows, problems, some, samples)
    optima: dict[int, LinearOptimum] = {}
    while True:
        which = np.unique(progress.of)
        which = np.array([k for k in which if k not in {*optima, *certificates}], int)
        if which.size:
            _approach(rows, problems, which, samples, progress, after_pass)
            optima.update(_finish(rows, problems, which, progress, sizes, after_pass))
        if not _replace_failing_heads(problems, progress, optima):
            return _assemble(problems, progress, optima, certificates)
        samples = ()


def _make_plan(
    rows: FeatureRows,
    problems: LinearProblems,
    some: Rows,
    samples: Sequence[FeatureRows],
) -> tuple[LinearProgress, dict[int, ConstantState]]:
    """Choose what is solved, and where to start; also return certificates of w = 0."""
    progress, certificates = LinearProgress.begin(problems), {}
    first = samples[0] if samples else rows
    pairs = np.column_stack([problems.positive, problems.negative])
    _, pair = np.unique(pairs, axis=0, return_inverse=True)
    members = [np.flatnonzero(pair.ravel() == p) for p in range(pair.max() + 1)]
    lowest = np.array([each[np.argmin(problems.C[each])] for each in members])
    highest = np.array([problems.C[each].max() for each in members])
    low = guess_starts(some, problems.take(lowest))

    def search(part: FeatureRows, pairs: IntArray, start: LinearProblems) -> IntArray:
        """Return the pairs with a certificate on some rows; improve other starts."""
        found = search_certificates(part, start)
        for p, state in zip(pairs.tolist(), found, strict=True):
            if state.gain > 0.0:
                # Along this ray the loss falls and the norm grows: the best multiple.
                ratio = low.C[p] * state.gain / float(state.w @ state.w)
                low.W[p] = ratio * state.w
                low.b[p] = state.sign + ratio * (state.b - state.sign)
            elif state.feasible:
                low.W[p], low.b[p] = state.w, state.b
                if part is rows:
                    certificates[int(lowest[p])] = state
        return pairs[[state.feasible for state in found]]

    every = np.arange(len(members))
    likely = search(first, every, at_equal_shares(low))
    if first is not rows and likely.size:
        likely = search(rows, likely, low.take(likely))
    left = np.setdiff1d(every, likely)
    if left.size:
        limit, point, lost = _find_limits(rows, first, low.take(left), highest[left])
        if lost.any():  # the sample misled
            found = search(rows, left[lost], at_equal_shares(low.take(left[lost])))
            stay = np.flatnonzero(~np.isin(left, found))
            left, limit, point = left[stay], limit[stay], point.take(stay)
    for p in np.setdiff1d(every, left).tolist():
        head = int(lowest[p])
        progress.of[members[p]] = head
        progress.constant[head] = True
        progress.W[head], progress.b[head] = low.W[p], low.b[p]
    if left.size:
        groups = [members[p] for p in left]
        _choose_heads(some, problems, groups, limit, point, progress)
    return progress, certificates


def _choose_heads(
    some: Rows,
    problems: LinearProblems,
    groups: Sequence[IntArray],
    limit: FloatArray,
    point: LinearProblems,
    progress: LinearProgress,
) -> None:
    """Choose heads for groups of problems that differ in C, and set the starts.

    The points are solutions on a sample, and the limits are below C_1 of each group.
    """
    for members, most in zip(groups, limit, strict=True):
        progress.choose_head(problems.C, members, most)
    solved = np.unique(progress.of[np.concatenate(groups)])
    guess = guess_starts(some, problems.take(solved))
    progress.W[solved], progress.b[solved] = guess.W, guess.b
    for place, members in enumerate(groups):
        near = members[problems.C[members] <= NEAR_HEAD * limit[place]]
        if near.size:
            ones = point.take(np.full(near.size, place))
            scaled = scale_to(ones, np.minimum(problems.C[near], limit[place]))
            progress.W[near], progress.b[near] = scaled.W, scaled.b


def _find_limits(
    rows: FeatureRows,
    first: FeatureRows,
    low: LinearProblems,
    highest: FloatArray,
) -> tuple[FloatArray, LinearProblems, BoolArray]:
    """Return a C below C_1 of each pair, and its solution on the first sample.

    It is solved at a C at which f has a spread of about 1, below C_1 of the sample.
    Also return whether its loss on all rows is not below that of w = 0.
    """
    one, which = (1,) * len(low), np.arange(len(low))
    limit = largest_multiple(low, first.run(partial(scan_margin, low, one)).highest)
    for _ in range(MOST_PROBES):
        probe = scale_to(low, np.clip(0.5 * limit, low.C, highest))
        progress = LinearProgress.begin(probe)
        states = progress.states(probe, which, 2 * (rows.n_components + 1))
        descend(first, probe, states)
        progress.record(which, states)
        low = probe.moved(progress.W, progress.b)
        limit = largest_multiple(low, first.run(partial(scan_margin, low, one)).highest)
        if np.all((low.C <= limit) | (low.C >= highest)):
            break
    # Extremes of a sample are not those of all rows.
    scan = rows.run(partial(scan_margin, low, one))
    limit = largest_multiple(low, scan.highest)
    return SAFE * limit, low, scan.hinge >= 2.0 * low.light


def _replace_failing_heads(
    problems: LinearProblems, progress: LinearProgress, optima: dict[int, LinearOptimum]
) -> bool:
    """Choose a smaller C where a row of the lighter class has reached the margin."""
    failing = False
    for head in np.unique(progress.of):
        members = np.flatnonzero(progress.of == head)
        if members.size == 1 or progress.constant[head]:
            continue
        one = problems.take(np.array([head]))
        if not holds_below(optima[head], one):
            failing = True
            at = one.moved(optima[head].point[None, :-1], optima[head].point[-1:])
            others = members[members != head]
            limit = largest_multiple(one, optima[head].highest[None])
            progress.choose_head(problems.C, others, SAFE * float(limit[0]))
            scaled = scale_to(
                at.take(np.zeros(others.size, dtype=np.intp)), problems.C[others]
            )
            progress.W[others], progress.b[others] = scaled.W, scaled.b
    return failing


def _approach(
    rows: FeatureRows,
    problems: LinearProblems,
    which: IntArray,
    samples: Sequence[FeatureRows],
    progress: LinearProgress,
    after_pass: AfterPass,
) -> None:
    """Bring some problems close to their optimum."""
    D, known, here = rows.n_components, 0, problems.take(which)
    states = progress.states(problems, which, 2 * (D + 1))

    def report() -> None:
        progress.record(which, states)
        after_pass(progress)

    for part in [*samples, rows]:
        if known:
            share = min(0.25, 0.5 * np.sqrt((D + 1) / known))
            states = [state.on_more_rows(share) for state in states]
        descend(part, here, states, report if part is rows else None)
        known = part.n_rows
    progress.record(which, states)
    progress.done[which] = True


def _finish(
    rows: FeatureRows,
    problems: LinearProblems,
    which: IntArray,
    progress: LinearProgress,
    sizes: Sizes,
    after_pass: AfterPass,
) -> dict[int, LinearOptimum]:
    """Solve windows until each problem is proved or out of attempts.

    The optimum of a window is accepted if the primal value of all rows has fallen;
    otherwise a larger window is solved at the previous point.
    """
    optima: dict[int, LinearOptimum] = {}
    accepted: dict[int, tuple[FloatArray, float, LinearOptimum | None]] = {}
    size, least = sizes.window(rows.n_components), np.full(len(problems), np.inf)
    most = min(rows.n_rows, sizes.surroundings)
    if sizes.is_small(rows):
        size = most = rows.n_rows
    around = min(2 * size, most)
    for _ in range(MOST_SCANS):
        here = problems.take(which).moved(progress.W[which], progress.b[which])
        scan = rows.run(partial(scan_margin, here, (around,) * which.size))
        value = 0.5 * (here.W**2).sum(axis=1) + here.C * scan.hinge
        fallen = value <= least[which] * (1.0 + 1e-12)
        least[which[fallen]] = value[fallen]
        for j, k in enumerate(which.tolist()):
            if fallen[j]:
                accepted[k] = (here.W[j], float(here.b[j]), optima.get(k))
            else:
                progress.W[k], progress.b[k], before = accepted[k]
                optima[k] = before or optima[k]
        places = np.flatnonzero(fallen)
        found = _solve_windows(rows, here, scan, places, progress.tau[which], size)
        for k, optimum in zip(which[fallen].tolist(), found, strict=True):
            optima[k] = optimum
            progress.W[k], progress.b[k] = optimum.point[:-1], optimum.point[-1]
        after_pass(progress)
        which = which[[not optima[k].proved for k in which]]
        if which.size == 0:
            break
        if around >= most:
            size = min(2 * size, rows.n_rows, sizes.largest_window)
        around = min(2 * around, most)
    return optima


def _solve_windows(
    rows: FeatureRows,
    problems: LinearProblems,
    scan: MarginScan,
    which: IntArray,
    taus: FloatArray,
    size: int,
) -> list[LinearOptimum]:
    """Solve windows of this size of some problems, whose surroundings were scanned."""
    if which.size == 0:
        return []
    numbers = np.concatenate([scan.nearest[k].rows for k in which])
    picked = rows.gather(np.unique(numbers))

    def solve(k: int) -> LinearOptimum:
        return _solve_window(problems, k, picked, scan, taus[k], size)

    return list(map_in_order(solve, which.tolist(), rows.n_threads))


def _solve_window(
    problems: LinearProblems,
    k: int,
    picked: Rows,
    scan: MarginScan,
    tau: float,
    most: int,
) -> LinearOptimum:
    """Approach the optimum of the scanned rows, and solve a window exactly there."""
    near, origin = scan.nearest[k], np.append(problems.W[k], problems.b[k])
    m, C = near.rows.size, float(problems.C[k])
    Z, y, weight = combine_rows(problems, k, picked, scan.inside[k], near)
    point, share = refine_point(Z, y, C * weight, origin, tau if tau > 0.0 else 1.0)
    y, Z, weight = y[:m], Z[:m], weight[:m]
    short = 1.0 - y * (Z @ point[:-1] + point[-1])
    inside = is_inside(short, y)
    change = weight * (inside.astype(np.float64) - near.inside)
    sums = scan.inside[k].copy()
    for side, sign in enumerate((1.0, -1.0)):
        mine = np.where(y == sign, change, 0.0)
        sums[side] += np.append(mine @ Z, mine.sum())
    shift = point - origin
    reach = float(np.linalg.norm(shift[:-1])) * scan.radius
    nearer = near.moved_to(y * short, inside, float(shift[-1]), reach, most)
    one = problems.take(np.array([k])).moved(point[None, :-1], point[-1:])
    window = WindowProblem.build(one, 0, picked, sums, nearer)
    share = share[:m][np.isin(near.rows, nearer.rows)]
    solution = window.solve(window.start(share))
    highest = scan.highest[k] + reach + abs(float(shift[-1]))
    return LinearOptimum(window, solution, scan.radius, highest)


def _assemble(
    problems: LinearProblems,
    progress: LinearProgress,
    optima: dict[int, LinearOptimum],
    certificates: dict[int, ConstantState],
) -> LinearPath:
    """Return the optima of all problems; most are multiples."""
    every: list[LinearOptimum | ConstantOptimum] = []
    ratio = problems.C / problems.C[progress.of]
    for k, head in enumerate(progress.of.tolist()):
        if head in certificates:
            ratio[k] = 1.0
            every.append(ConstantOptimum.of(problems, k, certificates[head]))
        elif k == head:
            every.append(optima[k])
        else:
            sign = float(problems.heavy_sign[k])
            every.append(scale_optimum(optima[head], float(problems.C[k]), sign))
    points = np.array([optimum.point for optimum in every])
    problems = problems.moved(points[:, :-1], points[:, -1])
    return LinearPath(problems, every, progress.of, ratio)
