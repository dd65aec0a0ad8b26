# SPDX-License-Identifier: BSD-3-Clause
"""From any SVC to the pieces leave-one-out needs, or to advice."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier

from leaveout import SVC, SVCCV, LLWClassifier
from leaveout.adapt._prepare import prepare
from leaveout.engine._solve import solve_svc
from leaveout.loo._task import svm_subproblems

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.mark.parametrize("family", [sklearn.svm.SVC, SVC])
def test_pieces_of_a_multi_class_svc(family):
    estimator = family(C=3.0, class_weight={"setosa": 2.0}, break_ties=True)
    before = estimator.get_params()
    weights = np.where(np.arange(150) % 3 == 0, 0.0, 1.5)
    task, plan = prepare(estimator, X, NAMES[y], sample_weight=weights)
    assert task.params.break_ties
    assert plan.method == "walk"
    assert estimator.get_params() == before
    np.testing.assert_array_equal(task.target.classes, NAMES)
    np.testing.assert_array_equal(task.target.codes, y)
    np.testing.assert_allclose(task.C, 3.0 * np.where(y == 0, 2.0, 1.0) * weights)
    gamma = 1 / (4 * X.var())
    np.testing.assert_allclose(task.K, rbf_kernel(X, gamma=gamma), atol=1e-14)
    # Rows without weight stay in the Gram matrix and out of the subproblems.
    for subproblem in svm_subproblems(task, whole=False):
        assert (weights[subproblem.rows] > 0).all()
        assert subproblem.problem.n_samples == subproblem.rows.size < 70


def test_a_class_without_weight_has_no_code():
    task, _ = prepare(SVC(gamma=0.3), X, NAMES[y], sample_weight=y != 1)
    np.testing.assert_array_equal(task.target.classes, NAMES[[0, 2]])
    np.testing.assert_array_equal(np.unique(task.target.codes[y == 1]), [-1])
    np.testing.assert_array_equal(np.unique(task.target.codes[y == 2]), [1])


def test_bad_data_is_refused_as_in_fit():
    with pytest.raises(ValueError, match="X has 150 rows but y has 149 labels"):
        prepare(sklearn.svm.SVC(), X, y[1:])
    with pytest.raises(ValueError, match="C must be a finite number > 0; got -1"):
        prepare(sklearn.svm.SVC(C=-1), X, y)


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
        prepare(estimator, X, y)


def test_subproblems_have_the_sign_of_the_decision_function():
    svc = SVC(gamma=0.3, decision_function_shape="ovo")
    for labels in (y, (y == 2)):
        task, _ = prepare(svc, X, labels)
        values = svc.fit(X, labels).decision_function(X).reshape(150, -1)
        for k, sub in enumerate(svm_subproblems(task, whole=False)):
            solution = solve_svc(sub.problem)
            np.testing.assert_allclose(
                values[sub.rows, k], solution.decision_values, rtol=0, atol=1e-10
            )


def test_arguments_that_only_steer_libsvm_are_ignored():
    estimator = sklearn.svm.SVC(C=2.0, tol=0.5, max_iter=3, verbose=True)
    task, _ = prepare(estimator, X, y)
    ours, _ = prepare(SVC(C=2.0), X, y)
    assert task.params == ours.params
