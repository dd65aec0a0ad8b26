# SPDX-License-Identifier: BSD-3-Clause
"""Majorise-minimise steps, exactness step, certificate of many folds at once."""

import numpy as np
import pytest
from oracles.binary import svc_clarabel
from oracles.problems import Case, gram, random_case
from scipy import optimize

from leaveout.engine._certificate import (
    weighted_median_interval,
    weighted_median_intervals,
)
from leaveout.methods._smoothing import (
    FoldProblems,
    Iterate,
    Majoriser,
    certify,
    finish,
    hinge_slope,
    minimise,
    solve_folds,
)


def leave_out(case, rows):
    """The machines without each of some samples."""
    boxes = np.tile(case.C, (len(rows), 1))
    boxes[np.arange(len(rows)), rows] = 0.0
    zeros = np.zeros_like(boxes)
    return FoldProblems(
        case.K, case.y, boxes, zeros, np.zeros(len(rows)), case.fit_intercept
    )


def noisy_case(rng, n):
    """No two samples alike, many on the margin."""
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    return Case(gram(X, "rbf"), y, np.full(n, 1.0), True)


def zero_start(folds):
    zeros = np.zeros_like(folds.C)
    return Iterate(zeros, zeros.copy(), np.zeros(len(folds)))


def smoothed_hinge(u, tau):
    """L_tau of Wang & Yang (2022), section 2.3."""
    inside = np.clip(1.0 + tau - u, 0.0, 2.0 * tau)
    return inside**2 / (4.0 * tau) + np.maximum(1.0 - tau - u, 0.0)


def smoothed_objective(folds, k, eta, b, tau):
    g = folds.K @ eta
    loss = smoothed_hinge(folds.y * (g + folds.offsets[k] + b), tau)
    return 0.5 * eta @ g + folds.C[k] @ loss + b * folds.totals[k]


def test_slope_is_the_derivative_of_the_smoothed_hinge():
    u, step = np.linspace(-3, 3, 601), 1e-6
    for tau in (1.0, 0.1, 1e-3):
        slope = smoothed_hinge(u + step, tau) - smoothed_hinge(u - step, tau)
        np.testing.assert_allclose(
            -hinge_slope(u, tau), slope / (2 * step), atol=2 * step / tau + 1e-9
        )


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_step_is_that_of_the_explicit_majoriser(fit_intercept, rng):
    """P^-1 gradient with P = Z'D Z + blockdiag(0, K), formed and solved."""
    case = random_case(rng, n=12, kernel="rbf", C=2.0, fit_intercept=fit_intercept)
    folds, tau = leave_out(case, [0, 3]), 0.3
    start = zero_start(folds)
    start.eta[:] = 0.1 * rng.normal(size=start.eta.shape)
    start.values[:], start.b[:] = start.eta @ case.K, 0.2 if fit_intercept else 0.0
    eta, b = start.eta.copy(), start.b.copy()
    minimise(folds, Majoriser.of(case.K, case.C, tau, fit_intercept), start, 0.0, 1)
    D, n = case.C / (2 * tau), len(case.y)
    Z = np.column_stack([np.ones(n), case.K]) if fit_intercept else case.K
    P = Z.T @ (D[:, None] * Z)
    P[-n:, -n:] += case.K
    for k in range(2):
        slope = -case.y * folds.C[k]
        slope *= hinge_slope(case.y * (case.K @ eta[k] + b[k]), tau)
        gradient = Z.T @ slope
        gradient[-n:] += case.K @ eta[k]
        step = np.linalg.solve(P, gradient)
        np.testing.assert_allclose(start.eta[k], eta[k] - step[-n:], atol=1e-7)
        np.testing.assert_allclose(start.values[k], case.K @ start.eta[k], atol=1e-7)
        if fit_intercept:
            assert start.b[k] == pytest.approx(b[k] - step[0], abs=1e-7)


def test_steps_never_increase_the_smoothed_objective(rng):
    for _ in range(10):
        case = random_case(rng, C=10 ** rng.uniform(-2, 1))
        folds, tau = leave_out(case, [0]), 10 ** rng.uniform(-2, 0)
        majoriser = Majoriser.of(case.K, case.C, tau, case.fit_intercept)
        at = zero_start(folds)
        values = []
        for _ in range(6):  # each call begins without momentum
            values.append(smoothed_objective(folds, 0, at.eta[0], at.b[0], tau))
            minimise(folds, majoriser, at, 0.0, 1)
        assert (np.diff(values) <= 1e-12 * max(1.0, values[0])).all()


