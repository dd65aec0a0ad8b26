# SPDX-License-Identifier: BSD-3-Clause
"""Majorise-minimise steps, exactness step, certificate of many folds at once."""

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
    """The problems without each of some samples, and zero to start from."""
    C = np.tile(case.C, (len(rows), 1))
    C[np.arange(len(rows)), rows] = 0.0
    zeros, none = np.zeros_like(C), np.zeros(len(rows))
    folds = FoldProblems(case.K, case.y, C, zeros, none, case.fit_intercept)
    return folds, Iterate(zeros.copy(), zeros.copy(), none.copy())


def smoothed_objective(folds, k, eta, b, tau):
    """With L_tau of Wang & Yang (2022), section 2.3."""
    g = folds.K @ eta
    u = folds.y * (g + b)
    inside = np.clip(1.0 + tau - u, 0.0, 2.0 * tau)
    loss = inside**2 / (4.0 * tau) + np.maximum(1.0 - tau - u, 0.0)
    return 0.5 * eta @ g + folds.C[k] @ loss


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_step_is_that_of_the_explicit_majoriser(fit_intercept, rng):
    """P^-1 gradient with P = Z'D Z + blockdiag(0, K), formed and solved."""
    case = random_case(rng, n=12, kernel="rbf", C=2.0, fit_intercept=fit_intercept)
    (folds, start), tau, n = leave_out(case, [0, 3]), 0.3, 12
    start.eta[:] = 0.1 * rng.normal(size=start.eta.shape)
    start.values[:], start.b[:] = start.eta @ case.K, 0.2 if fit_intercept else 0.0
    before = np.column_stack([start.b, start.eta])
    minimise(folds, Majoriser.of(case.K, case.C, tau, fit_intercept), start, 0.0, 1)
    Z = np.column_stack([np.full(n, float(fit_intercept)), case.K])
    P = Z.T @ (case.C[:, None] / (2 * tau) * Z)
    P[1:, 1:] += case.K
    for k in range(2):

        def objective(x, k=k):
            return smoothed_objective(folds, k, x[1:], fit_intercept * x[0], tau)

        gradient = optimize.approx_fprime(before[k], objective, 1e-7)
        step = np.linalg.lstsq(P, gradient, rcond=None)[0]
        np.testing.assert_allclose(start.eta[k], before[k, 1:] - step[1:], atol=1e-4)
        np.testing.assert_allclose(start.values[k], case.K @ start.eta[k], atol=1e-7)
        assert start.b[k] == pytest.approx(before[k, 0] - step[0], abs=1e-4)


def test_certificate_refuses_what_is_not_optimal(rng):
    X, rows = rng.normal(size=(20, 3)), np.arange(20)  # many on the margin
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=20) > 0, 1.0, -1.0)
    case = Case(gram(X, "rbf"), y, np.ones(20), True)
    folds, start = leave_out(case, rows)
    found, solved = finish(folds, start, 2.0)  # from far too large sets
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
