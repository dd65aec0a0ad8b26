# SPDX-License-Identifier: BSD-3-Clause
"""Leave whole groups out: replicates, subjects, batches, or the folds of K-fold."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from leaveout._typing import IntArray
from leaveout.kernel import Problem
from leaveout.loo._groups import Groups
from leaveout.loo._refit import refit_without
from leaveout.loo._result import REFIT, UNTOUCHED, MachineLoo, middle
from leaveout.loo._walk import Ends, Walker
from leaveout.run import map_chunks
from leaveout.solve import Solution, solve_svc

# The pivots of a walk grow with its group; beyond this many support vectors a
# warm-started refit is cheaper.
LARGEST_WALK = 48


def loo_groups(
    problem: Problem,
    codes: IntArray,
    *,
    solution: Solution | None = None,
    method: str = "walk",
    n_threads: int = 1,
) -> MachineLoo:
    """Leave every group out of one binary machine, exactly.

    Parameters
    ----------
    problem : Problem
        The machine. A sample with C = 0 is never trained on, but is answered with its
        group.
    codes : ndarray of shape (n,)
        Group of each sample, 0 to n_groups - 1.
    solution : Solution, optional
        The optimum, if it is at hand.
    method : {"walk", "refit"}, default="walk"
        "walk" fades all samples of a group out together, in one walk; groups of many
        support vectors are refitted, which is then cheaper, and counted.
    n_threads : int, default=1
        Threads over groups.

    Returns
    -------
    MachineLoo
        Values with the interval of the intercept.
    """
    started = perf_counter()
    if solution is None:
        solution = solve_svc(problem)
    order = np.argsort(codes, kind="stable")
    groups = Groups.of(np.split(order, np.flatnonzero(np.diff(codes[order])) + 1))
    walked = np.array(
        [method == "walk" and _is_walk(problem, solution, rows) for rows in groups]
    )
    walker = Walker(problem, solution, n_threads=n_threads)
    n = problem.n_samples
    values, down, up = np.empty((3, n))
    certified, settled_by = np.empty(n, dtype=bool), np.empty(n, dtype=np.int8)
    some = groups.take(np.flatnonzero(walked))
    others = groups.take(np.flatnonzero(~walked))
    for part, ends in (
        (some, walker.leave_out(some)),
        (others, _refit_all(problem, solution, others, n_threads)),
    ):
        sizes = np.diff(part.begin)
        values[part.members] = ends.values
        for whole, own in (
            (down, ends.down),
            (up, ends.up),
            (certified, ends.certified),
            (settled_by, ends.settled_by),
        ):
            whole[part.members] = np.repeat(own, sizes)
    counts = walker.counts
    counts["refits"] += len(others)
    counts["seconds"] = perf_counter() - started
    lower, upper = values + down, values + up
    return MachineLoo(
        middle(lower, upper), lower, upper, certified, settled_by, counts
    )


def _is_walk(problem: Problem, solution: Solution, rows: IntArray) -> bool:
    """Whether a group is small enough to walk, and leaves both classes behind."""
    if np.count_nonzero(solution.beta[rows]) > LARGEST_WALK:
        return False
    left = problem.C > 0.0
    left[rows] = False
    return not problem.fit_intercept or np.unique(problem.y[left]).size == 2


def _refit_all(
    problem: Problem, solution: Solution, groups: Groups, n_threads: int
) -> Ends:
    """Solve the problem without each of the groups."""
    n = len(groups)
    ends = Ends(
        np.empty(groups.members.size), np.empty(n), np.empty(n),
        np.empty(n, dtype=bool), np.full(n, REFIT, dtype=np.int8),
    )  # fmt: skip

    def run(part: slice) -> None:
        for k in range(n)[part]:
            rows = groups[k]
            if not (problem.C[rows] > 0.0).any():
                left_out, ends.settled_by[k] = solution, UNTOUCHED
            else:
                left_out = refit_without(problem, solution, rows)
            low, high = left_out.intercept_interval
            ends.values[groups.begin[k] : groups.begin[k + 1]] = (
                left_out.decision_values[rows]
            )
            ends.down[k] = low - left_out.intercept
            ends.up[k] = high - left_out.intercept
            ends.certified[k] = left_out.converged

    map_chunks(run, n, n_threads, size=1)
    return ends
