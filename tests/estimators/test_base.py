# SPDX-License-Identifier: BSD-3-Clause
"""Behaviour that all kernel classifiers share, and their errors."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer, StandardScaler

import leaveout as lo
from leaveout.kernel._gram import gram_matrix

SVC, LPM = lo.SVC(C=2.0, gamma=0.5), lo.LPMClassifier(C=2.0, gamma=0.5)
LOOM, LLW = lo.LOOMClassifier(gamma=1.0), lo.LLWClassifier(C=2.0, gamma=0.5)
X, Y = make_moons(60, noise=0.25, random_state=0)
IRIS = [part[::3] for part in load_iris(return_X_y=True)]
FAMILIES = pytest.mark.parametrize("clf", [SVC, LPM, LOOM, LLW])


def like(clf, **params):
    """Return a new classifier with other parameters."""
    return clone(clf).set_params(**params)


@FAMILIES
def test_dense_sparse_precomputed_and_scaled_kernels_agree(clf):
    """Problems far from unit scale are rescaled before they are solved."""
    how = {"gamma": 0.5, "coef0": 0.5, "degree": 2}
    K = gram_matrix(X, kernel="poly", **how)
    given = like(clf, kernel="precomputed").fit(K, Y)
    values = given.decision_function(K)
    penalty = {"C": np.ldexp(2.0, -60)} if hasattr(clf, "C") else {}
    large = like(clf, kernel="precomputed", **penalty).fit(np.ldexp(K, 60), Y)
    other = large.decision_function(np.ldexp(K, 60))
    np.testing.assert_allclose(other, values, atol=1e-9)
    if clf is not SVC:
        objective = large.objective_ / (penalty.get("C", 2.0) / 2.0)
        assert objective == pytest.approx(given.objective_)
    for features in (X, sparse.csr_array(X)):
        fitted = like(clf, kernel="poly", **how).fit(features, Y)
        other = fitted.decision_function(features)
        if clf is LOOM:  # its optimum is not unique
            assert fitted.objective_ == pytest.approx(given.objective_, rel=1e-9)
        else:
            np.testing.assert_allclose(other, values, atol=1e-7)


@FAMILIES
def test_weights(clf):
    """Class weights equal sample weights; rows with weight 0 are absent."""
    by_class = like(clf, class_weight={1: 3.0}).fit(X, Y)
    by_sample = like(clf).fit(X, Y, sample_weight=np.where(Y == 1, 3.0, 1.0))
    values = by_sample.decision_function(X)
    np.testing.assert_array_equal(by_class.decision_function(X), values)
    present = np.arange(60) % 7 > 0
    weighted = like(clf).fit(X, Y, sample_weight=present)
    part = like(clf).fit(X[present], Y[present])
    np.testing.assert_array_equal(weighted.support_vectors_, X[weighted.support_])
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
        (like(LLW, kernel="linear", class_weight={0: 1.0, 1: 2.0}), "walk"),
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


@pytest.mark.parametrize(
    ("clf", "method", "scoring"),
    [
        (LPM, "auto", "accuracy"),
        (LLW, "auto", "accuracy"),
        (LOOM, "auto", "accuracy"),
        (LOOM, "bound", "accuracy"),
        (LOOM, "bound", "neg_hinge_loss"),
    ],
)
def test_search_has_the_errors_of_leave_one_out(clf, method, scoring):
    grid = {"gamma": [0.1, 2.0]} | ({} if clf is LOOM else {"C": [0.3, 3.0]})
    search = lo.LooSearchCV(clf, grid, method=method, scoring=scoring).fit(X, Y)
    candidates = [like(clf, **params) for params in search.cv_results_["params"]]
    results = [lo.leave_one_out(each, X, Y, method=method) for each in candidates]
    expected = [1 - result.error for result in results]
    if method == "bound":
        fitted = [candidate.fit(X, Y) for candidate in candidates]
        assert expected == pytest.approx([1 - each.loo_bound_[0] for each in fitted])
        assert not results[0].certified.any()
    if scoring == "neg_hinge_loss":
        expected = [-each.objective_[0] / 60 for each in fitted]
    assert search.cv_results_["mean_test_score"] == pytest.approx(expected)


SIGMOID = {"kernel": "sigmoid", "gamma": 2.0, "coef0": -1.0}


@pytest.mark.parametrize(
    ("clf", "kind", "message"),
    [
        (like(SVC, **SIGMOID), lo.CertificateWarning, "smallest eigenvalue is -"),
        (like(LLW, **SIGMOID), lo.CertificateWarning, "not positive semi-definite"),
        (like(SVC, max_iter=1), ConvergenceWarning, "not converge: .* Raise max_iter"),
        (like(SVC, kernel="linear", C=1e15), lo.CertificateWarning, "rounding may cha"),
        (like(LOOM, gamma=1e5), lo.CertificateWarning, "Use a wider kernel"),
    ],
)
def test_warnings(clf, kind, message):
    with pytest.warns(kind, match=message) as caught:
        clf.fit(X, Y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("data", [(X[::2], Y[::2]), IRIS])
@pytest.mark.parametrize("balanced", [None, "balanced"])
@pytest.mark.parametrize("clf", [LPM, LOOM, LLW])
def test_steps_gamma_and_class_weights_of_the_fold(clf, balanced, data):
    clf = like(clf, gamma="scale", class_weight=balanced)
    for model in (clf, make_pipeline(StandardScaler(), clf)):
        found = lo.leave_one_out(model, *data)
        wanted = cross_val_predict(
            model, *data, cv=LeaveOneOut(), method="decision_function"
        )
        # Optima of linear programs may not be unique.
        low, high = (
            getattr(found, name).reshape(found.y.size, -1)
            for name in ("lower", "upper")
        )
        single = (high - low <= 1e-7).all(axis=1)
        assert single.mean() > 0.6
        values = found.decision_values
        np.testing.assert_allclose(values[single], wanted[single], atol=1e-5)
        assert found.certified.mean() > 0.9


def leave_one_out(clf, **options):
    return lambda: lo.leave_one_out(clf, X, Y, **options)


def fit(clf, **params):
    return lambda: like(clf, **params).fit(X, Y)


GIVEN = like(LPM, kernel="precomputed")
OTHERS = "it works with leave_one_out"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (leave_one_out(LPM, method="stopping"), ValueError, "does not apply to LPM"),
        (leave_one_out(LPM, groups=Y), ValueError, "not support groups"),
        (
            leave_one_out(LPM, method_params={"eps": 1}),
            ValueError,
            "not support method_params",
        ),
        (
            leave_one_out(make_pipeline(KernelCenterer(), GIVEN)),
            ValueError,
            "cannot be fitted in each fold. Use preprocessing='frozen'",
        ),
        (leave_one_out(LOOM, method="walk"), ValueError, "'refit', 'bound'"),
        (leave_one_out(OneVsRestClassifier(LPM)), TypeError, OTHERS),
        (lambda: lo.loo_path(LOOM, X, Y, Cs=[1.0]), TypeError, OTHERS),
        (lambda: lo.loo_curve(LPM, X, Y, C_min=1, C_max=2), TypeError, OTHERS),
        (lambda: lo.suspects(LPM, X, Y), TypeError, OTHERS),
        (lambda: lo.llw_bounds(lo.SVC(), X, Y), TypeError, "must be an LLWClassifier"),
        (fit(LPM, C=np.inf), ValueError, "C must be finite"),
        (fit(LLW, C=-1.0), ValueError, "C must be"),
        (fit(LOOM, nu=-1.0), ValueError, "nu must be a finite number"),
        (fit(LOOM, nu="1"), TypeError, "nu must be a number"),
        (fit(LLW, loss="huber"), ValueError, "loss must be 'hinge' or 'quadratic'"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
