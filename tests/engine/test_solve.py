# SPDX-License-Identifier: BSD-3-Clause
"""solve_svc against an interior point and LIBSVM, over everything we can think of."""

import numpy as np
import pytest
from oracles.binary import certificate, gap_rounding, svc_clarabel, svc_libsvm
from oracles.problems import DEGENERATE, KERNELS, Case, random_case

from leaveout.engine._problem import BOUNDED, MARGIN, OUTSIDE, Problem
from leaveout.engine._solve import solve_svc

PENALTIES = [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4]


def assert_solved(case, solution, where=""):
    """Feasible, optimal by its own word and by ours, and equal to the oracle."""
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
    assert solution.objective == pytest.approx(primal, rel=1e-9 + rounding), where
    assert_states(case, solution, where)
    assert_equals_oracle(case, solution, svc_clarabel(*case), where)


def assert_states(case, solution, where):
    """The state says where alpha is, and the free points are independent."""
    alpha, state = np.abs(solution.beta), solution.state
    assert (alpha[state == OUTSIDE] == 0).all(), where
    np.testing.assert_array_equal(alpha[state == BOUNDED], case.C[state == BOUNDED])
    free = np.flatnonzero(state == MARGIN)
    bordered = case.K[np.ix_(free, free)]
    if case.fit_intercept and free.size:
        bordered = np.block(
            [[bordered, np.ones((free.size, 1))], [np.ones(free.size), 0.0]]
        )
    if free.size:
        rank = np.linalg.matrix_rank(bordered, tol=1e-13 * np.abs(bordered).max())
        assert rank == bordered.shape[0], where


def assert_equals_oracle(case, solution, optimum, where):
    """Objective, decision values and the interval of b, which are all unique."""
    assert optimum.kkt <= 1e-10, where
    rounding = gap_rounding(case.K, case.C, solution.beta, optimum.objective)
    rel = 1e-9 + rounding * max(1.0, 1.0 / max(optimum.objective, 1e-300))
    assert solution.objective == pytest.approx(optimum.objective, rel=rel), where
    np.testing.assert_allclose(
        solution.decision_values, optimum.f, rtol=0, atol=1e-6, err_msg=where
    )
    np.testing.assert_allclose(
        solution.decision_values,
        case.K @ solution.beta + solution.intercept,
        rtol=0,
        atol=1e-9,
        err_msg=where,
    )
    low, high = solution.intercept_interval
    assert low <= solution.intercept <= high, where
    assert low == pytest.approx(optimum.b_low, abs=1e-6), where
    assert high == pytest.approx(optimum.b_high, abs=1e-6), where


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    case = DEGENERATE[name]
    assert_solved(case, solve_svc(Problem(*case)))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", PENALTIES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_random_problems(kernel, C, fit_intercept):
    rng = np.random.default_rng([len(kernel), int(1e3 * C), fit_intercept])
    for k in range(15):
        case = random_case(rng, kernel=kernel, C=C, fit_intercept=fit_intercept)
        assert_solved(case, solve_svc(Problem(*case)), f"problem {k}")


@pytest.mark.parametrize("n", [100, 300])
@pytest.mark.parametrize("kernel", KERNELS)
def test_larger_problems(kernel, n):
    rng = np.random.default_rng([len(kernel), n])
    for C in (0.01, 1.0, 100.0, 1e4):
        case = random_case(rng, n=n, kernel=kernel, C=C)
        assert_solved(case, solve_svc(Problem(*case)), f"C={C}")


def test_against_libsvm():
    rng = np.random.default_rng(0)
    for k in range(60):
        case = random_case(rng, C=10 ** rng.uniform(-3, 1), fit_intercept=True)
        solution = solve_svc(Problem(*case))
        beta, b, f, converged = svc_libsvm(*case)
        if not converged:
            continue
        # LIBSVM keeps kernel values in single precision: 6e-8 of each term.
        atol = 1e-6 + 1e-6 * (np.abs(case.K) @ np.abs(beta)).max()
        low, high = solution.intercept_interval
        np.testing.assert_allclose(
            f - b, case.K @ solution.beta, rtol=0, atol=atol, err_msg=f"problem {k}"
        )
        assert low - atol <= b <= high + atol


def test_start_from_any_feasible_point():
    rng = np.random.default_rng(1)
    for k in range(40):
        case = random_case(rng)
        cold = solve_svc(Problem(*case))
        start = case.y * feasible_point(rng, case)
        before = start.copy()
        warm = solve_svc(Problem(*case), start=start)
        np.testing.assert_array_equal(start, before)
        assert_solved(case, warm, f"problem {k}")
        again = solve_svc(Problem(*case), start=cold.beta)
        np.testing.assert_allclose(
            again.decision_values, cold.decision_values, rtol=0, atol=1e-7
        )


def feasible_point(rng, case):
    """alpha inside its box and, with an intercept, balanced between the classes."""
    alpha = rng.uniform(0, 1, len(case.y)) * case.C
    if case.fit_intercept:
        positive = case.y > 0
        totals = alpha[positive].sum(), alpha[~positive].sum()
        alpha[positive] *= min(totals) / totals[0]
        alpha[~positive] *= min(totals) / totals[1]
    return alpha


def test_scaling_permutation_and_label_flip_change_nothing():
    rng = np.random.default_rng(2)
    for _ in range(20):
        case = random_case(rng, max_n=30)
        f = solve_svc(Problem(*case)).decision_values
        order = rng.permutation(len(case.y))
        K = case.K[np.ix_(order, order)]
        permuted = Case(K, case.y[order], case.C[order], case.fit_intercept)
        flipped = case._replace(y=-case.y)
        scaled = case._replace(K=7.0 * case.K, C=case.C / 7.0)
        for other, wanted in ((permuted, f[order]), (flipped, -f), (scaled, f)):
            values = solve_svc(Problem(*other)).decision_values
            np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-7)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_many_random_problems(seed):
    rng = np.random.default_rng([seed, 99])
    for k in range(1000):
        case = random_case(rng)
        assert_solved(case, solve_svc(Problem(*case)), f"seed {seed} problem {k}")


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_many_larger_problems(seed):
    rng = np.random.default_rng([seed, 77])
    for k in range(60):
        case = random_case(rng, max_n=300)
        assert_solved(case, solve_svc(Problem(*case)), f"seed {seed} problem {k}")
