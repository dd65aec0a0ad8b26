# SPDX-License-Identifier: BSD-3-Clause
"""LPMClassifier and LOOMClassifier: attributes and ``loo_bound_``."""

import numpy as np
import pytest
from oracles.programs import lpm_program, solve_by_clarabel
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics.pairwise import rbf_kernel

import leaveout as lo

X, Y = make_moons(60, noise=0.25, random_state=0)
SIGNS = 2.0 * Y - 1.0


def test_attributes_of_the_lpm():
    clf = lo.LPMClassifier(C=2.0, gamma=0.5).fit(X, Y)
    K = rbf_kernel(X, gamma=0.5)
    assert clf.expansion_coef_.shape == clf.row_dual_.shape == (1, 60)
    optimum = solve_by_clarabel(*lpm_program(K, SIGNS, np.full(60, 2.0)))
    assert clf.objective_ == pytest.approx(optimum)
    f = K @ clf.expansion_coef_[0] + clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(X), f, atol=1e-12)
    np.testing.assert_array_equal(clf.support_, np.flatnonzero(clf.expansion_coef_[0]))
    assert abs(clf.duality_gap_[0]) < 1e-9


def test_each_class_against_the_rest():
    features, y = load_iris(return_X_y=True)
    clf = lo.LPMClassifier(C=2.0, gamma=0.5).fit(features, y)
    values = clf.decision_function(features)
    for k in range(3):
        alone = lo.LPMClassifier(C=2.0, gamma=0.5).fit(features, y == k)
        assert clf.objective_[k] == pytest.approx(alone.objective_[0], rel=1e-12)
        own = alone.decision_function(features)
        np.testing.assert_allclose(values[:, k], own, atol=1e-9)


@pytest.mark.parametrize("nu", [1.0, 0.5])
def test_attributes_of_the_loom(nu):
    weight = np.linspace(0.5, 2.0, 60) if nu < 1 else np.ones(60)
    clf = lo.LOOMClassifier(gamma=1.0, nu=nu, fit_intercept=nu < 1)
    clf.fit(X, Y, sample_weight=weight)
    assert clf.expansion_coef_.shape == clf.slack_.shape == (1, 60)
    assert (clf.expansion_coef_[0] * SIGNS >= 0).all()
    f, own = clf.decision_function(X), clf.expansion_coef_[0]  # K(x, x) = 1
    slack = np.maximum(0, 1 - SIGNS * (f - nu * own))
    assert clf.slack_[0] == pytest.approx(slack)
    assert clf.objective_[0] == pytest.approx(weight @ slack)
    assert (clf.intercept_[0] != 0) == (nu < 1)
    assert (clf.predict(X) == (f > 0)).all()
    if nu == 1:
        assert clf.loo_bound_[0] == np.mean(SIGNS * (f - own) <= 0)
