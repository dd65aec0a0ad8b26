# SPDX-License-Identifier: BSD-3-Clause
"""Paths, groups and balanced folds against scikit-learn's own loops."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import LeaveOneGroupOut, LeaveOneOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo

IRIS = load_iris(return_X_y=True)
SETS = {
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


@pytest.mark.parametrize("own", [1e-300, -1.0])
def test_path_equals_leave_one_out_at_each_C(data, own):  # noqa: N802
    """The C of the estimator itself is not used, be it what it may."""
    X, y, gamma = data
    Cs = [10.0, 0.03, 1.0, 300.0]
    path = lo.loo_path(SVC(gamma=gamma, C=own), X, y, Cs=Cs)
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
        assert path.n_ambiguous[k] == one.n_ambiguous


def test_path_with_weights_and_one_vs_rest(rng):
    X, y = IRIS[0][::3], IRIS[1][::3]
    weights = rng.uniform(0.2, 3.0, len(y))
    model = OneVsRestClassifier(SVC(gamma=0.3))
    path = lo.loo_path(model, X, y, Cs=[0.5, 5.0], sample_weight=weights)
    model.set_params(estimator__C=5.0)
    one = lo.leave_one_out(model, X, y, sample_weight=weights)
    np.testing.assert_allclose(
        path[1].decision_values, one.decision_values, rtol=0, atol=1e-8
    )


def test_best_is_the_smallest_of_equals():
    path = lo.loo_path(SVC(gamma=0.1), *IRIS, Cs=[10, 1, 0.1])
    assert path.errors[path.best_index] == path.errors.min()
    assert path.best_C == min(path.Cs[path.errors == path.errors.min()])
    assert "*" in str(path)
    assert len(path) == 3


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_groups_equal_leave_one_group_out(data, C, rng):
    X, y, gamma = data
    groups = rng.integers(0, 15, len(y)).astype(str)
    result = lo.leave_one_out(SVC(C=C, gamma=gamma), X, y, groups=groups)
    labels = cross_val_predict(
        tight(C=C, gamma=gamma), X, y, cv=LeaveOneGroupOut(), groups=groups
    )
    assert_same_labels(result, labels)
    assert result.certified.all()


@pytest.mark.parametrize("C", [0.5, 50.0])
def test_balanced_by_fold_equals_brute_force(data, C):
    X, y, gamma = data
    X, y = X[:70:2], y[:70:2]
    keep = np.isin(y, [c for c in np.unique(y) if (y == c).sum() > 2])
    X, y = X[keep], y[keep]
    model = tight(C=C, gamma=gamma, class_weight="balanced")
    result = lo.leave_one_out(model, X, y, balanced="fold")
    values = cross_val_predict(
        model, X, y, cv=LeaveOneOut(), method="decision_function"
    )
    assert_same_labels(result, cross_val_predict(model, X, y, cv=LeaveOneOut()))
    sure = ~result.ambiguous & (result.lower == result.upper)
    np.testing.assert_allclose(
        result.decision_values[sure], values[sure], rtol=0, atol=1e-5
    )


@pytest.mark.parametrize(
    ("function", "options", "match"),
    [
        (lo.loo_path, {"Cs": []}, "Cs is empty"),
        (lo.loo_path, {"Cs": [1, -1]}, r"C must be a finite number > 0; got -1"),
        (lo.leave_one_out, {"balanced": "maybe"}, "must be 'frozen' or 'fold'"),
    ],
)
def test_bad_arguments(function, options, match):
    with pytest.raises(ValueError, match=match):
        function(SVC(), *IRIS, **options)
