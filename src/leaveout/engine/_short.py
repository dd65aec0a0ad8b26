# SPDX-License-Identifier: BSD-3-Clause
"""Solve a small, ordinary SVM and leave out each sample, with as few steps as possible.

The kernels are those of ``solve_svc`` and ``loo_walk``; only what is rarely needed
around them is missing. Where it is needed, the result is None.
"""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._active_set_fast import run_active_set
from leaveout.engine._certificate import (
    DOMINATING,
    NEAR,
    REACH,
    SMALLEST_BOUNDS,
    drop_unsafe_certificates,
    rounding_of_sum,
)
from leaveout.engine._certificate_fast import (
    any_near,
    balance,
    measure,
    settle_members,
)
from leaveout.engine._problem import (
    BOUNDED,
    CERTIFIED,
    FIRST_SEGMENT,
    MARGIN,
    NEGATIVE_MARGIN,
    TIE,
    WALK,
    LooIntervals,
    Problem,
    Solution,
)
from leaveout.engine._smo_fast import smo_with_intercept
from leaveout.engine._solve import (
    SMO_STEPS_PER_SAMPLE,
    SMO_TOL,
    make_solution,
    rounding_of_f,
)
from leaveout.engine._tableau_fast import Tableau
from leaveout.engine._walk import ALL_NEAR, random_signs
from leaveout.engine._walk_fast import FOLDS_AT_ONCE, Status, run_walks

# Residual up to which no scaling is needed to see that a solution is optimal.
OPTIMAL = 1e-12
TOL = 1e-9  # as in solve_svc
NO_CHANGES, NONE_NEEDED = np.empty((0, 0)), np.empty(0, dtype=np.uint8)


def solve_and_leave_singles(
    problem: Problem, start: FloatArray | None = None, labels_only: bool = False
) -> tuple[Solution | None, LooIntervals | None]:
    """Return the solution and the left-out value of every sample.

    Both are those of ``solve_svc``, ``loo_walk`` and ``drop_unsafe_certificates``. The
    second is None unless the problem has an intercept, few and distinct samples, at
    least two of each class, a free support vector, kernel values of one size, and walks
    that all end; the first is None if not even the solver was tried, or needs more.
    """
    y, C, n = problem.y, problem.C, problem.n_samples
    if n > ALL_NEAR or abs(float(y.sum())) > n - 4 or problem.first_equal is not None:
        return None, None
    if not problem.fit_intercept or problem.epsilon is not None or not C.all():
        return None, None
    top, least = float(problem.diagonal.max()), float(problem.diagonal.min())
    if not 0.0 < top <= DOMINATING * least or top * float(C.sum()) < SMALLEST_BOUNDS:
        return None, None
    solution, is_free = _solve(problem, start)
    if solution is None or not is_free:
        return solution, None
    beta, f = solution.beta, solution.decision_values
    total = float(np.abs(beta).sum())
    rounding = rounding_of_sum(top, total)
    if any_near(problem.K, y, beta, f, NEAR * top):
        return solution, None
    reach = REACH * total
    levels = problem.levels
    if float(C.max()) > reach:
        levels = np.clip(levels, -reach, reach)
    found = _walk(problem, solution, levels, labels_only, rounding)
    if found is not None and rounding > TIE:
        found = drop_unsafe_certificates(problem, found, rounding)
    return solution, found


