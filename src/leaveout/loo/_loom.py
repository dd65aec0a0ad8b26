# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of the leave-one-out machine itself: exact, and its own bound.

The machine minimises what its terms say about each sample without the sample's own
(Weston 1999, eq. (11)). That is no leave-one-out of the machine: the other coefficients
were chosen with the sample there. The exact one takes row and column of the sample out
of both stages of the linear program and solves them again, warm.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from leaveout._typing import FloatArray
from leaveout.exceptions import LeaveoutError
from leaveout.kernel import Problem
from leaveout.loo._result import (
    REFIT,
    SINGLETON,
    UNTOUCHED,
    ZERO_ALPHA,
    MachineLoo,
    middle,
)
from leaveout.loo._trust import nearly_coincide
from leaveout.run import map_chunks
from leaveout.solve import LoomSolution, LoomSolver, solve_loom

# Values this close to 0 are 0: the margin is 1, and predictions have the same rule.
ZERO = 1e-10
# Values this close, beside max(1, |f|), are one: the program is solved to 1e-6.
SAME = 1e-6
# Samples in a row: each such part loads the program once.
CHUNK = 64


def loo_loom_refit(
    problem: Problem, *, nu: float = 1.0, n_threads: int = 1
) -> MachineLoo:
    """Leave every sample out of one leave-one-out machine, by warm linear programs.

    Parameters
    ----------
    problem : Problem
        The machine; a sample with C = 0 is absent, and gets its value all the same.
    nu : float, default=1.0
        As in :func:`~leaveout.solve.solve_loom`.
    n_threads : int, default=1
        Threads over samples.

    Returns
    -------
    MachineLoo
        ``lower`` and ``upper`` are the ends of f over all optima without the sample
        that have the smallest sum of coefficients; ``values`` is the middle.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.kernel import Problem
    >>> from leaveout.loo import loo_loom_refit
    >>> x = np.array([-2.0, -1.0, 1.0, 4.0])
    >>> problem = Problem(np.outer(x, x), np.sign(x), np.ones(4), fit_intercept=False)
    >>> loo = loo_loom_refit(problem)
    >>> loo.values.round(4), loo.certified.all()
    (array([-2.25, -1.  ,  1.  ,  5.  ]), np.True_)
    """
    started = perf_counter()
    solver = LoomSolver(problem, nu=nu)
    full = solver.solve()
    fitted = perf_counter()
    answer = _Answer(problem, full)
    rows = np.flatnonzero(answer.settled_by == REFIT)

    def run(part: slice) -> None:
        own = solver if n_threads == 1 else LoomSolver(problem, nu=nu)
        own.start_from(solver)
        for row in rows[part].tolist():
            try:
                answer.put(row, own.solve_without(np.array([row])))
            except LeaveoutError:
                answer.give_up(row, full)

    map_chunks(run, rows.size, n_threads, size=CHUNK)
    counts = {
        "refits": float(rows.size),
        "pivots": float(answer.n_iter.sum()),
        "fit_seconds": fitted - started,
        "seconds": perf_counter() - started,
    }
    return MachineLoo(
        middle(answer.lower, answer.upper), answer.lower, answer.upper,
        answer.certified, answer.settled_by, counts,
    )  # fmt: skip


def loo_loom_bound(
    problem: Problem, *, nu: float = 1.0, n_threads: int = 1
) -> MachineLoo:
    """Judge every sample by the machine of all, without the sample's own term.

    The share of wrong ones is the bound of Weston 1999, eq. (11), which counts a value
    of 0 as wrong. Nothing is refitted and nothing certified: for this machine it is no
    bound of the leave-one-out error (docs/method/loom).
    """
    del n_threads
    started = perf_counter()
    solution = solve_loom(problem, nu=nu)
    values = solution.left_out_values
    # A value of 0 gets the sign that makes it wrong.
    values = np.where(
        loom_errors(problem, solution) & (problem.y * values >= 0.0),
        -problem.y * np.finfo(float).tiny,
        values,
    )
    seconds = perf_counter() - started
    n = problem.n_samples
    settled_by = np.where(problem.C > 0.0, ZERO_ALPHA, UNTOUCHED).astype(np.int8)
    return MachineLoo(
        values, values, values, np.zeros(n, dtype=bool), settled_by,
        {"refits": 0.0, "fit_seconds": seconds, "seconds": seconds},
    )  # fmt: skip


