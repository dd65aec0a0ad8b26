# SPDX-License-Identifier: BSD-3-Clause
from pathlib import Path

import pytest

import leaveout as lo

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("kind", ["svm", "lpm"])
def test_training_again_gives_the_default(kind, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "tools")
    import train_loo_predictor

    again = train_loo_predictor.train(kind)
    stored = lo.LooPredictor.load_default(kind)
    assert again.feature_names_ == stored.feature_names_
    for new, old in zip(again.estimators_, stored.estimators_, strict=True):
        assert (new.variant, new.n_samples) == (old.variant, old.n_samples)
        for name in ("mean", "scale", "low", "high", "coef", "intercept"):
            wanted = pytest.approx(getattr(old, name), rel=1e-5, abs=1e-6)
            assert getattr(new, name) == wanted
