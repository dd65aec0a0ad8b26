# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC, NuSVC

import leaveout as lo
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
    X, y = make_banana(80, random_state=7)
    clf = lo.LOOMClassifier(gamma=0.2)
    wrong = lo.leave_one_out(clf, X, y).wrong
    assert np.mean(predictor.predict_errors(clf, X, y) == wrong) > 0.8


def test_seed_and_json():
    tasks = [(lo.SVC(C=C, gamma=0.02), X, Y) for C in (0.1, 1, 10)]
    first, same, other = (
        lo.LooPredictor(max_samples=100, random_state=seed).fit(tasks)
        for seed in (0, 0, 1)
    )
    assert first.n_samples_ == 100
    np.testing.assert_array_equal(first.coef_, same.coef_)
    assert not np.array_equal(first.mean_, other.mean_)
    again = lo.LooPredictor.from_json(first.to_json(why="a test"))
    np.testing.assert_array_equal(
        again.decision_values(lo.SVC(), X, Y), first.decision_values(lo.SVC(), X, Y)
    )


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
        ("natural", [], r"list of \(estimator, X, y\)"),
        ("natural", [(lo.LPMClassifier(), X, Y), (lo.SVC(), X, Y)], "for each kind"),
        ("natural", [TASK], "have no errors"),
        ("best", [TASK], "variant must be one of"),
    ],
)
def test_tasks_that_cannot_be_learned(variant, tasks, message):
    with pytest.raises(ValueError, match=message):
        lo.LooPredictor(variant=variant).fit(tasks)
