# SPDX-License-Identifier: BSD-3-Clause
"""Solve a machine anew without some samples: warm starts from the full solution."""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._groups import Ends, Groups
from leaveout.loo._result import REFIT
from leaveout.run import map_chunks
from leaveout.solve import Solution, solve_svc


def refit_groups(
    problem: Problem,
    solution: Solution,
    groups: Groups,
    *,
    factors: FloatArray | None = None,
    n_threads: int = 1,
    everywhere: bool = False,
) -> Ends:
    """Solve the problem without each of the groups.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum.
    groups : Groups
        Samples to leave out together.
    factors : ndarray of shape (n_groups, 2), optional
        Factors of the boxes of the negative and of the positive samples while a group
        is out: class weights that follow the counts of the fold.
    n_threads : int, default=1
        Threads over groups.
    everywhere : bool, default=False
        Whether f is wanted for all samples, not only for those left out.

    Returns
    -------
    Ends
        Settled by refit.
    """
    n = len(groups)
    ends = Ends(
        np.empty(groups.members.size), np.empty(n), np.empty(n),
        np.empty(n, dtype=bool), np.full(n, REFIT, dtype=np.int8),
        np.empty((n, problem.n_samples if everywhere else 0)),
    )  # fmt: skip

    def run(part: slice) -> None:
        for k in range(n)[part]:
            rows = groups[k]
            pair = None if factors is None else factors[k]
            left_out = refit_without(problem, solution, rows, pair)
            low, high = left_out.intercept_interval
            entries = slice(groups.begin[k], groups.begin[k + 1])
            ends.values[entries] = left_out.decision_values[rows]
            ends.down[k] = low - left_out.intercept
            ends.up[k] = high - left_out.intercept
            ends.certified[k] = left_out.converged
            if everywhere:
                ends.everywhere[k] = left_out.decision_values

    map_chunks(run, n, n_threads, size=1)
    return ends


def refit_without(
    problem: Problem,
    solution: Solution,
    rows: IntArray,
    factors: FloatArray | None = None,
) -> Solution:
    """Solve the problem without some samples: their boxes are closed.

    Their decision values are computed all the same. ``factors`` are those of the boxes
    of the negative and of the positive samples, if they change.
    """
    C, seed = problem.C.copy(), seed_without(problem, solution, rows)
    if factors is not None:
        C *= np.where(problem.y > 0, factors[1], factors[0])
        seed *= min(1.0, *factors)
    C[rows] = 0.0
    left_out = Problem(problem.K, problem.y, C, problem.fit_intercept)
    return solve_svc(left_out, start=seed)


def seed_without(problem: Problem, solution: Solution, rows: IntArray) -> FloatArray:
    """Signed coefficients, feasible without some samples and near the full solution.

    What the left out leave missing in sum(beta) = 0 goes to the samples that can take
    it, those first whose margin b reaches first: the largest y_i - g_i if the others
    must rise, the smallest if they must fall.
    """
    beta, y, C = solution.beta.copy(), problem.y, problem.C
    missing = float(beta[rows].sum())
    beta[rows] = 0.0
    if not problem.fit_intercept or missing == 0.0:
        return beta
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    room = upper - beta if missing > 0 else beta - lower
    room[rows] = 0.0
    reach = np.sign(missing) * (y - solution.decision_values)
    order = np.argsort(-reach, kind="stable")
    before = np.cumsum(room[order]) - room[order]
    take = np.clip(abs(missing) - before, 0.0, room[order])
    beta[order] += np.sign(missing) * take
    if take.sum() < abs(missing) * (1.0 - 1e-9):
        # One class is left: nothing but zero is feasible.
        return np.zeros_like(beta)
    return np.clip(beta, lower, upper)
