# SPDX-License-Identifier: BSD-3-Clause
"""All linear SVMs of a FeatureSVC.

Gradient and Hessian of the smoothed machines, summed over one block of rows.

Newton's method on smoothed machines, all in step: one pass serves every machine.

The smoothed primal of one machine (Wang & Yang 2022, section 2.3)::

    F(w, b) = 1/2 ||w||^2 + C sum_i c_i L_tau(y_i f_i)
    H       = diag(1, ..., 1, 0) + C / (2 tau) sum_{|u - 1| < tau} c_i (z_i, 1)(z_i, 1)'

tau starts at a width that takes a share of the rows and shrinks until about 2 D rows
are left: the exact optimum has D + 1 rows on the margin at most, so that the rows next
to it are then known, and :mod:`leaveout.large._window` can end exactly.

Solve many linear SVMs on very many rows, each to the exact optimum.

Samples of growing size, then all rows: on each, Newton's method on the smoothed
machines (:mod:`leaveout.large._solve`) starts from where the sample before ended. On
all rows the window of each machine (:mod:`leaveout.large._window`) then gives its exact
optimum, with proof, in one look or a few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import lapack

from leaveout._typing import BoolArray, FloatArray
from leaveout.large._band_fast import sum_band
from leaveout.large._features import FeatureBlock, FeatureRows
from leaveout.large._window import (
    LinearOptimum,
    LinearProblems,
    ScanMargin,
    WindowProblem,
    largest_norm,
    window_size,
)
from leaveout.run._parallel import map_in_order

# |u - 1| is counted by powers of two from 2^-60 to 2^20.
FIRST_EXPONENT, N_BINS = -60, 80
# A point is good enough for its tau if another step would gain less than this part of
# what the smoothing itself may cost.
GOOD_ENOUGH = 0.1
# The band shrinks by this factor from one tau to the next.
SHRINK = 0.2
SUFFICIENT_DECREASE = 1e-4
SMALLEST_STEP = 1e-4
# What a step may gain, relative to F, and still be called rounding.
ROUNDING = 1e-12
MOST_PASSES = 100
# Up to this many rows, or this many times the number of components, the exact solver
# takes all rows at once.
FEW_ROWS, FEW_PER_COMPONENT = 2000, 8
# A sample of 1/8 of the rows costs an eighth of a pass and saves several.
SAMPLE_FACTOR = 8
MOST_LOOKS = 10
# Rows on either side of the margin in the largest window: its Gram matrix is in memory.
LARGEST_WINDOW = 4000


@dataclass
class BandSums:
    """What a pass at one point adds up, without the factor C of each machine.

    Parameters
    ----------
    totals : ndarray of shape (L, 5)
        Smoothed loss, hinge, complementarity, rows in the band, rows.
    pull : ndarray of shape (L, D + 1)
        Sum of weight * s * q * (z, 1): the gradient of the loss is ``-C pull``.
    curvature : ndarray of shape (L, D + 1, D + 1)
        Sum of weight * (z, 1)(z, 1)' over the band.
    bins : ndarray of int64, shape (L, N_BINS)
        Rows by the exponent of |u - 1|.
    radius : float
        Largest norm of a row.
    """

    totals: FloatArray
    pull: FloatArray
    curvature: FloatArray
    bins: np.ndarray
    radius: float

    def add(self, other: BandSums) -> None:
        """Take over the sums of another block."""
        self.totals += other.totals
        self.pull += other.pull
        self.curvature += other.curvature
        self.bins += other.bins
        self.radius = max(self.radius, other.radius)


@dataclass(frozen=True)
class BandJob:
    """Sum the smoothed machines over a block: one function for threads and clusters.

    Parameters
    ----------
    machines : LinearProblems
        Where to look.
    tau : ndarray of shape (L,)
        Half-width of the smoothed corner of each machine.
    """

    machines: LinearProblems
    tau: FloatArray

    def __call__(self, block: FeatureBlock) -> BandSums:
        """Return the sums over the block."""
        machines, Z = self.machines, block.Z
        f = machines.decide(Z)
        share, band = np.empty(f.shape), np.empty(f.shape, dtype=np.uint8)
        totals = np.empty((len(machines), 5))
        bins = np.zeros((len(machines), N_BINS), dtype=np.int64)
        sum_band(
            f, block.codes, machines.positive, machines.negative, block.weight,
            self.tau, share, band, totals, bins, FIRST_EXPONENT,
        )  # fmt: skip
        pull = np.empty((len(machines), Z.shape[1] + 1))
        pull[:, :-1] = share @ Z
        pull[:, -1] = share.sum(axis=1)
        curvature = np.empty((len(machines), Z.shape[1] + 1, Z.shape[1] + 1))
        for k in range(len(machines)):
            _curvature(block, np.flatnonzero(band[k]), curvature[k])
        return BandSums(totals, pull, curvature, bins, largest_norm(Z))


def _curvature(block: FeatureBlock, rows: np.ndarray, out: FloatArray) -> None:
    """Write the sum of weight * (z, 1)(z, 1)' over some rows."""
    weight = block.weight[rows]
    A = block.Z[rows]
    A *= np.sqrt(weight)[:, None]
    np.matmul(A.T, A, out=out[:-1, :-1])
    out[:-1, -1] = out[-1, :-1] = A.T @ np.sqrt(weight)
    out[-1, -1] = weight.sum()


