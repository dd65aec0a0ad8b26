# SPDX-License-Identifier: BSD-3-Clause
"""Method "refit": n warm-started refits, the reference and the last resort."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from leaveout._typing import FloatArray
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
            left_out = refit_without(problem, full, r)
            values[r] = left_out.decision_values[r]
            low, high = left_out.intercept_interval
            lower[r] = values[r] + (low - left_out.intercept)
            upper[r] = values[r] + (high - left_out.intercept)
            certified[r] = left_out.converged

    map_chunks(run, n, n_threads)
    counts = {"refits": float(n), "seconds": perf_counter() - started}
    settled_by = np.full(n, REFIT, dtype=np.int8)
    return MachineLoo(values, lower, upper, certified, settled_by, counts)


def refit_without(problem: Problem, solution: Solution, r: int) -> Solution:
    """Solve the problem without sample r: its box is closed, its value computed."""
    C = problem.C.copy()
    C[r] = 0.0
    left_out = Problem(problem.K, problem.y, C, problem.fit_intercept)
    return solve_svc(left_out, start=seed_without(problem, solution, r))


def seed_without(problem: Problem, solution: Solution, r: int) -> FloatArray:
    """Signed coefficients that are feasible without r and near the full solution.

    What y_r alpha_r leaves missing in sum(beta) = 0 goes to the samples that can take
    it, those first whose margin b reaches first: y_r (y_i - g_i) descending.
    """
    beta, y, C = solution.beta.copy(), problem.y, problem.C
    missing = beta[r]
    beta[r] = 0.0
    if not problem.fit_intercept or missing == 0.0:
        return beta
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    room = upper - beta if missing > 0 else beta - lower
    room[r] = 0.0
    order = np.argsort(-y[r] * (y - solution.decision_values), kind="stable")
    before = np.cumsum(room[order]) - room[order]
    take = np.clip(abs(missing) - before, 0.0, room[order])
    beta[order] += np.sign(missing) * take
    return np.clip(beta, lower, upper)
