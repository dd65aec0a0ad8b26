# SPDX-License-Identifier: BSD-3-Clause
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import f1_score, get_scorer, make_scorer, matthews_corrcoef
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

import leaveout as lo
from leaveout import SVC, LooSearchCV
from leaveout.exceptions import PooledScoreWarning, PreprocessingWarning

TIGHT = sklearn.svm.SVC(tol=1e-9)
GRID = {"C": [0.5, 5.0, 50.0], "gamma": [0.1, 1.0]}


def every(step, load):
    X, y = load(return_X_y=True)
    return scale(X)[::step], y[::step]


def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:60] / 16, y[:60]


DATA = {
    "iris": lambda: every(3, load_iris),
    "wine": lambda: every(3, load_wine),
    "cancer": lambda: every(10, load_breast_cancer),
    "digits": digits,
    "moons": lambda: make_moons(60, noise=0.3, random_state=0),
    "noise": lambda: make_classification(
        50, 6, n_informative=2, flip_y=0.3, random_state=1
    ),
}


@pytest.fixture
def data():
    return make_moons(50, noise=0.35, random_state=3)


@pytest.mark.parametrize("name", DATA)
def test_the_same_code_gives_what_the_slow_search_gives(name):
    X, y = DATA[name]()
    slow = GridSearchCV(clone(TIGHT), GRID, cv=LeaveOneOut()).fit(X, y)
    fast = LooSearchCV(clone(TIGHT), GRID).fit(X, y)
    assert fast.cv_results_["n_ambiguous"].sum() == 0
    scores = fast.cv_results_["mean_test_score"]
    assert (scores == slow.cv_results_["mean_test_score"]).all()
    assert fast.best_params_ == slow.best_params_
    assert fast.best_index_ == slow.best_index_
    assert fast.best_score_ == slow.best_score_
    assert fast.n_splits_ == slow.n_splits_
    for key in ("rank_test_score", "params"):
        assert list(fast.cv_results_[key]) == list(slow.cv_results_[key])
    assert (fast.predict(X) == slow.predict(X)).all()
    assert fast.decision_function(X) == pytest.approx(slow.decision_function(X))
    assert fast.score(X, y) == slow.score(X, y)
    assert (fast.classes_ == slow.classes_).all()


