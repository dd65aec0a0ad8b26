# SPDX-License-Identifier: BSD-3-Clause
"""Scores of pooled predictions by LooSearchCV, and their standard errors."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import f1_score, make_scorer, matthews_corrcoef, roc_auc_score

import leaveout as lo
from leaveout import SVC, LooSearchCV
from leaveout.exceptions import PooledScoreWarning
from leaveout.tune._scoring import identical_rows, random_blocks, standard_errors

GRID = {"C": [0.5, 5.0, 50.0], "gamma": [0.1, 1.0]}


def test_standard_errors_equal_binomial_and_bootstrap(rng):
    y = rng.integers(0, 2, 400)
    predictions = np.where(rng.random(400) < 0.2, 1 - y, y)

    def score(rows):
        found = y[rows], predictions[rows]
        return {"f1": f1_score(*found), "accuracy": np.mean(found[0] == found[1])}

    whole = score(np.arange(400))
    binomial = np.sqrt(whole["accuracy"] * (1 - whole["accuracy"]) / 400)
    for rows in (identical_rows(y, predictions), identical_rows(np.arange(400))):
        found = standard_errors(score, whole, rows, 400)["accuracy"]
        assert found == pytest.approx(binomial, rel=1e-9)
    found = standard_errors(score, whole, random_blocks(400), 400)
    resampled = [score(rng.integers(0, 400, 400))["f1"] for _ in range(200)]
    assert found["f1"] == pytest.approx(np.std(resampled), rel=0.35)
    assert found["accuracy"] == pytest.approx(binomial, rel=0.35)


def test_blocks_contain_every_row_once_and_whole_groups():
    for n_groups in (4, 80, 173):
        groups = np.arange(173) % n_groups
        parts = [rows for rows, _ in random_blocks(173, groups)]
        assert sorted(np.concatenate(parts)) == list(range(173))
        assert sum(len(set(groups[rows])) for rows in parts) == n_groups


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy"])
def test_standard_error_counts_groups_not_samples(data, scoring):
    """Five copies of a sample, left out together, count as one sample."""
    X, y = data
    once = LooSearchCV(SVC(C=1.0), {"gamma": [0.5]}, scoring=scoring).fit(X, y)
    copies = np.tile(np.arange(30), 5)
    search = clone(once).set_params(
        estimator__C=0.2
    )  # five copies have the weight of one sample
    search.fit(X[copies], y[copies], groups=copies)
    assert search.best_score_ == pytest.approx(once.best_score_)
    found = search.cv_results_["std_test_score"]
    assert found == pytest.approx(once.cv_results_["std_test_score"], rel=0.03)


def test_scores_of_pooled_predictions(data):
    X, y = data
    scoring = {"f1": "f1", "mcc": make_scorer(matthews_corrcoef)}
    search = LooSearchCV(SVC(), GRID, scoring=scoring, refit="mcc").fit(X, y)
    table = search.cv_results_
    for k, params in enumerate(table["params"]):
        labels = lo.leave_one_out(SVC(**params), X, y).predictions
        for name, function in (("f1", f1_score), ("mcc", matthews_corrcoef)):
            wanted = pytest.approx(function(y, labels))
            assert table[f"mean_test_{name}"][k] == wanted
    assert search.best_score_ == table["mean_test_mcc"].max()
    assert search.score(X, y) == matthews_corrcoef(y, search.predict(X))
    several = ["accuracy", "roc_auc"]
    with pytest.warns(PooledScoreWarning, match=r"scoring \('roc_auc'\) ranks"):
        LooSearchCV(SVC(), GRID, scoring=several, refit=False).fit(X, y)
    with pytest.warns(PooledScoreWarning, match=r"\('roc_auc'\).*leave_pair") as caught:
        search = LooSearchCV(SVC(), GRID, scoring="roc_auc").fit(X, y)
    assert [w.filename for w in caught] == [__file__]
    result = lo.leave_one_out(SVC(**search.best_params_), X, y)
    auc = roc_auc_score(y, result.decision_values)
    assert search.best_score_ == pytest.approx(auc)
    assert (search.cv_results_["std_test_score"] > 0).all()


def two_scores(estimator, X, y):
    right = estimator.predict(X) == y
    return {"first": right[: len(y) // 2].mean(), "all": right.mean()}


def test_scorer_that_returns_several_scores(data):
    search = LooSearchCV(SVC(), GRID, scoring=two_scores, refit="all").fit(*data)
    wanted = LooSearchCV(SVC(), GRID).fit(*data)
    scores = wanted.cv_results_["mean_test_score"]
    assert search.cv_results_["mean_test_all"] == pytest.approx(scores)
    assert search.score(*data) == wanted.score(*data)
    with pytest.raises(ValueError, match="the score that decides \\('first', 'all'\\)"):
        search.set_params(refit=True).fit(*data)


def moody(estimator, X, y):
    error = np.mean(estimator.predict(X) != y)
    if error > 0.2:
        raise RuntimeError("too bad")
    return 1 - error


@pytest.mark.parametrize(
    ("scoring", "error", "match"),
    [
        ("neg_log_loss", ValueError, "needs predict_proba, but leave-one-out"),
        (lambda e, X, y: e.predict(X[:20]), ValueError, "calls predict with 20 rows"),
        (lambda e, X, y: "good", ValueError, "return a number; score returned 'good'"),
        (lambda e, X, y: e.support_, AttributeError, "scoring uses 'support_', but"),
        (moody, RuntimeError, "too bad"),
    ],
)
def test_errors_of_scorers_are_raised(data, scoring, error, match):
    how = {"scoring": scoring, "error_score": "raise", "refit": False}
    with pytest.raises(error, match=match):
        LooSearchCV(SVC(), GRID, **how).fit(*data)


def test_failing_scorer_gets_error_score(data):
    with pytest.warns(UserWarning, match=r"RuntimeError: too bad .* set to 0\.1") as w:
        search = LooSearchCV(SVC(), GRID, scoring=moody, error_score=0.1).fit(*data)
    assert w[0].filename == __file__
    plain = LooSearchCV(SVC(), GRID).fit(*data).cv_results_["mean_test_score"]
    assert 0 < (plain < 0.8).sum() < 6
    assert ((search.cv_results_["mean_test_score"] == 0.1) == (plain < 0.8)).all()
