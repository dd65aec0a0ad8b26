# SPDX-License-Identifier: BSD-3-Clause
"""LooResult: the error, its standard error, the table, the frame."""

from dataclasses import replace

import numpy as np
import pytest

from leaveout.loo._result import LooResult

# The second sample is wrong, the third ambiguous, the last not certified.
RESULT = LooResult(
    decision_values=np.array([1.0, 2.0, 0.1, -3.0]),
    predictions=np.array(["b", "b", "b", "a"]),
    y=np.array(["b", "a", "b", "a"]),
    margins=np.array([1.0, -2.0, 0.1, 3.0]),
    lower=np.array([1.0, -2.0, -0.5, 3.0]),
    upper=np.array([1.0, -2.0, 0.7, 3.0]),
    ambiguous=np.array([False, False, True, False]),
    uncertified_by=np.array(["", "", "", "rounding"]),
    settled_by=np.array(["zero_alpha", "walk", "walk", "refit"]),
    method="walk",
    counts={"refits": 1.0, "seconds": 0.01234},
)


def test_error_and_standard_error():
    np.testing.assert_array_equal(RESULT.wrong, [False, True, False, False])
    assert RESULT.error == 0.25
    assert RESULT.standard_error == pytest.approx(np.sqrt(0.25 * 0.75 / 4))
    assert RESULT.n_ambiguous == 1
    weighted = replace(RESULT, weights=np.array([1.0, 3.0, 0.0, 0.0]))
    assert weighted.error == 0.75
    assert weighted.standard_error == pytest.approx(np.sqrt(0.75 * 0.25 / 1.6))


def test_standard_error_counts_groups():
    """Four copies of each sample in a group do not reduce the standard error."""
    tiled = {name: np.tile(getattr(RESULT, name), 4) for name in ("predictions", "y")}
    grouped = replace(RESULT, **tiled, groups=np.tile(np.arange(4), 4))
    assert grouped.error == RESULT.error
    weighted = replace(grouped, weights=np.full(16, 3.0))
    for other in (grouped, weighted, replace(RESULT, groups=np.arange(4))):
        assert other.standard_error == pytest.approx(RESULT.standard_error)


def test_table_and_frame():
    assert str(RESULT).splitlines() == [
        "Leave-one-out (walk)",
        "  samples       4",
        "  error         0.2500 ± 0.2165",
        "  wrong         1",
        "  ambiguous     1",
        "  not certified 1 (rounding)",
        "  refits        1",
        "  seconds       0.0123",
    ]
    assert RESULT.to_frame()["certified"].tolist() == [True, True, True, False]