def test_the_keys_are_those_of_the_slow_search_without_splits(data):
    slow = GridSearchCV(TIGHT, GRID, cv=2).fit(*data)
    fast = LooSearchCV(TIGHT, GRID).fit(*data)
    wanted = {key for key in slow.cv_results_ if not key.startswith("split")}
    assert set(fast.cv_results_) == wanted | {"n_ambiguous", "anti_learning"}
    assert len(pd.DataFrame(fast.cv_results_)) == 6
    for key in wanted:
        if key.startswith("param_"):
            one, other = fast.cv_results_[key], slow.cv_results_[key]
            assert one.dtype == other.dtype
            assert (one == other).all()
    n, p = len(data[1]), fast.cv_results_["mean_test_score"]
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
    X, y = X[::4], y[::4]
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", clone(TIGHT))])
    grid = {
        "svc__C": [0.5, 5.0],
        "svc__gamma": [0.05],
        "scale": [StandardScaler(), MinMaxScaler(), "passthrough"],
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
    assert pipeline.named_steps["svc"].C == 1.0  # untouched


def test_frozen_steps_are_warned_of_once_and_here(data):
    pipeline = make_pipeline(StandardScaler(), SVC(gamma=0.5))
    grid = {"svc__C": [1, 10], "svc__gamma": [0.1, 1.0]}
    for n_jobs in (1, 2):
        with pytest.warns(PreprocessingWarning, match="'standardscaler'") as caught:
            LooSearchCV(pipeline, grid, n_jobs=n_jobs).fit(*data)
        assert len(caught) == 1
        assert caught[0].filename == __file__


def test_steps_that_use_y_are_refused_when_frozen(data):
    pipeline = make_pipeline(SelectKBest(k=1), SVC(gamma=0.5))
    with pytest.raises(ValueError, match=r"'selectkbest' .* uses y"):
        LooSearchCV(pipeline, {"svc__C": [1, 10]}).fit(*data)
    LooSearchCV(pipeline, {"svc__C": [1.0]}, preprocessing="refit").fit(*data)


def test_one_vs_rest():
    X, y = DATA["iris"]()
    estimator, grid = (
        OneVsRestClassifier(clone(TIGHT)),
        {"estimator__C": [0.3, 3], "estimator__gamma": [0.1]},
    )
    slow = GridSearchCV(estimator, grid, cv=LeaveOneOut()).fit(X, y)
    fast = LooSearchCV(estimator, grid).fit(X, y)
    assert fast.cv_results_["mean_test_score"] == pytest.approx(
        slow.cv_results_["mean_test_score"]
    )
    assert fast.best_params_ == slow.best_params_


def test_groups(data):
    X, y = data
    groups = np.arange(50) // 3
    slow = GridSearchCV(TIGHT, GRID, cv=LeaveOneGroupOut()).fit(X, y, groups=groups)
    fast = LooSearchCV(TIGHT, GRID).fit(X, y, groups=groups)
    sizes = np.bincount(groups)
    splits = [slow.cv_results_[f"split{k}_test_score"] for k in range(17)]
    pooled = np.average(splits, axis=0, weights=sizes)
    assert fast.cv_results_["mean_test_score"] == pytest.approx(pooled)
    assert fast.n_splits_ == 17


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy"])
def test_standard_error_counts_groups_not_samples(data, tmp_path, scoring):
    """Five copies of each sample, left out together: as good as the sample once."""
    X, y = data
    once = LooSearchCV(SVC(C=1.0), {"gamma": [0.5]}, scoring=scoring).fit(X, y)
    copies = np.tile(np.arange(50), 5)
    # The copies weigh as the one sample did.
    search = LooSearchCV(
        SVC(C=0.2), {"gamma": [0.5]}, scoring=scoring, checkpoint=tmp_path / "run.db"
    )
    for _ in ("first", "from the checkpoint"):
        search.fit(X[copies], y[copies], groups=copies)
        assert search.best_score_ == pytest.approx(once.best_score_)
        found = search.cv_results_["std_test_score"]
        assert found == pytest.approx(once.cv_results_["std_test_score"], rel=0.03)


def test_ties_go_to_the_smaller_c_whatever_the_order():
    X, y = np.array([[-3.0], [-2.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    grid = {"C": [100.0, 1.0, 10.0], "gamma": [0.2, 0.1]}
    search = LooSearchCV(SVC(), grid).fit(X, y)
    assert (search.cv_results_["rank_test_score"] == 1).all()
    assert search.best_params_ == {"C": 1.0, "gamma": 0.1}


def test_scores_of_labels_are_of_all_predictions_together(data):
    X, y = data
    scoring = {"f1": "f1", "mcc": make_scorer(matthews_corrcoef)}
    search = LooSearchCV(SVC(), GRID, scoring=scoring, refit="mcc").fit(X, y)
    for k, params in enumerate(search.cv_results_["params"]):
        labels = lo.leave_one_out(SVC(**params), X, y).predictions
        assert search.cv_results_["mean_test_f1"][k] == f1_score(y, labels)
        assert search.cv_results_["mean_test_mcc"][k] == pytest.approx(
            matthews_corrcoef(y, labels)
        )
    assert search.multimetric_
    assert set(search.scorer_) == {"f1", "mcc"}
    assert search.best_score_ == search.cv_results_["mean_test_mcc"].max()
    assert search.score(X, y) == matthews_corrcoef(y, search.predict(X))
    assert np.isfinite(search.cv_results_["std_test_f1"]).all()


def two_scores(estimator, X, y):
    right = estimator.predict(X) == y
    return {"first": right[: len(y) // 2].mean(), "all": right.mean()}


def test_a_function_that_returns_several_scores(data):
    X, y = data
    search = LooSearchCV(SVC(), GRID, scoring=two_scores, refit="all").fit(X, y)
    plain = LooSearchCV(SVC(), GRID).fit(X, y)
    assert search.multimetric_
    assert search.best_params_ == plain.best_params_
    assert search.cv_results_["mean_test_all"] == pytest.approx(
        plain.cv_results_["mean_test_score"]
    )
    assert search.score(X, y) == plain.score(X, y)
    with pytest.raises(ValueError, match="which score decides: one of 'first', 'all'"):
        LooSearchCV(SVC(), GRID, scoring=two_scores).fit(X, y)


def test_refit_says_what_decides(data):
    X, y = data
    with pytest.raises(ValueError, match="For multi-metric scoring, refit must"):
        LooSearchCV(SVC(), GRID, scoring=["f1", "accuracy"]).fit(X, y)
    several = LooSearchCV(SVC(), GRID, scoring=["f1", "accuracy"], refit=False)
    several.fit(X, y)
    assert not hasattr(several, "best_index_")
    single = LooSearchCV(SVC(), GRID, refit=False).fit(X, y)
    assert single.best_params_ in single.cv_results_["params"]
    assert not hasattr(single, "best_estimator_")
    with pytest.raises(AttributeError, match=r"predict needs the best .* refit=False"):
        single.predict(X)
    last = LooSearchCV(SVC(), GRID, refit=lambda table: len(table["params"]) - 1)
    assert last.fit(X, y).best_params_ == {"C": 50.0, "gamma": 1.0}
    assert not hasattr(last, "best_score_")
    with pytest.raises(IndexError, match="refit returned 6"):
        LooSearchCV(SVC(), GRID, refit=lambda table: 6).fit(X, y)
    with pytest.raises(TypeError, match="refit must return the index"):
        LooSearchCV(SVC(), GRID, refit=lambda table: 0.5).fit(X, y)


def test_scores_of_decision_values_are_warned_of(data):
    X, y = data
    with pytest.warns(PooledScoreWarning, match="leave_pair_out_auc") as caught:
        search = LooSearchCV(SVC(), GRID, scoring="roc_auc").fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    result = lo.leave_one_out(SVC(**search.best_params_), X, y)
    auc = sklearn.metrics.roc_auc_score(y, result.decision_values)
    assert search.best_score_ == pytest.approx(auc)
    assert (search.cv_results_["std_test_score"] > 0).all()


@pytest.mark.parametrize("scoring", ["neg_log_loss", ["accuracy", "neg_brier_score"]])
def test_probabilities_are_not_to_be_had(data, scoring):
    with pytest.raises(ValueError, match="needs predict_proba, and leaving one out"):
        LooSearchCV(SVC(), GRID, scoring=scoring, refit=False).fit(*data)


def test_another_error_of_a_scorer_is_not_taken_for_missing_probabilities():
    X, y = DATA["iris"]()  # "roc_auc" is for two classes
    with pytest.raises(ValueError, match="multi_class must be in"):
        LooSearchCV(SVC(), GRID, scoring="roc_auc", error_score="raise").fit(X, y)


def test_a_scorer_may_not_choose_rows(data):
    def first_half(estimator, X, y):
        return np.mean(estimator.predict(X[:25]) == y[:25])

    with pytest.raises(ValueError, match="calls predict with 25 rows"):
        LooSearchCV(SVC(), GRID, scoring=first_half, error_score="raise").fit(*data)


def test_a_scorer_that_fails_now_and_then(data):
    def moody(estimator, X, y):
        error = np.mean(estimator.predict(X) != y)
        if error > 0.2:
            raise RuntimeError("too bad")
        return 1 - error

    with pytest.warns(UserWarning, match=r"RuntimeError: too bad .* set to 0\.1"):
        search = LooSearchCV(SVC(), GRID, scoring=moody, error_score=0.1).fit(*data)
    plain = LooSearchCV(SVC(), GRID).fit(*data).cv_results_["mean_test_score"]
    assert (search.cv_results_["mean_test_score"] == 0.1).sum() == (plain < 0.8).sum()
    several = LooSearchCV(SVC(), GRID, scoring=lambda *a: {"a": moody(*a), "b": 1.0})
    with pytest.warns(UserWarning, match="set to nan"):
        several.set_params(refit="b").fit(*data)
    failed = np.isnan(several.cv_results_["mean_test_a"])
    assert (failed == (plain < 0.8)).all()
    with pytest.raises(RuntimeError, match="too bad"):
        LooSearchCV(SVC(), GRID, scoring=moody, error_score="raise").fit(*data)


def test_failing_candidates(data):
    X, y = data
    grid = {"C": [-1.0, 1.0, 10.0], "gamma": [0.5, -3.0]}
    with pytest.warns(FitFailedWarning, match="4 of 6 candidates failed") as caught:
        search = LooSearchCV(SVC(), grid).fit(X, y)
    assert "C must be a finite number > 0; got -1.0" in str(caught[0].message)
    assert caught[0].filename == __file__
    scores = search.cv_results_["mean_test_score"]
    assert np.isnan(scores).tolist() == [True, True, False, True, False, True]
    good = LooSearchCV(SVC(), {"C": [1.0, 10.0], "gamma": [0.5]}).fit(X, y)
    assert search.best_params_ == good.best_params_
    assert search.cv_results_["n_ambiguous"].mask.sum() == 4
    with pytest.warns(FitFailedWarning):  # a good score does not make it the best
        search = LooSearchCV(SVC(), grid, error_score=2.0).fit(X, y)
    assert search.best_params_ == good.best_params_
    with pytest.raises(ValueError, match="C must be a finite number > 0"):
        LooSearchCV(SVC(), grid, error_score="raise").fit(X, y)
    with pytest.raises(ValueError, match="C must be a finite number > 0; got -1"):
        LooSearchCV(SVC(), {"C": [-1.0]}).fit(X, y)
    with pytest.raises(ValueError, match=r"All 2 candidates failed:\n  1 with"):
        LooSearchCV(SVC(), {"C": [-1.0, -2.0]}).fit(X, y)


def test_wrong_arguments_are_named(data):
    for arguments, message in (
        ({"error_score": "nan"}, "error_score must be 'raise' or a number; got 'nan'"),
        ({"refit": 3}, "refit must be True, False"),
        ({"preprocessing": "none"}, "preprocessing must be 'frozen'"),
        ({"method": "wlk"}, "wlk"),
        ({"scoring": "no_such_score"}, "no_such_score"),
    ):
        with pytest.raises(ValueError, match=message):
            LooSearchCV(SVC(), GRID, **arguments).fit(*data)
    with pytest.raises(TypeError, match="LinearSVC will not do"):
        LooSearchCV(sklearn.svm.LinearSVC(), {"C": [1]}).fit(*data)
    with pytest.raises(TypeError, match="LooSearchCV will not do: it is a search"):
        LooSearchCV(LooSearchCV(SVC(), GRID), {"refit": [True]}).fit(*data)
    with pytest.raises(ValueError, match="param_grid is empty"):
        LooSearchCV(SVC(), []).fit(*data)
    with pytest.raises(ValueError, match="sample_weight has shape"):
        LooSearchCV(SVC(), GRID).fit(*data, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="Invalid parameter 'c'"):
        LooSearchCV(SVC(), {"c": [1]}).fit(*data)
    with pytest.raises(NotFittedError):
        LooSearchCV(SVC(), GRID).predict(data[0])


def test_methods_are_those_of_the_estimator(data):
    search = LooSearchCV(SVC(), GRID)
    assert not hasattr(search, "predict_proba")
    assert not hasattr(search, "transform")
    assert not hasattr(search, "n_features_in_")
    search.fit(pd.DataFrame(data[0], columns=["a", "b"]), data[1])
    assert search.n_features_in_ == 2
    assert search.feature_names_in_.tolist() == ["a", "b"]
    assert sklearn.base.is_classifier(search)


def test_weights_without_routing(data, rng):
    X, y = data
    w = rng.integers(1, 4, len(y)).astype(float)
    search = LooSearchCV(SVC(), GRID).fit(X, y, sample_weight=w)
    slow = GridSearchCV(SVC(), GRID, cv=LeaveOneOut()).fit(X, y, sample_weight=w)
    right = np.array([slow.cv_results_[f"split{k}_test_score"] for k in range(len(y))])
    pooled = np.average(right, axis=0, weights=w)
    assert search.cv_results_["mean_test_score"] == pytest.approx(pooled)
    result = lo.leave_one_out(
        SVC(**search.best_params_), X, y, sample_weight=w, score_sample_weight=w
    )
    assert search.best_loo_result_.error == result.error
    assert search.best_score_ == pytest.approx(1 - result.error)
    refitted = SVC(**search.best_params_).fit(X, y, w)
    assert search.best_estimator_.intercept_ == pytest.approx(refitted.intercept_)
    pipeline = make_pipeline(PCA(2), SVC())
    grid = {f"svc__{name}": values for name, values in GRID.items()}
    for name in ("sample_weight", "svc__sample_weight"):
        with pytest.warns(PreprocessingWarning):
            inside = LooSearchCV(pipeline, grid).fit(X, y, **{name: w})
        assert inside.cv_results_["mean_test_score"] == pytest.approx(
            search.cv_results_["mean_test_score"]
        )
        assert inside.best_estimator_[-1].intercept_ == pytest.approx(
            refitted.intercept_
        )
    with pytest.raises(TypeError, match="fit got 'pca__sample_weight'"):
        LooSearchCV(pipeline, grid).fit(X, y, pca__sample_weight=w)
    with pytest.raises(TypeError, match="only with metadata routing"):
        LooSearchCV(OneVsRestClassifier(SVC()), {"estimator__C": [1]}).fit(
            X, y, sample_weight=w
        )


def test_weights_without_routing_reach_scorers_that_take_them(data, rng):
    X, y = data
    w = rng.integers(1, 4, len(y)).astype(float)
    search = LooSearchCV(SVC(), GRID, scoring="f1").fit(X, y, sample_weight=w)
    result = search.best_loo_result_
    assert search.best_score_ == f1_score(y, result.predictions, sample_weight=w)

    def plain(y_true, y_pred):
        return np.mean(y_true == y_pred)

    search = LooSearchCV(SVC(), GRID, scoring=make_scorer(plain))
    with pytest.warns(UserWarning, match="score takes no sample_weight"):
        search.fit(X, y, sample_weight=w)
    result = search.best_loo_result_
    assert search.best_score_ == np.mean(result.predictions == y)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_go_where_they_are_requested(data, rng):
    X, y = data
    w = rng.integers(1, 4, len(y)).astype(float)
    plain, weighted = get_scorer("accuracy"), get_scorer("accuracy")
    plain = plain.set_score_request(sample_weight=False)
    weighted = weighted.set_score_request(sample_weight=True)
    svc = SVC().set_fit_request(sample_weight=True)
    scoring = {"plain": plain, "weighted": weighted}
    search = LooSearchCV(svc, GRID, scoring=scoring, refit="weighted")
    search.fit(X, y, sample_weight=w)
    for k, params in enumerate(search.cv_results_["params"]):
        right = lo.leave_one_out(SVC(**params), X, y, sample_weight=w).predictions == y
        assert search.cv_results_["mean_test_plain"][k] == pytest.approx(right.mean())
        assert search.cv_results_["mean_test_weighted"][k] == pytest.approx(
            np.average(right, weights=w)
        )
    only_fit = LooSearchCV(svc, GRID, scoring=plain).fit(X, y, sample_weight=w)
    assert only_fit.cv_results_["mean_test_score"] == pytest.approx(
        search.cv_results_["mean_test_plain"]
    )
    only_score = LooSearchCV(
        SVC().set_fit_request(sample_weight=False), GRID, scoring=weighted
    ).fit(X, y, sample_weight=w)
    result = lo.leave_one_out(SVC(**only_score.best_params_), X, y)
    assert only_score.best_score_ == pytest.approx(
        np.average(result.predictions == y, weights=w)
    )
    assert only_score.score(X, y, sample_weight=w) == pytest.approx(
        np.average(only_score.predict(X) == y, weights=w)
    )
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
        LooSearchCV(SVC(), GRID).fit(X, y, sample_weight=w)


@pytest.mark.usefixtures("routing")
@pytest.mark.filterwarnings("ignore::leaveout.PreprocessingWarning")
def test_weights_are_routed_into_pipelines_and_one_vs_rest(rng):
    X, y = DATA["iris"]()
    w = rng.integers(1, 4, len(y)).astype(float)
    svc = SVC(gamma=0.1).set_fit_request(sample_weight="trust")
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, OneVsRestClassifier(svc))
    grid = {"onevsrestclassifier__estimator__C": [0.5, 5.0]}
    scorer = get_scorer("accuracy").set_score_request(sample_weight=False)
    search = LooSearchCV(pipeline, grid, scoring=scorer).fit(X, y, trust=w)
    for C, score in zip([0.5, 5.0], search.cv_results_["mean_test_score"], strict=True):
        alone = lo.leave_one_out(
            OneVsRestClassifier(SVC(C=C, gamma=0.1)), scale(X), y, sample_weight=w
        )
        assert score == pytest.approx(1 - alone.error)
    asking = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=True),
        SVC(gamma=0.1).set_fit_request(sample_weight=True),
    )
    with pytest.raises(ValueError, match=r"'standardscaler' .* requests sample_weight"):
        LooSearchCV(asking, {"svc__C": [1.0]}, scoring=scorer).fit(
            X, y, sample_weight=w
        )


def test_processes_threads_and_one_give_the_same(data):
    X, y = data
    one = LooSearchCV(SVC(), GRID).fit(X, y)
    for grid, n_jobs in ((GRID, 2), ({**GRID, "gamma": [1.0]}, 2)):
        search = LooSearchCV(SVC(), grid, n_jobs=n_jobs).fit(X, y)
        same = [
            one.cv_results_["params"].index(p) for p in search.cv_results_["params"]
        ]
        assert (
            search.cv_results_["mean_test_score"]
            == one.cv_results_["mean_test_score"][same]
        ).all()


@pytest.mark.filterwarnings("ignore::leaveout.AntiLearningWarning")  # noise
def test_large_data_reach_other_processes_read_only(rng):
    X = rng.normal(size=(60, 2500))  # beyond 1 MB joblib maps the file
    y = rng.integers(0, 2, 60)
    grid = {"C": [1.0], "gamma": [1e-4, 1e-3]}
    one, two = (LooSearchCV(SVC(), grid, n_jobs=n).fit(X, y) for n in (1, 2))
    assert (
        one.best_loo_result_.decision_values == two.best_loo_result_.decision_values
    ).all()


def test_sparse_features_and_precomputed_kernels(data):
    X, y = data
    dense = LooSearchCV(SVC(), GRID).fit(X, y)
    thin = LooSearchCV(SVC(), GRID, n_jobs=2).fit(sparse.csr_array(X), y)
    gram = LooSearchCV(SVC(kernel="precomputed"), {"C": GRID["C"]})
    gram.fit(rbf_kernel(X, gamma=0.1), y)
    scores = dense.cv_results_["mean_test_score"]
    assert thin.cv_results_["mean_test_score"] == pytest.approx(scores)
    assert gram.cv_results_["mean_test_score"] == pytest.approx(scores[::2])


def test_progress_goes_to_stderr(data, capsys):
    LooSearchCV(SVC(), GRID, verbose=1).fit(*data)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Cells: 2 of 2" in captured.err
    LooSearchCV(SVC(), GRID, verbose=2).fit(*data)
    captured = capsys.readouterr().err.splitlines()
    assert captured[0].startswith("Cell 1 of 2: {'gamma': 0.1}, 3 C, lowest error 0.")
    LooSearchCV(SVC(), GRID).fit(*data)
    assert capsys.readouterr().err == ""


def test_a_second_run_takes_all_from_the_checkpoint(
    data, tmp_path, capsys, monkeypatch
):
    path = tmp_path / "run.db"
    X, y = data
    labels = np.array(["no", "yes"], dtype=object)[y]
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = {f"svc__{name}": values for name, values in GRID.items()}
    with pytest.warns(PreprocessingWarning):
        first = LooSearchCV(pipeline, grid, checkpoint=path).fit(X, labels)

    def fail(*_):
        raise AssertionError("a kept cell is computed again")

    monkeypatch.setattr("leaveout.tune._paths.leave_path_out", fail)
    second = LooSearchCV(pipeline, grid, checkpoint=path, verbose=1, scoring="f1_macro")
    with pytest.warns(PreprocessingWarning, match="fitted once"):  # said again
        second.fit(X, labels)
    assert "Resumed: 2 of 2 cells are there." in capsys.readouterr().err
    assert second.best_loo_result_.predictions.dtype == labels.dtype
    f1 = f1_score(labels, second.best_loo_result_.predictions, average="macro")
    assert second.best_score_ == f1
    assert (
        first.cv_results_["n_ambiguous"].tolist()
        == second.cv_results_["n_ambiguous"].tolist()
    )


def test_a_checkpoint_of_another_run_says_what_differs(data, tmp_path):
    X, y = data
    path = tmp_path / "run.db"
    search = LooSearchCV(SVC(), GRID, checkpoint=path).fit(X, y)
    for change, what in (
        (lambda s: s.fit(X + 1e-12, y), "data"),
        (lambda s: s.fit(X, 1 - y), "data"),
        (lambda s: s.fit(X, y, sample_weight=np.full(50, 2.0)), "data"),
        (lambda s: s.fit(X, y, groups=np.arange(50) // 2), "data"),
        (lambda s: s.set_params(estimator__tol=1e-8).fit(X, y), "estimator"),
        (lambda s: s.set_params(param_grid={"C": [1.0]}).fit(X, y), "grid"),
        (lambda s: s.set_params(balanced="fold").fit(X, y), "estimator"),
    ):
        with pytest.raises(lo.CheckpointError, match=rf"differs: {what}\."):
            change(clone(search))


def test_failed_candidates_are_not_kept(data, tmp_path):
    path = tmp_path / "run.db"
    grid = [{"C": [1.0, 2.0]}, {"C": [-1.0], "gamma": [0.1]}]
    for _ in range(2):
        with pytest.warns(FitFailedWarning, match="1 of 3 candidates"):
            LooSearchCV(SVC(gamma=0.5), grid, checkpoint=path).fit(*data)


INTERRUPTED = """
import signal, sys, time
import numpy as np
import leaveout.tune._paths as run
from leaveout import SVC, LooSearchCV
from leaveout.data import make_mixture

# pytest may have been started with it ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
X, y = make_mixture(60, 3, random_state=0)
put = run.Checkpoint.put

def tell(self, *arguments):
    put(self, *arguments)
    is_third = len(self) == 3  # before it is told: a destructor may swallow Ctrl-C
    print("kept", flush=True)
    if is_third:
        time.sleep(3600)  # Ctrl-C comes here

run.Checkpoint.put = tell
LooSearchCV(SVC(), {"gamma": np.logspace(-2, 1, 8)}, checkpoint=sys.argv[1],
            n_jobs=int(sys.argv[2])).fit(X, y)
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_leaves_a_line_and_the_cells(tmp_path, n_jobs):
    path = tmp_path / "run.db"
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(path), str(n_jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(3):
        assert running.stdout.readline() == "kept\n"
    os.killpg(running.pid, signal.SIGINT)  # a terminal tells the workers too
    _, err = running.communicate()
    assert running.returncode == -signal.SIGINT
    line = f"Interrupted: 3 of 8 cells are kept in {path}; run again to go on."
    assert line in err.splitlines()  # workers may complain before
    assert err.splitlines()[-1] == "KeyboardInterrupt"


def test_a_second_fit_forgets_the_first(data):
    search = LooSearchCV(SVC(), GRID).fit(*data)
    search.set_params(refit=False, scoring=["f1", "accuracy"]).fit(*data)
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "best_params_")


@pytest.mark.usefixtures("routing")
def test_groups_are_the_search_s_own_metadata(data):
    X, y = data
    groups = np.arange(50) // 5
    search = (
        LooSearchCV(SVC(), GRID).set_fit_request(groups=True).fit(X, y, groups=groups)
    )
    assert search.n_splits_ == 10
    outer = cross_validate(search, X, y, params={"groups": groups}, cv=GroupKFold(2))
    assert np.isfinite(outer["test_score"]).all()


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


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (NuSVC(), "NuSVC will not do: its nu means another C"),
        (RandomForestClassifier(), "RandomForestClassifier will not do"),
        (make_pipeline(StandardScaler(), LinearSVC()), "ending in LinearSVC will not"),
        (StandardScaler(), "StandardScaler will not do"),
        (SVC, r"not the class SVC\. Pass SVC\(\)"),
        ("SVC", "str will not do"),
        (None, "NoneType will not do"),
    ],
)
def test_a_wrong_estimator_is_told_before_its_parameters(data, estimator, message):
    with pytest.raises(TypeError, match=message):
        LooSearchCV(estimator, {"C": [1.0]}).fit(*data)


def test_parameters_without_their_prefix_are_suggested_with_it(data):
    pipeline = make_pipeline(StandardScaler(), SVC())
    with pytest.raises(ValueError, match=r"Invalid parameter 'C'.* mean 'svc__C'\?"):
        LooSearchCV(pipeline, {"C": [1.0]}).fit(*data)
    with pytest.raises(ValueError, match="Invalid parameter 'c'"):
        LooSearchCV(SVC(), {"c": [1.0]}).fit(*data)


@pytest.mark.parametrize("n_jobs", ["all", 0, 1.5])
def test_jobs_must_be_a_whole_number(data, n_jobs):
    message = f"n_jobs must be a whole number.*got {n_jobs!r}"
    with pytest.raises(ValueError, match=message):
        LooSearchCV(SVC(), {"C": [1.0]}, n_jobs=n_jobs).fit(*data)
    with pytest.raises(ValueError, match=message):
        lo.leave_one_out(SVC(), *data, n_jobs=n_jobs)


def test_nothing_of_an_earlier_fit_stays_when_one_fails():
    X, y = make_moons(30, noise=0.2, random_state=0)
    search = LooSearchCV(SVC(), {"C": [1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        search.fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(NotFittedError):
        search.predict(X)
    assert not [name for name in vars(search) if name.endswith("_")]
    search.fit(X, y).set_params(refit=False).fit(X, y)
    assert not hasattr(search, "refit_time_")


def test_the_result_is_weighted_as_the_score_that_decides(rng):
    X, y = make_moons(30, noise=0.3, random_state=0)
    scores = {"scoring": ["balanced_accuracy", "accuracy"], "refit": "accuracy"}
    search = LooSearchCV(SVC(), {"C": [0.1, 1.0]}, **scores)
    search.fit(X, y, sample_weight=rng.random(30))
    assert search.best_score_ == pytest.approx(1 - search.best_loo_result_.error)


def test_weights_that_one_candidate_does_not_take_are_refused_at_once(rng):
    X, y = make_moons(30, noise=0.3, random_state=0)
    models = [sklearn.svm.SVC(), OneVsRestClassifier(sklearn.svm.SVC())]
    search = LooSearchCV(Pipeline([("svc", SVC())]), {"svc": models})
    with pytest.raises(TypeError, match="OneVsRestClassifier takes sample_weight only"):
        search.fit(X, y, sample_weight=rng.random(30))


@pytest.mark.parametrize("long", [np.int32, np.int64])
def test_sparse_samples_in_any_order_are_left_as_they_are(long, rng):
    """scikit-learn's SVC sorts indices in place, and refuses those of 64 bits."""
    indices, ends = np.tile([2, 0], 30).astype(long), np.arange(0, 61, 2, dtype=long)
    X = sparse.csr_array((rng.normal(size=60), indices, ends), shape=(30, 3))
    y = (X.toarray()[:, 0] > 0).astype(int)
    search = LooSearchCV(sklearn.svm.SVC(), {"C": [10.0]}).fit(X, y)
    np.testing.assert_array_equal(X.indices, np.tile([2, 0], 30))
    dense = sklearn.svm.SVC(C=10.0).fit(X.toarray(), y)
    np.testing.assert_array_equal(
        search.predict(X.toarray()), dense.predict(X.toarray())
    )


def test_verbose_is_a_number():
    with pytest.raises(TypeError, match="verbose must be a whole number; got 'a'"):
        LooSearchCV(SVC(), {"C": [1.0]}, verbose="a").fit([[0.0], [1.0]], [0, 1])
