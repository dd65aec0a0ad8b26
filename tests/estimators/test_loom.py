# SPDX-License-Identifier: BSD-3-Clause
"""LOOMClassifier: attributes, leave-one-out and search through the public face."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.exceptions import CertificateWarning


@pytest.fixture(scope="module")
def moons():
    return make_moons(60, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::3], y[::3]


def test_attributes(moons):
    X, y = moons
    clf = lo.LOOMClassifier(gamma=1.0).fit(X, y)
    assert clf.expansion_coef_.shape == clf.slack_.shape == (1, 60)
    signs = np.where(y == 1, 1.0, -1.0)
    assert (clf.expansion_coef_[0] * signs >= 0).all()
    f = clf.decision_function(X)
    own = clf.expansion_coef_[0]  # K(x, x) = 1
    assert clf.slack_[0] == pytest.approx(np.maximum(0, 1 - signs * (f - own)))
    assert clf.objective_[0] == pytest.approx(clf.slack_[0].sum())
    assert clf.loo_bound_[0] == np.mean(signs * (f - own) <= 0)
    assert clf.loo_bound_[0] <= clf.objective_[0] / 60
    assert clf.intercept_ == 0
    assert (clf.support_ == np.flatnonzero(clf.expansion_coef_[0])).all()
    assert (clf.predict(X) == clf.classes_[(f > 0).astype(int)]).all()


def test_exact_leave_one_out_equals_refits(moons):
    X, y = moons
    clf = lo.LOOMClassifier(gamma=1.0)
    res = lo.leave_one_out(clf, X, y)
    refits = cross_val_predict(clf, X, y, cv=LeaveOneOut(), method="decision_function")
    clear = ~res.ambiguous
    assert res.certified.all()
    assert res.decision_values[clear] == pytest.approx(refits[clear], abs=1e-6)


def test_exact_leave_one_out_of_three_classes(iris):
    X, y = iris
    clf = lo.LOOMClassifier(gamma=0.5)
    res = lo.leave_one_out(clf, X, y)
    labels = cross_val_predict(clf, X, y, cv=LeaveOneOut())
    clear = ~res.ambiguous
    assert clear.sum() > 40
    assert (res.predictions == labels)[clear].all()
    assert res.decision_values.shape == (50, 3)


def test_bound_method_has_the_bound_as_error(moons):
    X, y = moons
    clf = lo.LOOMClassifier(gamma=1.0).fit(X, y)
    res = lo.leave_one_out(clf, X, y, method="bound")
    assert res.error == pytest.approx(clf.loo_bound_[0])
    assert not res.certified.any()
    assert res.counts["refits"] == 0


def test_search_by_error_bound_and_slack(moons):
    X, y = moons
    grid = {"gamma": [0.1, 0.5, 2.0]}
    fitted = [lo.LOOMClassifier(gamma=g).fit(X, y) for g in grid["gamma"]]

    def scores(**options):
        search = lo.LooSearchCV(lo.LOOMClassifier(), grid, **options).fit(X, y)
        return search.cv_results_["mean_test_score"]

    errors = [lo.leave_one_out(clf, X, y).error for clf in fitted]
    assert 1 - scores() == pytest.approx(errors)
    bounds = [clf.loo_bound_[0] for clf in fitted]
    assert 1 - scores(method="bound") == pytest.approx(bounds)
    slacks = [clf.objective_[0] / 60 for clf in fitted]
    by_slack = scores(method="bound", scoring="neg_hinge_loss")
    assert -by_slack == pytest.approx(slacks)


def test_the_hinge_of_exact_values_is_a_score_too(moons):
    X, y = moons
    search = lo.LooSearchCV(lo.SVC(), {"C": [1.0]}, scoring="neg_hinge_loss")
    search.fit(X, y)  # no warning of rankings: it is a mean over samples
    values = lo.leave_one_out(lo.SVC(C=1.0), X, y).margins
    assert search.best_score_ == pytest.approx(-np.maximum(0, 1 - values).mean())


def test_intercept_nu_and_weights(moons):
    X, y = moons
    weight = np.linspace(0.5, 2.0, 60)
    clf = lo.LOOMClassifier(gamma=1.0, fit_intercept=True, nu=0.5)
    clf.fit(X, y, sample_weight=weight)
    signs = np.where(y == 1, 1.0, -1.0)
    f = clf.decision_function(X)
    slack = np.maximum(0, 1 - signs * (f - 0.5 * clf.expansion_coef_[0]))
    assert clf.objective_[0] == pytest.approx(weight @ slack)
    assert clf.intercept_[0] != 0


def test_class_weight_multiplies_slacks(moons):
    X, y = moons
    by_class = lo.LOOMClassifier(gamma=1.0, class_weight={0: 3.0}).fit(X, y)
    by_sample = lo.LOOMClassifier(gamma=1.0).fit(
        X, y, sample_weight=np.where(y == 0, 3.0, 1.0)
    )
    assert by_class.objective_ == pytest.approx(by_sample.objective_)


def test_sparse_equals_dense(moons):
    X, y = moons
    dense = lo.LOOMClassifier(gamma=1.0).fit(X, y)
    thin = lo.LOOMClassifier(gamma=1.0).fit(sparse.csr_array(X), y)
    assert thin.decision_function(sparse.csr_array(X)) == pytest.approx(
        dense.decision_function(X)
    )


def test_pipeline(moons):
    X, y = moons
    pipe = make_pipeline(StandardScaler(), lo.LOOMClassifier(gamma=1.0))
    with pytest.warns(lo.exceptions.PreprocessingWarning):
        res = lo.leave_one_out(pipe, X, y)
    Z = StandardScaler().fit_transform(X)
    own = lo.leave_one_out(lo.LOOMClassifier(gamma=1.0), Z, y)
    assert (res.predictions == own.predictions).all()


def test_narrow_kernel_warns():
    X, y = make_moons(30, noise=0.1, random_state=0)
    with pytest.warns(CertificateWarning, match="Take a wider kernel"):
        lo.LOOMClassifier(gamma=1e4).fit(X, y)


def test_wrong_parameters(moons):
    X, y = moons
    with pytest.raises(ValueError, match="nu must be a finite number"):
        lo.LOOMClassifier(nu=-1.0).fit(X, y)
    with pytest.raises(TypeError, match="nu must be a number"):
        lo.LOOMClassifier(nu="1").fit(X, y)
    with pytest.raises(ValueError, match="'refit', 'bound'"):
        lo.leave_one_out(lo.LOOMClassifier(), X, y, method="walk")
    with pytest.raises(ValueError, match="does not apply to LOOMClassifier"):
        lo.leave_one_out(lo.LOOMClassifier(), X, y, groups=y)
    with pytest.raises(TypeError, match="Here use an SVC"):
        lo.loo_path(lo.LOOMClassifier(), X, y, Cs=[1.0])
