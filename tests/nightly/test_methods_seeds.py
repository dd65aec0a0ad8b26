# SPDX-License-Identifier: BSD-3-Clause
"""Many random problems for the curve, the bounds and the methods of Wang & Yang."""

import numpy as np
import pytest
from oracles.agreement import assert_intervals
from oracles.binary import loo_intervals
from oracles.problems import random_case
from solved import loo_consolidated, loo_magic, loo_walk

from leaveout.assess._bounds import tabulate_bounds, wrong_and_ambiguous
from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.methods._curve import trace_curve

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("seed", range(10))
def test_curve_equals_walks(seed):
    rng = np.random.default_rng([seed, 47])
    for _ in range(40):
        K, y, weights, fit_intercept = random_case(rng, C=1.0)
        curve = trace_curve(Problem(K, y, weights, fit_intercept), 1e-3, 1e4)
        assert curve.n_uncertified == 0
        for C in 10 ** rng.uniform(-3, 4, 10):
            if np.abs(curve.breakpoints / C - 1.0).min() <= 1e-9:
                continue
            f = loo_walk(Problem(K, y, C * weights, fit_intercept)).values
            tie = np.abs(f) <= 1e-9
            wrong = np.where(f >= 0, 1.0, -1.0) != y
            found = curve.n_wrong[np.searchsorted(curve.breakpoints, C) - 1]
            assert np.sum(wrong & ~tie) <= found <= np.sum(wrong | tie), C


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold(seed):
    rng = np.random.default_rng([30, seed])
    for _ in range(25):
        problem = Problem(*random_case(rng))
        wrong, ambiguous = wrong_and_ambiguous(problem, loo_walk(problem))
        for row in tabulate_bounds(problem, solve_svc(problem), exact=False).rows:
            if row.kind == "estimate" or row.name == "radius-margin L2":
                continue
            counted = wrong if row.kind == "weak bound" else wrong | ambiguous
            assert row.lower - 1e-12 <= wrong.mean(), row
            assert row.value + 1e-12 >= counted.mean(), row


@pytest.mark.parametrize("seed", range(8))
def test_consolidated_and_magic_equal_the_oracle(seed):
    rng = np.random.default_rng([seed, 31])
    for k in range(4):
        case = random_case(rng, max_n=30)
        truth = loo_intervals(*case)
        for method in (loo_consolidated, loo_magic):
            assert_intervals(method(Problem(*case)), case.y, truth, f"problem {k}")
