# SPDX-License-Identifier: BSD-3-Clause
"""Write the tables of docs/promises.md from the stored results.

    python tools/write_promises.py

What stands between ``<!-- NAME -->`` and ``<!-- end -->`` of the page is made here; the
rest is written by hand. A result that is not stored is shown as "not run". To count
something new, store ``benchmarks/results/NAME/promises.json``, a list of
``{"what": ..., "cases": ..., "unit": ..., "wrong": ...}``, or add a function to COUNTS.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "promises.md"
DEFECTS = ROOT / "docs" / "defects.json"
NOT_RUN = "not run"
BLOCK = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.S)


class Count(NamedTuple):
    """How much was tried, and how much of it was wrong."""

    what: str
    tried: str
    wrong: str
    source: str


def read_csv(name: str) -> list[dict[str, str]]:
    """Rows of a stored result."""
    with (RESULTS / name / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def read_json(name: str) -> dict[str, Any]:
    """Return a stored result of the checks; empty if there is none."""
    path = RESULTS / name / "results.json"
    return json.loads(path.read_text()) if path.exists() else {}


def total(rows: Iterable[dict[str, str]], *columns: str) -> int:
    """Sum of some columns over all rows."""
    return sum(int(float(row[column])) for row in rows for column in columns)


def exactness() -> list[tuple[str, str, str]]:
    rows = read_csv("exactness")
    largest = max(float(row["deviation"]) for row in rows)
    row = (
        "Walks against LIBSVM and an interior point, real data",
        f"{len(rows):,} machines, {total(rows, 'n'):,} left-out samples, "
        f"{total(rows, 'checked'):,} of them solved anew",
        f"{total(rows, 'wrong')} labels, {total(rows, 'flags')} flags of ambiguity; "
        f"largest deviation {largest:.1e}",
    )
    return [row]


def exactness_multiclass() -> list[tuple[str, str, str]]:
    rows = read_csv("exactness_multiclass")
    row = (
        "Several classes against scikit-learn's loop",
        f"{len(rows)} classifiers, {total(rows, 'n'):,} left-out samples",
        f"{total(rows, 'wrong_labels')} labels",
    )
    return [row]


def franc2008_labels() -> list[tuple[str, str, str]]:
    rows = read_csv("franc2008_labels")
    row = (
        "Labels proved by the stopping conditions, against LIBSVM at tight tolerance",
        f"{len(rows)} machines, {total(rows, 'n'):,} left-out samples, "
        f"{total(rows, 'checked'):,} of them solved anew",
        f"{total(rows, 'wrong', 'stopping_differ')} labels",
    )
    return [row]


def wang2022_labels() -> list[tuple[str, str, str]]:
    rows = read_csv("wang2022_labels")
    compared = total(rows, "compared", "path_compared", "magic_compared")
    differ = total(rows, "consolidated_differ", "path_differ", "magic_differ")
    row = (
        "All left-out problems at once (consolidated, magic) against walks",
        f"{compared:,} left-out labels",
        f"{differ} labels",
    )
    return [row]


def bounds() -> list[tuple[str, str, str]]:
    rows = [row for row in read_csv("bounds") if "bound" in row["kind"]]
    machines = sum(int(row["fits"]) for row in rows if row["name"] == "certificate")
    row = (
        "What is called a bound, against the exact error",
        f"{machines:,} machines, {total(rows, 'fits'):,} bounds",
        f"{total(rows, 'violated')} violated",
    )
    return [row]


def faults() -> list[tuple[str, str, str]]:
    rows = read_csv("faults")
    kills = [row for row in rows if row["event"] == "killed"]
    ends = [row for row in rows if row["event"] == "finished"]
    damaged = sum(row["file"] not in ("ok", "absent") for row in kills)
    lost = sum(int(row["kept"]) < int(row["kept_before"]) for row in kills)
    other = sum(row["identical"] != "True" for row in ends)
    row = (
        "Searches killed by SIGKILL at random, then resumed",
        f"{len(kills)} kills, {len(ends)} searches brought to their end",
        f"{damaged} damaged files, {lost} kept cells lost, {other} results that differ "
        "in a bit",
    )
    return [row]


def trust() -> list[tuple[str, str, str]]:
    stored = json.loads((RESULTS / "trust" / "counts.json").read_text())
    damaged, files = stored["damaged checkpoints"], stored["files from strangers"]
    tests = stored["tests"].values()
    passed, failed = (sum(row[key] for row in tests) for key in ("passed", "failed"))
    return [
        (
            "Checkpoints damaged at random, then used",
            f"{damaged['trials']:,} files: {damaged['same numbers']:,} gave the same "
            f"numbers, {damaged['refused']:,} were refused",
            f"{damaged['other']} other outcomes",
        ),
        (
            "Tables and model files, mutated",
            f"{files['files']:,} files, read or refused with a reason; of these "
            f"{files['model'].get('read, cannot predict', 0):,} models that load and "
            "say that they cannot predict",
            "0 crashes, hangs and other errors (one would end the run)",
        ),
        (
            "Faults: signals, full disks, little memory, killed workers, threads …",
            f"{passed:,} tests in {len(tests)} files" if tests else NOT_RUN,
            f"{failed} failed" if tests else "",
        ),
    ]


def torture() -> list[tuple[str, str, str]]:
    stored = read_json("torture")
    answers, asked = stored["answers"], stored["questions"]
    exact, flagged = answers.get("exact", 0), answers["total"] - answers.get("exact", 0)
    mirrored = stored["mirrored"]
    decided = [defect for defect in stored["defects"] if defect.startswith("mirror ")]
    return [
        (
            "Problems made to break floating point, against whole-number arithmetic",
            f"{answers['total']:,} answers: {exact:,} exact, {flagged:,} flagged "
            "ambiguous, not certified or refused",
            f"{len(stored['defects'])} defects, those of the next rows included",
        ),
        (
            "Mirror images of up to 40 samples, whose left-out value is 0",
            f"{mirrored['total']:,} answers by {len(mirrored) - 1} ways to leave out",
            f"{len(decided)} decided without a flag",
        ),
        (
            "Input at the edge of doubles, to every function",
            f"{asked['total']:,} questions: {asked.get('answered', 0):,} answered, "
            f"{asked.get('refused', 0):,} refused with a reason",
            f"{asked.get('defect', 0)} NaN, hangs and other errors",
        ),
    ]


def fuzz() -> list[tuple[str, str, str]]:
    found = read_json("fuzz")["totals"]
    row = (
        "Properties of the public API, new seeds at every run",
        f"{found['cases']:,} cases, {found['samples_compared']:,} samples compared",
        f"{found['disagreements']} disagreements",
    )
    return [row]


def peer_tests() -> list[tuple[str, str, str]]:
    found = read_json("peer_tests")["counts"]
    row = (
        "scikit-learn's own tests of its SVC, on ours",
        f"{found['passed']} pass, {found['with_reason']} cannot, each with its reason",
        f"{found['failed']} fail without one",
    )
    return [row]


COUNTS: dict[str, Callable[[], list[tuple[str, str, str]]]] = {
    "exactness/results.csv": exactness,
    "exactness_multiclass/results.csv": exactness_multiclass,
    "franc2008_labels/results.csv": franc2008_labels,
    "wang2022_labels/results.csv": wang2022_labels,
    "bounds/results.csv": bounds,
    "faults/results.csv": faults,
    "trust/counts.json": trust,
    "torture/results.json": torture,
    "fuzz/results.json": fuzz,
    "peer_tests/results.json": peer_tests,
}


def counts() -> list[Count]:
    """Return the rows of each stored result, the known ones first."""
    found = []
    for file, count in COUNTS.items():
        name = Path(file).parent.name
        stored = (RESULTS / file).exists()
        rows = count() if stored else [(name, NOT_RUN, "")]
        found += [Count(*row, name) for row in rows]
    for path in sorted(RESULTS.glob("*/promises.json")):
        for row in json.loads(path.read_text()):
            tried = f"{row['cases']:,} {row['unit']}"
            found.append(Count(row["what"], tried, row["wrong"], path.parent.name))
    return found


def counts_table() -> str:
    rows = [(c.what, c.tried, c.wrong, f"`{c.source}`") for c in counts()]
    return table(("what is compared", "tried", "wrong", "benchmarks/results"), rows)


def kernels_table() -> str:
    stored = read_json("kernel_safety")
    names = {"bounds": "Cython's bounds checks", "sanitizer": "ASan and UBSan of GCC"}
    rows = []
    for name, title in names.items():
        run = stored.get(name)
        if run is None:
            rows.append((title, "", NOT_RUN, "", ""))
            continue
        seen = "seen" if run["planted_fault_seen"] else "NOT seen"
        rows.append((title, tests_of(run), outcome(run), seen, str(run["findings"])))
    return table(("compiled in", "tests", "outcome", "planted fault", "findings"), rows)


def torture_table() -> str:
    by_name = read_json("torture").get("by_name", {})
    words = ("exact", "ambiguous", "cautious", "uncertified", "refused")
    rows = [
        (
            name,
            *(f"{found.get(word, 0):,}" for word in words),
            f"{sum(found.values()) - sum(found.get(word, 0) for word in words):,}",
        )
        for name, found in by_name.items()
    ]
    head = ("who answers", *words, "wrong")
    return table(head, rows or [(NOT_RUN, *[""] * (len(head) - 1))])


def versions_table() -> str:
    runs = read_json("versions").get("runs", {})
    columns = ("numpy", "scipy", "scikit-learn", "pandas")
    rows = [
        (
            name,
            *(run["versions"][column] for column in columns),
            tests_of(run),
            outcome(run),
        )
        for name, run in runs.items()
    ]
    head = ("packages, Python", *columns, "tests", "outcome")
    return table(head, rows or [(NOT_RUN, *[""] * (len(head) - 1))])


def packages_table() -> str:
    run = read_json("packages")
    if not run:
        return table(("package", "outcome"), [("sdist and wheel", NOT_RUN)])
    size = "{files} files, {kilobytes:,} kB"
    found = "; ".join(run["faults"]) or "as they should be"
    rows = [
        ("sdist: what git knows, nothing else", size.format(**run["sdist"])),
        ("wheel, made of the sdist", size.format(**run["wheel"])),
        ("contents", found),
        ("`twine check --strict`", run["twine"]),
        ("used elsewhere", ", ".join(run["steps"])),
        ("tests out of the sdist", outcome(run)),
    ]
    return table(("package", "outcome"), rows)


def defects_table() -> str:
    defects = json.loads(DEFECTS.read_text())
    rows = [(d["what"], d["found_by"], f"`{d['test']}`") for d in defects]
    head = table(("defect", "found by", "test that failed before"), rows)
    return f"{len(defects)} found so far.\n\n{head}"


def tests_of(run: dict[str, Any]) -> str:
    """Say which tests were run."""
    paths = [f"`{test}`" for test in run["tests"] if not test.startswith("-")]
    return ", ".join(paths) if len(paths) < 6 else f"{len(paths)} files or folders"


def outcome(run: dict[str, Any]) -> str:
    """Say the counts of a run of tests in words."""
    words = [f"{run['passed']:,} passed"]
    words += [f"{run[key]} {key}" for key in ("failed", "skipped") if run[key]]
    if run["exit_code"] and not run["failed"]:
        words.append(f"ended with code {run['exit_code']}")
    return ", ".join(words)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    head = tuple(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TABLES = {
    "counts": counts_table,
    "torture": torture_table,
    "kernels": kernels_table,
    "versions": versions_table,
    "packages": packages_table,
    "defects": defects_table,
}


def fill(page: str) -> str:
    """Return the page with its tables made anew."""
    return BLOCK.sub(lambda m: f"{m[1]}{TABLES[m[2]]()}\n{m[3]}", page)


def main() -> None:
    PAGE.write_text(fill(PAGE.read_text()))


if __name__ == "__main__":
    main()
