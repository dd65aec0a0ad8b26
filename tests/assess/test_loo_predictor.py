# SPDX-License-Identifier: BSD-3-Clause
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC, NuSVC

import leaveout as lo
from leaveout.assess._loo_predictor import _draw
from leaveout.data import make_banana, make_mixture

DEFAULT = lo.LooPredictor.load_default()
X, Y = make_mixture(70, random_state=0)
TWENTY = make_mixture(20, random_state=1)
IRIS = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    ("classifier", "kind"), [(lo.SVC, "svm"), (lo.LPMClassifier, "lpm")]
)
def test_default_on_new_real_data(classifier, kind):
    predictor = lo.LooPredictor.load_default(kind)
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[:150], y[:150]
    clf = classifier(C=1.0, gamma=0.02).fit(X, y)
    exact = lo.leave_one_out(clf, X, y)
    assert np.mean(predictor.predict_errors(clf, X, y) == exact.wrong) > 0.93
    rate = predictor.predict_error_rate(clf, X, y)
    assert abs(rate - exact.error) < 0.05
    assert predictor(clf, X, y) == 1 - rate  # a scorer


def test_more_classes_one_vs_rest():
    X, y = scale(IRIS[0]), IRIS[1]
    svc = OneVsRestClassifier(SVC(C=3, gamma=0.1)).fit(X, y)
    wrong = lo.leave_one_out(svc, X, y).wrong
    assert np.mean(DEFAULT.predict_errors(svc, X, y) == wrong) > 0.9