def test_momentum_ends_at_the_smoothed_optimum(rng):
    case = random_case(rng, n=10, kernel="rbf", C=1.0, fit_intercept=True)
    folds, tau = leave_out(case, [2]), 0.2
    at = zero_start(folds)
    minimise(folds, Majoriser.of(case.K, case.C, tau, True), at, 1e-12, 20_000)

    def objective(x):
        return smoothed_objective(folds, 0, x[1:], x[0], tau)

    truth = optimize.minimize(objective, np.zeros(11), method="BFGS", tol=1e-10)
    assert objective(np.append(at.b, at.eta[0])) <= truth.fun + 1e-9
    assert abs(at.eta[0].sum()) < 1e-9
    assert at.eta[0, 2] == pytest.approx(0.0, abs=1e-9)


def test_folds_are_solved_as_by_an_interior_point():
    rng = np.random.default_rng(5)
    n_solved = n_folds = 0
    for k in range(15):
        case = random_case(rng, max_n=25, C=10 ** rng.uniform(-2, 2))
        rows = np.arange(len(case.y))
        if case.fit_intercept:
            rows = rows[[np.unique(np.delete(case.y, r)).size == 2 for r in rows]]
        folds = leave_out(case, rows)
        proof = certify(folds, solve_folds(folds, case.C, zero_start(folds))[0])
        n_solved += proof.optimal.sum()
        n_folds += len(rows)
        for i in np.flatnonzero(proof.optimal)[:4]:
            rest = np.delete(np.arange(len(case.y)), rows[i])
            K = case.K[np.ix_(rest, rest)]
            truth = svc_clarabel(K, case.y[rest], case.C[rest], case.fit_intercept)
            where = f"problem {k}, sample {rows[i]}"
            np.testing.assert_allclose(
                proof.values[i][rest], truth.g, rtol=1e-6, atol=1e-6, err_msg=where
            )
            if case.fit_intercept:
                ends = [proof.low[i], proof.high[i]]
                np.testing.assert_allclose(
                    ends, [truth.b_low, truth.b_high], atol=1e-6, err_msg=where
                )
    assert n_solved > 0.8 * n_folds


def test_certificate_refuses_what_is_not_optimal(rng):
    case = noisy_case(rng, 20)
    rows = np.arange(20)
    folds = leave_out(case, rows)
    eta, _ = solve_folds(folds, case.C, zero_start(folds))
    assert certify(folds, eta).optimal.all()
    free = (np.abs(eta) > 1e-3) & (np.abs(eta) < folds.C - 1e-3)
    for i in rows:
        two = np.flatnonzero(free[i])[:2]
        moved = eta.copy()
        moved[i, two] += [1e-7, -1e-7]  # feasible
        optimal = certify(folds, moved).optimal
        assert two.size == 2
        assert (optimal == (rows != i)).all()
    unbalanced = eta.copy()
    unbalanced[0] *= 0.5
    assert not certify(folds, unbalanced).optimal[0]


def test_exactness_step_repairs_a_bad_guess(rng):
    """From far too large sets the exchange finds most optima; what it finds is one."""
    case = noisy_case(rng, 30)
    folds = leave_out(case, np.arange(30))
    eta, solved = finish(folds, zero_start(folds), 2.0)
    assert solved.mean() > 0.9
    assert certify(folds, eta).optimal[solved].all()


@pytest.mark.parametrize("equal", [True, False])
def test_order_statistics_of_many_rows(equal):
    rng = np.random.default_rng(8)
    for _ in range(50):
        k, n = rng.integers(1, 5), rng.integers(1, 9)
        values = rng.integers(-3, 4, (k, n)).astype(float)
        weights = np.full((k, n), 0.1) if equal else rng.uniform(0.1, 2, (k, n))
        weights[:, 1:][rng.random((k, n - 1)) < 0.2] = 0.0
        levels = np.array([row[rng.random(n) < 0.5].sum() for row in weights])
        low, high = weighted_median_intervals(values, weights, levels)
        for i in range(k):
            there = weights[i] > 0
            wanted = weighted_median_interval(
                values[i][there], weights[i][there], levels[i]
            )
            assert (low[i], high[i]) == wanted
