# SPDX-License-Identifier: BSD-3-Clause
"""Nested leave-one-out against scikit-learn's, resumed, interrupted."""

import warnings

import numpy as np
import pandas as pd
import pytest
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
from leaveout.tune import _honest

GRID = {"C": [3.0, 30.0], "gamma": [0.05, 0.5]}


def noisy(n=24, seed=1):
    return make_classification(n, 4, n_informative=2, flip_y=0.15, random_state=seed)


def honest(search, X, y, **options):
    return lo.honest_loo(search, X, y, verbose=0, **options)


def iris_part():
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:4, 50:58, 100:108]
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
    for r in (0, 7, len(y) - 1):
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
    X, y = noisy(20, 3)
    X[:, 0] *= 50
    grid = {"svc__C": [1.0, 10.0]}
    model = make_pipeline(StandardScaler(), SVC(gamma=0.3))
    with pytest.warns(lo.PreprocessingWarning):
        result = honest(lo.LooSearchCV(model, grid), X, y)
    for r in (0, 5, 11):
        others = np.delete(np.arange(20), r)
        best = make_pipeline(
            StandardScaler(), SVC(C=result.params[r]["svc__C"], gamma=0.3, tol=1e-8)
        ).fit(X[others], y[others])
        assert result.predictions[r] == best.predict(X[[r]])[0]


def test_frames_precomputed_kernels_and_weights():
    X, y = noisy(22, 4)
    wanted = honest(lo.LooSearchCV(SVC(gamma=0.2), {"C": [0.3, 3]}), X, y)
    frame = pd.DataFrame(X, columns=list("abcd"), index=range(100, 122))
    found = honest(lo.LooSearchCV(SVC(gamma=0.2), {"C": [0.3, 3]}), frame, y)
    np.testing.assert_array_equal(found.predictions, wanted.predictions)
    search = lo.LooSearchCV(SVC(kernel="precomputed"), {"C": [0.3, 3]})
    found = honest(search, rbf_kernel(X, gamma=0.2), y)
    np.testing.assert_array_equal(found.predictions, wanted.predictions)
    weights = np.random.default_rng(0).uniform(0.1, 4, 22)
    found = honest(
        lo.LooSearchCV(SVC(gamma=0.2), {"C": [0.3, 3]}), X, y, sample_weight=weights
    )
    for r in (2, 9):
        others = np.delete(np.arange(22), r)
        fitted = SVC(C=found.params[r]["C"], gamma=0.2, tol=1e-8).fit(
            X[others], y[others], sample_weight=weights[others]
        )
        assert found.predictions[r] == fitted.predict(X[[r]])[0]


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
    X, y = noisy(20, 6)
    search = lo.LooSearchCV(SVC(), GRID, n_jobs=2, verbose=1, refit=False)
    runs = [honest(search, X, y, n_jobs=n_jobs) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(runs[0].predictions, runs[1].predictions)
    assert runs[0].params == runs[1].params
    assert search.get_params(deep=False)["n_jobs"] == 2


def test_says_how_long_it_will_take(capfd):
    X, y = noisy(12, 7)
    lo.honest_loo(lo.LooSearchCV(SVC(), GRID), X, y)
    told = capfd.readouterr().err
    assert "11 folds to go" in told
    assert "about" in told.splitlines()[0]
    assert "folds: 11 of 11" in told
    honest(lo.LooSearchCV(SVC(), GRID), X, y)
    assert capfd.readouterr().err == ""


def test_interrupted_run_goes_on_from_its_checkpoint(tmp_path, monkeypatch, capfd):
    X, y = noisy(16, 8)
    labels = np.array(["no", "yes"])[y]
    search = lo.LooSearchCV(SVC(), GRID)
    wanted = honest(search, X, labels)
    path = tmp_path / "run.db"
    run, done = _honest._Case.run, []

    def interrupted(case, number):
        if len(done) == 6:
            raise KeyboardInterrupt
        done.append(number)
        return run(case, number)

    monkeypatch.setattr(_honest._Case, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        honest(search, X, labels, checkpoint=path)
    assert "6 of 16" in capfd.readouterr().err
    monkeypatch.setattr(_honest._Case, "run", lambda c, k: done.append(k) or run(c, k))
    found = honest(search, X, labels, checkpoint=path)
    assert sorted(done) == list(range(16))
    np.testing.assert_array_equal(found.predictions, wanted.predictions)
    assert found.params == wanted.params
    with pytest.raises(lo.CheckpointError, match="data"):
        honest(search, X + 1, labels, checkpoint=path)


def test_what_is_no_search_is_refused():
    X, y = noisy(12, 9)
    with pytest.raises(TypeError, match="cross_val_predict"):
        honest(GridSearchCV(SVC(), GRID, cv=2), X, y)
    with pytest.raises(TypeError, match="LooSearchCV or SVCCV; got SVC"):
        honest(SVC(), X, y)
    with pytest.raises(TypeError, match="LooSearchCV or SVCCV; got str"):
        honest("svc", X, y)
    with pytest.raises(TypeError, match="LooSearchCV or SVCCV; got SVC"):
        honest(lo.SVC(), X, y)


def test_warnings_of_the_folds_come_once():
    X, y = noisy(14, 10)
    model = make_pipeline(StandardScaler(), SVC(gamma=0.3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        honest(lo.LooSearchCV(model, {"svc__C": [1.0]}), X, y)
    assert [w.category for w in caught] == [lo.PreprocessingWarning]
    y = np.r_[1, 1, np.zeros(12, dtype=int)]
    with (
        pytest.warns(lo.AntiLearningWarning, match="No candidate is better"),
        pytest.warns(lo.SingletonClassWarning, match="In 2 of 14 folds: Class 1 has"),
    ):
        honest(lo.LooSearchCV(SVC(), {"C": [1.0]}), X, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_svccv_is_left_out_whole(kernel):
    """Its grid comes from the rows that are left, too."""
    X, y = noisy(16, 3)
    model = lo.SVCCV(kernel=kernel, probability=False)
    result = honest(lo.SVCCV(kernel=kernel), X, y)
    for r in range(len(y)):
        others = np.delete(np.arange(len(y)), r)
        model.fit(X[others], y[others])
        assert result.predictions[r] == model.predict(X[[r]])
        assert result.params[r] == model.best_params_
    assert result.naive_error == model.fit(X, y).loo_error_


@pytest.mark.parametrize("kind", [pd.DataFrame, np.ndarray.tolist])
def test_gram_matrices_as_tables_and_lists(kind):
    X, y = noisy()
    search = lo.LooSearchCV(SVC(kernel="precomputed"), {"C": [1.0, 10.0]})
    K = rbf_kernel(X, gamma=0.1)
    found, wanted = honest(search, kind(K), y), honest(search, K, y)
    np.testing.assert_array_equal(found.predictions, wanted.predictions)
    pipeline = make_pipeline(SVC(kernel="precomputed"))
    left_out = [
        lo.leave_one_out(pipeline, gram, y, preprocessing="refit").decision_values
        for gram in (kind(K), K)
    ]
    np.testing.assert_array_equal(*left_out)


def test_what_cannot_be_judged_is_refused_at_once():
    X, y = noisy()
    with pytest.raises(ValueError, match=r"groups: SVCCV leaves out single samples"):
        honest(lo.SVCCV(), X, y, groups=np.arange(24) // 2)
    several = lo.LooSearchCV(SVC(), GRID, scoring=["accuracy", "f1"], refit=False)
    with pytest.raises(ValueError, match=r"several scores and refit=False"):
        honest(several, X, y)
