# SPDX-License-Identifier: BSD-3-Clause
"""Left-out groups, and all values without a sample, against refits."""

import numpy as np
import pytest
from oracles.binary import svc_clarabel
from oracles.problems import DEGENERATE, Case, gram, random_case
from solved import loo_groups

from leaveout.engine import _walk
from leaveout.engine._problem import REFIT, Problem
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import Influence


def solve_without(case, rows, factors=(1.0, 1.0)):
    """Return the optimum without some samples, and K beta of all samples."""
    C = case.C * np.where(case.y > 0, factors[1], factors[0])
    rest = np.setdiff1d(np.flatnonzero(C), rows)
    K = case.K[np.ix_(rest, rest)]
    fit = svc_clarabel(K, case.y[rest], C[rest], case.fit_intercept)
    assert fit.kkt < 1e-9
    return fit, case.K[:, rest] @ fit.beta


def assert_groups(case, codes, where="", **options):
    """The intervals of left-out samples equal those of refits without their group."""
    loo = loo_groups(Problem(*case), codes, **options)
    factors = options.get("factors", np.ones((codes.max() + 1, 2)))
    for group in range(codes.max() + 1):
        rows = np.flatnonzero(codes == group)
        fit, g = solve_without(case, rows, factors[group])
        atol = 1e-7 * max(1.0, np.abs(g[rows]).max())
        for found, b in ((loo.lower, fit.b_low), (loo.upper, fit.b_high)):
            np.testing.assert_allclose(found[rows], g[rows] + b, 0, atol, err_msg=where)
    # A value that is 0 up to rounding has no certificate.
    assert loo.certified[np.abs(loo.values) > loo.counts["rounding"]].all()
    return loo


def draw_codes(rng, n):
    """Draw at least two groups of about three, numbered without gaps."""
    codes = rng.integers(0, max(2, n // 3), size=n)
    codes[:2] = [0, 1]
    return np.unique(codes, return_inverse=True)[1]


@pytest.mark.parametrize("seed", range(10))
def test_random_groups(seed):
    rng = np.random.default_rng(seed)
    for k in range(6):
        n = int(rng.integers(4, 26))
        case = random_case(rng, n, C=10 ** rng.uniform(-3, 3))
        assert_groups(case, draw_codes(rng, n), f"problem {k}")
        case.C[rng.integers(2, n)] = 0.0  # not trained on, but gets a value
        assert_groups(case, draw_codes(rng, n), f"problem {k}, one absent")


@pytest.mark.parametrize("name", [n for n, c in DEGENERATE.items() if len(c.y) > 3])
def test_degenerate_problems(name, rng):
    case = DEGENERATE[name]
    assert_groups(case, draw_codes(rng, len(case.y)))


@pytest.mark.parametrize("C", [1e-3, 0.2, 0.5])
def test_balanced_pairs_on_an_empty_margin(C, rng):
    """No sample is free and the fading beta sum to zero: b stays an interval."""
    K = gram(rng.normal(size=(12, 2)), "rbf")
    case = Case(K, np.repeat([1.0, -1.0], 6), np.full(12, C), True)
    assert assert_groups(case, np.tile(np.arange(6), 2)).counts["refits"] == 0


def test_large_groups_and_changed_bounds_are_refitted(rng, monkeypatch):
    case = random_case(rng, n=24, C=1.0, kernel="rbf", fit_intercept=True)
    codes = np.arange(24) % 3
    changed = assert_groups(case, codes, factors=rng.uniform(0.5, 2.0, size=(3, 2)))
    monkeypatch.setattr(_walk, "LARGEST_WALK", 2)
    for loo in (changed, assert_groups(case, codes)):
        assert loo.counts["refits"] == 3
        assert (loo.settled_by == REFIT).all()


def noisy_case(C, fit_intercept=True, absent=()):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(24, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=24) > 0, 1.0, -1.0)
    bounds = C * rng.uniform(0.5, 2.0, 24)
    bounds[list(absent)] = 0.0
    return Case(gram(X, "rbf"), y, bounds, fit_intercept)


def small_case(n_positive, n, C):
    X = np.random.default_rng(3).normal(size=(n, 2))
    y = np.where(np.arange(n) < n_positive, 1.0, -1.0)
    return Case(gram(X, "rbf"), y, np.full(n, C), True)


INFLUENCE_CASES = {
    **{f"C={C}": noisy_case(C) for C in (0.05, 1.0, 100.0)},
    "no_intercept": noisy_case(1.0, fit_intercept=False),
    "absent": noisy_case(2.0, absent=(0, 5, 11)),
    # Equal small bounds, one more positive: without it no sample is free.
    "middle_of_an_interval": small_case(5, 9, 0.01),
    "one_class_left": small_case(1, 8, 1.0),
}


@pytest.mark.parametrize("method", ["walk", "refit"])
@pytest.mark.parametrize("name", INFLUENCE_CASES)
def test_values_of_all_samples_without_one(name, method):
    case = INFLUENCE_CASES[name]
    problem, n = Problem(*case), len(case.y)
    solution = solve_svc(problem)
    influence = Influence(problem, solution, method=method)
    found, certified = influence.values_without(np.arange(n))
    assert certified.all()
    for r in range(n):
        fit, g = solve_without(case, [r])
        np.testing.assert_allclose(found[r], g + fit.b, atol=1e-7)
    change = found - solution.decision_values
    assert not change[case.C == 0.0].any()
    assert np.abs(change).max() > 1e-3
    rows = np.array([7, 3, 7, n - 1])
    again = Influence(problem, solution, method=method, n_threads=2)
    np.testing.assert_allclose(again.values_without(rows)[0], found[rows], atol=1e-10)
