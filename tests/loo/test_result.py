# SPDX-License-Identifier: BSD-3-Clause
"""LooResult: the error, its standard error, the table, the frame."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from leaveout.loo._result import LooResult


def make(weights=None):
    """Four samples, the second wrong, the third ambiguous, the last not certified."""
    return LooResult(
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
        weights=weights,
    )


def test_error_counts_wrong_predictions():
    res = make()
    np.testing.assert_array_equal(res.wrong, [False, True, False, False])
    assert res.error == 0.25
    assert res.standard_error == pytest.approx(np.sqrt(0.25 * 0.75 / 4))
    assert res.n_ambiguous == 1


def test_error_with_weights():
    res = make(np.array([1.0, 3.0, 0.0, 0.0]))
    assert res.error == 0.75
    assert res.standard_error == pytest.approx(np.sqrt(0.75 * 0.25 / 1.6))
    assert make(np.full(4, 7.0)).standard_error == pytest.approx(make().standard_error)


def test_groups_that_go_wrong_together_count_once():
    """Each sample four times, in one group: the standard error does not shrink."""
    single = make()
    names = ("predictions", "y", "decision_values", "margins", "lower", "upper")
    names += ("ambiguous", "uncertified_by", "settled_by")
    tiled = {name: np.tile(getattr(single, name), 4) for name in names}
    groups = np.tile(np.arange(4), 4)
    grouped = replace(single, **tiled, groups=groups)
    assert grouped.error == single.error
    assert grouped.standard_error == pytest.approx(single.standard_error)
    weighted = replace(grouped, weights=np.full(16, 3.0))
    assert weighted.standard_error == pytest.approx(single.standard_error)
    alone = replace(single, groups=np.arange(4))
    assert alone.standard_error == pytest.approx(single.standard_error)


def test_str_is_a_small_table():
    assert str(make()).splitlines() == [
        "Leave-one-out (walk)",
        "  samples       4",
        "  error         0.2500 ± 0.2165",
        "  wrong         1",
        "  ambiguous     1",
        "  not certified 1 (rounding)",
        "  refits        1",
        "  seconds       0.0123",
    ]


def test_frame_has_one_row_a_sample():
    frame = make().to_frame()
    assert list(frame.columns) == [
        "y", "prediction", "margin", "lower", "upper",
        "ambiguous", "certified", "settled_by",
    ]  # fmt: skip
    assert len(frame) == 4
    assert frame["prediction"].tolist() == ["b", "b", "b", "a"]


def test_result_is_frozen():
    with pytest.raises(FrozenInstanceError):
        make().method = "refit"
