# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own checks of an estimator, over several settings of LPMClassifier."""

import numpy as np
import pytest
from oracles.programs import lpm_range
from sklearn.utils.estimator_checks import parametrize_with_checks

from leaveout import LPMClassifier
from leaveout.kernel._gram import gram_matrix

WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
SETTINGS = [
    LPMClassifier(),
    LPMClassifier(gamma=0.1),
    LPMClassifier(C=10.0, gamma=0.1),
    LPMClassifier(C=10.0, fit_intercept=False, gamma=1e-3),
    LPMClassifier(kernel="precomputed"),
]


def expected_failures(estimator):
    """What cannot pass, with the reason; the tests below have the proof in numbers.

    The checks ask that a sample of weight 2 acts as the sample given twice.
    """
    reason = None
    if estimator.kernel == "rbf" and estimator.gamma == "scale":
        reason = (
            'gamma="scale" is 1 / (n_features * X.var()) over the rows of X, whatever '
            "their weights: the two fits have different kernels."
        )
    elif (estimator.C, estimator.gamma) == (10.0, 0.1):
        reason = (
            "On the data of the check the linear program of one class has several "
            "optima, with the same objective but different values f: which of them a "
            "solver returns is not settled by the problem."
        )
    return {} if reason is None else dict.fromkeys(WEIGHT_CHECKS, reason)


@parametrize_with_checks(SETTINGS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data_of_the_check():
    rng = np.random.RandomState(42)
    X, y = rng.rand(15, 30), rng.randint(0, 3, size=15)
    return X, y, rng.randint(0, 5, size=15)


def test_weights_and_copies_have_the_same_optimum_and_several_solutions(
    data_of_the_check,
):
    X, y, weight = data_of_the_check
    copies = X.repeat(weight, axis=0), y.repeat(weight)
    weighted = LPMClassifier(C=10.0, gamma=0.1).fit(X, y, sample_weight=weight)
    repeated = LPMClassifier(C=10.0, gamma=0.1).fit(*copies)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-12)
    on = weight > 0
    K = gram_matrix(X, kernel="rbf", gamma=0.1)[:, on]
    for k in range(3):
        signs = np.where(y[on] == k, 1.0, -1.0)
        ends = [lpm_range(K[on], signs, 10.0 * weight[on], row) for row in K]
        low, high = np.array(ends).T
        several = high - low > 1e-4
        assert several.any() == (k == 0)
        for clf in (weighted, repeated):
            f = clf.decision_function(X)[:, k]
            assert (f >= low - 1e-6).all()
            assert (f <= high + 1e-6).all()


def test_scale_counts_rows_not_weights():
    twice, once = np.array([[0.0], [0.0], [1.0]]), np.array([[0.0], [1.0]])
    repeated = LPMClassifier().fit(twice, [0, 0, 1])
    weighted = LPMClassifier().fit(once, [0, 1], sample_weight=[2.0, 1.0])
    assert (repeated.gamma_, weighted.gamma_) == pytest.approx((9 / 2, 4))
