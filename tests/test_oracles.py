# SPDX-License-Identifier: BSD-3-Clause
"""The oracles against each other, and against numbers computed by hand."""

import numpy as np
import pytest
from oracles.binary import (
    certificate,
    gap_rounding,
    intercept_interval,
    loo_intervals,
    midpoint,
    svc_clarabel,
    svc_libsvm,
)
from oracles.problems import DEGENERATE, KERNELS, random_case
from oracles.rational import (
    is_exactly_psd,
    leave_out_exactly,
)


def assert_optimal(case, optimum):
    rounding = gap_rounding(case.K, case.C, optimum.beta, optimum.objective)
    assert optimum.kkt <= 1e-10
    assert abs(optimum.gap) <= 1e-10 + rounding


@pytest.mark.parametrize("name", DEGENERATE)
def test_clarabel_is_optimal_on_degenerate_problems(name):
    assert_optimal(DEGENERATE[name], svc_clarabel(*DEGENERATE[name]))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_clarabel_is_optimal_on_random_problems(kernel, fit_intercept):
    rng = np.random.default_rng(0)
    for _ in range(10):
        case = random_case(rng, kernel=kernel, fit_intercept=fit_intercept)
        assert_optimal(case, svc_clarabel(*case))


def test_clarabel_agrees_with_libsvm():
    rng = np.random.default_rng(1)
    n_converged = 0
    for _ in range(40):
        case = random_case(rng, C=10 ** rng.uniform(-3, 2), fit_intercept=True)
        K, y, C, _ = case
        optimum = svc_clarabel(*case)
        beta, b, f, converged = svc_libsvm(*case)
        if not converged:  # 1e-10 is below what single-precision kernel values allow
            continue
        n_converged += 1
        # g is unique even if alpha and b are not.
        scale = np.maximum(1, np.abs(K) @ np.abs(beta))
        np.testing.assert_allclose((f - b) / scale, optimum.g / scale, atol=1e-5)
        assert optimum.b_low - 1e-4 <= b <= optimum.b_high + 1e-4
        primal = certificate(K, y, C, y * np.clip(y * beta, 0, C), b)[0]
        assert optimum.objective * (1 - 1e-12) <= primal
        assert primal <= optimum.objective * (1 + 1e-3)
    assert n_converged >= 38


def test_certificate_detects_a_wrong_solution():
    K, y, C, _ = DEGENERATE["spread_weights"]
    optimum = svc_clarabel(K, y, C)
    wrong = optimum.beta.copy()
    free = np.flatnonzero((optimum.alpha > 0.1 * C) & (optimum.alpha < 0.9 * C))[:2]
    wrong[free] += [1e-4 * C.min(), -1e-4 * C.min()]
    _, gap, kkt = certificate(K, y, C, wrong, optimum.b)
    assert kkt > 1e-7
    assert gap > 1e-9
    _, gap, kkt = certificate(K, y, C, optimum.beta, optimum.b + 1e-3)
    assert kkt > 1e-4


def test_intercept_interval_by_brute_force():
    rng = np.random.default_rng(2)
    for _ in range(50):
        n = int(rng.integers(2, 12))
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        g, C = rng.normal(size=n).round(1), rng.choice([0.5, 1.0, 2.0], n)
        low, high = intercept_interval(g, y, C)

        def loss(b, g=g, y=y, C=C):
            return C @ np.maximum(0, 1 - y * (g + b))

        best = min(loss(b) for b in y - g)  # piecewise linear: best at a breakpoint
        for b in (low, high, midpoint(low, high)):
            if np.isfinite(b):
                assert loss(b) == pytest.approx(best, abs=1e-12)
        if np.isfinite(low):
            assert loss(low - 1e-3) > best + 1e-6
        if np.isfinite(high):
            assert loss(high + 1e-3) > best + 1e-6


@pytest.mark.parametrize(
    ("name", "row", "low", "high"),
    [
        ("no_free_vector", 0, -0.78, 1.02),
        ("identity_three_two", 0, -0.9, 0.9),
        ("identity_three_two_weights", 0, -0.9, -0.9),
        ("identity_two_two", 0, -0.95, -0.95),
        ("singleton_class", 0, -np.inf, -1.0),
    ],
)
def test_hand_computed_leave_one_out_intervals(name, row, low, high):
    loo = loo_intervals(*DEGENERATE[name], rows=[row])
    assert loo.low[0] == pytest.approx(low, abs=1e-10)
    assert loo.high[0] == pytest.approx(high, abs=1e-10)
    assert loo.value[0] == pytest.approx(max(low, -1.0) / 2 + high / 2, abs=1e-10)
    assert loo.error[0] == (high < 0)
    assert loo.ambiguous[0] == (low <= 0 <= high)


SMALL = {
    name: case
    for name, case in DEGENERATE.items()
    if len(case.y) <= 12 and is_exactly_psd(case.K)
}


def assert_same_intervals(case, where):
    truth = loo_intervals(*case)
    for r, exact in enumerate(leave_out_exactly(*case)):
        for found, wanted in ((exact.low, truth.low[r]), (exact.high, truth.high[r])):
            if found is None:
                assert np.isinf(wanted), where
            else:
                assert float(found) == pytest.approx(wanted, rel=1e-7, abs=1e-7), where


@pytest.mark.parametrize("name", SMALL)
def test_rational_on_degenerate_problems(name):
    assert_same_intervals(SMALL[name], name)


def test_rational_on_random_problems(rng):
    compared = 0
    while compared < 15:
        case = random_case(rng, max_n=8)
        if is_exactly_psd(case.K):
            assert_same_intervals(case, compared)
            compared += 1


def test_semi_definite_in_exact_arithmetic():
    x = np.array([[1.0], [2.0], [3.0]])
    assert is_exactly_psd(x @ x.T)
    assert not is_exactly_psd(x @ x.T - np.diag([0.0, 2.0**-50, 0.0]))
    assert not is_exactly_psd([[0.0, 1.0], [1.0, 5.0]])
