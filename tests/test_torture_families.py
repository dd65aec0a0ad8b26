# SPDX-License-Identifier: BSD-3-Clause
"""No certified value is wrong, whatever the family; at these seeds some once were."""

import numpy as np
import pytest
from torture import ALLOWED, METHODS, judge, truth_of
from torture_faces import put_to
from torture_families import FAMILIES, draw_family

import leaveout as lo

ONCE_WRONG = {
    "giants": [9, 59, 65, 68, 79, 183, 342],
    "near_copies": [27, 65, 199],
    "nearly_dependent": [65],
}
# Boxes that balance all but the last bits: which b is optimal hangs on these.
LAST_BITS = {
    "suspects": [("few_places", 3), ("mixed_sizes", 5), ("ridge", 103)],
    "loo_bounds": [("few_places", 112)],
}


def leave_out(case, method):
    svc = lo.SVC(kernel="precomputed", fit_intercept=case.fit_intercept)
    return lo.leave_one_out(svc, case.K, case.y, sample_weight=case.C, method=method)


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize(
    ("family", "seed"),
    [
        *((family, seed) for family in FAMILIES for seed in range(3)),
        *((family, seed) for family, seeds in ONCE_WRONG.items() for seed in seeds),
    ],
)
def test_certified_values(family, seed):
    case = draw_family(family, seed)
    truths = truth_of(case)
    for method in METHODS:
        assert set(judge(leave_out(case, method), truths)) <= set(ALLOWED), method


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize(
    ("face", "family", "seed"),
    [(face, *problem) for face, problems in LAST_BITS.items() for problem in problems],
)
def test_boxes_that_balance_all_but_the_last_bits(face, family, seed):
    words = put_to(face, draw_family(family, seed), seed)
    assert set(words) <= set(ALLOWED)


def test_boxes_that_balance_to_the_last_bit_are_certified():
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    found = lo.suspects(lo.SVC(kernel="linear", C=1e-3), x, np.sign(x[:, 0]))
    assert found.certified.all()
