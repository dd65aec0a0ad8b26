# SPDX-License-Identifier: BSD-3-Clause
"""What is called a bound holds; what is called an estimate can fail, as known."""

import clarabel
import numpy as np
import pytest
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, random_case
from scipy import sparse
from scipy.optimize import minimize
from solved import loo_walk

from leaveout.assess._bounds import (
    tabulate_bounds,
    tabulate_lpm_bounds,
    wrong_and_ambiguous,
)
from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.lp._lpm import solve_lpm
from leaveout.methods._bounds import (
    _distance_squared,
    bound_gacv,
    bound_jaakkola_haussler,
    bound_sv_count,
    bound_xi_alpha,
    enclosing_radius_squared,
    solve_l2_svm,
    span_squared,
)


def share_that_counts(row, wrong, ambiguous):
    """What a bound of this kind promises to cover."""
    return (wrong if row.kind == "weak bound" else wrong | ambiguous).mean()


def assert_bounds_hold(problem, wrong, ambiguous):
    table = tabulate_bounds(problem, solve_svc(problem), exact=False)
    for row in table.rows:
        if row.kind == "estimate" or row.name == "radius-margin L2":
            continue
        assert row.value >= share_that_counts(row, wrong, ambiguous) - 1e-12, row
        assert row.lower <= wrong.mean() + 1e-12, row


@pytest.mark.parametrize("name", DEGENERATE)
def test_bounds_hold_on_degenerate_problems(name):
    case = DEGENERATE[name]
    truth = loo_intervals(*case)
    near = (np.abs(truth.low) < 1e-8) | (np.abs(truth.high) < 1e-8)
    wrong = truth.error & ~near
    assert_bounds_hold(Problem(*case), wrong, truth.ambiguous | (near & ~wrong))


def test_bounds_hold_on_random_problems():
    rng = np.random.default_rng(30)
    for _ in range(60):
        problem = Problem(*random_case(rng))
        loo = loo_walk(problem)
        assert_bounds_hold(problem, *wrong_and_ambiguous(problem, loo))


def test_radius_margin_bounds_the_l2_svm():
    rng = np.random.default_rng(31)
    for _ in range(15):
        problem = Problem(*random_case(rng, max_n=25))
        hard, optimum = solve_l2_svm(problem)
        assert optimum.converged
        assert (optimum.alpha < hard.C).all()
        wrong, ambiguous = wrong_and_ambiguous(hard, loo_walk(hard, solution=optimum))
        row = tabulate_bounds(problem, solve_svc(problem))["radius-margin L2"]
        assert row.kind == "bound"
        assert row.value >= (wrong | ambiguous).mean() - 1e-12


def test_l2_svm_is_the_squared_hinge():
    K, y, C, _ = random_case(np.random.default_rng(32), n=15, kernel="rbf", C=3.0)
    _, optimum = solve_l2_svm(Problem(K, y, C))

    def cost(z):
        short = np.maximum(0, 1 - y * (K @ z[:-1] + z[-1]))
        return 0.5 * z[:-1] @ K @ z[:-1] + 0.5 * C @ short**2

    z = np.append(optimum.beta, optimum.intercept)
    best = minimize(cost, np.zeros(16), method="BFGS", options={"gtol": 1e-9}).fun
    assert cost(z) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_span_is_exact_where_the_sets_stay(fit_intercept):
    rng, n_same = np.random.default_rng(33), 0
    for _ in range(30):
        case = random_case(rng, max_n=25, fit_intercept=fit_intercept)
        problem = Problem(*case)
        solution = solve_svc(problem)
        spans = span_squared(problem, solution)
        for r in np.flatnonzero((solution.beta != 0) & np.isfinite(spans)):
            rest = problem.subset(np.delete(np.arange(len(case.y)), r))
            if fit_intercept and np.unique(rest.y).size < 2:
                continue
            refit = solve_svc(rest)
            same = np.array_equal(refit.state, np.delete(solution.state, r))
            if not same or np.diff(refit.intercept_interval)[0] > 0:
                continue
            n_same += 1
            f = np.delete(problem.K[r], r) @ refit.beta + refit.intercept
            shift = solution.alpha[r] * spans[r]
            predicted = problem.y[r] * solution.decision_values[r] - shift
            assert problem.y[r] * f == pytest.approx(predicted, rel=1e-10, abs=1e-10)
    assert n_same > 50


