# SPDX-License-Identifier: BSD-3-Clause
"""Values of all samples without each one, against problems solved without it."""

import numpy as np
import pytest
from oracles.binary import midpoint, svc_clarabel
from oracles.problems import gram

from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import Influence


def brute_force(problem, r):
    """Decision values of all rows by the clarabel optimum without row r."""
    rows = np.flatnonzero((problem.C > 0) & (np.arange(problem.n_samples) != r))
    K, y, C = problem.K[np.ix_(rows, rows)], problem.y[rows], problem.C[rows]
    fit = svc_clarabel(K, y, C, problem.fit_intercept)
    assert fit.kkt < 1e-9
    return problem.K[:, rows] @ fit.beta + midpoint(fit.b_low, fit.b_high)


def machine(seed, C, fit_intercept=True, absent=(), n=24, weighted=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=n) > 0, 1.0, -1.0)
    boxes = np.full(n, C) * (rng.uniform(0.5, 2.0, n) if weighted else 1.0)
    boxes[list(absent)] = 0.0
    return Problem(gram(X, "rbf"), y, boxes, fit_intercept)


def assert_as_brute_force(problem, **options):
    rows = np.arange(problem.n_samples)
    solution = solve_svc(problem)
    found = Influence(problem, solution, **options).values_without(rows)[0]
    wanted = np.array([brute_force(problem, r) for r in rows])
    np.testing.assert_allclose(found, wanted, atol=1e-7)
    return found - solution.decision_values


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
def test_all_values_equal_refits(C, fit_intercept):
    change = assert_as_brute_force(machine(1, C, fit_intercept))
    assert np.abs(change).max() > 1e-3


@pytest.mark.parametrize("method", ["walk", "refit"])
def test_rows_that_are_not_trained_on(method):
    problem = machine(2, 2.0, absent=(0, 5, 11))
    change = assert_as_brute_force(problem, method=method)
    assert not change[[0, 5, 11]].any()
    assert np.abs(change[:, [0, 5, 11]]).max() > 1e-3


def test_intercept_in_the_middle_of_its_interval():
    # Equal small boxes, one positive more: without it nobody is free (theory of b).
    x = np.random.default_rng(3).normal(size=(9, 2))
    y = np.array([1.0] * 5 + [-1.0] * 4)
    change = assert_as_brute_force(Problem(gram(x, "rbf"), y, np.full(9, 0.01)))
    assert np.abs(change[:5]).max() > 0.5


def test_one_class_is_left():
    x = np.random.default_rng(4).normal(size=(8, 2))
    y = np.array([1.0] + [-1.0] * 7)
    problem = Problem(gram(x, "rbf"), y, np.full(8, 1.0))
    assert_as_brute_force(problem)
    alone = Influence(problem, solve_svc(problem)).values_without(np.array([0]))[0]
    np.testing.assert_allclose(alone, -1.0)


def test_some_rows_twice_and_over_threads():
    problem = machine(5, 3.0, n=60)
    rows = np.array([7, 3, 7, 59])
    solution = solve_svc(problem)
    once, _ = Influence(problem, solution).values_without(np.arange(60))
    again = Influence(problem, solution, n_threads=2)
    for some in (rows, np.arange(60)):
        np.testing.assert_allclose(
            again.values_without(some)[0], once[some], atol=1e-10
        )
