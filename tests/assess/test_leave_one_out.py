# SPDX-License-Identifier: BSD-3-Clause
"""leave_one_out and loo_path against refits by scikit-learn, and their errors."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from datasets import penalty_from_lambda
from oracles.agreement import assert_ambiguous
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE
from oracles.refits import honest_refits
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import LeaveOneGroupOut, LeaveOneOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from solved import solve_path

import leaveout as lo
from leaveout.engine._problem import Problem
from leaveout.exceptions import CertificateWarning, SingletonClassWarning
from leaveout.methods import METHODS

LABEL_METHODS = {name for name in METHODS if "values" not in METHODS[name].takes}

# LIBSVM stores kernel values in single precision, so f is accurate to 1e-6 C.
LIBSVM = {"tol": 1e-9, "max_iter": 1_000_000}


def data(name):
    """Return some rows of a real data set, standardised."""
    loaders = {"cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}
    X, y = loaders[name](return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:100]
    return scale(X[rows]), y[rows]


def two_classes(name):
    X, y = data(name)
    kept = y != 0 if name != "cancer" else y >= 0
    return X[kept], y[kept]


def assert_equal_to_refits(res, estimator, X, y, weights=None, atol=1e-4):
    """Compare values to LIBSVM's accuracy, and the labels that it determines."""
    labels, values = honest_refits(estimator, X, y, weights)
    np.testing.assert_allclose(res.decision_values, values, rtol=1e-4, atol=atol)
    sure = np.abs(values).reshape(len(labels), -1).min(axis=1) > atol
    np.testing.assert_array_equal(res.predictions[sure], labels[sure])


@pytest.mark.parametrize("family", [sklearn.svm.SVC, lo.SVC])
@pytest.mark.parametrize("name", ["cancer", "wine"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 0.01, "kernel": "linear"},
        {"C": 100.0, "gamma": 0.02},
        {"C": 0.5, "kernel": "poly", "degree": 2, "gamma": 0.1, "coef0": 1.0},
    ],
    ids=["linear", "rbf", "poly"],
)
def test_two_classes_equal_refits(family, name, parameters):
    X, y = two_classes(name)
    res = lo.leave_one_out(family(**parameters), X, y)
    assert_equal_to_refits(res, sklearn.svm.SVC(**parameters, **LIBSVM), X, y)
    assert res.error == np.mean(res.predictions != y)
    assert res.counts["refits"] == 0
    assert res.certified.all()
    sign = np.where(y == y.max(), 1.0, -1.0)
    np.testing.assert_array_equal(res.margins, sign * res.decision_values)


@pytest.mark.parametrize("name", ["iris", "wine"])
@pytest.mark.parametrize(
    ("shape", "break_ties"), [("ovo", False), ("ovr", False), ("ovr", True)]
)
def test_three_classes_equal_refits(name, shape, break_ties):
    X, y = data(name)
    parameters = {"C": 2.0, "gamma": 0.1, "break_ties": break_ties}
    svc = sklearn.svm.SVC(decision_function_shape=shape, **parameters, **LIBSVM)
    res = lo.leave_one_out(svc, X, y)
    assert_equal_to_refits(res, svc, X, y)
    assert res.n_ambiguous == 0


def test_weights_equal_refits():
    """Include samples with weight 0, which are absent from every refit."""
    X, y = two_classes("iris")
    y = np.array(["", "versicolor", "virginica"], dtype=object)[y]
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    weights[::9] = 0.0
    svc = sklearn.svm.SVC(gamma=0.1, class_weight={"virginica": 4.0}, **LIBSVM)
    score = weights[::-1]
    res = lo.leave_one_out(svc, X, y, sample_weight=weights, score_sample_weight=score)
    assert_equal_to_refits(res, svc, X, y, weights)
    wrong = res.predictions != y
    y[:] = y[::-1]  # results keep their own copy of the labels
    assert res.error == pytest.approx(np.average(wrong, weights=score))
    assert (res.settled_by[::9] == "untouched").all()


