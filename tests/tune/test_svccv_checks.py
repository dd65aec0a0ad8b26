# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own checks of an estimator, over several settings of SVCCV."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

import leaveout as lo

SETTINGS = [
    lo.SVCCV(),
    lo.SVCCV(kernel="linear", one_se=True),
    lo.SVCCV(Cs=[1.0, 10.0], gammas=[0.01, 0.1], probability=False),
    lo.SVCCV(class_weight="balanced", Cs=[0.1, 1.0, 10.0]),
    # One check of probabilities passes features even to a precomputed kernel.
    lo.SVCCV(kernel="precomputed", Cs=[1.0, 10.0], probability=False),
]
WEIGHTS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "The check asks that a sample of weight 2 acts as the sample given twice. Leaving "
    "one of two copies out leaves the other in the training set; leaving out the one "
    "sample of weight 2 leaves none. The leave-one-out errors differ whatever the "
    "solver does, and so do the choice and the probabilities.",
)
PROBABILITIES = {
    "check_classifiers_train": "The check asks that predict returns the most probable "
    "class. An SVM decides at f = 0; Platt's sigmoid is 1/2 at f = -offset / slope. "
    "scikit-learn's SVC(probability=True) differs in the same way."
}


def expected_failures(estimator):
    """What cannot pass, with the proof."""
    return {**WEIGHTS, **(PROBABILITIES if estimator.probability else {})}


# Some checks have a class with one sample, labels that are noise, or random numbers as
# Gram matrix.
@pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")
@pytest.mark.filterwarnings("ignore::leaveout.CalibrationWarning")
@pytest.mark.filterwarnings("ignore::leaveout.AntiLearningWarning")
@pytest.mark.filterwarnings("ignore::leaveout.CertificateWarning")
@parametrize_with_checks(SETTINGS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_weight_equivalence_fails():
    with pytest.raises(AssertionError):
        check_sample_weight_equivalence_on_dense_data("SVCCV", lo.SVCCV())


def test_the_proof_of_the_expected_failure_in_numbers():
    """A sample on the wrong side, twice: its copy holds the place; alone, none does."""
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0], [-1.5]]), np.array([0, 0, 1, 1, 1])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 2.0])
    svc = lo.SVC(C=100.0, gamma=2.0)
    weighted = lo.leave_one_out(svc, X, y, sample_weight=weights)
    repeated = lo.leave_one_out(svc, X[[0, 1, 2, 3, 4, 4]], y[[0, 1, 2, 3, 4, 4]])
    assert weighted.wrong[4]
    assert not repeated.wrong[4:].any()


def test_the_sigmoid_is_one_half_elsewhere_than_the_decision():
    X = np.random.default_rng(0).standard_normal((60, 2))
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.5).astype(int)
    clf = lo.SVCCV().fit(X, y)
    between = -clf.platt_offset_[0] / clf.platt_slope_[0]
    assert abs(between) > 0.01
    new = np.random.default_rng(1).standard_normal((5000, 2))
    f, p = clf.decision_function(new), clf.predict_proba(new)[:, 1]
    np.testing.assert_array_equal(p > 0.5, f > between)
    assert ((p > 0.5) != (clf.predict(new) == 1)).any()
