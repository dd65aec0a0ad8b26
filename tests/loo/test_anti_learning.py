# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out with a tiny C: class proportions decide, and results say so."""

import numpy as np
import pytest
import sklearn.svm
from oracles.refits import honest_refits
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    make_blobs,
    make_classification,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale

import leaveout as lo
from leaveout.tune._choice import median_heuristic


def blobs(sizes, seed=0):
    """Return classes that a straight line separates with few errors."""
    centers = 4.0 * np.array([[0.0, 0.0], [1.0, 1.0], [1.0, -1.0]])[: len(sizes)]
    return make_blobs(sizes, centers=centers, random_state=seed)


def refit_error(C, X, y, **kwargs):
    svc = sklearn.svm.SVC(C=C, gamma=0.1, tol=1e-8, **kwargs)
    return np.mean(honest_refits(svc, X, y)[0] != y)


@pytest.mark.parametrize(
    ("sizes", "class_weight", "error"),
    [
        ([20, 20], None, 1.0),
        ([24, 12], None, 12 / 36),  # the full model also predicts the larger class
        ([24, 12], "balanced", 1.0),
        ([15, 15, 15], None, 1.0),
        ([20, 15, 10], None, 1 - 20 / 45),
        ([20, 15, 10], "balanced", 1.0),
    ],
)
def test_left_out_samples_of_the_lighter_class_are_wrong(sizes, class_weight, error):
    X, y = blobs(sizes)
    svc = lo.SVC(C=1e-3, gamma=0.1, class_weight=class_weight)
    res = lo.leave_one_out(svc, X, y, preprocessing="frozen")
    # Class weights from all rows; refits do not change them.
    weights = dict(enumerate(1 / np.array(sizes))) if class_weight else None
    C = 1e-3 * (len(y) / len(sizes) if class_weight else 1.0)
    assert res.anti_learning
    assert res.error == refit_error(C, X, y, class_weight=weights) == error
    if error == 1.0:
        assert svc.fit(X, y).score(*blobs(sizes, seed=1)) > 0.9


def test_nearly_equal_weights_are_flagged_and_absent_rows_ignored():
    X, y = blobs([19, 15])
    weights = np.random.default_rng(0).uniform(0.8, 1.2, size=34)
    weights[np.flatnonzero(y == 0)[:4]] = 0.0
    sums = [weights[y == c].sum() for c in (0, 1)]
    weights[y == 1] *= (sums[0] + 0.3) / sums[1]  # differ by less than one sample
    res = lo.leave_one_out(lo.SVC(C=1e-3, gamma=0.1), X, y, sample_weight=weights)
    present = weights > 0
    honest, _ = honest_refits(sklearn.svm.SVC(C=1e-3, gamma=0.1), X, y, weights)
    assert (honest != y)[present].all()
    assert res.wrong[present].all()
    assert res.anti_learning


def test_majority_by_one_sample():
    """Leaving out one sample of the larger class makes a tie: it is ambiguous."""
    X, y = blobs([16, 15])
    res = lo.leave_one_out(lo.SVC(C=1e-3, gamma=0.1), X, y)
    assert res.anti_learning
    assert res.wrong[y == 1].all()
    assert res.ambiguous[y == 0].all()


def test_one_vs_rest_compares_values_and_still_learns():
    """All values are negative, but the largest is that of the true class."""
    X, y = blobs([15, 15, 15])
    estimator = OneVsRestClassifier(sklearn.svm.SVC(C=1e-3, gamma=0.1, tol=1e-10))
    res = lo.leave_one_out(estimator, X, y)
    assert (res.binary_values < 0).all()
    honest, _ = honest_refits(estimator, X, y)
    assert res.error == np.mean(honest != y) < 0.2
    assert not res.anti_learning


def test_groups_are_flagged_by_their_own_balance():
    X, y = blobs([12, 12])
    svc = lo.SVC(C=1e-3, gamma=0.1)
    rank = np.where(y == 1, np.cumsum(y == 1), np.cumsum(y == 0)) - 1
    same = lo.leave_one_out(
        svc, X, y, groups=rank
    )  # each group has one sample per class
    assert not same.anti_learning
    assert same.error < 0.1
    pairs = lo.leave_one_out(svc, X, y, groups=rank // 2 + 6 * y)
    assert pairs.anti_learning
    assert pairs.error == 1.0


@pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")
def test_not_flagged_for_balanced_folds_or_noise(rng):
    free = lo.SVC(C=1e-3, gamma=0.1, fit_intercept=False)
    assert not lo.leave_one_out(free, *blobs([20, 20])).anti_learning
    own = lo.SVC(C=1e-3, gamma=0.1, class_weight="balanced")
    folds = lo.leave_one_out(own, *blobs([24, 12]))
    assert not folds.anti_learning
    assert folds.error < 0.1
    assert not lo.leave_one_out(lo.SVC(C=1e-3), *blobs([20, 1])).anti_learning
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 2
    for C in (1.0, 10.0, 100.0):
        assert not lo.leave_one_out(lo.SVC(C=C, gamma=0.2), X, y).anti_learning


@pytest.mark.parametrize("weights", [None, "balanced"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_not_flagged_if_the_error_is_small(load, weights):
    X, y = load(return_X_y=True)
    X, y = scale(X)[::2], y[::2]
    svc = lo.SVC(gamma=median_heuristic(X), class_weight=weights)
    path = lo.loo_path(svc, X, y, Cs=np.logspace(-4, 3, 8))
    constant = 1 - np.bincount(y).max() / len(y)
    np.testing.assert_array_equal(path.anti_learning, path.errors >= constant)


def test_note_in_words():
    X, y = blobs([10, 10])
    for how in ({"method": "refit"}, {"labels_only": True}):
        tiny = lo.leave_one_out(lo.SVC(C=1e-3, gamma=0.1), X, y, **how)
        assert "\nAnti-learning: C is so small" in str(tiny)
    assert lo.leave_one_out(lo.SVC(), X, y).anti_learning_note == ""


def test_path_takes_such_a_C_last():  # noqa: N802
    """With a rare class the constant prediction is best, but it is passed over."""
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 5 == 0
    path = lo.loo_path(lo.SVC(gamma=1.0), X, y, Cs=[1e-4, 1e-3, 10.0])
    np.testing.assert_array_equal(path.anti_learning, [True, True, False])
    assert path.errors[0] <= path.errors[2]
    assert path.best_C == 10.0
    marked = [line.endswith("anti-learning") for line in str(path).splitlines()]
    assert marked == [False, True, True, False]


def test_anti_learning_loses_ties_of_the_search():
    """Of three equal scores, the two flagged ones are not chosen."""
    X, y = make_classification(24, 4, n_informative=2, flip_y=0.15, random_state=1)
    others = np.delete(np.arange(24), 4)
    grid = {"C": [0.3, 3.0], "gamma": [0.05, 0.5]}
    search = lo.LooSearchCV(lo.SVC(), grid).fit(X[others], y[others])
    found = search.cv_results_
    np.testing.assert_array_equal(found["rank_test_score"][:3], 1)
    np.testing.assert_array_equal(found["anti_learning"], [True, True, False, False])
    assert search.best_index_ == 2
