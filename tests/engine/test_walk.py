# SPDX-License-Identifier: BSD-3-Clause
"""Walks against an interior point that solves every left-out problem anew."""

from functools import cache

import numpy as np
import pytest
from oracles.agreement import (
    assert_ambiguous,
    assert_intervals,
    assert_signs,
    margin_interval,
)
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, KERNELS, Case, gram, random_case
from sklearn.preprocessing import scale
from solved import loo_walk

import leaveout as lo
from leaveout.engine._problem import SETTLED_BY, Problem
from leaveout.kernel._symmetric import first_equal_rows

PENALTIES = [1e-3, 1e-1, 1.0, 10.0, 100.0, 1e4]


@cache
def truth_of(name):
    return loo_intervals(*DEGENERATE[name])


def assert_exact(case, truth, where="", refits=0):
    """Intervals in values mode, signs in both modes, nothing refitted but a few."""
    loo = loo_walk(Problem(*case))
    assert_intervals(loo, case.y, truth, where)
    assert_signs(case.y * loo.values, truth, where)
    assert loo.counts["refits"] <= refits, where
    assert loo.certified.all(), where
    labels = loo_walk(Problem(*case), labels_only=True)
    assert_signs(case.y * labels.values, truth, f"{where}, labels only")
    assert labels.counts["refits"] <= refits, where
    assert labels.counts["pivots"] <= loo.counts["pivots"], where


def classify(case):
    """The public function on a precomputed kernel; the boxes go in as weights."""
    svc = lo.SVC(C=1.0, kernel="precomputed", fit_intercept=case.fit_intercept)
    return lo.leave_one_out(svc, case.K, case.y, sample_weight=case.C)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    assert_exact(DEGENERATE[name], truth_of(name), name)


@pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")
@pytest.mark.parametrize(
    "name", [name for name, case in DEGENERATE.items() if len(np.unique(case.y)) == 2]
)
def test_ambiguous_flags_of_degenerate_problems(name):
    assert_ambiguous(classify(DEGENERATE[name]).ambiguous, truth_of(name), name)


@pytest.mark.parametrize("C", PENALTIES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_random_problems(kernel, C):
    rng = np.random.default_rng([len(kernel), int(1e3 * C)])
    for k in range(3):
        case = random_case(rng, kernel=kernel, C=C)
        assert_exact(case, loo_intervals(*case), f"problem {k}")


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_random_problems_of_sixty(fit_intercept, rng):
    for k, kernel in enumerate(KERNELS):
        C = 10 ** rng.uniform(-3, 4)
        case = random_case(rng, n=60, kernel=kernel, C=C, fit_intercept=fit_intercept)
        rows = np.sort(rng.permutation(60)[:20])
        truth = loo_intervals(*case, rows=rows)
        loo = loo_walk(Problem(*case))
        low, value, high = margin_interval(loo, case.y)
        np.testing.assert_allclose(low[rows], truth.low, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(value[rows], truth.value, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(high[rows], truth.high, rtol=1e-7, atol=1e-7)
        assert_signs(value[rows], truth, f"problem {k}")


@pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")
def test_ambiguous_flags_of_random_problems(rng):
    n_ambiguous = 0
    for k in range(25):
        C = 10 ** rng.uniform(-3, 0)  # bounded alphas: b is free more often
        case = random_case(rng, C=C, max_n=20, fit_intercept=True)
        truth = loo_intervals(*case)
        res = classify(case)
        assert_ambiguous(res.ambiguous, truth, f"problem {k}")
        n_ambiguous += res.n_ambiguous
    assert n_ambiguous >= 10


def test_hand_computed_intervals():
    for name, row, low, high in (
        ("no_free_vector", 0, -0.78, 1.02),
        ("identity_three_two", 0, -0.9, 0.9),
        ("identity_three_two_weights", 0, -0.9, -0.9),
        ("identity_two_two", 0, -0.95, -0.95),
        ("singleton_class", 0, -np.inf, -1.0),
    ):
        case = DEGENERATE[name]
        lower, _, upper = margin_interval(loo_walk(Problem(*case)), case.y)
        assert lower[row] == pytest.approx(low, abs=1e-12), name
        assert upper[row] == pytest.approx(high, abs=1e-12), name


def test_majority_by_one_makes_every_majority_point_ambiguous():
    case = DEGENERATE["majority_by_one_tiny_C"]
    np.testing.assert_array_equal(classify(case).ambiguous, case.y > 0)


def test_settled_by_names_what_happened():
    case = DEGENERATE["singleton_class"]
    loo = loo_walk(Problem(*case))
    assert SETTLED_BY[loo.settled_by[0]] == "singleton"
    names = {SETTLED_BY[code] for code in loo.settled_by}
    assert names <= {"singleton", "zero_alpha", "first_segment", "walk"}
    case = DEGENERATE["spread_weights"]
    loo = loo_walk(Problem(*case), labels_only=True)
    full = loo_walk(Problem(*case))
    early = loo.settled_by == SETTLED_BY.index("negative_margin")
    assert early.any()
    assert (case.y * full.values < 0)[early].all()


def test_copies_are_walked_once():
    case = DEGENERATE["duplicates_equal_labels"]
    loo = loo_walk(Problem(*case, first_equal=first_equal_rows(case.K)))
    assert loo.counts["shared"] > 0
    np.testing.assert_allclose(loo.values[::2], loo.values[1::2], rtol=1e-12)
    case = DEGENERATE["duplicates_unequal_boxes"]
    unequal = loo_walk(Problem(*case, first_equal=first_equal_rows(case.K)))
    assert unequal.counts["shared"] == 0


@pytest.mark.parametrize("seed", [7, 29, 36])
def test_points_in_the_hull_of_the_margin_do_not_enter_it(seed):
    """Whole numbers, linear kernel: with M of full rank the others have rate 0."""
    rng = np.random.default_rng(seed)
    X = scale(rng.integers(0, 3, size=(80, 6)).astype(float))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0.8, 1.0, -1.0)
    case = Case(gram(X, "linear"), y, np.full(80, 500.0), True)
    assert_exact(case, loo_intervals(*case))


def test_nearly_dependent_point_enters_and_leaves_at_once():
    """A pivot of 2e-12, taken back by the next: nothing of it must remain.

    What remains is rounding of 1e-11: one walk is solved anew.
    """
    case = random_case(np.random.default_rng([2, 257]), max_n=60)
    assert_exact(case, loo_intervals(*case), refits=1)


def test_inputs_are_untouched(rng):
    case = random_case(rng, n=20, kernel="rbf", C=3.0)
    for array in case[:3]:
        array.flags.writeable = False
    loo_walk(Problem(*case), n_threads=2)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_many_random_problems(seed):
    rng = np.random.default_rng([seed, 31])
    for k in range(100):
        case = random_case(rng, max_n=60)
        where = f"seed {seed} problem {k}"
        assert_exact(case, loo_intervals(*case), where, refits=1)


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0, 1e4])
def test_larger_problems(kernel, C):
    rng = np.random.default_rng([len(kernel), int(1e2 * C)])
    case = random_case(rng, n=250, kernel=kernel, C=C)
    rows = np.sort(rng.permutation(250)[:40])
    truth = loo_intervals(*case, rows=rows)
    loo = loo_walk(Problem(*case))
    low, value, high = margin_interval(loo, case.y)
    np.testing.assert_allclose(low[rows], truth.low, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(value[rows], truth.value, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(high[rows], truth.high, rtol=1e-7, atol=1e-7)
    assert loo.counts["refits"] == 0
