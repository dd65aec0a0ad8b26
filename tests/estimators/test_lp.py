# SPDX-License-Identifier: BSD-3-Clause
"""LPMClassifier and LOOMClassifier: attributes, leave-one-out, search, refusals."""

import numpy as np
import pytest
from oracles.programs import lpm_clarabel
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.kernel._gram import gram_matrix

LPM, LOOM = lo.LPMClassifier(C=2.0, gamma=0.5), lo.LOOMClassifier(gamma=1.0)
BOTH = pytest.mark.parametrize("clf", [LPM, LOOM], ids=["lpm", "loom"])
X, CODES = make_moons(60, noise=0.25, random_state=0)
SIGNS, Y = 2.0 * CODES - 1.0, np.array(["no", "yes"])[CODES]
IRIS = [part[::3] for part in load_iris(return_X_y=True)]


def like(clf, **params):
    """Return a new classifier with other parameters."""
    return type(clf)(**{**clf.get_params(), **params})


def test_attributes_of_the_lpm():
    clf = like(LPM).fit(X, Y)
    K = gram_matrix(X, kernel="rbf", gamma=0.5)
    assert clf.expansion_coef_.shape == clf.row_dual_.shape == (1, 60)
    assert clf.objective_ == pytest.approx(lpm_clarabel(K, SIGNS, np.full(60, 2.0)))
    f = K @ clf.expansion_coef_[0] + clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(X), f, atol=1e-12)
    np.testing.assert_array_equal(clf.support_, np.flatnonzero(clf.expansion_coef_[0]))
    assert abs(clf.duality_gap_[0]) < 1e-9


@pytest.mark.parametrize("nu", [1.0, 0.5])
def test_attributes_of_the_loom(nu):
    weight = np.linspace(0.5, 2.0, 60) if nu < 1 else np.ones(60)
    clf = like(LOOM, nu=nu, fit_intercept=nu < 1).fit(X, Y, sample_weight=weight)
    assert clf.expansion_coef_.shape == clf.slack_.shape == (1, 60)
    assert (clf.expansion_coef_[0] * SIGNS >= 0).all()
    f, own = clf.decision_function(X), clf.expansion_coef_[0]  # K(x, x) = 1
    slack = np.maximum(0, 1 - SIGNS * (f - nu * own))
    assert clf.slack_[0] == pytest.approx(slack)
    assert clf.objective_[0] == pytest.approx(weight @ slack)
    assert (clf.intercept_[0] != 0) == (nu < 1)
    assert (clf.predict(X) == clf.classes_[(f > 0).astype(int)]).all()
    if nu == 1:
        assert clf.loo_bound_[0] == np.mean(SIGNS * (f - own) <= 0)
        result = lo.leave_one_out(LOOM, X, Y, method="bound")
        assert result.error == pytest.approx(clf.loo_bound_[0])
        assert not result.certified.any()
        assert result.counts["refits"] == 0


def test_each_class_against_the_rest():
    features, y = IRIS
    clf = like(LPM).fit(features, y)
    values = clf.decision_function(features)
    for k in range(3):
        alone = like(LPM).fit(features, y == k)
        assert clf.objective_[k] == pytest.approx(alone.objective_[0], rel=1e-12)
        np.testing.assert_allclose(
            values[:, k], alone.decision_function(features), atol=1e-9
        )


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "cosine"])
@BOTH
def test_kernels_dense_sparse_and_precomputed_agree(clf, kernel):
    how = {"gamma": 0.5, "coef0": 0.5, "degree": 2}
    dense = like(clf, kernel=kernel, **how).fit(X, Y)
    thin = like(clf, kernel=kernel, **how).fit(sparse.csr_array(X), Y)
    K = gram_matrix(X, kernel=kernel, **how)
    given = like(clf, kernel="precomputed").fit(K, Y)
    assert dense.objective_ == pytest.approx(thin.objective_, rel=1e-9)
    assert dense.objective_ == pytest.approx(given.objective_, rel=1e-9)
    if clf is LPM:
        np.testing.assert_allclose(
            dense.decision_function(X), given.decision_function(K), atol=1e-7
        )


@BOTH
def test_class_weight_is_a_sample_weight(clf):
    by_class = like(clf, class_weight={"yes": 3.0}).fit(X, Y)
    by_sample = like(clf).fit(X, Y, sample_weight=np.where(Y == "yes", 3.0, 1.0))
    np.testing.assert_array_equal(by_class.expansion_coef_, by_sample.expansion_coef_)


@pytest.mark.parametrize(
    ("clf", "method"), [(LPM, "walk"), (LPM, "refit"), (LOOM, "refit")]
)
def test_leave_one_out_equals_refits_of_the_classifier(clf, method):
    result = lo.leave_one_out(clf, X, Y, method=method)
    values = cross_val_predict(clf, X, Y, cv=LeaveOneOut(), method="decision_function")
    sure, unique = ~result.ambiguous, result.upper - result.lower < 1e-9
    assert min(sure.sum(), unique.sum()) > 50
    labels = np.where(values > 0, "yes", "no")
    np.testing.assert_array_equal(result.predictions[sure], labels[sure])
    np.testing.assert_allclose(
        result.decision_values[unique], values[unique], atol=1e-6
    )
    assert result.certified.all()
    assert result.method == method


