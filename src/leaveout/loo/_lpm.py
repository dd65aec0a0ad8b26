# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out of the linear programming machine.

Leaving p out takes row p and column p from the linear program. Samples with a_p = 0 and
lam_p = 0 change nothing; for all others a few pivots lead from the basis of the full
optimum, which all share, to an optimum without p (docs/method/lpm). An optimum of a
linear program need not be unique, so the range of f(x_p) over all of them is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._lpm_fast import Status, leave_out_rows, work_sizes
from leaveout.loo._lpm_tableau import LpmTableau, build_lpm_tableau
from leaveout.loo._result import (
    REFIT,
    SINGLETON,
    UNTOUCHED,
    WALK,
    ZERO_ALPHA,
    MachineLoo,
    middle,
)
from leaveout.run import map_chunks
from leaveout.solve import LpmSolution, LpmSolver, lpm_certificate, solve_lpm

# Pivots there is room for; a sample that needs more is tried again, then refitted.
CAPACITIES = (64, 1024)
# Samples in a row: their certificates are two products of matrices.
CHUNK = 64


def loo_lpm_walk(
    problem: Problem,
    *,
    solution: LpmSolution | None = None,
    n_threads: int = 1,
) -> MachineLoo:
    """Leave every sample out of one linear programming machine, by pivots.

    Parameters
    ----------
    problem : Problem
        The machine; a sample with C = 0 is absent, and gets its value all the same.
    solution : LpmSolution, optional
        Its optimum, if it is at hand.
    n_threads : int, default=1
        Threads over samples.

    Returns
    -------
    MachineLoo
        ``lower`` and ``upper`` are the ends of f over all optima without the sample;
        ``values`` is the middle.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.kernel import Problem
    >>> from leaveout.loo import loo_lpm_walk
    >>> x = np.array([-2.0, -1.0, 1.0, 3.0])
    >>> loo = loo_lpm_walk(Problem(np.outer(x, x), np.sign(x), np.full(4, 10.0)))
    >>> loo.values.round(4), loo.certified.all()
    (array([-2.    , -0.3333,  0.2   ,  0.    ]), np.True_)
    """
    started = perf_counter()
    solution = solve_lpm(problem) if solution is None else solution
    fitted = perf_counter()
    answer = _Answer(problem, solution)
    rows = answer.settle_singletons()
    tableau = build_lpm_tableau(problem, solution) if solution.converged else None
    if tableau is not None:
        for capacity in CAPACITIES:
            rows = _walk_all(problem, tableau, answer, rows, capacity, n_threads)
    refit_rows(answer, rows, n_threads)
    return answer.result(fitted - started, perf_counter() - started)


def loo_lpm_refit(
    problem: Problem,
    *,
    solution: LpmSolution | None = None,
    n_threads: int = 1,
) -> MachineLoo:
    """Leave every sample out by a linear program each, warm from the full basis.

    Parameters and result are those of :func:`loo_lpm_walk`.
    """
    started = perf_counter()
    solution = solve_lpm(problem) if solution is None else solution
    fitted = perf_counter()
    answer = _Answer(problem, solution)
    refit_rows(answer, answer.settle_singletons(), n_threads)
    return answer.result(fitted - started, perf_counter() - started)


class _Answer:
    """Ranges of f as they come in."""

    def __init__(self, problem: Problem, solution: LpmSolution) -> None:
        n = problem.n_samples
        self.problem = problem
        self.lower, self.upper = np.full(n, np.nan), np.full(n, np.nan)
        self.certified = np.zeros(n, dtype=bool)
        self.settled_by = np.full(n, WALK, dtype=np.int8)
        idle = (solution.coef == 0.0) & (solution.row_dual == 0.0)
        self.settled_by[idle] = ZERO_ALPHA
        self.settled_by[problem.C == 0.0] = UNTOUCHED
        self.counts = {"pivots": 0.0, "refits": 0.0, "walks": 0.0}

    def settle_singletons(self) -> IntArray:
        """Answer for who is alone in its class; return the samples that are left.

        Without it a = 0, and b is at or beyond the other label.
        """
        problem, left = self.problem, np.arange(self.problem.n_samples)
        if not problem.fit_intercept:
            return left
        for sign in (-1.0, 1.0):
            members = np.flatnonzero((problem.y == sign) & (problem.C > 0.0))
            if members.size == 1:
                self.lower[members] = -np.inf if sign > 0 else 1.0
                self.upper[members] = -1.0 if sign > 0 else np.inf
                self.certified[members] = True
                self.settled_by[members] = SINGLETON
                left = np.setdiff1d(left, members)
        return left

    def result(self, fit_seconds: float, seconds: float) -> MachineLoo:
        """Return the answers with what they cost."""
        counts = {**self.counts, "fit_seconds": fit_seconds, "seconds": seconds}
        return MachineLoo(
            middle(self.lower, self.upper), self.lower, self.upper, self.certified,
            self.settled_by, counts,
        )  # fmt: skip


