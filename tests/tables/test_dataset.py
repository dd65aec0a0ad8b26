# SPDX-License-Identifier: BSD-3-Clause
"""The example, and tables whose rows are not independent."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from leaveout.data import load_example
from leaveout.tables._dataset import warn_duplicate_rows

NUMBERS = np.random.default_rng(0).normal(size=(48, 3))
Y = np.repeat(["ill", "well"], 24)
ROWS = np.arange(48)


def words(*entries):
    return np.resize(np.array(entries, dtype=object), 48)


def warn(copies=(), groups=None, **columns):
    """Return the notes on a table; ``copies`` are pairs of equal rows."""
    frame = pd.DataFrame(NUMBERS, columns=["a", "b", "c"])
    for row, other in copies:
        frame.iloc[row] = frame.iloc[other].to_numpy()
    return warn_duplicate_rows(frame.assign(**columns), Y, groups)


def test_plain_samples_raise_no_doubt():
    assert warn(n=ROWS % 3 * 1.0, sex=words("f", "m")) == []
    assert warn([(30, 3)]) == []  # of another class
    assert warn([(7, 3)], site=words(*"uvwxyz")) == []  # in another word
    assert warn([(7, 3)], groups=words("p")) == []  # left out together


@pytest.mark.parametrize(
    ("how", "start", "parts"),
    [
        ({"copies": [(7, 3), (9, 3)]}, "2 of 48 rows are copies of another",
         ["(row 8 of the file equals row 4)", "group_column="]),
        ({"copies": [(7, 3)], "groups": ROWS}, "1 of 48 rows is a copy",
         ["put copies into the same group"]),
        ({"code": (Y == "ill") * 1.0, "groups": ROWS}, "Rows with the same entry",
         ["If it identifies the groups, or was recorded after"]),
        ({"who": ROWS // 4}, "Rows with the same entry always have the same class",
         ['group_column="who"']),
        ({"who": np.array([f"p{k // 4}" for k in ROWS], dtype=object)},
         "Rows with the same entry always", ['group_column="who"']),
        ({"therapy": (Y == "ill") * 1.0}, "Rows with the same", ["'therapy'", "drop="]),
        ({"plate": words(*(f"plate {k}" for k in range(24)))},
         "Many entries, each in several rows: 'plate'", ['group_column="plate"']),
    ],
)  # fmt: skip
def test_doubts(how, start, parts):
    (note,) = warn(**how)
    assert note.startswith(start)
    assert all(part in note for part in parts)


def test_signs_of_zero_do_not_matter():
    zeros = pd.DataFrame({"a": [0.0, -0.0]})
    assert len(warn_duplicate_rows(zeros, np.array(["u", "u"]))) == 1


def test_example_is_breast_cancer():
    dataset = load_example()
    assert dataset.X.shape == (569, len(dataset.feature_names))
    assert Counter(dataset.y) == {"benign": 357, "malignant": 212}
