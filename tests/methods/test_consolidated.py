# SPDX-License-Identifier: BSD-3-Clause
"""Methods "consolidated" and "magic" against the oracle, and their screening rules."""

from functools import partial

import numpy as np
import pytest
from datasets import penalty_from_lambda
from oracles.agreement import assert_intervals, decided
from oracles.binary import loo_intervals, svc_clarabel
from oracles.problems import DEGENERATE, gram, random_case
from solved import (
    loo_consolidated,
    loo_magic,
    loo_refit,
    loo_walk,
    solve_path,
)

import leaveout as lo
from leaveout.data import make_mixture
from leaveout.engine._problem import REFIT, Problem
from leaveout.engine._solve import solve_svc
from leaveout.kernel._gram import gram_matrix
from leaveout.methods import _exchange, _screening
from leaveout.methods._screening import (
    PathMemory,
    Solved,
    screen_along_path,
    screen_at_same_C,
)

SAME_C = partial(loo_consolidated, rule="same_C")


@pytest.fixture(params=[1.5, 0.0])
def first_order_on_small_problems(request, monkeypatch):
    """Screen in small problems, too; with reach 0 as many samples as possible."""
    monkeypatch.setattr(_screening, "FEW", 0)
    monkeypatch.setattr(_screening, "MOST", 1.0)
    monkeypatch.setattr(_screening, "REACH", request.param)


@pytest.mark.usefixtures("first_order_on_small_problems")
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    case = DEGENERATE[name]
    truth = loo_intervals(*case)
    for method in (loo_consolidated, SAME_C, loo_magic):
        loo = method(Problem(*case))
        assert_intervals(loo, case.y, truth)
        assert loo.certified.all()


@pytest.mark.usefixtures("first_order_on_small_problems")
@pytest.mark.parametrize("bias", [True, False])
def test_random_problems(bias):
    """Values equal those of n refits; labels equal those of an interior point."""
    rng, screened = np.random.default_rng(31), 0.0
    for _ in range(12):
        case = random_case(rng, max_n=24, fit_intercept=bias)
        problem = Problem(*case)
        truth, refit = loo_intervals(*case), loo_refit(problem)
        correct, error = decided(truth)
        for method in (loo_consolidated, SAME_C, loo_magic):
            loo = method(problem)
            np.testing.assert_allclose(loo.lower, refit.lower, rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(loo.upper, refit.upper, rtol=1e-7, atol=1e-7)
            assert (case.y * loo.values > 0)[correct].all()
            assert (case.y * loo.values < 0)[error].all()
            screened += loo.counts["screened"] * (method is loo_consolidated)
    assert screened > 5


@pytest.mark.parametrize("bias", [True, False])
def test_simulation_of_the_paper_needs_no_refit(bias):
    """Every tenth lambda: the values equal the walk's, all proved, none refitted."""
    X, labels = make_mixture(120, 20, random_state=0)
    K = gram_matrix(X, kernel="rbf", gamma=0.5 / 20 / 9)
    Cs = penalty_from_lambda(np.exp(np.linspace(6, -6, 50)), 120)
    path = partial(loo_consolidated, rule="path", memory=PathMemory())
    ways = {"magic": loo_magic, "first": loo_consolidated, "same_C": SAME_C}
    ways["path"] = path
    screened = {name: [] for name in ways}
    problem = Problem(K, 2.0 * labels - 1.0, np.ones(120), bias)
    for at, solution in solve_path(problem, Cs[::10]):
        walk = loo_walk(at, solution=solution)
        for name, loo in ways.items():
            found = loo(at, solution=solution)
            np.testing.assert_allclose(found.lower, walk.lower, atol=1e-9)
            np.testing.assert_allclose(found.upper, walk.upper, atol=1e-9)
            assert found.certified.all()
            assert found.counts["refits"] == 0
            screened[name].append(found.counts["screened"])
    assert max(screened["magic"]) == screened["path"][0] == 0 < screened["same_C"][0]
    assert sum(screened["same_C"]) < sum(screened["first"])
    # Without an intercept, screening finds every coefficient if C is small.
    assert bias or screened["same_C"][0] == screened["path"][1] == 120


def mixture(n, C, bias=True):
    """Return a problem in which many samples change their set."""
    X, labels = make_mixture(n, 20, random_state=1)
    K = gram_matrix(X, kernel="rbf", gamma=0.5 / 20 / 9)
    return Problem(K, 2.0 * labels - 1.0, np.full(n, C), bias)


@pytest.mark.parametrize("bias", [True, False])
def test_folds_screened_wrongly_are_refitted(bias, monkeypatch):
    """A rule that keeps the margin only is wrong in most folds: the proof notices."""
    problem = mixture(100, 2.0, bias)
    monkeypatch.setattr(_screening, "REACH", 0.0)
    loo = loo_consolidated(problem)
    assert loo.counts["screened"] > 20
    assert loo.counts["refits"] > 0
    np.testing.assert_allclose(loo.values, loo_walk(problem).values, atol=1e-9)
    assert loo.certified.all()


def test_folds_that_exchanges_do_not_solve_are_refitted(rng):
    """The kernel has rank 3, so samples must join and leave the margin in pairs."""
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=80) > 0, 1.0, -1.0)
    problem = Problem(X @ X.T, y, np.full(80, 10.0))
    for method in (loo_consolidated, loo_magic):
        loo = method(problem)
        assert loo.counts["refits"] == np.sum(loo.settled_by == REFIT) > 0
        np.testing.assert_allclose(loo.values, loo_walk(problem).values, atol=1e-8)
        assert loo.certified.all()


