# SPDX-License-Identifier: BSD-3-Clause
"""SVC against sklearn.svm.SVC at a tight tolerance: the same attributes and numbers."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.svm
from oracles.binary import svc_clarabel
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leaveout import SVC


def digits_subset():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, y[:300]


def wine_scaled():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def iris_without_duplicates():
    # Rows 101 and 142 are equal: either of the two may be the support vector.
    X, y = load_iris(return_X_y=True)
    return np.delete(X, 142, axis=0), np.delete(y, 142)


IRIS = iris_without_duplicates()
DATA = {"iris": IRIS, "wine": wine_scaled(), "digits": digits_subset()}
IRIS_TWO = IRIS[0][50:], IRIS[1][50:]


def reference(**parameters):
    """scikit-learn's SVC at a tolerance near the end of LIBSVM's accuracy."""
    return sklearn.svm.SVC(tol=1e-10, **parameters)


def fit_both(X, y, sample_weight=None, **parameters):
    ours = SVC(**parameters).fit(X, y, sample_weight)
    return ours, reference(**parameters).fit(X, y, sample_weight)


def dense(array):
    return array.toarray() if sparse.issparse(array) else array


def libsvm_accuracy(ours, X):
    """How far LIBSVM may be off: it keeps kernel values in single precision.

    Each is rounded by up to 6e-8 of itself, so f by that share of its terms, and the
    optimum by about as much again.
    """
    absolute = clone(ours)  # f with all terms positive
    absolute.__dict__.update(ours.__dict__)
    absolute.dual_coef_ = np.abs(ours.dual_coef_)
    absolute.intercept_ = np.zeros_like(ours.intercept_)
    absolute.decision_function_shape = "ovo"
    return max(1e-6, 1.2e-7 * np.abs(absolute.decision_function(X)).max())


def assert_same(ours, theirs, X):
    """Labels, values and all attributes that both have."""
    atol = libsvm_accuracy(ours, X)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), atol=atol
    )
    for name in ("classes_", "support_", "n_support_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    for name in ("support_vectors_", "class_weight_"):
        np.testing.assert_array_equal(
            dense(getattr(ours, name)), dense(getattr(theirs, name))
        )
    for name in ("intercept_", "dual_coef_"):
        got, wanted = dense(getattr(ours, name)), dense(getattr(theirs, name))
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, atol=20 * atol, rtol=1e-4)
    assert ours.shape_fit_ == theirs.shape_fit_
    assert ours.n_features_in_ == theirs.n_features_in_
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert ours.fit_status_ == theirs.fit_status_ == 0
    assert ours.duality_gap_.shape == ours.intercept_.shape
    assert np.abs(ours.duality_gap_).max() <= 1e-10


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"C": 0.1},
        {"C": 100.0, "gamma": 0.05},
        {"gamma": "auto"},
        {"kernel": "linear", "C": 0.5},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1},
        {"class_weight": "balanced"},
        {"class_weight": {1: 3.0}},
        {"decision_function_shape": "ovo"},
        {"break_ties": True},
    ],
    ids=str,
)
def test_agrees_with_scikit_learn(data, parameters):
    X, y = DATA[data]
    assert_same(*fit_both(X, y, **parameters), X)


@pytest.mark.parametrize("parameters", [{}, {"kernel": "linear"}, {"C": 50.0}], ids=str)
def test_two_classes_agree_with_scikit_learn(parameters):
    X, y = IRIS_TWO
    ours, theirs = fit_both(X, y, **parameters)
    assert_same(ours, theirs, X)
    assert ours.decision_function(X).shape == (len(y),)
    assert (ours.decision_function(X) > 0)[y == 2].mean() > 0.9


@pytest.mark.parametrize("classes", [2, 3])
def test_sample_weights(classes):
    X, y = IRIS if classes == 3 else IRIS_TWO
    weights = np.random.default_rng(0).uniform(0.1, 5.0, len(y))
    assert_same(*fit_both(X, y, weights, gamma=0.3), X)


def test_rows_with_zero_weight_take_no_part():
    X, y = IRIS
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    present = weights > 0
    ours = SVC(gamma=0.3).fit(X, y, weights)
    alone, theirs = fit_both(X[present], y[present], weights[present], gamma=0.3)
    assert_same(alone, theirs, X)
    # (scikit-learn's support_ counts the present rows only.)
    np.testing.assert_array_equal(
        ours.support_, np.flatnonzero(present)[alone.support_]
    )
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    np.testing.assert_allclose(
        ours.decision_function(X), alone.decision_function(X), rtol=0, atol=1e-12
    )


def test_a_class_without_weight_is_no_class():
    X, y = IRIS
    ours = SVC(gamma=0.3, class_weight="balanced").fit(X, y, sample_weight=y != 1)
    alone = SVC(gamma=0.3, class_weight="balanced").fit(X[y != 1], y[y != 1])
    np.testing.assert_array_equal(ours.classes_, [0, 2])
    np.testing.assert_array_equal(ours.class_weight_, alone.class_weight_)
    np.testing.assert_allclose(
        ours.decision_function(X), alone.decision_function(X), rtol=0, atol=1e-12
    )


def test_one_number_as_weight_scales_the_box():
    X, y = IRIS_TWO
    one = SVC(C=1.5, gamma=0.3).fit(X, y, sample_weight=2.0)
    np.testing.assert_allclose(
        one.dual_coef_, SVC(C=3.0, gamma=0.3).fit(X, y).dual_coef_, atol=1e-10
    )


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_sparse_input(container, kernel):
    X, y = digits_subset()
    ours, theirs = fit_both(container(X), y, kernel=kernel)
    assert_same(ours, theirs, container(X))
    assert sparse.issparse(ours.support_vectors_)
    np.testing.assert_allclose(
        ours.decision_function(X), SVC(kernel=kernel).fit(X, y).decision_function(X)
    )


def test_sparse_linear_weights():
    X, y = digits_subset()
    ours, theirs = fit_both(sparse.csr_array(X), y, kernel="linear", C=0.1)
    assert sparse.issparse(ours.coef_)
    np.testing.assert_allclose(ours.coef_.toarray(), theirs.coef_.toarray(), atol=1e-5)


def test_weights_of_the_features_for_a_linear_kernel():
    for X, y in (IRIS, IRIS_TWO):
        ours, theirs = fit_both(X, y, kernel="linear", C=0.5)
        assert ours.coef_.shape == theirs.coef_.shape
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=5e-5)
        if len(ours.classes_) == 2:
            values = X @ ours.coef_[0] + ours.intercept_
            np.testing.assert_allclose(values, ours.decision_function(X), atol=1e-11)
    with pytest.raises(AttributeError, match=r"only for kernel='linear'; .* 'rbf'"):
        _ = SVC().fit(*IRIS).coef_
    assert not hasattr(SVC(kernel="linear"), "coef_")


@pytest.mark.parametrize(
    "names",
    [
        ["no", "perhaps", "yes"],
        [-5, 0, 7],
        [0.0, 1.0, 2.0],
    ],
    ids=str,
)
def test_labels_of_any_kind(names):
    X, y = IRIS
    labels = np.array(names)[y]
    ours, theirs = fit_both(X, labels)
    assert_same(ours, theirs, X)
    assert ours.predict(X).dtype == labels.dtype


def test_labels_as_objects():
    X, y = IRIS
    labels = np.array(["no", "perhaps", "yes"])[y]
    np.testing.assert_array_equal(
        SVC().fit(X, labels.astype(object)).predict(X), SVC().fit(X, labels).predict(X)
    )


def test_boolean_labels():
    X, y = IRIS_TWO
    ours, theirs = fit_both(X, y == 2)
    assert_same(ours, theirs, X)
    assert ours.predict(X).dtype == bool


def test_pandas_and_polars():
    X, y = IRIS
    names = ["sl", "sw", "pl", "pw"]
    wanted = SVC().fit(X, y).predict(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        clf = SVC().fit(frame, type(frame)({"y": y})["y"])
        assert list(clf.feature_names_in_) == names
        np.testing.assert_array_equal(clf.predict(frame), wanted)
        with pytest.raises(ValueError, match="feature names should match"):
            clf.predict(frame[names[::-1]])
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            clf.predict(X)


def test_precomputed():
    X, y = IRIS
    K = rbf_kernel(X, gamma=0.4)
    ours, theirs = fit_both(K, y, kernel="precomputed")
    assert_same(ours, theirs, K)
    direct = SVC(gamma=0.4).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(K[:7]), direct.decision_function(X[:7]), atol=1e-9
    )


def test_callable_kernel():
    X, y = IRIS

    def kernel(A, B):
        return laplacian_kernel(A, B, gamma=0.4)

    ours = SVC(kernel=kernel).fit(X, y)
    theirs = reference(kernel=kernel).fit(X, y)
    named = SVC(kernel="laplacian", gamma=0.4).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    for other in (theirs, named):
        np.testing.assert_allclose(
            ours.decision_function(X), other.decision_function(X), atol=1e-6
        )
        np.testing.assert_array_equal(ours.support_, other.support_)


def test_prediction_in_blocks_of_rows(monkeypatch):
    X, y = IRIS
    clf = SVC().fit(X, y)
    whole = clf.decision_function(X)
    monkeypatch.setattr("leaveout.kernel._gram.BLOCK_VALUES", 1000)
    np.testing.assert_allclose(clf.decision_function(X), whole, rtol=1e-12)


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("gamma", [0.01, 1.0])
def test_two_classes_agree_with_the_interior_point(C, gamma):
    X, y = IRIS_TWO
    signs, box = np.where(y == 2, 1.0, -1.0), np.full(len(y), C)
    optimum = svc_clarabel(rbf_kernel(X, gamma=gamma), signs, box)
    values = SVC(C=C, gamma=gamma).fit(X, y).decision_function(X)
    np.testing.assert_allclose(values, optimum.f, rtol=0, atol=1e-8)


def test_without_intercept():
    X, y = IRIS_TWO
    clf = SVC(fit_intercept=False, gamma=0.3, C=2.0).fit(X, y)
    assert clf.intercept_ == [0.0]
    signs, box = np.where(y == 2, 1.0, -1.0), np.full(len(y), 2.0)
    optimum = svc_clarabel(rbf_kernel(X, gamma=0.3), signs, box, False)
    np.testing.assert_allclose(clf.decision_function(X), optimum.f, atol=1e-8)
    assert abs(clf.dual_coef_.sum()) > 0.1  # no balance without a bias


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("shape", "break_ties"), [("ovr", False), ("ovr", True), ("ovo", False)]
)
def test_exact_ties_are_decided_as_scikit_learn_does(n_classes, shape, break_ties):
    # One orthogonal point per class: f is exactly 0 where all kernel values are.
    K, y = np.eye(n_classes), np.arange(n_classes)
    nowhere = np.zeros((1, n_classes))
    ours, theirs = fit_both(
        K,
        y,
        kernel="precomputed",
        decision_function_shape=shape,
        break_ties=break_ties,
    )
    values = ours.decision_function(nowhere)
    np.testing.assert_array_equal(values, theirs.decision_function(nowhere))
    np.testing.assert_array_equal(ours.predict(nowhere), theirs.predict(nowhere))
    last = n_classes - 1
    assert ours.predict(nowhere) == [0 if break_ties and n_classes > 2 else last]


def test_clone_and_parameters():
    clf = SVC(C=3.0, gamma=0.2, fit_intercept=False)
    assert clone(clf).get_params() == clf.get_params()
    assert clf.set_params(C=5.0, kernel="linear").C == 5.0
    with pytest.raises(ValueError, match="Invalid parameter 'nu'"):
        clf.set_params(nu=0.5)
    with pytest.raises(TypeError, match="positional"):
        SVC(1.0, "rbf")


def test_pickle_round_trip():
    X, y = IRIS
    clf = SVC(C=3.0).fit(X, y)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))


def test_refit_forgets_the_first_fit():
    X, y = IRIS
    clf = SVC(kernel="linear").fit(X, y).fit(IRIS_TWO[0][:, :2], IRIS_TWO[1])
    assert clf.n_features_in_ == 2
    assert clf.coef_.shape == (1, 2)


def test_grid_search_and_pipeline():
    X, y = IRIS
    grid = {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": [0.1, 1.0]}
    found = [
        GridSearchCV(make_pipeline(StandardScaler(), svc), grid, cv=3).fit(X, y)
        for svc in (SVC(), reference())
    ]
    assert [step for step, _ in found[0].estimator.steps] == ["standardscaler", "svc"]
    np.testing.assert_array_equal(*(s.cv_results_["mean_test_score"] for s in found))
    assert found[0].best_params_ == found[1].best_params_


def test_cross_validation_splits_a_precomputed_kernel():
    X, y = IRIS
    K = rbf_kernel(X, gamma=0.4)
    np.testing.assert_array_equal(
        cross_val_predict(SVC(kernel="precomputed"), K, y, cv=5),
        cross_val_predict(SVC(gamma=0.4), X, y, cv=5),
    )
