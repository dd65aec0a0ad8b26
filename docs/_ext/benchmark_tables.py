# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the stored benchmark results, made when the pages are built.

``{benchmark} NAME`` shows ``benchmarks/results/NAME/results.csv`` and says when and
where it was measured (``config.yaml``). ``:by: COLUMN`` with ``:aggregate: COLUMN=HOW``
puts the rows with equal COLUMN together, HOW being sum, max, min or first.
``:heads: COLUMN=TEXT, ...`` names columns in the words of the page.
``{other-benchmarks}`` shows every result that the page has not shown yet.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive, directives

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
UNITS = {"ms": 1e3, "s": 1.0}
HOW = {"sum": sum, "max": max, "min": min}


def read_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a result; times in the unit that the row names."""
    with (RESULTS / name / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [in_own_unit(row) for row in rows]


def in_own_unit(row: dict[str, str]) -> dict[str, str]:
    """Bring the stored seconds of peer and ours to the row's unit."""
    unit = (row.get("unit") or "").strip()
    if unit not in UNITS:
        return row
    times = {key: str(float(row[key]) * UNITS[unit]) for key in ("peer", "ours")}
    return row | times | {"unit": unit}


def aggregate(
    rows: list[dict[str, str]], by: str, how: dict[str, str]
) -> list[dict[str, str]]:
    """Put the rows with equal ``by`` together, column by column."""
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(row[by], []).append(row)
    return [
        {by: key, "cases": str(len(group))}
        | {
            column: group[0][column]
            if name == "first"
            else str(HOW[name](float(row[column]) for row in group))
            for column, name in how.items()
        }
        for key, group in groups.items()
    ]


def short(text: str) -> str:
    """Write a number with three digits, leave words alone."""
    try:
        value = float(text)
    except ValueError:
        return text
    if not math.isfinite(value):
        return "–" if math.isnan(value) else str(value)
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def measured(name: str) -> str:
    """Say when and on what a result was measured."""
    source = f"benchmarks/results/{name}"
    path = RESULTS / name / "config.yaml"
    if not path.exists():
        return f"Source: {source}."
    config = yaml.safe_load(path.read_text())
    parts = [f"Measured {config['date']}"]
    if "cpu" in config:
        parts.append(f"on {config['cpu']}, {config.get('cores', '?')} cores")
    versions = config.get("versions", config)
    if "scikit-learn" in versions:
        parts.append(f"with scikit-learn {versions['scikit-learn']}")
    text = f"{' '.join(parts)}. Source: {source}."
    notes = [note for note in config.get("notes", []) if isinstance(note, str)]
    return " ".join([text, *(f"{note[0].upper()}{note[1:]}." for note in notes)])


def read_pairs(text: str) -> dict[str, str]:
    """Read the option ``a=b, c=d``."""
    pairs = (part.split("=") for part in text.split(","))
    return {key.strip(): value.strip() for key, value in pairs}


def make_table(rows: list[dict[str, str]], heads: dict[str, str]) -> nodes.table:
    """Build a table; columns that are empty throughout are left out."""
    unknown = sorted(set(heads) - set(rows[0]))
    if unknown:
        raise ValueError(f"heads names {unknown}, which are not columns.")
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    table = nodes.table(classes=["benchmark"])
    group = nodes.tgroup(cols=len(names))
    table += group
    group += [nodes.colspec(colwidth=1) for _ in names]
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]
    head += make_row(heads.get(name, name.replace("_", " ")) for name in names)
    for row in rows:
        body += make_row(short(row[name]) for name in names)
    return table


def make_row(texts) -> nodes.row:
    """Build one row of a table."""
    row = nodes.row()
    for text in texts:
        row += nodes.entry("", nodes.paragraph(text=text))
    return row


class Benchmark(Directive):
    """``{benchmark} NAME``: one stored result."""

    required_arguments = 1
    option_spec = {  # noqa: RUF012
        "by": directives.unchanged,
        "aggregate": directives.unchanged,
        "columns": directives.unchanged,
        "heads": directives.unchanged,
    }

    def run(self):
        """Return the table and where it comes from."""
        name = self.arguments[0]
        path = RESULTS / name / "results.csv"
        environment = self.state.document.settings.env
        environment.note_dependency(str(path))
        if not hasattr(environment, "shown_benchmarks"):
            environment.shown_benchmarks = set()
        environment.shown_benchmarks.add(name)
        rows = read_rows(name)
        if "by" in self.options:
            how = read_pairs(self.options["aggregate"])
            rows = aggregate(rows, self.options["by"], how)
        if "columns" in self.options:
            wanted = [column.strip() for column in self.options["columns"].split(",")]
            rows = [{column: row[column] for column in wanted} for row in rows]
        heads = read_pairs(self.options["heads"]) if "heads" in self.options else {}
        return [make_table(rows, heads), source_line(name)]


class OtherBenchmarks(Directive):
    """``{other-benchmarks}``: all results that have not been shown above."""

    def run(self):
        """Return a heading, a table and a source for each."""
        environment = self.state.document.settings.env
        shown = getattr(environment, "shown_benchmarks", set())
        found = sorted(path.parent.name for path in RESULTS.glob("*/results.csv"))
        content = []
        for name in found:
            if name not in shown:
                title = nodes.rubric(text=name.replace("_", " "))
                content += [title, make_table(read_rows(name), {}), source_line(name)]
        return content


def source_line(name: str) -> nodes.paragraph:
    """Return a small line that says where a table comes from."""
    return nodes.paragraph("", "", nodes.emphasis(text=measured(name)))


def setup(app):
    """Register the directives."""
    app.add_directive("benchmark", Benchmark)
    app.add_directive("other-benchmarks", OtherBenchmarks)
    return {"version": "1", "parallel_read_safe": False}
