# SPDX-License-Identifier: BSD-3-Clause
"""Screened coefficients are those of an interior point in every left-out machine."""

import numpy as np
import pytest
from datasets import lambda_from_penalty, penalty_from_lambda
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.binary import svc_clarabel
from oracles.problems import random_case

from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.loo._leave_out import solve_path
from leaveout.methods._consolidated import (
    Screened,
    Solved,
    _common_bias,
    screen_along_path,
    screen_at_same_C,
)
from leaveout.methods._left_out_interval import (
    left_out_radii,
    loo_interval_from_solution,
)


def left_out_optima(problem):
    """(row, rest, optimum) of every left-out machine with two classes."""
    for r in range(problem.n_samples):
        rest = np.delete(np.arange(problem.n_samples), r)
        if problem.fit_intercept and np.unique(problem.y[rest]).size < 2:
            continue
        K = problem.K[np.ix_(rest, rest)]
        yield (
            r,
            rest,
            svc_clarabel(K, problem.y[rest], problem.C[rest], problem.fit_intercept),
        )


def solve_all(problem, solution):
    """The left-out machines by clarabel, as the path rule remembers them."""
    rows, betas = [], []
    for r, rest, truth in left_out_optima(problem):
        rows.append(r)
        betas.append(np.zeros(problem.n_samples))
        betas[-1][rest] = truth.beta
    beta = np.array(betas).reshape(-1, problem.n_samples)
    rows = np.array(rows, dtype=np.intp)
    return Solved.of(problem, solution, rows, beta, beta @ problem.K)


def assert_exact(problem, screened, where):
    """Return how many coefficients were known; each is right in every machine."""
    for r, rest, truth in left_out_optima(problem):
        alpha, C = truth.alpha, problem.C[rest]
        bounded, outside = screened.bounded[rest], screened.outside[rest]
        np.testing.assert_allclose(
            alpha[bounded], C[bounded], rtol=1e-6, err_msg=f"{where}, without {r}"
        )
        assert (alpha[outside] <= 1e-6 * C[outside]).all(), f"{where}, without {r}"
    return int((screened.bounded | screened.outside).sum())


def not_alone(problem, rows):
    """Samples whose class does not vanish with them."""
    counts = {sign: np.sum(problem.y == sign) for sign in (-1.0, 1.0)}
    if not problem.fit_intercept:
        return rows
    return rows[[counts[problem.y[r]] > 1 for r in rows]]


@pytest.mark.parametrize("bias", [True, False])
def test_same_C_is_exact(bias):  # noqa: N802
    rng = np.random.default_rng(21)
    known = 0
    for k in range(15):
        case = random_case(
            rng, max_n=20, C=10 ** rng.uniform(-3, 1), fit_intercept=bias
        )
        problem = Problem(*case)
        solution = solve_svc(problem)
        rows = not_alone(problem, np.flatnonzero(solution.beta))
        screened = screen_at_same_C(problem, solution, rows)
        known += assert_exact(problem, screened, f"problem {k}")
    assert known > 30


@pytest.mark.parametrize("bias", [True, False])
def test_path_is_exact(bias):
    rng = np.random.default_rng(22)
    known = 0
    for k in range(12):
        case = random_case(rng, max_n=16, C=1.0, fit_intercept=bias)
        ratio = 10 ** rng.uniform(0.05, 0.4)
        first = 10 ** rng.uniform(-3, 0)
        before = None
        steps = solve_path(Problem(*case), first * np.array([1, ratio]))
        for problem, solution in steps:
            screened = screen_along_path(problem, before)
            if before is None:
                assert not (screened.bounded | screened.outside).any()
            else:
                known += assert_exact(problem, screened, f"problem {k}")
            before = solve_all(problem, solution)
    assert known > 8


def test_path_needs_boxes_that_grew_by_one_factor(rng):
    case = random_case(rng, n=12, kernel="rbf", C=1e-3, fit_intercept=False)
    problem = Problem(*case)
    before = solve_all(problem, solve_svc(problem))
    larger = Problem(problem.K, problem.y, problem.C * 1.1, False)
    assert screen_along_path(larger, before).bounded.any()
    uneven = problem.C * np.where(np.arange(12) < 6, 1.1, 1.2)
    other = Problem(problem.K, problem.y, uneven, False)
    assert not screen_along_path(other, before).bounded.any()


def test_nobody_is_screened_but_the_absent(rng):
    case = random_case(rng, n=8)
    C = case.C.copy()
    C[3] = 0.0
    screened = Screened.nobody(Problem(case.K, case.y, C))
    assert screened.outside.tolist() == [i == 3 for i in range(8)]
    assert screened.kept.tolist() == [0, 1, 2, 4, 5, 6, 7]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_common_bias_is_what_the_bisection_finds(seed):
    """Lemma 3.2: psi+(b) < 0 above the one end, psi-(b) > 0 below the other."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    low = rng.normal(size=n)
    high = low + rng.uniform(0, 1, n)

    def psi(b, sign):
        first = y * b + high < 1
        rest = ~(first | (y * b + low > 1))
        return y[first].sum() + sign * (1 + np.sum(rest & (y == sign)))

    ends = _common_bias(y, np.ones(n), low, high)
    for end, sign in zip(ends, (-1.0, 1.0), strict=True):
        if np.isfinite(end):
            assert sign * psi(end + sign * 1e-9, sign) < 0
            assert sign * psi(end - sign * 1e-9, sign) >= 0
        else:
            assert np.sum(y == -sign) < 2
            assert sign * psi(sign * 1e6, sign) >= 0


def test_radii_are_those_of_the_interval_of_one_sample():
    rng = np.random.default_rng(23)
    for _ in range(20):
        case = random_case(rng, fit_intercept=True)
        problem = Problem(*case)
        solution = solve_svc(problem)
        rows = not_alone(problem, np.flatnonzero(solution.beta))
        _, low, high = left_out_radii(problem, solution, rows, rounds=5)
        for k, r in enumerate(rows):
            ends = loo_interval_from_solution(problem, solution, int(r))
            wanted = sorted(case.y[r] * np.array(ends))
            np.testing.assert_allclose([low[k], high[k]], wanted, rtol=1e-9, atol=1e-9)


def test_lambda_and_C():  # noqa: N802
    lambdas = np.exp(np.linspace(6, -6, 7))
    Cs = penalty_from_lambda(lambdas, 40)
    np.testing.assert_allclose(Cs, 1 / (80 * lambdas))
    np.testing.assert_allclose(lambda_from_penalty(Cs, 40), lambdas)
