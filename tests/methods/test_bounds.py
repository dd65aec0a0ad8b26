# SPDX-License-Identifier: BSD-3-Clause
"""Bounds hold; estimates can fail."""

import numpy as np
import pytest
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, random_case
from scipy.optimize import minimize
from solved import loo_walk, wrong_and_ambiguous

from leaveout.assess._bounds import tabulate_bounds
from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.methods import _bounds
from leaveout.methods._bounds import (
    bound_gacv,
    bound_sv_count,
    bound_xi_alpha,
    enclosing_radius_squared,
    solve_l2_svm,
    span_squared,
)


def assert_bounds_hold(problem, wrong, ambiguous):
    """A weak bound covers the wrong samples, a bound also the ambiguous ones."""
    for row in tabulate_bounds(problem, solve_svc(problem)).rows:
        if row.kind == "estimate" or row.name == "radius-margin L2":
            continue
        covered = wrong if row.kind == "weak bound" else wrong | ambiguous
        assert row.value >= covered.mean() - 1e-12, row
        assert row.lower <= wrong.mean() + 1e-12, row


@pytest.mark.parametrize("name", DEGENERATE)
def test_bounds_hold_on_degenerate_problems(name):
    case = DEGENERATE[name]
    truth = loo_intervals(*case)
    near = (np.abs(truth.low) < 1e-8) | (np.abs(truth.high) < 1e-8)
    wrong = truth.error & ~near
    assert_bounds_hold(Problem(*case), wrong, truth.ambiguous | (near & ~wrong))


def test_bounds_hold_on_random_problems():
    """Radius-margin L2 bounds the error of the L2-SVM."""
    rng = np.random.default_rng(30)
    for _ in range(40):
        problem = Problem(*random_case(rng, max_n=30))
        assert_bounds_hold(problem, *wrong_and_ambiguous(problem, loo_walk(problem)))
        hard, optimum = solve_l2_svm(problem)
        assert optimum.converged
        assert (optimum.alpha < hard.C).all()
        wrong, ambiguous = wrong_and_ambiguous(hard, loo_walk(hard, solution=optimum))
        row = tabulate_bounds(problem, solve_svc(problem))["radius-margin L2"]
        assert row.kind == "other loss"
        assert row.value >= (wrong | ambiguous).mean() - 1e-12


def test_l2_svm_is_the_squared_hinge():
    K, y, C, _ = random_case(np.random.default_rng(32), n=15, kernel="rbf", C=3.0)
    _, optimum = solve_l2_svm(Problem(K, y, C))

    def cost(z):
        short = np.maximum(0, 1 - y * (K @ z[:-1] + z[-1]))
        return 0.5 * z[:-1] @ K @ z[:-1] + 0.5 * C @ short**2

    best = minimize(cost, np.zeros(16), method="BFGS", options={"gtol": 1e-9}).fun
    found = cost(np.append(optimum.beta, optimum.intercept))
    assert found == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("singular", [False, True])
def test_span_is_exact_if_the_sets_do_not_change(fit_intercept, singular, monkeypatch):
    """Computed by the inverse, or by least squares if the matrix is singular."""
    tol = 1e-7 if singular else 1e-10
    if singular:
        monkeypatch.setattr(_bounds, "_inverse", lambda matrix: None)
    rng, n_same = np.random.default_rng(33), 0
    for _ in range(30):
        case = random_case(rng, max_n=25, fit_intercept=fit_intercept)
        problem = Problem(*case)
        solution = solve_svc(problem)
        spans = span_squared(problem, solution)
        margins = case.y * solution.decision_values - solution.alpha * spans
        for r in np.flatnonzero((solution.beta != 0) & np.isfinite(spans)):
            rest = problem.subset(np.delete(np.arange(len(case.y)), r))
            refit = solve_svc(rest)
            same = np.array_equal(refit.state, np.delete(solution.state, r))
            if same and np.ptp(refit.intercept_interval) == 0:
                n_same += 1
                f = np.delete(case.K[r], r) @ refit.beta + refit.intercept
                assert case.y[r] * f == pytest.approx(margins[r], rel=tol, abs=tol)
    assert n_same > 50


def test_enclosing_ball():
    """Points on a line; antipodes on the unit sphere with points inside."""
    rng = np.random.default_rng(35)
    x, u = rng.normal(size=(40, 1)), rng.normal(size=(20, 5))
    u /= np.linalg.norm(u, axis=1)[:, None]
    sphere = np.vstack([u, -u, 0.5 * u]) + 3.0
    for X, wanted in ((x, (np.ptp(x) / 2) ** 2), (sphere, 1.0)):
        K = X @ X.T
        found = enclosing_radius_squared(K, tol=1e-9)
        assert found == pytest.approx(wanted, rel=1e-8)
        for steps in (1, 3, 10):  # never too small
            assert enclosing_radius_squared(K, max_iter=steps) >= wanted * (1 - 1e-9)


def test_without_another_free_support_vector():
    """Published bounds fail, spans are infinite, the count is a weak bound."""
    problem = Problem(*DEGENERATE["identity_two_two"])
    solution = solve_svc(problem)
    assert np.isinf(span_squared(problem, solution)).all()
    table = tabulate_bounds(problem, solution)
    assert "without another free support vector" in table["span"].note
    row = table["Jaakkola-Haussler"]
    assert (row.kind, row.note) == ("estimate", "not a bound with an intercept")
    problem = Problem(*DEGENERATE["identity_three_two_weights"])
    row = bound_xi_alpha(problem, solve_svc(problem))
    assert row.kind == "estimate"
    assert row.value < wrong_and_ambiguous(problem, loo_walk(problem))[0].mean()
    problem = Problem(*DEGENERATE["no_free_vector"])
    assert bound_sv_count(problem, solve_svc(problem)).kind == "weak bound"


def test_formulas():
    """With K_ii = 1: GACV; xi-alpha with R^2 = 1 - min K."""
    rng = np.random.default_rng(37)
    K, y, C, _ = random_case(rng, n=60, kernel="rbf", C=0.3, fit_intercept=True)
    solution = solve_svc(Problem(K, y, C))
    h, alpha = y * solution.decision_values, solution.alpha
    slack, times = np.maximum(0, 1 - h), 1.0 + (h < -1)
    assert times.max() == 2
    gacv = bound_gacv(Problem(K, y, C), solution).value
    assert gacv == pytest.approx(np.mean(slack + times * alpha))
    counts = [np.mean(k * alpha * (1 - K.min()) + slack >= 1) for k in (1, 2)]
    assert counts[0] < counts[1] == bound_xi_alpha(Problem(K, y, C), solution).value


def test_gacv_is_not_below_the_left_out_hinge_loss_without_intercept():
    """A left-out margin is at least h - alpha K_ii, and no weight is below 1."""
    rng = np.random.default_rng(38)
    for _ in range(20):
        case = random_case(rng, max_n=30, fit_intercept=False)
        problem = Problem(*case)
        truth = loo_intervals(*case)
        gacv = bound_gacv(problem, solve_svc(problem)).value
        assert gacv >= np.maximum(0, 1 - truth.value).mean() - 1e-8
