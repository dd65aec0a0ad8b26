# SPDX-License-Identifier: BSD-3-Clause
"""Solve one binary SVM to double precision: SMO, then an active-set method.

The problem without some samples is solved too, warm-started from the full solution.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._active_set_fast import run_active_set
from leaveout.engine._certificate import (
    LARGEST_BOUND,
    certify,
    intercept_interval,
    unit_exponent,
)
from leaveout.engine._certificate_fast import balance
from leaveout.engine._problem import (
    BOUNDED,
    CERTIFIED,
    MARGIN,
    NOT_CONVERGED,
    OUTSIDE,
    REFIT,
    Folds,
    LooIntervals,
    Problem,
    Solution,
)
from leaveout.engine._smo_fast import smo_with_intercept, smo_without_intercept
from leaveout.run._parallel import map_chunks

# Violation at which SMO hands over to the active set: for n = 200...2000 and
# C = 0.1...100 the total time is smallest around this value.
SMO_TOL = 1e-2
# The active set treats this many units of 2^-52 max K_ii sum(alpha) as rounding error.
ROUNDING = 64.0
# On ill-conditioned kernels with large C SMO is slow; the active set is not.
SMO_STEPS_PER_SAMPLE = 50
# Steps between two checks for Python's signals, so that Ctrl-C works.
SMO_STEPS_PER_CALL = 20_000
ACTIVE_SET_STEPS_PER_CALL = 500


def solve_svc(
    problem: Problem,
    *,
    tol: float = 1e-9,
    max_iter: int = -1,
    start: FloatArray | None = None,
) -> Solution:
    """Solve the dual of a binary SVM.

    ``max  y'beta - 1/2 beta'K beta`` over ``0 <= y_i beta_i <= C_i`` and, with an
    intercept, ``sum(beta) = 0``.

    SMO (second-order working set) brings the violation of the optimality conditions
    below 1e-2; a primal active-set method then solves to double precision, with a
    non-singular set of free support vectors.

    Parameters
    ----------
    problem : Problem
        Kernel values, signs and C. A sample with C_i = 0 is not trained on, but gets a
        decision value.
    tol : float, default=1e-9
        Required KKT residual, relative to max(1, sum_j |beta_j K_ij|).
    max_iter : int, default=-1
        Cap on SMO steps and on active-set steps; -1 for a generous multiple of n.
    start : ndarray of shape (n,), optional
        Feasible signed coefficients to start from; zero if not given.

    Returns
    -------
    Solution
        With ``converged=False`` if the cap was reached; never an exception.
    """
    present = problem.y[problem.C > 0.0]
    one_class = problem.epsilon is None and abs(present.sum()) == present.shape[0]
    if problem.fit_intercept and one_class:
        return _one_class(problem, 1.0 if present.sum() >= 0.0 else -1.0)
    # An indefinite kernel may overflow; the result is then not an optimum.
    if problem.C.max(initial=0.0) > LARGEST_BOUND:
        problem = replace(problem, C=np.minimum(problem.C, LARGEST_BOUND))
    with np.errstate(over="ignore", invalid="ignore"):
        return _solve(problem, tol, max_iter, start)


def solve_at_unit_scale(problem: Problem, start: FloatArray | None = None) -> Solution:
    """Solve a problem with kernel values of any scale, scaled by a power of two."""
    exponent = unit_exponent(problem.K)
    if not exponent:
        return solve_svc(problem, start=start)
    K, C = np.ldexp(problem.K, -exponent), np.ldexp(problem.C, exponent)
    if start is not None:
        start = np.ldexp(start, exponent)
    scaled = solve_svc(replace(problem, K=K, C=C), start=start)
    objective = float(np.ldexp(scaled.objective, -exponent))
    return replace(scaled, beta=np.ldexp(scaled.beta, -exponent), objective=objective)


def restore_svc(
    problem: Problem, beta: FloatArray, *, tol: float = 1e-9, max_iter: int = -1
) -> Solution:
    """Return the solution with given coefficients; solve if they are not optimal.

    They may be on bounds that differ from those of the problem by rounding errors.
    """
    alpha = np.abs(beta)
    bounded = np.abs(alpha - problem.C) <= 2.0**-48 * problem.C
    beta = np.where(bounded, np.sign(beta) * problem.C, beta)
    free = np.flatnonzero((problem.room(beta) > 0.0) & ~bounded)
    F = problem.y - problem.K @ beta
    solution = make_solution(problem, beta, F, free, 0, tol)
    if solution.converged and np.all(alpha[~bounded] <= problem.C[~bounded]):
        return solution
    return solve_svc(problem, tol=tol, max_iter=max_iter)


def _solve(
    problem: Problem, tol: float, max_iter: int, start: FloatArray | None
) -> Solution:
    """Alternate SMO and active set until the optimality conditions hold."""
    y, n = problem.y, problem.n_samples
    beta = np.zeros_like(y) if start is None else start.copy()
    cap = max_iter if max_iter >= 0 else 10_000_000
    F = y - problem.K @ beta if start is not None else y.copy()
    n_iter, smo_tol = 0, SMO_TOL
    # Each round starts from a better point. A second round is needed only if rounding
    # or degeneracy stopped the active set early.
    for _ in range(4):
        budget = min(cap - n_iter, SMO_STEPS_PER_SAMPLE * n)
        n_iter += _run_smo(problem, beta, F, smo_tol, budget)
        budget = min(cap - n_iter, 20 * n + 1000)
        members, steps = _finish(problem, beta, F, tol, budget)
        n_iter += steps
        if problem.fit_intercept:
            balance(problem.offsets, problem.levels, beta, members)
        F = y - problem.K @ beta
        solution = make_solution(problem, beta, F, members, n_iter, tol)
        if solution.converged or n_iter >= cap:
            break
        smo_tol *= 1e-2
    return solution


def _run_smo(
    problem: Problem, beta: FloatArray, F: FloatArray, tol: float, cap: int
) -> int:
    """Run SMO in place, in calls short enough for Ctrl-C; return the steps taken."""
    smo = smo_with_intercept if problem.fit_intercept else smo_without_intercept
    fixed = problem.K, problem.diagonal, problem.y, problem.offsets, problem.levels
    total = 0
    while total < cap:
        budget = min(SMO_STEPS_PER_CALL, cap - total)
        steps, violation = smo(*fixed, beta, F, tol, budget)
        total += steps
        if violation <= tol or steps < budget:
            break
    return total


def _finish(
    problem: Problem, beta: FloatArray, F: FloatArray, tol: float, cap: int
) -> tuple[IntArray, int]:
    """Run the active set in place from the free points of beta; return (M, steps)."""
    fixed = problem.K, problem.diagonal, problem.y, problem.offsets, problem.levels
    members = np.empty(problem.n_samples, dtype=np.intp)
    total = 0
    while True:
        tight = min(0.1 * tol, rounding_of_f(problem.diagonal, beta))
        budget = min(ACTIVE_SET_STEPS_PER_CALL, cap - total)
        m, steps, worst = run_active_set(
            *fixed, problem.fit_intercept, beta, F, members, tight, budget,
            max(1, problem.n_samples // 20),
        )  # fmt: skip
        total += steps
        # No step although one was allowed: F has overflowed.
        if worst <= tight or total >= cap or steps == 0:
            return members[:m], total


def rounding_of_f(diag: FloatArray, beta: FloatArray) -> float:
    """Return the rounding error of f: the active set stops only at that violation.

    If points nearly coincide, a violation far below ``tol`` moves the optimum far.
    """
    return ROUNDING * 2.0**-52 * max(1.0, float(diag.max()) * float(np.abs(beta).sum()))


def make_solution(
    problem: Problem,
    beta: FloatArray,
    F: FloatArray,
    members: IntArray,
    n_iter: int,
    tol: float,
) -> Solution:
    """Combine a dual point with its intercept interval and its certificate.

    F is y - K @ beta, ``members`` are the free support vectors; a KKT residual of at
    most ``tol`` counts as converged.
    """
    interval = (0.0, 0.0)
    if problem.fit_intercept:
        members, interval = intercept_interval(problem, beta, F, members)
    b = _middle(*interval)
    state = BOUNDED * (beta != 0.0).astype(np.int8)
    state[members] = MARGIN
    f = problem.y - F + b
    residual, objective, gap = certify(problem, beta, f, b)
    return Solution(
        beta=beta,
        intercept=b,
        intercept_interval=interval,
        decision_values=f,
        state=state,
        kkt_residual=residual,
        duality_gap=gap,
        objective=objective,
        n_iter=n_iter,
        converged=residual <= tol and bool(np.isfinite(objective)),
    )


def _middle(low: float, high: float) -> float:
    """Midpoint of an interval, as in LIBSVM; the finite end of a half-line."""
    if np.isinf(low):
        return high
    return low if np.isinf(high) else 0.5 * (low + high)


def _one_class(problem: Problem, sign: float) -> Solution:
    """All labels equal: w = 0 and every b beyond the label is optimal."""
    n = problem.n_samples
    interval = (1.0, np.inf) if sign > 0 else (-np.inf, -1.0)
    f, state = np.full(n, sign), np.full(n, OUTSIDE, dtype=np.int8)
    return Solution(np.zeros(n), sign, interval, f, state, 0.0, 0.0, 0.0, 0, True)


def refit_each(
    problem: Problem,
    solution: Solution,
    folds: Folds,
    *,
    n_threads: int = 1,
    changes: bool = False,
) -> LooIntervals:
    """Solve the problem without each fold, warm-started from the full solution."""
    g, n = len(folds), problem.n_samples
    out = LooIntervals.empty(folds.members.size, REFIT, (g, n + 1) if changes else None)

    def run(part: slice) -> None:
        for k in range(g)[part]:
            factors = None if folds.C_factors is None else folds.C_factors[k]
            left_out = solve_without(problem, solution, folds[k], factors)
            store_refit(out, folds, k, left_out, solution)

    map_chunks(run, g, n_threads, size=1)
    return out


def store_refit(
    out: LooIntervals, folds: Folds, k: int, left_out: Solution, full: Solution
) -> None:
    """Write the values of fold k from the solution without it."""
    entries = slice(folds.begin[k], folds.begin[k + 1])
    f, b = left_out.decision_values, left_out.intercept
    low, high = left_out.intercept_interval
    out.lower[entries] = f[folds[k]] + (low - b)
    out.upper[entries] = f[folds[k]] + (high - b)
    out.settled_by[entries] = REFIT
    out.uncertified_by[entries] = CERTIFIED if left_out.converged else NOT_CONVERGED
    if out.changes is not None:
        out.changes[k, :-1] = left_out.beta - full.beta
        out.changes[k, -1] = _middle(low, high) - full.intercept


def solve_without(
    problem: Problem,
    solution: Solution,
    rows: IntArray,
    factors: FloatArray | None = None,
) -> Solution:
    """Solve the problem without some samples, by setting their C to 0.

    Their decision values are computed too. ``factors`` multiply the C of the negative
    and of the positive samples, if they change.
    """
    C, seed = problem.C.copy(), seed_without(problem, solution, rows)
    if factors is not None:
        C *= np.where(problem.y > 0, factors[1], factors[0])
        seed *= min(1.0, *factors)
    C[rows] = 0.0
    left_out = replace(problem, C=C, first_equal=None)
    return solve_svc(left_out, start=seed)


def seed_without(problem: Problem, solution: Solution, rows: IntArray) -> FloatArray:
    """Signed coefficients, feasible without some samples and near the full solution.

    The coefficients of the left-out samples are passed on to other samples, to keep
    sum(beta) = 0, in the order in which b reaches their margin: the largest y_i - g_i
    first if beta must rise, the smallest first if it must fall.
    """
    beta = solution.beta.copy()
    missing = float(beta[rows].sum())
    beta[rows] = 0.0
    if not problem.fit_intercept or missing == 0.0:
        return beta
    lower, upper = problem.levels[:, -1], problem.levels[:, 0]
    room = upper - beta if missing > 0 else beta - lower
    room[rows] = 0.0
    reach = np.sign(missing) * (problem.y - solution.decision_values)
    order = np.argsort(-reach, kind="stable")
    before = np.cumsum(room[order]) - room[order]
    take = np.clip(abs(missing) - before, 0.0, room[order])
    beta[order] += np.sign(missing) * take
    if take.sum() < abs(missing) * (1.0 - 1e-9):
        # One class is left: only zero is feasible.
        return np.zeros_like(beta)
    return np.clip(beta, lower, upper)
