# SPDX-License-Identifier: BSD-3-Clause
"""The LOOM against clarabel and linprog; left-out values against n such programs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.problems import DEGENERATE, random_case
from oracles.programs import loom_clarabel, loom_loo_ranges, loom_smallest_sum
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale
from solved import loo_loom_bound, loo_loom_refit, solve_loom

from leaveout import LOOMClassifier
from leaveout.engine._problem import Problem
from leaveout.exceptions import LeaveoutError
from leaveout.lp._loom import LoomSolver, loom_bound

NUS = [1.0, 1.0, 0.5, 2.0]


def assert_dual_certificate(case, solution, nu=1.0):
    """Weak duality, by the textbook: a feasible dual point with the primal's value."""
    K, y, w, fit_intercept = case
    u, a = solution.row_dual, solution.coef * y
    assert (a >= 0).all()
    assert (u >= 0).all()
    assert (u <= w).all()
    M = K * np.outer(y, y)
    M[np.diag_indices(len(y))] = (1 - nu) * np.diag(K)
    rounding = 1e-12 * w.sum()
    assert (u @ M).max() <= rounding * np.abs(K).max()
    if fit_intercept:
        assert abs(u @ y) <= rounding
    slack = np.maximum(0, 1 - M @ a - y * solution.intercept)
    size = max(1.0, a.sum() * np.abs(K).max())
    assert solution.slack == pytest.approx(slack, abs=1e-12 * size)
    assert w @ slack == pytest.approx(solution.objective, abs=1e-12 * w.sum() * size)
    assert u.sum() == pytest.approx(w @ slack, rel=1e-7, abs=1e-9 * w.max())


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate(name, fit_intercept):
    case = DEGENERATE[name]._replace(fit_intercept=fit_intercept)
    solution = solve_loom(Problem(*case))
    assert solution.converged
    assert_dual_certificate(case, solution)
    objective, least = loom_smallest_sum(*case)
    assert solution.objective == pytest.approx(
        objective, rel=1e-6, abs=1e-6 * case.C.max()
    )
    assert np.abs(solution.coef).sum() == pytest.approx(least, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_random_equals_clarabel_with_the_smallest_sum(seed):
    """Kernel values of 1e-6 and more; C is a weight here, and scales the objective."""
    rng = np.random.default_rng([30, seed])
    case = random_case(rng, C=1.0, fit_intercept=seed % 3 == 0, max_n=50)
    nu = NUS[seed % 4]
    K = np.where(np.abs(case.K) < 1e-6, 0.0, case.K)
    case = case._replace(K=K)
    solution = solve_loom(Problem(*case), nu=nu)
    assert solution.n_capped == 0
    assert solution.converged
    assert_dual_certificate(case, solution, nu)
    objective = loom_clarabel(*case, nu)
    assert solution.objective == pytest.approx(objective, rel=1e-6, abs=1e-6)
    _, least = loom_smallest_sum(*case, nu)
    assert np.abs(solution.coef).sum() == pytest.approx(least, rel=1e-4, abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1e-9, 0.125, 3.0, 1e8]))
def test_the_scale_of_the_kernel_changes_coefficients_only(seed, factor):
    case = random_case(np.random.default_rng(seed), C=1.0, max_n=25)
    one = solve_loom(Problem(*case))
    other = solve_loom(Problem(*case._replace(K=factor * case.K)))
    if factor == 0.125:  # no digit changes
        assert other.coef * factor == pytest.approx(one.coef, rel=0, abs=0)
    assert other.objective == pytest.approx(one.objective, rel=1e-8, abs=1e-8)
    sums = [np.abs(solution.coef).sum() for solution in (one, other)]
    assert sums[1] * factor == pytest.approx(sums[0], rel=1e-5, abs=1e-6)
    if one.face.unique:
        size = max(1.0, np.abs(one.decision_values).max())
        assert other.decision_values == pytest.approx(
            one.decision_values, abs=1e-7 * size
        )


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_order_and_signs_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng, C=1.0, max_n=25)
    order = rng.permutation(len(case.y))
    mixed = Problem(
        case.K[np.ix_(order, order)],
        -case.y[order],
        case.C[order],
        case.fit_intercept,
    )
    one, other = solve_loom(Problem(*case)), solve_loom(mixed)
    assert other.objective == pytest.approx(one.objective, rel=1e-8, abs=1e-8)
    if one.face.unique:
        size = max(1.0, np.abs(one.decision_values).max())
        assert -other.decision_values == pytest.approx(
            one.decision_values[order], abs=1e-7 * size
        )


