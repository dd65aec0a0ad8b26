# SPDX-License-Identifier: BSD-3-Clause
"""Method "refit": n warm-started refits, the reference and the last resort."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._result import REFIT, MachineLoo
from leaveout.run import map_chunks
from leaveout.solve import Solution, solve_svc


def loo_refit(
    problem: Problem,
    *,
    solution: Solution | None = None,
    labels_only: bool = False,
    n_threads: int = 1,
) -> MachineLoo:
    """Leave every sample out of one binary machine by solving n problems.

    Each starts from the full solution by alpha-seeding (Franc, Laskov & Müller 2008,
    section 4; DeCoste & Wagstaff 2000) and ends at the same tolerance as a fit.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution, optional
        Its optimum, if it is at hand.
    labels_only : bool, default=False
        Ignored: a refit gives the value anyway.
    n_threads : int, default=1
        Threads over samples.

    Returns
    -------
    MachineLoo
        Values with the interval of the intercept.
    """
    started = perf_counter()
    if solution is None:
        solution = solve_svc(problem)
    full = solution
    n = problem.n_samples
    values, lower, upper = np.empty((3, n))
    certified = np.empty(n, dtype=bool)

    def run(part: slice) -> None:
        for r in range(n)[part]:
            left_out = refit_without(problem, full, np.array([r]))
            values[r] = left_out.decision_values[r]
            low, high = left_out.intercept_interval
            lower[r] = values[r] + (low - left_out.intercept)
            upper[r] = values[r] + (high - left_out.intercept)
            certified[r] = left_out.converged

    map_chunks(run, n, n_threads)
    counts = {"refits": float(n), "seconds": perf_counter() - started}
    settled_by = np.full(n, REFIT, dtype=np.int8)
    return MachineLoo(values, lower, upper, certified, settled_by, counts)


def refit_without(problem: Problem, solution: Solution, rows: IntArray) -> Solution:
    """Solve the problem without some samples: their boxes are closed.

    Their decision values are computed all the same.
    """
    C = problem.C.copy()
    C[rows] = 0.0
    left_out = Problem(problem.K, problem.y, C, problem.fit_intercept)
    return solve_svc(left_out, start=seed_without(problem, solution, rows))


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
    order = np.argsort(
        -np.sign(missing) * (y - solution.decision_values), kind="stable"
    )
    before = np.cumsum(room[order]) - room[order]
    take = np.clip(abs(missing) - before, 0.0, room[order])
    beta[order] += np.sign(missing) * take
    if take.sum() < abs(missing) * (1.0 - 1e-9):
        # One class is left: nothing but zero is feasible.
        return np.zeros_like(beta)
    return np.clip(beta, lower, upper)
