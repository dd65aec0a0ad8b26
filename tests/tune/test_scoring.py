# SPDX-License-Identifier: BSD-3-Clause
"""Scores of pooled predictions by LooSearchCV, and their standard errors."""

import numpy as np
import pytest
import sklearn
from scipy.stats import bootstrap
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    make_scorer,
    matthews_corrcoef,
    roc_auc_score,
)

import leaveout as lo
from leaveout import SVC, LooSearchCV
from leaveout.exceptions import PooledScoreWarning
from leaveout.tune._scoring import identical_rows, random_blocks, standard_errors

GRID = {"C": [0.5, 5.0, 50.0], "gamma": [0.1, 1.0]}


@pytest.fixture
def data():
    return make_moons(40, noise=0.35, random_state=3)


@pytest.fixture
def labels(rng):
    y = rng.integers(0, 2, 400)
    return y, np.where(rng.random(400) < 0.2, 1 - y, y)


def test_accuracy_has_the_binomial_error(labels):
    y, predictions = labels
    p = np.mean(y == predictions)

    def accuracy(rows):
        return {"a": np.mean(y[rows] == predictions[rows])}

    for blocks, tolerance in (
        (identical_rows(y, predictions), 1e-9),
        (identical_rows(np.arange(400)), 1e-9),
        (random_blocks(400), 0.3),
    ):
        found = standard_errors(accuracy, {"a": p}, blocks, 400)["a"]
        assert found == pytest.approx(np.sqrt(p * (1 - p) / 400), rel=tolerance)


def test_other_scores_agree_with_the_bootstrap(labels, rng):
    y, predictions = labels
    values = predictions + rng.normal(size=400)

    def scores(rows):
        return {
            "balanced": balanced_accuracy_score(y[rows], predictions[rows]),
            "auc": roc_auc_score(y[rows], values[rows]),
        }

    whole = scores(np.arange(400))
    found = standard_errors(scores, whole, random_blocks(400), 400)
    for name in whole:
        wanted = bootstrap(
            (np.arange(400),), lambda rows, name=name: scores(rows)[name],
            n_resamples=100, method="basic", vectorized=False, random_state=0,
        ).standard_error  # fmt: skip
        assert found[name] == pytest.approx(wanted, rel=0.35)


def test_blocks_hold_every_row_once():
    for n in (3, 50, 173):
        rows = np.concatenate([block for block, _ in random_blocks(n)])
        assert sorted(rows) == list(range(n))
    for n_groups in (4, 80):
        groups = np.arange(173) % n_groups
        parts = [set(groups[rows]) for rows, _ in random_blocks(173, groups)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == n_groups
    y = np.array(["a", "b", "a", "a"])
    assert sum(n_alike for _, n_alike in identical_rows(y, y == "a")) == 4


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy"])
def test_standard_error_counts_groups_not_samples(data, tmp_path, scoring):
    """Five copies of each sample, left out together: as good as the sample once."""
    X, y = data
    once = LooSearchCV(SVC(C=1.0), {"gamma": [0.5]}, scoring=scoring).fit(X, y)
    copies = np.tile(np.arange(40), 5)
    # The copies weigh as the one sample did.
    search = LooSearchCV(
        SVC(C=0.2), {"gamma": [0.5]}, scoring=scoring, checkpoint=tmp_path / "run.db"
    )
    for _ in ("first", "from the checkpoint"):
        search.fit(X[copies], y[copies], groups=copies)
        assert search.best_score_ == pytest.approx(once.best_score_)
        found = search.cv_results_["std_test_score"]
        assert found == pytest.approx(once.cv_results_["std_test_score"], rel=0.03)


def test_scores_of_labels_are_of_all_predictions_together(data):
    X, y = data
    scoring = {"f1": "f1", "mcc": make_scorer(matthews_corrcoef)}
    search = LooSearchCV(SVC(), GRID, scoring=scoring, refit="mcc").fit(X, y)
    for k, params in enumerate(search.cv_results_["params"]):
        labels = lo.leave_one_out(SVC(**params), X, y).predictions
        assert search.cv_results_["mean_test_f1"][k] == f1_score(y, labels)
        mcc = matthews_corrcoef(y, labels)
        assert search.cv_results_["mean_test_mcc"][k] == pytest.approx(mcc)
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
def test_probabilities_are_not_available(data, scoring):
    with pytest.raises(ValueError, match="needs predict_proba, but leave-one-out"):
        LooSearchCV(SVC(), GRID, scoring=scoring, refit=False).fit(*data)


def first_half(estimator, X, y):
    return np.mean(estimator.predict(X[:20]) == y[:20])


def no_number(estimator, X, y):
    return "good"


def test_errors_of_scorers_are_raised_as_they_are(data):
    how = {"error_score": "raise"}
    with pytest.raises(ValueError, match="calls predict with 20 rows"):
        LooSearchCV(SVC(), GRID, scoring=first_half, **how).fit(*data)
    with pytest.raises(ValueError, match="must return a number; score returned 'good'"):
        LooSearchCV(SVC(), GRID, scoring=no_number, **how).fit(*data)
    X, y = load_iris(return_X_y=True)  # "roc_auc" is for two classes
    with pytest.raises(ValueError, match="multi_class must be in"):
        LooSearchCV(SVC(), GRID, scoring="roc_auc", **how).fit(X[::5], y[::5])


def test_a_scorer_that_fails_sometimes(data):
    def moody(estimator, X, y):
        error = np.mean(estimator.predict(X) != y)
        if error > 0.2:
            raise RuntimeError("too bad")
        return 1 - error

    with pytest.warns(UserWarning, match=r"RuntimeError: too bad .* set to 0\.1") as w:
        search = LooSearchCV(SVC(), GRID, scoring=moody, error_score=0.1).fit(*data)
    assert w[0].filename == __file__
    plain = LooSearchCV(SVC(), GRID).fit(*data).cv_results_["mean_test_score"]
    assert 0 < (plain < 0.8).sum() < 6
    assert ((search.cv_results_["mean_test_score"] == 0.1) == (plain < 0.8)).all()
    several = LooSearchCV(SVC(), GRID, scoring=lambda *a: {"a": moody(*a), "b": 1.0})
    with pytest.warns(UserWarning, match="set to nan"):
        several.set_params(refit="b").fit(*data)
    failed = np.isnan(several.cv_results_["mean_test_a"])
    assert (failed == (plain < 0.8)).all()
    with pytest.raises(RuntimeError, match="too bad"):
        LooSearchCV(SVC(), GRID, scoring=moody, error_score="raise").fit(*data)
