# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's estimator checks for every estimator, in different settings.

A check listed in `expected_failures` must fail, and the tests below show its reason.
"""

import numpy as np
import pytest
from oracles.programs import lpm_range
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import leaveout as lo

GRID = {"C": [0.5, 5.0]}
METRICS = ["accuracy", "f1_macro"]
SETTINGS = [
    lo.SVC(),
    lo.SVC(kernel="linear", class_weight="balanced"),
    # Without an intercept, a narrow kernel gives f = 0 at all new points of a check.
    lo.SVC(kernel="laplacian", gamma=1e-3, fit_intercept=False, break_ties=True),
    lo.SVC(kernel="precomputed"),
    lo.SVR(),
    lo.SVR(kernel="linear", epsilon=0.0),
    lo.SVR(kernel="precomputed"),
    lo.LPMClassifier(C=10.0, gamma=0.1),
    lo.LPMClassifier(kernel="precomputed"),
    lo.LOOMClassifier(),
    lo.LLWClassifier(C=10.0, loss="quadratic", gamma=0.1),
    lo.LLWClassifier(kernel="precomputed"),
    lo.SVCCV(class_weight="balanced", Cs=[0.1, 1.0, 10.0]),
    lo.SVCCV(kernel="linear", one_se=True),
    # One check of probabilities passes features even to a precomputed kernel.
    lo.SVCCV(kernel="precomputed", Cs=[1.0, 10.0], probability=False),
    lo.LooSearchCV(lo.SVC(gamma=0.1), GRID),
    lo.LooSearchCV(lo.SVC(gamma=0.1), GRID, scoring=METRICS, refit="f1_macro"),
    lo.LooSearchCV(lo.SVC(kernel="precomputed"), GRID),
    lo.LooSearchCV(lo.SVR(gamma=0.1), GRID),
    lo.FeatureSVC(n_components=200),
    lo.FeatureSVC("linear", C=[0.1, 1.0], class_weight="balanced"),
]
# LooPredictor is fitted on tasks, not on X and y.
NOT_CHECKED = {"LooPredictor"}

WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
REASONS = {
    "gamma": 'gamma="scale" is 1 / (n_features * X.var()) over the rows of X, whatever '
    "their weights: the two fits have different kernels.",
    "optima": "On the data of the check the linear program has several optima with "
    "the same objective and different f.",
    "copies": "A copy of a sample supports its twin in the constraints of LOOM; a "
    "larger weight does not.",
    "heavy": "The class of weight 1000 has no slack left: more weight changes nothing.",
    "left out": "Leaving out one of two copies keeps the other in the training set; "
    "leaving out one sample of weight 2 does not.",
    "sigmoid": "predict decides at f = 0; Platt's sigmoid is 1/2 somewhere else, as in "
    "scikit-learn's SVC(probability=True).",
}


def expected_failures(estimator):
    """Return reasons by check; weight checks require weight 2 to equal two copies."""
    name, failures = type(estimator).__name__, {}
    if name == "SVCCV":
        failures = dict.fromkeys(WEIGHT_CHECKS, REASONS["left out"])
        if estimator.probability:
            failures["check_classifiers_train"] = REASONS["sigmoid"]
    elif name == "LOOMClassifier":
        failures = dict.fromkeys(WEIGHT_CHECKS, REASONS["copies"])
        failures["check_class_weight_classifiers"] = REASONS["heavy"]
    elif name == "LPMClassifier" and estimator.kernel == "rbf":
        failures = dict.fromkeys(WEIGHT_CHECKS, REASONS["optima"])
    elif name == "FeatureSVC" and estimator.features == "fourier":
        failures = dict.fromkeys(WEIGHT_CHECKS, REASONS["gamma"])
    elif name in ("SVC", "SVR") and (estimator.kernel, estimator.gamma) == (
        "rbf",
        "scale",
    ):
        failures = dict.fromkeys(WEIGHT_CHECKS, REASONS["gamma"])
    return failures


# The checks use singleton classes, random labels, kernel values near 0, and random
# numbers as a Gram matrix.
@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@parametrize_with_checks(SETTINGS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_every_exported_estimator_is_checked():
    classes = {name: getattr(lo, name) for name in lo.__all__ if name[0].isupper()}
    fitted = {name for name, kind in classes.items() if hasattr(kind, "fit")}
    assert fitted - NOT_CHECKED == {type(estimator).__name__ for estimator in SETTINGS}
    assert all(is_classifier(each) != is_regressor(each) for each in SETTINGS)


def test_scale_and_balanced_count_rows():
    twice, once = np.array([[0.0], [0.0], [1.0]]), np.array([[0.0], [1.0]])
    repeated = lo.SVC(class_weight="balanced").fit(twice, [0, 0, 1])
    weighted = lo.SVC(class_weight="balanced").fit(once, [0, 1], sample_weight=[2, 1])
    assert (repeated.gamma_, weighted.gamma_) == pytest.approx((9 / 2, 4))
    assert repeated.class_weight_ == pytest.approx([0.75, 1.5])
    assert weighted.class_weight_ == pytest.approx([1.0, 1.0])


def test_weights_and_copies_give_equal_optimal_values():
    rng = np.random.RandomState(42)  # the data of the check
    X, y = rng.rand(15, 30), rng.randint(0, 3, size=15)
    weight = rng.randint(0, 5, size=15)
    copies = X.repeat(weight, axis=0), y.repeat(weight)
    weighted = lo.LPMClassifier(C=10.0, gamma=0.1).fit(X, y, sample_weight=weight)
    repeated = lo.LPMClassifier(C=10.0, gamma=0.1).fit(*copies)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-12)
    on = weight > 0
    K = rbf_kernel(X, gamma=0.1)[:, on]
    for k in range(3):
        signs = np.where(y[on] == k, 1.0, -1.0)
        ends = [lpm_range(K[on], signs, 10.0 * weight[on], row) for row in K]
        low, high = np.array(ends).T
        assert (high - low > 1e-4).any() == (k == 0)
        for clf in (weighted, repeated):
            f = clf.decision_function(X)[:, k]
            assert (f >= low - 1e-6).all()
            assert (f <= high + 1e-6).all()


def test_loom_copies_support_each_other_but_weights_do_not():
    X, y = np.array([[0.0], [1.0], [3.0]]), [0, 0, 1]
    weighted = lo.LOOMClassifier(gamma=1.0).fit(X, y, sample_weight=[1, 1, 2])
    copied = lo.LOOMClassifier(gamma=1.0).fit(X[[0, 1, 2, 2]], [0, 0, 1, 1])
    assert weighted.slack_[0, 2] >= 1  # the only sample of its class
    assert copied.objective_[0] == pytest.approx(0, abs=1e-12)


def test_leaving_out_one_of_two_copies_keeps_the_other():
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0], [-1.5]]), np.array([0, 0, 1, 1, 1])
    svc, twice = lo.SVC(C=100.0, gamma=2.0), [0, 1, 2, 3, 4, 4]
    weighted = lo.leave_one_out(svc, X, y, sample_weight=[1.0, 1, 1, 1, 2])
    repeated = lo.leave_one_out(svc, X[twice], y[twice])
    assert weighted.wrong[4]
    assert not repeated.wrong[4:].any()
