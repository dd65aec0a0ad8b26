# SPDX-License-Identifier: BSD-3-Clause
"""Pairs left out together, against solved problems without them."""

import numpy as np
import pytest
from oracles.binary import svc_clarabel
from oracles.problems import DEGENERATE, random_case

from leaveout.assess._pair_auc import loo_pairs
from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc


def pairs(case, **options):
    problem = Problem(*case)
    return loo_pairs(problem, solve_svc(problem), **options)


def brute_force(case):
    """Share of pairs in which the positive sample is above, ties one half."""
    K, y, C, fit_intercept = case
    won = []
    for i in np.flatnonzero(y > 0):
        for j in np.flatnonzero(y < 0):
            others = np.setdiff1d(np.arange(len(y)), [i, j])
            fit = svc_clarabel(
                K[np.ix_(others, others)], y[others], C[others], fit_intercept
            )
            above = (K[i, others] - K[j, others]) @ fit.beta
            won.append(0.5 if abs(above) < 1e-9 else float(above > 0))
    return np.mean(won)


@pytest.mark.parametrize("seed", range(4))
def test_random_problems(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng, n=int(rng.integers(6, 15)), C=10 ** rng.uniform(-3, 3))
    case.y[:4] = [1.0, 1.0, -1.0, -1.0]
    found = pairs(case)
    assert found.certified
    assert found.auc == pytest.approx(brute_force(case), abs=1e-12)


def test_forty_samples(rng):
    case = random_case(rng, n=40, C=1.0, kernel="rbf", fit_intercept=True)
    assert pairs(case).auc == pytest.approx(brute_force(case), abs=1e-12)


@pytest.mark.parametrize(
    "name", ["balanced_tiny_C", "majority_by_one_tiny_C", "duplicates_equal_labels"]
)
def test_degenerate_problems(name):
    case = DEGENERATE[name]
    found = pairs(case)
    assert found.auc == pytest.approx(brute_force(case), abs=1e-12)


def test_wins_are_a_score_with_this_area(rng):
    """The mean share of wins of the positives is the area."""
    case = random_case(rng, n=30, C=1.0, kernel="rbf")
    found = pairs(case)
    assert found.wins[case.y > 0].mean() == pytest.approx(found.auc)
    assert 1 - found.wins[case.y < 0].mean() == pytest.approx(found.auc)
    assert float(found) == found.auc
    assert "AUC" in str(found)


def test_batches_and_threads_change_nothing(rng, monkeypatch):
    case = random_case(rng, n=20, C=1.0, kernel="rbf")
    whole = pairs(case)
    monkeypatch.setattr("leaveout.assess._pair_auc.PAIRS_AT_A_TIME", 7)
    parts = pairs(case, n_threads=2)
    np.testing.assert_array_equal(whole.wins, parts.wins)
