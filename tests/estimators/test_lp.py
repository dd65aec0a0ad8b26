# SPDX-License-Identifier: BSD-3-Clause
"""LPMClassifier and LOOMClassifier: attributes, leave-one-out, search, refusals."""

import numpy as np
import pytest
from oracles.programs import lpm_objective
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.exceptions import CertificateWarning
from leaveout.kernel._gram import gram_matrix

LPM, LOOM = lo.LPMClassifier(C=2.0, gamma=0.5), lo.LOOMClassifier(gamma=1.0)
BOTH = pytest.mark.parametrize("clf", [LPM, LOOM], ids=["lpm", "loom"])


def like(clf, **params):
    """Return a new classifier with other parameters."""
    return type(clf)(**{**clf.get_params(), **params})


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(60, noise=0.25, random_state=0)
    return X, np.where(y == 1, "yes", "no")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::3], y[::3]


def signs_of(y):
    return np.where(y == "yes", 1.0, -1.0)


def test_attributes_of_the_lpm(moons):
    X, y = moons
    clf = like(LPM).fit(X, y)
    K = gram_matrix(X, kernel="rbf", gamma=0.5)
    assert clf.expansion_coef_.shape == clf.row_dual_.shape == (1, 60)
    assert clf.objective_ == pytest.approx(
        lpm_objective(K, signs_of(y), np.full(60, 2.0))
    )
    f = K @ clf.expansion_coef_[0] + clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(X), f, atol=1e-12)
    np.testing.assert_array_equal(clf.support_, np.flatnonzero(clf.expansion_coef_[0]))
    assert abs(clf.duality_gap_[0]) < 1e-9


@pytest.mark.parametrize("nu", [1.0, 0.5])
def test_attributes_of_the_loom(moons, nu):
    X, y = moons
    signs, weight = signs_of(y), np.linspace(0.5, 2.0, 60) if nu < 1 else np.ones(60)
    clf = like(LOOM, nu=nu, fit_intercept=nu < 1).fit(X, y, sample_weight=weight)
    assert clf.expansion_coef_.shape == clf.slack_.shape == (1, 60)
    assert (clf.expansion_coef_[0] * signs >= 0).all()
    f, own = clf.decision_function(X), clf.expansion_coef_[0]  # K(x, x) = 1
    slack = np.maximum(0, 1 - signs * (f - nu * own))
    assert clf.slack_[0] == pytest.approx(slack)
    assert clf.objective_[0] == pytest.approx(weight @ slack)
    assert (clf.intercept_[0] != 0) == (nu < 1)
    assert (clf.predict(X) == clf.classes_[(f > 0).astype(int)]).all()
    if nu == 1:
        assert clf.loo_bound_[0] == np.mean(signs * (f - own) <= 0)
        assert clf.loo_bound_[0] <= clf.objective_[0] / 60


def test_each_class_against_the_rest(iris):
    X, y = iris
    clf = like(LPM).fit(X, y)
    values = clf.decision_function(X)
    assert values.shape == (50, 3)
    for k in range(3):
        alone = like(LPM).fit(X, y == k)
        assert clf.objective_[k] == pytest.approx(alone.objective_[0], rel=1e-12)
        np.testing.assert_allclose(values[:, k], alone.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "cosine"])
@BOTH
def test_kernels_dense_sparse_and_precomputed_agree(moons, clf, kernel):
    X, y = moons
    how = {"gamma": 0.5, "coef0": 0.5, "degree": 2}
    dense = like(clf, kernel=kernel, **how).fit(X, y)
    thin = like(clf, kernel=kernel, **how).fit(sparse.csr_array(X), y)
    K = gram_matrix(X, kernel=kernel, **how)
    given = like(clf, kernel="precomputed").fit(K, y)
    assert dense.objective_ == pytest.approx(thin.objective_, rel=1e-9)
    assert dense.objective_ == pytest.approx(given.objective_, rel=1e-9)
    if clf is LPM:
        np.testing.assert_allclose(
            dense.decision_function(X), given.decision_function(K), atol=1e-7
        )


@BOTH
def test_class_weight_is_a_sample_weight(moons, clf):
    X, y = moons
    by_class = like(clf, class_weight={"yes": 3.0}).fit(X, y)
    by_sample = like(clf).fit(X, y, sample_weight=np.where(y == "yes", 3.0, 1.0))
    np.testing.assert_array_equal(by_class.expansion_coef_, by_sample.expansion_coef_)


@pytest.mark.parametrize(
    ("clf", "method"), [(LPM, "walk"), (LPM, "refit"), (LOOM, "refit")]
)
def test_leave_one_out_equals_refits_of_the_classifier(moons, clf, method):
    X, y = moons
    result = lo.leave_one_out(clf, X, y, method=method)
    values = cross_val_predict(clf, X, y, cv=LeaveOneOut(), method="decision_function")
    sure, unique = ~result.ambiguous, result.upper - result.lower < 1e-9
    assert sure.sum() > 50
    assert unique.sum() > 50
    labels = np.where(values > 0, "yes", "no")
    np.testing.assert_array_equal(result.predictions[sure], labels[sure])
    np.testing.assert_allclose(
        result.decision_values[unique], values[unique], atol=1e-6
    )
    assert result.certified.all()
    assert result.method == method


