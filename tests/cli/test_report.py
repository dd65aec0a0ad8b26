# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout select --report``: the page agrees with what is printed."""

import json
import re


def test_page_agrees_with_json(run, table, tmp_path):
    path = tmp_path / "page.html"
    result = run("select", table, "--target", "colour", "--report", path, "--json")
    assert result.exit_code == 0, result.stderr
    best = json.loads(result.stdout)["best"]
    page = path.read_text(encoding="utf-8").replace("\u00a0%", " %")
    share = (
        f"{100 * best['error']:.1f} %&nbsp;±&nbsp;{100 * best['standard_error']:.1f} %"
    )
    assert share in page
    assert len(re.findall(r'<tr class="(?:right|wrong|ambiguous)">', page)) == 24
    assert "Ranking" in page


def test_several_classes_have_no_roc_curve(run, tmp_path):
    table = tmp_path / "three.csv"
    rows = [f"{k % 3 + 0.1 * (k % 5)},{k % 7},{'abc'[k % 3]}" for k in range(30)]
    table.write_text("\n".join(["u,v,kind", *rows]))
    path = tmp_path / "page.html"
    result = run("select", table, "--target", "kind", "--report", path)
    assert result.exit_code == 0, result.stderr
    assert f"Page written to {path}" in result.stdout
    assert "Ranking" not in path.read_text(encoding="utf-8")


def test_page_of_two_samples_has_no_curve(run, tmp_path):
    table, page = tmp_path / "two.csv", tmp_path / "page.html"
    table.write_text("a,y\n1,r\n2,b\n")
    cell = ("--grid", "C=1", "--grid", "gamma=0.1")
    result = run("select", table, "--target", "y", *cell, "--report", page)
    assert result.exit_code == 0, result.stderr
    assert "<h2>Margins</h2>" in page.read_text()
    assert "<h2>Ranking</h2>" not in page.read_text()


def test_folder_is_checked_before_the_work(run, table, tmp_path):
    missing = tmp_path / "nowhere" / "page.html"
    result = run("select", table, "--target", "colour", "--report", missing)
    assert result.exit_code == 2
    assert "no folder" in re.sub(r"\s+", " ", result.stderr)
