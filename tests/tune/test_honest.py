# SPDX-License-Identifier: BSD-3-Clause
"""Nested leave-one-out against scikit-learn's, resumed, interrupted."""

import os
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneGroupOut,
    LeaveOneOut,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import leaveout as lo
from leaveout import HonestLoo

GRID = {"C": [3.0, 30.0], "gamma": [0.05, 0.5]}


def noisy(n=14, seed=1):
    return make_classification(n, 4, n_informative=2, flip_y=0.15, random_state=seed)


def honest(search, X, y, **options):
    return lo.honest_loo(search, X, y, verbose=0, **options)


def iris_part():
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:3, 50:55, 100:105]
    return X[rows], np.array(["setosa", "versicolor", "virginica"])[y[rows]]


@pytest.mark.parametrize("data", [noisy, iris_part])
def test_equals_nested_loops_of_scikit_learn(data):
    X, y = data()
    result = honest(lo.LooSearchCV(SVC(), GRID), X, y)
    reference = GridSearchCV(SVC(tol=1e-8), GRID, cv=LeaveOneOut())
    wanted = cross_val_predict(reference, X, y, cv=LeaveOneOut())
    np.testing.assert_array_equal(result.predictions, wanted)
    assert result.error == np.mean(wanted != y)
    assert result.naive_error == pytest.approx(1 - reference.fit(X, y).best_score_)
    for r in (0, 7):
        others = np.delete(np.arange(len(y)), r)
        reference.fit(X[others], y[others])
        assert result.params[r] == reference.best_params_
    assert sum(count for _, count in result.choices) == len(y)


def test_groups_are_left_out_inside_and_outside():
    X, y = noisy(24, 2)
    groups = np.array(list("abcdef"))[np.arange(24) % 6]
    result = honest(lo.LooSearchCV(SVC(), GRID), X, y, groups=groups)
    wanted = np.empty_like(y)
    for train, test in LeaveOneGroupOut().split(X, y, groups):
        # Groups of equal size: the mean of their scores is the pooled one.
        search = GridSearchCV(SVC(tol=1e-8), GRID, cv=LeaveOneGroupOut())
        search.fit(X[train], y[train], groups=groups[train])
        wanted[test] = search.predict(X[test])
    np.testing.assert_array_equal(result.predictions, wanted)
    assert len(result.params) == 6
    with pytest.raises(ValueError, match="three groups or more"):
        honest(lo.LooSearchCV(SVC(), GRID), X, y, groups=groups < "c")


def test_preprocessing_is_fitted_without_the_left_out():
    X, y = noisy(16, 3)
    X[:, 0] *= 50
    grid = {"svc__C": [1.0, 10.0]}
    model = make_pipeline(StandardScaler(), SVC(gamma=0.3))
    with pytest.warns(lo.PreprocessingWarning):
        result = honest(lo.LooSearchCV(model, grid), X, y)
    for r in (0, 5, 11):
        others = np.delete(np.arange(16), r)
        best = make_pipeline(
            StandardScaler(), SVC(C=result.params[r]["svc__C"], gamma=0.3, tol=1e-8)
        ).fit(X[others], y[others])
        assert result.predictions[r] == best.predict(X[[r]])[0]


def test_tables_gram_matrices_and_weights():
    X, y = noisy(16, 4)
    search = lo.LooSearchCV(SVC(gamma=0.2), {"C": [0.3, 3]})
    wanted = honest(search, X, y)
    frame = pd.DataFrame(X, columns=list("abcd"), index=range(100, 116))
    found = [honest(search, frame, y)]
    gram = lo.LooSearchCV(SVC(kernel="precomputed"), {"C": [0.3, 3]})
    K = rbf_kernel(X, gamma=0.2)
    found += [honest(gram, kind, y) for kind in (K, pd.DataFrame(K), K.tolist())]
    for other in found:
        np.testing.assert_array_equal(other.predictions, wanted.predictions)
    weights = np.random.default_rng(0).uniform(0.1, 4, 16)
    result = honest(search, X, y, sample_weight=weights)
    for r in (2, 9):
        others = np.delete(np.arange(16), r)
        fitted = SVC(C=result.params[r]["C"], gamma=0.2, tol=1e-8).fit(
            X[others], y[others], sample_weight=weights[others]
        )
        assert result.predictions[r] == fitted.predict(X[[r]])[0]


def test_only_member_of_a_class_is_an_error():
    X, y = noisy(14, 5)
    y = np.zeros(14, dtype=int)
    y[3] = 1
    with pytest.warns(lo.SingletonClassWarning):
        result = honest(lo.LooSearchCV(SVC(), GRID), X, y)
    assert result.predictions[3] == 0
    assert result.params[3] == {}
    # So is the only one with a weight.
    y[4], weights = 1, np.r_[np.ones(4), 0.0, np.ones(9)]
    with pytest.warns(lo.SingletonClassWarning):
        result = honest(lo.LooSearchCV(SVC(), GRID), X, y, sample_weight=weights)
    assert result.predictions[3] == 0


