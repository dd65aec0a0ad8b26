# SPDX-License-Identifier: BSD-3-Clause
"""LooPredictor: the stored predictors can be trained again, and they generalise."""

from pathlib import Path

import pytest
from sklearn.metrics import roc_auc_score

import leaveout as lo
from leaveout.data import make_banana, make_mixture, make_twonorm

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("kind", ["svm", "lpm"])
def test_training_again_gives_the_default(kind, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "tools")
    import train_loo_predictor

    again = train_loo_predictor.train(kind)
    stored = lo.LooPredictor.load_default(kind)
    assert again.feature_names_ == stored.feature_names_
    assert again.n_samples_ == stored.n_samples_
    for name in ("mean_", "scale_", "coef_", "intercept_"):
        wanted = pytest.approx(getattr(stored, name), rel=1e-5, abs=1e-6)
        assert getattr(again, name) == wanted


def test_learned_from_two_sets_tells_more_than_chance_on_a_third():
    tasks = [
        (lo.SVC(C=C, gamma=gamma), *make(80, random_state=seed))
        for make in (make_twonorm, make_banana)
        for C in (0.1, 1.0, 10.0)
        for gamma in (0.02, 0.2)
        for seed in range(2)
    ]
    predictor = lo.LooPredictor(random_state=0).fit(tasks)
    X, y = make_mixture(100, random_state=5)
    machine = lo.SVC(C=5.0, gamma=0.01).fit(X, y)
    wrong = lo.leave_one_out(machine, X, y).predictions != y
    values = predictor.decision_values(machine, X, y)
    assert roc_auc_score(~wrong, values) > 0.8
