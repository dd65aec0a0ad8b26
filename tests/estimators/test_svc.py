# SPDX-License-Identifier: BSD-3-Clause
"""SVC against sklearn.svm.SVC at a tight tolerance: the same attributes and numbers."""

from copy import copy
from functools import partial

import numpy as np
import pytest
import sklearn.svm
from oracles.binary import svc_clarabel
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.preprocessing import scale

from leaveout import SVC

# Rows 101 and 142 of iris are equal: either may be the support vector.
IRIS = [np.delete(part, 142, axis=0) for part in load_iris(return_X_y=True)]
IRIS_TWO = IRIS[0][50:], IRIS[1][50:]
WINE = scale(load_wine().data), load_wine().target
DIGITS = load_digits().data[:300] / 16.0, load_digits().target[:300]
SPARSE = sparse.csr_array(DIGITS[0]), DIGITS[1]
NAMED = IRIS[0], np.array(["no", "perhaps", "yes"])[IRIS[1]]
WEIGHTS = np.random.default_rng(0).uniform(0.1, 5.0, 149)
GRAM = rbf_kernel(IRIS[0], gamma=0.4), IRIS[1]
DATA = {"iris": IRIS, "two classes": IRIS_TWO, "wine": WINE, "digits": DIGITS}


def reference(**parameters):
    """Return scikit-learn's SVC at the smallest useful tolerance of LIBSVM."""
    return sklearn.svm.SVC(tol=1e-10, **parameters)


def dense(array):
    return array.toarray() if sparse.issparse(array) else array


def libsvm_accuracy(ours, X):
    """Return an error bound of LIBSVM, which rounds kernel values to 6e-8."""
    absolute = copy(ours)  # f with all terms positive
    absolute.dual_coef_ = np.abs(ours.dual_coef_)
    absolute.intercept_ = np.zeros_like(ours.intercept_)
    absolute.decision_function_shape = "ovo"
    return max(1e-6, 1.2e-7 * np.abs(absolute.decision_function(X)).max())


def assert_same(X, y, sample_weight=None, **parameters):
    """Compare labels, values and all attributes that both have."""
    ours = SVC(**parameters).fit(X, y, sample_weight)
    theirs = reference(**parameters).fit(X, y, sample_weight)
    atol = libsvm_accuracy(ours, X)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.predict(X).dtype == y.dtype
    values = ours.decision_function(X)
    np.testing.assert_allclose(values, theirs.decision_function(X), atol=atol)
    for name in ("classes_", "support_", "n_support_", "class_weight_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    got, wanted = ours.support_vectors_, theirs.support_vectors_
    if not callable(ours.kernel):  # scikit-learn stores none then
        np.testing.assert_array_equal(dense(got), dense(wanted))
    linear = ["coef_"] if ours.kernel == "linear" else []
    for name in ("intercept_", "dual_coef_", *linear):
        got, wanted = dense(getattr(ours, name)), dense(getattr(theirs, name))
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, atol=20 * atol, rtol=1e-4)
    assert ours.shape_fit_ == theirs.shape_fit_
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert ours.fit_status_ == theirs.fit_status_ == 0
    assert np.abs(ours.duality_gap_).max() <= 1e-10
    return ours


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
    assert_same(*DATA[data], **parameters)


@pytest.mark.parametrize(
    ("data", "sample_weight", "parameters"),
    [
        (IRIS, WEIGHTS, {"gamma": 0.3}),
        (IRIS_TWO, WEIGHTS[50:], {"gamma": 0.3}),
        (SPARSE, None, {}),
        (SPARSE, None, {"kernel": "linear", "C": 0.1}),
        (GRAM, None, {"kernel": "precomputed"}),
        (NAMED, None, {}),
        (IRIS, None, {"kernel": partial(laplacian_kernel, gamma=0.4)}),
    ],
)
def test_other_input_agrees_with_scikit_learn(data, sample_weight, parameters):
    ours = assert_same(*data, sample_weight, **parameters)
    assert sparse.issparse(ours.support_vectors_) == (data is SPARSE)


def test_class_with_zero_weight_is_ignored():
    X, y = IRIS
    ours = SVC(gamma=0.3, class_weight="balanced").fit(X, y, sample_weight=y != 1)
    alone = SVC(gamma=0.3, class_weight="balanced").fit(X[y != 1], y[y != 1])
    np.testing.assert_array_equal(ours.classes_, [0, 2])
    np.testing.assert_array_equal(ours.class_weight_, alone.class_weight_)
    np.testing.assert_allclose(
        ours.decision_function(X), alone.decision_function(X), rtol=0, atol=1e-12
    )


def test_coef_only_for_linear_kernel():
    with pytest.raises(
        AttributeError, match=r"only available with kernel='linear'; got 'rbf'"
    ):
        _ = SVC().fit(*IRIS).coef_
    assert not hasattr(SVC(kernel="linear"), "coef_")


@pytest.mark.parametrize("C", [0.01, 1000.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_two_classes_agree_with_the_interior_point(C, fit_intercept):
    X, y = IRIS_TWO
    signs, bounds = np.where(y == 2, 1.0, -1.0), np.full(len(y), C)
    optimum = svc_clarabel(rbf_kernel(X, gamma=0.3), signs, bounds, fit_intercept)
    clf = SVC(C=C, gamma=0.3, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), optimum.f, rtol=0, atol=1e-8)
    assert fit_intercept or clf.intercept_ == [0.0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("shape", "break_ties"), [("ovr", False), ("ovr", True), ("ovo", False)]
)
def test_exact_ties_are_broken_as_in_scikit_learn(n_classes, shape, break_ties):
    # One orthogonal point per class: f is exactly 0 where all kernel values are 0.
    K, y = np.eye(n_classes), np.arange(n_classes)
    how = {"decision_function_shape": shape, "break_ties": break_ties}
    ours, theirs = (
        svc.set_params(kernel="precomputed", **how).fit(K, y)
        for svc in (SVC(), reference())
    )
    nowhere = np.zeros((1, n_classes))
    values = ours.decision_function(nowhere)
    np.testing.assert_array_equal(values, theirs.decision_function(nowhere))
    np.testing.assert_array_equal(ours.predict(nowhere), theirs.predict(nowhere))
