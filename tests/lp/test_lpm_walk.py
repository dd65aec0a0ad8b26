# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of the LPM against linear programs from scratch."""

import numpy as np
import pytest
from oracles.problems import DEGENERATE, random_case
from oracles.programs import lpm_loo_ranges
from solved import loo_lpm_refit, loo_lpm_walk

from leaveout.engine._problem import REFIT, SETTLED_BY, Problem
from leaveout.lp import _lpm_walk as _lpm
from leaveout.lp._lpm import design_matrix, solve_lpm
from leaveout.lp._lpm_walk import build_lpm_tableau

# The oracle's optima cost up to a share of 1e-9 more than the smallest: that widens
# its ranges, the more the larger C is; a second optimum shows by more than that.
NARROW, WIDE = 1e-6, 2e-2
LARGE_C = ["integer_grid_large_C", "line_large_C", "hard_margin_linear"]


def assert_equal_ranges(loo, ranges, rows=slice(None)):
    """Ours is inside the oracle's, and as wide."""
    low, high = ranges.T
    lower, upper = loo.lower[rows], loo.upper[rows]
    unit = 1 + np.abs(np.where(np.isfinite(low), low, high))
    with np.errstate(invalid="ignore"):
        below, above = (low - lower) / unit, (upper - high) / unit
    for beyond, ours, truth in ((below, lower, low), (above, upper, high)):
        same = ours == truth  # infinite ends
        assert (same | (beyond <= NARROW)).all()
        assert (same | (beyond >= -WIDE)).all()


@pytest.mark.parametrize("name", sorted(set(DEGENERATE) - set(LARGE_C)))
def test_degenerate(name):
    case = DEGENERATE[name]
    loo = loo_lpm_walk(Problem(*case))
    assert loo.certified.all()
    assert loo.counts["refits"] == 0
    assert_equal_ranges(loo, lpm_loo_ranges(*case))


@pytest.mark.parametrize("name", LARGE_C)
def test_large_box_equals_refits(name):
    case = DEGENERATE[name]
    walk, refit = loo_lpm_walk(Problem(*case)), loo_lpm_refit(Problem(*case))
    assert walk.certified.all()
    np.testing.assert_allclose(walk.lower, refit.lower, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(walk.upper, refit.upper, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_random(seed):
    rng = np.random.default_rng([21, seed])
    case = random_case(rng, max_n=25, C=10 ** (seed % 5 - 2.0))
    loo = loo_lpm_walk(Problem(*case))
    assert loo.certified.all()
    assert loo.counts["refits"] == 0
    rows = rng.permutation(len(case.y))[:8]
    assert_equal_ranges(loo, lpm_loo_ranges(*case, rows=rows), rows)


@pytest.mark.parametrize("seed", range(3))
def test_refits_equal_walks(seed):
    case = random_case(np.random.default_rng([22, seed]), max_n=30, C=3.0)
    walk, refit = loo_lpm_walk(Problem(*case)), loo_lpm_refit(Problem(*case))
    np.testing.assert_allclose(walk.lower, refit.lower, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(walk.upper, refit.upper, rtol=1e-7, atol=1e-7)
    assert refit.certified.all()
    assert SETTLED_BY[refit.settled_by.max()] in ("refit", "singleton")


def test_two_optima_without_a_sample_are_an_interval():
    """Without the last sample the classes weigh the same, and b is free in [-1, 1]."""
    case = np.eye(5), np.array([1.0, 1, -1, -1, 1]), np.full(5, 0.1), True
    loo = loo_lpm_walk(Problem(*case))
    assert (loo.lower[4], loo.upper[4]) == pytest.approx((-1.0, 1.0))
    assert loo.values[4] == pytest.approx(0.0)


def test_a_sample_without_box_gets_its_value_without_it():
    K, y, C, fit_intercept = random_case(np.random.default_rng(23), n=20, C=5.0)
    C[3] = 0.0
    loo = loo_lpm_walk(Problem(K, y, C, fit_intercept))
    assert SETTLED_BY[loo.settled_by[3]] == "untouched"
    assert_equal_ranges(loo, lpm_loo_ranges(K, y, C, fit_intercept))


def test_singular_basis_falls_back_to_refits(monkeypatch):
    case = random_case(np.random.default_rng(24), n=15, C=2.0)
    truth = loo_lpm_walk(Problem(*case))
    build = _lpm.build_lpm_tableau
    tries = []

    def fails_first(problem, basis):
        tries.append(1)
        return None if len(tries) == 1 else build(problem, basis)

    monkeypatch.setattr(_lpm, "build_lpm_tableau", fails_first)
    loo = loo_lpm_walk(Problem(*case))
    assert loo.counts["refits"] > 0
    assert (loo.settled_by == REFIT).any()
    np.testing.assert_allclose(loo.values, truth.values, atol=1e-8)


def test_short_of_room_a_walk_is_repeated(monkeypatch):
    problem = Problem(*random_case(np.random.default_rng(25), n=30, C=10.0))
    truth = loo_lpm_walk(problem)
    monkeypatch.setattr(_lpm, "CAPACITIES", (1, 1024))
    loo = loo_lpm_walk(problem)
    assert loo.counts["refits"] == 0
    np.testing.assert_array_equal(loo.lower, truth.lower)


def test_threads_change_nothing():
    problem = Problem(*random_case(np.random.default_rng(26), n=150, C=1.0))
    one, two = loo_lpm_walk(problem), loo_lpm_walk(problem, n_threads=2)
    np.testing.assert_array_equal(one.lower, two.lower)
    np.testing.assert_array_equal(one.upper, two.upper)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_tableau_says_what_the_design_matrix_says(fit_intercept):
    case = random_case(np.random.default_rng(27), n=25, C=4.0, kernel="rbf")
    problem = Problem(*case[:3], fit_intercept)
    tableau = build_lpm_tableau(problem, solve_lpm(problem).basis)
    G = design_matrix(problem)
    z = np.random.default_rng(0).normal(size=G.shape[1])
    quantities = np.concatenate([G @ z, z])
    np.testing.assert_allclose(
        tableau.T @ quantities[tableau.nonbasic], quantities[tableau.basic], atol=1e-8
    )
    slack = 1e-9
    rates = tableau.D
    assert (rates >= tableau.low[tableau.nonbasic] - slack).all()
    assert (rates <= tableau.high[tableau.nonbasic] + slack).all()


@pytest.mark.parametrize(("C", "tipped"), [(0.01, True), (10.0, False)])
def test_a_small_box_is_anti_learning(C, tipped):
    x = np.array([-3.0, -2.0, 2.0, 3.0])
    problem = Problem(np.outer(x, x), np.sign(x), np.full(4, C))
    loo = loo_lpm_walk(problem)
    assert (problem.y * loo.values < 0).all() == tipped
