# SPDX-License-Identifier: BSD-3-Clause
"""Majorise-minimise steps of many folds at once."""

import numpy as np
import pytest
from oracles.problems import random_case
from scipy import optimize

from leaveout.methods._smoothing import FoldProblems, Iterate, Majoriser, minimise


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_steps_end_at_the_smoothed_optimum(fit_intercept, rng):
    """With L_tau of Wang & Yang (2022), section 2.3."""
    case = random_case(rng, n=10, kernel="rbf", C=1.0, fit_intercept=fit_intercept)
    tau, C = 0.2, case.C[None].copy()
    C[0, 2] = 0.0
    zeros, none = np.zeros((1, 10)), np.zeros(1)
    folds = FoldProblems(case.K, case.y, C, zeros, none, fit_intercept)
    at = Iterate(zeros.copy(), zeros.copy(), none.copy())

    def objective(x):
        g = case.K @ x[1:]
        u = case.y * (g + fit_intercept * x[0])
        inside = np.clip(1.0 + tau - u, 0.0, 2.0 * tau)
        loss = inside**2 / (4.0 * tau) + np.maximum(1.0 - tau - u, 0.0)
        return 0.5 * x[1:] @ g + C[0] @ loss

    majoriser = Majoriser.of(case.K, case.C, tau, fit_intercept)
    assert minimise(folds, majoriser, at, 1e-12, 1000) < 500
    truth = optimize.minimize(objective, np.zeros(11), method="BFGS", tol=1e-10)
    assert objective(np.append(at.b, at.eta[0])) <= truth.fun + 1e-9
    np.testing.assert_allclose(at.values, at.eta @ case.K, atol=1e-9)
