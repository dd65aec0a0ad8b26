# SPDX-License-Identifier: BSD-3-Clause
"""Intervals that must contain the left-out value, against solved left-out problems."""

import numpy as np
import pytest
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, random_case

from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.methods._left_out_interval import (
    left_out_radii,
    loo_interval_from_solution,
    loo_interval_in_ball,
)


def check_case(case, where):
    """Each interval contains the oracle's; the batch of them is the same."""
    problem, truth = Problem(*case), loo_intervals(*case)
    solution = solve_svc(problem)
    found = [
        loo_interval_from_solution(problem, solution, r)
        for r in range(problem.n_samples)
    ]
    margins = np.sort(case.y[:, None] * found, axis=1)
    slack = 1e-7 * np.maximum(1.0, np.abs(truth.value))
    assert (margins[:, 0] <= truth.low + slack).all(), where
    # One side only if b is not unique: h' <= h holds for the smallest of h.
    unique = truth.high - truth.low < 1e-9
    wanted = np.where(unique, truth.high, truth.low)
    assert (margins[:, 1] >= wanted - slack).all(), where
    if case.fit_intercept:
        n_own = np.where(case.y > 0, (case.y > 0).sum(), (case.y < 0).sum())
        rows = np.flatnonzero((solution.beta != 0.0) & (n_own > 1))
        _, *ends = left_out_radii(problem, solution, rows, rounds=5)
        np.testing.assert_allclose(np.array(ends).T, margins[rows], 1e-9, 1e-9, True)


@pytest.mark.parametrize("seed", range(3))
def test_random_problems(seed):
    rng = np.random.default_rng(seed)
    for k in range(6):
        case = random_case(rng, max_n=20, C=10 ** rng.uniform(-3, 2))
        check_case(case, f"problem {k}")


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    check_case(DEGENERATE[name], name)


def test_decides_most_samples_at_small_C(rng):  # noqa: N802
    """An interval that never excludes zero would be valid too."""
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
        ends = loo_interval_from_solution(problem, solution, r)
        h = case.y[r] * solution.decision_values[r]
        wanted = [h - solution.alpha[r] * case.K[r, r], h]
        assert sorted(case.y[r] * np.array(ends)) == pytest.approx(wanted)


def test_larger_balls_give_larger_intervals(rng):
    case = random_case(rng, n=20, C=1.0, fit_intercept=True)
    problem = Problem(*case)
    g = case.K @ solve_svc(problem).beta
    a, b, c = (loo_interval_in_ball(problem, 3, g, radius) for radius in (0, 0.1, 1))
    assert c[0] <= b[0] <= a[0] <= a[1] <= b[1] <= c[1]
