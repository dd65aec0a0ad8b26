# SPDX-License-Identifier: BSD-3-Clause
"""Intervals that must contain the left-out value, against solved left-out problems."""

import numpy as np
import pytest
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, random_case

from leaveout.engine._problem import Problem
from leaveout.engine._solve import seed_without, solve_svc
from leaveout.methods._left_out_interval import (
    loo_interval_from_point,
    loo_interval_from_solution,
    loo_interval_in_ball,
)


def assert_contains(problem, r, interval, truth, where):
    """The interval of f contains the oracle's interval of the margin y f."""
    low, high = sorted(problem.y[r] * end for end in interval)
    slack = 1e-7 * max(1.0, abs(truth.value[r]))
    assert low <= truth.low[r] + slack, where
    # One side only if b is not unique: h' <= h holds for the smallest of h.
    assert high >= truth.low[r] - slack, where
    if truth.high[r] - truth.low[r] < 1e-9:
        assert high >= truth.high[r] - slack, where


def check_case(case, rng, where):
    problem = Problem(*case)
    solution = solve_svc(problem)
    truth = loo_intervals(*case)
    for r in range(problem.n_samples):
        interval = loo_interval_from_solution(problem, solution, r)
        assert_contains(problem, r, interval, truth, f"{where}, solution, row {r}")
        start = seed_without(problem, solution, np.array([r]))
        if problem.fit_intercept and abs(start.sum()) > 1e-9 * np.abs(start).sum():
            continue  # r is alone in its class: nothing feasible but zero
        interval = loo_interval_from_point(problem, start, r)
        assert_contains(problem, r, interval, truth, f"{where}, point, row {r}")


@pytest.mark.parametrize("seed", range(12))
def test_random_problems(seed):
    rng = np.random.default_rng(seed)
    for k in range(4):
        case = random_case(rng, max_n=20, C=10 ** rng.uniform(-3, 2))
        check_case(case, rng, f"problem {k}")


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name, rng):
    check_case(DEGENERATE[name], rng, name)


def test_decides_most_samples_at_small_boxes(rng):
    """A certificate that never decides would be valid too."""
    n = 60
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    problem = Problem(K, y, np.full(n, 0.1))
    solution = solve_svc(problem)
    intervals = [loo_interval_from_solution(problem, solution, r) for r in range(n)]
    decided = [low > 0 or high < 0 for low, high in intervals]
    assert np.mean(decided) > 0.8


def test_no_intercept_is_the_bound_of_jaakkola_and_haussler(rng):
    case = random_case(rng, n=15, fit_intercept=False)
    problem = Problem(*case)
    solution = solve_svc(problem)
    for r in range(15):
        low, high = loo_interval_from_solution(problem, solution, r)
        h = case.y[r] * solution.decision_values[r]
        ends = sorted([case.y[r] * low, case.y[r] * high])
        alpha = solution.alpha[r]
        assert ends == pytest.approx([h - alpha * case.K[r, r], h])


def test_larger_balls_give_larger_intervals(rng):
    case = random_case(rng, n=20, C=1.0, fit_intercept=True)
    problem = Problem(*case)
    g = case.K @ solve_svc(problem).beta
    ends = [loo_interval_in_ball(problem, 3, g, radius) for radius in (0.0, 0.1, 1.0)]
    assert (
        ends[2][0] <= ends[1][0] <= ends[0][0] <= ends[0][1] <= ends[1][1] <= ends[2][1]
    )
