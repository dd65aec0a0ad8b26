# SPDX-License-Identifier: BSD-3-Clause
"""Results as plain text for terminals and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from leaveout.report._select_report import SelectReport
from leaveout.tables._dataset import Dataset

N_COLUMNS_SHOWN = 8  # more do not fit into a terminal


def format_dataset(dataset: Dataset) -> str:
    """Write name, size, classes and groups of the data, then the notes."""
    n_samples, n_features = dataset.X.shape
    counts = Counter(dataset.y.tolist()).most_common()
    classes = ", ".join(f"{label} ({count})" for label, count in counts)
    lines = [
        f"{dataset.name}: {n_samples} samples, {n_features} features",
        f"Classes ({dataset.target_name}): {classes}",
    ]
    if dataset.groups is not None:
        n_groups = len(np.unique(dataset.groups))
        lines.append(
            f"Left out together: {n_groups} groups ({dataset.group_name}), not single "
            "samples"
        )
    return "\n".join([*lines, *(f"Note: {note}" for note in dataset.notes)])


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
    labels = [
        " ".join(f"{n} {v:.3g}" for n, v in zip(others, head, strict=True)) or "error"
        for head in heads
    ]
    Cs = sorted({cell["C"] for cell in report.cells["params"]})
    place = {
        (cell["C"], key): k
        for k, (cell, key) in enumerate(zip(report.cells["params"], keys, strict=True))
    }
    lines = ["Leave-one-out error in percent"]
    for start in range(0, len(heads), N_COLUMNS_SHOWN):
        part = slice(start, start + N_COLUMNS_SHOWN)
        width = max(len("100.00*"), *(len(label) for label in labels[part]))
        lines.append("       C   " + "   ".join(x.rjust(width) for x in labels[part]))
        for C in Cs:
            cells = [_cell(report, place[C, head]).rjust(width) for head in heads[part]]
            lines.append(f"{C:8.4g}   {'   '.join(cells)}".rstrip())
    if report.anti_learning.any():
        lines.append("! C too small: class proportions alone decide")
    return "\n".join(lines)


def _cell(report: SelectReport, k: int) -> str:
    """One error, and a place for its mark."""
    mark = "!" if report.anti_learning[k] else " "
    return f"{100 * report.errors[k]:.2f}{'*' if k == report.best_index else mark}"


def format_choice(report: SelectReport) -> str:
    """Write which cell was chosen, its error, and what to compare it with."""
    result, honest, curve = report.result, report.honest, report.curve
    model = format_model(report.kernel, report.best_params, report.class_weight)
    wrong = ", ".join(
        f"{label} ({report.wrong_by_class[label]} of {count})"
        for label, count in report.class_counts.items()
    )
    largest = next(iter(report.class_counts))
    lines = [
        f"Chosen: {model}",
        f"Leave-one-out error {100 * result.error:.2f} % "
        f"+- {100 * result.standard_error:.2f} % ({int(result.wrong.sum())} of "
        f"{len(report.dataset.y)} wrong, {result.n_ambiguous} ambiguous)",
        f"Wrong by class: {wrong}",
        f"Always {largest!r} would be wrong on {100 * report.majority_error:.2f} %",
    ]
    if honest is not None:
        lines.append(
            f"Honest error {100 * honest.error:.2f} % +- "
            f"{100 * honest.standard_error:.2f} %: parameters chosen again without "
            "each left-out sample"
        )
    elif len(report.errors) > 1:
        n_cells = len(report.errors)
        lines.append(f"Optimistic: the smallest of {n_cells} errors (see --honest)")
    lines += [
        f"{name} is the {end} of the grid, others may be better: "
        f"--grid {name}={low:.3g}:{high:.3g}:{count}"
        for name, end, (low, high, count) in report.edges
    ]
    if curve is not None:
        low, high = curve.best_interval
        lines.append(
            f"Over every C from {curve.C_min:g} to {curve.C_max:g} the least error is "
            f"{100 * curve.best_error:.2f} %, for C from {low:.4g} to {high:.4g}"
        )
    return "\n".join(lines)


def format_select(report: SelectReport) -> str:
    """Return the whole report for a terminal."""
    return "\n".join(
        [
            format_dataset(report.dataset),
            report.preparation,
            "",
            format_grid(report),
            "",
            format_choice(report),
        ]
    )


def format_seconds(seconds: float) -> str:
    """Write a time in its largest fitting unit: 0.2 s, 14 s, 15 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | int) else repr(value)