def test_span_by_least_squares_equals_the_inverse():
    problem = Problem(*random_case(np.random.default_rng(34), n=30, kernel="rbf", C=5))
    solution = solve_svc(problem)
    free, spans = np.flatnonzero(solution.free), span_squared(problem, solution)
    for p in np.flatnonzero(solution.beta):
        others = np.setdiff1d(free, [p])
        assert spans[p] == pytest.approx(_distance_squared(problem, others, p), 1e-6)


def test_span_without_another_free_vector_is_infinite():
    problem = Problem(*DEGENERATE["identity_two_two"])
    solution = solve_svc(problem)
    assert not solution.free.any()
    assert np.isinf(span_squared(problem, solution)).all()
    table = tabulate_bounds(problem, solution)
    assert "without another free support vector" in table["span"].note


@pytest.mark.parametrize("p", [1, 5])
def test_enclosing_ball_is_the_smallest(p):
    X = np.random.default_rng(35).normal(size=(40, p))
    K = X @ X.T
    ours = enclosing_radius_squared(K, tol=1e-9)
    if p == 1:
        assert ours == pytest.approx((np.ptp(X) / 2) ** 2, rel=1e-8)
    assert ours == pytest.approx(_ball_by_clarabel(K), rel=1e-7)


def _ball_by_clarabel(K):
    """Maximise sum_i beta_i K_ii - beta' K beta over the simplex."""
    n = len(K)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(2 * K)), -np.diag(K),
        sparse.csc_matrix(np.vstack([np.ones(n), -np.eye(n)])),
        np.append(1.0, np.zeros(n)),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)], settings,
    )  # fmt: skip
    return -solver.solve().obj_val


def test_ball_never_too_small():
    X = np.random.default_rng(36).normal(size=(60, 3))
    best = enclosing_radius_squared(X @ X.T, tol=1e-10)
    for steps in (1, 3, 10):
        assert enclosing_radius_squared(X @ X.T, max_iter=steps) >= best * (1 - 1e-9)


def test_printed_bound_of_jaakkola_haussler_fails_with_an_intercept():
    """Theirs says 0 wrong of four; all four are. Without an intercept it would hold."""
    problem = Problem(*DEGENERATE["identity_two_two"])
    solution = solve_svc(problem)
    wrong, _ = wrong_and_ambiguous(problem, loo_walk(problem))
    assert wrong.all()
    row = bound_jaakkola_haussler(problem, solution)
    assert (row.kind, row.note) == ("estimate", "no bound with an intercept")
    h = problem.y * solution.decision_values  # b = 0, the middle of its interval
    assert not (solution.alpha * problem.K.diagonal() > h + 1e-12).any()


def test_xi_alpha_fails_with_unequal_boxes():
    problem = Problem(*DEGENERATE["identity_three_two_weights"])
    wrong, _ = wrong_and_ambiguous(problem, loo_walk(problem))
    row = bound_xi_alpha(problem, solve_svc(problem))
    assert row.kind == "estimate"
    assert row.value < wrong.mean()


def test_count_is_weak_without_a_free_vector():
    problem = Problem(*DEGENERATE["no_free_vector"])
    solution = solve_svc(problem)
    row = bound_sv_count(problem, solution)
    assert row.kind == "weak bound"
    wrong, ambiguous = wrong_and_ambiguous(problem, loo_walk(problem))
    assert ambiguous[0]
    assert solution.beta[0] == 0.0
    assert row.value >= wrong.mean()


def test_gacv_by_hand():
    """Two points without intercept: alpha = 1 / K, h = 1."""
    K = np.array([[2.0, 0.0], [0.0, 4.0]])
    problem = Problem(K, np.array([1.0, -1.0]), np.full(2, 10.0), False)
    assert bound_gacv(problem, solve_svc(problem)).value == pytest.approx(1.0)


def test_lpm_count_covers_wrong_samples():
    rng = np.random.default_rng(38)
    for _ in range(8):
        problem = Problem(*random_case(rng, max_n=25, C=1.0))
        table = tabulate_lpm_bounds(problem, solve_lpm(problem))
        assert table["support-vector count"].kind == "weak bound"
        assert table["support-vector count"].value >= table["exact"].lower - 1e-12
