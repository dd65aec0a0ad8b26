# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out for the SVM of Lee, Lin & Wahba against clarabel's refits."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.llw import certify_llw, degenerate_problem, llw_clarabel, random_problem
from solved import loo_llw_refit, loo_llw_walk

from leaveout.engine._problem import BOUNDED, OUTSIDE, SETTLED_BY
from leaveout.llw import _walk
from leaveout.llw._solve import LlwProblem, solve_llw
from leaveout.llw._walk import LlwWalker


def assert_equal(one, two, atol=0.0):
    for name in ("values", "lower", "upper"):
        found, wanted = getattr(one, name), getattr(two, name)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("seed", range(6))
def test_values_equal_clarabels_refits(seed):
    problem = random_problem(seed, n=18)
    found = loo_llw_walk(problem)
    Q, shown = problem.n_classes, [1] if problem.n_classes == 2 else slice(None)
    assert found.values.shape == (18, 1 if Q == 2 else Q)
    assert found.certified.all()
    assert_equal(found, loo_llw_refit(problem), atol=1e-6)
    values, lower, upper = found.values, found.lower, found.upper
    for r in range(18):
        truth = llw_clarabel(problem.without(r))
        h = (problem.K[r] @ truth.W + truth.b)[shown]
        assert (h >= lower[r] - 1e-4).all()
        assert (h <= upper[r] + 1e-4).all()
        if (upper[r] - lower[r]).max() < 1e-6:
            np.testing.assert_allclose(values[r], h, atol=1e-4)


def test_which_samples_are_walked_and_which_refitted(monkeypatch):
    problem = random_problem(4, Q=3, n=40)
    solution = solve_llw(problem)
    zero = ~solution.alpha.any(axis=1)
    assert zero.any()
    walked = loo_llw_walk(problem, solution=solution)
    assert walked.counts["walks"] == (~zero).sum()
    monkeypatch.setattr(LlwWalker, "_walk", lambda *_: None)
    refitted = loo_llw_walk(problem, solution=solution)
    for found, other in ((walked, "walk"), (refitted, "refit")):
        names = np.array(SETTLED_BY)[found.settled_by]
        assert (names == np.where(zero, "zero_alpha", other)).all()
    assert_equal(walked, refitted, atol=1e-7)
    monkeypatch.setattr(
        _walk, "solve_llw", lambda problem: replace(solve_llw(problem), converged=False)
    )
    assert (loo_llw_walk(problem, solution=solution).certified == zero).all()


def test_leaving_out_a_zero_multiplier_drops_its_constraint_on_b():
    x = np.array([0.0, 3.1, 0.2, 3.3, 0.4])
    K = np.exp(-(np.subtract.outer(x, x) ** 2) / 4)
    problem = LlwProblem(K, np.arange(5) % 2, np.full(5, 0.1), 2)
    solution = solve_llw(problem)
    zero = ~solution.alpha.any(axis=1)
    found = loo_llw_walk(problem, solution=solution)
    upper = (K @ solution.coef + solution.intercept_upper)[:, 1]
    assert (found.upper[zero, 0] > upper[zero] + 1).any()
    assert_equal(found, loo_llw_refit(problem), atol=1e-9)


def test_threads_and_memory_change_nothing(monkeypatch):
    """More columns than fit initially: memory grows."""
    problem = random_problem(9, Q=4, n=30)
    truth = loo_llw_walk(problem)
    assert_equal(loo_llw_walk(problem, n_threads=2), truth)
    monkeypatch.setattr(_walk, "ROOM", 1)
    assert_equal(loo_llw_walk(problem), truth)


def test_vanishing_class_and_absent_sample():
    problem = random_problem(0, Q=2, n=20, C=2.0).without(7)
    codes = np.where(np.arange(20) == 5, 2, problem.codes)
    found = loo_llw_walk(replace(problem, codes=codes, n_classes=3))
    two = llw_clarabel(problem.without(5))
    expected = problem.K[5] @ two.W + two.b
    assert found.values[5] == pytest.approx([*expected, -np.inf], abs=1e-5)
    assert SETTLED_BY[found.settled_by[5]] == "singleton"
    found = loo_llw_walk(problem)
    values = solve_llw(problem).decision_values
    assert found.values[7] == pytest.approx(values[7, 1:], abs=1e-9)
    assert SETTLED_BY[found.settled_by[7]] == "untouched"
    found = loo_llw_walk(replace(problem, codes=np.arange(20) // 19))
    assert found.values[19] == [-1.0]
    assert (found.lower[19, 0], found.upper[19, 0]) == (-np.inf, -1.0)


@pytest.mark.parametrize("make", [random_problem, degenerate_problem])
@pytest.mark.parametrize("seed", [*range(8), 21])
def test_every_end_is_optimal(make, seed):
    problem = make(seed)
    solution = solve_llw(problem)
    walker = LlwWalker(problem, solution)
    assert walker.ready
    rows = np.flatnonzero(solution.alpha.any(axis=1))
    found = list(walker.without_each(rows))
    assert sum(left is None for left in found) < rows.size / 2
    for r, left in zip(rows, found, strict=True):
        if left is None:
            continue
        assert (left.alpha[r] == 0).all()
        assert ((left.alpha >= 0) & (left.alpha <= problem.without(r).upper)).all()
        assert np.ptp(left.alpha.sum(axis=0)) <= 1e-9 * left.alpha.sum()
        own = certify_llw(problem.without(r), left.alpha, left.intercept)
        assert abs(own.gap) < 1e-8


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_classes_with_a_constant_output(C):
    """A slope of exactly 0 at every sample: its rounding error is not an event."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2, 3], [40, 40, 6, 6])
    X = rng.normal(size=(codes.size, 3)) + 2.0 * (codes == 0)[:, None]
    problem = LlwProblem(X @ X.T, codes, np.full(codes.size, C), 4)
    solution = solve_llw(problem)
    slope = solution.decision_values + 1 / 3
    assert (np.abs(slope).max(axis=0) < 1e-9).sum() == 2
    rows = np.flatnonzero(solution.alpha.any(axis=1))
    found = list(LlwWalker(problem, solution).without_each(rows))
    assert sum(left is None for left in found) <= 1
    for r, left in zip(rows, found, strict=True):
        if left is not None:
            assert left.n_iter < 100
            refit = solve_llw(problem.without(r))
            outputs = problem.K @ left.coef, problem.K @ refit.coef  # alpha: not unique
            np.testing.assert_allclose(*outputs, atol=1e-7)


def test_inaccurate_start_and_long_walk_are_refitted(monkeypatch):
    problem = random_problem(3, Q=4, n=30, C=5.0)
    solution = solve_llw(problem)
    truth = loo_llw_walk(problem, solution=solution)
    assert truth.counts["refits"] == 0
    state = solution.state.copy()
    state[tuple(np.argwhere(problem.open & (state == OUTSIDE))[0])] = BOUNDED
    wrong = loo_llw_walk(problem, solution=replace(solution, state=state))
    assert wrong.counts["walks"] == 0
    monkeypatch.setattr(_walk, "MAX_PIVOTS", 2)
    short = loo_llw_walk(problem, solution=solution)
    assert short.counts["refits"] > 0
    assert_equal(short, truth, atol=1e-7)
