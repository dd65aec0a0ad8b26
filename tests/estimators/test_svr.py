# SPDX-License-Identifier: BSD-3-Clause
"""lo.SVR against scikit-learn's SVR: attributes, predictions, warnings."""

import numpy as np
import pytest
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from oracles.regression import random_regression, svr_clarabel
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

import leaveout as lo


@pytest.fixture(scope="module")
def data():
    X, y = load_diabetes(return_X_y=True)
    return scale(X[:120]), y[:120]


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 30.0, "epsilon": 10.0, "gamma": 0.05},
        {"C": 1.0, "epsilon": 0.0, "gamma": "scale"},
        {"C": 0.5, "epsilon": 20.0, "kernel": "linear"},
        {"C": 2.0, "epsilon": 5.0, "kernel": "poly", "degree": 2, "coef0": 1.0},
    ],
    ids=["rbf", "median", "linear", "poly"],
)
def test_attributes_equal_those_of_scikit_learn(data, parameters):
    X, y = data
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    found = lo.SVR(**parameters).fit(X, y, sample_weight=weights)
    wanted = sklearn.svm.SVR(tol=1e-9, **parameters).fit(X, y, sample_weight=weights)
    assert_array_equal(found.support_, wanted.support_)
    assert found.dual_coef_.shape == wanted.dual_coef_.shape
    assert_allclose(found.dual_coef_, wanted.dual_coef_, atol=1e-3)
    assert_allclose(found.intercept_, wanted.intercept_, rtol=1e-5)
    assert_allclose(found.predict(X), wanted.predict(X), rtol=1e-5)
    assert_array_equal(found.n_support_, wanted.n_support_)
    assert found.score(X, y) == pytest.approx(wanted.score(X, y))
    assert abs(found.duality_gap_) < 1e-12
    assert found.fit_status_ == 0
    if found.kernel == "linear":
        assert_allclose(found.coef_, wanted.coef_, rtol=1e-3, atol=1e-3)
    else:
        with pytest.raises(AttributeError, match="only available with kernel='linear'"):
            _ = found.coef_


def test_optimum_equals_an_interior_point():
    rng = np.random.default_rng(5)
    for _ in range(15):
        K, y, C, epsilon = random_regression(rng)
        svr = lo.SVR(kernel="precomputed", epsilon=epsilon)
        svr.fit(K, y, sample_weight=C)
        beta, low, high = svr_clarabel(K, y, C, epsilon)
        assert_allclose(svr.predict(K), K @ beta + 0.5 * (low + high), atol=2e-6)


def test_input_kinds_and_absent_samples(data):
    X, y = data
    svr = lo.SVR(C=20.0, epsilon=5.0, gamma=0.1)
    wanted = svr.fit(X, y).predict(X)
    assert_allclose(svr.fit(sparse.csr_array(X), y).predict(X), wanted, rtol=1e-9)
    K = rbf_kernel(X, gamma=0.1)
    given = lo.SVR(C=20.0, epsilon=5.0, kernel="precomputed").fit(K, y)
    assert_allclose(given.predict(K), wanted, rtol=1e-9)
    twice, numbers = np.vstack([X, X[:5]]), np.append(y, np.full(5, 1e30))
    weights = np.append(np.ones(len(y)), np.zeros(5))
    svr.fit(twice, numbers, sample_weight=weights)
    assert_allclose(svr.predict(X), wanted, rtol=1e-9)


def test_one_sample_and_constant_y():
    one = lo.SVR().fit([[1.0, 2.0]], [3.0])
    assert_allclose(one.predict([[0.0, 0.0]]), [3.0])
    assert one.support_.size == 0
    same = lo.SVR(epsilon=0.0).fit(np.eye(4), np.full(4, 0.3))
    assert_allclose(same.predict(np.eye(4)), 0.3, rtol=1e-14)


def test_warnings(data):
    X, y = data
    with pytest.warns(ConvergenceWarning, match="SVM.s. did not converge"):
        svr = lo.SVR(C=100.0, epsilon=1.0, max_iter=3).fit(X, y)
    assert svr.fit_status_ == 1
    with pytest.warns(lo.CertificateWarning, match="not positive semi-definite"):
        lo.SVR(kernel="sigmoid", gamma=1.0, coef0=1.0).fit(X[:30], y[:30])