@pytest.mark.filterwarnings("ignore::leaveout.PredictorWarning")
def test_same_for_scikit_learn_sparse_pipeline_and_unfitted():
    ours = lo.SVC(C=2, gamma=0.02)
    expected = DEFAULT.decision_values(ours, X, Y)
    assert not hasattr(ours, "classes_")
    svc = SVC(C=2, gamma=0.02, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(DEFAULT.decision_values(svc, X, Y), expected, atol=1e-5)
    for clf, samples in (
        (ours, sparse.csr_array(X)),
        (make_pipeline(StandardScaler(with_std=False), ours), X),
    ):
        values = DEFAULT.decision_values(clf.fit(samples, Y), samples, Y)
        np.testing.assert_allclose(values, expected, atol=1e-6)
    svc = lo.SVC(C=2, kernel="precomputed")
    assert np.isfinite(DEFAULT.decision_values(svc, X @ X.T, Y)).all()


def test_learns_from_loom_classifiers():
    """LOOM has row duals but no C."""
    tasks = [
        (lo.LOOMClassifier(gamma=gamma), *make_banana(60, random_state=seed))
        for gamma in (0.03, 0.1, 0.3)
        for seed in range(2)
    ]
    predictor = lo.LooPredictor(random_state=0).fit(tasks)
    assert {member.variant for member in predictor.estimators_} == {"natural"}
    X, y = make_banana(80, random_state=7)
    clf = lo.LOOMClassifier(gamma=0.2)
    wrong = lo.leave_one_out(clf, X, y).wrong
    with pytest.warns(lo.PredictorWarning, match="two members of the bag disagree"):
        predicted = predictor.predict_errors(clf, X, y)
    assert np.mean(predicted == wrong) > 0.8


def test_seed_and_json():
    tasks = [(lo.SVC(C=C, gamma=0.02), X, Y) for C in (0.1, 1, 10)]
    first, same, other = (
        lo.LooPredictor(n_estimators=4, max_samples=100, random_state=seed).fit(tasks)
        for seed in (0, 0, 1)
    )
    variants = [member.variant for member in first.estimators_]
    assert variants == ["natural", "relative"] * 2
    for a, b, c in zip(*(p.estimators_ for p in (first, same, other)), strict=True):
        assert a.n_samples == 100
        assert abs(a.duality_gap) < 1e-8
        np.testing.assert_array_equal(a.coef, b.coef)
        assert not np.array_equal(a.mean, c.mean)
    again = lo.LooPredictor.from_json(first.to_json(why="a test"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lo.PredictorWarning)
        values = [p.decision_values(lo.SVC(), X, Y) for p in (again, first)]
        rate = again.predict_error_rate(lo.SVC(), X, Y)
        by_vote = again.predict_errors(lo.SVC(), X, Y)
    np.testing.assert_array_equal(*values)
    assert rate == (values[0] < 0).mean()
    np.testing.assert_array_equal(by_vote, (values[0] < 0).sum(axis=0) > 2)


def test_samples_are_drawn_evenly_from_the_tasks():
    """Of unequal tasks and of one that is ambiguous throughout."""
    sizes = np.array([5, 0, 300])
    rows = _draw(sizes, 101, np.random.RandomState(0))
    assert set(np.bincount(rows >= 5)) == {50, 51}
    assert np.unique(rows[rows >= 5]).size > 40
    assert _draw(sizes, 400, np.random.RandomState(0)).size == 305


class KernelRidge(ClassifierMixin, BaseEstimator):
    """Ridge regression on labels -1 and 1: a KernelExpansion with a known LOO."""

    kernel = "rbf"

    def __init__(self, alpha=1.0, gamma=0.1):
        self.alpha, self.gamma = alpha, gamma

    def fit(self, X, y):
        self.classes_, codes = np.unique(y, return_inverse=True)
        K = rbf_kernel(X, gamma=self.gamma) + self.alpha * np.eye(len(X))
        self.expansion_coef_ = np.linalg.solve(K, 2.0 * codes - 1.0)
        self.X_, self.intercept_ = X, 0.0
        return self

    def predict(self, X):
        values = rbf_kernel(X, self.X_, gamma=self.gamma) @ self.expansion_coef_
        return self.classes_[(values > 0).astype(int)]


def ridge_wrong(clf, X, y):
    """Return the left-out errors: y_p f_p = 1 - y_p a_p / (K + alpha I)^-1_pp."""
    clf, signs = clone(clf).fit(X, y), 2.0 * (y == np.unique(y)[1]) - 1.0
    G = np.linalg.inv(rbf_kernel(X, gamma=clf.gamma) + clf.alpha * np.eye(len(X)))
    return 1.0 - signs * clf.expansion_coef_ / G.diagonal() < 0.0


def test_any_kernel_classifier():
    """Learned from refits and from given labels, with a closed form for both."""
    tasks = [
        (KernelRidge(alpha, gamma), *make_banana(60, random_state=seed))
        for alpha in (0.01, 0.1, 1.0)
        for gamma in (0.3, 3.0)
        for seed in range(2)
    ]
    wrong = [ridge_wrong(*task) for task in tasks]
    refits = lo.LooPredictor(n_estimators=4, random_state=0)
    for task, expected in zip(tasks[:3], wrong, strict=False):
        np.testing.assert_array_equal(refits._leave_out(*task), expected)
    refits.fit(tasks)
    given = lo.LooPredictor(n_estimators=4, random_state=0).fit(tasks, wrong)
    assert refits.to_json() == given.to_json()
    X, y = make_banana(150, random_state=5)
    clf = KernelRidge(0.1, 1.0).fit(X, y)
    assert isinstance(clf, lo.KernelExpansion)
    exact = ridge_wrong(clf, X, y)
    assert np.mean(given.predict_errors(clf, X, y) == exact) > 0.95
    assert np.isfinite(DEFAULT.predict_error_rate(clf, X, y))
    masked = [np.ma.array(w, mask=np.arange(60) >= 40) for w in wrong]
    few = [w[:40] for w in wrong]
    assert given.fit(tasks, masked).estimators_[0].n_samples == sum(map(len, few))


def break_samples(clf):
    clf.X_ = clf.X_[::-1]  # predict uses other samples than the expansion


def break_rows(clf):
    clf.expansion_coef_ = np.tile(clf.expansion_coef_, (2, 1))


def break_intercept(clf):
    del clf.intercept_


def break_kernel(clf):
    clf.kernel = "poly"


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (break_samples, ValueError, "predict of the KernelRidge contradicts"),
        (break_rows, ValueError, "2 classes, so expansion_coef_ must have 1 row"),
        (break_intercept, TypeError, "has expansion_coef_, but not intercept_"),
        (break_kernel, TypeError, "kernel='poly', but no attribute 'degree'"),
    ],
)
def test_expansions_that_are_not_what_they_say(damage, error, message):
    clf = KernelRidge().fit(*TWENTY)
    damage(clf)
    with pytest.raises(error, match=message):
        DEFAULT.predict_errors(clf, *TWENTY)