def _walk_all(
    problem: Problem,
    tableau: LpmTableau,
    answer: _Answer,
    rows: IntArray,
    capacity: int,
    n_threads: int,
) -> IntArray:
    """Answer for the samples whose walks end well; return the others."""
    done = np.zeros(rows.size, dtype=bool)
    pivots = np.zeros(rows.size, dtype=np.int64)

    def run(part: slice) -> None:
        own = rows[part]
        walked = _walk(problem, tableau, own, capacity)
        good = walked.certified
        answer.lower[own[good]] = walked.least[good]
        answer.upper[own[good]] = walked.most[good]
        answer.certified[own[good]] = True
        done[part], pivots[part] = good, walked.n_pivots

    map_chunks(run, rows.size, n_threads, size=CHUNK)
    answer.counts["pivots"] += float(pivots.sum())
    answer.counts["walks"] += float(np.count_nonzero(pivots))
    return rows[~done]


@dataclass(frozen=True)
class _Walked:
    """Ends of some walks: range of f, whether it is proved, number of pivots."""

    least: FloatArray
    most: FloatArray
    certified: np.ndarray
    n_pivots: np.ndarray


def _walk(
    problem: Problem,
    tableau: LpmTableau,
    rows: IntArray,
    capacity: int,
) -> _Walked:
    """Leave some samples out, one at a time, and prove what was found."""
    n, m = tableau.T.shape
    n_floats, n_integers = work_sizes(n, m, capacity)
    z_least, z_most = np.zeros((rows.size, m)), np.zeros((rows.size, m))
    slopes = np.zeros((rows.size, n))
    pivots = np.zeros(rows.size, dtype=np.int64)
    status = np.zeros(rows.size, dtype=np.int8)
    leave_out_rows(
        tableau.T, tableau.transposed, tableau.basic, tableau.nonbasic, tableau.x,
        tableau.side, tableau.D, tableau.kink, tableau.has_kink, tableau.low,
        tableau.high, problem.y, tableau.rate_slack, tableau.value_slack, rows,
        np.empty(n_floats), np.empty(n_integers, dtype=np.intp), capacity,
        z_least, z_most, slopes, pivots, status,
    )  # fmt: skip
    # Without a pivot the full optimum is that without the sample, and is proved.
    least, certified = tableau.values[rows], status == Status.DONE
    most = least.copy()
    moved = certified & (pivots > 0)
    least[moved], optimal = _certify(
        problem, rows[moved], z_least[moved], slopes[moved]
    )
    most[moved] = least[moved]
    certified[moved] = optimal
    several = moved & (z_least != z_most).any(axis=1)
    most[several], optimal = _certify(
        problem, rows[several], z_most[several], slopes[several]
    )
    certified[several] &= optimal
    least, most = np.minimum(least, most), np.maximum(least, most)
    return _Walked(least, most, certified, pivots)


def _certify(
    problem: Problem, rows: IntArray, z: FloatArray, slopes: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return f at the sample left out, and whether the machine without it is optimal.

    Both come from z and the row duals alone, not from what the walk has updated.
    """
    n, each = problem.n_samples, np.arange(rows.size)
    coefs = z[:, :n]
    values = coefs @ problem.K.T
    if problem.fit_intercept:
        values += z[:, n:]
    boxes = np.tile(problem.C, (rows.size, 1))
    boxes[each, rows] = 0.0
    row_dual = np.clip(slopes * problem.y, 0.0, boxes)
    _, _, optimal = lpm_certificate(problem, coefs, values, row_dual * problem.y, boxes)
    return values[each, rows], optimal & (coefs[each, rows] == 0.0)


def refit_rows(answer: _Answer, rows: IntArray, n_threads: int) -> None:
    """Answer by one linear program each; the range comes from the basis it ends with.

    Only samples with a coefficient or a row dual are solved anew.
    """
    problem = answer.problem
    if rows.size == 0:
        return
    solver = LpmSolver(problem)
    solver.solve()

    def run(part: slice) -> None:
        own = LpmSolver(problem)
        own.start_from(solver)
        for row in rows[part]:
            _refit(problem, own, answer, int(row))

    map_chunks(run, rows.size, n_threads, size=CHUNK)
    answer.counts["refits"] += float(rows.size)


def _refit(problem: Problem, solver: LpmSolver, answer: _Answer, row: int) -> None:
    """Answer for one sample by a linear program."""
    left_out = solver.solve_without(np.array([row]))
    C = problem.C.copy()
    C[row] = 0.0
    without = Problem(problem.K, problem.y, C, problem.fit_intercept)
    answer.lower[row] = answer.upper[row] = left_out.decision_values[row]
    answer.certified[row] = False
    if answer.settled_by[row] != UNTOUCHED:
        answer.settled_by[row] = REFIT
    tableau = build_lpm_tableau(without, left_out) if left_out.converged else None
    if tableau is None:
        return
    walked = _walk(without, tableau, np.array([row]), CAPACITIES[-1])
    if walked.certified[0]:
        answer.lower[row], answer.upper[row] = walked.least[0], walked.most[0]
        answer.certified[row] = True