@pytest.mark.parametrize("seed", range(4))
def test_a_sample_without_weight_is_absent(seed):
    rng = np.random.default_rng([31, seed])
    case = random_case(rng, n=20, C=1.0)
    w = case.C.copy()
    w[[3, 11]] = 0.0
    rest = np.flatnonzero(w)
    whole = solve_loom(Problem(case.K, case.y, w, case.fit_intercept))
    part = solve_loom(
        Problem(case.K[np.ix_(rest, rest)], case.y[rest], w[rest], case.fit_intercept)
    )
    assert (whole.coef[[3, 11]] == 0).all()
    assert (whole.slack[[3, 11]] == 0).all()
    assert whole.objective == pytest.approx(part.objective, rel=1e-9, abs=1e-9)
    if part.face.unique:
        assert whole.coef[rest] == pytest.approx(part.coef, rel=1e-6, abs=1e-8)
    solver = LoomSolver(Problem(*case))
    solver.solve()
    warm = solver.solve_without(np.array([3, 11]))
    assert warm.objective == pytest.approx(part.objective, rel=1e-9, abs=1e-9)


def test_all_satisfied_has_finite_coefficients():
    """Every multiple of a is optimal too: the smallest is taken."""
    x = np.array([-2.0, -1.5, 1.0, 3.0])
    K = np.exp(-(np.subtract.outer(x, x) ** 2) / 10)
    solution = solve_loom(Problem(K, np.sign(x), np.ones(4), False))
    assert solution.objective == pytest.approx(0, abs=1e-12)
    margins = np.sign(x) * solution.left_out_values
    assert margins.min() == pytest.approx(1, rel=1e-12)


def test_a_class_of_one_is_given_up():
    """With K >= 0 and no intercept no other term supports it: xi >= 1."""
    K = np.exp(-(np.subtract.outer(range(6), range(6)) ** 2) / 8)
    y = np.array([1.0, -1, -1, -1, -1, -1])
    solution = solve_loom(Problem(K, y, np.ones(6), False))
    assert solution.slack[0] >= 1
    assert (solution.slack[1:] == 0).all()


def test_a_kernel_without_overlap_is_capped_and_certified():
    """Values of 1e-9 cannot classify: the coefficients would have to be 1e9."""
    K = np.full((6, 6), 1e-9)
    np.fill_diagonal(K, 1.0)
    y = np.array([1.0, 1, 1, 1, -1, -1])
    solution = solve_loom(Problem(K, y, np.ones(6), False))
    assert solution.n_capped > 0
    assert np.abs(solution.coef).max() <= 1e6
    assert solution.objective == pytest.approx(6, abs=0.02)
    assert solution.converged


def test_inputs_stay_as_they_are():
    case = random_case(np.random.default_rng(5), n=15, C=1.0)
    arrays = [case.K.copy(), case.y.copy(), case.C.copy()]
    for array in case[:3]:
        array.flags.writeable = False
    LoomSolver(Problem(*case)).solve()
    for before, after in zip(arrays, case[:3], strict=True):
        assert (before == after).all()


def assert_equals_refits(case, nu=1.0):
    """Both ends of the range, and hence the middle, at each sample."""
    found = loo_loom_refit(Problem(*case), nu=nu)
    low, high = loom_loo_ranges(*case, nu).T
    assert found.certified.all()
    finite = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)], [1.0]])
    # The oracle's optima may cost a share of 1e-8 more.
    slack = 1e-4 * np.abs(finite).max()
    assert found.lower == pytest.approx(low, abs=slack)
    assert found.upper == pytest.approx(high, abs=slack)
    return found


@pytest.mark.parametrize(("k", "name"), list(enumerate(DEGENERATE)))
def test_loo_of_degenerate_cases(k, name):
    case = DEGENERATE[name]
    case = case._replace(C=case.C / case.C.max(), fit_intercept=k % 2 == 0)
    assert_equals_refits(case)


