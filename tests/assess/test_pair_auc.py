# SPDX-License-Identifier: BSD-3-Clause
"""Pairs left out together, against solved problems without them."""

import numpy as np
import pytest
from oracles.binary import svc_clarabel
from oracles.problems import DEGENERATE, random_case
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo
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


@pytest.mark.parametrize(
    "name", ["balanced_tiny_C", "majority_by_one_tiny_C", "duplicates_equal_labels"]
)
def test_degenerate_problems(name):
    case = DEGENERATE[name]
    assert pairs(case).auc == pytest.approx(brute_force(case), abs=1e-12)


def test_real_data_equal_refits_by_scikit_learn(rng):
    X, y = load_breast_cancer(return_X_y=True)
    rows = rng.permutation(len(y))[:26]
    X, y = scale(X)[rows], y[rows]
    svc = SVC(C=1.0, gamma=0.05, tol=1e-10)
    found = lo.leave_pair_out_auc(svc, X, y)
    won = []
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            rest = np.setdiff1d(np.arange(len(y)), [i, j])
            first, second = svc.fit(X[rest], y[rest]).decision_function(X[[i, j]])
            won.append(first > second)
    assert found.auc == pytest.approx(np.mean(won), abs=1e-12)
    assert found.n_pairs == len(won)


def test_wins_are_a_score_with_this_area_in_any_batches(rng, monkeypatch):
    case = random_case(rng, n=30, C=1.0, kernel="rbf")
    found = pairs(case)
    assert found.wins[case.y > 0].mean() == pytest.approx(found.auc)
    assert 1 - found.wins[case.y < 0].mean() == pytest.approx(found.auc)
    assert float(found) == found.auc
    assert "AUC" in str(found)
    monkeypatch.setattr("leaveout.assess._pair_auc.PAIRS_AT_A_TIME", 7)
    np.testing.assert_array_equal(found.wins, pairs(case, n_threads=2).wins)


def test_what_is_refused():
    with pytest.raises(ValueError, match="3 classes; the AUC is about"):
        lo.leave_pair_out_auc(SVC(), *load_iris(return_X_y=True))
    with pytest.raises(ValueError, match="pair of 2 samples leaves none"):
        lo.leave_pair_out_auc(SVC(), [[0.0], [1.0]], [0, 1])
