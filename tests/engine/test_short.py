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
        solution, found = solve_and_leave_singles(problem)
        if found is None:
            continue
        n_short += 1
        truth = loo_intervals(*case)
        assert_intervals(found, case.y, truth, where)
        _, labels = solve_and_leave_singles(problem, labels_only=True)
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
    _, found = solve_and_leave_singles(Problem(*case))
    if found is not None:
        assert_intervals(found, case.y, loo_intervals(*case), name)


def test_start_and_bounds_that_no_solution_reaches(rng):
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=60) > 0, 1.0, -1.0)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    found = [
        solve_and_leave_singles(Problem(K, y, np.full(60, C)), start)
        for C, start in ((1e6, None), (1e9, None), (1e6, np.zeros(60)))
    ]
    for _, one in found[1:]:
        np.testing.assert_allclose(one.values, found[0][1].values, 1e-7, 1e-8)
