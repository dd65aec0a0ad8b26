# SPDX-License-Identifier: BSD-3-Clause
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

import leaveout as lo
from leaveout.data import make_banana, make_mixture, make_twonorm

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data():
    return make_mixture(70, random_state=0)


@pytest.fixture(scope="module")
def default():
    return lo.LooPredictor.load_default()


@pytest.mark.parametrize("kind", ["svm", "lpm"])
def test_training_again_gives_the_default(kind):
    sys.path.insert(0, str(ROOT / "tools"))
    import train_loo_predictor

    again = train_loo_predictor.train(kind)
    stored = lo.LooPredictor.load_default(kind)
    assert again.feature_names_ == stored.feature_names_
    assert again.n_samples_ == stored.n_samples_
    for name in ("mean_", "scale_", "coef_", "intercept_"):
        np.testing.assert_allclose(
            getattr(again, name), getattr(stored, name), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("classifier", [lo.SVC, lo.LPMClassifier])
def test_default_on_real_data_it_has_not_seen(classifier):
    kind = "svm" if classifier is lo.SVC else "lpm"
    predictor = lo.LooPredictor.load_default(kind)
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[:150], y[:150]
    machine = classifier(C=1.0, gamma=0.02).fit(X, y)
    exact = lo.leave_one_out(machine, X, y)
    wrong = exact.predictions != y
    predicted = predictor.predict_errors(machine, X, y)
    assert predicted.dtype == bool
    assert np.mean(predicted == wrong) > 0.93
    assert predictor.predict_error_rate(machine, X, y) == pytest.approx(
        exact.error, abs=0.05
    )


def test_learned_from_two_sets_tells_more_than_chance_on_a_third():
    tasks = [
        (lo.SVC(C=C, gamma=gamma), *make(80, random_state=seed))
        for make in (make_twonorm, make_banana)
        for C in (0.1, 1.0, 10.0)
        for gamma in (0.02, 0.2)
        for seed in range(2)
    ]
    predictor = lo.LooPredictor(random_state=0).fit(tasks)
    X, y = make_mixture(100, random_state=5)
    machine = lo.SVC(C=5.0, gamma=0.01).fit(X, y)
    wrong = lo.leave_one_out(machine, X, y).predictions != y
    values = predictor.decision_values(machine, X, y)
    assert roc_auc_score(~wrong, values) > 0.8


def test_same_for_scikit_learn_pipeline_sparse_and_precomputed(data, default):
    X, y = data
    expected = default.decision_values(lo.SVC(C=2, gamma=0.02).fit(X, y), X, y)
    machine = SVC(C=2, gamma=0.02, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(
        default.decision_values(machine, X, y), expected, atol=1e-5
    )
    machine = lo.SVC(C=2, gamma=0.02).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(
        default.decision_values(machine, sparse.csr_array(X), y), expected, atol=1e-6
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
    machine = lo.SVC(C=2, kernel="precomputed").fit(K, y)
    # Input distances are unknown then: the order of neighbours is the same for RBF.
    assert np.isfinite(default.decision_values(machine, K, y)).all()


def test_unfitted_classifiers_are_cloned(data, default):
    X, y = data
    machine = lo.SVC(C=2, gamma=0.02)
    values = default.decision_values(machine, X, y)
    assert not hasattr(machine, "classes_")
    np.testing.assert_array_equal(
        values, default.decision_values(clone(machine).fit(X, y), X, y)
    )


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_more_classes_one_vs_rest(load, default):
    X, y = load(return_X_y=True)
    X = scale(X)
    machine = OneVsRestClassifier(SVC(C=3, gamma=0.1)).fit(X, y)
    wrong = lo.leave_one_out(machine, X, y).predictions != y
    assert np.mean(default.predict_errors(machine, X, y) == wrong) > 0.9


def test_learns_the_leave_one_out_machine():
    """Another classifier with coefficients and dual weights, without a C."""
    tasks = [
        (lo.LOOMClassifier(gamma=gamma), *make_banana(60, random_state=seed))
        for gamma in (0.03, 0.1, 0.3)
        for seed in range(2)
    ]
    predictor = lo.LooPredictor(random_state=0).fit(tasks)
    X, y = make_banana(80, random_state=7)
    machine = lo.LOOMClassifier(gamma=0.2).fit(X, y)
    wrong = lo.leave_one_out(machine, X, y).predictions != y
    assert np.mean(predictor.predict_errors(machine, X, y) == wrong) > 0.8
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
    machine = lo.SVC(C=2, gamma=0.02).fit(X, y)
    np.testing.assert_array_equal(
        again.decision_values(machine, X, y), default.decision_values(machine, X, y)
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


def fitted(n=20, **params):
    X, y = make_mixture(n, random_state=1)
    return lo.SVC(**params).fit(X, y), X, y


class TestBadInput:
    def test_predictor_not_fitted(self, data):
        with pytest.raises(NotFittedError, match="LooPredictor"):
            lo.LooPredictor().predict_errors(lo.SVC(), *data)

    def test_too_few_samples(self, default):
        X, y = np.arange(4.0)[:, None], np.array([0, 0, 1, 1])
        with pytest.raises(ValueError, match=r"4 samples.*needs 5 or more"):
            default.predict_errors(lo.SVC(gamma=1.0), X, y)

    def test_no_coefficients(self, data, default):
        with pytest.raises(TypeError, match=r"LogisticRegression will not do"):
            default.predict_errors(LogisticRegression(), *data)

    def test_one_vs_one(self, default):
        X, y = load_iris(return_X_y=True)
        with pytest.raises(ValueError, match=r"3 classes.*OneVsRestClassifier"):
            default.predict_errors(lo.SVC().fit(X, y), X, y)

    def test_fitted_on_fewer(self, default):
        machine, X, y = fitted()
        with pytest.raises(ValueError, match=r"X has 15 samples.*fitted on 20"):
            default.predict_errors(machine, X[:15], y[:15])

    def test_fitted_on_others(self, default):
        machine, X, y = fitted()
        with pytest.raises(ValueError, match="fitted on other samples"):
            default.predict_errors(machine, X + 1.0, y)

    def test_unknown_label(self, default):
        machine, X, y = fitted()
        with pytest.raises(ValueError, match="label 7, unknown to the classifier"):
            default.predict_errors(machine, X, np.where(np.arange(20) == 3, 7, y))

    def test_kinds_do_not_mix(self, data, default):
        X, y = data
        with pytest.raises(ValueError, match="learned from classifiers without row_d"):
            default.predict_errors(lo.LPMClassifier(gamma=0.02), X, y)
        tasks = [(lo.LPMClassifier(gamma=0.02), X, y), (lo.SVC(gamma=0.02), X, y)]
        with pytest.raises(ValueError, match="one LooPredictor for each kind"):
            lo.LooPredictor().fit(tasks)

    @pytest.mark.parametrize("tasks", [[], [lo.SVC()], [(lo.SVC(), 1)]])
    def test_tasks(self, tasks):
        with pytest.raises(ValueError, match=r"list of \(estimator, X, y\)"):
            lo.LooPredictor().fit(tasks)

    def test_no_errors_to_learn_from(self):
        X = np.r_[np.arange(10.0), np.arange(90.0, 100.0)][:, None]
        task = (lo.SVC(C=10, gamma=0.01), X, np.repeat([0, 1], 10))
        with pytest.raises(ValueError, match="there are no errors"):
            lo.LooPredictor().fit([task])

    def test_parameters(self, data):
        with pytest.raises(ValueError, match="variant must be one of"):
            lo.LooPredictor(variant="best").fit([(lo.SVC(), *data)])
        with pytest.raises(ValueError, match="kind must be one of"):
            lo.LooPredictor.load_default("svr")