def test_input_kinds_equal_refits():
    X, y = two_classes("wine")
    X.flags.writeable = y.flags.writeable = False
    K = laplacian_kernel(X, gamma=0.1)
    given = sklearn.svm.SVC(kernel="precomputed", C=3.0, **LIBSVM)
    assert_equal_to_refits(lo.leave_one_out(given, K, y), given, K, y)
    assert not hasattr(given, "support_")
    named = lo.SVC(C=3.0, kernel=partial(laplacian_kernel, gamma=0.1))
    assert_equal_to_refits(lo.leave_one_out(named, X, y), given, K, y)
    n, p = X.shape
    places = np.tile(np.arange(p), 2 * n), np.arange(0, 2 * n * p + 1, 2 * p)
    twice = sparse.csr_array((np.tile(X / 2, 2).ravel(), *places), shape=X.shape)
    wanted = lo.leave_one_out(lo.SVC(gamma=0.05), X, y).decision_values
    for samples in (twice, X.tolist()):
        values = lo.leave_one_out(lo.SVC(gamma=0.05), samples, y).decision_values
        np.testing.assert_allclose(values, wanted, rtol=1e-9, atol=1e-9)
    assert twice.nnz == 2 * n * p  # duplicate entries are summed in a copy


@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize("labels_only", [False, True])
def test_methods_and_modes_give_the_same_labels(method, labels_only):
    X, y = data("wine")
    svc = lo.SVC(C=5.0, gamma=0.1)
    wanted = lo.leave_one_out(svc, X, y)
    found = lo.leave_one_out(svc, X, y, method=method, labels_only=labels_only)
    assert found.method == ("walk" if method == "auto" else method)
    np.testing.assert_array_equal(found.predictions, wanted.predictions)
    if not labels_only and method not in LABEL_METHODS:
        np.testing.assert_allclose(found.margins, wanted.margins, rtol=1e-7, atol=1e-7)


def test_singleton_class_warns_and_counts_as_an_error():
    X, y = data("iris")
    rows = np.append(np.flatnonzero(y == 1), np.flatnonzero(y == 2)[:1])
    with pytest.warns(
        SingletonClassWarning, match=r"Class .*2.* has only 1 sample \(row"
    ):
        res = lo.leave_one_out(lo.SVC(gamma=0.1), X[rows], y[rows])
    assert res.wrong[-1]
    assert not res.ambiguous[-1]
    assert res.settled_by[-1] == "singleton"
    assert (res.lower[-1], res.margins[-1], res.upper[-1]) == (-np.inf, -1.0, -1.0)
    rows = np.append(np.flatnonzero(y != 2)[:40], np.flatnonzero(y == 2)[:1])
    X, y = X[rows], y[rows]
    with pytest.warns(SingletonClassWarning, match="Merge or drop"):
        res = lo.leave_one_out(lo.SVC(gamma=0.1), X, y)
    refit = sklearn.svm.SVC(gamma=0.1, **LIBSVM)
    honest = cross_val_predict(refit, X, y, cv=LeaveOneOut())
    np.testing.assert_array_equal(res.predictions, honest)


def test_indefinite_kernel_is_refitted_and_not_certified():
    X, y = two_classes("iris")
    svc = lo.SVC(kernel="sigmoid", gamma=1.0, coef0=1.0)
    with pytest.warns(CertificateWarning, match="not positive semi-definite"):
        res = lo.leave_one_out(svc, X, y)
    assert res.method == "refit"
    assert not res.certified.any()
    assert "(indefinite kernel)" in str(res)
    assert res.counts["refits"] == len(y)
    with pytest.raises(ValueError, match=r"method='walk' needs a positive semi-def"):
        lo.leave_one_out(svc, X, y, method="walk")


@pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["no_free_vector", "majority_by_one_tiny_C"])
def test_ambiguous_samples_are_named_by_every_method(method, name):
    K, y, C, _ = DEGENERATE[name]
    svc = sklearn.svm.SVC(C=1.0, kernel="precomputed")
    res = lo.leave_one_out(svc, K, y, sample_weight=C, method=method)
    truth = loo_intervals(K, y, C)
    assert_ambiguous(res.ambiguous, truth, name)
    known = res.ambiguous if method in LABEL_METHODS else np.full(len(y), True)
    np.testing.assert_allclose(res.lower[known], truth.low[known], atol=1e-9)
    np.testing.assert_allclose(res.upper[known], truth.high[known], atol=1e-9)
    assert res.n_ambiguous == truth.ambiguous.sum()


def test_an_ambiguous_subproblem_matters_only_if_it_can_change_the_vote():
    svc = sklearn.svm.SVC(C=0.1, kernel="precomputed")
    # Two samples of each class remain: every subproblem and the vote are ambiguous.
    res = lo.leave_one_out(svc, np.eye(7), [0, 0, 0, 1, 1, 2, 2])
    assert res.ambiguous[:3].all()
    assert np.isnan(res.lower[:3]).all()
    # Class 2 wins with four samples, whatever the vote of 0 against 1.
    res = lo.leave_one_out(svc, np.eye(9), [0, 0, 0, 1, 1, 2, 2, 2, 2])
    assert not res.ambiguous[:3].any()
    assert (res.predictions[:3] == 2).all()


EPS = {"method_params": {"eps": 1e-3}}


def test_method_params():
    X, y = two_classes("wine")
    svc = sklearn.svm.SVC(gamma=0.1)
    wanted = lo.leave_one_out(svc, X, y)
    for method in ("refit", "stopping"):
        res = lo.leave_one_out(svc, X, y, method=method, **EPS)
        np.testing.assert_array_equal(res.predictions, wanted.predictions)
        np.testing.assert_array_equal(res.certified, res.settled_by != "eps_kkt")
    assert (res.settled_by == "stopping").sum() == res.counts["proved"] > 0
    with pytest.raises(ValueError, match=r"'stopping' gives only the signs of the bin"):
        lo.leave_one_out(
            lo.SVC(gamma=0.1, break_ties=True), *data("wine"), method="stopping"
        )


PAIRS = {"groups": np.arange(100) // 2}
BAD_GROUPS = [
    (np.zeros((100, 2)), r"groups has shape \(100, 2\). Pass one entry"),
    (np.where(np.arange(100) == 7, np.nan, 1.0), "missing .* 1 of 100 .* row 7"),
    (pd.Series(["a", pd.NA] * 50, dtype="string"), "missing .* 50 of 100 .* row 1"),
    (np.zeros(100), "leaving out group 0.0 leaves no sample"),
    ([1, 2, 3], "groups has 3 entries, but X has 100 rows"),
]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "leap"}, r"method='leap' is not known.*'refit'"),
        (EPS, r"'eps'.*method='walk' does not take"),
        ({"method": "stopping", **PAIRS}, "'stopping' leaves out single samples"),
        ({"method": "refit", **EPS, **PAIRS}, "'refit' with method_params.*single"),
        *[({"groups": groups}, match) for groups, match in BAD_GROUPS],
        ({"score_sample_weight": -np.ones(100)}, "^score_sample_weight must be"),
        ({"score_sample_weight": np.ones(3)}, "^score_sample_weight has shape"),
        ({"labels_only": "yes"}, "labels_only must be True or False; got 'yes'"),
    ],
)
def test_bad_arguments(options, match):
    with pytest.raises((TypeError, ValueError), match=match):
        lo.leave_one_out(sklearn.svm.SVC(gamma=0.1), *data("wine"), **options)


LONG = pd.Series((2**53 + np.arange(10)).repeat(4))
COLUMN = LONG.to_numpy()[:, None]
MIXED = [v if v % 2 else str(v - 1) for v in range(2, 12)] * 4  # 3 is not "3"


