# SPDX-License-Identifier: BSD-3-Clause
"""Method "stopping": each left-out problem is solved until its label is proved."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from leaveout._typing import IntArray
from leaveout.kernel import Problem
from leaveout.loo._checks import Checked, check_left_out
from leaveout.loo._groups import Groups
from leaveout.loo._left_out import (
    STEPS_PER_SAMPLE,
    LeftOut,
    LeftOutSolver,
    check_eps,
)
from leaveout.loo._refit import refit_groups
from leaveout.loo._result import STOPPING, MachineLoo
from leaveout.loo._stopping_fast import Condition
from leaveout.solve import Solution, solve_svc

CONDITIONS = {"auxiliary": Condition.AUXILIARY, "ball": Condition.BALL}
# Exact mode: a sample not proved at this accuracy, or after this many steps a sample of
# the machine, is near a tie or badly conditioned, and left to the active set.
LAST_EPS = 1e-6
LAST_STEPS = 10


def loo_stopping(
    problem: Problem,
    *,
    solution: Solution | None = None,
    labels_only: bool = True,
    n_threads: int = 1,
    eps: float | None = None,
    seed: bool = True,
    condition: str = "auxiliary",
    n_trial: int = 10,
) -> MachineLoo:
    """Leave every sample out of one binary machine; labels, with proof.

    Algorithm 3 of Franc, Laskov & Müller (2008), with the errors of the printed version
    corrected (docs/method/stopping): SMO on the left-out problem stops as soon as no
    further step can change the label.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution, optional
        Its optimum, if it is at hand.
    labels_only : bool, default=True
        Ignored: of most samples only the sign of the value is known.
    n_threads : int, default=1
        Threads over samples.
    eps : float, optional
        A sample whose label is not proved before the solve is optimal within eps gets
        the label there, not certified, as in the paper. None: such samples are solved
        exactly.
    seed : bool, default=True
        Whether solves start from the full solution; from zero otherwise.
    condition : {"auxiliary", "ball"}, default="auxiliary"
        What proves a label. "auxiliary": the primal value is below a lower bound of the
        best machine with f(x_r) = 0 (the paper's, eq. (14)). "ball": the optimum is in
        a ball around the current point, and all machines in it agree (no second
        problem).
    n_trial : int, default=10
        If the condition proves fewer than half of the first ``n_trial`` samples, the
        others are solved without it. 0: never.

    Returns
    -------
    MachineLoo
        The counts have "columns" of the kernel matrix, "steps" of SMO, "solves" that
        the checks left over, and "proved", those that the condition ended. The paper's
        Prec is proved / solves.
    """
    started = perf_counter()
    _check_parameters(condition, n_trial)
    exact = eps is None
    if solution is None:
        solution = solve_svc(problem)
    checked = check_left_out(problem, solution)
    solver = LeftOutSolver(
        problem,
        solution,
        LAST_EPS if eps is None else check_eps(eps),
        seed=seed,
        steps_per_sample=LAST_STEPS if exact else STEPS_PER_SAMPLE,
    )
    parts = []
    proving = CONDITIONS[condition]
    for rows in np.split(checked.open_rows, [n_trial]):
        if proving == Condition.NONE and exact:
            _refit(problem, solution, rows, checked, n_threads)
            continue
        part = solver.leave_out(rows, proving, finish=exact, n_threads=n_threads)
        checked.fill(rows, *part[:4])
        parts.append(part)
        if np.count_nonzero(part.settled_by == STOPPING) < 0.5 * rows.size:
            proving = Condition.NONE
    counts = LeftOut.join(parts).counts
    counts["refits"] += checked.open_rows.size - counts["solves"]
    counts["solves"] = float(checked.open_rows.size)
    counts["seconds"] = perf_counter() - started
    return checked.result(counts)


def _check_parameters(condition: str, n_trial: int) -> None:
    """Raise if a parameter of the method alone is wrong."""
    if condition not in CONDITIONS:
        raise ValueError(f"condition must be 'auxiliary' or 'ball'; got {condition!r}.")
    if n_trial < 0:
        raise ValueError(f"n_trial must be 0 or more; got {n_trial}.")


def _refit(
    problem: Problem,
    solution: Solution,
    rows: IntArray,
    checked: Checked,
    n_threads: int,
) -> None:
    """Solve without each of some samples exactly."""
    ends = refit_groups(problem, solution, Groups.singles(rows), n_threads=n_threads)
    lower, upper = ends.values + ends.down, ends.values + ends.up
    checked.fill(rows, lower, upper, ends.certified, ends.settled_by)
