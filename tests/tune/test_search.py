# SPDX-License-Identifier: BSD-3-Clause
"""LooSearchCV against GridSearchCV(cv=LeaveOneOut()), and its parameters."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_moons
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, get_scorer, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler, scale
from sklearn.svm import LinearSVC, NuSVC
from solved import count_calls

import leaveout as lo
from leaveout import SVC, LooSearchCV
from leaveout.adapt import _prepare
from leaveout.engine import _solve
from leaveout.exceptions import PreprocessingWarning

TIGHT = sklearn.svm.SVC(tol=1e-9)
GRID = {"C": [0.5, 5.0, 50.0], "gamma": [0.1, 1.0]}


def every(step, load):
    X, y = load(return_X_y=True)
    return scale(X)[::step], y[::step]


DATA = {
    "iris": lambda: every(5, load_iris),
    "cancer": lambda: every(20, load_breast_cancer),
    "moons": lambda: make_moons(30, noise=0.35, random_state=3),
}


@pytest.fixture
def data():
    return DATA["moons"]()


@pytest.mark.parametrize("name", DATA)
def test_equals_grid_search_with_leave_one_out(name):
    X, y = DATA[name]()
    slow = GridSearchCV(clone(TIGHT), GRID, cv=LeaveOneOut()).fit(X, y)
    fast = LooSearchCV(clone(TIGHT), GRID).fit(X, y)
    assert fast.cv_results_["n_ambiguous"].sum() == 0
    for key in ("mean_test_score", "rank_test_score", "params"):
        assert list(fast.cv_results_[key]) == list(slow.cv_results_[key])
    for key in ("best_params_", "best_index_", "best_score_", "n_splits_"):
        assert getattr(fast, key) == getattr(slow, key)
    assert (fast.predict(X) == slow.predict(X)).all()
    assert fast.decision_function(X) == pytest.approx(slow.decision_function(X))
    assert fast.score(X, y) == slow.score(X, y)
    assert (fast.classes_ == slow.classes_).all()
    wanted = {key for key in slow.cv_results_ if not key.startswith("split")}
    assert set(fast.cv_results_) == wanted | {"n_ambiguous", "anti_learning"}
    assert len(pd.DataFrame(fast.cv_results_)) == 6
    for key in ("param_C", "param_gamma"):
        one, other = fast.cv_results_[key], slow.cv_results_[key]
        assert one.dtype == other.dtype
        assert (one == other).all()
    n, p = len(y), fast.cv_results_["mean_test_score"]
    assert fast.cv_results_["std_test_score"] == pytest.approx(np.sqrt(p * (1 - p) / n))


def test_every_candidate_is_leave_one_out_of_it(data):
    X, y = data
    grid = [GRID, {"kernel": ["linear"], "C": [2.0, 0.2]}, {"gamma": [0.3]}]
    search = LooSearchCV(SVC(C=4.0), grid, refit=False).fit(X, y)
    table = search.cv_results_
    for params, score in zip(table["params"], table["mean_test_score"], strict=True):
        alone = lo.leave_one_out(SVC(C=4.0).set_params(**params), X, y)
        assert score == pytest.approx(1 - alone.error, abs=1e-12)
    best = lo.leave_one_out(SVC(C=4.0).set_params(**search.best_params_), X, y)
    found = search.best_loo_result_
    assert found.decision_values == pytest.approx(best.decision_values, abs=1e-7)
    assert found.error == best.error


@pytest.mark.parametrize("preprocessing", ["frozen", "refit"])
@pytest.mark.filterwarnings("ignore::leaveout.PreprocessingWarning")
def test_pipelines(preprocessing):
    X, y = load_wine(return_X_y=True)
    X, y = X[::6], y[::6]
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", clone(TIGHT))])
    grid = {
        "svc__C": [0.5, 5.0],
        "svc__gamma": [0.05],
        "scale": [MinMaxScaler(), "passthrough"],
    }
    fast = LooSearchCV(pipeline, grid, preprocessing=preprocessing).fit(X, y)
    if preprocessing == "refit":
        slow = GridSearchCV(pipeline, grid, cv=LeaveOneOut()).fit(X, y)
        wanted = slow.cv_results_["mean_test_score"]
        assert fast.best_index_ == slow.best_index_
    else:
        wanted = [
            1 - lo.leave_one_out(clone(pipeline).set_params(**params), X, y).error
            for params in fast.cv_results_["params"]
        ]
    assert fast.cv_results_["mean_test_score"] == pytest.approx(wanted, abs=1e-12)
    assert isinstance(fast.best_estimator_, Pipeline)


def test_one_vs_rest():
    X, y = DATA["iris"]()
    grid = {"estimator__C": [0.3, 3], "estimator__gamma": [0.1]}
    estimator = OneVsRestClassifier(clone(TIGHT))
    slow = GridSearchCV(estimator, grid, cv=LeaveOneOut()).fit(X, y)
    fast = LooSearchCV(estimator, grid).fit(X, y)
    wanted = slow.cv_results_["mean_test_score"]
    assert fast.cv_results_["mean_test_score"] == pytest.approx(wanted)
    assert fast.best_params_ == slow.best_params_


def test_groups(data):
    X, y = data
    groups = np.arange(30) // 3
    slow = GridSearchCV(TIGHT, GRID, cv=LeaveOneGroupOut()).fit(X, y, groups=groups)
    fast = LooSearchCV(TIGHT, GRID).fit(X, y, groups=groups)
    wanted = slow.cv_results_["mean_test_score"]  # groups of equal size
    assert fast.cv_results_["mean_test_score"] == pytest.approx(wanted)
    assert fast.n_splits_ == 10


def test_sparse_features_and_precomputed_kernels(data):
    X, y = data
    dense = LooSearchCV(SVC(), GRID).fit(X, y)
    thin = LooSearchCV(SVC(), GRID).fit(sparse.csr_array(X), y)
    gram = LooSearchCV(SVC(kernel="precomputed"), {"C": GRID["C"]})
    gram.fit(rbf_kernel(X, gamma=0.1), y)
    scores = dense.cv_results_["mean_test_score"]
    assert thin.cv_results_["mean_test_score"] == pytest.approx(scores)
    assert gram.cv_results_["mean_test_score"] == pytest.approx(scores[::2])


@pytest.mark.parametrize("long", [np.int32, np.int64])
def test_sparse_samples_in_any_order_are_left_as_they_are(long, rng):
    """scikit-learn's SVC sorts indices in place, and refuses those of 64 bits."""
    indices, ends = np.tile([2, 0], 30).astype(long), np.arange(0, 61, 2, dtype=long)
    X = sparse.csr_array((rng.normal(size=60), indices, ends), shape=(30, 3))
    y = (X.toarray()[:, 0] > 0).astype(int)
    search = LooSearchCV(sklearn.svm.SVC(), {"C": [10.0]}).fit(X, y)
    np.testing.assert_array_equal(X.indices, np.tile([2, 0], 30))
    dense = sklearn.svm.SVC(C=10.0).fit(X.toarray(), y).predict(X.toarray())
    np.testing.assert_array_equal(search.predict(X.toarray()), dense)


