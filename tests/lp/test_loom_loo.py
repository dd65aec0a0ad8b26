# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of the leave-one-out machine against n programs from scratch."""

import numpy as np
import pytest
from oracles.problems import DEGENERATE, random_case
from oracles.programs import loom_loo_ranges
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale
from solved import loo_loom_bound, loo_loom_refit, solve_loom

from leaveout import LOOMClassifier
from leaveout.engine._problem import Problem
from leaveout.exceptions import LeaveoutError
from leaveout.lp._loom import LoomSolver, loom_bound


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
def test_degenerate(k, name):
    case = DEGENERATE[name]
    case = case._replace(C=case.C / case.C.max(), fit_intercept=k % 2 == 0)
    assert_equals_refits(case)


@pytest.mark.parametrize("seed", range(16))
def test_random(seed):
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


@pytest.mark.parametrize(("n", "gamma"), [(100, 2.0), (100, 0.5)])
def test_programs_that_highs_cannot_solve_are_not_certified(n, gamma):
    """Of kernel values next to nothing: one of n programs once ended all of them."""
    X, labels = load_breast_cancer(return_X_y=True)
    X = scale(X)[:n]
    y = np.where(labels[:n] > 0, 1.0, -1.0)
    problem = Problem(rbf_kernel(X, gamma=gamma), y, np.ones(n), True)
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
    case = random_case(np.random.default_rng(34), n=150, kernel="rbf", C=1.0)
    one = loo_loom_refit(Problem(*case))
    two = loo_loom_refit(Problem(*case), n_threads=2)
    assert two.values == pytest.approx(one.values, rel=1e-9, abs=1e-9)
    assert (two.settled_by == one.settled_by).all()


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_is_the_share_wrong_without_the_own_term(seed):
    case = random_case(np.random.default_rng([35, seed]), C=1.0)
    problem = Problem(*case)
    solution = solve_loom(problem)
    values = loo_loom_bound(problem).values
    wrong = case.y * values <= 0
    assert loom_bound(problem, solution) == pytest.approx(case.C @ wrong / case.C.sum())
    assert values == pytest.approx(solution.left_out_values, abs=1e-9)
    trained = case.y * solution.decision_values <= 0
    assert not (trained & ~wrong).any()  # the own term only helps
    assert not loo_loom_bound(problem).certified.any()


def test_zero_is_wrong_in_the_bound():
    """A sample that nobody reaches has the value 0, whatever its class."""
    K = np.eye(6)
    K[:2, :2] = K[2:4, 2:4] = 1.0
    y = np.array([1.0, 1, -1, -1, 1, -1])
    problem = Problem(K, y, np.ones(6), False)
    assert loom_bound(problem, solve_loom(problem)) == pytest.approx(1 / 3)
    assert (y * loo_loom_bound(problem).values)[4:].max() < 0


def test_the_bound_is_no_bound():
    """On noise the machine's own leave-one-out error exceeds it: the docs say so."""
    exceeded = 0
    for seed in range(12):
        rng = np.random.default_rng([36, seed])
        X, y = rng.normal(size=(30, 3)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
        K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
        problem = Problem(K, y, np.ones(30), False)
        bound = loom_bound(problem, solve_loom(problem))
        error = np.mean(y * loo_loom_refit(problem).values <= 0)
        exceeded += error > bound
    assert exceeded > 6
