# SPDX-License-Identifier: BSD-3-Clause
"""solve_svc against an interior-point solver and LIBSVM."""

import numpy as np
import pytest
from oracles.binary import certificate, gap_rounding, svc_clarabel, svc_libsvm
from oracles.problems import DEGENERATE, KERNELS, random_case

from leaveout.engine._active_set_fast import run_active_set
from leaveout.engine._problem import BOUNDED, MARGIN, OUTSIDE, Problem
from leaveout.engine._smo_fast import smo_with_intercept, smo_without_intercept
from leaveout.engine._solve import solve_svc


def assert_solved(case, solution, where=""):
    """Feasible, optimal by its own certificate and by ours, and equal to the oracle."""
    K, y, C, fit_intercept = case
    beta, alpha = solution.beta, y * solution.beta
    assert solution.converged, where
    assert ((alpha >= 0) & (alpha <= C)).all(), where
    if fit_intercept:
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum(), where
    primal, gap, kkt = certificate(K, y, C, beta, solution.intercept)
    rounding = gap_rounding(K, C, beta, primal)
    assert max(kkt, solution.kkt_residual) <= 1e-9, where
    assert abs(gap) <= 1e-10 + rounding, where
    assert abs(solution.duality_gap) <= 1e-10 + rounding / min(1.0, primal), where
    assert_states(case, solution, where)
    optimum = svc_clarabel(*case)
    assert optimum.kkt <= 1e-10, where
    rel = 1e-9 + rounding * max(1.0, 1.0 / max(optimum.objective, 1e-300))
    f, (low, high) = solution.decision_values, solution.intercept_interval
    assert solution.objective == pytest.approx(optimum.objective, rel=rel), where
    assert f == pytest.approx(optimum.f, abs=1e-6), where
    assert f == pytest.approx(K @ beta + solution.intercept, abs=1e-9), where
    assert low <= solution.intercept <= high, where
    assert (low, high) == pytest.approx((optimum.b_low, optimum.b_high), abs=1e-6)


def assert_states(case, solution, where):
    """The state matches alpha, and the free points are independent."""
    alpha, state = np.abs(solution.beta), solution.state
    assert (alpha[state == OUTSIDE] == 0).all(), where
    assert (alpha[state == BOUNDED] == case.C[state == BOUNDED]).all(), where
    free = np.flatnonzero(state == MARGIN)
    if free.size:
        matrix = case.K[np.ix_(free, free)]
        if case.fit_intercept:
            ones = np.ones((free.size, 1))
            matrix = np.block([[matrix, ones], [ones.T, 0.0]])
        rank = np.linalg.matrix_rank(matrix, tol=1e-13 * np.abs(matrix).max())
        assert rank == matrix.shape[0], where


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    case = DEGENERATE[name]
    assert_solved(case, solve_svc(Problem(*case)))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
def test_random_problems(kernel, fit_intercept):
    rng = np.random.default_rng([len(kernel), fit_intercept])
    for C in 10.0 ** np.arange(-3, 5):
        for n in (*rng.integers(2, 41, 5), 120):
            case = random_case(rng, n, kernel, C, fit_intercept)
            assert_solved(case, solve_svc(Problem(*case)), f"C={C} n={n}")


def test_against_libsvm():
    rng = np.random.default_rng(0)
    for k in range(60):
        case = random_case(rng, C=10 ** rng.uniform(-3, 1), fit_intercept=True)
        solution = solve_svc(Problem(*case))
        beta, b, f, converged = svc_libsvm(*case)
        if not converged:
            continue
        # LIBSVM stores kernel values in single precision: 6e-8 of each term.
        atol = 1e-6 + 1e-6 * (np.abs(case.K) @ np.abs(beta)).max()
        low, high = solution.intercept_interval
        assert f - b == pytest.approx(case.K @ solution.beta, abs=atol), f"problem {k}"
        assert low - atol <= b <= high + atol


@pytest.mark.parametrize("smo", [smo_with_intercept, smo_without_intercept])
def test_smo_updates_its_gradient_exactly(smo, rng):
    """The active set would hide an error of SMO."""
    K, y, C, _ = random_case(rng, n=40, kernel="rbf", C=2.0)
    targets = rng.normal(size=40)
    for problem in (Problem(K, y, C), Problem(K, targets, C, epsilon=0.1)):
        beta, F = np.zeros(40), problem.y.copy()
        fixed = K, K.diagonal().copy(), problem.y, problem.offsets, problem.levels
        _, violation = smo(*fixed, beta, F, 1e-6, 10_000)
        assert violation <= 1e-6
        assert F == pytest.approx(problem.y - K @ beta, abs=1e-12)


def test_active_set_from_coefficients_beyond_a_level(rng):
    """By rounding; a state for what is beyond the last level does not exist."""
    X, y = rng.normal(size=(40, 2)), np.where(np.arange(40) % 2, 1.0, -1.0)
    problem = Problem(X @ X.T, y, np.full(40, 1.0))
    wanted = solve_svc(problem)
    beta = wanted.beta * (1.0 + 2.0**-50)
    F = y - problem.K @ beta
    _, _, worst = run_active_set(
        problem.K, problem.diagonal, y, problem.offsets, problem.levels, True,
        beta, F, np.empty(40, dtype=np.intp), 1e-10, 100, 2,
    )  # fmt: skip
    assert worst <= 1e-10
    np.testing.assert_allclose(problem.K @ beta, problem.K @ wanted.beta, atol=1e-9)
