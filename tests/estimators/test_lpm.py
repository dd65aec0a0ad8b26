# SPDX-License-Identifier: BSD-3-Clause
"""LPMClassifier as users meet it: shapes, weights, kernels, leave_one_out, search."""

import numpy as np
import pytest
from oracles.programs import lpm_objective
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.data import make_twonorm
from leaveout.kernel._gram import gram_matrix


@pytest.fixture(scope="module")
def two_classes():
    X, y = make_twonorm(60, random_state=0)
    return X, np.where(y == np.unique(y)[1], "yes", "no")


@pytest.fixture(scope="module")
def three_classes():
    X, y = load_iris(return_X_y=True)
    return X[::3], y[::3]


def test_attributes_are_those_of_the_program(two_classes):
    X, y = two_classes
    clf = lo.LPMClassifier(C=2.0, gamma=0.05).fit(X, y)
    K, signs = gram_matrix(X, kernel="rbf", gamma=0.05), np.where(y == "yes", 1.0, -1.0)
    assert clf.expansion_coef_.shape == clf.row_dual_.shape == (1, 60)
    assert clf.objective_ == pytest.approx(lpm_objective(K, signs, np.full(60, 2.0)))
    f = K @ clf.expansion_coef_[0] + clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(X), f, atol=1e-12)
    np.testing.assert_array_equal(clf.support_, np.flatnonzero(clf.expansion_coef_[0]))
    assert clf.score(X, y) > 0.9
    assert abs(clf.duality_gap_[0]) < 1e-9


def test_each_class_against_the_rest(three_classes):
    X, y = three_classes
    clf = lo.LPMClassifier(C=5.0, gamma=0.1).fit(X, y)
    values = clf.decision_function(X)
    assert values.shape == (50, 3)
    for k in range(3):
        alone = lo.LPMClassifier(C=5.0, gamma=0.1).fit(X, y == k)
        assert clf.objective_[k] == pytest.approx(alone.objective_[0], rel=1e-12)
        np.testing.assert_allclose(values[:, k], alone.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "laplacian", "cosine"])
def test_kernels_dense_sparse_and_precomputed_agree(two_classes, kernel):
    X, y = two_classes
    how = {"gamma": 0.05, "coef0": 0.5, "degree": 2}
    dense = lo.LPMClassifier(C=2.0, kernel=kernel, **how).fit(X, y)
    scattered = lo.LPMClassifier(C=2.0, kernel=kernel, **how).fit(
        sparse.csr_array(X), y
    )
    K = gram_matrix(X, kernel=kernel, **how)
    given = lo.LPMClassifier(C=2.0, kernel="precomputed").fit(K, y)
    assert dense.objective_ == pytest.approx(scattered.objective_, rel=1e-9)
    assert dense.objective_ == pytest.approx(given.objective_, rel=1e-9)
    np.testing.assert_allclose(
        dense.decision_function(X), given.decision_function(K), atol=1e-7
    )


def test_class_weight_is_a_sample_weight(two_classes):
    X, y = two_classes
    by_class = lo.LPMClassifier(gamma=0.05, class_weight={"yes": 3.0}).fit(X, y)
    by_sample = lo.LPMClassifier(gamma=0.05).fit(
        X, y, sample_weight=np.where(y == "yes", 3.0, 1.0)
    )
    np.testing.assert_array_equal(by_class.expansion_coef_, by_sample.expansion_coef_)


@pytest.mark.parametrize("method", ["walk", "refit"])
def test_leave_one_out_equals_refits_of_the_classifier(two_classes, method):
    X, y = two_classes
    clf = lo.LPMClassifier(C=2.0, gamma=0.05)
    result = lo.leave_one_out(clf, X, y, method=method)
    refits = cross_val_predict(clf, X, y, cv=LeaveOneOut())
    values = cross_val_predict(clf, X, y, cv=LeaveOneOut(), method="decision_function")
    sure = ~result.ambiguous
    assert sure.sum() > 50
    np.testing.assert_array_equal(result.predictions[sure], refits[sure])
    unique = result.lower == result.upper
    assert unique.sum() > 50
    np.testing.assert_allclose(
        result.decision_values[unique], values[unique], atol=1e-7
    )
    assert result.certified.all()
    assert result.method == method


