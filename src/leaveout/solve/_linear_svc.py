# SPDX-License-Identifier: BSD-3-Clause
"""Solve many linear SVMs on very many rows, each to the exact optimum.

Samples of growing size, then all rows: on each, Newton's method on the smoothed
machines (:mod:`leaveout.solve._newton`) starts from where the sample before ended. On
all rows the window of each machine (:mod:`leaveout.solve._window`) then gives its exact
optimum, with proof, in one look or a few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.kernel import FeatureRows
from leaveout.run import map_in_order
from leaveout.solve._linear_machines import LinearMachines
from leaveout.solve._newton import Descent, descend
from leaveout.solve._window import LinearOptimum, LookJob, WindowProblem, window_size

# Up to this many rows, or this many times the number of components, the exact solver
# takes all rows at once.
FEW_ROWS, FEW_PER_COMPONENT = 2000, 8
# A sample of 1/8 of the rows costs an eighth of a pass and saves several.
SAMPLE_FACTOR = 8
MOST_LOOKS = 10
# Rows on either side of the margin in the largest window: its Gram matrix is in memory.
LARGEST_WINDOW = 4000


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
    def of(cls, descents: Sequence[Descent]) -> LinearProgress:
        """Take down where the machines are."""
        return cls(
            np.array([descent.w for descent in descents]),
            np.array([descent.b for descent in descents]),
            np.array([descent.tau for descent in descents]),
            np.array([descent.share for descent in descents]),
            np.array([descent.done for descent in descents]),
        )

    def descents(self, machines: LinearMachines, least: int) -> list[Descent]:
        """Go on from here."""
        return [
            Descent(
                self.W[k], float(self.b[k]), float(machines.C[k]), least,
                float(self.share[k]), float(self.tau[k]), bool(self.done[k]),
            )
            for k in range(len(machines))
        ]  # fmt: skip


AfterPass = Callable[[LinearProgress], None]


def solve_linear(
    rows: FeatureRows,
    machines: LinearMachines,
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
    machines : LinearMachines
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
    machines: LinearMachines,
    samples: Sequence[FeatureRows],
    progress: LinearProgress | None,
    after_pass: AfterPass,
) -> list[Descent]:
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
        Descent(machines.W[k], float(machines.b[k]), float(machines.C[k]), least)
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
    machines: LinearMachines,
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
    machines: LinearMachines,
    taus: FloatArray,
    size: int,
    n_threads: int,
    merge: bool = False,
) -> list[LinearOptimum]:
    """Take the window of each machine at its point, and solve it.

    With ``merge`` equal rows are one row of the window.
    """
    sides = rows.run(LookJob(machines, (size,) * len(machines), merge))
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
