# SPDX-License-Identifier: BSD-3-Clause
"""The example, and tables whose rows are not independent."""

import numpy as np
import pandas as pd
import pytest

from leaveout.data import load_example
from leaveout.tables._dataset import warn_duplicate_rows


@pytest.fixture
def frame(rng):
    return pd.DataFrame(rng.normal(size=(48, 3)), columns=["a", "b", "c"])


@pytest.fixture
def y():
    return np.repeat(["ill", "well"], 24)


def test_plain_samples_raise_no_doubt(frame, y, rng):
    counts = rng.integers(0, 3, size=48).astype(float)
    sex = rng.choice(["f", "m"], size=48)
    whole = frame.assign(n=counts, sex=sex.astype(object))
    assert warn_duplicate_rows(whole, y) == []
    assert warn_duplicate_rows(frame.iloc[:2], y[[0, 30]]) == []


def test_copies_are_counted_with_the_first(frame, y):
    frame.iloc[[7, 9]] = frame.iloc[[3, 3]].to_numpy()
    (note,) = warn_duplicate_rows(frame, y)
    assert note.startswith("2 of 48 rows are copies of another")
    assert "(row 8 of row 4)" in note
    assert "group_column=" in note


def test_equal_features_of_another_class_are_no_copies(frame, y):
    frame.iloc[30] = frame.iloc[3].to_numpy()
    assert warn_duplicate_rows(frame, y) == []


def test_words_and_signs_of_zero_count(frame, y):
    frame["site"] = np.resize(np.array(["x", "y"], dtype=object), 48)
    frame.iloc[7] = frame.iloc[3]
    assert len(warn_duplicate_rows(frame, y)) == 1
    frame.loc[7, "site"] = "z"
    assert warn_duplicate_rows(frame, y) == []
    zeros = pd.DataFrame({"a": [0.0, -0.0]})
    assert len(warn_duplicate_rows(zeros, np.array(["u", "u"]))) == 1


def test_copies_that_leave_together_are_harmless(frame, y):
    frame.iloc[7] = frame.iloc[3].to_numpy()
    groups = np.arange(48).astype(str)
    assert len(warn_duplicate_rows(frame, y, groups)) == 1
    groups[7] = groups[3]
    assert warn_duplicate_rows(frame, y, groups) == []


@pytest.mark.parametrize("kind", [float, "words"])
def test_subjects_of_one_class_each(frame, y, kind):
    subject = np.arange(48) // 4
    if kind == "words":
        subject = np.array([f"patient {s}" for s in subject], dtype=object)
    (note,) = warn_duplicate_rows(frame.assign(subject=subject), y)
    assert note.startswith("Rows with the same entry always have the same class")
    assert 'group_column="subject"' in note
    groups = subject.astype(str)
    assert warn_duplicate_rows(frame, y, groups) == []


def test_a_column_that_gives_the_class_away(frame, y):
    therapy = np.where(y == "ill", 1.0, 0.0)
    (note,) = warn_duplicate_rows(frame.assign(therapy=therapy), y)
    assert "'therapy'" in note
    assert "drop=" in note


def test_many_words_that_repeat_across_classes(frame, y):
    plate = np.array([f"plate {i % 24}" for i in range(48)], dtype=object)
    (note,) = warn_duplicate_rows(frame.assign(plate=plate), y)
    assert note.startswith("Many entries, each in several rows: 'plate'")


def test_example_is_breast_cancer():
    dataset = load_example()
    assert dataset.X.shape == (569, len(dataset.feature_names))
    assert (dataset.y == "malignant").sum() == 212
    assert (dataset.y == "benign").sum() == 357