def test_leave_one_out_of_three_classes(three_classes):
    X, y = three_classes
    clf = lo.LPMClassifier(C=5.0, gamma=0.1)
    result = lo.leave_one_out(clf, X, y)
    refits = cross_val_predict(clf, X, y, cv=LeaveOneOut())
    assert result.decision_values.shape == (50, 3)
    sure = ~result.ambiguous
    assert sure.sum() > 40
    np.testing.assert_array_equal(result.predictions[sure], refits[sure])


def test_leave_one_out_with_weights_of_which_some_are_zero(two_classes):
    X, y = two_classes
    weight = np.random.default_rng(0).integers(0, 3, 60).astype(float)
    clf = lo.LPMClassifier(C=2.0, gamma=0.05)
    result = lo.leave_one_out(clf, X, y, sample_weight=weight)
    for r in range(0, 60, 7):
        rest = np.arange(60) != r
        refit = lo.LPMClassifier(C=2.0, gamma=0.05).fit(
            X[rest], y[rest], sample_weight=weight[rest]
        )
        if result.lower[r] == result.upper[r]:
            value = refit.decision_function(X[[r]])[0]
            assert result.decision_values[r] == pytest.approx(value, abs=1e-7)


def test_singleton_class_is_told_and_wrong():
    X = np.array([[0.0], [1.0], [2.0], [5.0]])
    with pytest.warns(lo.SingletonClassWarning, match="Class 'b' has 1 sample"):
        result = lo.leave_one_out(lo.LPMClassifier(gamma=1.0), X, list("aaab"))
    assert result.predictions[3] == "a"
    assert not result.ambiguous[3]


def test_pipeline_is_frozen(two_classes):
    X, y = two_classes
    pipe = make_pipeline(StandardScaler(), lo.LPMClassifier(C=2.0, gamma=0.05))
    with pytest.warns(lo.PreprocessingWarning):
        result = lo.leave_one_out(pipe, X, y)
    scaled = lo.leave_one_out(pipe[-1], StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(result.decision_values, scaled.decision_values)


def test_search_chooses_as_grid_search_does(two_classes):
    X, y = two_classes
    grid = {"C": [0.3, 1.0, 3.0], "gamma": [0.02, 0.1]}
    search = lo.LooSearchCV(lo.LPMClassifier(), grid).fit(X, y)
    peer = GridSearchCV(lo.LPMClassifier(), grid, cv=LeaveOneOut()).fit(X, y)
    sure = search.cv_results_["n_ambiguous"] == 0
    assert sure.sum() >= 4
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"][sure],
        peer.cv_results_["mean_test_score"][sure],
    )
    assert isinstance(search.best_estimator_, lo.LPMClassifier)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "stopping"}, "'stopping' does not apply to LPMClassifier"),
        ({"groups": np.arange(60) // 2}, "groups does not apply"),
        ({"method_params": {"eps": 1e-3}}, "method_params does not apply"),
    ],
)
def test_what_does_not_apply_is_said(two_classes, options, message):
    with pytest.raises(ValueError, match=message):
        lo.leave_one_out(lo.LPMClassifier(), *two_classes, **options)


def test_preprocessing_by_refits_does_not_apply(two_classes):
    pipe = make_pipeline(StandardScaler(), lo.LPMClassifier())
    with pytest.raises(ValueError, match="preprocessing='refit' does not apply"):
        lo.leave_one_out(pipe, *two_classes, preprocessing="refit")


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: lo.loo_path(lo.LPMClassifier(), X, y, Cs=[1.0]),
        lambda X, y: lo.loo_curve(lo.LPMClassifier(), X, y, C_min=1, C_max=2),
        lambda X, y: lo.suspects(lo.LPMClassifier(), X, y),
        lambda X, y: lo.leave_pair_out_auc(lo.LPMClassifier(), X, y),
        lambda X, y: lo.loo_permutation_test(lo.LPMClassifier(), X, y),
        lambda X, y: lo.leave_one_out(OneVsRestClassifier(lo.LPMClassifier()), X, y),
    ],
)
def test_others_name_what_takes_it(two_classes, call):
    with pytest.raises(TypeError, match="leave_one_out and LooSearchCV take it"):
        call(*two_classes)


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"C": -1.0}, "C must be a finite number > 0"),
        ({"C": np.inf}, "C must be finite"),
        ({"class_weight": "even"}, "class_weight must be"),
        ({"kernel": "gauss"}, "kernel"),
    ],
)
def test_bad_parameters(two_classes, params, error):
    with pytest.raises(ValueError, match=error):
        lo.LPMClassifier(**params).fit(*two_classes)
