# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own checks of an estimator, over settings of LOOMClassifier."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from leaveout import LOOMClassifier

WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
SETTINGS = [
    LOOMClassifier(),
    LOOMClassifier(kernel="precomputed", fit_intercept=True),
]


def expected_failures(estimator):
    """What cannot pass, with the reason; the tests below have the proof in numbers."""
    if estimator.kernel == "precomputed":
        return {}
    copies = (
        "A copy of a sample supports its twin, which has to be classified by the "
        "others; a weight supports nobody. The two machines differ by definition."
    )
    weight = (
        "The check wants nearly all test samples in the class of weight 1000. That "
        "class has no slack left in training: a larger weight changes nothing."
    )
    return {
        **dict.fromkeys(WEIGHT_CHECKS, copies),
        "check_class_weight_classifiers": weight,
    }


# On the Gram matrix of one check all kernel values are next to nothing.
@pytest.mark.filterwarnings("ignore:.*were stopped at 1e6:leaveout.CertificateWarning")
@parametrize_with_checks(SETTINGS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_copy_supports_its_twin_a_weight_does_not():
    X, y = np.array([[0.0], [1.0], [3.0]]), [0, 0, 1]
    weighted = LOOMClassifier(gamma=1.0).fit(X, y, sample_weight=[1, 1, 2])
    copied = LOOMClassifier(gamma=1.0).fit(X[[0, 1, 2, 2]], [0, 0, 1, 1])
    assert weighted.slack_[0, 2] >= 1  # nobody else of its class
    assert copied.objective_[0] == pytest.approx(0, abs=1e-12)


def test_the_heavy_class_of_the_check_has_no_slack():
    X, y = make_blobs(centers=3, random_state=0, cluster_std=20)
    X, X_test, y, _ = train_test_split(X, y, test_size=0.5, random_state=0)
    predictions = []
    for heavy in (1e3, 1e4):
        weight = {0: heavy, 1: 1e-3, 2: 1e-3}
        clf = LOOMClassifier(class_weight=weight).fit(X, y)
        assert clf.slack_[:, y == 0].max() < 1e-9
        predictions.append(clf.predict(X_test))
    assert (predictions[0] == predictions[1]).all()
    assert np.mean(predictions[0] == 0) < 0.87
