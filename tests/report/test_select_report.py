# SPDX-License-Identifier: BSD-3-Clause
"""Text and page: the numbers are those of the results, and no data are markup."""

import re
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import escape
from sklearn.metrics import confusion_matrix

import leaveout as lo
from leaveout.data import Dataset, make_twonorm
from leaveout.report._page import errors_by_others, pair_roc, render_page, write_page
from leaveout.report._select_report import SelectReport, describe_select
from leaveout.report._text import format_seconds, format_select

EVIL = "</script><script>alert('x')</script><img src=http://a.b onerror=alert(1)>"
FORBIDDEN = {"link", "iframe", "object", "embed", "base", "form", "svg"}
URLS = {"href", "action", "formaction", "data", "xlink:href", "srcdoc"}  # besides src
GRID = {"C": [0.001, 1.0, 100.0], "gamma": [0.05, 0.5]}


@pytest.fixture(scope="module")
def report():
    X, codes = make_twonorm(60, 2, random_state=3)
    y, ids = np.array(["no", "yes"])[codes], np.array([f"toy-{k}" for k in range(60)])
    search = lo.LooSearchCV(lo.SVC(), GRID).fit(X, y)
    best = lo.SVC(**search.best_params_)
    return SelectReport(
        dataset=Dataset("toys", X, y, ["u", "v"], "kind", ids=ids, id_name="toy"),
        preparation="Features as they are.",
        kernel="rbf",
        class_weight=None,
        grid=GRID,
        cells=search.cv_results_,
        errors=1.0 - search.cv_results_["mean_test_score"],
        best_index=int(search.best_index_),
        result=search.best_loo_result_,
        curve=lo.loo_curve(best, X, y, C_min=0.1, C_max=10),
        pairs=lo.leave_pair_out_auc(best, X, y),
        command="leaveout select toys.csv --target kind",
        versions={"leaveout": lo.__version__},
        seconds={"reading": 0.25},
    )


