# SPDX-License-Identifier: BSD-3-Clause
"""Left-out values that are 0 by symmetry: flagged, whatever the conditioning."""

import numpy as np
import pytest
from oracles.problems import Case
from oracles.rational import leave_out_exactly
from torture import ALLOWED, judge
from torture_linear import loom_exactly
from torture_mirror import MACHINES, draw_mirror, put_to_mirror

import leaveout as lo

# Certified labels of LPMClassifier and LOOMClassifier were once wrong at these.
SEEDS = [1, 26, 30, 43, 49, 79, 127]


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MACHINES)
def test_a_sample_in_the_mirror_is_never_decided(name, seed):
    words = put_to_mirror(name, *draw_mirror(seed))
    assert set(words) <= {*ALLOWED, "refused"}


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_loom_does_not_certify_what_one_weight_in_1e12_decides():
    """The gap was compared with the largest weight, beside which these are none."""
    x = np.array([3.0, -3.0, -3.0, 4.0])
    K = sum(np.outer(x**p, x**p) for p in range(6))
    case = Case(K, np.array([-1.0, -1, 1, -1]), np.array([6e4, 6e4, 6e-8, 6e4]), True)
    loom = lo.LOOMClassifier(kernel="precomputed", fit_intercept=True)
    found = lo.leave_one_out(loom, case.K, case.y, sample_weight=case.C)
    truths = [loom_exactly(case, r) for r in range(4)]
    assert set(judge(found, truths)) <= set(ALLOWED)


def test_samples_far_larger_than_the_machine():
    """Never trained on, their f was taken for next to a label, as in the machine."""
    x = np.array([1.0, -1.0, 512.0, -(2.0**18)])
    K = np.ldexp(np.outer(x, x), -36)
    y, weights = np.array([1.0, -1, -1, 1]), np.array([1.0, 1, 0, 0]) / 64
    with pytest.warns(lo.SingletonClassWarning):
        found = lo.leave_one_out(
            lo.SVC(kernel="precomputed"), K, y, sample_weight=weights
        )
    assert found.ambiguous[2:].all()  # both trained on are bounded: b is in [-1, 1]
    assert found.upper[2:] == pytest.approx([1.0, 1.0], abs=1e-6)


@pytest.mark.parametrize("method", ["walk", "refit"])
def test_groups_with_a_sample_far_larger_than_the_others(method):
    """Solved at its scale, the others' machine was rounding: values 1e-5 off."""
    X = np.array([[2.0, 1], [0, -2], [-1, -3], [-3, -3], [-2, 2]])
    X *= 2.0 ** np.array([[4], [-23], [-23], [-23], [-23]])
    y, C = np.array([1.0, 1, 1, -1, -1]), np.array([8.0, 8, 8, 12, 12])
    groups = [0, 0, 1, 2, 3]
    found = lo.leave_one_out(
        lo.SVC(kernel="precomputed"), X @ X.T, y, sample_weight=C, groups=groups,
        method=method,
    )  # fmt: skip
    truths = leave_out_exactly(X @ X.T, y, C, groups=groups)
    assert judge(found, truths) == ["exact"] * 5


def test_rounding_where_some_are_far_smaller():
    """Which of the small ones are support vectors no digit tells; f of the large did.

    It was 2e-5 off, and certified to 1e-7.
    """
    x = np.array([2.0**6, 2.0**-22, 2.0**5, 2.0**-22, 0.0, -(2.0**-23)])
    K, y = np.outer(x, x), np.array([-1.0, -1, 1, -1, 1, -1])
    C = np.array([6.0, 2, 2, 2, 6, 6])
    found = lo.leave_one_out(lo.SVC(kernel="precomputed"), K, y, sample_weight=C)
    assert judge(found, leave_out_exactly(K, y, C)) == ["exact"] * 6
    assert found.counts["rounding"] < 1e-2
