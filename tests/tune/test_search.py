# SPDX-License-Identifier: BSD-3-Clause
"""LooSearchCV against GridSearchCV(cv=LeaveOneOut()), and its parameters."""

import numpy as np
import pytest
import sklearn
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import f1_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, LeaveOneOut
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler, scale
from sklearn.svm import LinearSVC
from solved import count_calls

import leaveout as lo
from leaveout import SVC, LooSearchCV
from leaveout.adapt import _prepare
from leaveout.engine import _short, _solve

GRID = {"C": [0.5, 5.0, 50.0], "gamma": [0.1, 1.0]}
TIGHT = sklearn.svm.SVC(tol=1e-9)
FIXED = sklearn.svm.SVC(tol=1e-9, gamma=0.1)
SCALED = Pipeline([("scale", StandardScaler()), ("svc", TIGHT)])
SCALED_GRID = {"svc__C": [0.5, 5.0], "scale": [MinMaxScaler(), "passthrough"]}
PIPELINE = make_pipeline(PCA(2), SVC())
PIPELINE_GRID = {f"svc__{name}": values for name, values in GRID.items()}
MIXED_GRID = [
    {**GRID, "class_weight": [{0: 1, 1: 2}, None]},
    {"kernel": ["linear"], "C": [2.0, 0.2]},
    {"gamma": [0.3, 0.4]},
]
WEIGHTS = np.random.default_rng(0).integers(1, 4, 30).astype(float)


def every(step, load, prepare=scale):
    X, y = load(return_X_y=True)
    return prepare(X)[::step], y[::step]


IRIS = every(5, load_iris)
WINE = every(6, load_wine, np.asarray)


@pytest.mark.parametrize(
    ("estimator", "grid", "data"),
    [
        (TIGHT, MIXED_GRID, every(20, load_breast_cancer)),
        (OneVsRestClassifier(FIXED), {"estimator__C": [0.3, 3]}, IRIS),
        (SCALED, SCALED_GRID, WINE),
    ],
    ids=["grids", "one-vs-rest", "steps"],
)
def test_equals_grid_search_with_leave_one_out(estimator, grid, data):
    X, y = data
    slow = GridSearchCV(estimator, grid, cv=LeaveOneOut()).fit(X, y)
    fast = LooSearchCV(estimator, grid, preprocessing="fold").fit(X, y)
    table, wanted = fast.cv_results_, slow.cv_results_
    assert table["n_ambiguous"].sum() == 0
    for name in ("best_params_", "best_index_", "best_score_", "n_splits_"):
        assert getattr(fast, name) == getattr(slow, name)
    assert fast.decision_function(X) == pytest.approx(slow.decision_function(X))
    assert fast.score(X, y) == slow.score(X, y)
    keys = {key for key in wanted if not key.startswith("split")}
    assert set(table) == keys | {"n_ambiguous", "anti_learning"}
    for key in keys:
        if "_time" not in key and "std" not in key:
            assert list(table[key]) == list(wanted[key])
    p = table["mean_test_score"]
    assert table["std_test_score"] == pytest.approx(np.sqrt(p * (1 - p) / len(y)))


def test_anti_learning_loses_ties():
    X, y = make_blobs([9, 3], centers=[[0, 0], [2, 2]], random_state=6)
    search = LooSearchCV(SVC(gamma=0.1), {"C": [1e-3, 1.0]}).fit(X, y)
    assert search.cv_results_["rank_test_score"].tolist() == [1, 1]
    assert search.best_params_ == {"C": 1.0}


@pytest.mark.parametrize("long", [np.int32, np.int64])
def test_unsorted_sparse_input_is_not_changed(long, rng):
    """scikit-learn's SVC sorts indices in place and refuses 64-bit indices."""
    indices, ends = np.tile([2, 0], 30).astype(long), np.arange(0, 61, 2, dtype=long)
    X = sparse.csr_array((rng.normal(size=60), indices, ends), shape=(30, 3))
    y = (X.toarray()[:, 0] > 0).astype(int)
    search = LooSearchCV(sklearn.svm.SVC(), {"C": [10.0]}).fit(X, y)
    np.testing.assert_array_equal(X.indices, np.tile([2, 0], 30))
    dense = sklearn.svm.SVC(C=10.0).fit(X.toarray(), y).predict(X.toarray())
    np.testing.assert_array_equal(search.predict(X.toarray()), dense)