def test_the_refit_takes_the_optimum_of_the_search(monkeypatch, tmp_path):
    X, y = DATA["iris"]()
    grid = {"C": [0.7, 7.0], "gamma": [0.1, 1.0]}
    kept = LooSearchCV(SVC(C=3.0), grid, checkpoint=tmp_path / "run.db")
    pipe = make_pipeline(StandardScaler(), SVC())
    piped = LooSearchCV(pipe, {f"svc__{name}": grid[name] for name in grid})
    solves = count_calls(monkeypatch, _solve, "_solve")
    grams = count_calls(monkeypatch, _prepare, "make_gram")
    for search, n_solves in ((kept, 12), (clone(kept), 0), (piped, 12)):
        solves.clear()
        grams.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PreprocessingWarning)
            search.fit(X, y)
        # Three pairs of classes at each candidate; a Gram matrix a gamma, and one more.
        assert len(solves) == n_solves
        assert len(grams) == (3 if n_solves else 1)
        best = search.best_estimator_
        fresh = clone(best).fit(X, y)
        own, other = (e[-1] if isinstance(e, Pipeline) else e for e in (best, fresh))
        assert np.array_equal(own.support_, other.support_)
        for name in ("dual_coef_", "intercept_", "duality_gap_"):
            there = getattr(other, name)
            assert getattr(own, name) == pytest.approx(there, rel=1e-10, abs=1e-10)
        assert "_kept_betas" not in vars(own)


