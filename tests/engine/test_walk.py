# SPDX-License-Identifier: BSD-3-Clause
"""Walks and refits against an interior-point solver; failed walks are refitted."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.agreement import (
    assert_ambiguous,
    assert_intervals,
    assert_signs,
    deviation,
    margin_interval,
)
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, KERNELS, Case, gram, random_case
from sklearn.preprocessing import scale
from solved import SVC_METHODS, loo_refit, loo_walk

import leaveout as lo
from leaveout.engine import _walk
from leaveout.engine._problem import REFIT, SETTLED_BY, Problem
from leaveout.engine._solve import solve_svc
from leaveout.kernel._symmetric import first_equal_rows
from leaveout.methods import METHODS


def assert_exact(case, truth, where="", refits=0):
    """Intervals in values mode, signs in both modes, at most ``refits`` refits."""
    loo = loo_walk(Problem(*case))
    assert_intervals(loo, case.y, truth, where)
    assert_signs(case.y * loo.values, truth, where)
    assert loo.counts["refits"] <= refits, where
    assert loo.certified.all(), where
    labels = loo_walk(Problem(*case), labels_only=True)
    assert_signs(case.y * labels.values, truth, f"{where}, labels only")
    assert labels.counts["refits"] <= refits, where
    assert labels.counts["pivots"] <= loo.counts["pivots"], where


@pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    case = DEGENERATE[name]
    truth = loo_intervals(*case)
    assert_exact(case, truth, name)
    refitted = loo_refit(Problem(*case))
    assert_intervals(refitted, case.y, truth, name)
    assert refitted.certified.all()
    assert (refitted.settled_by == REFIT).all()
    if np.unique(case.y).size == 2:
        svc = lo.SVC(kernel="precomputed", fit_intercept=case.fit_intercept)
        result = lo.leave_one_out(svc, case.K, case.y, sample_weight=case.C)
        assert_ambiguous(result.ambiguous, truth, name)


@pytest.mark.parametrize("kernel", KERNELS)
def test_random_problems(kernel):
    rng = np.random.default_rng(len(kernel))
    for C in 3 * [1e-3, 1e-1, 1.0, 10.0, 100.0, 1e4]:
        case = random_case(rng, kernel=kernel, C=C)
        assert_exact(case, loo_intervals(*case), f"C={C}")


@pytest.mark.parametrize("n", [60, pytest.param(250, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_some_samples_of_larger_problems(kernel, n):
    rng = np.random.default_rng([len(kernel), n])
    for C in (1e-2, 1.0, 100.0, 1e4):
        case = random_case(rng, n=n, kernel=kernel, C=C)
        rows = rng.permutation(n)[: n // 6]
        truth = loo_intervals(*case, rows=rows)
        found = np.array(margin_interval(loo_walk(Problem(*case)), case.y))[:, rows]
        wanted = np.array([truth.low, truth.value, truth.high])
        assert deviation(found, wanted).max() <= 1e-7


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_many_random_problems(seed):
    rng = np.random.default_rng([seed, 31])
    for k in range(100):
        case = random_case(rng, max_n=60)
        assert_exact(case, loo_intervals(*case), f"seed {seed} problem {k}", refits=1)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("no_free_vector", -0.78, 1.02),
        ("identity_three_two", -0.9, 0.9),
        ("identity_three_two_weights", -0.9, -0.9),
        ("identity_two_two", -0.95, -0.95),
        ("singleton_class", -np.inf, -1.0),
    ],
)
def test_hand_computed_intervals(name, low, high):
    case = DEGENERATE[name]
    lower, _, upper = margin_interval(loo_walk(Problem(*case)), case.y)
    assert (lower[0], upper[0]) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize("seed", [7, 29, 36])
def test_points_in_the_hull_of_the_margin_do_not_enter_it(seed):
    """Integers, linear kernel: if M has full rank, the other points have rate 0.

    Where rounding decides otherwise the walk fails its check; the BLAS decides where.
    """
    rng = np.random.default_rng(seed)
    X = scale(rng.integers(0, 3, size=(80, 6)).astype(float))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0.8, 1.0, -1.0)
    case = Case(gram(X, "linear"), y, np.full(80, 500.0), True)
    assert_exact(case, loo_intervals(*case), refits=4)


def test_nearly_dependent_point_enters_and_leaves_at_once():
    """A pivot of 2e-12, undone by the next, leaves a rounding error of 1e-11."""
    case = random_case(np.random.default_rng([2, 257]), max_n=60)
    assert_exact(case, loo_intervals(*case), refits=1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("labels_only", [False, True])
def test_all_methods_agree(method, labels_only):
    """Each method, in both modes, has the signs of the walk's values."""
    rng = np.random.default_rng(12)
    for k in range(40):
        case = random_case(rng)
        wanted = loo_walk(Problem(*case))
        sure = (wanted.lower > 1e-8) | (wanted.upper < -1e-8)
        found = SVC_METHODS[method](Problem(*case), labels_only=labels_only)
        same = np.sign(found.values[sure]) == np.sign(wanted.values[sure])
        assert same.all(), f"problem {k}"
        if not labels_only and "values" in METHODS[method].takes:
            for name in ("lower", "values", "upper"):
                apart = deviation(getattr(found, name), getattr(wanted, name))
                assert apart.max() <= 1e-7, f"problem {k}"


