# SPDX-License-Identifier: BSD-3-Clause
"""A small report, made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from leaveout.assess._loo_curve import LooCurve
from leaveout.data import Dataset
from leaveout.loo._result import LooResult
from leaveout.report._select_report import SelectReport, describe_select
from leaveout.report._text import (
    format_choice,
    format_dataset,
    format_grid,
    format_seconds,
    format_select,
)
from leaveout.tune._honest import HonestLoo

Y = np.array(list("aaaaabbb"))
DATASET = Dataset("toys", np.ones((8, 2)), Y, ["u", "v"], "kind")
MARGINS = np.where(np.arange(8) < 1, -1.0, 1.0)
GRID = {"C": [0.01, 1000.0], "gamma": [0.015625, 0.25]}
PARAMS = [{"C": C, "gamma": gamma} for C in GRID["C"] for gamma in GRID["gamma"]]
ERRORS = np.array([0.25, 0.125, 0.125, 0.0])
REPORT = SelectReport(
    dataset=DATASET,
    preparation="Nothing was done.",
    kernel="rbf",
    class_weight=None,
    grid=GRID,
    errors=ERRORS,
    cells={
        "params": PARAMS,
        "std_test_score": np.sqrt(ERRORS * (1 - ERRORS) / 8),
        "n_ambiguous": np.full(4, 2),
        "anti_learning": np.array([True, False, False, False]),
    },
    best_index=2,
    result=LooResult(
        decision_values=MARGINS,
        predictions=np.where(MARGINS < 0, "b", Y),
        y=Y,
        margins=MARGINS,
        lower=MARGINS,
        upper=MARGINS,
        ambiguous=np.arange(8) > 5,
        settled_by=np.full(8, "walk"),
        uncertified_by=np.full(8, ""),
        method="walk",
    ),
)


def with_cells(report, params, grid, best_index):
    """The same report on other cells, all without an error."""
    n_cells = len(params)
    cells = {"params": params, "anti_learning": np.zeros(n_cells, dtype=bool)}
    errors = np.zeros(n_cells)
    how = {"grid": grid, "errors": errors, "cells": cells, "best_index": best_index}
    return replace(report, **how)


def test_dataset_with_groups_and_notes():
    grouped = replace(
        DATASET,
        groups=np.arange(8) // 2,
        group_name="pair",
        notes=("Mind the gap.", "long " * 30),
    )
    assert format_dataset(grouped).splitlines() == [
        "toys: 8 samples, 2 features",
        "Classes (kind): a (5), b (3)",
        "Left out together: 4 groups (pair), not single samples",
        "Note: Mind the gap.",
        "Note:" + 15 * " long",
        "  " + " ".join(15 * ["long"]),
    ]


def test_grid_aligns_and_marks_the_best():
    assert format_grid(REPORT).splitlines() == [
        "Leave-one-out error in percent",
        "      gamma  0.0156    0.25",
        "C      0.01   25.0!   12.5",
        "       1000   12.5*    0.0",
        "! C too small: class proportions alone decide",
    ]
    linear = with_cells(REPORT, [{"C": 1.0}], {"C": [1.0]}, 0)
    lines = format_grid(linear).splitlines()
    assert lines[1:] == ["              error", "C         1    0.0*"]
    gammas = [0.1 * k for k in range(1, 12)]
    params = [{"C": 1.0, "gamma": gamma} for gamma in gammas]
    wide = with_cells(REPORT, params, {"C": [1.0], "gamma": gammas}, 10)
    lines = format_grid(wide).splitlines()  # in two tables
    assert len(lines) == 5
    assert lines[-1].endswith("0.0*")
    assert max(map(len, lines)) <= 80


def test_choice():
    assert format_choice(REPORT).splitlines() == [
        "Chosen: SVC(kernel='rbf', C=1000, gamma=0.015625)",
        "Leave-one-out error 12.5 % (95 % interval 2.2 to 47.1 %)",
        "Optimistic: the smallest of 4 errors; --honest computes the error to report",
        "Wrong: 1 of 8 (a 1 of 5, b 0 of 3)",
        "Ambiguous: 2",
        "Always 'a' would be wrong on 37.5 %",
        "C is the largest of the grid: also try --grid C=0.01:1e+05:4",
        "gamma is the smallest of the grid: also try --grid gamma=0.000156:0.25:4",
    ]
    grid = {"C": [0.01, 1000.0, 1e4], "gamma": [0.015625]}
    assert "of the grid" not in format_choice(replace(REPORT, grid=grid))
    linear = with_cells(REPORT, [{"C": 1.0}], {"C": [1.0]}, 0)
    assert "Optimistic" not in format_choice(linear)


def test_honest_error_and_curve():
    predictions = np.where(np.arange(8) < 2, "b", Y)
    honest = HonestLoo(Y, predictions, np.arange(8), (), 0.1, 1.0)
    curve = LooCurve(np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.25]), np.zeros(2), 8)
    report = replace(REPORT, honest=honest, curve=curve)
    text, found = format_select(report), describe_select(report)
    assert "toys: 8 samples" in text
    assert "Nothing was done." in text
    nested = "Nested leave-one-out error 25.0 % (95 % interval 7.1 to 59.1 %): report"
    assert text.index(nested) < text.index("Leave-one-out error 12.5 %")
    assert "Optimistic: the smallest of 4 errors\n" in text
    assert "from 1 to 4 the smallest error is 25.0 %, for C from 2 to 4" in text
    assert found["honest"]["error"] == 0.25
    assert found["curve"]["best_interval"] == [2, 4]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.6, "60 s"), (121, "2 min"), (86400, "24 h")],
)
def test_seconds(seconds, text):
    assert format_seconds(seconds) == text
