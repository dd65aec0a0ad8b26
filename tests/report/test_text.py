# SPDX-License-Identifier: BSD-3-Clause
from dataclasses import replace

import numpy as np
import pytest
from select_reports import DATASET, make_report

from leaveout.assess._loo_curve import LooCurve
from leaveout.report._text import (
    format_choice,
    format_dataset,
    format_grid,
    format_model,
    format_seconds,
    format_select,
)
from leaveout.tune._honest import HonestLoo


def test_dataset_with_groups_and_notes():
    assert format_dataset(DATASET) == (
        "toys: 8 samples, 2 features\nClasses (kind): a (5), b (3)"
    )
    grouped = replace(
        DATASET, groups=np.arange(8) // 2, group_name="pair", notes=("Mind the gap.",)
    )
    assert format_dataset(grouped).splitlines()[2:] == [
        "Left out together: 4 groups (pair), not single samples",
        "Note: Mind the gap.",
    ]


def test_grid_aligns_and_marks_the_best():
    assert format_grid(make_report()).splitlines() == [
        "Leave-one-out error in percent",
        "       C   gamma 0.0156     gamma 0.25",
        "    0.01         25.00!         12.50",
        "    1000         12.50*          0.00",
        "! C so small that the balance of the classes decides, not the features",
    ]


def test_grid_without_gamma():
    assert format_grid(make_report(with_gamma=False)).splitlines()[1:4] == [
        "       C     error",
        "    0.01    25.00!",
        "    1000    12.50*",
    ]


def test_wide_grids_are_cut_into_tables():
    report = make_report()
    gammas = [0.1 * k for k in range(1, 12)]
    params = [{"C": 1.0, "gamma": gamma} for gamma in gammas]
    wide = replace(
        report,
        grid={"C": [1.0], "gamma": gammas},
        cells={
            "params": params,
            "mean_test_score": np.ones(11),
            "anti_learning": np.zeros(11, dtype=bool),
        },
        best_index=10,
    )
    lines = format_grid(wide).splitlines()
    assert len(lines) == 5
    assert lines[-1].endswith("0.00*")
    assert max(map(len, lines)) < 110


def test_choice():
    text = format_choice(make_report())
    assert "Chosen: SVC(kernel='rbf', C=1000, gamma=0.015625)" in text
    assert "12.50 % +- 11.69 % (1 of 8 wrong, 2 ambiguous)" in text
    assert "Wrong by class: a (1 of 5), b (0 of 3)" in text
    assert "Always 'a' would be wrong on 37.50 %" in text
    assert "Chosen among 4 cells by this very error, hence optimistic" in text
    assert "gamma" not in format_choice(
        make_report(with_gamma=False, best=(1000.0, 0.015625))
    )


def test_choice_at_the_end_of_the_grid_says_so():
    text = format_choice(make_report())
    assert "C is the largest of the grid" in text
    assert "--grid C=0.01:1e+05:4" in text
    assert "gamma is the smallest of the grid" in text
    assert "--grid gamma=0.000156:0.25:4" in text
    report = make_report()
    inside = replace(
        report,
        grid={"C": [0.01, 1000.0, 1e4], "gamma": [0.015625]},
    )
    assert "of the grid" not in format_choice(inside)


def test_classes_that_are_numbers_can_be_told_from_counts():
    numbers = replace(DATASET, y=np.array([2, 2, 2, 2, 2, 1, 1, 1]))
    assert format_dataset(numbers).endswith("Classes (kind): 2 (5), 1 (3)")


def test_choice_with_honest_error_and_curve():
    y = DATASET.y
    honest = HonestLoo(
        y, np.where(np.arange(8) < 2, "b", y), np.arange(8), (), 0.1, 1.0
    )
    curve = LooCurve(np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.25]), np.zeros(2), 8)
    text = format_choice(make_report(honest=honest, curve=curve))
    assert "Honest error 25.00 % +- 15.31 %" in text
    assert "optimistic" not in text
    assert "from 1 to 4 the least error is 25.00 %, for C from 2 to 4" in text


def test_model_with_weights_and_words():
    found = format_model("rbf", {"C": 1, "gamma": "scale"}, "balanced")
    assert found == "SVC(kernel='rbf', C=1, gamma='scale', class_weight='balanced')"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.6, "60 s"), (121, "2 min"), (86400, "24 h")],
)
def test_seconds(seconds, text):
    assert format_seconds(seconds) == text


def test_whole_report_has_all_parts():
    text = format_select(make_report())
    assert "toys: 8 samples" in text
    assert "Nothing was done." in text
    assert "Chosen:" in text
