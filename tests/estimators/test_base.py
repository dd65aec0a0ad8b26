# SPDX-License-Identifier: BSD-3-Clause
"""What LPMClassifier, LOOMClassifier and LLWClassifier share; all that they refuse."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.kernel._gram import gram_matrix

LPM, LOOM = lo.LPMClassifier(C=2.0, gamma=0.5), lo.LOOMClassifier(gamma=1.0)
LLW = lo.LLWClassifier(C=2.0, gamma=0.5)
ALL = pytest.mark.parametrize("clf", [LPM, LOOM, LLW], ids=["lpm", "loom", "llw"])
X, Y = make_moons(60, noise=0.25, random_state=0)
IRIS = [part[::3] for part in load_iris(return_X_y=True)]


def like(clf, **params):
    """Return a new classifier with other parameters."""
    return clone(clf).set_params(**params)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
@ALL
def test_dense_sparse_and_precomputed_agree(clf, kernel):
    how = {"gamma": 0.5, "coef0": 0.5, "degree": 2}
    dense = like(clf, kernel=kernel, **how).fit(X, Y)
    thin = like(clf, kernel=kernel, **how).fit(sparse.csr_array(X), Y)
    K = gram_matrix(X, kernel=kernel, **how)
    given = like(clf, kernel="precomputed").fit(K, Y)
    for other in (thin, given):
        assert other.objective_ == pytest.approx(dense.objective_, rel=1e-9)
    if clf is not LOOM:  # whose optima are many
        values = dense.decision_function(X)
        np.testing.assert_allclose(given.decision_function(K), values, atol=1e-7)


@pytest.mark.parametrize("clf", [lo.SVC(), LPM, LOOM, LLW])
def test_coefficients_are_those_of_the_kernel_as_given(clf):
    """Far from unit scale the problem is scaled before it is solved."""
    K, values = gram_matrix(X, kernel="rbf", gamma=0.5), []
    for exponent in (0, 60):
        how = {"C": np.ldexp(1.0, -exponent)} if hasattr(clf, "C") else {}
        scaled, large = like(clf, kernel="precomputed", **how), np.ldexp(K, exponent)
        values.append(scaled.fit(large, Y).decision_function(large))
    np.testing.assert_allclose(values[1], values[0], atol=1e-9)


@ALL
def test_weights(clf):
    """That of a class is one of its samples; rows without any are absent."""
    by_class = like(clf, class_weight={1: 3.0}).fit(X, Y)
    by_sample = like(clf).fit(X, Y, sample_weight=np.where(Y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(by_class.expansion_coef_, by_sample.expansion_coef_)
    present = np.arange(60) % 7 > 0
    weighted = like(clf).fit(X, Y, sample_weight=present)
    part = like(clf).fit(X[present], Y[present])
    np.testing.assert_allclose(
        weighted.decision_function(X), part.decision_function(X), atol=1e-7
    )


@pytest.mark.parametrize("data", [(X, Y), IRIS], ids=["two classes", "three"])
@pytest.mark.parametrize(
    ("clf", "method"),
    [
        (LPM, "walk"),
        (LPM, "refit"),
        (LOOM, "refit"),
        (LLW, "walk"),
        (like(LLW, C=5.0, loss="quadratic"), "walk"),
        (like(LLW, C=np.inf, gamma=20.0), "walk"),
        (like(LLW, kernel="linear"), "walk"),
        (like(LLW, class_weight={0: 1.0, 1: 2.0}), "walk"),
        (LLW, "refit"),
    ],
)
def test_leave_one_out_equals_refits_of_the_classifier(clf, method, data):
    result = lo.leave_one_out(clf, *data, method=method)
    assert result.certified.all()
    assert result.method == method
    values = cross_val_predict(clf, *data, cv=LeaveOneOut(), method="decision_function")
    labels = values > 0 if values.ndim == 1 else values.argmax(axis=1)
    sure = ~result.ambiguous
    np.testing.assert_array_equal(result.predictions[sure], labels[sure])
    unique = result.upper - result.lower < 1e-9
    assert min(sure.mean(), unique.mean()) > 0.8
    np.testing.assert_allclose(
        result.decision_values[unique], values[unique], atol=1e-6
    )


@ALL
def test_a_class_of_one_sample_warns_and_is_wrong(clf):
    points = np.array([[0.0], [0.5], [2.0], [2.5], [9.0]])
    with pytest.warns(lo.SingletonClassWarning, match="Class 'c' has 1 sample"):
        result = lo.leave_one_out(clf, points, list("aabbc"))
    assert result.predictions[4] != "c"


@ALL
def test_pipeline_is_frozen(clf):
    with pytest.warns(lo.PreprocessingWarning):
        result = lo.leave_one_out(make_pipeline(StandardScaler(), clf), X, Y)
    scaled = lo.leave_one_out(clf, StandardScaler().fit_transform(X), Y)
    np.testing.assert_array_equal(result.decision_values, scaled.decision_values)


@ALL
def test_search_has_the_errors_of_leave_one_out(clf):
    grid = {"gamma": [0.1, 1.0]} | ({} if clf is LOOM else {"C": [0.3, 3.0]})
    search = lo.LooSearchCV(clf, grid).fit(X, Y)
    candidates = [like(clf, **params) for params in search.cv_results_["params"]]
    errors = [lo.leave_one_out(candidate, X, Y).error for candidate in candidates]
    assert 1 - search.cv_results_["mean_test_score"] == pytest.approx(errors)
    assert isinstance(search.best_estimator_, type(clf))


def leave_one_out(clf, **options):
    return lambda: lo.leave_one_out(clf, X, Y, **options)


def fit(clf, **params):
    return lambda: like(clf, **params).fit(X, Y)


PIPELINE = make_pipeline(StandardScaler(), LPM)
OTHERS = "leave_one_out and LooSearchCV take it"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (leave_one_out(LPM, method="stopping"), ValueError, "does not apply to LPM"),
        (leave_one_out(LPM, groups=Y), ValueError, "groups does not apply"),
        (leave_one_out(LPM, method_params={"eps": 1}), ValueError, "method_params doe"),
        (leave_one_out(PIPELINE, preprocessing="refit"), ValueError, "does not apply"),
        (leave_one_out(LOOM, method="walk"), ValueError, "'refit', 'bound'"),
        (leave_one_out(LLW, method="stopping"), ValueError, "'auto', 'walk', 'refit'"),
        (leave_one_out(OneVsRestClassifier(LPM)), TypeError, OTHERS),
        (lambda: lo.loo_path(LPM, X, Y, Cs=[1.0]), TypeError, OTHERS),
        (lambda: lo.loo_path(LOOM, X, Y, Cs=[1.0]), TypeError, OTHERS),
        (lambda: lo.loo_curve(LPM, X, Y, C_min=1, C_max=2), TypeError, OTHERS),
        (lambda: lo.suspects(LPM, X, Y), TypeError, OTHERS),
        (lambda: lo.leave_pair_out_auc(LPM, X, Y), TypeError, OTHERS),
        (lambda: lo.loo_permutation_test(LPM, X, Y), TypeError, OTHERS),
        (lambda: lo.llw_bounds(lo.SVC(), X, Y), TypeError, "must be an LLWClassifier"),
        (fit(LPM, C=-1.0), ValueError, "C must be a finite number > 0"),
        (fit(LPM, C=np.inf), ValueError, "C must be finite"),
        (fit(LPM, class_weight="even"), ValueError, "class_weight must be"),
        (fit(LPM, kernel="gauss"), ValueError, "kernel"),
        (fit(LOOM, nu=-1.0), ValueError, "nu must be a finite number"),
        (fit(LOOM, nu="1"), TypeError, "nu must be a number"),
        (fit(LLW, C=-1.0), ValueError, "C must be"),
        (fit(LLW, loss="huber"), ValueError, "loss must be 'hinge' or 'quadratic'"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