@BOTH
def test_leave_one_out_of_three_classes(clf):
    result = lo.leave_one_out(clf, *IRIS)
    refits = cross_val_predict(clf, *IRIS, cv=LeaveOneOut())
    assert result.decision_values.shape == (50, 3)
    sure = ~result.ambiguous
    assert sure.sum() > 40
    np.testing.assert_array_equal(result.predictions[sure], refits[sure])


def test_leave_one_out_with_weights_of_which_some_are_zero():
    weight = np.random.default_rng(0).integers(0, 3, 60).astype(float)
    result = lo.leave_one_out(LPM, X, Y, sample_weight=weight)
    for r in range(0, 60, 7):
        rest = np.arange(60) != r
        refit = like(LPM).fit(X[rest], Y[rest], sample_weight=weight[rest])
        if result.lower[r] == result.upper[r]:
            value = refit.decision_function(X[[r]])[0]
            assert result.decision_values[r] == pytest.approx(value, abs=1e-7)


def test_a_class_of_one_sample_warns_and_is_wrong():
    points = np.array([[0.0], [1.0], [2.0], [5.0]])
    with pytest.warns(lo.SingletonClassWarning, match="Class 'b' has 1 sample"):
        result = lo.leave_one_out(lo.LPMClassifier(gamma=1.0), points, list("aaab"))
    assert result.predictions[3] == "a"
    assert not result.ambiguous[3]


@pytest.mark.parametrize("clf", [LPM, LOOM, lo.LLWClassifier(gamma=0.5)])
def test_pipeline_is_frozen(clf):
    with pytest.warns(lo.PreprocessingWarning):
        result = lo.leave_one_out(make_pipeline(StandardScaler(), clf), X, Y)
    scaled = lo.leave_one_out(clf, StandardScaler().fit_transform(X), Y)
    np.testing.assert_array_equal(result.decision_values, scaled.decision_values)


def test_search_chooses_as_grid_search_does():
    grid = {"C": [0.3, 3.0], "gamma": [0.1, 1.0]}
    search = lo.LooSearchCV(lo.LPMClassifier(), grid).fit(X, Y)
    peer = GridSearchCV(lo.LPMClassifier(), grid, cv=LeaveOneOut()).fit(X, Y)
    sure = search.cv_results_["n_ambiguous"] == 0
    assert sure.sum() >= 2
    scores = [found.cv_results_["mean_test_score"][sure] for found in (search, peer)]
    np.testing.assert_allclose(*scores)
    assert isinstance(search.best_estimator_, lo.LPMClassifier)


def test_search_by_error_bound_and_slack():
    grid = {"gamma": [0.1, 2.0]}
    fitted = [lo.LOOMClassifier(gamma=g).fit(X, Y) for g in grid["gamma"]]

    def scores(**options):
        search = lo.LooSearchCV(lo.LOOMClassifier(), grid, **options).fit(X, Y)
        return search.cv_results_["mean_test_score"]

    errors = [lo.leave_one_out(clf, X, Y).error for clf in fitted]
    assert 1 - scores() == pytest.approx(errors)
    bounds = [clf.loo_bound_[0] for clf in fitted]
    assert 1 - scores(method="bound") == pytest.approx(bounds)
    slacks = [clf.objective_[0] / 60 for clf in fitted]
    by_slack = scores(method="bound", scoring="neg_hinge_loss")
    assert -by_slack == pytest.approx(slacks)


def test_narrow_kernel_warns():
    with pytest.warns(lo.CertificateWarning, match="Take a wider kernel"):
        lo.LOOMClassifier(gamma=1e5).fit(X, Y)


def leave_one_out(clf, **options):
    return lambda: lo.leave_one_out(clf, X, Y, **options)


def fit(clf, **params):
    return lambda: like(clf, **params).fit(X, Y)


PIPELINE = make_pipeline(StandardScaler(), LPM)
OTHERS = "leave_one_out and LooSearchCV take it"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            leave_one_out(LPM, method="stopping"),
            ValueError,
            "'stopping' does not apply",
        ),
        (leave_one_out(LPM, groups=CODES), ValueError, "groups does not apply"),
        (leave_one_out(LPM, method_params={"eps": 1}), ValueError, "method_params doe"),
        (leave_one_out(PIPELINE, preprocessing="refit"), ValueError, "does not apply"),
        (leave_one_out(LOOM, method="walk"), ValueError, "'refit', 'bound'"),
        (leave_one_out(OneVsRestClassifier(LPM)), TypeError, OTHERS),
        (lambda: lo.loo_path(LPM, X, Y, Cs=[1.0]), TypeError, OTHERS),
        (lambda: lo.loo_path(LOOM, X, Y, Cs=[1.0]), TypeError, OTHERS),
        (lambda: lo.loo_curve(LPM, X, Y, C_min=1, C_max=2), TypeError, OTHERS),
        (lambda: lo.suspects(LPM, X, Y), TypeError, OTHERS),
        (lambda: lo.leave_pair_out_auc(LPM, X, Y), TypeError, OTHERS),
        (lambda: lo.loo_permutation_test(LPM, X, Y), TypeError, OTHERS),
        (fit(LPM, C=-1.0), ValueError, "C must be a finite number > 0"),
        (fit(LPM, C=np.inf), ValueError, "C must be finite"),
        (fit(LPM, class_weight="even"), ValueError, "class_weight must be"),
        (fit(LPM, kernel="gauss"), ValueError, "kernel"),
        (fit(LOOM, nu=-1.0), ValueError, "nu must be a finite number"),
        (fit(LOOM, nu="1"), TypeError, "nu must be a number"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
