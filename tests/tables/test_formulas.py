# SPDX-License-Identifier: BSD-3-Clause
import csv
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leaveout.tables._files import (
    escape_formula,
    format_csv,
    read_table,
    unescape_formula,
)

FORMULAS = [
    "=1+1", '=HYPERLINK("http://example.org";"click")', "+cmd|' /C calc'!A0", "-2+3",
    "@SUM(A1:A9)", "\t=1", "\r=1", "\n=1", " =1", "＝1+1", "-", "+", "=", "--5",
    "+1-1", "-x",
]  # fmt: skip
NUMBERS = ["-1.5", "+3", "-1e-5", "+.5", "-0", "-12."]
PLAIN = ["", "a=b", "x-1", "'tis", "5", "name@example.org", "1-2"]
TEXTS = st.text(st.sampled_from("'=+-@\t\r\n\"ab1.e,;|<>&＝ é"), max_size=6)


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_get_an_apostrophe(text):
    assert escape_formula(text) == f"'{text}"


@pytest.mark.parametrize("text", NUMBERS + PLAIN)
def test_numbers_and_other_text_stay(text):
    assert escape_formula(text) == text


@given(text=TEXTS)
@example("'=1")
@example("''-1.5")
def test_what_was_guarded_comes_back(text):
    assert unescape_formula(escape_formula(text)) == text


def test_numbers_in_columns_stay_numbers():
    frame = pd.DataFrame({"a": [-1.5, -np.inf, 2.0], "b": [-3, 4, 5], "c": [True] * 3})
    text = format_csv(frame)
    assert "'" not in text
    pd.testing.assert_frame_equal(pd.read_csv(StringIO(text)), frame)


def test_names_may_be_formulas_and_alike():
    frame = pd.DataFrame([["a", "b", -1.0]], columns=["=x", "=x", "-y"])
    assert format_csv(frame).splitlines()[0] == "'=x,'=x,'-y"


@given(
    ids=st.lists(TEXTS.filter(lambda text: text.strip()), min_size=2, max_size=5),
    name=TEXTS.filter(lambda text: text.strip() not in ("", "value")),
)
def test_a_table_read_is_written_and_read_the_same(tmp_path_factory, ids, name):
    path = tmp_path_factory.getbasetemp() / "formulas.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = [[name, "value"], *([escape_formula(text), -1.5] for text in ids)]
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    first = read_table(path, as_text=[name.strip()])
    path.write_text(format_csv(first.frame), encoding="utf-8", newline="")
    again = read_table(path, as_text=[name.strip()])
    pd.testing.assert_frame_equal(again.frame, first.frame)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            assert all(
                escape_formula(cell) == cell or cell.startswith("'") for cell in row
            )