@pytest.mark.parametrize("seed", range(8))
def test_loo_of_random_cases(seed):
    rng = np.random.default_rng([32, seed])
    case = random_case(rng, C=1.0, fit_intercept=seed % 3 == 0, max_n=25)
    assert_equals_refits(case, [1.0, 0.5, 2.0][seed % 3])


def test_a_sample_without_weight_gets_the_value_of_all_others():
    case = random_case(np.random.default_rng(33), n=20, kernel="rbf", C=1.0)
    w = case.C.copy()
    w[5] = 0.0
    found = loo_loom_refit(Problem(case.K, case.y, w, case.fit_intercept))
    full = solve_loom(Problem(case.K, case.y, w, case.fit_intercept))
    assert found.values[5] == pytest.approx(full.decision_values[5])


def test_programs_that_highs_cannot_solve_are_not_certified():
    """Kernel values near 0: the other programs are solved all the same."""
    n = 80
    X, labels = load_breast_cancer(return_X_y=True)
    X = scale(X)[:n]
    y = np.where(labels[:n] > 0, 1.0, -1.0)
    problem = Problem(rbf_kernel(X, gamma=2.0), y, np.ones(n), True)
    found = loo_loom_refit(problem)
    assert np.isfinite(found.values).all()
    assert 0 < np.mean(found.certified) < 0.9


def test_no_smallest_coefficients_are_no_optimum(monkeypatch):
    """Only the first of two programs solved: said, and nothing certified."""

    def fail(self, first, tie):
        raise LeaveoutError("no optimum")

    monkeypatch.setattr(LoomSolver, "_run_second", fail)
    case = random_case(np.random.default_rng(34), n=20, kernel="rbf", C=1.0)
    solution = solve_loom(Problem(*case))
    assert solution.duality_gap < 1e-6
    assert not solution.converged
    assert not loo_loom_refit(Problem(*case)).certified.any()
    with pytest.warns(ConvergenceWarning, match="no smallest coefficients"):
        LOOMClassifier(kernel="precomputed").fit(case.K, case.y)


def test_threads_change_nothing():
    case = random_case(np.random.default_rng(34), n=130, kernel="rbf", C=1.0)
    one = loo_loom_refit(Problem(*case))
    two = loo_loom_refit(Problem(*case), n_threads=2)
    assert two.values == pytest.approx(one.values, rel=1e-9, abs=1e-9)
    assert (two.settled_by == one.settled_by).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_the_share_wrong_without_the_own_term(seed):
    case = random_case(np.random.default_rng([35, seed]), C=1.0)
    problem = Problem(*case)
    solution = solve_loom(problem)
    values = loo_loom_bound(problem).values
    wrong = case.y * values <= 0
    assert loom_bound(problem, solution) == pytest.approx(case.C @ wrong / case.C.sum())
    assert values == pytest.approx(solution.left_out_values, abs=1e-9)
    assert case.C @ wrong <= solution.objective + 1e-9
    trained = case.y * solution.decision_values <= 0
    assert not (trained & ~wrong).any()  # the own term only helps
    assert not loo_loom_bound(problem).certified.any()


def test_zero_is_wrong_in_the_bound():
    """A sample without a term of another one has the value 0, whatever its class."""
    K = np.eye(6)
    K[:2, :2] = K[2:4, 2:4] = 1.0
    y = np.array([1.0, 1, -1, -1, 1, -1])
    problem = Problem(K, y, np.ones(6), False)
    assert loom_bound(problem, solve_loom(problem)) == pytest.approx(1 / 3)
    assert (y * loo_loom_bound(problem).values)[4:].max() < 0


def test_the_bound_does_not_bound_the_error_of_the_loom():
    """On noise its own leave-one-out error exceeds it: the docs say so."""
    exceeded = 0
    for seed in range(6):
        rng = np.random.default_rng([36, seed])
        X, y = rng.normal(size=(30, 3)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
        K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
        problem = Problem(K, y, np.ones(30), False)
        bound = loom_bound(problem, solve_loom(problem))
        error = np.mean(y * loo_loom_refit(problem).values <= 0)
        exceeded += error > bound
    assert exceeded > 3
