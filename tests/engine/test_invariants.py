# SPDX-License-Identifier: BSD-3-Clause
"""What must not change the leave-one-out values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.agreement import deviation, margin_interval
from oracles.problems import Case, random_case
from solved import loo_walk

import leaveout as lo
from leaveout.engine._problem import Problem

SEEDS = st.integers(0, 2**32 - 1)


def draw(seed, **parts):
    return random_case(np.random.default_rng([seed, 5]), **parts)


def margins(case):
    """(low, value, high) of every left-out margin, (3, n)."""
    return np.array(margin_interval(loo_walk(Problem(*case)), case.y))


def assert_equal(found, wanted):
    assert deviation(found, wanted).max() <= 1e-7


def take(case, rows):
    K = case.K[np.ix_(rows, rows)]
    return Case(K, case.y[rows], case.C[rows], case.fit_intercept)


@given(SEEDS, st.sampled_from([1e-3, 0.1, 7.0, 1e4]))
def test_order_sign_scale_origin_and_halved_copies(seed, scale):
    case = draw(seed, max_n=30)
    n, wanted = len(case.y), margins(case)
    order = np.random.default_rng(seed).permutation(n)
    assert_equal(margins(take(case, order)), wanted[:, order])
    assert_equal(margins(case._replace(y=-case.y)), wanted)
    assert_equal(margins(case._replace(K=scale * case.K, C=case.C / scale)), wanted)
    if case.fit_intercept:
        assert_equal(margins(case._replace(K=case.K + 2.0)), wanted)
    twice = take(case, np.append(np.arange(n), n - 1))
    twice.C[-2:] /= 2
    if (case.y == case.y[-1]).sum() > 1:
        assert_equal(margins(twice)[:, : n - 1], wanted[:, : n - 1])


@pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")
@given(SEEDS)
def test_weight_zero_is_absent(seed):
    case = draw(seed, max_n=25)
    svc = lo.SVC(C=1.0, kernel="precomputed", fit_intercept=case.fit_intercept)
    zero = np.random.default_rng(seed).random(len(case.y)) < 0.2
    zero[[np.argmax(case.y > 0), np.argmax(case.y < 0)]] = False
    weights = np.where(zero, 0.0, case.C)
    whole = lo.leave_one_out(svc, case.K, case.y, sample_weight=weights)
    kept = np.flatnonzero(~zero)
    K, y, C, _ = take(case, kept)
    part = lo.leave_one_out(svc, K, y, sample_weight=C)
    for name in ("lower", "margins", "upper"):
        assert_equal(getattr(whole, name)[kept], getattr(part, name))


@given(SEEDS, st.booleans())
def test_threads_give_the_same_bits_and_change_no_input(seed, labels_only):
    case = draw(seed)
    for array in case[:3]:
        array.flags.writeable = False
    one, two = (
        loo_walk(Problem(*case), labels_only=labels_only, n_threads=k) for k in (1, 2)
    )
    for name in ("lower", "upper", "uncertified_by", "settled_by"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.counts == two.counts
