# SPDX-License-Identifier: BSD-3-Clause
"""OneVsRestClassifier(SVC()): the same results as n refits by scikit-learn."""

from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.svm
from oracles.refits import honest_refits
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale

from leaveout import SVC, SingletonClassWarning, leave_one_out
from leaveout.loo._multiclass import decide_one_vs_rest
from leaveout.loo._task import make_target

NAMES = np.array(["c", "a", "b"])


def load(which, step=1):
    X, y = which(return_X_y=True)
    return scale(X)[::step], y[::step]


@pytest.mark.parametrize(
    ("which", "step", "parameters"),
    [
        (load_wine, 2, {"C": 100.0, "gamma": 0.1}),
        (load_iris, 3, {"C": 0.1, "kernel": "linear"}),
        (load_iris, 2, {"gamma": 0.2, "class_weight": {0: 0.5, 1: 4.0}}),
    ],
)
def test_one_vs_rest_equals_scikit_learn(which, step, parameters):
    X, y = load(which, step)
    svc = sklearn.svm.SVC(tol=1e-10, **parameters)
    estimator = OneVsRestClassifier(svc)
    result = leave_one_out(estimator, X, NAMES[y])
    predictions, values = honest_refits(estimator, X, NAMES[y])
    clear = ~result.ambiguous
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(result.predictions[clear], predictions[clear])
    np.testing.assert_allclose(result.decision_values[clear], values[clear], atol=1e-4)
    assert result.certified.all()
    assert ((result.margins > 0) == (result.predictions == NAMES[y]))[clear].all()
    assert (result.lower <= result.margins).all()
    assert (result.margins <= result.upper).all()


def test_two_classes_have_one_subproblem():
    X, y = load(load_iris)
    X, y = X[50::2], NAMES[y[50::2]]
    result = leave_one_out(OneVsRestClassifier(SVC(gamma=0.2)), X, y)
    pairs = leave_one_out(SVC(gamma=0.2), X, y)
    np.testing.assert_array_equal(result.predictions, pairs.predictions)
    for name in ("decision_values", "margins", "lower", "upper", "ambiguous"):
        np.testing.assert_allclose(getattr(result, name), getattr(pairs, name))


@pytest.mark.parametrize("how", ["fold", "frozen"])
def test_weights_and_balanced_classes_against_fits(how):
    # A row with weight 0 is left out, but "balanced" still counts it, as if frozen.
    X, y = load(load_iris, 5)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 30)
    weights[::7] = 0.0
    svc = SVC(gamma=0.2, class_weight="balanced")
    model, options = OneVsRestClassifier(svc), {"preprocessing": how}
    result = leave_one_out(model, X, y, sample_weight=weights, **options)
    for r in range(30):
        without = np.where(np.arange(30) == r, 0.0, weights)
        kept = np.arange(30) != (r if how == "fold" else -1)
        wanted = [
            svc.fit(X[kept], (y == c)[kept], without[kept]).decision_function(X[[r]])[0]
            for c in range(3)
        ]
        np.testing.assert_allclose(result.decision_values[r], wanted, atol=1e-8)


def test_labels_only_has_no_effect_if_values_decide():
    X, y = load(load_wine, 2)
    for model in (OneVsRestClassifier(SVC(gamma=0.1)), SVC(gamma=0.1, break_ties=True)):
        np.testing.assert_array_equal(
            leave_one_out(model, X, y, labels_only=True).decision_values,
            leave_one_out(model, X, y).decision_values,
        )


def test_singleton_class_is_an_error(rng):
    X, y = rng.normal(size=(24, 2)), np.arange(24) == 7
    with pytest.warns(SingletonClassWarning, match=r"has only 1 sample \(row 7\)"):
        result = leave_one_out(OneVsRestClassifier(SVC(gamma=0.5)), X, y)
    assert result.wrong[7]
    assert result.margins[7] < 0


def test_groups_equal_leave_one_group_out():
    X, y = load(load_iris, 2)
    groups = np.random.default_rng(2).permutation(np.arange(75) % 9)
    groups[y == 0] = 4  # class 0 is in this group only
    data = OneVsRestClassifier(sklearn.svm.SVC(gamma=0.2, tol=1e-10)), X, NAMES[y]
    result = leave_one_out(*data, groups=groups)
    wanted = cross_val_predict(*data, groups=groups, cv=LeaveOneGroupOut())
    clear = ~result.ambiguous
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(result.predictions[clear], wanted[clear])
    # all of class "c" is in group 4
    np.testing.assert_array_equal(result.decision_values[groups == 4, 2], -np.inf)


def decide(values, lower, upper, y):
    """Return the decision from these values and intervals."""
    task = SimpleNamespace(target=make_target(np.array(y), np.ones(len(y))))
    return decide_one_vs_rest(task, *np.array([values, lower, upper], dtype=float))


def test_ambiguous_if_intervals_overlap():
    values = [[2, 0, 1], [2, 0, 1], [2, 0, 1], [1, 1, 0], [-3, -2, -2.5], [0, 1, 2]]
    lower = [[2, 0, 1], [1, 0, 0], [2, 0, 1], [1, 1, 0], [-4, -2.2, -2.6], [0, 1, 2]]
    upper = [[2, 0, 1], [3, 0, 2], [2, 9, 1], [1, 1, 0], [-2.3, -1, -2.4], [0, 1, 2]]
    decided = decide(values, lower, upper, [0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(decided["predictions"], [0, 0, 0, 0, 1, 2])
    np.testing.assert_array_equal(decided["ambiguous"], [0, 1, 1, 1, 0, 0])
    np.testing.assert_allclose(decided["margins"], [1, -2, -1, 0, 0.5, 1])
    np.testing.assert_allclose(decided["lower"], [1, -3, -8, 0, 0.1, 1])
    np.testing.assert_allclose(decided["upper"], [1, -1, -1, 0, 1.6, 1])


def test_two_classes_by_hand():
    decided = decide([[0], [1]], [[0], [-1]], [[0], [2]], ["a", "b"])
    np.testing.assert_array_equal(decided["predictions"], ["a", "b"])
    np.testing.assert_allclose(decided["margins"], [0, 1])
    np.testing.assert_allclose(decided["lower"], [0, -1])
    np.testing.assert_allclose(decided["upper"], [0, 2])
    assert decided["ambiguous"].all()
