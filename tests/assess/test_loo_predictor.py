# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC, NuSVC

import leaveout as lo
from leaveout.data import make_banana, make_mixture


@pytest.fixture(scope="module")
def data():
    return make_mixture(70, random_state=0)


@pytest.fixture(scope="module")
def default():
    return lo.LooPredictor.load_default()


@pytest.mark.parametrize("classifier", [lo.SVC, lo.LPMClassifier])
def test_default_on_real_data_it_has_not_seen(classifier):
    kind = "svm" if classifier is lo.SVC else "lpm"
    predictor = lo.LooPredictor.load_default(kind)
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[:150], y[:150]
    svc = classifier(C=1.0, gamma=0.02).fit(X, y)
    exact = lo.leave_one_out(svc, X, y)
    wrong = exact.predictions != y
    predicted = predictor.predict_errors(svc, X, y)
    assert predicted.dtype == bool
    assert np.mean(predicted == wrong) > 0.93
    assert predictor.predict_error_rate(svc, X, y) == pytest.approx(
        exact.error, abs=0.05
    )


def test_same_for_scikit_learn_pipeline_sparse_and_precomputed(data, default):
    X, y = data
    expected = default.decision_values(lo.SVC(C=2, gamma=0.02).fit(X, y), X, y)
    svc = SVC(C=2, gamma=0.02, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(default.decision_values(svc, X, y), expected, atol=1e-5)
    svc = lo.SVC(C=2, gamma=0.02).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(
        default.decision_values(svc, sparse.csr_array(X), y), expected, atol=1e-6
    )
    pipeline = make_pipeline(StandardScaler(), lo.SVC(C=2, gamma=0.02)).fit(X * 9, y)
    inside = lo.SVC(C=2, gamma=0.02).fit(scale(X), y)
    np.testing.assert_allclose(
        default.decision_values(pipeline, X * 9, y),
        default.decision_values(inside, scale(X), y),
        atol=1e-6,
    )
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.exp(-0.02 * squares)
    svc = lo.SVC(C=2, kernel="precomputed").fit(K, y)
    # Input distances are unknown then: the order of neighbours is the same for RBF.
    assert np.isfinite(default.decision_values(svc, K, y)).all()


def test_unfitted_classifiers_are_cloned(data, default):
    X, y = data
    svc = lo.SVC(C=2, gamma=0.02)
    values = default.decision_values(svc, X, y)
    assert not hasattr(svc, "classes_")
    np.testing.assert_array_equal(
        values, default.decision_values(clone(svc).fit(X, y), X, y)
    )


def test_more_classes_one_vs_rest(default):
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    svc = OneVsRestClassifier(SVC(C=3, gamma=0.1)).fit(X, y)
    wrong = lo.leave_one_out(svc, X, y).predictions != y
    assert np.mean(default.predict_errors(svc, X, y) == wrong) > 0.9


def test_learns_from_loom_classifiers():
    """Another classifier with coefficients and dual weights, without a C."""
    tasks = [
        (lo.LOOMClassifier(gamma=gamma), *make_banana(60, random_state=seed))
        for gamma in (0.03, 0.1, 0.3)
        for seed in range(2)
    ]
    predictor = lo.LooPredictor(random_state=0).fit(tasks)
    X, y = make_banana(80, random_state=7)
    svc = lo.LOOMClassifier(gamma=0.2).fit(X, y)
    wrong = lo.leave_one_out(svc, X, y).predictions != y
    assert np.mean(predictor.predict_errors(svc, X, y) == wrong) > 0.8
    assert len(predictor.feature_names_) == 18


def test_as_scorer(data, default):
    X, y = data
    everything = np.arange(len(y))
    search = GridSearchCV(
        lo.SVC(gamma=0.02),
        {"C": [0.1, 1, 10]},
        scoring=default,
        cv=[(everything, everything)],
    ).fit(X, y)
    rates = [
        default.predict_error_rate(lo.SVC(C=C, gamma=0.02), X, y) for C in (0.1, 1, 10)
    ]
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], 1 - np.array(rates)
    )


def test_json_keeps_everything(data, default):
    X, y = data
    again = lo.LooPredictor.from_json(default.to_json(why="a test"))
    svc = lo.SVC(C=2, gamma=0.02).fit(X, y)
    np.testing.assert_array_equal(
        again.decision_values(svc, X, y), default.decision_values(svc, X, y)
    )


def test_max_samples_and_seed(data):
    tasks = [(lo.SVC(C=C, gamma=0.02), *data) for C in (0.1, 1, 10)]
    first, again, other = (
        lo.LooPredictor(max_samples=100, random_state=seed).fit(tasks)
        for seed in (0, 0, 1)
    )
    assert first.n_samples_ == 100
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert not np.array_equal(first.mean_, other.mean_)


def test_predictor_not_fitted(data):
    with pytest.raises(NotFittedError, match="LooPredictor"):
        lo.LooPredictor().predict_errors(lo.SVC(), *data)


FOUR = np.arange(4.0)[:, None], np.array([0, 0, 1, 1])
TWENTY = make_mixture(20, random_state=1)
FITTED = lo.SVC().fit(*TWENTY)
IRIS = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    ("estimator", "X", "y", "message"),
    [
        (lo.SVC(gamma=1.0), *FOUR, "4 samples.*needs 5 or more"),
        (lo.SVC(), *IRIS, "3 classes.*OneVsRestClassifier"),
        (FITTED, TWENTY[0][:15], TWENTY[1][:15], "X has 15 samples.*fitted on 20"),
        (FITTED, TWENTY[0] + 1.0, TWENTY[1], "fitted on other samples"),
        (
            FITTED,
            TWENTY[0],
            np.where(np.arange(20) == 3, 7, TWENTY[1]),
            "label 7, unknown to the classifier",
        ),
        (
            lo.LPMClassifier(gamma=0.02),
            *TWENTY,
            "learned from classifiers without row_dual_",
        ),
    ],
)
def test_classifiers_that_do_not_fit(default, estimator, X, y, message):
    with pytest.raises(ValueError, match=message):
        default.predict_errors(estimator, X, y)


@pytest.mark.parametrize("estimator", [LogisticRegression(), NuSVC()])
def test_classifiers_without_usable_coefficients(data, default, estimator):
    name = type(estimator).__name__
    with pytest.raises(TypeError, match=f"{name} is not supported. A classifier must"):
        default.predict_errors(estimator, *data)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([], r"list of \(estimator, X, y\)"),
        ([lo.SVC()], r"list of \(estimator, X, y\)"),
        ([(lo.SVC(), 1)], r"list of \(estimator, X, y\)"),
        ([(lo.LPMClassifier(), *TWENTY), (lo.SVC(), *TWENTY)], "for each kind"),
    ],
)
def test_tasks_that_cannot_be_learned(tasks, message):
    with pytest.raises(ValueError, match=message):
        lo.LooPredictor().fit(tasks)


def test_no_errors_to_learn_from():
    X = np.r_[np.arange(10.0), np.arange(90.0, 100.0)][:, None]
    task = (lo.SVC(C=10, gamma=0.01), X, np.repeat([0, 1], 10))
    with pytest.raises(ValueError, match="there are no errors"):
        lo.LooPredictor().fit([task])


def test_parameters(data):
    with pytest.raises(ValueError, match="variant must be one of"):
        lo.LooPredictor(variant="best").fit([(lo.SVC(), *data)])
    with pytest.raises(ValueError, match="kind must be one of"):
        lo.LooPredictor.load_default("svr")
