# SPDX-License-Identifier: BSD-3-Clause
"""Permutation test: scikit-learn's scores, valid p-values, independent of n_jobs."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import LeaveOneGroupOut, LeaveOneOut
from sklearn.model_selection import permutation_test_score as peer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import leaveout as lo


def noisy(n, seed):
    return make_classification(n, 5, n_informative=2, flip_y=0.2, random_state=seed)


def iris_part():
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:8, 50:60, 100:112]
    return X[rows], np.array(["a", "b", "c"])[y[rows]]


@pytest.mark.parametrize(
    "case", ["multi", "one_vs_rest", "weights", "groups", "selects"]
)
def test_same_permutations_and_scores_as_scikit_learn(case):
    X, y = iris_part() if case in ("multi", "one_vs_rest") else noisy(36, 1)
    svc, groups, cv = SVC(C=0.7, gamma=0.3, tol=1e-8), None, LeaveOneOut()
    if case == "weights":
        svc.set_params(class_weight={0: 0.7, 1: 1.7})
    if case == "groups":  # equal sizes: the mean of their scores is the pooled score
        groups = np.random.default_rng(0).permutation(np.repeat(np.arange(9), 4))
        cv = LeaveOneGroupOut()
    model = OneVsRestClassifier(svc) if case == "one_vs_rest" else svc
    if case == "selects":  # other features for each permutation and fold
        model = make_pipeline(SelectKBest(k=2), svc.set_params(gamma="scale"))
    how = {"groups": groups, "n_permutations": 12, "random_state": 3}
    score, scores, p = peer(model, X, y, cv=cv, **how)
    test = lo.loo_permutation_test(model, X, y, **how)
    assert 1 - test.error == pytest.approx(score, abs=1e-12)
    np.testing.assert_allclose(1 - test.permutation_errors, scores, atol=1e-12)
    assert test.p_value == pytest.approx(p)
    assert np.ptp(test.permutation_errors) > 0
    assert test.exchanged == ("samples" if groups is None else "samples within groups")


def test_whole_groups_are_permuted_where_each_has_one_label():
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(12), 3)
    y = np.repeat(np.arange(12) % 2, 3)
    # Replicates of a subject are similar, subjects of a class are not.
    X = np.repeat(rng.normal(size=(12, 3)), 3, axis=0) + 0.01 * rng.normal(size=(36, 3))
    svc = lo.SVC(C=1, gamma=0.3)
    how = {"groups": groups, "n_permutations": 99, "random_state": 0}
    test = lo.loo_permutation_test(svc, X, y, **how)
    assert test.exchanged == "whole groups"
    assert test.p_value > 0.05
    assert lo.loo_permutation_test(svc, X + 4 * y[:, None], y, **how).p_value < 0.05
    with pytest.raises(ValueError, match=r"row 0 has no sample_weight > 0. Drop"):
        lo.loo_permutation_test(svc, X, y, sample_weight=groups > 0, **how)


def test_independent_of_n_jobs_and_shows_progress(capfd):
    X, y = noisy(40, 6)
    how = {"n_permutations": 35, "random_state": 1}
    one = lo.loo_permutation_test(SVC(gamma=0.1), X, y, **how)
    assert capfd.readouterr().err == ""
    two = lo.loo_permutation_test(SVC(gamma=0.1), X, y, n_jobs=2, verbose=1, **how)
    assert "35 of 35" in capfd.readouterr().err
    assert f"p-value       {one.p_value:.4g}" in str(one)
    np.testing.assert_array_equal(one.permutation_errors, two.permutation_errors)


def test_weights_stay_with_the_rows():
    X, y = noisy(30, 7)
    weights = np.random.default_rng(7).uniform(0.2, 3.0, 30)
    weights[:6] = 0.0
    svc = lo.SVC(C=1, gamma=0.3)
    how = {"sample_weight": weights, "n_permutations": 8, "random_state": 2}
    test = lo.loo_permutation_test(svc, X, y, **how)
    rng = np.random.RandomState(2)
    for error in test.permutation_errors:
        order = np.arange(30)
        for inside in (weights == 0, weights > 0):
            order[inside] = rng.permutation(order[inside])
        wanted = lo.leave_one_out(svc, X, y[order], sample_weight=weights)
        assert error == wanted.error


def test_warns_of_a_singleton_class_once():
    X, y = noisy(20, 9)
    y = np.r_[2, y[1:]]
    with pytest.warns(lo.SingletonClassWarning) as caught:
        lo.loo_permutation_test(SVC(gamma=0.1), X, y, n_permutations=5)
    assert [warning.filename for warning in caught] == [__file__]


def test_errors():
    with pytest.raises(ValueError, match="uses y"):
        lo.loo_permutation_test(
            make_pipeline(SelectKBest(k=2), SVC()),
            *noisy(40, 8),
            preprocessing="frozen",
        )
    with pytest.raises(ValueError, match="n_permutations must be at least 1; got 0"):
        lo.loo_permutation_test(SVC(), *noisy(20, 9), n_permutations=0)