def half_width(bins: np.ndarray, n_rows: float) -> float:
    """Return tau such that about this many rows have |u - 1| <= tau.

    Between two powers of two the rows are taken as spread evenly.
    """
    edges = np.ldexp(1.0, FIRST_EXPONENT + np.arange(-1, N_BINS))
    edges[0] = 0.0
    counts = np.concatenate([[0], np.cumsum(bins)])
    return float(np.interp(n_rows, counts, edges, right=edges[-1]))


BandPass = Callable[[BandJob], BandSums]


def descend(
    run: BandPass,
    machines: LinearProblems,
    descents: list[NewtonState],
    after_pass: Callable[[], None] = lambda: None,
) -> LinearProblems:
    """Bring all machines near their optimum.

    Parameters
    ----------
    run : callable
        Makes one pass over the rows.
    machines : LinearProblems
        C and classes of the machines.
    descents : list of Descent
        Where they are; changed in place.
    after_pass : callable, optional
        Called after each pass.

    Returns
    -------
    LinearProblems
        The machines where they are now.
    """
    for _ in range(MOST_PASSES):
        open_ = np.array([k for k, d in enumerate(descents) if not d.done], np.intp)
        if open_.size == 0:
            break
        here = _assemble(machines.take(open_), [descents[k] for k in open_])
        sums = run(BandJob(here, np.array([descents[k].tau for k in open_])))
        for place, k in enumerate(open_):
            descents[k].absorb(sums, place)
        after_pass()
    return _assemble(machines, descents)


