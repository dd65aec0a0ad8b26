# SPDX-License-Identifier: BSD-3-Clause
"""No certificate is wrong on the stress set, whatever leaves samples out.

The seeds are those that are hardest for the call or classifier beside them.
"""

import numpy as np
import pytest
from nightly.stress import ALLOWED, METHODS, draw, judge, truth_of
from nightly.stress_api import CALLS, judge_call
from nightly.stress_families import FAMILIES, draw_family
from nightly.stress_linear import (
    CLASSIFIERS,
    judge_classifier,
    loom_exactly,
    lpm_exactly,
)
from nightly.stress_mirror import MIRRORED, draw_mirror, judge_mirror
from oracles.problems import Case
from oracles.programs import lpm_range

import leaveout as lo

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning"),
]
FAIR = {*ALLOWED, "refused"}

CALL_SEEDS = {
    "groups, walk": [1, 16, 19, 28, 59, 60, 74, 79, 357, 375, 445],
    "groups, refit": [1, 21, 28, 74, 79, 102, 141, 147],
    "weight 0": [21, 74],
    "three classes": [87],
    "balanced by fold": [1, 21, 28, 79, 102, 141, 147],
    "pairs": [5, 74, 76, 81],
    "loo_path": [2, 8],
    "loo_curve": [2, 8, 11, 23],
    "suspects": [1, 16, 19, 21, 27, 28, 59, 60],
    "loo_bounds": [28, 60, 177, 231, 276, 309, 316, 322],
}
CLASSIFIER_SEEDS = {
    "LPMClassifier": [5, 6, 28, 59, 60, 264],
    "LOOMClassifier": [2, 6, 16, 34],
    "LLWClassifier": [28, 177, 203, 231, 276, 327, 349, 410, 452, 464, 477, 480, 5535],
}
FAMILY_SEEDS = {
    **{family: [0, 1, 2] for family in FAMILIES},
    "giants": [0, 1, 2, 9, 59, 65, 68, 79, 183, 342],
    "near_copies": [0, 1, 2, 27, 65, 199],
    "nearly_dependent": [0, 1, 2, 65],
}
# Classes whose bounds balance except in the last bits, which decide the optimal b.
BALANCED_SEEDS = [
    ("suspects", "few_places", 3),
    ("suspects", "mixed_sizes", 5),
    ("suspects", "ridge", 103),
    ("loo_bounds", "few_places", 112),
]
MIRROR_SEEDS = [1, 26, 30, 43, 49, 79, 127]


def pairs_of(table):
    return [(name, seed) for name, seeds in table.items() for seed in seeds]


def leave_out(case, method="auto"):
    svc = lo.SVC(kernel="precomputed", fit_intercept=case.fit_intercept)
    return lo.leave_one_out(svc, case.K, case.y, sample_weight=case.C, method=method)


@pytest.mark.parametrize(("call", "seed"), pairs_of(CALL_SEEDS))
def test_calls(call, seed):
    kind, case = draw(seed)
    assert set(judge_call(call, case, seed)) <= FAIR, kind


def test_every_call_has_seeds():
    assert CALL_SEEDS.keys() == CALLS.keys()
    assert CLASSIFIER_SEEDS.keys() == CLASSIFIERS.keys()


@pytest.mark.parametrize(
    ("call", "seed"), [("loo_path", 12), ("pairs", 21), ("pairs", 40)]
)
def test_calls_on_near_copies(call, seed):
    _, case = draw(seed, "nearly_equal")
    assert set(judge_call(call, case, seed)) <= FAIR


@pytest.mark.parametrize(("call", "family", "seed"), BALANCED_SEEDS)
def test_calls_where_boxes_nearly_balance(call, family, seed):
    assert set(judge_call(call, draw_family(family, seed), seed)) <= set(ALLOWED)


@pytest.mark.parametrize(("name", "seed"), pairs_of(CLASSIFIER_SEEDS))
def test_classifiers(name, seed):
    kind, case = draw(seed)
    assert set(judge_classifier(name, case)) <= FAIR, kind


@pytest.mark.parametrize("seed", [4, 5, 12])
def test_loom_on_near_copies(seed):
    _, case = draw(seed, "nearly_equal")
    assert set(judge_classifier("LOOMClassifier", case)) <= FAIR


def test_loom_where_a_weight_of_1e_minus_12_decides():
    x = np.array([3.0, -3.0, -3.0, 4.0])
    K = sum(np.outer(x**p, x**p) for p in range(6))
    case = Case(K, np.array([-1.0, -1, 1, -1]), np.array([6e4, 6e4, 6e-8, 6e4]), True)
    loom = lo.LOOMClassifier(kernel="precomputed", fit_intercept=True)
    found = lo.leave_one_out(loom, case.K, case.y, sample_weight=case.C)
    truths = [loom_exactly(case, r) for r in range(4)]
    assert set(judge(found, truths)) <= set(ALLOWED)


@pytest.mark.parametrize(("family", "seed"), pairs_of(FAMILY_SEEDS))
def test_methods_on_families(family, seed):
    case = draw_family(family, seed)
    truths = truth_of(case)
    for method in METHODS:
        assert set(judge(leave_out(case, method), truths)) <= set(ALLOWED), method


@pytest.mark.parametrize("seed", MIRROR_SEEDS)
@pytest.mark.parametrize("name", MIRRORED)
def test_a_sample_in_the_mirror_is_never_decided(name, seed):
    assert set(judge_mirror(name, *draw_mirror(seed))) <= FAIR


def test_the_exact_program_equals_another_solver(rng):
    compared = 0
    while compared < 5:
        kind, case = draw(int(rng.integers(10_000)), "whole") or (None, None)
        if kind is None or not 1e-3 < case.K.max() < 1e3 or len(case.y) > 5:
            continue
        case = case._replace(C=np.ones_like(case.C))
        rest = np.arange(1, len(case.y))
        if np.unique(case.y[rest]).size < 2:
            continue
        K, point = case.K[np.ix_(rest, rest)], case.K[0, rest]
        low, high = lpm_range(
            K, case.y[rest], case.C[rest], point, case.fit_intercept, slack=0.0
        )
        exact = lpm_exactly(case, 0)
        ends = sorted([case.y[0] * low, case.y[0] * high])
        assert [float(exact.low), float(exact.high)] == pytest.approx(ends, abs=1e-6)
        compared += 1
