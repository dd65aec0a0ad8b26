# SPDX-License-Identifier: BSD-3-Clause
"""Smoothed hinge, majorise-minimise steps, exactness step, certificate."""

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
    box_share,
    certify,
    finish,
    minimise,
    smoothed_hinge,
    solve_family,
)


def family_of(case, rows):
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


def zero_start(family):
    zeros = np.zeros_like(family.boxes)
    return Iterate(zeros, zeros.copy(), np.zeros(len(family)))


def smoothed_objective(family, k, eta, b, tau):
    g = family.K @ eta
    loss = smoothed_hinge(family.y * (g + family.offsets[k] + b), tau)
    return 0.5 * eta @ g + family.boxes[k] @ loss + b * family.totals[k]


def test_hinge_is_smooth_and_near():
    u = np.linspace(-3, 3, 601)
    for tau in (1.0, 0.1, 1e-3):
        value, hinge = smoothed_hinge(u, tau), np.maximum(0, 1 - u)
        assert (value >= hinge - 1e-15).all()
        assert (value <= hinge + tau / 4 + 1e-15).all()
        step = 1e-6
        slope = smoothed_hinge(u + step, tau) - smoothed_hinge(u - step, tau)
        np.testing.assert_allclose(
            -box_share(u, tau), slope / (2 * step), atol=2 * step / tau + 1e-9
        )


@pytest.mark.parametrize("bias", [True, False])
def test_step_is_that_of_the_explicit_majoriser(bias, rng):
    """P^-1 gradient with P = Z'D Z + blockdiag(0, K), formed and solved."""
    case = random_case(rng, n=12, kernel="rbf", C=2.0, fit_intercept=bias)
    family, tau = family_of(case, [0, 3]), 0.3
    start = zero_start(family)
    start.eta[:] = 0.1 * rng.normal(size=start.eta.shape)
    start.values[:], start.b[:] = start.eta @ case.K, 0.2 if bias else 0.0
    eta, b = start.eta.copy(), start.b.copy()
    minimise(family, Majoriser.of(case.K, case.C, tau, bias), start, 0.0, 1)
    D, n = case.C / (2 * tau), len(case.y)
    Z = np.column_stack([np.ones(n), case.K]) if bias else case.K
    P = Z.T @ (D[:, None] * Z)
    P[-n:, -n:] += case.K
    for k in range(2):
        slope = -case.y * family.boxes[k]
        slope *= box_share(case.y * (case.K @ eta[k] + b[k]), tau)
        gradient = Z.T @ slope
        gradient[-n:] += case.K @ eta[k]
        step = np.linalg.solve(P, gradient)
        np.testing.assert_allclose(start.eta[k], eta[k] - step[-n:], atol=1e-7)
        np.testing.assert_allclose(start.values[k], case.K @ start.eta[k], atol=1e-7)
        if bias:
            assert start.b[k] == pytest.approx(b[k] - step[0], abs=1e-7)


def test_steps_never_increase_the_smoothed_objective(rng):
    for _ in range(30):
        case = random_case(rng, C=10 ** rng.uniform(-2, 1))
        family, tau = family_of(case, [0]), 10 ** rng.uniform(-2, 0)
        majoriser = Majoriser.of(case.K, case.C, tau, case.fit_intercept)
        at = zero_start(family)
        values = []
        for _ in range(6):  # each call begins without momentum
            values.append(smoothed_objective(family, 0, at.eta[0], at.b[0], tau))
            minimise(family, majoriser, at, 0.0, 1)
        assert (np.diff(values) <= 1e-12 * max(1.0, values[0])).all()


def test_momentum_ends_at_the_smoothed_optimum(rng):
    case = random_case(rng, n=10, kernel="rbf", C=1.0, fit_intercept=True)
    family, tau = family_of(case, [2]), 0.2
    at = zero_start(family)
    minimise(family, Majoriser.of(case.K, case.C, tau, True), at, 1e-12, 20_000)

    def objective(x):
        return smoothed_objective(family, 0, x[1:], x[0], tau)

    truth = optimize.minimize(objective, np.zeros(11), method="BFGS", tol=1e-10)
    assert objective(np.append(at.b, at.eta[0])) <= truth.fun + 1e-9
    assert abs(at.eta[0].sum()) < 1e-9
    assert at.eta[0, 2] == pytest.approx(0.0, abs=1e-9)


def test_family_is_solved_as_by_an_interior_point():
    rng = np.random.default_rng(5)
    n_solved = n_machines = 0
    for k in range(15):
        case = random_case(rng, max_n=25, C=10 ** rng.uniform(-2, 2))
        rows = np.arange(len(case.y))
        if case.fit_intercept:
            rows = rows[[np.unique(np.delete(case.y, r)).size == 2 for r in rows]]
        family = family_of(case, rows)
        smoothed = solve_family(family, case.C, zero_start(family))
        proof = certify(family, smoothed.eta)
        n_solved += np.sum(smoothed.solved)
        n_machines += len(rows)
        for i in np.flatnonzero(proof.optimal)[:4]:
            rest = np.delete(np.arange(len(case.y)), rows[i])
            truth = svc_clarabel(
                case.K[np.ix_(rest, rest)], case.y[rest], case.C[rest],
                case.fit_intercept,
            )  # fmt: skip
            where = f"problem {k}, sample {rows[i]}"
            np.testing.assert_allclose(
                proof.values[i][rest], truth.g, rtol=1e-6, atol=1e-6, err_msg=where
            )
            objective = pytest.approx(truth.objective, rel=1e-8)
            assert proof.objective[i] == objective, where
            if case.fit_intercept:
                ends = [proof.low[i], proof.high[i]]
                np.testing.assert_allclose(
                    ends, [truth.b_low, truth.b_high], atol=1e-6, err_msg=where
                )
    assert n_solved > 0.8 * n_machines


def test_certificate_refuses_what_is_not_optimal(rng):
    case = noisy_case(rng, 20)
    rows = np.arange(20)
    family = family_of(case, rows)
    eta = solve_family(family, case.C, zero_start(family)).eta
    assert certify(family, eta).optimal.all()
    free = (np.abs(eta) > 1e-3) & (np.abs(eta) < family.boxes - 1e-3)
    for i in rows:
        two = np.flatnonzero(free[i])[:2]
        moved = eta.copy()
        moved[i, two] += [1e-5, -1e-5]  # feasible, and off by a gap of 1e-10
        optimal = certify(family, moved).optimal
        assert two.size == 2
        assert (optimal == (rows != i)).all()
    unbalanced = eta.copy()
    unbalanced[0] *= 0.5
    assert not certify(family, unbalanced).optimal[0]


def test_exactness_step_repairs_a_bad_guess(rng):
    """From far too large sets the exchange finds most optima; what it finds is one."""
    case = noisy_case(rng, 30)
    family = family_of(case, np.arange(30))
    eta, solved = finish(family, zero_start(family), 2.0)
    assert solved.mean() > 0.9
    assert certify(family, eta).optimal[solved].all()


@pytest.mark.parametrize("equal", [True, False])
def test_order_statistics_of_many_rows(equal):
    rng = np.random.default_rng(8)
    for _ in range(200):
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