def test_one_solve_per_candidate_and_none_for_the_refit(monkeypatch, tmp_path):
    kept = LooSearchCV(SVC(C=3.0), GRID, checkpoint=tmp_path / "run.db")
    steps = make_pipeline(StandardScaler(), SVC())
    piped = LooSearchCV(steps, PIPELINE_GRID, preprocessing="frozen")
    monkeypatch.setattr(_short, "ALL_NEAR", 0)  # else its solves are not counted
    solves = count_calls(monkeypatch, _solve, "_solve")
    grams = count_calls(monkeypatch, _prepare, "make_gram")
    for search, n_solves in ((kept, 18), (clone(kept), 0), (piped, 18)):
        solves.clear()
        grams.clear()
        search.fit(*IRIS)
        # Three pairs per candidate, unless its C is too large to matter; one Gram
        # matrix per gamma, and one for the refit.
        assert n_solves / 2 <= len(solves) <= n_solves
        assert len(grams) == (3 if n_solves else 1)
        values = clone(search.best_estimator_).fit(*IRIS).decision_function(IRIS[0])
        assert search.decision_function(IRIS[0]) == pytest.approx(values, rel=1e-9)


def test_stale_coefficients_are_solved_again(data):
    X, y = data
    fresh, wrong = SVC(gamma=1.0).fit(X, y), SVC(gamma=1.0)
    for betas in (np.zeros((1, 30)), np.where(y == 1, 5.0, -5.0)[None]):
        wrong._kept_betas = betas
        assert np.array_equal(wrong.fit(X, y).dual_coef_, fresh.dual_coef_)


def test_refit_selects_the_score_and_failed_fit_stores_nothing(data):
    several = LooSearchCV(SVC(), GRID, scoring=["f1", "accuracy"], refit=False)
    assert not hasattr(several.fit(*data), "best_index_")
    single = LooSearchCV(SVC(), GRID, refit=False).fit(*data)
    assert single.best_params_ in single.cv_results_["params"]
    with pytest.raises(AttributeError):
        single.predict(data[0])
    for params, error in (
        ({"refit": lambda table: 6}, IndexError),
        ({"refit": lambda table: 0.5}, TypeError),
        # Only the refit uses the cache of scikit-learn's SVC.
        ({"estimator": sklearn.svm.SVC(cache_size=-1)}, ValueError),
    ):
        last = LooSearchCV(SVC(), GRID, refit=lambda table: len(table["params"]) - 1)
        assert last.fit(*data).best_params_ == {"C": 50.0, "gamma": 1.0}
        assert not hasattr(last, "best_score_")
        with pytest.raises(error):
            last.set_params(**params).fit(*data)
        assert not [name for name in vars(last) if name.endswith("_")]


@pytest.mark.parametrize(
    ("estimator", "params", "error", "match"),
    [
        (SVC(), {"error_score": "nan"}, ValueError, "error_score must be 'raise' or"),
        (SVC(), {"refit": 3}, ValueError, "refit must be True, False"),
        (SVC(), {"scoring": ["f1"]}, ValueError, "For multi-metric scoring, refit mu"),
        (SVC(), {"preprocessing": "none"}, ValueError, "preprocessing must be 'fold'"),
        (SVC(), {"n_jobs": 0}, ValueError, "n_jobs must be a whole number.*got 0"),
        (SVC(), {"verbose": "a"}, TypeError, "verbose must be an integer; got 'a'"),
        (SVC(), {"param_grid": []}, ValueError, "param_grid is empty"),
        (SVC(), {"param_grid": {"c": [1]}}, ValueError, "Invalid parameter 'c'"),
        (PIPELINE, {}, ValueError, r"Invalid parameter 'C'.* mean 'svc__C'\?"),
        # An unsupported estimator is reported before its parameters.
        (make_pipeline(PCA(), LinearSVC()), {}, TypeError, "estimator must be an"),
        (SVC, {}, TypeError, "estimator must be an"),
    ],
)
def test_wrong_arguments_are_named(data, estimator, params, error, match):
    with pytest.raises(error, match=match):
        LooSearchCV(estimator, **{"param_grid": {"C": [1.0]}, **params}).fit(*data)


def test_weights_without_routing(data):
    (X, y), w = data, WEIGHTS
    slow = GridSearchCV(TIGHT, GRID, cv=LeaveOneOut()).fit(X, y, sample_weight=w)
    right = np.array([slow.cv_results_[f"split{k}_test_score"] for k in range(len(y))])
    pooled = np.average(right, axis=0, weights=w)
    plain, inside = LooSearchCV(SVC(), GRID), LooSearchCV(PIPELINE, PIPELINE_GRID)
    for search, name in (
        (plain, "sample_weight"),
        (inside, "sample_weight"),
        (inside, "svc__sample_weight"),
    ):
        search.fit(X, y, **{name: w})
        assert search.cv_results_["mean_test_score"] == pytest.approx(pooled)
        assert search.best_score_ == pytest.approx(1 - search.best_loo_result_.error)
        refitted = SVC(**plain.best_params_).fit(X, y, w).decision_function(X)
        assert search.decision_function(X) == pytest.approx(refitted)
    with pytest.raises(TypeError, match="fit got 'pca__sample_weight'"):
        inside.fit(X, y, pca__sample_weight=w)
    models = [sklearn.svm.SVC(), OneVsRestClassifier(sklearn.svm.SVC())]
    search = LooSearchCV(Pipeline([("svc", SVC())]), {"svc": models})
    with pytest.raises(TypeError, match="OneVsRestClassifier takes sample_weight only"):
        search.fit(X, y, sample_weight=w)