def _solve(problem: Problem, start: FloatArray | None) -> tuple[Solution | None, bool]:
    """Return the solution if one round finds it, and whether a sample is free."""
    K, y, n = problem.K, problem.y, problem.n_samples
    offsets, levels = problem.offsets, problem.levels
    fixed = K, problem.diagonal, y, offsets, levels
    beta = np.zeros(n) if start is None else start.copy()
    F = y.copy() if start is None else y - K @ beta
    steps, violation = smo_with_intercept(
        *fixed, beta, F, SMO_TOL, SMO_STEPS_PER_SAMPLE * n
    )
    if not violation <= SMO_TOL:
        return None, False
    members = np.empty(n, dtype=np.intp)
    tight = rounding_of_f(problem.diagonal, beta)
    m, more, violation = run_active_set(
        *fixed, True, beta, F, members, tight, 20 * n, max(1, n // 20)
    )
    if not violation <= tight:
        return None, False
    members, steps = members[:m], steps + more
    balance(offsets, levels, beta, members)
    F = y - K @ beta
    stays, is_free, b = settle_members(
        offsets, levels, problem.C, beta, F, members, 0.0
    )
    f = y - F + b
    worst, total, size, primal, gap = measure(y, offsets, levels, beta, f, b)
    residual = max(worst, abs(total) / size if size else 0.0)
    if not (stays and is_free and residual <= OPTIMAL):
        solution = make_solution(problem, beta, F, members, steps, TOL)
        return (solution if solution.converged else None), False
    state = BOUNDED * (beta != 0.0).astype(np.int8)
    state[members] = MARGIN
    gap = gap / primal if primal > 0.0 else 0.0
    found = (beta, b, (b, b), f, state, residual, gap, primal, steps, True)
    return Solution(*found), True


def _walk(
    problem: Problem,
    solution: Solution,
    levels: FloatArray,
    labels_only: bool,
    rounding: float,
) -> LooIntervals | None:
    """Return the left-out values if all walks end."""
    f, n = solution.decision_values, problem.n_samples
    settled = np.zeros(n, dtype=np.int8)  # ZERO_ALPHA
    open_ = solution.beta != 0.0
    if labels_only:
        wrong = open_ & (problem.y * f < -TIE)
        settled[wrong] = NEGATIVE_MARGIN
        open_ &= ~wrong
    rows = open_.nonzero()[0]
    lower = upper = f.copy()
    counts = dict.fromkeys(("pivots", "slots", "repeated", "shared", "refits"), 0.0)
    counts |= {"walks": float(rows.size), "rounding": rounding}
    if rows.size:
        tableau = _make_tableau(problem, solution, levels)
        ends = None if tableau is None else _run(tableau, rows, labels_only)
        if ends is None:
            return None
        low, high, events = ends
        if (low != high).any():
            upper = f.copy()
        lower[rows], upper[rows] = low, high
        settled[rows] = np.where(events == 0, FIRST_SEGMENT, WALK)
        counts["pivots"], counts["slots"] = float(events.sum()), float(n)
    return LooIntervals(lower, upper, settled, np.full(n, CERTIFIED, np.int8), counts)


def _make_tableau(
    problem: Problem, solution: Solution, levels: FloatArray
) -> Tableau | None:
    """Return the tableau on all samples; None if the kernel is singular on M."""
    n, free = problem.n_samples, solution.state == MARGIN
    try:
        tableau = Tableau(
            problem.K, problem.y, problem.offsets, levels, solution.beta,
            solution.decision_values, free, random_signs(n), True,
        )  # fmt: skip
    except np.linalg.LinAlgError:
        return None
    tableau.add((~free).nonzero()[0])
    others = slice(0, n - tableau.n_free)
    tableau.project(others)
    tableau.fill(others)
    tableau.finish()
    return tableau


def _run(
    tableau: Tableau, rows: IntArray, labels_only: bool
) -> tuple[FloatArray, FloatArray, IntArray] | None:
    """Return both ends of the values and the events of the walks, if all end."""
    g = rows.size
    value, down, up, shift = np.empty((4, g))
    events, status = np.empty(g, dtype=np.intp), np.empty(g, dtype=np.int8)
    for first in range(0, g, FOLDS_AT_ONCE):
        part = slice(first, first + FOLDS_AT_ONCE)
        begin = np.arange(min(g - first, FOLDS_AT_ONCE) + 1)
        run_walks(
            tableau, rows[part], begin, labels_only, value[part], down[part], up[part],
            shift[part], status[part], events[part], NONE_NEEDED, NO_CHANGES,
        )  # fmt: skip
    if status.max() > Status.STOPPED:
        return None
    return value + down, value + up, events
