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
from leaveout.large._features import FeatureRows, Rows
from leaveout.large._newton import ROUNDING, NewtonState, descend, refine_point
from leaveout.large._small_c import (
    ConstantOptimum,
    ConstantState,
    LinearPath,
    at_equal_shares,
    holds_below,
    largest_multiple,
    multiply,
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
# A head has at most this part of the largest C whose solution is a multiple.
SAFE = 0.25


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
        return rows.n_rows <= max(self.few_rows, self.few_per_component * rows.dim)

    def window(self, dim: int) -> int:
        """Return the number of rows on either side of b in a window."""
        return max(self.smallest_window, 3 * dim) // 2

    def samples(self, n_rows: int, dim: int) -> list[int]:
        """Sizes of the samples that are solved before all rows, ascending."""
        sizes: list[int] = []
        size = min(n_rows // self.sample_factor, self.largest_sample)
        while size > max(4 * dim, self.smallest_sample):
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

    points: FloatArray
    tau: FloatArray
    share: FloatArray
    of: IntArray
    done: BoolArray
    constant: BoolArray

    @classmethod
    def begin(cls, start: LinearProblems) -> LinearProgress:
        """Start with every problem to be solved."""
        L, no = len(start), np.zeros(len(start), dtype=bool)
        half = np.full(L, 0.5)
        return cls(start.points, np.zeros(L), half, np.arange(L), no, no.copy())

    def states(self, problems: LinearProblems, which: IntArray) -> list[NewtonState]:
        return [
            NewtonState(
                point=self.points[k], tau=float(self.tau[k]), done=bool(self.done[k]),
                C=float(problems.C[k]), level=float(problems.totals[k, 1]),
                least=2 * problems.points.shape[1], share=float(self.share[k]),
            )
            for k in which
        ]  # fmt: skip

    def record(self, which: IntArray, states: Sequence[NewtonState]) -> None:
        for k, state in zip(which, states, strict=True):
            self.points[k], self.tau[k] = state.point, state.tau
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
    samples: Sequence[FeatureRows],
    progress: LinearProgress | None,
    sizes: Sizes,
    after_pass: AfterPass,
) -> LinearPath:
    """Solve all problems; ``after_pass`` is called after each pass over all rows.

    Samples grow in size, and their weights add up to those of all rows in each class.
    With ``progress`` the solver resumes from there.
    """
    certificates: dict[int, ConstantState] = {}
    if progress is not None:
        samples, heads = (), np.flatnonzero(progress.constant)
        if heads.size:
            at = problems.take(heads).at(progress.points[heads])
            found = search_certificates(rows, at)
            certificates = dict(zip(heads.tolist(), found, strict=True))
    elif sizes.is_small(rows):
        progress = LinearProgress.begin(problems)
        progress.done[:], progress.tau[:] = True, 1.0
    else:
        progress, certificates = _make_plan(rows, problems, samples)
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
    rows: FeatureRows, problems: LinearProblems, samples: Sequence[FeatureRows]
) -> tuple[LinearProgress, dict[int, ConstantState]]:
    """Choose what is solved, and where to start; also return certificates of w = 0."""
    progress, certificates = LinearProgress.begin(problems), {}
    first = samples[0] if samples else rows
    classes = np.column_stack([problems.positive, problems.negative])
    _, pair = np.unique(classes, axis=0, return_inverse=True)
    members = [np.flatnonzero(pair.ravel() == p) for p in range(pair.max() + 1)]
    lowest = np.array([each[np.argmin(problems.C[each])] for each in members])
    highest = np.array([problems.C[each].max() for each in members])
    every, low = np.arange(len(members)), problems.take(lowest)

    def search(part: FeatureRows, pairs: IntArray) -> BoolArray:
        """Return which pairs have a certificate on some rows; set the starts."""
        found = search_certificates(part, low.take(pairs))
        for p, state in zip(pairs.tolist(), found, strict=True):
            low.points[p] = state.start(problems.C[lowest[p]])
            if state.feasible and part is rows:
                certificates[int(lowest[p])] = state
        return np.array([state.feasible for state in found], dtype=bool)

    low.points[:] = at_equal_shares(low)
    constant = search(first, every)
    if first is not rows and constant.any():
        constant[constant] = search(rows, every[constant])
    left = every[~constant]
    if left.size:
        limit, solved, lost = _find_limits(rows, first, low.take(left), highest[left])
        misled = left[lost]
        if misled.size:
            low.points[misled] = at_equal_shares(low.take(misled))
            constant[misled] = search(rows, misled)
        for one, (p, most) in enumerate(zip(left, limit, strict=True)):
            here = members[p]
            progress.choose_head(problems.C, here, most)
            ones = solved.take(np.full(here.size, one))
            at = scale_to(ones, np.minimum(problems.C[here], most))
            progress.points[here] = at.points
    for p in every[constant].tolist():
        head = int(lowest[p])
        progress.of[members[p]], progress.constant[head] = head, True
        progress.points[head] = low.points[p]
    return progress, certificates