@BOTH
def test_leave_one_out_of_three_classes(iris, clf):
    X, y = iris
    result = lo.leave_one_out(clf, X, y)
    refits = cross_val_predict(clf, X, y, cv=LeaveOneOut())
    assert result.decision_values.shape == (50, 3)
    sure = ~result.ambiguous
    assert sure.sum() > 40
    np.testing.assert_array_equal(result.predictions[sure], refits[sure])


def test_leave_one_out_with_weights_of_which_some_are_zero(moons):
    X, y = moons
    weight = np.random.default_rng(0).integers(0, 3, 60).astype(float)
    result = lo.leave_one_out(LPM, X, y, sample_weight=weight)
    for r in range(0, 60, 7):
        rest = np.arange(60) != r
        refit = like(LPM).fit(X[rest], y[rest], sample_weight=weight[rest])
        if result.lower[r] == result.upper[r]:
            value = refit.decision_function(X[[r]])[0]
            assert result.decision_values[r] == pytest.approx(value, abs=1e-7)


def test_a_class_of_one_sample_warns_and_is_wrong():
    X = np.array([[0.0], [1.0], [2.0], [5.0]])
    with pytest.warns(lo.SingletonClassWarning, match="Class 'b' has 1 sample"):
        result = lo.leave_one_out(lo.LPMClassifier(gamma=1.0), X, list("aaab"))
    assert result.predictions[3] == "a"
    assert not result.ambiguous[3]


def test_bound_method_has_the_bound_as_error(moons):
    X, y = moons
    res = lo.leave_one_out(LOOM, X, y, method="bound")
    assert res.error == pytest.approx(like(LOOM).fit(X, y).loo_bound_[0])
    assert not res.certified.any()
    assert res.counts["refits"] == 0


@BOTH
def test_pipeline_is_frozen(moons, clf):
    X, y = moons
    pipe = make_pipeline(StandardScaler(), clf)
    with pytest.warns(lo.PreprocessingWarning):
        result = lo.leave_one_out(pipe, X, y)
    scaled = lo.leave_one_out(clf, StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(result.decision_values, scaled.decision_values)


def test_search_chooses_as_grid_search_does(moons):
    X, y = moons
    grid = {"C": [0.3, 3.0], "gamma": [0.1, 1.0]}
    search = lo.LooSearchCV(lo.LPMClassifier(), grid).fit(X, y)
    peer = GridSearchCV(lo.LPMClassifier(), grid, cv=LeaveOneOut()).fit(X, y)
    sure = search.cv_results_["n_ambiguous"] == 0
    assert sure.sum() >= 2
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"][sure],
        peer.cv_results_["mean_test_score"][sure],
    )
    assert isinstance(search.best_estimator_, lo.LPMClassifier)


def test_search_by_error_bound_and_slack(moons):
    X, y = moons
    grid = {"gamma": [0.1, 2.0]}
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
    search.fit(X, y)  # without a warning about rankings: it is a mean over samples
    values = lo.leave_one_out(lo.SVC(C=1.0), X, y).margins
    assert search.best_score_ == pytest.approx(-np.maximum(0, 1 - values).mean())


def test_narrow_kernel_warns(moons):
    with pytest.warns(CertificateWarning, match="Take a wider kernel"):
        lo.LOOMClassifier(gamma=1e5).fit(*moons)


@pytest.mark.parametrize(
    ("clf", "options", "message"),
    [
        (LPM, {"method": "stopping"}, "'stopping' does not apply to LPMClassifier"),
        (LPM, {"groups": np.arange(60) // 2}, "groups does not apply"),
        (LPM, {"method_params": {"eps": 1e-3}}, "method_params does not apply"),
        (
            make_pipeline(StandardScaler(), LPM),
            {"preprocessing": "refit"},
            "preprocessing='refit' does not apply",
        ),
        (LOOM, {"method": "walk"}, "'refit', 'bound'"),
    ],
)
def test_options_that_do_not_apply(moons, clf, options, message):
    with pytest.raises(ValueError, match=message):
        lo.leave_one_out(clf, *moons, **options)


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: lo.loo_path(LPM, X, y, Cs=[1.0]),
        lambda X, y: lo.loo_path(LOOM, X, y, Cs=[1.0]),
        lambda X, y: lo.loo_curve(LPM, X, y, C_min=1, C_max=2),
        lambda X, y: lo.suspects(LPM, X, y),
        lambda X, y: lo.leave_pair_out_auc(LPM, X, y),
        lambda X, y: lo.loo_permutation_test(LPM, X, y),
        lambda X, y: lo.leave_one_out(OneVsRestClassifier(LPM), X, y),
    ],
)
def test_others_name_what_takes_it(moons, call):
    with pytest.raises(TypeError, match="leave_one_out and LooSearchCV take it"):
        call(*moons)


@pytest.mark.parametrize(
    ("clf", "params", "error", "message"),
    [
        (LPM, {"C": -1.0}, ValueError, "C must be a finite number > 0"),
        (LPM, {"C": np.inf}, ValueError, "C must be finite"),
        (LPM, {"class_weight": "even"}, ValueError, "class_weight must be"),
        (LPM, {"kernel": "gauss"}, ValueError, "kernel"),
        (LOOM, {"nu": -1.0}, ValueError, "nu must be a finite number"),
        (LOOM, {"nu": "1"}, TypeError, "nu must be a number"),
    ],
)
def test_bad_parameters(moons, clf, params, error, message):
    with pytest.raises(error, match=message):
        like(clf, **params).fit(*moons)