@pytest.mark.parametrize(
    "groups", [LONG.astype("int64[pyarrow]"), LONG.astype("category"), COLUMN, MIXED]
)
def test_groups_are_not_converted(groups, rng):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    found = lo.leave_one_out(lo.SVC(), X, y, groups=groups)
    assert np.unique(found.groups).size == 10


@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_groups_equal_leave_one_group_out(name, rng):
    X, y = data(name)
    groups = rng.integers(0, 15, len(y)).astype(str)
    svc = sklearn.svm.SVC(C=100.0, gamma=0.05, **LIBSVM)
    result = lo.leave_one_out(svc, X, y, groups=groups)
    labels = cross_val_predict(svc, X, y, cv=LeaveOneGroupOut(), groups=groups)
    sure = ~result.ambiguous
    np.testing.assert_array_equal(result.predictions[sure], labels[sure])
    assert sure.mean() > 0.5
    assert result.certified.all()


@pytest.mark.parametrize("C", [0.5, 50.0])
@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_balanced_by_fold_equals_refits(name, C):
    X, y = (part[::2] for part in data(name))
    svc = sklearn.svm.SVC(C=C, gamma=0.05, class_weight="balanced", **LIBSVM)
    result = lo.leave_one_out(svc, X, y)
    assert result.counts["refits"] == 0  # one more solution per class
    labels, values = honest_refits(svc, X, y)
    sure = ~result.ambiguous & (result.lower == result.upper)
    assert sure.mean() > 0.5
    np.testing.assert_array_equal(result.predictions[sure], labels[sure])
    np.testing.assert_allclose(result.decision_values[sure], values[sure], atol=1e-5)


@pytest.mark.parametrize("rest", [False, True])
def test_path_equals_leave_one_out_at_each_C(rest, rng):  # noqa: N802
    """The estimator's own C is ignored."""
    X, y = data("wine")
    weights = rng.uniform(0.2, 3.0, len(y))
    svc = lo.SVC(gamma=0.05, C=-1.0)
    model = OneVsRestClassifier(svc) if rest else svc
    Cs = [10.0, 0.03, 1.0, 300.0]
    path = lo.loo_path(model, X, y, Cs=Cs, sample_weight=weights)
    assert len(path) == 4
    for k, C in enumerate(Cs):
        svc.C = C
        one = lo.leave_one_out(model, X, y, sample_weight=weights)
        for name in ("decision_values", "lower", "upper", "margins"):
            wanted = getattr(one, name)
            np.testing.assert_allclose(getattr(path[k], name), wanted, atol=1e-8)
        np.testing.assert_array_equal(path[k].predictions, one.predictions)
        assert path.errors[k] == one.error


def test_path_starts_at_the_bounds():
    """With a small C and balanced classes every coefficient is C, to the last bit."""
    K, y = np.eye(20), np.repeat([-1.0, 1.0], 10)
    problem = Problem(K, y, np.ones(20))
    Cs = penalty_from_lambda(np.exp(np.linspace(6, 0, 25)), 20)
    for at, solution in solve_path(problem, Cs):
        np.testing.assert_array_equal(solution.beta, y * at.C)
        assert solution.converged


def test_best_of_a_path_is_the_smallest_C_of_equals():  # noqa: N802
    X, y = data("iris")
    path = lo.loo_path(lo.SVC(gamma=0.1), X, y, Cs=[10, 100, 1])
    assert path.errors[0] > path.errors[1] == path.errors[2]
    assert path.best_C == 1
    assert "best" in str(path)
    with pytest.raises(ValueError, match="Cs is empty"):
        lo.loo_path(lo.SVC(), X, y, Cs=[])
    with pytest.raises(ValueError, match=r"C must be a finite number > 0; got -1"):
        lo.loo_path(lo.SVC(), X, y, Cs=[1, -1])
