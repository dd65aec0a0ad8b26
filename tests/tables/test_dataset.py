# SPDX-License-Identifier: BSD-3-Clause
from leaveout.data import load_example


def test_example_is_breast_cancer():
    dataset = load_example()
    assert dataset.X.shape == (569, len(dataset.feature_names))
    assert (dataset.y == "malignant").sum() == 212
    assert (dataset.y == "benign").sum() == 357