def _find_limits(
    rows: FeatureRows, first: FeatureRows, low: LinearProblems, highest: FloatArray
) -> tuple[FloatArray, LinearProblems, BoolArray]:
    """Return a C below C_1 of each pair, and its solution on the first sample.

    It is solved at a C at which f has a spread of about 1, below C_1 of the sample.
    Also return whether its loss on all rows is not below that of w = 0.
    """
    one = (1,) * len(low)
    limit = largest_multiple(low, first.run(partial(scan_margin, low, one)).highest)
    probe = scale_to(low, np.clip(0.5 * limit, low.C, highest))
    states = LinearProgress.begin(probe).states(probe, np.arange(len(low)))
    descend(first, probe, states)
    low = probe.at([state.point for state in states])
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
            failing, others = True, members[members != head]
            limit = largest_multiple(one, optima[head].highest[None])
            progress.choose_head(problems.C, others, SAFE * float(limit[0]))
            ratio, sign = problems.C[others] / one.C, problems.heavy_sign[others]
            progress.points[others] = multiply(optima[head].point, ratio, sign)
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
    states, here, known = progress.states(problems, which), problems.take(which), 0

    def report() -> None:
        progress.record(which, states)
        after_pass(progress)

    for part in [*samples, rows]:
        if known:
            for state in states:
                state.n_bands = 0
                state.place_band(min(0.25, 0.5 * np.sqrt(rows.dim / known)))
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
    accepted: dict[int, tuple[FloatArray, LinearOptimum | None]] = {}
    size, least = sizes.window(rows.dim), np.full(len(problems), np.inf)
    most = min(rows.n_rows, sizes.surroundings)
    if sizes.is_small(rows):
        size = most = rows.n_rows
    around = min(2 * size, most)
    for _ in range(MOST_SCANS):
        here = problems.take(which).at(progress.points[which])
        scan = rows.run(partial(scan_margin, here, (around,) * which.size))
        value = 0.5 * (here.points[:, :-1] ** 2).sum(axis=1) + here.C * scan.hinge
        fallen = value <= least[which] * (1.0 + ROUNDING)
        least[which[fallen]] = value[fallen]
        for j, k in enumerate(which.tolist()):
            if fallen[j]:
                accepted[k] = (here.points[j], optima.get(k))
            else:
                progress.points[k], before = accepted[k]
                optima[k] = before or optima[k]
        dual = np.array(
            [optima[k].window_dual if k in optima else -np.inf for k in which]
        )
        # A point that is optimal already stays, so that the window is proved there.
        tau = np.where(value <= dual + ROUNDING * value, 0.0, progress.tau[which])
        if fallen.any():
            places = np.flatnonzero(fallen)
            numbers = np.concatenate([scan.nearest[j].rows for j in places])
            picked = rows.gather(np.unique(numbers))
            solve = partial(_solve_window, here, scan, picked, tau, size)
            found = map_in_order(solve, places.tolist(), rows.n_threads)
            for k, optimum in zip(which[fallen].tolist(), found, strict=True):
                optima[k], progress.points[k] = optimum, optimum.point
        after_pass(progress)
        which = which[[not optima[k].proved for k in which]]
        if which.size == 0:
            break
        if around >= most:
            size = min(2 * size, rows.n_rows, sizes.largest_window)
        around = min(2 * around, most)
    return optima


def _solve_window(
    problems: LinearProblems,
    scan: MarginScan,
    picked: Rows,
    taus: FloatArray,
    most: int,
    k: int,
) -> LinearOptimum:
    """Approach the optimum of the scanned rows, and solve a window exactly there.

    ``taus`` are the widths of the last bands, or 0 if a problem's point is optimal.
    """
    near, C, tau = scan.nearest[k], float(problems.C[k]), float(taus[k])
    A, y, weight = combine_rows(problems, k, picked, scan.inside[k], near)
    point, share = refine_point(A, y, C * weight, problems.points[k], tau or 1.0)
    point = point if tau > 0.0 else problems.points[k]
    A, y, weight, share = (each[: near.rows.size] for each in (A, y, weight, share))
    short = 1.0 - y * (A @ point)
    inside = is_inside(short, y)
    change = weight * (inside.astype(np.float64) - near.inside)
    sums = scan.inside[k].copy()
    for side, sign in enumerate((1.0, -1.0)):
        sums[side] += np.where(y == sign, change, 0.0) @ A
    shift = point - problems.points[k]
    reach = float(np.linalg.norm(shift[:-1])) * scan.radius
    nearer = near.moved_to(y * short, inside, float(shift[-1]), reach, most)
    one = problems.take(np.array([k])).at(point[None])
    window = WindowProblem.build(one, 0, picked, sums, nearer)
    start = window.start(share[np.isin(near.rows, nearer.rows)])
    solution = window.solve(start)
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
            excess = float(np.ptp(problems.totals[k]))
            every.append(
                ConstantOptimum(float(problems.C[k]), excess, certificates[head])
            )
        elif k == head:
            every.append(optima[k])
        else:
            sign = float(problems.heavy_sign[k])
            every.append(scale_optimum(optima[head], float(problems.C[k]), sign))
    problems = problems.at([optimum.point for optimum in every])
    return LinearPath(problems, every, progress.of, ratio)
