# SPDX-License-Identifier: BSD-3-Clause
"""A report as one HTML file: no request to any network, everything escaped.

The page carries a content security policy that forbids all loading and all scripts but
its own, known by its hash: should a name in the data look like markup, it stays text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from leaveout.report._canvas import short_number
from leaveout.report._html_figures import draw_figures, suspect_rows
from leaveout.report._select_report import SelectReport
from leaveout.report._text import format_model, format_seconds
from leaveout.run import write_atomically

TEMPLATES = Path(__file__).parent / "templates"
# Beyond so many rows a browser is slow; the smallest margins are kept.
MAX_ROWS = 5000
NO_BREAK = "\u00a0"


def render_page(report: SelectReport) -> str:
    """Return a report on a choice of parameters as a page of its own.

    Parameters
    ----------
    report : SelectReport
        What ``leaveout select`` has found.

    Returns
    -------
    str
        HTML that needs no other file.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as missing:
        raise ImportError(
            "Pages are made with jinja2, which is not installed. Install it with "
            "pip install 'leaveout[cli]'."
        ) from missing
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda share: f"{100.0 * share:.1f}{NO_BREAK}%"
    environment.filters["short"] = short_number
    environment.filters["seconds"] = format_seconds
    script = (TEMPLATES / "table.js").read_text(encoding="utf-8")
    return environment.get_template("page.html").render(
        report=report,
        dataset=report.dataset,
        result=report.result,
        n_uncertified=int(np.sum(~report.result.certified)),
        machine=format_model(report.kernel, report.best_params, report.class_weight),
        figures=draw_figures(report),
        cells=_cells(report),
        confusion=_confusion(report),
        samples=_samples(report),
        max_rows=MAX_ROWS,
        style=(TEMPLATES / "style.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode("ascii"),
    )


def write_page(report: SelectReport, path: str | Path) -> None:
    """Write the page of a report; the file is whole or absent.

    Parameters
    ----------
    report : SelectReport
        What ``leaveout select`` has found.
    path : str or Path
        The file; an older one is replaced.
    """
    write_atomically(path, render_page(report).encode("utf-8"))


def _cells(report: SelectReport) -> list[dict[str, Any]]:
    """Return one row per cell, the best first."""
    order = np.argsort(report.cells["rank_test_score"], kind="stable")
    return [
        {
            "params": list(report.cells["params"][k].values()),
            "error": float(report.errors[k]),
            "standard_error": float(report.cells["std_test_score"][k]),
            "n_ambiguous": report.cells["n_ambiguous"][k],
            "anti_learning": bool(report.anti_learning[k]),
            "chosen": int(k) == report.best_index,
        }
        for k in order
    ]


def _confusion(report: SelectReport) -> Mapping[str, Any]:
    """Count the samples by class and left-out prediction."""
    labels = list(report.class_counts)
    place = {label: k for k, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=int)
    pairs = zip(
        report.dataset.y.tolist(), report.result.predictions.tolist(), strict=True
    )
    for label, prediction in pairs:
        counts[place[label], place[prediction]] += 1
    positive = np.unique(report.dataset.y)[-1]
    return {"labels": labels, "rows": counts.tolist(), "positive": positive}


def _samples(report: SelectReport) -> list[dict[str, Any]]:
    """Return one row per sample, the smallest margin first."""
    result, ids = report.result, report.dataset.ids
    suspects = set(suspect_rows(report).tolist())
    return [
        {
            "row": row + 1,  # as people count
            "name": "" if ids is None else ids[row],
            "label": report.dataset.y[row],
            "prediction": result.predictions[row],
            "margin": float(result.margins[row]),
            "state": "ambiguous"
            if result.ambiguous[row]
            else "wrong"
            if row in suspects
            else "right",
            "certified": bool(result.certified[row]),
        }
        for row in np.argsort(result.margins, kind="stable").tolist()[:MAX_ROWS]
    ]
