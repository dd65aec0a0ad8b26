# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own checks of an estimator, over several settings of SVC."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

from leaveout import SVC

WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
SETTINGS = [
    SVC(),
    SVC(gamma=0.1),
    SVC(gamma="auto"),
    SVC(kernel="linear"),
    SVC(kernel="poly", degree=2, gamma=0.1, coef0=1.0),
    SVC(kernel="laplacian", gamma=0.1),
    SVC(kernel="cosine"),
    SVC(class_weight="balanced", gamma=0.1),
    # One check has points 20 apart: at gamma=0.1 they share no kernel value, and
    # without a bias f would be 0 at all new points.
    SVC(fit_intercept=False, gamma=1e-3),
    SVC(decision_function_shape="ovo", gamma=0.1),
    SVC(break_ties=True, gamma=0.1),
    SVC(kernel="precomputed"),
]


def expected_failures(estimator):
    """What cannot pass, with the proof: scikit-learn's definitions exclude it.

    The check asks that a sample of weight 2 acts as the sample given twice.
    """
    if estimator.decision_function_shape == "ovo":
        check = "check_classifiers_train"
        return {
            check: "The check takes the largest of three values for the class; with "
            '"ovo" they are the values of the pairs (0, 1), (0, 2), (1, 2).'
        }
    reasons = []
    uses_gamma = estimator.kernel in ("rbf", "poly", "sigmoid", "laplacian")
    if uses_gamma and estimator.gamma == "scale":
        reasons.append(
            'gamma="scale" is 1 / (n_features * X.var()) with X.var() over the rows of '
            "X: x = (0, 0, 1) has variance 2/9, but x = (0, 1) with weights (2, 1) has "
            "1/4. The two fits have different kernels whatever the solver does."
        )
    if estimator.class_weight == "balanced":
        reasons.append(
            'class_weight="balanced" is n_samples / (n_classes * count) with counts of '
            "rows: y = (0, 0, 1) gives (3/4, 3/2), but y = (0, 1) with weights (2, 1) "
            "gives (1, 1). The two fits have different boxes whatever the solver does."
        )
    return {check: " ".join(reasons) for check in WEIGHT_CHECKS} if reasons else {}


# One check passes a matrix of random numbers as Gram matrix.
@pytest.mark.filterwarnings("ignore:The kernel 'precomputed' is not positive")
@parametrize_with_checks(SETTINGS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        check_sample_weight_equivalence_on_dense_data,
        check_sample_weight_equivalence_on_sparse_data,
    ],
)
def test_weight_equivalence_fails_for_scale_in_scikit_learn_too(check):
    with pytest.raises(AssertionError):
        check("SVC", SVC(gamma="scale"))
    with pytest.raises(AssertionError):
        check("SVC", sklearn.svm.SVC(gamma="scale"))
    with pytest.raises(AssertionError):
        check("SVC", sklearn.svm.SVC(gamma=0.1, class_weight="balanced"))
    check("SVC", SVC(gamma=0.1))


def test_the_proof_of_the_expected_failures_in_numbers():
    twice, once = np.array([[0.0], [0.0], [1.0]]), np.array([[0.0], [1.0]])
    repeated = SVC().fit(twice, [0, 0, 1])
    weighted = SVC().fit(once, [0, 1], sample_weight=[2.0, 1.0])
    assert repeated.gamma_ == pytest.approx(9 / 2)
    assert weighted.gamma_ == pytest.approx(4)
    repeated = SVC(class_weight="balanced").fit(twice, [0, 0, 1])
    weighted = SVC(class_weight="balanced").fit(once, [0, 1], sample_weight=[2.0, 1.0])
    assert repeated.class_weight_ == pytest.approx([0.75, 1.5])
    assert weighted.class_weight_ == pytest.approx([1.0, 1.0])
