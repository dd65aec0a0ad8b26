# SPDX-License-Identifier: BSD-3-Clause
"""Left-out pairs against solutions of the problems without them."""

import numpy as np
import pytest
from oracles.binary import svc_clarabel
from oracles.problems import DEGENERATE, Case, random_case
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

import leaveout as lo


def pairs(case, **options):
    svc = lo.SVC(kernel="precomputed", fit_intercept=case.fit_intercept)
    return lo.leave_pair_out_auc(svc, case.K, case.y, sample_weight=case.C, **options)


def brute_force(case):
    """Return whether the positive sample of each pair wins; ties count one half."""
    K, y, C, fit_intercept = case
    won = []
    for i in np.flatnonzero((y > 0) & (C > 0)):
        for j in np.flatnonzero((y < 0) & (C > 0)):
            others = np.setdiff1d(np.flatnonzero(C), [i, j])
            K_o = K[np.ix_(others, others)]
            fit = svc_clarabel(K_o, y[others], C[others], fit_intercept)
            above = (K[i, others] - K[j, others]) @ fit.beta
            won.append(0.5 if abs(above) < 1e-9 else float(above > 0))
    return won


def draw(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng, n=int(rng.integers(6, 15)), C=10 ** rng.uniform(-3, 3))
    case.y[:4] = [1.0, 1.0, -1.0, -1.0]
    return case


X, Y = load_breast_cancer(return_X_y=True)
K = rbf_kernel(scale(X)[:26], gamma=0.05)
CANCER = Case(K, 2.0 * Y[:26] - 1.0, np.ones(26), True)
CASES = {
    **{f"random {seed}": draw(seed) for seed in range(4)},
    **{name: DEGENERATE[name] for name in DEGENERATE if "tiny_C" in name},
    "duplicates": DEGENERATE["duplicates_equal_labels"],
    "cancer": CANCER,
    "absent": CANCER._replace(C=(np.arange(26) % 4 > 0).astype(float)),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_solutions_without_each_pair(name):
    found, won = pairs(CASES[name]), brute_force(CASES[name])
    assert found.auc == pytest.approx(np.mean(won), abs=1e-12)
    assert found.n_pairs == len(won)
    assert found.certified


def test_wins_are_a_score_with_this_area_in_any_batches(monkeypatch):
    found = pairs(CANCER)
    assert found.wins[CANCER.y > 0].mean() == pytest.approx(found.auc)
    assert 1 - found.wins[CANCER.y < 0].mean() == pytest.approx(found.auc)
    assert float(found) == found.auc
    assert "AUC" in str(found)
    monkeypatch.setattr("leaveout.assess._pair_auc.PAIRS_AT_A_TIME", 7)
    np.testing.assert_array_equal(found.wins, pairs(CANCER, n_jobs=2).wins)


def test_errors():
    with pytest.raises(ValueError, match="3 classes, but the AUC is for two"):
        lo.leave_pair_out_auc(lo.SVC(), *load_iris(return_X_y=True))
    with pytest.raises(ValueError, match="leaving out a pair leaves none"):
        lo.leave_pair_out_auc(lo.SVC(), [[0.0], [1.0]], [0, 1])
