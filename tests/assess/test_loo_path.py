# SPDX-License-Identifier: BSD-3-Clause
"""Paths, groups, balanced folds and pairs against scikit-learn's own loops."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import (
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo

SETS = {
    "iris": (load_iris, 0.1, slice(None, None, 2)),
    "wine": (load_wine, 0.05, slice(None, None, 2)),
    "cancer": (load_breast_cancer, 0.02, slice(0, 90)),
}


@pytest.fixture(params=SETS)
def data(request):
    load, gamma, rows = SETS[request.param]
    X, y = load(return_X_y=True)
    return scale(X)[rows], y[rows], gamma


def tight(**parameters):
    return SVC(tol=1e-10, **parameters)


def assert_same_labels(result, labels):
    sure = ~result.ambiguous
    np.testing.assert_array_equal(result.predictions[sure], labels[sure])
    assert sure.mean() > 0.5


def test_path_equals_leave_one_out_at_each_C(data):  # noqa: N802
    X, y, gamma = data
    Cs = [10.0, 0.03, 1.0, 300.0]
    path = lo.loo_path(SVC(gamma=gamma, C=7.0), X, y, Cs=Cs)
    assert path.decision_values.shape[:2] == (4, len(y))
    for k, C in enumerate(Cs):
        one = lo.leave_one_out(SVC(gamma=gamma, C=C), X, y)
        for name in ("decision_values", "lower", "upper", "margins"):
            np.testing.assert_allclose(
                getattr(path[k], name), getattr(one, name), rtol=0, atol=1e-8
            )
        np.testing.assert_array_equal(path[k].predictions, one.predictions)
        np.testing.assert_array_equal(path[k].ambiguous, one.ambiguous)
        assert path.errors[k] == one.error


def test_path_with_weights_and_one_vs_rest(rng):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    weights = rng.uniform(0.2, 3.0, len(y))
    model = OneVsRestClassifier(SVC(gamma=0.3))
    path = lo.loo_path(model, X, y, Cs=[0.5, 5.0], sample_weight=weights)
    one = lo.leave_one_out(
        OneVsRestClassifier(SVC(gamma=0.3, C=5.0)), X, y, sample_weight=weights
    )
    np.testing.assert_allclose(
        path[1].decision_values, one.decision_values, rtol=0, atol=1e-8
    )


def test_best_is_the_smallest_of_equals():
    X, y = load_iris(return_X_y=True)
    path = lo.loo_path(SVC(gamma=0.1), X, y, Cs=[10, 1, 0.1])
    assert path.errors[path.best_index] == path.errors.min()
    assert path.best_C == min(path.Cs[path.errors == path.errors.min()])
    assert "*" in str(path)
    assert len(path) == 3


def test_bad_penalties():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="Cs is empty"):
        lo.loo_path(SVC(), X, y, Cs=[])
    with pytest.raises(ValueError, match=r"C must be a finite number > 0; got -1"):
        lo.loo_path(SVC(), X, y, Cs=[1, -1])


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_groups_equal_leave_one_group_out(data, C, rng):
    X, y, gamma = data
    groups = rng.integers(0, 15, len(y)).astype(str)
    result = lo.leave_one_out(SVC(C=C, gamma=gamma), X, y, groups=groups)
    labels = cross_val_predict(
        tight(C=C, gamma=gamma), X, y, cv=LeaveOneGroupOut(), groups=groups
    )
    assert_same_labels(result, labels)
    assert result.certified.all()


def test_folds_as_groups_equal_k_fold(data):
    X, y, gamma = data
    cv = KFold(5, shuffle=True, random_state=0)
    folds = np.empty(len(y), dtype=int)
    for k, (_, test) in enumerate(cv.split(X)):
        folds[test] = k
    result = lo.leave_one_out(SVC(C=1.0, gamma=gamma), X, y, groups=folds)
    labels = cross_val_predict(tight(C=1.0, gamma=gamma), X, y, cv=cv)
    assert_same_labels(result, labels)


def test_groups_are_checked():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="groups has 3 entries, X has 150 rows"):
        lo.leave_one_out(SVC(), X, y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="leaves no sample to train on"):
        lo.leave_one_out(SVC(), X, y, groups=np.zeros(150))


@pytest.mark.parametrize("C", [0.5, 1.0, 50.0])
def test_balanced_by_fold_equals_brute_force(data, C):
    X, y, gamma = data
    X, y = X[:70:2], y[:70:2]
    keep = np.isin(y, [c for c in np.unique(y) if (y == c).sum() > 2])
    X, y = X[keep], y[keep]
    model = {"C": C, "gamma": gamma, "class_weight": "balanced"}
    result = lo.leave_one_out(SVC(**model), X, y, balanced="fold")
    values = cross_val_predict(
        tight(**model), X, y, cv=LeaveOneOut(), method="decision_function"
    )
    labels = cross_val_predict(tight(**model), X, y, cv=LeaveOneOut())
    assert_same_labels(result, labels)
    sure = ~result.ambiguous & (result.lower == result.upper)
    np.testing.assert_allclose(
        result.decision_values[sure], values[sure], rtol=0, atol=1e-5
    )


def test_balanced_is_checked():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="balanced must be 'frozen' or 'fold'"):
        lo.leave_one_out(SVC(), X, y, balanced="maybe")


def test_pair_auc_equals_brute_force(rng):
    X, y = load_breast_cancer(return_X_y=True)
    rows = rng.permutation(len(y))[:26]
    X, y = scale(X)[rows], y[rows]
    found = lo.leave_pair_out_auc(SVC(C=1.0, gamma=0.05), X, y)
    won = []
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            rest = np.setdiff1d(np.arange(len(y)), [i, j])
            model = tight(C=1.0, gamma=0.05).fit(X[rest], y[rest])
            first, second = model.decision_function(X[[i, j]])
            won.append(first > second)
    assert found.auc == pytest.approx(np.mean(won), abs=1e-12)
    assert found.n_pairs == len(won)


def test_pair_auc_needs_two_classes():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="y has 3 classes; the AUC is about two"):
        lo.leave_pair_out_auc(SVC(), X, y)


@pytest.mark.parametrize("own", [1e-300, 1e32, -1.0])
def test_own_penalty_of_the_estimator_is_not_used(own, rng):
    X = rng.normal(size=(30, 3))
    y = X[:, 0] + rng.normal(size=30) > 0
    path = lo.loo_path(lo.SVC(C=own, gamma=0.5), X, y, Cs=[1.0, 1e10])
    for C, found in zip(path.Cs, path.results, strict=True):
        wanted = lo.leave_one_out(lo.SVC(C=C, gamma=0.5), X, y)
        np.testing.assert_allclose(
            found.decision_values, wanted.decision_values, rtol=1e-8, atol=1e-8
        )
