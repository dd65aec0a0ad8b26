# SPDX-License-Identifier: BSD-3-Clause
"""The optimum of the LPM against clarabel and linprog."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.problems import DEGENERATE, random_case
from oracles.programs import lpm_clarabel, lpm_objective

from leaveout.engine._problem import Problem
from leaveout.lp._lpm import LpmSolver, solve_lpm


def assert_dual_certificate(case, solution):
    """Weak duality, by the textbook: a feasible dual point with the primal's value."""
    K, y, C, fit_intercept = case
    lam, a = solution.row_dual, solution.coef
    scale = max(1.0, np.abs(lam).sum() * np.abs(K).max())
    assert (lam >= 0).all()
    assert (lam <= C).all()
    assert np.abs((lam * y) @ K).max() <= 1 + 1e-12 * scale
    if fit_intercept:
        assert abs(lam @ y) <= 1e-12 * scale
    f = K @ a + solution.intercept
    primal = np.abs(a).sum() + C @ np.maximum(0, 1 - y * f)
    assert primal == pytest.approx(solution.objective, rel=1e-12, abs=1e-12)
    assert lam.sum() == pytest.approx(primal, rel=1e-8, abs=1e-10 * scale)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate(name):
    case = DEGENERATE[name]
    solution = solve_lpm(Problem(*case))
    assert solution.converged
    assert_dual_certificate(case, solution)
    assert solution.objective == pytest.approx(lpm_objective(*case), rel=1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_random_equals_clarabel(seed):
    case = random_case(np.random.default_rng([20, seed]), C=10 ** (seed % 6 - 2.0))
    solution = solve_lpm(Problem(*case))
    objective, _ = lpm_clarabel(*case)
    assert solution.converged
    assert solution.objective == pytest.approx(objective, rel=1e-7, abs=1e-7)
    assert_dual_certificate(case, solution)


def test_indefinite_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    K = np.tanh(X @ X.T - 1.0)
    assert np.linalg.eigvalsh(K)[0] < -0.1
    case = K, np.sign(X[:, 0]), np.full(30, 3.0), True
    solution = solve_lpm(Problem(*case))
    assert_dual_certificate(case, solution)
    assert solution.objective == pytest.approx(lpm_objective(*case), rel=1e-8)


def test_a_sample_with_c_0_is_absent():
    K, y, C, fit_intercept = random_case(np.random.default_rng(3), n=20, C=5.0)
    closed, rest = C.copy(), np.arange(20) % 4 != 0
    closed[~rest] = 0.0
    solution = solve_lpm(Problem(K, y, closed, fit_intercept))
    absent = solve_lpm(Problem(K[np.ix_(rest, rest)], y[rest], C[rest], fit_intercept))
    assert solution.objective == pytest.approx(absent.objective, rel=1e-12)
    assert not solution.coef[~rest].any()
    assert not solution.row_dual[~rest].any()


def test_warm_start_without_samples_equals_a_cold_one():
    case = random_case(np.random.default_rng(4), n=30, C=2.0, kernel="rbf")
    K, y, C, fit_intercept = case
    solver = LpmSolver(Problem(*case))
    full = solver.solve()
    for rows in ([0], [3], [5, 6, 7]):
        rest = np.setdiff1d(np.arange(30), rows)
        cold = lpm_objective(K[np.ix_(rest, rest)], y[rest], C[rest], fit_intercept)
        warm = solver.solve_without(np.array(rows))
        assert warm.objective == pytest.approx(cold, rel=1e-9)
    # Everything is switched on again.
    again = solver.solve_without(np.array([], dtype=np.intp))
    assert again.objective == pytest.approx(full.objective, rel=1e-12)


def test_small_box_has_no_coefficients():
    x = np.array([-1.0, 1.0])
    solution = solve_lpm(Problem(np.outer(x, x), x, np.full(2, 0.1)))
    assert not solution.coef.any()
    # Every b in [-1, 1] is optimal: the middle is taken.
    assert solution.intercept == 0.0
    assert solution.objective == pytest.approx(0.2)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.floats(-2, 2), st.booleans())
def test_flipped_labels_and_scaled_kernel(seed, exponent, fit_intercept):
    """y -> -y flips f; K -> sK, C -> C/s with a -> a/s has the objective over s."""
    K, y, C, _ = random_case(np.random.default_rng(seed), max_n=15, C=1.0)
    s = 10.0**exponent
    one = solve_lpm(Problem(K, y, C, fit_intercept)).objective
    flipped = solve_lpm(Problem(K, -y, C, fit_intercept)).objective
    scaled = solve_lpm(Problem(s * K, y, C / s, fit_intercept)).objective
    assert flipped == pytest.approx(one, rel=1e-9, abs=1e-12)
    assert scaled * s == pytest.approx(one, rel=1e-9, abs=1e-9)


def test_numbers_of_highs_stand_in_for_a_singular_basis(monkeypatch):
    case = random_case(np.random.default_rng(5), n=20, kernel="rbf", C=2.0)
    truth = solve_lpm(Problem(*case))

    def singular(problem, basis):
        return np.zeros(basis.columns.size), np.zeros(problem.n_samples)

    monkeypatch.setattr("leaveout.lp._lpm.solve_lpm_basis", singular)
    solution = solve_lpm(Problem(*case))
    assert solution.objective == pytest.approx(truth.objective, rel=1e-9)
    np.testing.assert_allclose(
        solution.decision_values, truth.decision_values, atol=1e-7
    )