@pytest.mark.parametrize("classifier", [lo.SVC(C=10.0), KernelRidge(alpha=0.1)])
def test_one_class_against_the_rest(classifier):
    """Figure 5: exact for the class learned from, predicted for the others."""
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:240] / 16.0, y[:240]
    gammas = [0.003, 0.03, 0.3, 3.0]
    predictor = lo.LooPredictor(n_estimators=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lo.LeaveoutWarning)
        predictor.fit_one_vs_rest(classifier, {"gamma": gammas}, X, y, learn_from=1)
    assert predictor.errors_.shape == (4, 4)
    exact = np.empty((4, 4))
    for c in range(4):
        for g, gamma in enumerate(gammas):
            clf, target = clone(classifier).set_params(gamma=gamma), (y == c) * 1
            if isinstance(classifier, lo.SVC):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", lo.LeaveoutWarning)
                    exact[c, g] = lo.leave_one_out(clf, X, target).error
            else:
                exact[c, g] = ridge_wrong(clf, X, target).mean()
    np.testing.assert_array_equal(predictor.errors_[1], exact[1])
    assert np.abs(predictor.errors_ - exact).mean() < 0.02
    for c, params in predictor.best_params_.items():
        best = int(predictor.errors_[c].argmin())
        assert params == predictor.params_[best] == {"gamma": gammas[best]}
        assert predictor.best_estimators_[c].gamma == gammas[best]
        assert exact[c, best] <= exact[c].min() + 0.01
    with pytest.raises(ValueError, match="learn_from must be one of the classes"):
        predictor.fit_one_vs_rest(classifier, {"gamma": gammas}, X, y, learn_from=7)


def test_warns_outside_the_training_range():
    random = np.random.default_rng(0)
    one_hot = np.eye(50)[random.integers(50, size=(40, 20))].reshape(40, -1)
    y = np.arange(40) % 2
    with pytest.warns(lo.PredictorWarning, match="outside the range of the training"):
        DEFAULT.predict_error_rate(lo.SVC(C=1.0, gamma=0.0001), one_hot, y)


FITTED = lo.SVC().fit(*TWENTY)


@pytest.mark.parametrize(
    ("estimator", "X", "y", "error", "message"),
    [
        (lo.SVC(gamma=1.0), X[:4], [0, 0, 1, 1], ValueError, "4 .*needs at least 5"),
        (lo.SVC(), *IRIS, ValueError, "3 classes.*OneVsRestClassifier"),
        (FITTED, X, Y, ValueError, "X has 70 samples.*fitted on 20"),
        (FITTED, TWENTY[0] + 1.0, TWENTY[1], ValueError, "fitted on other samples"),
        (FITTED, TWENTY[0], 7 * TWENTY[1], ValueError, "label 7, which is not one of"),
        (lo.LPMClassifier(), X, Y, ValueError, "trained on classifiers without row_"),
        (NuSVC(), X, Y, TypeError, "NuSVC is not supported. Use a classifier"),
    ],
)
def test_classifiers_that_do_not_fit(estimator, X, y, error, message):
    with pytest.raises(error, match=message):
        DEFAULT.predict_errors(estimator, X, y)
    with pytest.raises(NotFittedError, match="LooPredictor"):
        lo.LooPredictor().predict_errors(lo.SVC(), X, y)
    with pytest.raises(ValueError, match="kind must be one of"):
        lo.LooPredictor.load_default("svr")


EASY = np.r_[np.arange(10.0), np.arange(90.0, 100.0)][:, None]
TASK = (lo.SVC(C=10, gamma=0.01), EASY, np.repeat([0, 1], 10))


@pytest.mark.parametrize(
    ("variant", "tasks", "message"),
    [
        ("auto", [], r"list of \(estimator, X, y\)"),
        ("natural", [(lo.LPMClassifier(), X, Y), (lo.SVC(), X, Y)], "for each kind"),
        ("natural", [TASK], "have no errors"),
        ("best", [TASK], "variant must be one of"),
    ],
)
def test_tasks_that_cannot_be_learned(variant, tasks, message):
    with pytest.raises(ValueError, match=message):
        lo.LooPredictor(variant=variant).fit(tasks)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "0 masks for 1 tasks"),
        ([np.zeros(3, dtype=bool)], "one entry per sample, 20; got bool of shape"),
        ([np.zeros(20)], "got float64 of shape"),
    ],
)
def test_given_labels_that_do_not_fit(wrong, message):
    with pytest.raises(ValueError, match=message):
        lo.LooPredictor().fit([TASK], wrong)
