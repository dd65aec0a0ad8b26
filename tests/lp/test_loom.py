# SPDX-License-Identifier: BSD-3-Clause
"""The LOOM against clarabel and linprog; left-out values against n refits."""

import numpy as np
import pytest
from oracles import programs
from oracles.problems import DEGENERATE, random_case
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale
from solved import as_loom, loo_loom_bound, loo_loom_refit, solve_loom

from leaveout import LOOMClassifier
from leaveout.engine._problem import Problem
from leaveout.exceptions import LeaveoutError
from leaveout.lp._loom import LoomSolver, loom_bound


def draw(seed, k=0, **given):
    """Return a random case, and nu."""
    case = random_case(np.random.default_rng([seed, k]), C=1.0, **given)
    return case._replace(fit_intercept=k % 3 == 0), [1.0, 1.0, 0.5, 2.0][k % 4]


CASES = {f"random {k}": draw(30, k, max_n=50) for k in range(20)}
for name, case in DEGENERATE.items():
    CASES[name] = case._replace(fit_intercept=False), 1.0
    CASES[f"{name} with b"] = case._replace(fit_intercept=True), 1.0


@pytest.mark.parametrize("name", CASES)
def test_optimum_equals_clarabels_with_the_smallest_sum(name):
    """Weak duality holds, too: a feasible dual point has the same value."""
    (K, y, w, fit_intercept), nu = CASES[name]
    K = np.where(np.abs(K) < 1e-6, 0.0, K)
    solution = solve_loom(Problem(K, y, w, fit_intercept), nu=nu)
    assert solution.converged
    assert solution.n_capped == 0
    program = programs.loom_program(K, y, w, fit_intercept, nu)
    objective = programs.solve_by_clarabel(*program)
    assert solution.objective == pytest.approx(objective, rel=1e-6, abs=1e-6 * w.max())
    u, a = solution.row_dual, solution.coef * y
    least = programs.loom_smallest_sum(*program)
    assert a.sum() == pytest.approx(least, rel=1e-4, abs=1e-6)
    assert (a >= 0).all()
    assert ((u >= 0) & (u <= w)).all()
    M = K * np.outer(y, y)
    np.fill_diagonal(M, (1 - nu) * np.diag(K))
    rounding = 1e-12 * w.sum()
    assert (u @ M).max() <= rounding * np.abs(K).max()
    if fit_intercept:
        assert abs(u @ y) <= rounding
    slack = np.maximum(0, 1 - M @ a - y * solution.intercept)
    size = max(1.0, a.sum() * np.abs(K).max())
    assert solution.slack == pytest.approx(slack, abs=1e-12 * size)
    assert w @ slack == pytest.approx(solution.objective, abs=1e-12 * w.sum() * size)
    assert u.sum() == pytest.approx(w @ slack, rel=1e-7, abs=1e-9 * w.max())


@pytest.mark.parametrize("seed", range(4))
def test_a_sample_without_weight_is_absent(seed):
    case, _ = draw(31, seed, n=20)
    full = Problem(*case)
    case.C[3] = 0.0
    rest = np.delete(np.arange(20), 3)
    whole, part = solve_loom(Problem(*case)), solve_loom(full.subset(rest))
    assert whole.coef[3] == whole.slack[3] == 0
    assert whole.objective == pytest.approx(part.objective, rel=1e-9, abs=1e-9)
    solver = LoomSolver(as_loom(full))
    solver.solve()
    warm = solver.solve_without(3)
    assert warm.objective == pytest.approx(part.objective, rel=1e-9, abs=1e-9)
    assert_equals_refits(case)


def test_coefficients_are_capped_and_certified_if_kernel_values_vanish():
    """Kernel values of 1e-9 cannot classify: they would need coefficients of 1e9."""
    K = np.full((6, 6), 1e-9)
    np.fill_diagonal(K, 1.0)
    y = np.array([1.0, 1, 1, 1, -1, -1])
    solution = solve_loom(Problem(K, y, np.ones(6), False))
    assert solution.n_capped > 0
    assert np.abs(solution.coef).max() <= 1e6
    assert solution.objective == pytest.approx(6, abs=0.02)
    assert solution.converged


