# SPDX-License-Identifier: BSD-3-Clause
"""LooResult: the error, its standard error, the table, the frame."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest

from leaveout.assess._bounds import LooBounds
from leaveout.assess._loo_curve import LooCurve
from leaveout.assess._suspects import Suspects
from leaveout.loo._result import LooPath, LooResult, wilson_interval
from leaveout.loo._summary import format_error
from leaveout.methods._bounds import Bound
from leaveout.tune._honest import HonestLoo

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


def test_interval_is_wilsons():
    for k, n in ((0, 100), (1, 4), (12, 569), (7, 7)):
        known = binomtest(k, n).proportion_ci(method="wilson")
        assert_allclose(wilson_interval(k / n, n), known, rtol=1e-13, atol=1e-16)
    assert RESULT.interval == wilson_interval(0.25, 4)
    weighted = replace(RESULT, weights=np.array([1.0, 3.0, 0.0, 0.0]))
    assert weighted.interval == wilson_interval(0.75, 1.6)
    grouped = replace(weighted, groups=np.array([0, 0, 1, 1]))
    assert grouped.n_effective == 1  # the other group has no weight
    folds = np.array([0, 1, 1, 0])
    honest = HonestLoo(RESULT.y, RESULT.predictions, folds, ({}, {}), 0.1, 1.0)
    assert honest.interval == wilson_interval(0.25, 2)
    none = format_error(0.0, wilson_interval(0.0, 100))
    assert none == "0.0 % (95 % interval 0.0 to 3.7 %)"


def test_groups_that_go_wrong_together_count_once():
    """Each sample four times, in one group: the standard error does not shrink."""
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
        "  error         25.0 % (95 % interval 4.6 to 69.9 %)",
        "  wrong         1",
        "  ambiguous     1",
        "  not certified 1 (rounding)",
        "  refits        1",
        "  seconds       0.0123",
    ]
    path = LooPath(np.array([0.1, 1]), (replace(RESULT, anti_learning=True), RESULT))
    assert str(path).splitlines() == [
        "  C   error  ambiguous",
        "0.1  25.0 %          1  anti-learning",
        "  1  25.0 %          1  best",
    ]
    assert RESULT.to_frame()["certified"].tolist() == [True, True, True, False]


def test_one_line_and_notebook():
    y = np.array(["<b>", "<b>"])
    curve = LooCurve(np.array([1.0, 2.0]), np.array([0.25]), np.zeros(1, int), 4)
    bounds = LooBounds((Bound("<i>", "bound", 0.5),), 2, True)
    ones = np.ones(2)
    listed = Suspects(
        *(np.arange(2), y, y, y, ones, ones, ones, ones < 0, ones > 0, ones),
        *(2, 0.0, 0),
    )
    honest = HonestLoo(y, y, np.arange(2), ({"k": "<i>"},), 0.0, 1.0)
    path = LooPath(np.array([3.0]), (RESULT,))
    error = "leave-one-out error 25.0 % (95 % interval 4.6 to 69.9 %)"
    verdicts = {
        RESULT: f"{error}, 1 of 4 wrong",
        path: "smallest of 1 errors 25.0 %, at C = 3",
        curve: "smallest error 25.0 %, for C from 1 to 2",
        honest: "error with tuning included 0.0 % (95 % interval 0.0 to 65.8 %)",
    }
    for found, verdict in verdicts.items():
        assert repr(found) == f"<{type(found).__name__}: {verdict}>"
        assert found._repr_html_().startswith(f"<div><p><strong>{verdict[0].upper()}")
        assert f"{verdict[1:]}</strong></p>" in found._repr_html_()
    for found in (honest, bounds, listed):
        assert "&lt;" in found._repr_html_()
        assert not re.search("<[bi]>", found._repr_html_())
    assert repr(bounds) == "<LooBounds: 1 bounds and estimates for 2 samples>"
