# SPDX-License-Identifier: BSD-3-Clause
"""What must not change the leave-one-out values, and which way they may go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.agreement import deviation, margin_interval
from oracles.problems import Case, random_case
from solved import loo_walk

import leaveout as lo
from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc

SEEDS = st.integers(0, 2**32 - 1)


def draw(seed, **parts):
    return random_case(np.random.default_rng([seed, 5]), **parts)


def margins(case):
    """(low, value, high) of every left-out margin, (3, n)."""
    return np.array(margin_interval(loo_walk(Problem(*case)), case.y))


def assert_equal(found, wanted):
    assert deviation(found, wanted).max() <= 1e-7


@given(SEEDS)
def test_order_of_the_samples(seed):
    case = draw(seed)
    order = np.random.default_rng(seed).permutation(len(case.y))
    K = case.K[np.ix_(order, order)]
    permuted = Case(K, case.y[order], case.C[order], case.fit_intercept)
    assert_equal(margins(permuted), margins(case)[:, order])


@given(SEEDS)
def test_label_flip(seed):
    case = draw(seed)
    assert_equal(margins(case._replace(y=-case.y)), margins(case))


@given(SEEDS, st.sampled_from([1e-3, 0.1, 7.0, 1e4]))
def test_scale_of_the_kernel(seed, scale):
    case = draw(seed)
    scaled = case._replace(K=scale * case.K, C=case.C / scale)
    assert_equal(margins(scaled), margins(case))


@given(SEEDS)
def test_constant_added_to_the_kernel(seed):
    """With an intercept, <phi, phi'> + constant only moves the origin."""
    case = draw(seed, fit_intercept=True)
    assert_equal(margins(case._replace(K=case.K + 2.0)), margins(case))


@given(SEEDS)
def test_two_copies_with_half_the_box(seed):
    """The others see no difference; of the copies only one half is left out."""
    case = draw(seed, max_n=25)
    n = len(case.y)
    rows = np.append(np.arange(n), n - 1)
    C = case.C[rows]
    C[-2:] /= 2
    twice = Case(case.K[np.ix_(rows, rows)], case.y[rows], C, case.fit_intercept)
    if (case.y == case.y[-1]).sum() > 1:
        assert_equal(margins(twice)[:, : n - 1], margins(case)[:, : n - 1])


@pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")
@given(SEEDS)
def test_weight_zero_is_absent(seed):
    case = draw(seed, max_n=25)
    rng = np.random.default_rng(seed)
    svc = lo.SVC(C=1.0, kernel="precomputed", fit_intercept=case.fit_intercept)
    n = len(case.y)
    zero = rng.random(n) < 0.2
    zero[[np.argmax(case.y > 0), np.argmax(case.y < 0)]] = False
    weights = np.where(zero, 0.0, case.C)
    whole = lo.leave_one_out(svc, case.K, case.y, sample_weight=weights)
    kept = np.flatnonzero(~zero)
    part = lo.leave_one_out(
        svc, case.K[np.ix_(kept, kept)], case.y[kept], sample_weight=case.C[kept]
    )
    assert_equal(whole.margins[kept], part.margins)
    assert_equal(whole.lower[kept], part.lower)
    assert_equal(whole.upper[kept], part.upper)


@given(SEEDS)
def test_leaving_out_never_raises_the_margin_of_a_support_vector(seed):
    case = draw(seed)
    problem = Problem(*case)
    solution = solve_svc(problem)
    _, _, high = margin_interval(loo_walk(problem, solution=solution), case.y)
    low_b, high_b = np.subtract(solution.intercept_interval, solution.intercept)
    f = solution.decision_values
    full_low = np.where(case.y > 0, f + low_b, -(f + high_b))
    support = solution.alpha > 0
    slack = 1e-8 * np.maximum(1.0, np.abs(full_low))
    assert (high <= full_low + slack)[support].all()


@given(SEEDS, st.booleans())
def test_threads_give_the_same_bits(seed, labels_only):
    problem = Problem(*draw(seed))
    one = loo_walk(problem, labels_only=labels_only, n_threads=1)
    two = loo_walk(problem, labels_only=labels_only, n_threads=2)
    for name in ("values", "lower", "upper", "certified", "settled_by"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.counts["pivots"] == two.counts["pivots"]


@given(SEEDS)
def test_a_solution_at_hand_changes_nothing(seed):
    problem = Problem(*draw(seed))
    given_one = loo_walk(problem, solution=solve_svc(problem))
    np.testing.assert_array_equal(given_one.values, loo_walk(problem).values)
