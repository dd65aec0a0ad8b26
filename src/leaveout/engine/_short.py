# SPDX-License-Identifier: BSD-3-Clause
"""Solve a small, ordinary SVM and leave out each sample, with as few steps as possible.

The kernels are those of ``solve_svc`` and ``loo_walk``; only what is rarely needed
around them is missing. Where it is needed, the result is None.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.engine._certificate import (
    drop_unsafe_certificates,
    rounding_bound,
    rounding_of_sum,
)
from leaveout.engine._problem import (
    MARGIN,
    TIE,
    LooIntervals,
    Problem,
    Solution,
)
from leaveout.engine._short_fast import (
    AS_BEFORE,
    FACTS,
    FOUND,
    LEFT_OUT,
    REFUSED,
    SOLVED,
    Short,
)
from leaveout.engine._solve import make_solution, solve_svc
from leaveout.engine._walk import random_signs

TOL = 1e-9  # as in solve_svc
# Up to this many samples one call on all of them is faster than near sets.
ALL_NEAR = 500
# Larger problems are solved in calls short enough for Ctrl-C.
SMALL = 1000


def solve_and_leave_singles(
    problem: Problem,
    Cs: FloatArray,
    start: FloatArray | None = None,
    labels_only: bool = False,
) -> list[tuple[Solution | None, LooIntervals | None]]:
    """Return the solution and the left-out value of every sample, for each row of Cs.

    Each row, (n,), holds upper bounds in place of those of the problem; the next row
    starts from the last solution. Solution and values are those of ``solve_svc``,
    ``loo_walk`` and ``drop_unsafe_certificates``. The second is None unless the problem
    has an intercept, few and distinct samples, at least two of each class, a free
    support vector, kernel values of one size, and walks that all end; the first is None
    if not even the solver was tried, or needs more. Both are None where the values
    before are the same at larger C.
    """
    n = problem.n_samples
    if n > ALL_NEAR or problem.first_equal is not None or not _is_plain(problem):
        return [(None, None)] * Cs.shape[0]
    short = Short(
        problem.K, problem.y, Cs, start, random_signs(n), problem.regular, True,
        labels_only,
    )  # fmt: skip
    rows = [dict(zip(FACTS, row, strict=True)) for row in short.facts.tolist()]
    done = [facts for facts in rows if facts["stage"] != AS_BEFORE]
    found = [
        (_solution(problem, short, k, facts, Cs[k]), _values(problem, short, k, facts))
        for k, facts in enumerate(done)
    ]
    if len(done) < len(rows):
        solution, values = found[-1]
        assert values is not None
        found[-1] = solution, replace(values, same_if_larger=True)
    return found + [(None, None)] * (len(rows) - len(done))


@dataclass(frozen=True)
class Fits:
    """Solutions of one problem at ascending C."""

    betas: FloatArray  # (n_Cs, n)
    ends: FloatArray  # (n_Cs, 2) interval of the intercept
    converged: BoolArray  # (n_Cs,)
    rounding: FloatArray  # (n_Cs,) see rounding_bound


def solve_path(problem: Problem, Cs: FloatArray) -> Fits:
    """Solve a problem at each row of Cs, ascending, each from the last solution."""
    n_Cs, n = Cs.shape
    betas, ends = np.zeros((n_Cs, n)), np.zeros((n_Cs, 2))
    converged, rounding = np.ones(n_Cs, dtype=bool), np.zeros(n_Cs)
    stages = np.full(n_Cs, REFUSED if n else SOLVED)
    if 0 < n <= SMALL and problem.regular and _is_plain(problem):
        short = Short(problem.K, problem.y, Cs, None, None, True, False, False)
        facts = short.facts.T
        betas, stages = short.beta, facts[FACTS.index("stage")]
        ends[:] = facts[FACTS.index("b")][:, None]
        rounding = rounding_of_sum(short.top, facts[FACTS.index("total")])
    for k in range(n_Cs):
        if stages[k] == AS_BEFORE:
            for array in (betas, ends, converged, rounding):
                array[k:] = array[k - 1]
            break
        if stages[k] == SOLVED:
            continue
        own, start, solution = replace(problem, C=Cs[k]), None, None
        if k > 0:
            last = np.where(Cs[k - 1] > 0.0, Cs[k - 1], 1.0)
            start = Cs[k] * (betas[k - 1] / last)
        if stages[k] == FOUND:
            solution = _complete(own, short, k)
        if solution is None:
            solution = solve_svc(own, start=start)
        if solution.converged and np.all((solution.alpha < own.C) | (own.C == 0.0)):
            stages[k + 1 :] = AS_BEFORE
        betas[k], ends[k] = solution.beta, solution.intercept_interval
        converged[k], rounding[k] = solution.converged, rounding_bound(own, solution)
    return Fits(betas, ends, converged, rounding)


def _is_plain(problem: Problem) -> bool:
    """Whether it is a classifier with an intercept."""
    return problem.fit_intercept and problem.epsilon is None


def _solution(
    problem: Problem, short: Short, k: int, facts: dict[str, float], C: FloatArray
) -> Solution | None:
    """Return the solution at one C if one round found it."""
    stage, beta = facts["stage"], short.beta[k]
    if stage == REFUSED:
        return None
    if stage == FOUND:
        return _complete(replace(problem, C=C), short, k)
    b, primal = facts["b"], facts["primal"]
    return Solution(
        beta=beta,
        intercept=b,
        intercept_interval=(b, b),
        decision_values=short.f[k],
        state=short.state[k],
        kkt_residual=facts["residual"],
        duality_gap=facts["gap"] / primal if primal > 0.0 else 0.0,
        objective=primal,
        n_iter=int(facts["steps"]),
        converged=True,
    )


def _complete(problem: Problem, short: Short, k: int) -> Solution | None:
    """Return the solution with a dual point that was found, if it is optimal."""
    beta, n_steps = short.beta[k], int(short.facts[k, FACTS.index("steps")])
    members, F = np.flatnonzero(short.state[k] == MARGIN), problem.y - problem.K @ beta
    solution = make_solution(problem, beta, F, members, n_steps, TOL)
    return solution if solution.converged else None


def _values(
    problem: Problem, short: Short, k: int, facts: dict[str, float]
) -> LooIntervals | None:
    """Return the left-out values at one C if all walks ended."""
    if facts["stage"] < LEFT_OUT:
        return None
    rounding = rounding_of_sum(short.top, facts["total"])
    counts = {
        "pivots": facts["events"],
        "slots": float(problem.n_samples if facts["walks"] else 0),
        "repeated": 0.0,
        "shared": 0.0,
        "refits": 0.0,
        "walks": facts["walks"],
        "rounding": rounding,
    }
    lower = short.lower[k]
    upper = short.upper[k] if facts["open"] else lower
    reasons = np.zeros(problem.n_samples, np.int8)  # CERTIFIED
    found = LooIntervals(lower, upper, short.settled_by[k], reasons, counts)
    if rounding > TIE:
        found = drop_unsafe_certificates(problem, found, rounding)
    return found
