# SPDX-License-Identifier: BSD-3-Clause
"""Solve a small, ordinary SVM and leave out each sample, with as few steps as possible.

The kernels are those of ``solve_svc`` and ``loo_walk``; only what is rarely needed
around them is missing. Where it is needed, the result is None.
"""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray
from leaveout.engine._certificate import drop_unsafe_certificates, rounding_of_sum
from leaveout.engine._problem import (
    CERTIFIED,
    TIE,
    LooIntervals,
    Problem,
    Solution,
)
from leaveout.engine._short_fast import Short, Stage
from leaveout.engine._solve import make_solution
from leaveout.engine._walk import ALL_NEAR, random_signs

TOL = 1e-9  # as in solve_svc


def solve_and_leave_singles(
    problem: Problem, start: FloatArray | None = None, labels_only: bool = False
) -> tuple[Solution | None, LooIntervals | None]:
    """Return the solution and the left-out value of every sample.

    Both are those of ``solve_svc``, ``loo_walk`` and ``drop_unsafe_certificates``. The
    second is None unless the problem has an intercept, few and distinct samples, at
    least two of each class, a free support vector, kernel values of one size, and walks
    that all end; the first is None if not even the solver was tried, or needs more.
    """
    n = problem.n_samples
    if n > ALL_NEAR or problem.first_equal is not None:
        return None, None
    if not problem.fit_intercept or problem.epsilon is not None:
        return None, None
    short = Short(problem.K, problem.y, problem.C, start, random_signs(n), labels_only)
    solution = _solution(problem, short)
    if solution is None or short.stage < Stage.LEFT_OUT:
        return solution, None
    rounding = rounding_of_sum(short.top, short.total)
    counts = {
        "pivots": float(short.n_events),
        "slots": float(n if short.n_walks else 0),
        "repeated": 0.0,
        "shared": 0.0,
        "refits": 0.0,
        "walks": float(short.n_walks),
        "rounding": rounding,
    }
    reasons = np.full(n, CERTIFIED, np.int8)
    found = LooIntervals(short.lower, short.upper, short.settled_by, reasons, counts)
    if rounding > TIE:
        found = drop_unsafe_certificates(problem, found, rounding)
    return solution, found


def _solution(problem: Problem, short: Short) -> Solution | None:
    """Return the solution if one round found it."""
    if short.stage == Stage.REFUSED:
        return None
    if short.stage == Stage.FOUND:
        found = short.beta, short.F, short.members, short.n_steps
        solution = make_solution(problem, *found, TOL)
        return solution if solution.converged else None
    gap = short.gap / short.primal if short.primal > 0.0 else 0.0
    return Solution(
        beta=short.beta,
        intercept=short.b,
        intercept_interval=(short.b, short.b),
        decision_values=short.f,
        state=short.state,
        kkt_residual=short.residual,
        duality_gap=gap,
        objective=short.primal,
        n_iter=short.n_steps,
        converged=True,
    )