def test_coefficients_that_are_not_optimal_are_solved_for():
    X, y = DATA["moons"]()
    fresh, wrong = SVC(gamma=1.0).fit(X, y), SVC(gamma=1.0)
    for betas in (np.zeros((1, 30)), np.where(y == 1, 5.0, -5.0)[None]):
        wrong._kept_betas = betas
        assert np.array_equal(wrong.fit(X, y).dual_coef_, fresh.dual_coef_)


def test_ties_go_to_the_smaller_c_whatever_the_order():
    X, y = np.array([[-3.0], [-2.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    grid = {"C": [100.0, 1.0, 10.0], "gamma": [0.2, 0.1]}
    search = LooSearchCV(SVC(), grid).fit(X, y)
    assert (search.cv_results_["rank_test_score"] == 1).all()
    assert search.best_params_ == {"C": 1.0, "gamma": 0.1}


def test_refit_says_what_decides(data):
    X, y = data
    with pytest.raises(ValueError, match="For multi-metric scoring, refit must"):
        LooSearchCV(SVC(), GRID, scoring=["f1", "accuracy"]).fit(X, y)
    several = LooSearchCV(SVC(), GRID, scoring=["f1", "accuracy"], refit=False)
    assert not hasattr(several.fit(X, y), "best_index_")
    single = LooSearchCV(SVC(), GRID, refit=False).fit(X, y)
    assert single.best_params_ in single.cv_results_["params"]
    assert not hasattr(single, "best_estimator_")
    with pytest.raises(AttributeError):
        single.predict(X)
    last = LooSearchCV(SVC(), GRID, refit=lambda table: len(table["params"]) - 1)
    assert last.fit(X, y).best_params_ == {"C": 50.0, "gamma": 1.0}
    assert not hasattr(last, "best_score_")


def test_a_fit_that_fails_leaves_nothing():
    X, y = make_moons(30, noise=0.2, random_state=0)
    for params, wrong, error in (
        ({}, np.where(X > 1, np.nan, X), ValueError),
        ({"refit": lambda table: 1}, X, IndexError),
        ({"refit": lambda table: 0.5}, X, TypeError),
        # Leave-one-out does not use the cache of scikit-learn's SVC, but fit does.
        ({"estimator": sklearn.svm.SVC(cache_size=-1)}, X, ValueError),
    ):
        search = LooSearchCV(SVC(), {"C": [1.0]}).fit(X, y)
        with pytest.raises(error):
            search.set_params(**params).fit(wrong, y)
        assert not [name for name in vars(search) if name.endswith("_")]
        with pytest.raises(NotFittedError):
            search.predict(X)
    search = LooSearchCV(SVC(), GRID).fit(X, y)
    search.set_params(refit=False, scoring=["f1", "accuracy"]).fit(X, y)
    for name in ("best_estimator_", "best_params_", "refit_time_"):
        assert not hasattr(search, name)


def test_wrong_arguments_are_named(data):
    for arguments, message in (
        ({"error_score": "nan"}, "error_score must be 'raise' or a number; got 'nan'"),
        ({"refit": 3}, "refit must be True, False"),
        ({"preprocessing": "none"}, "preprocessing must be 'frozen'"),
        ({"method": "wlk"}, "wlk"),
        ({"scoring": "no_such_score"}, "no_such_score"),
        ({"n_jobs": "all"}, "n_jobs must be a whole number.*got 'all'"),
        ({"n_jobs": 0}, "n_jobs must be a whole number.*got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            LooSearchCV(SVC(), GRID, **arguments).fit(*data)
    with pytest.raises(TypeError, match="verbose must be a whole number; got 'a'"):
        LooSearchCV(SVC(), GRID, verbose="a").fit(*data)
    with pytest.raises(ValueError, match="param_grid is empty"):
        LooSearchCV(SVC(), []).fit(*data)
    with pytest.raises(ValueError, match="sample_weight has shape"):
        LooSearchCV(SVC(), GRID).fit(*data, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="Invalid parameter 'c'"):
        LooSearchCV(SVC(), {"c": [1]}).fit(*data)
    pipeline = make_pipeline(StandardScaler(), SVC())
    with pytest.raises(ValueError, match=r"Invalid parameter 'C'.* mean 'svc__C'\?"):
        LooSearchCV(pipeline, {"C": [1.0]}).fit(*data)


@pytest.mark.parametrize(
    "estimator",
    [
        NuSVC(),
        make_pipeline(StandardScaler(), LinearSVC()),
        LooSearchCV(SVC(), GRID),
        SVC,
        "SVC",
        None,
    ],
)
def test_a_wrong_estimator_is_refused_before_its_parameters(data, estimator):
    with pytest.raises(TypeError, match="estimator must be an"):
        LooSearchCV(estimator, {"C": [1.0]}).fit(*data)


def test_the_user_s_objects_are_not_changed(data):
    svc = SVC()
    grid = {"C": [1.0, 10.0], "gamma": [0.1]}
    search = LooSearchCV(svc, grid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(*data)
    assert search.estimator is svc
    assert not hasattr(svc, "classes_")
    assert svc.C == 1.0
    assert grid == {"C": [1.0, 10.0], "gamma": [0.1]}


@pytest.fixture
def weights(rng):
    return rng.integers(1, 4, 30).astype(float)


def test_weights_without_routing(data, weights):
    (X, y), w = data, weights
    search = LooSearchCV(SVC(), GRID).fit(X, y, sample_weight=w)
    slow = GridSearchCV(TIGHT, GRID, cv=LeaveOneOut()).fit(X, y, sample_weight=w)
    right = np.array([slow.cv_results_[f"split{k}_test_score"] for k in range(len(y))])
    pooled = np.average(right, axis=0, weights=w)
    assert search.cv_results_["mean_test_score"] == pytest.approx(pooled)
    assert search.best_score_ == pytest.approx(1 - search.best_loo_result_.error)
    refitted = SVC(**search.best_params_).fit(X, y, w)
    assert search.best_estimator_.intercept_ == pytest.approx(refitted.intercept_)
    pipeline = make_pipeline(PCA(2), SVC())
    grid = {f"svc__{name}": values for name, values in GRID.items()}
    for name in ("sample_weight", "svc__sample_weight"):
        with pytest.warns(PreprocessingWarning):
            inside = LooSearchCV(pipeline, grid).fit(X, y, **{name: w})
        scores = inside.cv_results_["mean_test_score"]
        assert scores == pytest.approx(search.cv_results_["mean_test_score"])
        own = inside.best_estimator_[-1].intercept_
        assert own == pytest.approx(refitted.intercept_)
    with pytest.raises(TypeError, match="fit got 'pca__sample_weight'"):
        LooSearchCV(pipeline, grid).fit(X, y, pca__sample_weight=w)
    models = [sklearn.svm.SVC(), OneVsRestClassifier(sklearn.svm.SVC())]
    search = LooSearchCV(Pipeline([("svc", SVC())]), {"svc": models})
    with pytest.raises(TypeError, match="OneVsRestClassifier takes sample_weight only"):
        search.fit(X, y, sample_weight=w)


def test_weights_without_routing_reach_scorers_that_take_them(data, weights):
    (X, y), w = data, weights
    search = LooSearchCV(SVC(), GRID, scoring="f1").fit(X, y, sample_weight=w)
    result = search.best_loo_result_
    assert search.best_score_ == f1_score(y, result.predictions, sample_weight=w)

    def plain(y_true, y_pred):
        return np.mean(y_true == y_pred)

    search = LooSearchCV(SVC(), GRID, scoring=make_scorer(plain))
    with pytest.warns(UserWarning, match="score takes no sample_weight") as caught:
        search.fit(X, y, sample_weight=w)
    assert caught[0].filename == __file__
    assert search.best_score_ == np.mean(search.best_loo_result_.predictions == y)
    # The result is weighted as the score that decides.
    scores = {"scoring": ["balanced_accuracy", "accuracy"], "refit": "accuracy"}
    search = LooSearchCV(SVC(), GRID, **scores).fit(X, y, sample_weight=w)
    assert search.best_score_ == pytest.approx(1 - search.best_loo_result_.error)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_go_where_they_are_requested(data, weights):
    (X, y), w = data, weights
    plain = get_scorer("accuracy").set_score_request(sample_weight=False)
    weighted = get_scorer("accuracy").set_score_request(sample_weight=True)
    svc = SVC().set_fit_request(sample_weight=True)
    scoring = {"plain": plain, "weighted": weighted}
    search = LooSearchCV(svc, GRID, scoring=scoring, refit="weighted")
    table = search.fit(X, y, sample_weight=w).cv_results_
    for k, params in enumerate(table["params"]):
        right = lo.leave_one_out(SVC(**params), X, y, sample_weight=w).predictions == y
        assert table["mean_test_plain"][k] == pytest.approx(right.mean())
        wanted = np.average(right, weights=w)
        assert table["mean_test_weighted"][k] == pytest.approx(wanted)
    only_fit = LooSearchCV(svc, GRID, scoring=plain).fit(X, y, sample_weight=w)
    scores = only_fit.cv_results_["mean_test_score"]
    assert scores == pytest.approx(table["mean_test_plain"])
    only_score = LooSearchCV(
        SVC().set_fit_request(sample_weight=False), GRID, scoring=weighted
    ).fit(X, y, sample_weight=w)
    right = lo.leave_one_out(SVC(**only_score.best_params_), X, y).predictions == y
    assert only_score.best_score_ == pytest.approx(np.average(right, weights=w))
    right = only_score.predict(X) == y
    wanted = np.average(right, weights=w)
    assert only_score.score(X, y, sample_weight=w) == pytest.approx(wanted)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
        LooSearchCV(SVC(), GRID).fit(X, y, sample_weight=w)


@pytest.mark.usefixtures("routing")
@pytest.mark.filterwarnings("ignore::leaveout.PreprocessingWarning")
def test_weights_are_routed_into_pipelines_and_one_vs_rest(weights):
    (X, y), w = DATA["iris"](), weights
    svc = SVC(gamma=0.1).set_fit_request(sample_weight="trust")
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, OneVsRestClassifier(svc))
    grid = {"onevsrestclassifier__estimator__C": [0.5, 5.0]}
    scorer = get_scorer("accuracy").set_score_request(sample_weight=False)
    search = LooSearchCV(pipeline, grid, scoring=scorer).fit(X, y, trust=w)
    for C, score in zip([0.5, 5.0], search.cv_results_["mean_test_score"], strict=True):
        model = OneVsRestClassifier(SVC(C=C, gamma=0.1))
        alone = lo.leave_one_out(model, scale(X), y, sample_weight=w)
        assert score == pytest.approx(1 - alone.error)
    asking = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=True),
        SVC(gamma=0.1).set_fit_request(sample_weight=True),
    )
    search = LooSearchCV(asking, {"svc__C": [1.0]}, scoring=scorer)
    with pytest.raises(ValueError, match=r"'standardscaler' .* requests sample_weight"):
        search.fit(X, y, sample_weight=w)


@pytest.mark.usefixtures("routing")
def test_groups_are_the_search_s_own_metadata(data):
    X, y = data
    groups = np.arange(30) // 5
    search = LooSearchCV(SVC(), GRID, scoring="neg_hinge_loss")
    search.set_fit_request(groups=True).fit(X, y, groups=groups)
    assert search.n_splits_ == 6
    outer = cross_validate(search, X, y, params={"groups": groups}, cv=GroupKFold(2))
    assert np.isfinite(outer["test_score"]).all()
