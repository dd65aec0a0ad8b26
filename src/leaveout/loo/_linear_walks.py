# SPDX-License-Identifier: BSD-3-Clause
"""Exact walks for the rows of a large machine that no certificate settles.

The window of the machine is an SVM of its own, so that :class:`~leaveout.loo.Walker`
leaves its rows out. Unit vectors with C = 0 go along: they take no part, but their
decision values tell w and b at the end of the walk, and with that how far any row
outside of the window can have moved. The answer is proved if none can have met the
margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._answer import Answer, settle_without_solving
from leaveout.loo._groups import Groups
from leaveout.loo._result import middle
from leaveout.loo._walk import Walker
from leaveout.solve import OUTSIDE, Solution, WindowProblem


@dataclass(frozen=True)
class WindowLoo:
    """Left-out values of some rows of a window.

    Parameters
    ----------
    values : ndarray of shape (m,)
        f without the row, b in the middle of its interval.
    proved : ndarray of bool, shape (m,)
        Whether it is the value on all rows.
    """

    values: FloatArray
    proved: BoolArray


def leave_rows_out(
    window: WindowProblem,
    solution: Solution,
    index: IntArray,
    radius: float,
    n_threads: int = 1,
) -> WindowLoo:
    """Leave rows of the window out of its machine.

    Parameters
    ----------
    window : WindowProblem
        The rows next to the margin and the means of the others, seen from the optimum.
    solution : Solution
        Its optimum.
    index : ndarray of int
        Numbers of the rows to leave out, ascending.
    radius : float
        Largest norm of a row of the whole data.
    n_threads : int, default=1
        Threads over rows.

    Returns
    -------
    WindowLoo
        One value for each of them.
    """
    rows = np.searchsorted(window.index, index)
    complete = bool(np.isinf(window.edges).all())
    problem, full = window.problem, solution
    if not complete:
        problem, full = _with_probes(window, solution)
    answer = Answer.of_full_solution(full)
    # The means stand for many rows: a class is a singleton in the window only if its
    # row is the only one of all.
    open_ = settle_without_solving(problem, full, answer, labels_only=False)
    wanted = np.intersect1d(open_, rows)
    known = np.ones(problem.n_samples, dtype=bool)
    if wanted.size:
        walker = Walker(problem, full, n_threads=n_threads, everywhere=not complete)
        ends = walker.leave_out(Groups.singles(wanted))
        answer.store(wanted, ends.values, ends.down, ends.up)
        answer.certified[wanted] = ends.certified
        if not complete:
            f = ends.everywhere[:, window.problem.n_samples :]
            known[wanted] = _ends_known(window, f, ends.down, ends.up, radius)
    values = middle(answer.lower, answer.upper)
    proved = answer.certified & known
    return WindowLoo(values[rows], proved[rows])


def _with_probes(window: WindowProblem, solution: Solution) -> tuple[Problem, Solution]:
    """Add the unit vectors and zero, without weight."""
    D = window.Z.shape[1]
    probes = np.vstack([np.eye(D), np.zeros(D)])
    Z = np.vstack([window.Z, probes])
    n_more = D + 1
    problem = Problem(
        Z @ Z.T,
        np.append(window.problem.y, np.ones(n_more)),
        np.append(window.problem.C, np.zeros(n_more)),
    )
    point = window.point(solution)
    more = replace(
        solution,
        beta=np.append(solution.beta, np.zeros(n_more)),
        decision_values=np.append(
            solution.decision_values, probes @ point[:-1] + point[-1]
        ),
        state=np.append(solution.state, np.full(n_more, OUTSIDE, dtype=np.int8)),
    )
    return problem, more


def _ends_known(
    window: WindowProblem,
    probe_values: FloatArray,
    down: FloatArray,
    up: FloatArray,
    radius: float,
) -> BoolArray:
    """Whether all rows outside of the window are on their sides where walks end."""
    b = probe_values[:, -1]
    low, high = window.known_range(probe_values[:, :-1] - b[:, None], radius)
    return np.asarray((low < b + down) & (b + up < high))
