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
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.engine._certificate import weighted_median_intervals
from leaveout.engine._problem import middle
from leaveout.large._features import FeatureRows, Rows
from leaveout.large._newton import NewtonState, descend
from leaveout.large._window import (
    LinearOptimum,
    LinearProblems,
    WindowProblem,
    scan_margin,
)
from leaveout.run._parallel import map_in_order

MOST_SCANS = 10
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

    def is_small(self, rows: FeatureRows) -> bool:
        """Whether all rows are solved exactly at once."""
        per_component = self.few_per_component * (rows.n_components + 1)
        return rows.n_rows <= max(self.few_rows, per_component)

    def window(self, n_components: int) -> int:
        """Return the number of rows on either side of b in the first window."""
        return max(self.smallest_window, 3 * (n_components + 1)) // 2

    def samples(self, n_rows: int, n_components: int) -> list[int]:
        """Sizes of the samples that are solved before all rows, ascending."""
        sizes: list[int] = []
        size = min(n_rows // self.sample_factor, self.largest_sample)
        while size > max(4 * (n_components + 1), self.smallest_sample):
            sizes.append(size)
            size //= self.sample_factor
        return sizes[::-1]


@dataclass(frozen=True)
class LinearProgress:
    """Progress of a fit; for solved problems only the window remains."""

    W: FloatArray
    b: FloatArray
    tau: FloatArray
    share: FloatArray
    done: BoolArray

    @classmethod
    def of(cls, states: Sequence[NewtonState]) -> LinearProgress:
        """Record the states of the problems."""
        points = [(s.w, s.b, s.tau, s.share, s.done) for s in states]
        return cls(*map(np.array, zip(*points, strict=True)))

    def states(self, problems: LinearProblems, least: int) -> list[NewtonState]:
        return [
            NewtonState(
                self.W[k], float(self.b[k]), float(problems.C[k]),
                float(problems.totals[k, 1]), least,
                float(self.share[k]), float(self.tau[k]), bool(self.done[k]),
            )
            for k in range(len(problems))
        ]  # fmt: skip


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
) -> tuple[LinearProblems, list[LinearOptimum]]:
    """Solve all problems; ``after_pass`` is called after each pass over all rows.

    Samples grow in size, and their weights add up to those of all rows in each class.
    With ``progress`` the solver resumes from there instead.
    """
    if not sizes.is_small(rows):
        progress = _approach(rows, problems, some, samples, progress, after_pass)
        problems = problems.moved(progress.W, progress.b)
    return _finish(rows, problems, progress, sizes, after_pass)


def _approach(
    rows: FeatureRows,
    problems: LinearProblems,
    some: Rows,
    samples: Sequence[FeatureRows],
    progress: LinearProgress | None,
    after_pass: AfterPass,
) -> LinearProgress:
    """Bring the problems close to their optimum."""
    D = rows.n_components
    least = 2 * (D + 1)
    if progress is not None:
        states, samples = progress.states(problems, least), ()
    else:
        start = guess_starts(some, problems)
        points = zip(start.W, start.b, start.C, start.totals[:, 1], strict=True)
        states = [NewtonState(w, *map(float, rest), least) for w, *rest in points]

    def report() -> None:
        after_pass(LinearProgress.of(states))

    known = 0
    for part in [*samples, rows]:
        if known:
            share = min(0.25, 0.5 * np.sqrt((D + 1) / known))
            states = [state.on_more_rows(share) for state in states]
        descend(part, problems, states, report if part is rows else None)
        known = part.n_rows
    return LinearProgress.of(states)


def _finish(
    rows: FeatureRows,
    problems: LinearProblems,
    progress: LinearProgress | None,
    sizes: Sizes,
    after_pass: AfterPass,
) -> tuple[LinearProblems, list[LinearOptimum]]:
    """Solve windows until each problem is proved or out of attempts."""
    optima: dict[int, LinearOptimum] = {}
    open_ = np.arange(len(problems))
    taus = np.ones(open_.size) if progress is None else progress.tau
    few = sizes.is_small(rows)
    size = rows.n_rows if few else sizes.window(rows.n_components)
    merge = False
    for _ in range(MOST_SCANS):
        here = problems.take(open_)
        found = scan_and_solve(rows, here, taus[open_], size, merge)
        optima.update(zip(open_.tolist(), found, strict=True))
        W, b = problems.W.copy(), problems.b.copy()
        W[open_] = [optimum.point[:-1] for optimum in found]
        b[open_] = [optimum.point[-1] for optimum in found]
        problems = problems.moved(W, b)
        if progress is not None:
            progress = replace(progress, W=W, b=b, tau=taus)
            after_pass(progress)
        open_ = open_[[not optimum.proved for optimum in found]]
        if open_.size == 0:
            break
        merge = merge or any(optimum.window.has_copies() for optimum in found)
        size = min(2 * size, rows.n_rows, sizes.largest_window)
        taus = 0.25 * taus
    return problems, [optima[k] for k in range(len(problems))]


def scan_and_solve(
    rows: FeatureRows,
    problems: LinearProblems,
    taus: FloatArray,
    size: int,
    merge: bool,
) -> list[LinearOptimum]:
    """Solve the window of each problem at its point; with merge, of distinct rows."""
    most = (size,) * len(problems)
    sides = rows.run(partial(scan_margin, problems, most, merge=merge))
    numbers = np.concatenate([near.rows for near in sides.nearest])
    picked = rows.gather(np.unique(numbers))

    def solve(k: int) -> LinearOptimum:
        near = sides.nearest[k]
        window = WindowProblem.build(
            problems, k, picked.take(near.rows), sides.inside[k], near
        )
        solution = window.solve(window.start(float(taus[k])))
        return LinearOptimum(window, solution, sides.radius, sides.highest[k])

    return list(map_in_order(solve, range(len(problems)), rows.n_threads))
