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
from leaveout.loo._result import SINGLETON, middle
from leaveout.loo._trust import noise_of_window
from leaveout.loo._walk import Walker
from leaveout.solve import OUTSIDE, Solution, WindowProblem


@dataclass(frozen=True)
class WindowLoo:
    """Left-out values of some rows of a window.

    Parameters
    ----------
    values : ndarray of shape (m,)
        f without the row, b in the middle of its interval.
    known : ndarray of bool, shape (m,)
        Whether it is the value on all rows.
    proved : ndarray of bool, shape (m,)
        Whether its sign is, too, whichever optimal b is taken: a value that is zero up
        to rounding has none.
    """

    values: FloatArray
    known: BoolArray
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
    noise = noise_of_window(window, solution)
    if np.isinf(noise):
        nothing = np.zeros(rows.size, dtype=bool)
        return WindowLoo(solution.decision_values[rows], nothing, nothing)
    complete = bool(np.isinf(window.edges).all())
    problem, full = window.problem, solution
    if not complete:
        problem, full = _with_probes(window, solution, radius)
    answer = Answer.of_full_solution(full)
    open_ = settle_without_solving(problem, full, answer, labels_only=False)
    wanted = np.intersect1d(open_, rows)
    known = np.ones(problem.n_samples, dtype=bool)
    if not complete:
        # Nothing but b moves without a row of alpha = 0. A row that is alone in its
        # class is so in the window: others of the class may be outside.
        point, f = window.point(solution), full.decision_values
        ends_b = (answer.lower - f + point[-1], answer.upper - f + point[-1])
        known = window.knows(point[:-1], *ends_b, radius, noise)
        known &= answer.settled_by != SINGLETON
    if wanted.size:
        walker = Walker(problem, full, n_threads=n_threads, everywhere=not complete)
        ends = walker.leave_out(Groups.singles(wanted))
        answer.store(wanted, ends.values, ends.down, ends.up)
        answer.certified[wanted] = ends.certified
        if not complete:
            f = ends.everywhere[:, window.problem.n_samples :]
            b = f[:, -1]
            W = (f[:, :-1] - b[:, None]) / _length(radius)
            known[wanted] = window.knows(W, b + ends.down, b + ends.up, radius, noise)
    values = middle(answer.lower, answer.upper)
    known &= answer.certified
    proved = known & (np.maximum(answer.lower, -answer.upper) > noise)
    return WindowLoo(values[rows], known[rows], proved[rows])


def _length(radius: float) -> float:
    """Length of the probes: that of the rows, so that tolerances fit both."""
    return radius if radius > 0.0 else 1.0


def _with_probes(
    window: WindowProblem, solution: Solution, radius: float
) -> tuple[Problem, Solution]:
    """Add multiples of the unit vectors, and zero, without weight."""
    D = window.Z.shape[1]
    probes = np.vstack([_length(radius) * np.eye(D), np.zeros(D)])
    Z = np.vstack([window.Z, probes])
    n_more = D + 1
    problem = Problem(
        window.C * (Z @ Z.T),
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