def test_weights_without_routing_reach_scorers_that_take_them(data):
    (X, y), w = data, WEIGHTS
    search = LooSearchCV(SVC(), GRID, scoring="f1").fit(X, y, sample_weight=w)
    result = search.best_loo_result_
    assert search.best_score_ == f1_score(y, result.predictions, sample_weight=w)
    search.set_params(scoring=make_scorer(lambda true, found: np.mean(true == found)))
    with pytest.warns(UserWarning, match="score does not take sample_weight") as caught:
        search.fit(X, y, sample_weight=w)
    assert caught[0].filename == __file__
    assert search.best_score_ == np.mean(search.best_loo_result_.predictions == y)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_where_requested(data):
    (X, y), w = data, WEIGHTS
    plain = get_scorer("accuracy").set_score_request(sample_weight=False)
    weighted = get_scorer("accuracy").set_score_request(sample_weight=True)
    scoring = {"plain": plain, "weighted": weighted}
    for fitted in (True, False):
        svc = SVC().set_fit_request(sample_weight=fitted)
        search = LooSearchCV(svc, GRID, scoring=scoring, refit="weighted")
        table = search.fit(X, y, sample_weight=w).cv_results_
        for k, params in enumerate(table["params"]):
            used = w if fitted else None
            alone = lo.leave_one_out(SVC(**params), X, y, sample_weight=used)
            right = alone.predictions == y
            assert table["mean_test_plain"][k] == pytest.approx(right.mean())
            wanted = np.average(right, weights=w)
            assert table["mean_test_weighted"][k] == pytest.approx(wanted)
        # The result is weighted like the score that decides.
        assert search.best_score_ == pytest.approx(1 - search.best_loo_result_.error)
        wanted = np.average(search.predict(X) == y, weights=w)
        assert search.score(X, y, sample_weight=w) == pytest.approx(wanted)
    with pytest.raises(UnsetMetadataPassedError):
        LooSearchCV(SVC(), GRID).fit(X, y, sample_weight=w)


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_into_pipelines_and_one_vs_rest():
    (X, y), w = IRIS, WEIGHTS
    svc = SVC(gamma=0.1).set_fit_request(sample_weight="trust")
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, OneVsRestClassifier(svc))
    grid = {"onevsrestclassifier__estimator__C": [0.5]}
    scorer = get_scorer("accuracy").set_score_request(sample_weight=False)
    search = LooSearchCV(pipeline, grid, scoring=scorer, preprocessing="frozen")
    search.fit(X, y, trust=w)
    model = OneVsRestClassifier(SVC(C=0.5, gamma=0.1))
    alone = lo.leave_one_out(model, scale(X), y, sample_weight=w)
    values = search.best_loo_result_.decision_values
    assert values == pytest.approx(alone.decision_values)
    pipeline[0].set_fit_request(sample_weight="trust")
    with pytest.raises(ValueError, match=r"'standardscaler' .* requests sample_weight"):
        search.fit(X, y, trust=w)


@pytest.mark.usefixtures("routing")
def test_groups_are_metadata_of_the_search(data):
    groups = np.arange(30) // 3
    slow = GridSearchCV(FIXED, {"C": GRID["C"]}, cv=LeaveOneGroupOut())
    search = LooSearchCV(FIXED, {"C": GRID["C"]}).set_fit_request(groups=True)
    scores = search.fit(*data, groups=groups).cv_results_["mean_test_score"]
    wanted = slow.fit(*data, groups=groups).cv_results_["mean_test_score"]
    assert scores == pytest.approx(wanted)  # groups of equal size
    assert search.n_splits_ == 10
    search.set_params(scoring="neg_hinge_loss").fit(*data, groups=groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_method_params_reach_every_candidate(data):
    X, y = data
    how = {"method": "refit", "method_params": {"eps": 1e-3}}
    search = LooSearchCV(SVC(), GRID, **how).fit(X, y)
    alone = lo.leave_one_out(SVC(**search.best_params_), X, y, **how)
    found = search.best_loo_result_
    assert found.counts["steps"] > 0  # of SMO, which exact refits do not use
    np.testing.assert_array_equal(found.predictions, alone.predictions)
    assert lo.honest_loo(search, X, y, verbose=0).naive_error == alone.error
    for wrong, message in (({"eps": 0}, "eps must be > 0"), ({"x": 1}, "'x', which")):
        with pytest.raises(ValueError, match=message):
            LooSearchCV(SVC(), GRID, method="refit", method_params=wrong).fit(X, y)