def assert_equals_refits(case, nu=1.0):
    """Compare both ends of the range, and so the middle, at each sample."""
    found = loo_loom_refit(Problem(*case), nu=nu)
    low, high = programs.loo_ranges(programs.loom_range, *case, nu).T
    assert found.certified.all()
    finite = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)], [1.0]])
    # The oracle's optima may have a cost larger by a factor of 1 + 1e-8.
    slack = 1e-4 * np.abs(finite).max()
    assert found.lower == pytest.approx(low, abs=slack)
    assert found.upper == pytest.approx(high, abs=slack)


LEFT_OUT = {f"random {k}": draw(32, k, max_n=25) for k in range(8)}
for k, (name, case) in enumerate(DEGENERATE.items()):
    case = case._replace(C=case.C / case.C.max(), fit_intercept=k % 2 == 0)
    LEFT_OUT[name] = case, 1.0


@pytest.mark.parametrize("name", LEFT_OUT)
def test_left_out_ranges(name):
    assert_equals_refits(*LEFT_OUT[name])


def test_programs_that_highs_cannot_solve_are_not_certified():
    """Kernel values near 0: the other programs are still solved."""
    X, labels = load_breast_cancer(return_X_y=True)
    K, y = rbf_kernel(scale(X)[:80], gamma=2.0), 2.0 * labels[:80] - 1.0
    found = loo_loom_refit(Problem(K, y, np.ones(80), True))
    assert np.isfinite(found.values).all()
    assert 0 < np.mean(found.certified) < 0.9


def test_failed_second_stage_is_reported_and_not_certified(monkeypatch):
    """Only the first of two programs is solved: a warning, and nothing certified."""

    def fail(self, first, tie):
        raise LeaveoutError("no optimum")

    monkeypatch.setattr(LoomSolver, "_run_second", fail)
    case, _ = draw(34, n=20, kernel="rbf")
    solution = solve_loom(Problem(*case))
    assert solution.duality_gap < 1e-6
    assert not solution.converged
    assert not loo_loom_refit(Problem(*case)).certified.any()
    with pytest.warns(ConvergenceWarning, match="not find the smallest"):
        LOOMClassifier(kernel="precomputed").fit(case.K, case.y)


def test_threads_change_nothing():
    problem = Problem(*draw(34, n=130, kernel="rbf")[0])
    one, two = loo_loom_refit(problem), loo_loom_refit(problem, n_threads=2)
    assert two.values == pytest.approx(one.values, rel=1e-9, abs=1e-9)
    assert (two.settled_by == one.settled_by).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_the_share_wrong_without_the_own_term(seed):
    case, _ = draw(35, seed)
    problem = Problem(*case)
    solution = solve_loom(problem)
    found = loo_loom_bound(problem)
    wrong = case.y * found.values <= 0
    assert loom_bound(problem, solution) == pytest.approx(case.C @ wrong / case.C.sum())
    own = solution.coef * np.diag(case.K)
    assert found.values == pytest.approx(solution.decision_values - own, abs=1e-9)
    assert case.C @ wrong <= solution.objective + 1e-9
    assert not found.certified.any()


def test_zero_is_wrong_in_the_bound():
    """Without terms of other samples the value is 0, whatever the class."""
    K = np.eye(6)
    K[:2, :2] = K[2:4, 2:4] = 1.0
    y = np.array([1.0, 1, -1, -1, 1, -1])
    problem = Problem(K, y, np.ones(6), False)
    assert loom_bound(problem, solve_loom(problem)) == pytest.approx(1 / 3)
    assert (y * loo_loom_bound(problem).values)[4:].max() < 0
