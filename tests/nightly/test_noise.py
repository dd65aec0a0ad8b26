# SPDX-License-Identifier: BSD-3-Clause
"""On pure noise: p-values that are uniform, and a nested error that is one half."""

import numpy as np
import pytest
from scipy import stats

import leaveout as lo

pytestmark = pytest.mark.nightly


def noise(seed, n, n_features):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, rng.permutation(np.repeat([0, 1], n // 2))


def test_p_values_of_the_permutation_test():
    # P(p <= a) <= a, and not much less: ties of the errors take something away.
    svc = lo.SVC(C=1, gamma=0.2)
    p_values = []
    for seed in range(120):
        how = {"n_permutations": 19, "random_state": seed}
        test = lo.loo_permutation_test(svc, *noise(seed, 24, 4), **how)
        p_values.append(test.p_value)
    for level in (0.1, 0.25, 0.5):
        found = np.count_nonzero(np.array(p_values) <= level + 1e-9)
        assert stats.binomtest(found, 120, level, "greater").pvalue > 1e-3
        assert stats.binomtest(found, 120, 0.7 * level, "less").pvalue > 1e-3


@pytest.mark.filterwarnings("ignore::leaveout.AntiLearningWarning")
def test_the_naive_error_is_too_small_and_the_nested_one_is_not():
    grid = {"C": [0.1, 1, 10, 100], "gamma": [0.01, 0.1, 1]}
    results = [
        lo.honest_loo(lo.LooSearchCV(lo.SVC(), grid), *noise(seed, 30, 5), verbose=0)
        for seed in range(6)
    ]
    # 180 predictions; chance is 1/2, and leaving one of equal classes out a bit worse.
    nested = np.mean([result.error for result in results])
    assert nested > 0.45
    assert np.mean([result.naive_error for result in results]) < nested - 0.05


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_is_never_anti_calibrated(n_classes):
    fallbacks = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((45, 4)), rng.permutation(np.arange(45) % n_classes)
        clf = lo.SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.05, 0.25]).fit(X, y)
        assert (clf.platt_slope_ >= 0).all()
        fallbacks += int((clf.platt_slope_ == 0).sum())
        # In expectation over the labels, which have nothing to do with X.
        p = clf.predict_proba(rng.standard_normal((200, 4)))
        assert -np.log(p).mean() < 1.35 * np.log(n_classes)
    assert fallbacks > 0
