# SPDX-License-Identifier: BSD-3-Clause
"""Solve the linear SVMs of a FeatureSVC, each to the exact optimum.

Newton's method solves the smoothed problems on samples of growing size, then on all
rows, each time from the previous result; one pass serves every problem. The smoothed
primal of one problem is (Wang & Yang 2022, section 2.3)::

    F(w, b) = 1/2 ||w||^2 + C sum_i c_i L_tau(y_i f_i)
    H       = diag(1, ..., 1, 0) + C / (2 tau) sum_{|u - 1| < tau} c_i (z_i, 1)(z_i, 1)'

tau starts at a width that includes a share of the rows and shrinks until about 2 D rows
are left: the exact optimum has at most D + 1 rows on the margin, so the rows next to it
are then known. The window of these rows (:mod:`leaveout.large._window`) then gives the
exact optimum with a proof, in one or a few scans of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.linalg import lapack

from leaveout._typing import BoolArray, FloatArray
from leaveout.large._band_fast import sum_band
from leaveout.large._features import FeatureBlock, FeatureRows
from leaveout.large._window import (
    LinearOptimum,
    LinearProblems,
    WindowProblem,
    largest_norm,
    scan_margin,
)
from leaveout.run._parallel import map_in_order

# |u - 1| is binned by powers of two from 2^-60 to 2^20.
FIRST_EXPONENT, N_BINS = -60, 80
# A point is accurate enough for its tau if another step would gain less than this share
# of the smoothing error.
GOOD_ENOUGH = 0.1
# The band shrinks by this factor from one tau to the next.
SHRINK = 0.2
SUFFICIENT_DECREASE = 1e-4
SMALLEST_STEP = 1e-4
# A gain below this, relative to F, counts as rounding error.
ROUNDING = 1e-12
MOST_PASSES = 100
MOST_SCANS = 10


@dataclass
class BandSums:
    """Sums of one pass at one point, without the factor C of each problem.

    totals : smoothed loss, hinge, complementarity, rows in the band, rows; (L, 5)
    pull : sum of weight * s * q * (z, 1), (L, D + 1); the loss has gradient -C pull
    curvature : sum of weight * (z, 1)(z, 1)' over the band, (L, D + 1, D + 1)
    bins : rows by the exponent of |u - 1|, int64, (L, N_BINS)
    radius : largest norm of a row
    """

    totals: FloatArray
    pull: FloatArray
    curvature: FloatArray
    bins: np.ndarray
    radius: float

    def add(self, other: BandSums) -> None:
        self.totals += other.totals
        self.pull += other.pull
        self.curvature += other.curvature
        self.bins += other.bins
        self.radius = max(self.radius, other.radius)


def sum_block(
    problems: LinearProblems, tau: FloatArray, block: FeatureBlock
) -> BandSums:
    """Sum the smoothed problems, with half-width tau, over a block."""
    Z, n_problems = block.Z, len(problems)
    f = problems.decide(Z)
    share, band = np.empty(f.shape), np.empty(f.shape, dtype=np.uint8)
    totals = np.empty((n_problems, 5))
    bins = np.zeros((n_problems, N_BINS), dtype=np.int64)
    sum_band(
        f, block.codes, problems.positive, problems.negative, block.weight, tau,
        share, band, totals, bins, FIRST_EXPONENT,
    )  # fmt: skip
    pull = np.column_stack([share @ Z, share.sum(axis=1)])
    curvature = np.empty((n_problems, Z.shape[1] + 1, Z.shape[1] + 1))
    for k in range(n_problems):
        _curvature(block, np.flatnonzero(band[k]), curvature[k])
    return BandSums(totals, pull, curvature, bins, largest_norm(Z))


def _curvature(block: FeatureBlock, rows: np.ndarray, out: FloatArray) -> None:
    weight = block.weight[rows]
    A = block.Z[rows]
    A *= np.sqrt(weight)[:, None]
    np.matmul(A.T, A, out=out[:-1, :-1])
    out[:-1, -1] = out[-1, :-1] = A.T @ np.sqrt(weight)
    out[-1, -1] = weight.sum()


def half_width(bins: np.ndarray, n_rows: float) -> float:
    """Return tau such that about this many rows have |u - 1| <= tau."""
    edges = np.ldexp(1.0, FIRST_EXPONENT + np.arange(-1, N_BINS))
    edges[0] = 0.0
    counts = np.concatenate([[0], np.cumsum(bins)])
    return float(np.interp(n_rows, counts, edges, right=edges[-1]))


def descend(
    rows: FeatureRows,
    problems: LinearProblems,
    states: list[NewtonState],
    after_pass: Callable[[], None] | None,
) -> None:
    """Bring all problems close to their optimum, one pass per step; changes states."""
    for _ in range(MOST_PASSES):
        open_ = np.array([k for k, s in enumerate(states) if not s.done], np.intp)
        if open_.size == 0:
            break
        at = LinearProgress.of([states[k] for k in open_])
        here = problems.take(open_).moved(at.W, at.b)
        sums = rows.run(partial(sum_block, here, at.tau))
        for place, k in enumerate(open_):
            states[k].absorb(sums, place)
        if after_pass is not None:
            after_pass()


@dataclass
class NewtonState:
    """State of one problem: the point (w, b) to evaluate in the next pass.

    ``least`` is the number of rows in the last band, ``share`` the share of the rows in
    this one. With the half-width tau = 2 the first step from w = 0 is ridge regression.
    """

    w: FloatArray
    b: float
    C: float
    least: int
    share: float = 1.0
    tau: float = 2.0
    done: bool = False
    base: FloatArray | None = None
    direction: FloatArray | None = None
    value: float = np.inf
    promised: float = 0.0
    step: float = 1.0
    bins: np.ndarray = field(default_factory=lambda: np.zeros(N_BINS, np.int64))
    rows: float = 0.0
    radius: float = 0.0

    def on_more_rows(self, share: float) -> NewtonState:
        """Continue from here with more rows, of which these were a sample."""
        wider = NewtonState(self.w, self.b, self.C, self.least, share)
        tau = half_width(self.bins, share * self.rows)
        wider.tau = tau if tau > 0.0 else self.tau
        return wider

    def absorb(self, sums: BandSums, k: int) -> None:
        """Process the sums at the proposed point, and propose the next one."""
        loss, _, slack, in_band, self.rows = sums.totals[k]
        self.bins, self.radius = sums.bins[k], sums.radius
        value = 0.5 * float(self.w @ self.w) + self.C * float(loss)
        wanted = self.value - SUFFICIENT_DECREASE * self.step * self.promised
        if not value <= wanted and self.step > SMALLEST_STEP:
            self.step *= 0.5
            self._go()
            return
        gradient = np.append(self.w, 0.0) - self.C * sums.pull[k]
        self.base, self.value = np.append(self.w, self.b), value
        self.direction = _newton_step(
            sums.curvature[k], self.C / (2.0 * self.tau), gradient, self._reach(),
            1e-10 * self.C * self.rows,
        )  # fmt: skip
        self.promised = -float(gradient @ self.direction)
        self.step = 1.0
        bearable = self.C * float(slack) + ROUNDING * value
        if in_band <= self.least and self.promised <= bearable:
            self.done = True
            return
        if self.promised <= GOOD_ENOUGH * bearable:
            self._narrow()
        self._go()

    def _narrow(self) -> None:
        """Set the width of the next band, which invalidates the known F."""
        self.share = max(self.share * SHRINK, 0.75 * self.least / self.rows)
        tau = half_width(self.bins, self.share * self.rows)
        self.tau = min(tau, 0.5 * self.tau) if tau > 0.0 else self.tau * SHRINK
        self.value = np.inf

    def _reach(self) -> float:
        """Limit of the intercept step: where the band holds its share of rows."""
        wanted = max(self.share * self.rows, float(self.least))
        return self.tau + half_width(self.bins, min(wanted, self.rows))

    def _go(self) -> None:
        assert self.base is not None
        assert self.direction is not None
        point = self.base + self.step * self.direction
        self.w, self.b = point[:-1], float(point[-1])


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
                self.W[k], float(self.b[k]), float(problems.C[k]), least,
                float(self.share[k]), float(self.tau[k]), bool(self.done[k]),
            )
            for k in range(len(problems))
        ]  # fmt: skip


AfterPass = Callable[[LinearProgress], None]


def solve_linear(
    rows: FeatureRows,
    problems: LinearProblems,
    *,
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
        progress = _approach(rows, problems, samples, progress, after_pass)
        problems = problems.moved(progress.W, progress.b)
    return _finish(rows, problems, progress, sizes, after_pass)


def _approach(
    rows: FeatureRows,
    problems: LinearProblems,
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
        points = zip(problems.W, problems.b, problems.C, strict=True)
        states = [NewtonState(w, float(b), float(C), least) for w, b, C in points]

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
        proved = window.proves(solution, sides.radius)
        return LinearOptimum(window, solution, proved, sides.radius)

    return list(map_in_order(solve, range(len(problems)), rows.n_threads))
