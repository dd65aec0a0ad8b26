# SPDX-License-Identifier: BSD-3-Clause
"""Names of columns, classes and samples that are markup, scripts or formulas."""

import csv
import re
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from datasets import make_class_blobs

from leaveout.tables._files import format_csv, read_table

SCRIPT = "<script>alert(1)</script>"
NAMES = [
    SCRIPT, '"><img src=x onerror=alert(2)>', "javascript:alert(3)",
    "</title><svg/onload=x>", "$\\frac{1}{$", "{{ 7 * 7 }}", "a&b\x01\u202e", "]]><x>",
]  # fmt: skip
FORMULAS = ["=1+1", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "a\r=1+1", "'=1", "-1.5"]
URLS = {"src", "href", "action", "formaction", "data", "xlink:href", "srcdoc"}


class Tags(HTMLParser):
    """All start tags of a page, with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def check_inert(text):
    """A page has one script, its own, no handlers, and pictures inside itself only."""
    tags = Tags(text).found
    assert [tag for tag, _ in tags].count("script") == 1
    for tag, attributes in tags:
        assert tag not in ("iframe", "object", "embed", "link", "base", "form", "svg")
        assert not [name for name in attributes if name.startswith("on")]
        for name in URLS & attributes.keys():
            assert attributes[name].startswith("data:image/svg+xml;base64,")


def check_picture(source):
    """A figure has no script, no handler and no address but its name spaces."""
    picture = b64decode(source.partition(",")[2]).decode()
    assert "<script" not in picture
    assert not re.search(r"<[^>]+\son\w+=", picture)
    assert not re.search(r"(?:href|src)=\"(?!#|data:image/png)", picture)


@pytest.fixture
def hostile(tmp_path):
    """A table in which every name is an attack: (path, classes, ids)."""
    X, y = make_class_blobs(24, n_classes=2, separation=1.0, random_state=0)
    ids = [(NAMES + FORMULAS)[i % 16] + ("" if i < 16 else "x") for i in range(24)]
    frame = pd.DataFrame(
        {
            SCRIPT: ids,
            "=cmd|' /C calc'!A0": X[:, 0],
            "$\\alpha{$": X[:, 1],
            "@kind": np.where(y, "=2+5", NAMES[1]),
        }
    )
    path = tmp_path / "<b>$x^{$.csv"
    path.write_text(format_csv(frame), newline="", encoding="utf-8")
    return path, ids


def test_page_carries_no_script(run, hostile, tmp_path):
    path, _ = hostile
    page = tmp_path / "page.html"
    options = ["--id", SCRIPT, "--grid", "C=1,10", "--grid", "gamma=0.1,1"]
    result = run(
        "select", path, "--target", "@kind", *options, "--curve", "--report", page
    )
    assert result.exit_code == 0, result.stderr
    text = page.read_text(encoding="utf-8")
    check_inert(text)
    pictures = [a["src"] for tag, a in Tags(text).found if tag == "img"]
    assert len(pictures) >= 3
    for source in pictures:
        check_picture(source)


def test_names_do_not_reach_the_terminal_as_commands(run, tmp_path):
    path = tmp_path / "table.csv"
    evil = "\x1b[2J\x9b1A\u202e\u2028z"
    rows = [f"{k},{'uv'[k % 2]}{evil}" for k in range(12)]
    path.write_text("\n".join([f"a{evil},k{evil}", *rows]), encoding="utf-8")
    refused = run("loo", path, "--target", "k")
    told = run("loo", path, "--target", f"k{evil}", "--C", 1, "--gamma", 1)
    assert (refused.exit_code, told.exit_code) == (1, 0), told.stderr
    assert "\\x1b[2J" in refused.stderr
    assert "\\x1b[2J" in told.stdout
    for text in (refused.stderr, told.stdout, told.stderr):
        assert not set("\x1b\x9b\u202e\u2028") & set(text)
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["audit", "predict"])
def test_tables_hold_no_formula(run, hostile, tmp_path, command):
    path, ids = hostile
    output, model = tmp_path / "samples.csv", tmp_path / "model.skops"
    given = ["--target", "@kind", "--id", SCRIPT]
    if command == "predict":
        grid = ["--grid", "C=1", "--grid", "gamma=1"]
        assert run("select", path, *given, *grid, "--save", model).exit_code == 0
        result = run("predict", model, path, "--id", SCRIPT, "-o", output)
    else:
        how = ["--C", 1, "--gamma", 1, "--top", 99]
        result = run(command, path, *given, *how, "-o", output)
    assert result.exit_code == 0, result.stderr
    with output.open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    for cell in cells:
        dangerous = cell[:1] in tuple("=+-@\t\r ") and not re.fullmatch(
            r"[+-]?[\d.]+(e[+-]?\d+)?", cell
        )
        assert not dangerous, cell
    frame = read_table(output.read_bytes(), output, as_text=[SCRIPT]).frame
    assert sorted(frame[SCRIPT]) == sorted(ids)
    number = {"audit": "margin", "predict": "probability =2+5"}
    assert frame[number[command]].dtype == "float64"
