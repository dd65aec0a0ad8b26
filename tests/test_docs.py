# SPDX-License-Identifier: BSD-3-Clause
"""The Python blocks of README and pages run, in order, in one namespace per page.

A block with prompts is a doctest: its output must be what the page says. `make test`
runs README and docs/start, `make test-all` the other pages too.
"""

import csv
import doctest
import json
import re
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest

import leaveout

ROOT = Path(__file__).parents[1]
GENERATED = {"_build", "auto_examples", "generated"}
PAGES = [
    ROOT / "README.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if not GENERATED & set(page.relative_to(ROOT / "docs").parts)
    ),
]
IN_EVERY_RUN = ("README.md", "docs/start/")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def as_parameter(page):
    """Return a page as a test parameter, nightly unless it is a first page."""
    name = page.relative_to(ROOT).as_posix()
    marks = () if name.startswith(IN_EVERY_RUN) else pytest.mark.nightly
    return pytest.param(page, id=name, marks=marks)


def blocks_of(page):
    """Return (code, number of lines before it) of each Python block."""
    text = page.read_text()
    return [
        (block[1], text.count("\n", 0, block.start(1)))
        for block in BLOCK.finditer(text)
    ]


def run_block(code, lines_before, names, page):
    """Run a block; a failure names the page and the line."""
    if ">>>" not in code:
        # Empty lines replace the text before it, so that tracebacks show its line.
        exec(compile("\n" * lines_before + code, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(
        code, names, page.name, str(page), lines_before
    )
    report = []
    doctest.DocTestRunner().run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not report, "".join(report)


@pytest.mark.parametrize("page", [as_parameter(page) for page in PAGES])
def test_python_blocks_run(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        # Pages may show code that warns.
        warnings.simplefilter("ignore", leaveout.LeaveoutWarning)
        for code, lines_before in blocks_of(page):
            run_block(code, lines_before, names, page)


@pytest.mark.parametrize(
    "name", ["README.md", "docs/start/tutorial.md", "docs/pitfalls.md"]
)
def test_blocks_are_found(name):
    assert blocks_of(ROOT / name)


def test_a_wrong_output_is_reported(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("text\n\n```python\n>>> 1 + 1\n3\n```\n")
    [(code, lines_before)] = blocks_of(page)
    with pytest.raises(AssertionError, match=r"page\.md.*line 4"):
        run_block(code, lines_before, {}, page)


def test_api_page_is_complete():
    text = (ROOT / "docs" / "reference" / "api.md").read_text()
    missing = [
        name for name in leaveout.__all__ if not re.search(rf"^   {name}$", text, re.M)
    ]
    assert not missing


def test_links_in_the_readme_work_on_a_package_index_too():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pages, source = project["urls"]["Documentation"], project["urls"]["Source"]
    images = source.replace("github.com", "raw.githubusercontent.com")
    roots = {
        f"{pages}/": "docs/",
        f"{source}/blob/main/": "",
        f"{images}/main/": "",
    }
    links = re.findall(r"\]\((.*?)\)", (ROOT / "README.md").read_text())
    assert len(links) > 10
    for link in links:
        [(url, folder)] = [item for item in roots.items() if link.startswith(item[0])]
        path = ROOT / folder / link.removeprefix(url)
        if path.suffix == ".html":
            path = path.with_suffix(".md")
        assert path.is_file(), link


def stored(name):
    """Return the rows of a stored benchmark, by workload."""
    path = ROOT / "benchmarks" / "results" / name / "results.csv"
    with path.open(newline="") as file:
        return {row["workload"]: row for row in csv.DictReader(file)}


def test_numbers_in_the_readme_equal_stored_results():
    text = " ".join((ROOT / "README.md").read_text().split())
    loop = next(
        row
        for name, row in stored("speed_refit_loop").items()
        if name.startswith("loop n=400, RBF")
    )
    assert f"**{float(loop['ratio']):.0f} times as fast as refitting.**" in text
    ours, peer = 1000 * float(loop["ours"]), float(loop["peer"])
    assert f"all left-out predictions take {ours:.1f} ms." in text
    assert f"cv=LeaveOneOut())` takes {peer:.2f} s." in text

    ratios = sorted(float(row["ratio"]) for row in stored("speed_search").values())
    ends = f"{ratios[0]:.0f} to {ratios[-1]:.0f}"
    assert f"**{ends} times as fast as a grid search.**" in text
    assert len(ratios) == 5
    assert "12 candidates, five data sets of 150 to 200 samples" in text
    compared = " ".join((ROOT / "docs" / "compare.md").read_text().split())
    assert f"it was {ends} times as fast" in compared

    ratios = sorted(float(row["ratio"]) for row in stored("speed_fold").values())
    ends, median = f"{ratios[0]:.0f} to {ratios[-1]:.0f}", np.median(ratios)
    assert f"**{ends} times as fast with preprocessing in each fold.**" in text
    assert f"The median is {median:.0f}." in text
    page = " ".join((ROOT / "docs" / "pipelines.md").read_text().split())
    assert f"was {ends} times as fast as scikit-learn's loop" in page
    assert f"{median:.0f} times in the median" in page

    path = ROOT / "benchmarks" / "results" / "stress" / "results.json"
    answers = json.loads(path.read_text())["answers"]
    total, exact = answers.pop("total"), answers.pop("exact")
    flagged = {"ambiguous", "uncertified", "cautious", "refused"}
    wrong = total - exact - sum(answers[name] for name in flagged)
    assert f"**{wrong} wrong of {total:,}.**" in text
    assert f"{exact:,} are exact" in text


def stored_file(name):
    """Return a stored result that is not a benchmark: JSON, or the rows of a CSV."""
    path = ROOT / "benchmarks" / "results" / name
    if path.suffix == ".json":
        return json.loads(path.read_text())
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def total(name, *columns, **only):
    """Sum integer columns over the rows of a stored result."""
    rows = stored_file(f"{name}/results.csv")
    rows = [row for row in rows if all(row[key] in only[key] for key in only)]
    return f"{sum(int(row[column]) for row in rows for column in columns):,}"


def test_counts_of_the_guarantees_equal_stored_results():
    page = (ROOT / "docs" / "promises.md").read_text()
    labels = ("compared", "compared", "path_compared", "magic_compared")
    stress, fuzz = stored_file("stress/results.json"), stored_file("fuzz/results.json")
    answers, fuzz = stress["answers"], fuzz["totals"]
    flagged = answers["total"] - answers["exact"]
    safety = stored_file("kernel_safety/results.json")
    largest = max(float(r["deviation"]) for r in stored_file("exactness/results.csv"))
    for text in (
        f"{total('exactness', 'n')} left-out samples",
        f"{total('exactness', 'checked')} of them",
        f"largest deviation {largest:.1e}",
        f"{total('exactness_multiclass', 'n')} left-out samples",
        f"{total('exactness_fold', 'checked')} left-out samples checked",
        f"{total('exactness_fold', 'wrong')} labels, "
        f"{total('exactness_fold', 'beyond')} values",
        f"{total('franc2008_labels', 'n')} left-out samples",
        f"{total('franc2008_labels', 'checked')} of them",
        f"{total('wang2022_labels', *labels)} left-out labels",
        f"{total('bounds', 'fits', kind=('bound', 'weak bound'))} bounds",
        f"{answers['total']:,} results: {answers['exact']:,} exact, {flagged:,} ",
        f"{stress['mirrored']['total']:,} results",
        f"{stress['questions']['answered']} returned",
        f"{fuzz['cases']:,} cases, {fuzz['samples_compared']:,} samples",
        f"{safety['bounds']['passed']:,} tests",
        f"{int(safety['sanitizer']['outcome'].split()[0]):,} tests",
    ):
        assert text in page, text


def test_cost_in_the_readme_equals_stored_result():
    text = " ".join((ROOT / "README.md").read_text().split())
    assert "for about the cost of one or two fits" in text
    for name in ("speed_one_c", "speed_hard_grid"):
        ratios = [float(row["ratio"]) for row in stored(name).values()]
        assert {round(ratio) for ratio in ratios} <= {1, 2}
