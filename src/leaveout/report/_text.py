# SPDX-License-Identifier: BSD-3-Clause
"""Results as plain text for terminals and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from leaveout._messages import count_of, list_items
from leaveout.loo._result import LooResult
from leaveout.loo._summary import WIDTH, as_percent, format_error, wrap
from leaveout.report._select_report import SelectReport
from leaveout.tables._dataset import Dataset


def format_dataset(dataset: Dataset) -> str:
    """Write name, size, classes and groups of the data, then the notes."""
    n_samples, n_features = dataset.X.shape
    counts = Counter(dataset.y.tolist()).most_common()
    classes = list_items(_unbroken(f"{label} ({count})" for label, count in counts))
    lines = [
        f"{dataset.name}: {n_samples} samples, {count_of(n_features, 'feature')}",
        f"Classes ({dataset.target_name}): {classes}",
    ]
    if dataset.groups is not None:
        n_groups = len(np.unique(dataset.groups))
        lines.append(
            f"Left out together: {n_groups} groups ({dataset.group_name}), not single "
            "samples"
        )
    return wrap([*lines, *(f"Note: {note}" for note in dataset.notes)])


def format_model(kernel: str, params: Mapping[str, Any], class_weight: Any) -> str:
    """Write a classifier as Python code: SVC(kernel='rbf', C=10, gamma=0.02)."""
    parts = [f"kernel={kernel!r}"]
    parts += [f"{name}={_number(value)}" for name, value in params.items()]
    if class_weight is not None:
        parts.append(f"class_weight={class_weight!r}")
    return f"SVC({', '.join(parts)})"


def format_grid(report: SelectReport) -> str:
    """Tabulate the errors in percent; * marks the best, ! anti-learning cells."""
    others = [name for name in report.grid if name != "C"]
    keys = [tuple(cell[name] for name in others) for cell in report.cells["params"]]
    heads = list(dict.fromkeys(keys))
    titles = {
        name: [f"{head[k]:.3g}" for head in heads] for k, name in enumerate(others)
    } or {"": ["error"]}
    Cs = sorted({cell["C"] for cell in report.cells["params"]})
    place = {
        (cell["C"], key): k
        for k, (cell, key) in enumerate(zip(report.cells["params"], keys, strict=True))
    }
    width = max(len("100.0*"), *(len(x) for row in titles.values() for x in row))
    n_shown = (WIDTH - 11) // (width + 2)
    lines = ["Leave-one-out error in percent"]
    for start in range(0, len(heads), n_shown):
        part = slice(start, start + n_shown)
        table = [(f"{name:>11}", row[part]) for name, row in titles.items()]
        for C in Cs:
            cells = [_cell(report, place[C, head]) for head in heads[part]]
            table.append((f"{'C' if C == Cs[0] else '':<2}{C:>9.4g}", cells))
        for head, row in table:
            lines.append((head + "".join(f"  {x:>{width}}" for x in row)).rstrip())
    if report.anti_learning.any():
        lines.append("! C too small: class proportions alone decide")
    return "\n".join(lines)


def _cell(report: SelectReport, k: int) -> str:
    """One error, and a place for its mark."""
    mark = "!" if report.anti_learning[k] else " "
    return f"{100 * report.errors[k]:.1f}{'*' if k == report.best_index else mark}"


def format_result(result: LooResult, n_errors: int, advice: str) -> list[str]:
    """Write the error, which classes are wrong, and what to compare it with.

    With ``n_errors`` tried, the error is the smallest of them; ``advice`` follows.
    """
    counts, wrong = Counter(result.y.tolist()), Counter(result.y[result.wrong].tolist())
    [(largest, n_largest)] = counts.most_common(1)
    n = len(result.y)
    worst = sorted(wrong, key=lambda label: (-wrong[label], -counts[label]))
    parts = [f"{label}: {wrong[label]} of {counts[label]}" for label in worst]
    by_class = f" ({list_items(_unbroken(parts))})" if parts else ""
    lines = [f"Leave-one-out error {format_error(result.error, result.interval)}"]
    if n_errors > 1:
        lines.append(f"Optimistic: the smallest of {n_errors} errors{advice}")
    lines.append(f"Wrong: {wrong.total()} of {n}{by_class}")
    if result.n_ambiguous:
        lines.append(
            f"Ambiguous: {count_of(result.n_ambiguous, 'prediction')} that another "
            "optimal intercept would change"
        )
    if not result.certified.all():
        n_open = int(np.sum(~result.certified))
        what = count_of(n_open, "prediction")
        lines.append(f"Not certified: {what} that could not be verified")
    trivial = as_percent((n - n_largest) / n)
    return [*lines, f"Always predicting {largest!r} would be wrong on {trivial}"]


def format_choice(report: SelectReport) -> str:
    """Write which cell was chosen, its error, and what to compare it with."""
    honest, curve = report.honest, report.curve
    model = format_model(report.kernel, report.best_params, report.class_weight)
    lines = [f"Chosen: {model}"]
    if honest is not None:
        error = format_error(honest.error, honest.interval)
        lines.append(f"To report: nested leave-one-out error {error}")
    advice = "" if honest else "; --honest computes the error to report"
    lines += format_result(report.result, len(report.errors), advice)
    lines += [
        f"{name} is the {end} of the grid: also try {option}"
        for name, end, option in report.edges
    ]
    if curve is not None:
        low, high = curve.best_interval
        lines.append(
            f"Over every C from {curve.C_min:g} to {curve.C_max:g}, the smallest error "
            f"is {as_percent(curve.best_error)}, at C from {low:.4g} to {high:.4g}; "
            "the choice is among the values of the grid"
        )
    return wrap(lines)


def format_select(report: SelectReport) -> str:
    """Return the complete report for a terminal."""
    return "\n".join(
        [
            format_dataset(report.dataset),
            wrap([report.preparation + _nested_preparation(report)]),
            "",
            format_grid(report),
            "",
            format_choice(report),
        ]
    )


def _nested_preparation(report: SelectReport) -> str:
    """Say that the nested error includes the preparation, if both were computed."""
    if report.honest is None or "once on all rows" not in report.preparation:
        return ""
    return " For the nested error, within each fold."


def format_seconds(seconds: float) -> str:
    """Write a time in its largest fitting unit: 0.2 s, 14 s, 15 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


def _unbroken(items: Iterable[str]) -> list[str]:
    """Keep the words of each item on one line."""
    return [item.replace(" ", "\xa0") for item in items]


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | int) else repr(value)
