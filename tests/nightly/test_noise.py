# SPDX-License-Identifier: BSD-3-Clause
"""Errors and probabilities on data without signal, over several seeds."""

import numpy as np
import pytest

import leaveout as lo

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning"),
]


def test_on_noise_the_naive_error_is_too_small():
    naive, found = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 5)), rng.permutation(np.repeat([0, 1], 15))
        grid = {"C": [0.1, 1, 10, 100], "gamma": [0.01, 0.1, 1]}
        result = lo.honest_loo(lo.LooSearchCV(lo.SVC(), grid), X, y, verbose=0)
        naive.append(result.naive_error)
        found.append(result.error)
    # 180 predictions; chance is 1/2, and leaving one of equal classes out a bit worse.
    assert np.mean(found) > 0.45
    assert np.mean(naive) < np.mean(found) - 0.05


@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_is_never_anti_calibrated(n_classes):
    """Probabilities never fall with f, and are near the proportions of the classes."""
    fallbacks = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((45, 4)), rng.permutation(np.arange(45) % n_classes)
        clf = lo.SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.05, 0.25]).fit(X, y)
        assert (clf.platt_slope_ >= 0).all()
        fallbacks += int((clf.platt_slope_ == 0).sum())
        new = rng.standard_normal((200, 4))
        p = clf.predict_proba(new)
        if n_classes == 2:
            order = np.argsort(clf.decision_function(new))
            assert (np.diff(p[order, 1]) >= -1e-12).all()
        # In expectation over the labels, which have nothing to do with X.
        expected_loss = -np.log(p).mean()
        assert expected_loss < 1.35 * np.log(n_classes)
    assert fallbacks > 0