def test_near_duplicates_need_single_exchanges(monkeypatch):
    """Clusters that move together overshoot; the second attempt solves them."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(12, 3)), 10, axis=0)
    X += 0.03 * rng.normal(size=X.shape)
    y = rng.choice([-1.0, 1.0], size=120)
    problem = Problem(gram(X, "rbf"), y, np.full(120, 0.03))
    loo = loo_magic(problem)
    assert loo.counts["refits"] == 0
    np.testing.assert_allclose(loo.values, loo_walk(problem).values, atol=1e-9)
    monkeypatch.setattr(_exchange, "SECOND", (0, 0))
    assert loo_magic(problem).counts["refits"] > 50


def test_rule_is_checked():
    with pytest.raises(ValueError, match="'first_order', 'same_C', 'path'; got 'no'"):
        loo_consolidated(mixture(20, 1.0), rule="no")


def left_out_optima(problem):
    """Yield (row, rest, optimum) of every fold with two classes."""
    for r in range(problem.n_samples):
        rest = np.delete(np.arange(problem.n_samples), r)
        y, C, K = problem.y[rest], problem.C[rest], problem.K[np.ix_(rest, rest)]
        if not problem.fit_intercept or np.unique(y).size == 2:
            yield r, rest, svc_clarabel(K, y, C, problem.fit_intercept)


def solve_all(problem, solution):
    """Solve the folds by clarabel, in the form that the path rule uses."""
    rows, beta = [], np.zeros((problem.n_samples, problem.n_samples))
    for r, rest, truth in left_out_optima(problem):
        rows.append(r)
        beta[r, rest] = truth.beta
    rows, beta = np.array(rows, dtype=np.intp), beta[rows]
    values = beta @ problem.K
    norms = np.sqrt(np.maximum((beta * values).sum(axis=1), 0.0))
    return Solved.of(problem, solution, rows, values, norms)


def count_screened(problem, screened, where):
    """Return how many coefficients were screened; check each in every fold."""
    for r, rest, truth in left_out_optima(problem):
        alpha, C = truth.alpha, problem.C[rest]
        bounded, outside = screened.bounded[rest], screened.outside[rest]
        assert alpha[bounded] == pytest.approx(C[bounded], rel=1e-6), (where, r)
        assert (alpha[outside] <= 1e-6 * C[outside]).all(), (where, r)
    return int((screened.bounded | screened.outside).sum())


@pytest.mark.parametrize("bias", [True, False])
def test_same_C_is_exact(bias):  # noqa: N802
    rng, known = np.random.default_rng(21), 0
    for k in range(10):
        C = 10 ** rng.uniform(-3, 1)
        problem = Problem(*random_case(rng, max_n=20, C=C, fit_intercept=bias))
        solution, y = solve_svc(problem), problem.y
        not_alone = not bias or (y[:, None] == y).sum(axis=1) > 1
        rows = np.flatnonzero((solution.beta != 0.0) & not_alone)
        screened = screen_at_same_C(problem, solution, rows)
        known += count_screened(problem, screened, f"problem {k}")
    assert known > 20


@pytest.mark.parametrize("bias", [True, False])
def test_path_is_exact(bias):
    rng, known = np.random.default_rng(22), 0
    for k in range(12):
        C = 10 ** rng.uniform(-2, 0.5)
        case = random_case(rng, max_n=16, C=C, fit_intercept=bias)
        problem, ratio = Problem(*case), 10 ** rng.uniform(0.05, 0.4)
        assert not screen_along_path(problem, None).bounded.any()
        before = solve_all(problem, solve_svc(problem))
        larger = Problem(problem.K, case.y, ratio * case.C, bias)
        screened = screen_along_path(larger, before)
        known += count_screened(larger, screened, f"problem {k}")
        uneven = np.where(np.arange(len(case.y)) < 1, 1.1, 1.2) * case.C
        other = Problem(problem.K, case.y, uneven, bias)
        assert not screen_along_path(other, before).bounded.any()
    assert known > 8


@pytest.mark.parametrize("method", ["consolidated", "magic"])
def test_coefficients_next_to_a_large_bound_prove_nothing(method):
    """Three equal samples against three: f = 0, but sum(beta) K hardly notices."""
    y = np.array([1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    svc = lo.SVC(C=10511916.87519137, kernel="precomputed", fit_intercept=False)
    found = lo.leave_one_out(svc, np.full((7, 7), 86.0), y, method=method)
    np.testing.assert_array_equal(found.ambiguous, y > 0)
    np.testing.assert_allclose(found.decision_values, y < 0, atol=1e-6)


@pytest.mark.parametrize("method", ["consolidated", "magic"])
def test_sums_of_large_coefficients_are_zero(method):
    """Leaving out sample 1 balances the bounds: no sample is free, b is an interval."""
    y, weights = np.array([1.0, -1.0, 1.0, -1.0, -1.0]), np.array([1.0, 1, 2, 1, 2])
    svc = lo.SVC(C=4969299.008448621, kernel="precomputed")
    found = lo.leave_one_out(
        svc, np.full((5, 5), 198.0), y, sample_weight=weights, method=method
    )
    np.testing.assert_array_equal(found.ambiguous, [False, True, False, True, False])