def test_settled_by_names_what_happened():
    loo = loo_walk(Problem(*DEGENERATE["singleton_class"]))
    assert SETTLED_BY[loo.settled_by[0]] == "singleton"
    case = DEGENERATE["spread_weights"]
    labels = loo_walk(Problem(*case), labels_only=True)
    early = labels.settled_by == SETTLED_BY.index("negative_margin")
    assert early.any()
    assert (case.y * loo_walk(Problem(*case)).values < 0)[early].all()


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        ("duplicates_equal_labels", True),
        ("duplicates_opposite_labels", False),
        ("duplicates_unequal_boxes", False),
    ],
)
def test_duplicates_with_equal_labels_and_bounds_are_walked_once(name, shared):
    case = DEGENERATE[name]
    loo = loo_walk(Problem(*case, first_equal=first_equal_rows(case.K)))
    assert (loo.counts["shared"] > 0) == shared
    assert_intervals(loo, case.y, loo_intervals(*case))


@pytest.mark.parametrize("moves", [0.0, 0.5, 4.0, 1e9])
def test_near_sets_do_not_change_values(monkeypatch, moves):
    """However few samples are near, those that turn out to matter are added."""
    rng = np.random.default_rng(8)
    problems = [Problem(*random_case(rng)) for _ in range(40)]
    wanted = [loo_walk(problem) for problem in problems]
    monkeypatch.setattr(_walk, "ALL_NEAR", 2)
    monkeypatch.setattr(_walk, "NEAR_MOVES", moves)
    n_walks = n_refits = n_repeated = 0
    for problem, full in zip(problems, wanted, strict=True):
        found = loo_walk(problem)
        for name in ("lower", "upper"):
            one, two = getattr(found, name), getattr(full, name)
            np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-7)
        n_walks += found.counts["walks"] + found.counts["refits"]
        n_refits += found.counts["refits"]
        n_repeated += found.counts["repeated"]
    assert (n_repeated > 0) == (moves < 1e9)
    assert n_refits <= 0.05 * n_walks


def test_far_samples_are_checked_if_none_is_free(monkeypatch, rng):
    """b moves to an end of its interval, and a far sample may reach its kink there."""
    y = np.resize([1.0, -1.0], 40)
    for _ in range(5):
        X = rng.normal(size=(40, 3)) + 0.5 * y[:, None] * np.eye(3)[0]
        problem = Problem(gram(X, "rbf"), y, np.full(40, 0.1))
        assert not solve_svc(problem).free.any()
        wanted = loo_walk(problem)
        with monkeypatch.context() as patch:
            for name in ("ALL_NEAR", "NEAR_MOVES", "AT_THE_END"):
                patch.setattr(_walk, name, 0)
            found = loo_walk(problem)
        assert found.counts["repeated"] > 0
        np.testing.assert_allclose(found.lower, wanted.lower, atol=1e-9)
        np.testing.assert_allclose(found.upper, wanted.upper, atol=1e-9)


