# SPDX-License-Identifier: BSD-3-Clause
"""Few large groups are left out by fits without them, which equal refits by LIBSVM."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale

import leaveout as lo

TIGHT = {"tol": 1e-9, "gamma": 0.05}


def wine(n=120):
    """Return some rows in random order, with weights and five folds of unequal size."""
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.permutation(y.size)[:n]
    folds = np.minimum(rng.integers(0, 7, n), 4)
    return scale(X[rows]), y[rows], rng.uniform(0.2, 2.0, n), folds


def refits(svc, X, y, weights, folds):
    """Return labels and values of scikit-learn's fits without each fold."""
    values = []
    labels = np.empty_like(y)
    for fold in np.unique(folds):
        out = folds == fold
        svc.fit(X[~out], y[~out], sample_weight=weights[~out])
        labels[out] = svc.predict(X[out])
        values.append((out, svc.decision_function(X[out])))
    stacked = np.empty((y.size, *values[0][1].shape[1:]))
    for out, own in values:
        stacked[out] = own
    return labels, stacked


def assert_equal_to_refits(svc, X, y, weights, folds):
    found = lo.leave_one_out(svc, X, y, sample_weight=weights, groups=folds)
    labels, values = refits(svc, X, y, weights, folds)
    assert found.certified.all()
    assert set(found.settled_by) == {"refit"}
    sure = ~found.ambiguous
    np.testing.assert_array_equal(found.predictions[sure], labels[sure])
    exact = found.lower == found.upper
    np.testing.assert_allclose(found.decision_values[exact], values[exact], atol=1e-5)
    return sure, exact


@pytest.mark.parametrize("C", [0.5, 50.0])
@pytest.mark.parametrize("break_ties", [False, True])
def test_weights_and_duplicates(C, break_ties):
    X, y, weights, folds = wine()
    copies = np.r_[np.arange(120), np.arange(40)]
    X, y, weights = X[copies], y[copies], weights[copies]
    folds = np.r_[folds, 4 - folds[:40]]  # copies are in other folds
    svc = sklearn.svm.SVC(C=C, break_ties=break_ties, **TIGHT)
    sure, exact = assert_equal_to_refits(svc, X, y, weights, folds)
    assert sure.all()
    assert exact.mean() > 0.9


def test_two_classes_and_weight_zero():
    X, y = (part[:200] for part in load_breast_cancer(return_X_y=True))
    weights = np.where(np.arange(200) % 9, 1.0, 0.0)
    svc = sklearn.svm.SVC(C=10.0, **TIGHT)
    _, exact = assert_equal_to_refits(svc, scale(X), y, weights, np.arange(200) % 3)
    assert exact.all()


def test_empty_margin_gives_intervals_that_contain_the_refit():
    X, y, _, folds = wine()
    keep = y < 2
    X, y, folds = X[keep], y[keep], folds[keep]
    svc = sklearn.svm.SVC(C=1e-3, **TIGHT)
    found = lo.leave_one_out(svc, X, y, groups=folds)
    _, values = refits(svc, X, y, np.ones(y.size), folds)
    margins = np.where(y == 1, 1.0, -1.0) * values
    assert np.all(found.lower - 1e-6 <= margins)
    assert np.all(margins <= found.upper + 1e-6)


@pytest.mark.parametrize("n_folds", [4, 20])
def test_a_pair_of_classes_vanishes(n_folds):
    """scikit-learn fits the other classes only; ours never vote for a missing one."""
    X, y, weights, _ = wine()
    four = np.where((y == 0) & (np.arange(120) % 2 == 0), 3, y)
    folds = np.where(four >= 2, 0, 1 + np.arange(120) % (n_folds - 1))
    svc = sklearn.svm.SVC(C=5.0, **TIGHT)
    found = lo.leave_one_out(svc, X, four, sample_weight=weights, groups=folds)
    for fold in range(n_folds):
        out = folds == fold
        svc.fit(X[~out], four[~out], sample_weight=weights[~out])
        np.testing.assert_array_equal(found.predictions[out], svc.predict(X[out]))


def test_balanced_weights_of_the_fold():
    X, y, _, folds = wine()
    svc = sklearn.svm.SVC(C=2.0, class_weight="balanced", **TIGHT)
    found = lo.leave_one_out(svc, X, y, groups=folds)
    labels, values = refits(svc, X, y, np.ones(y.size), folds)
    np.testing.assert_array_equal(found.predictions, labels)
    np.testing.assert_allclose(found.decision_values, values, atol=1e-5)


def test_one_vs_rest():
    X, y, _, folds = wine()
    ovr = OneVsRestClassifier(sklearn.svm.SVC(C=5.0, **TIGHT))
    found = lo.leave_one_out(ovr, X, y, groups=folds)
    for fold in range(5):
        out = folds == fold
        ovr.fit(X[~out], y[~out])
        np.testing.assert_array_equal(found.predictions[out], ovr.predict(X[out]))


def test_regression():
    X, y = (part[:150] for part in load_diabetes(return_X_y=True))
    folds = np.arange(150) % 5
    svr = sklearn.svm.SVR(C=100.0, epsilon=10.0, gamma=40.0, tol=1e-9)
    found = lo.leave_one_out(svr, X, y, groups=folds)
    for fold in range(5):
        out = folds == fold
        wanted = svr.fit(X[~out], y[~out]).predict(X[out])
        np.testing.assert_allclose(found.predictions[out], wanted, atol=1e-4)
    assert found.certified.all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_search_equals_grid_search(n_jobs):
    X, y, _, _ = wine()
    folds = np.arange(120) % 5
    cv = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(5)]
    grid = {"C": [100.0, 0.1, 3.0], "gamma": [0.01, 0.3]}
    svc = sklearn.svm.SVC(tol=1e-8)
    ours = lo.LooSearchCV(svc, grid, n_jobs=n_jobs).fit(X, y, groups=folds)
    peer = GridSearchCV(svc, grid, cv=cv).fit(X, y)
    for name in ("mean_test_score", "rank_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], peer.cv_results_[name])
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))


@pytest.mark.parametrize(("C", "flagged"), [(1e-3, True), (1.0, False)])
def test_tiny_bounds_are_flagged(C, flagged):
    centers = [[0.0, 0.0], [4.0, 4.0]]
    X, y = make_blobs([20, 20], centers=centers, random_state=0)
    folds = np.empty(40, dtype=int)
    for label in (0, 1):  # without a fold the other class is larger
        folds[y == label] = 2 * (np.arange(20) % 2) + label
    found = lo.leave_one_out(lo.SVC(C=C, gamma=0.1), X, y, groups=folds)
    assert found.anti_learning == flagged
    assert found.error == float(flagged)


def test_threads_give_the_same_bits(monkeypatch):
    X, y, weights, folds = wine()
    svc = lo.SVC(C=5.0, gamma=0.05)
    how = {"sample_weight": weights, "groups": folds}
    alone = lo.leave_one_out(svc, X, y, **how)
    monkeypatch.setattr("leaveout.loo._kfold.LEAST_THREADED", 0)
    shared = lo.leave_one_out(svc, X, y, **how, n_jobs=3)
    np.testing.assert_array_equal(shared.binary_values, alone.binary_values)
