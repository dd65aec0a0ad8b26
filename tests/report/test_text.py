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
    grouped = replace(
        DATASET, groups=np.arange(8) // 2, group_name="pair", notes=("Mind the gap.",)
    )
    assert format_dataset(grouped).splitlines() == [
        "toys: 8 samples, 2 features",
        "Classes (kind): a (5), b (3)",
        "Left out together: 4 groups (pair), not single samples",
        "Note: Mind the gap.",
    ]


def test_grid_aligns_and_marks_the_best():
    assert format_grid(make_report()).splitlines() == [
        "Leave-one-out error in percent",
        "       C   gamma 0.0156     gamma 0.25",
        "    0.01         25.00!         12.50",
        "    1000         12.50*          0.00",
        "! C too small: class proportions alone decide",
    ]
    assert format_grid(make_report(with_gamma=False)).splitlines()[1:4] == [
        "       C     error",
        "    0.01    25.00!",
        "    1000    12.50*",
    ]


def test_wide_grids_are_split_into_tables():
    gammas = [0.1 * k for k in range(1, 12)]
    wide = replace(
        make_report(),
        grid={"C": [1.0], "gamma": gammas},
        errors=np.zeros(11),
        cells={
            "params": [{"C": 1.0, "gamma": gamma} for gamma in gammas],
            "anti_learning": np.zeros(11, dtype=bool),
        },
        best_index=10,
    )
    lines = format_grid(wide).splitlines()
    assert len(lines) == 5
    assert lines[-1].endswith("0.00*")
    assert max(map(len, lines)) < 110


def test_choice():
    assert format_choice(make_report()).splitlines() == [
        "Chosen: SVC(kernel='rbf', C=1000, gamma=0.015625)",
        "Leave-one-out error 12.50 % +- 11.69 % (1 of 8 wrong, 2 ambiguous)",
        "Wrong by class: a (1 of 5), b (0 of 3)",
        "Always 'a' would be wrong on 37.50 %",
        "Optimistic: the smallest of 4 errors (see --honest)",
        "C is the largest of the grid, others may be better: --grid C=0.01:1e+05:4",
        "gamma is the smallest of the grid, others may be better: "
        "--grid gamma=0.000156:0.25:4",
    ]
    grid = {"C": [0.01, 1000.0, 1e4], "gamma": [0.015625]}
    assert "of the grid" not in format_choice(replace(make_report(), grid=grid))


def test_choice_with_honest_error_and_curve():
    y = DATASET.y
    honest = HonestLoo(
        y, np.where(np.arange(8) < 2, "b", y), np.arange(8), (), 0.1, 1.0
    )
    curve = LooCurve(np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.25]), np.zeros(2), 8)
    text = format_select(make_report(honest=honest, curve=curve))
    assert "toys: 8 samples" in text
    assert "Nothing was done." in text
    assert "Honest error 25.00 % +- 15.31 %" in text
    assert "ptimistic" not in text
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