@pytest.mark.parametrize("labels_only", [False, True])
def test_threads_give_the_same_bits_and_change_no_input(labels_only, rng):
    for _ in range(30):
        case = random_case(rng)
        for array in case[:3]:
            array.flags.writeable = False
        one, two = (
            loo_walk(Problem(*case), labels_only=labels_only, n_threads=k)
            for k in (1, 2)
        )
        for name in ("lower", "upper", "uncertified_by", "settled_by"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        assert one.counts == two.counts


@pytest.fixture(scope="module")
def case_and_truth():
    """Noisy points without duplicates: every support vector has its own walk."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=40) > 0, 1.0, -1.0)
    case = (gram(X, "rbf"), y, np.full(40, 2.0), True)
    return case, loo_intervals(*case)


def count_correct_refits(case_and_truth):
    """Check that all values are correct; return how many are marked as refits."""
    case, truth = case_and_truth
    loo = loo_walk(Problem(*case))
    assert_intervals(loo, case[1], truth)
    assert loo.certified.all()
    assert (loo.settled_by == REFIT).sum() == loo.counts["refits"]
    return loo.counts["refits"]


@pytest.mark.parametrize(
    ("status", "every"),
    [(_walk.Status.FAILED, 1), (_walk.Status.STUCK, 1), (_walk.Status.FAILED, 3)],
)
def test_failed_walks_are_refitted(monkeypatch, case_and_truth, status, every):
    n_walks = loo_walk(Problem(*case_and_truth[0])).counts["walks"]

    def run_walks(*args):
        kernel(*args)
        _, _, _, _, values, _, _, _, states, *_ = args
        failed = np.flatnonzero(states == _walk.Status.DONE)[::every]
        states[failed], values[failed] = status, np.nan

    kernel = _walk.run_walks
    monkeypatch.setattr(_walk, "run_walks", run_walks)
    assert count_correct_refits(case_and_truth) == -(-n_walks // every)


@pytest.mark.parametrize("size", [1e-2, 1e-5, 1e-7])
def test_wrong_columns_are_detected(monkeypatch, case_and_truth, size):
    """Noise in the tableau fails the check at the end of a walk."""
    noise = np.random.default_rng(0)

    class Noisy(_walk.Tableau):
        def finish(self):
            super().finish()
            T = np.asarray(self.T)[: self.n_slots, : self.n_slots]
            T += size * noise.normal(size=T.shape)

    monkeypatch.setattr(_walk, "Tableau", Noisy)
    assert count_correct_refits(case_and_truth) > 0


def test_start_with_a_singular_margin(rng):
    """Both duplicates of a point are free: an optimum, but walks cannot start there."""
    rows = np.append(np.arange(20), np.arange(20))
    X, y = rng.normal(size=(20, 2)), np.resize([1.0, -1.0], 20)
    K = gram(X, "rbf")
    half = solve_svc(Problem(K, y, np.full(20, 4.0)))
    case = (K[np.ix_(rows, rows)], y[rows], np.full(40, 2.0), True)
    solution = replace(
        half,
        beta=half.beta[rows] / 2,
        state=half.state[rows],
        decision_values=half.decision_values[rows],
    )
    assert half.free.sum() > 2
    loo = loo_walk(Problem(*case), solution=solution)
    assert_intervals(loo, case[1], loo_intervals(*case))
    assert loo.certified.all()
    assert loo.counts["refits"] > 0


def test_a_coefficient_far_below_c_is_not_zero():
    """Without row 0 or 4, f is 0; 1/73 of beta is left when it is 1e-10 of C."""
    y, C = np.array([1.0, -1.0, 1.0]), np.full(3, 2.5e8)
    loo = loo_walk(Problem(np.full((3, 3), 73.0), y, C, False))
    assert np.all(~loo.certified | (np.abs(loo.values) < 0.5) | (y < 0))
    assert np.all(np.abs(loo.values[[0, 2]]) < 1e-3)
