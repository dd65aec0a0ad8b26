# SPDX-License-Identifier: BSD-3-Clause
"""Whole groups left out, against solved problems without them."""

import numpy as np
import pytest
from oracles.binary import svc_clarabel
from oracles.problems import DEGENERATE, random_case
from solved import loo_groups, loo_refit

from leaveout.engine import _walk as module
from leaveout.engine._problem import SETTLED_BY, Problem


def random_codes(rng, n):
    """Groups of about three, numbered without gaps, at least two of them."""
    codes = rng.integers(0, max(2, n // 3), size=n)
    codes[:2] = [0, 1]
    return np.unique(codes, return_inverse=True)[1]


def assert_equals_oracle(case, codes, loo, where):
    """The interval of f of every left-out sample is that of a machine without it."""
    K, y, C, fit_intercept = case
    for group in range(codes.max() + 1):
        rows, others = np.flatnonzero(codes == group), np.flatnonzero(codes != group)
        if fit_intercept and np.unique(y[others]).size < 2:
            sign = y[others[0]]
            np.testing.assert_array_equal(loo.values[rows], sign, err_msg=where)
            continue
        fit = svc_clarabel(
            K[np.ix_(others, others)], y[others], C[others], fit_intercept
        )
        g = K[np.ix_(rows, others)] @ fit.beta
        atol = 1e-7 * max(1.0, np.abs(g).max())
        for mine, b in ((loo.lower, fit.b_low), (loo.upper, fit.b_high)):
            np.testing.assert_allclose(
                mine[rows], g + b, rtol=0, atol=atol, err_msg=where
            )


@pytest.mark.parametrize("seed", range(10))
def test_random_problems(seed):
    rng = np.random.default_rng(seed)
    for k in range(6):
        case = random_case(rng, max_n=25, C=10 ** rng.uniform(-3, 3))
        if len(case.y) < 4:
            continue
        codes = random_codes(rng, len(case.y))
        loo = loo_groups(Problem(*case), codes)
        # A value that is 0 to rounding has no certificate.
        assert loo.certified[np.abs(loo.values) > loo.counts["rounding"]].all()
        assert_equals_oracle(case, codes, loo, f"problem {k}")


@pytest.mark.parametrize("name", [n for n, c in DEGENERATE.items() if len(c.y) > 3])
def test_degenerate_problems(name, rng):
    case = DEGENERATE[name]
    codes = random_codes(rng, len(case.y))
    loo = loo_groups(Problem(*case), codes)
    assert_equals_oracle(case, codes, loo, name)


def test_balanced_pairs_on_an_empty_margin(rng):
    """Nobody is free and what fades sums to zero: b stays an interval on the way."""
    n = 12
    X = rng.normal(size=(n, 2))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    y = np.repeat([1.0, -1.0], n // 2)
    for C in (1e-3, 0.2, 0.5):
        case = (K, y, np.full(n, C), True)
        codes = np.tile(np.arange(n // 2), 2)
        loo = loo_groups(Problem(*case), codes)
        assert loo.counts["refits"] == 0
        assert_equals_oracle(case, codes, loo, f"C={C}")


def test_single_samples_are_leave_one_out(rng):
    case = random_case(rng, n=20, C=1.0)
    loo = loo_groups(Problem(*case), np.arange(20))
    truth = loo_refit(Problem(*case))
    np.testing.assert_allclose(loo.lower, truth.lower, rtol=0, atol=1e-9)
    np.testing.assert_allclose(loo.upper, truth.upper, rtol=0, atol=1e-9)


def test_large_groups_are_refitted_and_counted(rng, monkeypatch):
    monkeypatch.setattr(module, "LARGEST_WALK", 2)
    case = random_case(rng, n=24, C=1.0, kernel="rbf")
    codes = np.arange(24) % 3
    loo = loo_groups(Problem(*case), codes)
    assert loo.counts["refits"] == 3
    assert {SETTLED_BY[code] for code in loo.settled_by} == {"refit"}
    assert_equals_oracle(case, codes, loo, "refitted")


def test_absent_samples_are_answered_with_their_group(rng):
    """A sample with C = 0 gets the value of the machine without its group."""
    case = random_case(rng, n=18, C=2.0, kernel="rbf", fit_intercept=True)
    codes = random_codes(rng, 18)
    C = case.C.copy()
    C[5] = 0.0
    loo = loo_groups(Problem(case.K, case.y, C, True), codes)
    others = np.flatnonzero((codes != codes[5]) & (C > 0))
    fit = svc_clarabel(case.K[np.ix_(others, others)], case.y[others], C[others], True)
    expected = case.K[5, others] @ fit.beta + 0.5 * (fit.b_low + fit.b_high)
    assert loo.values[5] == pytest.approx(expected, abs=1e-7)


def test_changed_boxes(rng):
    """Factors multiply the boxes of both classes while the group is out."""
    case = random_case(rng, n=16, C=1.0, kernel="rbf", fit_intercept=True)
    codes = np.arange(16) % 4
    factors = rng.uniform(0.5, 2.0, size=(4, 2))
    loo = loo_groups(Problem(*case), codes, factors=factors)
    for group in range(4):
        C = case.C * np.where(case.y > 0, factors[group, 1], factors[group, 0])
        rows, others = np.flatnonzero(codes == group), np.flatnonzero(codes != group)
        K = case.K[np.ix_(others, others)]
        fit = svc_clarabel(K, case.y[others], C[others], True)
        g = case.K[np.ix_(rows, others)] @ fit.beta
        np.testing.assert_allclose(loo.lower[rows], g + fit.b_low, rtol=0, atol=1e-7)
        np.testing.assert_allclose(loo.upper[rows], g + fit.b_high, rtol=0, atol=1e-7)