@dataclass
class NewtonState:
    """Where one machine is on its way.

    Parameters
    ----------
    w : ndarray of shape (D,)
        Weights at the point proposed.
    b : float
        Its intercept.
    C : float
        Regularisation.
    least : int
        Rows in the last band.
    share : float, default=1.0
        Share of the rows in the band.
    tau : float, default=2.0
        Half-width of the band. With 2 the first step from w = 0 is ridge regression.
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
        """Go on from here with more rows, of which these were a sample."""
        wider = NewtonState(self.w, self.b, self.C, self.least, share)
        tau = half_width(self.bins, share * self.rows)
        wider.tau = tau if tau > 0.0 else self.tau
        return wider

    def absorb(self, sums: BandSums, k: int) -> None:
        """Look at the sums at the point proposed, and propose the next one."""
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
        """Take the width of the next band; what was known of F is void with it."""
        self.share = max(self.share * SHRINK, 0.75 * self.least / self.rows)
        tau = half_width(self.bins, self.share * self.rows)
        self.tau = min(tau, 0.5 * self.tau) if tau > 0.0 else self.tau * SHRINK
        self.value = np.inf

    def _reach(self) -> float:
        """How far the intercept may go: to where the band holds its share of rows."""
        wanted = max(self.share * self.rows, float(self.least))
        return self.tau + half_width(self.bins, min(wanted, self.rows))

    def _go(self) -> None:
        """Propose a point on the line."""
        assert self.base is not None
        assert self.direction is not None
        point = self.base + self.step * self.direction
        self.w, self.b = point[:-1], float(point[-1])


def _newton_step(
    curvature: FloatArray,
    factor: float,
    gradient: FloatArray,
    most: float,
    flat: float,
) -> FloatArray:
    """Return -H^-1 gradient, with the intercept moving by no more than a distance.

    Nothing holds the intercept where the band is empty, so that it is solved for last:
    ``H_ww`` is the identity at least, and the rest of the step follows from db. Slopes
    up to ``flat`` are rounding: the classes balance, and every b in a range is optimal.
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


def _assemble(machines: LinearProblems, descents: list[NewtonState]) -> LinearProblems:
    """Put the points of all machines into one object."""
    W = np.array([descent.w for descent in descents])
    return machines.moved(W, np.array([descent.b for descent in descents]))


def is_small(rows: FeatureRows) -> bool:
    """Whether the exact solver takes all rows at once."""
    return rows.n_rows <= max(FEW_ROWS, FEW_PER_COMPONENT * (rows.n_components + 1))