class Page(HTMLParser):
    """What a browser would find: tags with attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def find(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


def render(report):
    """A page with common blanks before the percent signs."""
    return render_page(report).replace("\u00a0", " ")


@pytest.fixture(scope="module")
def html(report):
    return render(report)


def test_text(report):
    notes = ("Mind it.", "long " * 30)
    pairs = {"groups": np.arange(60) // 2, "group_name": "pair", "notes": notes}
    report = replace(report, dataset=replace(report.dataset, **pairs), curve=None)
    assert format_select(report).splitlines() == [
        "toys: 60 samples, 2 features",
        "Classes (kind): yes (30), no (30)",
        "Left out together: 30 groups (pair), not single samples",
        "Note: Mind it.",
        "Note:" + 15 * " long",
        "  " + " ".join(15 * ["long"]),
        "Features as they are.",
        "",
        "Leave-one-out error in percent",
        "      gamma    0.05     0.5",
        "C     0.001  100.0!  100.0!",
        "          1    1.7*    1.7",
        "        100    1.7     5.0",
        "! C too small: class proportions alone decide",
        "",
        "Chosen: SVC(kernel='rbf', C=1, gamma=0.05)",
        "Leave-one-out error 1.7 % (95 % interval 0.3 to 8.9 %)",
        "Optimistic: the smallest of 6 errors; --honest computes the error to report",
        "Wrong: 1 of 60 (no: 1 of 30)",
        "Always predicting 'yes' would be wrong on 50.0 %",
        "gamma is the smallest of the grid: also try --grid gamma=0.0005:0.5:4",
    ]
    longer = "C is the largest of the grid: also try --grid C=0.001:1e+04:5"
    assert longer in format_select(replace(report, best_index=4))
    found = [format_seconds(seconds) for seconds in (0.04, 59.6, 121, 86400)]
    assert found == ["0.0 s", "60 s", "2 min", "24 h"]


def test_uncertain_predictions_are_counted(report, html):
    first, two = np.arange(60) < 1, np.arange(60) < 2
    doubt = np.where(two, "rounding", "")
    result = replace(report.result, ambiguous=first, uncertified_by=doubt)
    doubtful = replace(report, result=result)
    for text in (format_select(doubtful), render(doubtful)):
        assert "Ambiguous: 1 prediction that another optimal intercept would" in text
        assert "Not certified: 2 predictions that could not be verified" in text
    assert "mbiguous:" not in html
    assert "certified:" not in html


def test_answer_samples_and_confusion(report, html):
    text = " ".join(re.sub(r"<[^>]+>", "", html).split())
    result, best = report.result, report.best_params
    model = f"SVC(kernel='rbf', C={best['C']:g}, gamma={best['gamma']:g})"
    assert model.replace("'", "&#39;") in text
    low, high = (100 * end for end in result.interval)
    error = f"{100 * result.error:.1f} % (optimistic) of left-out samples"
    interval = f"95&nbsp;% interval {low:.1f} to {high:.1f} %"
    assert f"is wrong on {error} ({interval}; {result.wrong.sum()} of 60)" in text
    assert "would be wrong on 50.0 %" in text
    assert "Optimistic: the smallest of 6 errors" in text
    table = html[html.index('<table id="samples">') :]
    rows = re.findall(r'<tr class="(\w+)"><td class="number">(\d+)</td>', table)
    order = np.argsort(result.margins, kind="stable")
    states = np.where(result.wrong, "wrong", "right").astype(object)
    states[result.ambiguous] = "ambiguous"
    assert rows == [(states[k], str(k + 1)) for k in order]
    expected, labels = [], list(report.class_counts)
    for counts in confusion_matrix(result.y, result.predictions, labels=labels):
        wrong = counts.sum() - counts[len(expected) // 3]
        expected += [f"{100 * wrong / counts.sum():.1f} %", *map(str, counts)]
    found = re.findall(r"<td[^>]*>([^<]*)</td>", html)
    assert any(found[k : k + 6] == expected for k in range(len(found)))


def test_numbers_of_the_figures(report):
    positive = report.dataset.y == "yes"
    false, true = pair_roc(report.pairs.wins, positive)
    area = np.sum(np.diff(false) * true[:-1])
    assert area == pytest.approx(report.pairs.auc, abs=1e-12)
    assert np.all(np.diff(false) >= 0)
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    lines = errors_by_others(report)
    assert list(lines) == [(("gamma", 0.05),), (("gamma", 0.5),)]
    errors = np.reshape(report.errors, (3, 2))
    for k, line in enumerate(lines.values()):
        assert np.array_equal(line, [GRID["C"], errors[:, k]])


def test_optional_parts(report, html):
    assert len(Page(html).find("img")) == 4
    X, y = report.dataset.X, report.dataset.y
    bounds = lo.loo_bounds(lo.SVC(**report.best_params), X, y)
    fewer = replace(report, curve=None, pairs=None)
    other = render(replace(fewer, bounds=bounds))
    assert len(Page(other).find("img")) == 3
    assert "ROC curve" not in other
    assert "<code>--curve</code> gives every C" in other
    for row in bounds.rows:
        assert f"<td>{row.name}" in other
        assert f"{100 * row.value:.1f} %</td></tr>" in other
    chosen = ({"svc__C": 1.0},) * 59 + ({},)
    honest = lo.HonestLoo(y, np.full_like(y, "no"), np.arange(60), chosen, 0.02, 1.0)
    fewer = replace(fewer, grid=GRID | {"C": [1.0]}, honest=honest)
    page = render(fewer)
    assert "Error over C<" not in page
    assert "<strong>50.0 %</strong> of samples it has not seen" in page
    assert "(95&nbsp;% interval 37.7 to 62.3 %; nested leave-one-out" in page
    assert "which is optimistic: the smallest of 6 errors" in page
    assert "(optimistic)" not in page
    assert '<td>C = 1</td><td class="number">59</td>' in page
    curve = lo.LooCurve(np.array([1.0, 2, 4]), np.array([0.5, 0.25]), np.zeros(2), 60)
    fewer = replace(fewer, curve=curve)
    text, found = format_select(fewer), describe_select(fewer)
    nested = "To report: nested leave-one-out error 50.0 % (95 % interval 37.7 to "
    assert text.index(nested) < text.index("Leave-one-out error 1.7 %")
    assert "from 1 to 4, the smallest error is 25.0 %, at C from 2 to 4" in text
    assert found["honest"]["error"] == 0.5
    assert found["curve"]["best_interval"] == [2, 4]


def test_everything_from_the_data_is_escaped(report, tmp_path):
    labels = np.array([EVIL, "no"], dtype=object)
    y = labels[(report.dataset.y == "no").astype(int)]
    predictions = labels[(report.result.predictions == "no").astype(int)]
    names = ("name", "target_name", "id_name", "group_name")
    dataset = replace(
        report.dataset,
        **dict.fromkeys(names, EVIL),
        y=y,
        ids=np.full(60, EVIL, dtype=object),
        groups=np.arange(60),
        notes=(EVIL,),
    )
    evil = replace(
        report,
        **dict.fromkeys(("preparation", "command", "class_weight"), EVIL),
        dataset=dataset,
        result=replace(report.result, y=y, predictions=predictions),
        warnings=(EVIL,),
        versions={EVIL: EVIL},
        seconds={EVIL: 1.0},
    )
    write_page(evil, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.find("script") == [{}]
    assert len(page.find("img")) == 4
    for image in page.find("img"):
        assert image["alt"]
        kind, _, content = image["src"].partition(",")
        assert kind == "data:image/svg+xml;base64"
        picture = b64decode(content).decode()
        assert "<script" not in picture
        assert not re.search(r"<[^>]+\son\w+=", picture)
        assert not re.search(r"(?:href|src)=\"(?!#|data:image/png)", picture)
    assert FORBIDDEN.isdisjoint(tag for tag, _ in page.tags)
    names = {name for _, attributes in page.tags for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in URLS]
    assert f"<td>{escape(EVIL)}</td>" in text  # seen by the reader, as text
    policy = next(tag["content"] for tag in page.find("meta") if "content" in tag)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_missing_jinja_names_the_extra(monkeypatch, report):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"leaveout\[cli\]"):
        render_page(report)
