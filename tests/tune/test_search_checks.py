# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own checks of an estimator, over several settings of LooSearchCV."""

import pytest
import sklearn.svm
from sklearn.utils.estimator_checks import parametrize_with_checks

from leaveout import SVC, LooSearchCV

GRID = {"C": [0.5, 5.0]}
SETTINGS = [
    LooSearchCV(SVC(gamma=0.1), GRID),
    LooSearchCV(sklearn.svm.SVC(gamma=0.1), {**GRID, "gamma": [0.01, 0.1]}),
    LooSearchCV(SVC(), {"C": [1.0], "kernel": ["linear"]}, error_score="raise"),
    LooSearchCV(SVC(gamma=0.1), GRID, scoring="balanced_accuracy"),
    LooSearchCV(
        SVC(gamma=0.1), GRID, scoring=["accuracy", "f1_macro"], refit="f1_macro"
    ),
    LooSearchCV(SVC(kernel="precomputed"), GRID),
]


# Some checks pass a matrix of random numbers as Gram matrix, classes of one member, or
# labels that are noise.
@pytest.mark.filterwarnings("ignore::leaveout.AntiLearningWarning")
@pytest.mark.filterwarnings("ignore:The kernel 'precomputed' is not positive")
@pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")
@parametrize_with_checks(SETTINGS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
