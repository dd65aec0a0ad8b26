# SPDX-License-Identifier: BSD-3-Clause
"""Nested leave-one-out against nested loops, and from a checkpoint."""

from functools import partial

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
from leaveout.tune._honest import _Nested

GRID = {"C": [3.0, 30.0], "gamma": [0.05, 0.5]}
SEARCH = lo.LooSearchCV(SVC(), GRID)
TWO_SCORES = lo.LooSearchCV(SVC(), GRID, scoring=["accuracy", "f1"], refit=False)
PIPED = lo.LooSearchCV(
    make_pipeline(StandardScaler(), SVC(gamma=0.3)), {"svc__C": [1.0, 10.0]}
)
honest = partial(lo.honest_loo, verbose=0)


def noisy(n=14, seed=1):
    return make_classification(n, 4, n_informative=2, flip_y=0.15, random_state=seed)


def test_equals_nested_loops_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    X, y = X[30::9], np.array(["a", "b", "c"])[y[30::9]]
    result = honest(SEARCH, X, y)
    reference = GridSearchCV(SVC(tol=1e-8), GRID, cv=LeaveOneOut())
    wanted = cross_val_predict(reference, X, y, cv=LeaveOneOut())
    np.testing.assert_array_equal(result.predictions, wanted)
    assert result.error == np.mean(wanted != y)
    assert result.naive_error == pytest.approx(1 - reference.fit(X, y).best_score_)


def test_groups_are_left_out_in_both_loops():
    X, y = noisy(24, 2)
    groups = np.array(list("abcdef"))[np.arange(24) % 6]
    result = honest(SEARCH, X, y, groups=groups)
    wanted = np.empty_like(y)
    for train, test in LeaveOneGroupOut().split(X, y, groups):
        # Groups of equal size: the mean of their scores is the pooled score.
        search = GridSearchCV(SVC(tol=1e-8), GRID, cv=LeaveOneGroupOut())
        search.fit(X[train], y[train], groups=groups[train])
        wanted[test] = search.predict(X[test])
    np.testing.assert_array_equal(result.predictions, wanted)


@pytest.mark.parametrize(
    ("search", "how"),
    [
        (PIPED, {}),
        (
            lo.LooSearchCV(SVC(), GRID, n_jobs=2, verbose=1, refit=False),
            {
                "n_jobs": 2,
                "sample_weight": np.random.default_rng(0).uniform(0.1, 4, 12),
            },
        ),
        (lo.SVCCV("linear"), {}),
    ],
    ids=["steps", "weights, two jobs", "SVCCV, its grid in each fold"],
)
@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_each_fold_is_the_search_without_its_sample(search, how):
    X, y = noisy(12, 3)
    X[:, 0] *= 5
    result = honest(search, X, y, **how)
    fitted, weights = clone(search), how.get("sample_weight", np.ones(12))
    if isinstance(fitted, lo.LooSearchCV):
        fitted.set_params(refit=True, n_jobs=1, verbose=0)
    for r in range(12):
        rest = np.delete(np.arange(12), r)
        fitted.fit(X[rest], y[rest], sample_weight=weights[rest])
        assert result.predictions[r] == fitted.predict(X[[r]])[0]
        assert result.params[r] == fitted.best_params_


def test_tables_and_gram_matrices():
    X, y = noisy(16, 4)
    search = lo.LooSearchCV(SVC(gamma=0.2), {"C": [0.3, 3]})
    frame = pd.DataFrame(X, columns=list("abcd"), index=range(100, 116))
    wanted = honest(search, frame, y).predictions
    search.set_params(estimator__kernel="precomputed")
    K = rbf_kernel(X, gamma=0.2)
    for kind in (pd.DataFrame(K), K.tolist()):
        np.testing.assert_array_equal(honest(search, kind, y).predictions, wanted)


def test_interrupted_run_resumes_from_its_checkpoint(tmp_path, monkeypatch, capfd):
    X, y = noisy(12, 8)
    labels = np.array(["no", "yes"])[y]
    wanted, path, run = honest(SEARCH, X, labels), tmp_path / "run.db", _Nested.run

    def interrupted(self, number):
        if number == 6:
            raise KeyboardInterrupt
        return run(self, number)

    monkeypatch.setattr(_Nested, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        honest(SEARCH, X, labels, checkpoint=path)
    monkeypatch.undo()
    assert "6 of 12 folds are saved" in capfd.readouterr().err
    found = lo.honest_loo(SEARCH, X, labels, checkpoint=path)
    assert "Resumed with 6 of 12 folds done." in capfd.readouterr().err
    np.testing.assert_array_equal(found.predictions, wanted.predictions)
    assert found.params == wanted.params
    with pytest.raises(lo.CheckpointError, match="data"):
        honest(SEARCH, X + 1, labels, checkpoint=path)


@pytest.mark.parametrize(
    ("search", "groups", "error", "match"),
    [
        (GridSearchCV(SVC(), GRID, cv=2), None, TypeError, "cross_val_predict"),
        ("svc", None, TypeError, "LooSearchCV or SVCCV; got str"),
        (SEARCH, np.arange(14) % 2, ValueError, "at least three groups"),
        (lo.SVCCV(), np.arange(14), ValueError, "groups: SVCCV leaves out single samp"),
        (TWO_SCORES, None, ValueError, "several scores and refit=False"),
    ],
)
def test_errors(search, groups, error, match):
    with pytest.raises(error, match=match):
        honest(search, *noisy(), groups=groups)


def test_warnings_of_folds_are_given_once():
    X, _ = noisy(14, 10)
    # A class has two members; one of them may have weight 0.
    weights = np.r_[np.ones(13), 0.0]
    with (
        pytest.warns(
            lo.AntiLearningWarning, match="The best candidate is anti-learning"
        ),
        pytest.warns(lo.SingletonClassWarning, match="In 2 of 14 folds: Class 1 has"),
    ):
        honest(lo.LooSearchCV(SVC(), {"C": [1.0]}), X, np.arange(14) // 12)
    with pytest.warns(lo.SingletonClassWarning):
        result = honest(SEARCH, X, np.arange(14) // 12, sample_weight=weights)
    assert (result.predictions[12], result.params[12]) == (0, {})
    assert "chosen nothing (one class) in 1" in str(result)


def test_standard_error_is_binomial_over_folds():
    for wrong, folds, square in (
        ([1, 0, 0, 1, 1, 0, 0, 0], range(8), 3 / 8 * 5 / 8 / 8),
        # Equivalent to three samples of double weight.
        ([1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 2, 2], 1 / 3 * 2 / 3 / 3),
    ):
        y = np.zeros(len(wrong), dtype=int)
        found = lo.HonestLoo(y, np.array(wrong), np.array(folds), (), 0.1, 2.0)
        assert found.standard_error == pytest.approx(np.sqrt(square))
        assert found.optimism == pytest.approx(np.mean(wrong) - 0.1)
