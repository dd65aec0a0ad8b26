# SPDX-License-Identifier: BSD-3-Clause
"""Every function that takes a Pipeline, against loops of scikit-learn's refits.

The data are hostile to preprocessing: missing entries, ties in scores and medians,
equal and nearly constant columns, equal rows.
"""

import re

import numpy as np
import pytest
import sklearn.svm
from exactness_fold import leave_rows_out
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    LeaveOneOut,
    cross_val_predict,
    permutation_test_score,
)
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, StandardScaler

import leaveout as lo
from leaveout import LooSearchCV

N = 15
MEDIAN = SimpleImputer(strategy="median", add_indicator=True)
PIPELINES = [
    make_pipeline(SimpleImputer(), StandardScaler(), SelectKBest(k=2)),
    make_pipeline(MEDIAN, make_union(MinMaxScaler(), SelectKBest(k=1))),
    make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
        PCA(2, svd_solver="full"),
    ),
]
SVC = sklearn.svm.SVC(C=10.0, tol=1e-10)
pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning",
    "ignore:Feature:UserWarning",
    "ignore::leaveout.AntiLearningWarning",
)


@pytest.fixture
def data(rng):
    y = rng.permutation(np.arange(N) % 3 // 2)
    X = rng.integers(-2, 3, (N, 5)) + 0.5 * y[:, None]
    X[:, 1], X[:, 2] = -X[:, 0], 0.1
    X[4, 2] = 1.0  # constant without row 4
    X[7] = X[8]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def values_without(pipeline, X, y, rows):
    """Return the middles of the optimal values of some rows, fitted without them."""
    found = leave_rows_out(pipeline, X, y, np.sort(rows))
    return 0.5 * (found.low + found.high)[np.argsort(np.argsort(rows)), 0]


@pytest.mark.parametrize("steps", PIPELINES)
def test_search_and_path(steps, data):
    X, y = data
    pipeline = make_pipeline(steps, SVC)
    grid = {"svc__C": [1.0, 20.0], "svc__gamma": ["scale", 0.3]}
    search = LooSearchCV(pipeline, grid).fit(X, y)
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        own = clone(pipeline).set_params(**params)
        result = lo.leave_one_out(own, X, y)
        assert score == pytest.approx(1.0 - result.error)
        labels = cross_val_predict(own, X, y, cv=LeaveOneOut())
        clear = ~result.ambiguous
        np.testing.assert_array_equal(result.predictions[clear], labels[clear])
    path = lo.loo_path(pipeline, X, y, Cs=[1.0, 20.0])
    for C, found in zip(path.Cs, path.decision_values, strict=True):
        own = clone(pipeline).set_params(svc__C=C)
        for row in range(N):
            wanted = leave_rows_out(own, X, y, np.array([row]))
            assert wanted.low[0, 0] - 1e-7 <= found[row] <= wanted.high[0, 0] + 1e-7


@pytest.mark.parametrize("steps", PIPELINES)
def test_nested(steps, data):
    X, y = data
    pipeline, grid = make_pipeline(steps, SVC), {"svc__C": [1.0, 20.0]}
    nested = lo.honest_loo(LooSearchCV(pipeline, grid), X, y, verbose=0)
    for row in range(0, N, 2):
        kept = np.delete(np.arange(N), row)
        scores = {}
        for C in grid["svc__C"]:
            own = clone(pipeline).set_params(svc__C=C)
            inner = lo.leave_one_out(own, X[kept], y[kept])
            labels = cross_val_predict(own, X[kept], y[kept], cv=LeaveOneOut())
            clear = ~inner.ambiguous
            np.testing.assert_array_equal(inner.predictions[clear], labels[clear])
            scores[C] = -inner.error
        C = nested.params[row]["svc__C"]
        assert scores[C] == pytest.approx(max(scores.values()))
        own = clone(pipeline).set_params(svc__C=C).fit(X[kept], y[kept])
        if abs(own.decision_function(X[[row]])[0]) > 1e-5:
            assert nested.predictions[row] == own.predict(X[[row]])[0]


@pytest.mark.parametrize("steps", PIPELINES)
def test_suspects_and_pairs(steps, data):
    X, y = data
    pipeline = make_pipeline(steps, SVC)
    found = lo.suspects(pipeline, X, y)
    for row, lower, upper in zip(found.rows, found.lower, found.upper, strict=True):
        wanted = leave_rows_out(pipeline, X, y, np.array([row]))
        ends = sorted(
            (2 * y[row] - 1) * np.array([wanted.low[0, 0], wanted.high[0, 0]])
        )
        np.testing.assert_allclose([lower, upper], ends, atol=1e-7)
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    pairs = [np.array([i, j]) for i in positive for j in negative]
    apart = np.array(
        [
            values @ [1, -1]
            for values in (values_without(pipeline, X, y, p) for p in pairs)
        ]
    )
    won = np.where(np.abs(apart) < 1e-9, 0.5, apart > 0)
    assert lo.leave_pair_out_auc(pipeline, X, y).auc == pytest.approx(won.mean())


def test_permutations(data):
    X, y = data
    for steps in PIPELINES[:2]:
        pipeline = make_pipeline(steps, SVC)
        found = lo.loo_permutation_test(
            pipeline, X, y, n_permutations=4, random_state=0
        )
        score, scores, _ = permutation_test_score(
            pipeline, X, y, cv=LeaveOneOut(), n_permutations=4, random_state=0
        )
        np.testing.assert_allclose(found.error, 1 - score)
        np.testing.assert_allclose(found.permutation_errors, 1 - scores)


class FailsWithout(TransformerMixin, BaseEstimator):
    """A transformer that cannot be fitted without a row of ones."""

    def __init__(self, needed=True):
        self.needed = needed

    def fit(self, X, y=None):
        if self.needed and not (X == 1.0).all(axis=1).any():
            raise RuntimeError("no row of ones")
        return self

    def transform(self, X):
        return X


@pytest.fixture
def failing(rng):
    X, y = rng.normal(size=(N, 3)), np.arange(N) % 2
    X[6] = 1.0
    return make_pipeline(FailsWithout(), StandardScaler(), SVC), X, y


REASON = (
    "Step 'failswithout' (FailsWithout) failed in the fold that leaves out row 6: "
    "no row of ones"
)


def test_failure_names_fold_step_and_reason(failing):
    pipeline, X, y = failing
    search = LooSearchCV(pipeline, {"svc__C": [1.0]}, error_score="raise")
    for call in (
        lambda: lo.leave_one_out(pipeline, X, y),
        lambda: lo.loo_path(pipeline, X, y, Cs=[0.1, 1.0]),
        lambda: lo.suspects(pipeline, X, y),
        lambda: lo.loo_permutation_test(pipeline, X, y, n_permutations=2),
        lambda: search.fit(X, y),
    ):
        with pytest.raises(ValueError, match=re.escape(REASON)) as caught:
            call()
        assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(ValueError, match="failed in the fold that leaves out rows"):
        lo.leave_pair_out_auc(pipeline, X, y)


def test_search_keeps_what_does_not_fail(failing, tmp_path, capsys):
    pipeline, X, y = failing
    grid = {"failswithout__needed": [False, True], "svc__C": [1.0, 10.0]}
    search = LooSearchCV(pipeline, grid, checkpoint=tmp_path / "run.db")
    with pytest.warns(FitFailedWarning, match=re.escape(REASON)):
        search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    failed = np.array([own["failswithout__needed"] for own in grid_of(search)])
    assert np.isnan(scores[failed]).all()
    assert (search.cv_results_["rank_test_score"][failed] == 3).all()
    for params, score in zip(grid_of(search), scores, strict=True):
        if not params["failswithout__needed"]:
            own = clone(pipeline).set_params(**params)
            wanted = 1.0 - lo.leave_one_out(own, X, y).error
            assert score == pytest.approx(wanted)
    # The path that did not fail is not computed again.
    again = clone(search).set_params(verbose=1)
    with pytest.warns(FitFailedWarning, match=re.escape(REASON)):
        again.fit(X, y)
    assert "Resumed with 1 of 2 paths done." in capsys.readouterr().err
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], scores)


def grid_of(search):
    return search.cv_results_["params"]
