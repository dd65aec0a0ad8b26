# SPDX-License-Identifier: BSD-3-Clause
"""From any SVC to the pieces leave-one-out needs, or to advice."""

import numpy as np
import pytest
import sklearn.svm
from oracles.problems import DEGENERATE
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

from leaveout import SVC, SVCCV, LLWClassifier
from leaveout.adapt._prepare import adapt_svc
from leaveout.engine._solve import solve_svc
from leaveout.loo._task import make_task

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.mark.parametrize("family", [sklearn.svm.SVC, SVC])
def test_pieces_of_a_multi_class_svc(family):
    estimator = family(C=3.0, class_weight={"setosa": 2.0}, break_ties=True)
    before = estimator.get_params()
    weights = np.linspace(0.0, 1.0, 150)
    svc, task = adapt_svc(estimator, X, NAMES[y], weights)
    assert isinstance(svc, SVC)
    assert svc is not estimator
    assert svc.break_ties
    assert estimator.get_params() == before
    np.testing.assert_array_equal(task.classes, NAMES)
    np.testing.assert_array_equal(task.codes, y)
    np.testing.assert_allclose(task.C, 3.0 * np.where(y == 0, 2.0, 1.0) * weights)
    assert task.gamma == pytest.approx(1 / (4 * X.var()))
    np.testing.assert_allclose(task.K, rbf_kernel(X, gamma=task.gamma), atol=1e-14)
    assert task.pairs == [(0, 1), (0, 2), (1, 2)]
    assert task.fit_intercept


def test_arguments_that_only_steer_libsvm_are_ignored():
    estimator = sklearn.svm.SVC(
        C=2.0, tol=0.5, max_iter=3, cache_size=1, shrinking=False, verbose=True
    )
    svc, _ = adapt_svc(estimator, X, y)
    assert svc.get_params() == SVC(C=2.0).get_params()


def test_our_own_arguments_are_kept():
    svc, task = adapt_svc(SVC(fit_intercept=False, tol=1e-7, max_iter=99), X, y)
    assert (svc.fit_intercept, svc.tol, svc.max_iter) == (False, 1e-7, 99)
    assert not task.fit_intercept


def test_problems_of_the_pairs_have_the_sign_of_the_decision_function():
    svc = SVC(gamma=0.3, decision_function_shape="ovo")
    for labels in (y, (y == 2)):
        task = make_task(svc, X, labels)
        values = svc.fit(X, labels).decision_function(X).reshape(150, -1)
        for k, (i, j) in enumerate(task.pairs):
            rows = task.rows(i, j)
            solution = solve_svc(task.problem(i, j))
            np.testing.assert_allclose(
                values[rows, k], solution.decision_values, rtol=0, atol=1e-10
            )


def test_rows_without_weight_stay_in_the_gram_matrix_and_out_of_the_problems():
    weights = np.where(np.arange(150) % 3 == 0, 0.0, 1.0)
    _, task = adapt_svc(SVC(gamma=0.3), X, y, weights)
    assert task.K.shape == (150, 150)
    rows = task.rows(0, 2)
    assert (weights[rows] > 0).all()
    assert task.problem(0, 2).n_samples == rows.size == 67
    # A class without weight has no code.
    _, task = adapt_svc(SVC(gamma=0.3), X, NAMES[y], sample_weight=y != 1)
    np.testing.assert_array_equal(task.classes, NAMES[[0, 2]])
    np.testing.assert_array_equal(np.unique(task.codes[y == 1]), [-1])
    np.testing.assert_array_equal(np.unique(task.codes[y == 2]), [1])


def test_one_problem_on_all_rows_shares_the_gram_matrix():
    _, task = adapt_svc(SVC(), X, y == 1)
    assert task.problem(0, 1).K is task.K


def test_precomputed_and_singleton_class():
    K, signs, *_ = DEGENERATE["singleton_class"]
    _, task = adapt_svc(sklearn.svm.SVC(kernel="precomputed"), K, signs)
    assert task.gamma is None
    np.testing.assert_array_equal(task.K, K)
    np.testing.assert_array_equal(task.problem(0, 1).y, signs)


def test_bad_data_is_refused_as_in_fit():
    with pytest.raises(ValueError, match="X has 150 rows but y has 149 labels"):
        adapt_svc(sklearn.svm.SVC(), X, y[1:])
    with pytest.raises(ValueError, match="C must be a finite number > 0; got -1"):
        adapt_svc(sklearn.svm.SVC(C=-1), X, y)


@pytest.mark.parametrize(
    ("estimator", "advice"),
    [
        (sklearn.svm.LinearSVC(), r"LinearSVC .* Use SVC\(kernel='linear', C=...\)"),
        (sklearn.svm.NuSVC(), r"NuSVC .* nu means another C .* Use SVC\(C=...\)"),
        (sklearn.svm.SVR(), "SVR will not do: it is a regressor. Use an SVC"),
        (sklearn.svm.NuSVR(), "NuSVR will not do: it is a regressor"),
        (sklearn.svm.LinearSVR(), "LinearSVR will not do: it is a regressor"),
        (sklearn.svm.OneClassSVM(), "OneClassSVM .* one class only. Use an SVC"),
        (SGDClassifier(), r"SGDClassifier .* Use SVC\(kernel='linear'"),
        (GridSearchCV(SVC(), {}), "GridSearchCV .* Pass its best_estimator_"),
        (SVCCV(), "SVCCV .* is a search. .* loo_error_ .* honest_loo"),
        (LLWClassifier(), "LLWClassifier .* LooSearchCV and llw_bounds take it"),
        (OneVsRestClassifier(SVC()), "into leave_one_out only. .* one-vs-one"),
        (OneVsOneClassifier(SVC()), "OneVsOneClassifier .* Pass the SVC"),
        (LogisticRegression(), r"LogisticRegression .*cross_val_predict.*LeaveOneOut"),
        (KMeans(), r"KMeans .* is not a support vector classifier"),
        (sklearn.svm.SVC, r"not the class SVC. Pass SVC\(\)"),
        ("svc", "str will not do"),
        (None, "NoneType will not do"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_estimators_get_advice(estimator, advice):
    with pytest.raises(TypeError, match=advice):
        adapt_svc(estimator, X, y)