def sample_sizes(n_rows: int, n_components: int, most: int) -> list[int]:
    """Sizes of the samples to go through before all rows, ascending.

    Examples
    --------
    >>> sample_sizes(5_000_000, 300, most=131_072)
    [2048, 16384, 131072]
    >>> sample_sizes(1000, 300, most=131_072)
    []
    """
    sizes: list[int] = []
    size = min(n_rows // SAMPLE_FACTOR, most)
    while size > max(4 * (n_components + 1), 500):
        sizes.append(size)
        size //= SAMPLE_FACTOR
    return sizes[::-1]


@dataclass(frozen=True)
class LinearProgress:
    """How far a fit has come: enough to go on from there.

    Parameters
    ----------
    W : ndarray of shape (L, D)
        Weights.
    b : ndarray of shape (L,)
        Intercepts.
    tau, share : ndarray of shape (L,)
        Half-widths of the smoothed corners, and the share of the rows they take.
    done : ndarray of bool, shape (L,)
        Machines that have only their window left.
    """

    W: FloatArray
    b: FloatArray
    tau: FloatArray
    share: FloatArray
    done: BoolArray

    @classmethod
    def of(cls, descents: Sequence[NewtonState]) -> LinearProgress:
        """Take down where the machines are."""
        return cls(
            np.array([descent.w for descent in descents]),
            np.array([descent.b for descent in descents]),
            np.array([descent.tau for descent in descents]),
            np.array([descent.share for descent in descents]),
            np.array([descent.done for descent in descents]),
        )

    def descents(self, machines: LinearProblems, least: int) -> list[NewtonState]:
        """Go on from here."""
        return [
            NewtonState(
                self.W[k], float(self.b[k]), float(machines.C[k]), least,
                float(self.share[k]), float(self.tau[k]), bool(self.done[k]),
            )
            for k in range(len(machines))
        ]  # fmt: skip


AfterPass = Callable[[LinearProgress], None]


def solve_linear(
    rows: FeatureRows,
    machines: LinearProblems,
    *,
    samples: Sequence[FeatureRows] = (),
    progress: LinearProgress | None = None,
    n_threads: int = 1,
    after_pass: AfterPass = lambda progress: None,
) -> list[LinearOptimum]:
    """Solve all machines.

    Parameters
    ----------
    rows : FeatureRows
        All rows.
    machines : LinearProblems
        C and classes.
    samples : sequence of FeatureRows
        Samples of the rows in growing size, with weights that add up to those of all
        rows in each class.
    progress : LinearProgress, optional
        Where to go on, instead of the samples.
    n_threads : int, default=1
        Threads over machines.
    after_pass : callable, optional
        Called after each pass over all rows.

    Returns
    -------
    list of LinearOptimum
        One for each machine.
    """
    if not is_small(rows):
        descents = _approach(rows, machines, samples, progress, after_pass)
        progress = LinearProgress.of(descents)
        machines = machines.moved(progress.W, progress.b)
    return _finish(rows, machines, progress, n_threads, after_pass)


def _approach(
    rows: FeatureRows,
    machines: LinearProblems,
    samples: Sequence[FeatureRows],
    progress: LinearProgress | None,
    after_pass: AfterPass,
) -> list[NewtonState]:
    """Bring the machines near their optimum."""
    D = rows.n_components
    least = 2 * (D + 1)

    def take_down() -> None:
        after_pass(LinearProgress.of(descents))

    if progress is not None:
        descents = progress.descents(machines, least)
        descend(rows.run, machines, descents, take_down)
        return descents
    descents = [
        NewtonState(machines.W[k], float(machines.b[k]), float(machines.C[k]), least)
        for k in range(len(machines))
    ]
    known = 0
    for part in [*samples, rows]:
        if known:
            share = min(0.25, 0.5 * np.sqrt((D + 1) / known))
            descents = [descent.on_more_rows(share) for descent in descents]
        if part is rows:
            descend(rows.run, machines, descents, take_down)
        else:
            descend(part.run, machines, descents)
        known = part.n_rows
    return descents


def _finish(
    rows: FeatureRows,
    machines: LinearProblems,
    progress: LinearProgress | None,
    n_threads: int,
    after_pass: AfterPass,
) -> list[LinearOptimum]:
    """Solve windows until each machine is proved, or has had its chances."""
    optima: dict[int, LinearOptimum] = {}
    open_ = np.arange(len(machines))
    taus = np.ones(open_.size) if progress is None else progress.tau
    size = rows.n_rows if is_small(rows) else window_size(rows.n_components)
    merge = False
    for _ in range(MOST_LOOKS):
        found = look_and_solve(
            rows, machines.take(open_), taus[open_], size, n_threads, merge
        )
        optima.update(zip(open_.tolist(), found, strict=True))
        W, b = machines.W.copy(), machines.b.copy()
        W[open_] = [optimum.point[:-1] for optimum in found]
        b[open_] = [optimum.point[-1] for optimum in found]
        machines = machines.moved(W, b)
        if progress is not None:
            progress = replace(progress, W=W, b=b, tau=taus)
            after_pass(progress)
        open_ = open_[[not optimum.proved for optimum in found]]
        if open_.size == 0:
            break
        merge = merge or any(optimum.window.has_copies() for optimum in found)
        size = min(2 * size, rows.n_rows, LARGEST_WINDOW)
        taus = 0.25 * taus
    return [optima[k] for k in range(len(machines))]


def look_and_solve(
    rows: FeatureRows,
    machines: LinearProblems,
    taus: FloatArray,
    size: int,
    n_threads: int,
    merge: bool = False,
) -> list[LinearOptimum]:
    """Take the window of each machine at its point, and solve it.

    With ``merge`` equal rows are one row of the window.
    """
    sides = rows.run(ScanMargin(machines, (size,) * len(machines), merge))
    index = np.unique(np.concatenate([near.rows for near in sides.nearest]))
    picked = rows.gather(index)

    def solve(k: int) -> LinearOptimum:
        near = sides.nearest[k]
        window = WindowProblem.build(
            machines, k, picked.take(near.rows), sides.inside[k], near
        )
        solution = window.solve(window.start(float(taus[k])))
        proved = window.proves(solution, sides.radius)
        return LinearOptimum(window, solution, proved, sides.radius)

    return list(map_in_order(solve, range(len(machines)), n_threads))
