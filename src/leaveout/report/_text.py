# SPDX-License-Identifier: BSD-3-Clause
"""Results as lines of plain text, for terminals and files alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from leaveout.report._select_report import SelectReport
from leaveout.tables._dataset import Dataset

# A table wider than this is no table in a terminal.
N_COLUMNS_SHOWN = 8


def format_dataset(dataset: Dataset) -> str:
    """Say in two lines what the data are, then what there is to note.

    Examples
    --------
    >>> from leaveout.tables._dataset import load_example
    >>> print(format_dataset(load_example()))
    breast cancer (Wisconsin): 569 samples, 30 features
    Classes (diagnosis): benign (357), malignant (212)
    """
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
    """Write a machine as the Python that makes it.

    Examples
    --------
    >>> format_model("rbf", {"C": 10.0, "gamma": 0.02}, None)
    "SVC(kernel='rbf', C=10, gamma=0.02)"
    """
    parts = [f"kernel={kernel!r}"]
    parts += [f"{name}={_number(value)}" for name, value in params.items()]
    if class_weight is not None:
        parts.append(f"class_weight={class_weight!r}")
    return f"SVC({', '.join(parts)})"


def format_grid(report: SelectReport) -> str:
    """Lay the errors out in percent, C downwards, the rest across; * marks the best.

    Cells where the balance of the classes decides, not the features, are marked !.
    """
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
        lines.append(
            "! C so small that the balance of the classes decides, not the features"
        )
    return "\n".join(lines)


def _cell(report: SelectReport, k: int) -> str:
    """One error, and a place for its mark."""
    mark = "!" if report.anti_learning[k] else " "
    return f"{100 * report.errors[k]:.2f}{'*' if k == report.best_index else mark}"


def format_choice(report: SelectReport) -> str:
    """Say which cell was chosen, how good it is, and against what."""
    result = report.result
    n = len(report.dataset.y)
    largest = next(iter(report.class_counts))
    wrong = ", ".join(
        f"{label} ({report.wrong_by_class[label]} of {count})"
        for label, count in report.class_counts.items()
    )
    model = format_model(report.kernel, report.best_params, report.class_weight)
    return "\n".join(
        [
            f"Chosen: {model}",
            f"Leave-one-out error {100 * result.error:.2f} % "
            f"+- {100 * result.standard_error:.2f} % "
            f"({int(result.wrong.sum())} of {n} wrong, {result.n_ambiguous} ambiguous)",
            f"Wrong by class: {wrong}",
            f"Always {largest!r} would be wrong on {100 * report.majority_error:.2f} %",
            *_optimism(report),
            *_edges(report),
            *_curve(report),
        ]
    )


def _optimism(report: SelectReport) -> list[str]:
    """Say how far the error of the choice may be believed."""
    honest = report.honest
    n_cells = len(report.errors)
    if honest is not None:
        return [
            f"Honest error {100 * honest.error:.2f} % "
            f"+- {100 * honest.standard_error:.2f} %: parameters chosen anew without "
            "each left-out sample"
        ]
    if n_cells == 1:
        return []
    return [
        f"Chosen among {n_cells} cells by this very error, hence optimistic "
        "(see --honest)"
    ]


def _edges(report: SelectReport) -> list[str]:
    """Say which parameters may be better beyond the grid, and what to type."""
    return [
        f"{name} is the {end} of the grid, others may be better: "
        f"--grid {name}={low:.3g}:{high:.3g}:{count}"
        for name, end, (low, high, count) in report.edges
    ]


def _curve(report: SelectReport) -> list[str]:
    """Say where over all C the error is least."""
    curve = report.curve
    if curve is None:
        return []
    low, high = curve.best_interval
    return [
        f"Over every C from {curve.C_min:g} to {curve.C_max:g} the least error is "
        f"{100 * curve.best_error:.2f} %, for C from {low:.4g} to {high:.4g}"
    ]


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
    """Write a length of time with as many digits as a person needs.

    Examples
    --------
    >>> format_seconds(0.231), format_seconds(14.2), format_seconds(900)
    ('0.2 s', '14 s', '15 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | int) else repr(value)
