# SPDX-License-Identifier: BSD-3-Clause
"""Methods "consolidated" and "magic" against the oracle, and their screening rules."""

from functools import partial

import numpy as np
import pytest
from datasets import penalty_from_lambda
from oracles.agreement import assert_intervals
from oracles.binary import loo_intervals, svc_clarabel
from oracles.problems import DEGENERATE, random_case
from solved import loo_consolidated, loo_magic, loo_walk

from leaveout.data import make_mixture
from leaveout.engine._problem import REFIT, Problem
from leaveout.engine._solve import solve_svc
from leaveout.kernel._gram import gram_matrix
from leaveout.loo._leave_out import FAMILIES, solve_path
from leaveout.methods import _consolidated, _smoothing
from leaveout.methods._consolidated import (
    PathMemory,
    Solved,
    screen_along_path,
    screen_at_same_C,
)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    case = DEGENERATE[name]
    truth = loo_intervals(*case)
    for method in (loo_consolidated, loo_magic):
        loo = method(Problem(*case))
        assert_intervals(loo, case.y, truth)
        assert loo.certified.all()


@pytest.mark.parametrize("bias", [True, False])
def test_simulation_of_the_paper_needs_no_refit(bias):
    """Every tenth lambda: the values equal the walk's, all proved, none refitted."""
    X, labels = make_mixture(120, 20, random_state=0)
    K = gram_matrix(X, kernel="rbf", gamma=0.5 / 20 / 9)
    Cs = penalty_from_lambda(np.exp(np.linspace(6, -6, 50)), 120)
    path = partial(loo_consolidated, rule="path", memory=PathMemory())
    ways = {"magic": loo_magic, "same_C": loo_consolidated, "path": path}
    screened = {name: [] for name in ways}
    problem = Problem(K, 2.0 * labels - 1.0, np.ones(120), bias)
    for at, solution in solve_path(FAMILIES["svc"], problem, Cs[::10]):
        walk = loo_walk(at, solution=solution)
        for name, loo in ways.items():
            found = loo(at, solution=solution)
            np.testing.assert_allclose(found.lower, walk.lower, atol=1e-9)
            np.testing.assert_allclose(found.upper, walk.upper, atol=1e-9)
            assert found.certified.all()
            assert found.counts["refits"] == 0
            screened[name].append(found.counts["screened"])
    assert max(screened["magic"]) == screened["path"][0] == 0 < screened["same_C"][0]
    # Without an intercept, screening finds every coefficient if C is small.
    assert bias or screened["same_C"][0] == screened["path"][1] == 120


@pytest.mark.parametrize("broken", ["smoothing", "screening"])
def test_unproved_folds_are_refitted_and_counted(broken, monkeypatch, rng):
    """Folds that smoothing does not solve, and a rule that screens wrongly."""
    case = random_case(rng, n=30, kernel="rbf", C=1.0, fit_intercept=True)
    problem = Problem(*case)

    def screen_wrongly(problem, solution, rows):
        screened = screen_at_same_C(problem, solution, rows)
        screened.bounded[solution.free] = True
        return screened

    if broken == "smoothing":
        monkeypatch.setattr(_smoothing, "TAUS", ())
    else:
        monkeypatch.setattr(_consolidated, "screen_at_same_C", screen_wrongly)
    loo = loo_consolidated(problem)
    np.testing.assert_allclose(loo.values, loo_walk(problem).values, atol=1e-9)
    assert loo.counts["refits"] == np.sum(loo.settled_by == REFIT) > 0
    assert loo.certified.all()


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
    return Solved.of(problem, solution, rows, beta, beta @ problem.K)


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
