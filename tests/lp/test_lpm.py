# SPDX-License-Identifier: BSD-3-Clause
"""The LPM against clarabel; its left-out values against refits by linprog."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.problems import DEGENERATE, random_case
from oracles.programs import loo_ranges, lpm_program, lpm_range, solve_by_clarabel
from solved import loo_lpm_refit, loo_lpm_walk

from leaveout.engine._problem import REFIT, SETTLED_BY, Problem
from leaveout.exceptions import LeaveoutError
from leaveout.lp import _lpm_walk
from leaveout.lp._lpm import LpmSolver, solve_lpm

# The oracle's optima cost up to 1e-9 more, relatively, than the smallest. That widens
# its ranges, and more so for larger C.
LARGE_C = ["integer_grid_large_C", "line_large_C", "hard_margin_linear"]


def draw(seed, **given):
    return random_case(np.random.default_rng(seed), **given)


POINTS = np.random.default_rng(0).normal(size=(30, 3))
INDEFINITE = np.tanh(POINTS @ POINTS.T - 1.0), np.sign(POINTS[:, 0]), np.full(30, 3.0)
SMALL = {
    f"small {k}": draw([21, k], max_n=25, C=10 ** (k % 5 - 2.0)) for k in range(10)
}
CASES = {f"random {k}": draw([20, k], C=10 ** (k % 6 - 2.0)) for k in range(6)}
CASES |= {**DEGENERATE, **SMALL, "indefinite": (*INDEFINITE, True)}


@pytest.mark.parametrize("name", CASES)
def test_optimum_equals_clarabels(name):
    """Weak duality holds, too: a feasible dual point has the same value."""
    K, y, C, fit_intercept = case = CASES[name]
    solution = solve_lpm(Problem(*case))
    assert solution.converged
    objective = solve_by_clarabel(*lpm_program(*case))
    assert solution.objective == pytest.approx(objective, rel=1e-7, abs=1e-7)
    lam, a = solution.row_dual, solution.coef
    scale = max(1.0, np.abs(lam).sum() * np.abs(K).max())
    assert ((lam >= 0) & (lam <= C)).all()
    assert np.abs((lam * y) @ K).max() <= 1 + 1e-12 * scale
    if fit_intercept:
        assert abs(lam @ y) <= 1e-12 * scale
    f = K @ a + solution.intercept
    primal = np.abs(a).sum() + C @ np.maximum(0, 1 - y * f)
    assert primal == pytest.approx(solution.objective, rel=1e-12, abs=1e-12)
    assert lam.sum() == pytest.approx(primal, rel=1e-8, abs=1e-10 * scale)


def test_absent_samples_have_no_effect():
    """Absent by C = 0 or by a warm start: the optimum is that of the others."""
    problem = Problem(*draw(4, n=30, C=2.0, kernel="rbf"))
    solver = LpmSolver(problem)
    full = solver.solve()
    for row in (0, 3, 5):
        rest = np.delete(np.arange(30), row)
        closed = replace(problem, C=np.where(np.arange(30) == row, 0.0, problem.C))
        part, absent = solve_lpm(problem.subset(rest)), solve_lpm(closed)
        assert absent.coef[row] == absent.row_dual[row] == 0
        for found in (absent, solver.solve_without(row)):
            assert found.objective == pytest.approx(part.objective, rel=1e-9)
    assert solver.solve().objective == pytest.approx(full.objective, rel=1e-12)


def test_small_c_gives_no_coefficients():
    x = np.array([-1.0, 1.0])
    solution = solve_lpm(Problem(np.outer(x, x), x, np.full(2, 0.1)))
    assert not solution.coef.any()
    assert solution.intercept == 0.0  # the middle of [-1, 1], where every b is optimal
    assert solution.objective == pytest.approx(0.2)


def test_result_of_highs_is_kept_if_its_basis_is_singular(monkeypatch):
    problem = Problem(*draw(5, n=20, kernel="rbf", C=2.0))
    truth = solve_lpm(problem)
    singular = np.zeros(20 + problem.fit_intercept), np.zeros(20)
    monkeypatch.setattr("leaveout.lp._lpm.solve_lpm_basis", lambda *_: singular)
    values = solve_lpm(problem).decision_values
    np.testing.assert_allclose(values, truth.decision_values, atol=1e-7)


def test_kernel_that_highs_cannot_handle_raises():
    K = 1e200 * np.array([[1.0, 0.2], [0.2, 1.0]])
    with pytest.raises(LeaveoutError, match="HiGHS found no optimum of the linear"):
        solve_lpm(Problem(K, np.array([1.0, -1.0]), np.ones(2)))


def assert_equal_ranges(loo, case, rows=slice(None)):
    """Our range is inside that of the linear programs, and as wide."""
    rows = np.arange(len(case.y))[rows]
    low, high = loo_ranges(lpm_range, *case, rows=rows).T
    unit = 1 + np.abs(np.where(np.isfinite(low), low, high))
    for ours, truth, outwards in ((loo.lower, low, -1), (loo.upper, high, 1)):
        finite = np.isfinite(truth)
        np.testing.assert_array_equal(ours[rows][~finite], truth[~finite])
        beyond = outwards * (ours[rows][finite] - truth[finite]) / unit[finite]
        assert ((beyond <= 1e-6) & (beyond >= -2e-2)).all()


@pytest.mark.parametrize("name", [*DEGENERATE, *SMALL])
def test_left_out_ranges(name):
    case = CASES[name]
    walk, refit = loo_lpm_walk(Problem(*case)), loo_lpm_refit(Problem(*case))
    assert walk.certified.all()
    assert refit.certified.all()
    assert walk.counts["refits"] <= (3 if name in LARGE_C else 0)
    assert SETTLED_BY[refit.settled_by.max()] in ("refit", "singleton")
    np.testing.assert_allclose(walk.lower, refit.lower, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(walk.upper, refit.upper, rtol=1e-6, atol=1e-6)
    if name not in LARGE_C:
        assert_equal_ranges(walk, case, slice(8 if name in SMALL else None))


def test_two_optima_without_a_sample_are_an_interval():
    """Without the last sample the classes balance: any b in [-1, 1] is optimal."""
    case = np.eye(5), np.array([1.0, 1, -1, -1, 1]), np.full(5, 0.1), True
    loo = loo_lpm_walk(Problem(*case))
    assert (loo.lower[4], loo.upper[4]) == pytest.approx((-1.0, 1.0))
    assert loo.values[4] == pytest.approx(0.0)


def test_absent_sample_gets_the_value_of_the_others():
    case = draw(23, n=20, C=5.0)
    case.C[3] = 0.0
    loo = loo_lpm_walk(Problem(*case))
    assert SETTLED_BY[loo.settled_by[3]] == "untouched"
    assert_equal_ranges(loo, case)


def test_singular_basis_falls_back_to_refits(monkeypatch):
    problem = Problem(*draw(24, n=15, C=2.0))
    truth = loo_lpm_walk(problem)
    first, build = [None], _lpm_walk.build_lpm_tableau
    monkeypatch.setattr(
        _lpm_walk,
        "build_lpm_tableau",
        lambda *args: first.pop() if first else build(*args),
    )
    loo = loo_lpm_walk(problem)
    assert loo.counts["refits"] > 0
    assert (loo.settled_by == REFIT).any()
    np.testing.assert_allclose(loo.values, truth.values, atol=1e-8)


def test_long_walks_are_refitted_and_threads_change_nothing(monkeypatch):
    problem = Problem(*draw(26, n=150, C=1.0))
    one, two = loo_lpm_walk(problem), loo_lpm_walk(problem, n_threads=2)
    np.testing.assert_array_equal([two.lower, two.upper], [one.lower, one.upper])
    monkeypatch.setattr(_lpm_walk, "CAPACITY", 1)
    again = loo_lpm_walk(problem)
    assert again.counts["refits"] > 0
    np.testing.assert_allclose(again.lower, one.lower, rtol=1e-9)
