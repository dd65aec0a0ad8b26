# SPDX-License-Identifier: BSD-3-Clause
"""Many random problems for the curve over C."""

import numpy as np
import pytest
from oracles.problems import random_case
from solved import loo_walk

from leaveout.engine._problem import Problem
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
