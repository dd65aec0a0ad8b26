# SPDX-License-Identifier: BSD-3-Clause
"""The shared tableau, the exchange of sets, and the proof on all samples."""

import numpy as np
import pytest
from oracles.binary import svc_clarabel
from oracles.problems import gram

from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc, solve_without
from leaveout.methods._exchange import solve_exactly, tableaus
from leaveout.methods._proof import Prover
from leaveout.methods._screening import Screened, screen_at_same_C
from leaveout.methods._smoothing import FoldProblems


@pytest.fixture(params=[True, False], ids=["intercept", "no_intercept"])
def solved(request):
    """A problem with many samples on the margin, and its solution."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=40) > 0, 1.0, -1.0)
    problem = Problem(gram(X, "rbf"), y, rng.choice([0.5, 1.0], 40), request.param)
    return problem, solve_svc(problem)


def refit_all(problem, solution, rows):
    """Return the coefficients without each row, from refits."""
    folds = [
        solve_without(problem, solution, rows[k : k + 1]) for k in range(len(rows))
    ]
    return np.array([fold.beta for fold in folds])


def test_tableau_has_the_derivatives_of_a_smaller_bound(solved):
    """Lowering alpha_j by a little changes f and eta as the first order says."""
    problem, solution = solved
    rows, share = np.flatnonzero(solution.beta), 1e-5
    ((_, tableau),) = tableaus(problem, solution, rows)
    change = tableau.first_order(rows)
    for r, predicted in zip(rows, change, strict=True):
        C = problem.C.copy()
        C[r] = (1.0 - share) * solution.alpha[r]
        truth = svc_clarabel(problem.K, problem.y, C, problem.fit_intercept)
        f = truth.g + (truth.b if problem.fit_intercept else 0.0)
        moved = np.where(solution.free, truth.beta - solution.beta, f - tableau.f)
        others = np.arange(40) != r
        np.testing.assert_allclose(moved[others], share * predicted[others], atol=2e-8)


def test_exchange_from_the_sets_of_the_full_solution(solved):
    """Without a prediction, the coefficients still equal those of refits."""
    problem, solution = solved
    rows = np.flatnonzero(solution.beta)
    k, zeros = np.arange(rows.size), np.zeros((rows.size, 40))
    C = np.tile(problem.C, (k.size, 1))
    C[k, rows] = 0.0
    y, bias = problem.y, problem.fit_intercept
    folds = FoldProblems(problem.K, y, C, zeros, np.zeros(k.size), bias)
    ((_, tableau),) = tableaus(problem, solution, rows)
    eta = solve_exactly(tableau, folds, zeros, zeros, zeros)
    np.testing.assert_allclose(eta, refit_all(problem, solution, rows), atol=1e-8)


def test_proof_rejects_coefficients_that_are_not_optimal(solved):
    problem, solution = solved
    rows = np.flatnonzero(solution.beta)
    beta = refit_all(problem, solution, rows)
    prove = Prover(problem, Screened.nothing(problem)).prove
    proof = prove(rows, beta, everywhere=True)
    assert proof.optimal.all()
    np.testing.assert_allclose(proof.values, beta @ problem.K, atol=1e-12)
    np.testing.assert_allclose(
        proof.norms**2, ((beta @ problem.K) * beta).sum(axis=1), rtol=1e-9
    )
    free = (np.abs(beta) > 1e-3) & (np.abs(beta) < problem.C - 1e-3)
    for i in range(rows.size):
        two = np.flatnonzero(free[i])[:2]
        moved = beta.copy()
        moved[i, two] += [1e-7, -1e-7]  # feasible
        assert (prove(rows, moved).optimal == (np.arange(rows.size) != i)).all()


def test_proof_covers_screened_samples(solved):
    """Same result as without screening; a wrongly screened sample is noticed."""
    problem, solution = solved
    C = (0.1 if problem.fit_intercept else 0.5) * problem.C
    problem = Problem(problem.K, problem.y, C, problem.fit_intercept)
    solution = solve_svc(problem)
    rows = np.flatnonzero(solution.beta)
    beta = refit_all(problem, solution, rows)
    screened = screen_at_same_C(problem, solution, rows)
    assert 0 < screened.kept.size < 40
    full = Prover(problem, Screened.nothing(problem)).prove(rows, beta)
    part = Prover(problem, screened).prove(rows, beta[:, screened.kept])
    assert part.optimal.all()
    for name in ("own", "low", "high", "norms"):
        np.testing.assert_allclose(getattr(part, name), getattr(full, name), atol=1e-10)
    wrong = screened.bounded.copy()
    wrong[np.flatnonzero(screened.bounded)[0]] = False
    swapped = Screened(wrong, screened.outside | (screened.bounded & ~wrong))
    bad = Prover(problem, swapped).prove(rows, beta[:, screened.kept])
    changed = np.flatnonzero(screened.bounded & ~wrong)[0]
    assert not bad.optimal[rows != changed].any()
