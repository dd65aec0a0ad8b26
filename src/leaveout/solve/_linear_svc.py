# SPDX-License-Identifier: BSD-3-Clause
"""Solve many linear SVMs on very many rows, each to the exact optimum.

Samples of growing size, then all rows: on each, Newton's method on the smoothed
machines (:mod:`leaveout.solve._newton`) starts from where the sample before ended. On
all rows the window of each machine (:mod:`leaveout.solve._window`) then gives its exact
optimum, with proof, in one look or a few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from leaveout._typing import FloatArray
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


def solve_linear(
    rows: FeatureRows,
    machines: LinearMachines,
    *,
    samples: Sequence[FeatureRows] = (),
    start: LinearMachines | None = None,
    n_threads: int = 1,
    after_pass: Callable[[LinearMachines, str], None] = lambda machines, what: None,
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
    start : LinearMachines, optional
        Machines near the optimum, instead of the samples.
    n_threads : int, default=1
        Threads over machines.
    after_pass : callable, optional
        Called with the machines and what was done after each pass over all rows.

    Returns
    -------
    list of LinearOptimum
        One for each machine.
    """
    if is_small(rows):
        taus = np.ones(len(machines))
    else:
        machines, taus = _approach(rows, machines, samples, start, after_pass)
    return _finish(rows, machines, taus, n_threads, after_pass)


def _approach(
    rows: FeatureRows,
    machines: LinearMachines,
    samples: Sequence[FeatureRows],
    start: LinearMachines | None,
    after_pass: Callable[[LinearMachines, str], None],
) -> tuple[LinearMachines, FloatArray]:
    """Bring the machines near their optimum; return them and the widths reached."""
    D = rows.n_components
    origin = machines if start is None else start
    descents = [
        Descent(origin.W[k], float(origin.b[k]), float(machines.C[k]), 2 * (D + 1))
        for k in range(len(machines))
    ]
    known = 0
    for part in [*samples, rows]:
        if known:
            share = min(0.25, 0.5 * np.sqrt((D + 1) / known))
            descents = [descent.on_more_rows(share) for descent in descents]
        last = part is rows

        def run(job, part=part, last=last):
            sums = part.run(job)
            if last:
                after_pass(job.machines, "Newton")
            return sums

        machines = descend(run, machines, descents)
        known = part.n_rows
    return machines, np.array([descent.tau for descent in descents])


def _finish(
    rows: FeatureRows,
    machines: LinearMachines,
    taus: FloatArray,
    n_threads: int,
    after_pass: Callable[[LinearMachines, str], None],
) -> list[LinearOptimum]:
    """Solve windows until each machine is proved."""
    optima: list[LinearOptimum | None] = [None] * len(machines)
    open_ = np.arange(len(machines))
    size = rows.n_rows if is_small(rows) else window_size(rows.n_components)
    for _ in range(MOST_LOOKS):
        here = machines.take(open_)
        found = look_and_solve(rows, here, taus[open_], size, n_threads)
        for k, optimum in zip(open_, found, strict=True):
            optima[k] = optimum
        W, b = machines.W.copy(), machines.b.copy()
        W[open_] = [optimum.point[:-1] for optimum in found]
        b[open_] = [optimum.point[-1] for optimum in found]
        machines = machines.moved(W, b)
        after_pass(machines, "window")
        open_ = open_[[not optimum.proved for optimum in found]]
        if open_.size == 0:
            break
        size = min(2 * size, rows.n_rows)
        taus = 0.25 * taus
    return [optimum for optimum in optima if optimum is not None]


def look_and_solve(
    rows: FeatureRows,
    machines: LinearMachines,
    taus: FloatArray,
    size: int,
    n_threads: int,
) -> list[LinearOptimum]:
    """Take the window of each machine at its point, and solve it."""
    sides = rows.run(LookJob(machines, (size,) * len(machines)))
    index = np.unique(np.concatenate([near.rows for near in sides.nearest]))
    picked = rows.gather(index)

    def solve(k: int) -> LinearOptimum:
        near = sides.nearest[k]
        window = WindowProblem.build(
            machines, k, picked.take(near.rows), sides.inside[k], near.edges
        )
        solution = window.solve(window.start(float(taus[k])))
        proved = window.proves(solution, sides.radius)
        return LinearOptimum(window, solution, proved, sides.radius)

    return list(map_in_order(solve, range(len(machines)), n_threads))
