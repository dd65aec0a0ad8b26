# SPDX-License-Identifier: BSD-3-Clause
"""Names of columns, classes and samples that are terminal codes or formulas."""

import csv
import re

import numpy as np
import pandas as pd
import pytest
from datasets import make_class_blobs

from leaveout.tables._files import format_csv, read_table

SCRIPT = "<script>alert(1)</script>"
NAMES = ["=1+1", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "a\r=1+1", "'=1", "-1.5"]


def test_names_do_not_reach_the_terminal_as_commands(run, tmp_path):
    path = tmp_path / "table.csv"
    evil = "\x1b[2J\x9b1A\u202e\u2028z"
    rows = [f"{k},{'uv'[k % 2]}{evil}" for k in range(12)]
    path.write_text("\n".join([f"a{evil},k{evil}", *rows]), encoding="utf-8")
    refused = run("loo", path, "--target", "k", code=1)
    told = run("loo", path, "--target", f"k{evil}", "--C", 1, "--gamma", 1)
    assert "\\x1b[2J" in refused.stderr
    assert "\\x1b[2J" in told.stdout
    for text in (refused.stderr, told.stdout, told.stderr):
        assert not set("\x1b\x9b\u202e\u2028") & set(text)
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "number"), [("audit", "margin"), ("predict", "probability =2+5")]
)
def test_tables_hold_no_formula(run, tmp_path, command, number):
    X, y = make_class_blobs(24, n_classes=2, separation=1.0, random_state=0)
    ids = [NAMES[i % 8] + "x" * (i // 8) for i in range(24)]
    table = pd.DataFrame({SCRIPT: ids, "=cmd|' /C calc'!A0": X[:, 0], "+a": X[:, 1]})
    table["@kind"] = np.where(y, "=2+5", SCRIPT)
    path = tmp_path / "=x.csv"
    path.write_text(format_csv(table), newline="", encoding="utf-8")
    output, model = tmp_path / "samples.csv", tmp_path / "model.skops"
    given = ["--target", "@kind", "--id", SCRIPT]
    if command == "predict":
        run("select", path, *given, "--grid", "C=1", "--save", model)
        run("predict", model, path, "--id", SCRIPT, "-o", output)
    else:
        run("audit", path, *given, "--C", 1, "--gamma", 1, "--top", 99, "-o", output)
    with output.open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    formulas = [cell for cell in cells if cell.startswith(tuple("=+-@\t\r "))]
    assert all(re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell) for cell in formulas)
    frame = read_table(output.read_bytes(), output, as_text=[SCRIPT]).frame
    assert sorted(frame[SCRIPT]) == sorted(ids)
    assert frame[number].dtype == "float64"
