# SPDX-License-Identifier: BSD-3-Clause
"""Majorise-minimise steps, exactness step and certificate of many folds at once."""

import numpy as np
import pytest
from oracles.problems import Case, gram, random_case
from scipy import optimize

from leaveout.methods._smoothing import (
    FoldProblems,
    Iterate,
    Majoriser,
    certify,
    finish,
    minimise,
    solve_folds,
)


def leave_out(case, rows):
    """Return the problems without each of some samples, and a start at zero."""
    C = np.tile(case.C, (len(rows), 1))
    C[np.arange(len(rows)), rows] = 0.0
    zeros, none = np.zeros_like(C), np.zeros(len(rows))
    folds = FoldProblems(case.K, case.y, C, zeros, none, case.fit_intercept)
    return folds, Iterate(zeros.copy(), zeros.copy(), none.copy())


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_steps_end_at_the_smoothed_optimum(fit_intercept, rng):
    """With L_tau of Wang & Yang (2022), section 2.3."""
    case = random_case(rng, n=10, kernel="rbf", C=1.0, fit_intercept=fit_intercept)
    (folds, at), tau = leave_out(case, [2]), 0.2

    def objective(x):
        g = case.K @ x[1:]
        u = case.y * (g + fit_intercept * x[0])
        inside = np.clip(1.0 + tau - u, 0.0, 2.0 * tau)
        loss = inside**2 / (4.0 * tau) + np.maximum(1.0 - tau - u, 0.0)
        return 0.5 * x[1:] @ g + folds.C[0] @ loss

    majoriser = Majoriser.of(case.K, case.C, tau, fit_intercept)
    assert minimise(folds, majoriser, at, 1e-12, 1000) < 500
    truth = optimize.minimize(objective, np.zeros(11), method="BFGS", tol=1e-10)
    assert objective(np.append(at.b, at.eta[0])) <= truth.fun + 1e-9
    np.testing.assert_allclose(at.values, at.eta @ case.K, atol=1e-9)


def test_certificate_rejects_points_that_are_not_optimal(rng):
    X, rows = rng.normal(size=(20, 3)), np.arange(20)  # many on the margin
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=20) > 0, 1.0, -1.0)
    case = Case(gram(X, "rbf"), y, np.ones(20), True)
    folds, start = leave_out(case, rows)
    found, solved = finish(folds, start, 2.0)  # start from sets that are far too large
    assert solved.mean() > 0.9
    assert certify(folds, found).optimal[solved].all()
    eta, _ = solve_folds(folds, case.C, start)
    assert certify(folds, eta).optimal.all()
    free = (np.abs(eta) > 1e-3) & (np.abs(eta) < folds.C - 1e-3)
    for i in rows:
        two = np.flatnonzero(free[i])[:2]
        moved = eta.copy()
        moved[i, two] += [1e-7, -1e-7]  # feasible
        assert (certify(folds, moved).optimal == (rows != i)).all()
    eta[0] *= 0.5
    assert not certify(folds, eta).optimal[0]
