# SPDX-License-Identifier: BSD-3-Clause
"""Method "refit": n warm-started refits, exact or within eps.

Within eps it is the *standard approach* of Franc, Laskov & Müller (2008): their
Algorithm 1, with the checks repaired, and Improved SMO as the solver.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from leaveout.kernel import Problem
from leaveout.loo._anti_learning import is_anti_learning
from leaveout.loo._checks import check_left_out
from leaveout.loo._groups import Groups
from leaveout.loo._left_out import LeftOutSolver, check_eps, solve_to_eps
from leaveout.loo._refit import refit_groups
from leaveout.loo._result import MachineLoo, middle
from leaveout.solve import Solution, solve_svc


def loo_refit(
    problem: Problem,
    *,
    solution: Solution | None = None,
    labels_only: bool = False,
    n_threads: int = 1,
    eps: float | None = None,
    seed: bool = True,
) -> MachineLoo:
    """Leave every sample out of one binary machine by solving n problems.

    Each starts from the full solution by alpha-seeding (DeCoste & Wagstaff 2000) and
    ends at the same tolerance as a fit. With ``eps`` the standard approach of Franc,
    Laskov & Müller (2008) is run instead: labels that follow from the full solution are
    taken from it, the other samples are solved by Improved SMO (Keerthi et al. 2001)
    until optimal within eps. Nothing of the latter is certified.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution, optional
        Its optimum, if it is at hand. If not, it is solved to ``eps`` too, as in the
        paper, and nothing is certified.
    labels_only : bool, default=False
        Ignored: a refit gives the value anyway. With ``eps`` only signs count where a
        check settled a sample.
    n_threads : int, default=1
        Threads over samples.
    eps : float, optional
        How far from optimal a solve may end (eq. (8), repaired). None: exact.
    seed : bool, default=True
        Whether solves start from the full solution; False, from zero, needs ``eps``.

    Returns
    -------
    MachineLoo
        Values with the interval of the intercept. With ``eps`` the counts have
        "columns" of the kernel matrix, "fit_columns" for the full solution, "solves"
        and "steps" of SMO.
    """
    started = perf_counter()
    if eps is not None:
        return _standard_approach(
            problem, solution, n_threads, check_eps(eps), seed, started
        )
    if not seed:
        raise ValueError("seed=False needs eps: exact refits start from the solution.")
    if solution is None:
        solution = solve_svc(problem)
    singles = Groups.singles(np.arange(problem.n_samples))
    ends = refit_groups(problem, solution, singles, n_threads=n_threads)
    lower, upper = ends.values + ends.down, ends.values + ends.up
    counts = {
        "refits": float(problem.n_samples),
        "seconds": perf_counter() - started,
    }
    values = middle(lower, upper)
    return MachineLoo(
        values, lower, upper, ends.certified, ends.settled_by, counts,
        is_anti_learning(problem, solution, values),
    )  # fmt: skip


def _standard_approach(
    problem: Problem,
    solution: Solution | None,
    n_threads: int,
    eps: float,
    seed: bool,
    started: float,
) -> MachineLoo:
    """Algorithm 1 of Franc et al. (2008)."""
    fit_columns = 0
    if solution is None:
        solution, fit_columns = solve_to_eps(problem, eps)
    checked = check_left_out(problem, solution)
    solver = LeftOutSolver(problem, solution, eps, seed=seed)
    out = solver.leave_out(checked.open_rows, n_threads=n_threads)
    checked.fill(checked.open_rows, *out[:4])
    seconds = perf_counter() - started
    return checked.result(
        {**out.counts, "fit_columns": float(fit_columns), "seconds": seconds}
    )