def test_does_not_depend_on_jobs_nor_on_those_of_the_search():
    X, y = noisy(12, 6)
    search = lo.LooSearchCV(SVC(), GRID, n_jobs=2, verbose=1, refit=False)
    runs = [honest(search, X, y, n_jobs=n_jobs) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(runs[0].predictions, runs[1].predictions)
    assert runs[0].params == runs[1].params
    assert search.get_params(deep=False)["n_jobs"] == 2


def choose_and_interrupt(table):
    """Take the best, note the call in a file, raise Ctrl-C at the eighth call."""
    with open(os.environ["LEAVEOUT_TEST_CALLS"], "a") as calls:
        calls.write(".")
    if os.path.getsize(calls.name) == 8:
        raise KeyboardInterrupt
    return int(np.argmax(table["mean_test_score"]))


def test_interrupted_run_resumes_from_its_checkpoint(tmp_path, monkeypatch, capfd):
    X, y = noisy(12, 8)
    labels = np.array(["no", "yes"])[y]
    search = lo.LooSearchCV(SVC(), GRID, refit=choose_and_interrupt)
    path, calls = tmp_path / "run.db", tmp_path / "calls"
    monkeypatch.setenv("LEAVEOUT_TEST_CALLS", str(calls))
    with pytest.raises(KeyboardInterrupt):
        honest(search, X, labels, checkpoint=path)
    # One call on all samples, six folds, the interrupted one.
    assert "6 of 12 folds are kept" in capfd.readouterr().err
    found = lo.honest_loo(search, X, labels, checkpoint=path)
    assert calls.stat().st_size == 8 + 1 + 6
    assert "Resumed: 6 of 12 folds are done." in capfd.readouterr().err
    wanted = honest(search, X, labels)
    np.testing.assert_array_equal(found.predictions, wanted.predictions)
    assert found.params == wanted.params
    with pytest.raises(lo.CheckpointError, match="data"):
        honest(search, X + 1, labels, checkpoint=path)


def test_what_is_not_a_search_is_refused():
    X, y = noisy(12, 9)
    with pytest.raises(TypeError, match="cross_val_predict"):
        honest(GridSearchCV(SVC(), GRID, cv=2), X, y)
    for other, name in ((SVC(), "SVC"), ("svc", "str"), (lo.SVC(), "SVC")):
        with pytest.raises(TypeError, match=f"LooSearchCV or SVCCV; got {name}"):
            honest(other, X, y)


def test_warnings_of_the_folds_come_once():
    X, y = noisy(14, 10)
    model = make_pipeline(StandardScaler(), SVC(gamma=0.3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        honest(lo.LooSearchCV(model, {"svc__C": [1.0]}), X, y)
    assert [w.category for w in caught] == [lo.PreprocessingWarning]
    y = np.r_[1, 1, np.zeros(12, dtype=int)]
    with (
        pytest.warns(lo.AntiLearningWarning, match="No candidate scores higher"),
        pytest.warns(lo.SingletonClassWarning, match="In 2 of 14 folds: Class 1 has"),
    ):
        honest(lo.LooSearchCV(SVC(), {"C": [1.0]}), X, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_svccv_makes_its_grid_in_each_fold(kernel):
    X, y = noisy(12, 3)
    model = lo.SVCCV(kernel=kernel, Cs=[1.0, 10.0], probability=False)
    if kernel == "linear":
        model.set_params(Cs="auto")
    result = honest(clone(model).set_params(probability=True), X, y)
    for r in range(len(y)):
        others = np.delete(np.arange(len(y)), r)
        model.fit(X[others], y[others])
        assert result.predictions[r] == model.predict(X[[r]])
        assert result.params[r] == model.best_params_
    assert result.naive_error == model.fit(X, y).loo_error_


def test_what_cannot_be_judged_is_refused_at_once():
    X, y = noisy()
    with pytest.raises(ValueError, match=r"groups: SVCCV leaves out single samples"):
        honest(lo.SVCCV(), X, y, groups=np.arange(14) // 2)
    several = lo.LooSearchCV(SVC(), GRID, scoring=["accuracy", "f1"], refit=False)
    with pytest.raises(ValueError, match=r"several scores and refit=False"):
        honest(several, X, y)


def result_of(wrong, folds=None, params=None):
    wrong = np.asarray(wrong)
    folds = np.arange(wrong.size) if folds is None else np.asarray(folds)
    params = ({"C": 1.0},) * (folds.max() + 1) if params is None else params
    y = np.zeros(wrong.size, dtype=int)
    return HonestLoo(y, y + wrong, folds, params, 0.1, 2.0)


def test_standard_error_is_binomial_and_grows_if_groups_go_wrong_together():
    single = result_of([1, 0, 0, 1, 1, 0, 0, 0])
    assert single.standard_error == pytest.approx(np.sqrt(3 / 8 * 5 / 8 / 8))
    assert single.optimism == pytest.approx(3 / 8 - 0.1)
    together = result_of([1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 2, 2])
    # As three samples that count twice each.
    assert together.standard_error == pytest.approx(np.sqrt(1 / 3 * 2 / 3 / 3))
    assert result_of([1, 0, 1, 0, 1, 0], [0, 0, 1, 1, 2, 2]).standard_error == 0.0


def test_choices_are_counted_and_the_table_is_short():
    params = [{"C": 1.0, "gamma": g} for g in (0.1, 0.2, 0.1, 0.3, 0.1, 0.2)]
    found = result_of([0] * 6, params=tuple(params))
    assert found.choices == [
        ({"C": 1.0, "gamma": 0.1}, 3),
        ({"C": 1.0, "gamma": 0.2}, 2),
        ({"C": 1.0, "gamma": 0.3}, 1),
    ]
    assert "chosen C=1, gamma=0.1 in 3" in str(found)
    assert "naive error   0.1000" in str(found)
    params = tuple({"C": float(c)} for c in range(8))
    assert "… 3 other choices" in str(result_of([0] * 8, params=params))
    assert "nothing (one class)" in str(result_of([0, 1], params=({}, {"C": 1})))
