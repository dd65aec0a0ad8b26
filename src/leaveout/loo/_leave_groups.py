# SPDX-License-Identifier: BSD-3-Clause
"""Leave whole groups out: replicates, subjects, batches, or the folds of K-fold."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._anti_learning import is_anti_learning
from leaveout.loo._groups import Groups
from leaveout.loo._refit import refit_groups
from leaveout.loo._result import MachineLoo, middle
from leaveout.loo._trust import trusted
from leaveout.loo._walk import Walker
from leaveout.solve import Solution, solve_svc

# The pivots of a walk grow with its group; beyond this many support vectors a
# warm-started refit is cheaper.
LARGEST_WALK = 48


@trusted
def loo_groups(
    problem: Problem,
    codes: IntArray,
    *,
    solution: Solution | None = None,
    method: str = "walk",
    factors: FloatArray | None = None,
    n_threads: int = 1,
) -> MachineLoo:
    """Leave every group out of one binary machine, exactly.

    Parameters
    ----------
    problem : Problem
        The machine. A sample with C = 0 is never trained on, but is answered with its
        group.
    codes : ndarray of shape (n,)
        Group of each sample, 0 to n_groups - 1; every group leaves samples behind.
    solution : Solution, optional
        The optimum, if it is at hand.
    method : {"walk", "refit"}, default="walk"
        "walk" fades all samples of a group out together, in one walk; groups of many
        support vectors are refitted, which is then cheaper, and counted.
    factors : ndarray of shape (n_groups, 2), optional
        Factors of the boxes of the negative and of the positive samples while a group
        is out. Every group is then refitted.
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
    can_walk = method == "walk" and factors is None
    walked = np.array([can_walk and _is_walk(problem, solution, g) for g in groups])
    walker = Walker(problem, solution, n_threads=n_threads)
    some, others = (groups.take(np.flatnonzero(w)) for w in (walked, ~walked))
    kept = None if factors is None else factors[~walked]
    refitted = refit_groups(
        problem, solution, others, factors=kept, n_threads=n_threads
    )
    n = problem.n_samples
    lower, upper = np.empty((2, n))
    certified, settled_by = np.empty(n, dtype=bool), np.empty(n, dtype=np.int8)
    for part, ends in ((some, walker.leave_out(some)), (others, refitted)):
        sizes = np.diff(part.begin)
        lower[part.members] = ends.values + np.repeat(ends.down, sizes)
        upper[part.members] = ends.values + np.repeat(ends.up, sizes)
        certified[part.members] = np.repeat(ends.certified, sizes)
        settled_by[part.members] = np.repeat(ends.settled_by, sizes)
    walker.counts["refits"] += len(others)
    walker.counts["seconds"] = perf_counter() - started
    values = middle(lower, upper)
    return MachineLoo(
        values, lower, upper, certified, settled_by, walker.counts,
        is_anti_learning(problem, solution, values, groups=codes, factors=factors),
    )  # fmt: skip


def _is_walk(problem: Problem, solution: Solution, rows: IntArray) -> bool:
    """Whether a group is small enough to walk, and leaves both classes behind."""
    if np.count_nonzero(solution.beta[rows]) > LARGEST_WALK:
        return False
    left = problem.C > 0.0
    left[rows] = False
    return not problem.fit_intercept or np.unique(problem.y[left]).size == 2
