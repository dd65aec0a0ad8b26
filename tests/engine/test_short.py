# SPDX-License-Identifier: BSD-3-Clause
"""The short way of small problems: an interior-point solver and the long way agree."""

import numpy as np
import pytest
from oracles.agreement import assert_intervals, assert_signs
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, random_case
from solved import loo_walk

from leaveout.engine._problem import Problem
from leaveout.engine._short import solve_and_leave_singles
from leaveout.engine._solve import solve_svc


@pytest.mark.parametrize("seed", range(2))
def test_random_problems(seed):
    rng = np.random.default_rng([seed, 5])
    n_short = 0
    for k in range(60):
        case = random_case(rng, max_n=60)
        problem, where = Problem(*case), f"seed {seed} problem {k}"
        [(solution, found)] = solve_and_leave_singles(problem, problem.C[None])
        if found is None:
            continue
        n_short += 1
        truth = loo_intervals(*case)
        assert_intervals(found, case.y, truth, where)
        [(_, labels)] = solve_and_leave_singles(
            problem, problem.C[None], labels_only=True
        )
        assert_signs(case.y * labels.values, truth, where)
        long = loo_walk(problem)
        assert (found.settled_by == long.settled_by).all(), where
        assert long.certified[found.certified].all(), where
        known, full = vars(solve_svc(problem)), vars(solution)
        for name in ("beta", "decision_values", "objective", "intercept"):
            np.testing.assert_allclose(
                full[name], known[name], 1e-7, 1e-8, err_msg=where
            )
        assert (full["state"] == known["state"]).all(), where
    assert n_short >= 10


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems_take_the_long_way_or_agree(name):
    case = DEGENERATE[name]
    problem = Problem(*case)
    [(_, found)] = solve_and_leave_singles(problem, problem.C[None])
    if found is not None:
        assert_intervals(found, case.y, loo_intervals(*case), name)


def test_start_and_bounds_that_no_solution_reaches(rng):
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=60) > 0, 1.0, -1.0)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    problem = Problem(K, y, np.ones(60))
    found = [
        solve_and_leave_singles(problem, np.full((1, 60), C), start)[0]
        for C, start in ((1e6, None), (1e9, None), (1e6, np.zeros(60)))
    ]
    for _, one in found[1:]:
        np.testing.assert_allclose(one.values, found[0][1].values, 1e-7, 1e-8)


def test_a_path_agrees_with_an_interior_point_solver_at_each_penalty():
    rng, n_same = np.random.default_rng(3), 0
    for k in range(25):
        case = random_case(rng, max_n=30)
        problem = Problem(*case)
        factors = np.array([0.01, 0.3, 1.0, 30.0, 1e3, 1e4])
        Cs = factors[:, None] * problem.C
        last = None
        for C, (_, found) in zip(Cs, solve_and_leave_singles(problem, Cs), strict=True):
            if last is not None and last.same_if_larger:
                assert found is None
                found, n_same = last, n_same + 1
            last = found
            if found is not None:
                truth = loo_intervals(case.K, case.y, C)
                assert_intervals(found, case.y, truth, f"problem {k}, C = {C}")
    assert n_same >= 5


def test_long_walks_know_when_a_larger_penalty_changes_nothing(rng):
    X = rng.normal(size=(300, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=300) > 0.3, 1.0, -1.0)
    K = np.exp(-2.0 * ((X[:, None] - X) ** 2).sum(axis=2))
    found = [loo_walk(Problem(K, y, np.full(300, C))) for C in (0.5, 1e3, 1e6)]
    assert [one.same_if_larger for one in found] == [False, True, True]
    np.testing.assert_allclose(found[1].values, found[2].values, 1e-9, 1e-9)