def loom_errors(problem: Problem, solution: LoomSolution) -> np.ndarray:
    """Return which samples are wrong without their own term; 0 is wrong, (n,)."""
    margins = problem.y * solution.left_out_values
    terms = np.abs(problem.K) @ np.abs(solution.coef) + abs(solution.intercept)
    return margins <= np.maximum(ZERO, 1e-13 * terms)


def loom_bound(problem: Problem, solution: LoomSolution) -> float:
    """Return the share of such samples, by weight (Weston 1999, eq. (11))."""
    wrong: FloatArray = loom_errors(problem, solution).astype(np.float64)
    return float(np.average(wrong, weights=problem.C))


LOOM_METHODS = {"refit": loo_loom_refit, "bound": loo_loom_bound}


class _Answer:
    """Ranges of f as they come in."""

    def __init__(self, problem: Problem, full: LoomSolution) -> None:
        n = problem.n_samples
        self.problem = problem
        self.lower = full.decision_values.copy()
        self.upper = full.decision_values.copy()
        # The program is solved to 1e-6 of kernel values: near copies are one to it.
        near = nearly_coincide(problem.K, np.flatnonzero(problem.C > 0.0))
        self.certified = np.full(n, full.telling and not near)
        self.trusted = not near
        self.n_iter = np.zeros(n, dtype=np.int64)
        # The full optimum stays where nothing hangs on the sample; if it is the only
        # one, so is that without the sample.
        unique = full.rival is None and full.face is not None and full.face.unique
        idle = ~full.tight & unique
        self.settled_by = np.where(idle, ZERO_ALPHA, REFIT).astype(np.int8)
        absent = np.flatnonzero(problem.C == 0.0)
        self.settled_by[absent] = UNTOUCHED
        for row in absent.tolist():
            self._put_range(row, full)
        if problem.fit_intercept:
            self._settle_singletons()

    def _settle_singletons(self) -> None:
        """Without the only member of a class all others are satisfied by b alone."""
        problem = self.problem
        for sign in (-1.0, 1.0):
            members = np.flatnonzero((problem.y == sign) & (problem.C > 0.0))
            if members.size == 1:
                self.lower[members] = -np.inf if sign > 0 else 1.0
                self.upper[members] = -1.0 if sign > 0 else np.inf
                self.certified[members] = True
                self.settled_by[members] = SINGLETON

    def put(self, row: int, left_out: LoomSolution) -> None:
        """Keep the answer for one sample that the machine is without."""
        self.n_iter[row] = left_out.n_iter
        self.certified[row] = left_out.telling and self.trusted
        self._put_range(row, left_out)

    def give_up(self, row: int, full: LoomSolution) -> None:
        """HiGHS has no answer: keep what all terms but the own one say, unproved."""
        self.lower[row] = self.upper[row] = full.left_out_values[row]
        self.certified[row] = False

    def _put_range(self, row: int, solution: LoomSolution) -> None:
        """Keep the range of f over the optimal face; near ties must not move it."""
        ends = self._range(row, solution)
        if ends is None:
            ends = (solution.decision_values[row],) * 2
            self.certified[row] = False
        self.lower[row], self.upper[row] = ends
        if solution.rival is not None:
            other = self._range(row, solution.rival)
            self.certified[row] &= other is not None and _agree(ends, other)

    def _range(self, row: int, solution: LoomSolution) -> tuple[float, float] | None:
        """Return both ends of f at a sample the machine is without, if found."""
        face = solution.face
        if face is None:
            return None
        if face.unique:
            return (solution.decision_values[row],) * 2
        # The face speaks of a y and of a kernel whose largest value is about 1.
        slope = self.problem.K[row] * self.problem.y / face.scale
        try:
            return face.range_of(slope)
        except LeaveoutError:
            return None


def _agree(ends: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two ranges are one, infinite ends included."""
    return np.allclose(ends, other, rtol=SAME, atol=SAME)
