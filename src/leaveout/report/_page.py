# SPDX-License-Identifier: BSD-3-Clause
"""The HTML page of a SelectReport: one file, with its figures inside, all text escaped.

Its content security policy forbids loading anything and running any script but its own,
which is known by its hash: a name in the data that looks like markup stays text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix

from leaveout._messages import count_of
from leaveout._typing import BoolArray, FloatArray
from leaveout.assess._loo_curve import LooCurve
from leaveout.loo._result import wilson_interval
from leaveout.loo._summary import as_percent
from leaveout.report._displays import (
    BLUE,
    GREY,
    LooCurveDisplay,
    LooGridDisplay,
    LooMarginDisplay,
    arrange_cells,
    lighten_frame,
    percent_formatter,
    short_number,
)
from leaveout.report._select_report import SelectReport, describe_cells
from leaveout.report._text import format_model, format_seconds
from leaveout.run._files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.2  # inches: a phone shows 0.9 of this size, a desktop 1.2
STYLE = {"font.size": 9.5, "axes.titlesize": 9.5, "svg.hashsalt": "leaveout"}
MAX_RINGED = 8
MIN_SHOWN = 80  # margins in the figure, and all errors
TEMPLATES = Path(__file__).parent / "templates"
MAX_ROWS = 5000  # of the table of samples: with more, browsers are slow
NO_BREAK = "\u00a0"


@dataclass(frozen=True)
class PageFigure:
    """A picture as a data URI, and what it shows for readers who cannot see it."""

    source: str
    alt: str


def draw_figures(report: SelectReport) -> dict[str, PageFigure]:
    """Draw what the report has: "grid", "curve" or "lines", "roc", "margins"."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        figures = {"grid": _draw_grid(report), "margins": _draw_margins(report)}
        if report.curve is not None:
            figures["curve"] = _draw_curve(report.curve)
        elif len(report.grid["C"]) > 1:
            figures["lines"] = _draw_lines(report)
        if report.pairs is not None:
            figures["roc"] = _draw_roc(report)
    return figures


def _draw_grid(report: SelectReport) -> PageFigure:
    n_gammas = len(report.grid.get("gamma", [1]))
    figure, ax = _new_figure(WIDTH, min(1.3 + 0.37 * n_gammas, 9.0))
    cells = arrange_cells(report.cells, report.best_index)
    display = LooGridDisplay(**cells, majority_error=report.majority_error)
    display.plot(ax)
    smallest = as_percent(float(np.nanmin(display.errors)))
    alt = f"Heat map of the error over C and gamma. The smallest is {smallest}."
    return _encode(figure, alt)


def _draw_curve(curve: LooCurve) -> PageFigure:
    figure, ax = _new_figure(WIDTH, 3.1)
    LooCurveDisplay.from_curve(curve, ax=ax)
    ends = [short_number(C) for C in (curve.C_min, curve.C_max, *curve.best_interval)]
    alt = (
        f"Error for every C from {ends[0]} to {ends[1]}. Smallest, "
        f"{as_percent(curve.best_error)}, from {ends[2]} to {ends[3]}."
    )
    return _encode(figure, alt)


def _draw_lines(report: SelectReport) -> PageFigure:
    """Draw the error over C, one line for each choice of the other parameters."""
    figure, ax = _new_figure(WIDTH, 3.1)
    ax.set_xscale("log")
    chosen = _other_params(report.best_params)
    for others, (Cs, errors) in errors_by_others(report).items():
        if others != chosen:
            ax.plot(Cs, errors, color="0.72", linewidth=1.0, zorder=2)
            continue
        low, high = wilson_interval(errors, report.result.n_effective)
        ax.fill_between(Cs, low, high, color=BLUE, alpha=0.15, linewidth=0)
        label = ", ".join(f"{name} = {short_number(v)}" for name, v in others)
        ax.plot(Cs, errors, "o-", color=BLUE, markersize=4, zorder=3, label=label)
        alt = f"from {as_percent(errors.min())} to {as_percent(errors.max())}."
    line = ax.axhline(report.majority_error, color=GREY, linewidth=0.9, linestyle="--")
    line.set_label("always the largest class")
    ax.set(xlabel="C", ylabel="Leave-one-out error")
    ax.set_ylim(bottom=0.0)
    ax.yaxis.set_major_formatter(percent_formatter())
    lighten_frame(ax)
    ax.legend(edgecolor="none", framealpha=0.9, fontsize="small")
    return _encode(figure, f"Error over C, the other parameters as chosen: {alt}")


def _other_params(params: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple((name, value) for name, value in params.items() if name != "C")


def errors_by_others(report: SelectReport) -> dict[tuple[Any, ...], FloatArray]:
    """Return C, ascending, and errors, for each choice of the other parameters."""
    lines: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for params, error in zip(report.cells["params"], report.errors, strict=True):
        lines.setdefault(_other_params(params), []).append((params["C"], error))
    return {others: np.array(sorted(cells)).T for others, cells in lines.items()}


def _draw_margins(report: SelectReport) -> PageFigure:
    figure, ax = _new_figure(WIDTH, 3.1)
    order = np.argsort(report.result.margins, kind="stable")
    suspects = order[report.result.wrong[order]]
    rows = [f"row {k}" for k in range(1, len(report.dataset.y) + 1)]
    LooMarginDisplay.from_result(
        report.result,
        suspects=suspects[:MAX_RINGED],
        names=rows if report.dataset.ids is None else report.dataset.ids,
        n_smallest=max(MIN_SHOWN, 2 * suspects.size),
        ax=ax,
    )
    alt = f"The smallest margins, sorted; {suspects.size} samples are wrong."
    return _encode(figure, alt)


def pair_roc(wins: FloatArray, positive: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the ROC curve of left-out pairs, whose area is their AUC.

    A positive sample that wins the share w of its pairs has the share 1 - w of the
    negative ones above it. The curve is the distribution function of these shares
    (placement values): its area is the mean of w.
    """
    shares = np.sort(1.0 - wins[positive])
    false = np.concatenate([[0.0], shares, [1.0]])
    true = np.concatenate([[0.0], np.arange(1, shares.size + 1) / shares.size, [1.0]])
    return false, true


def _draw_roc(report: SelectReport) -> PageFigure:
    assert report.pairs is not None
    figure, ax = _new_figure(3.6, 3.4)
    positive = report.dataset.y == np.unique(report.dataset.y)[1]
    false, true = pair_roc(report.pairs.wins, positive)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--")
    ax.step(false, true, where="post", color=BLUE, linewidth=1.6)
    ax.set(xlabel="False positive rate", ylabel="True positive rate", aspect="equal")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    lighten_frame(ax, "both")
    alt = f"ROC curve from left-out pairs, area {report.pairs.auc:.3f}."
    return _encode(figure, alt)


def _new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Open a figure that pyplot does not show."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _encode(figure: Figure, alt: str) -> PageFigure:
    """Return the picture as vector graphics, the same bytes for the same data."""
    stream = BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    encoded = b64encode(stream.getvalue()).decode("ascii")
    return PageFigure(f"data:image/svg+xml;base64,{encoded}", alt)


def render_page(report: SelectReport) -> str:
    """Return a report as HTML that needs no other file."""
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
    environment.filters["percent"] = lambda share: as_percent(share).replace(
        " ", NO_BREAK
    )
    environment.filters["interval"] = lambda ends: (
        f"{100 * ends[0]:.1f} to {as_percent(ends[1])}".replace(" %", f"{NO_BREAK}%")
    )
    environment.filters["short"] = short_number
    environment.filters["seconds"] = format_seconds
    environment.filters["count_of"] = count_of
    script = (TEMPLATES / "table.js").read_text(encoding="utf-8")
    return environment.get_template("page.html").render(
        report=report,
        dataset=report.dataset,
        result=report.result,
        n_uncertified=int(np.sum(~report.result.certified)),
        model=format_model(report.kernel, report.best_params, report.class_weight),
        figures=draw_figures(report),
        optimistic=len(report.errors) > 1,
        cells=_cells(report),
        confusion=_confusion(report),
        samples=_samples(report),
        max_rows=MAX_ROWS,
        style=(TEMPLATES / "style.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode("ascii"),
    )


def write_page(report: SelectReport, path: str | Path) -> None:
    """Write the page of a report; an existing file is replaced in one step."""
    write_atomically(path, render_page(report).encode("utf-8"))


def _cells(report: SelectReport) -> list[dict[str, Any]]:
    """Return one row per cell, the best first."""
    order = np.argsort(report.cells["rank_test_score"], kind="stable").tolist()
    cells = describe_cells(report)
    return [cells[k] | {"chosen": k == report.best_index} for k in order]


def _confusion(report: SelectReport) -> Mapping[str, Any]:
    """Count the samples by class and left-out prediction, the largest class first."""
    y, labels = report.dataset.y, list(report.class_counts)
    counts = confusion_matrix(y, report.result.predictions, labels=labels)
    return {"labels": labels, "rows": counts.tolist(), "positive": np.unique(y)[-1]}


def _samples(report: SelectReport) -> list[dict[str, Any]]:
    """Return one row per sample, the smallest margin first."""
    result, ids = report.result, report.dataset.ids
    states = np.where(result.wrong, "wrong", "right")
    states = np.where(result.ambiguous, "ambiguous", states)
    return [
        {
            "row": row + 1,
            "name": "" if ids is None else ids[row],
            "label": report.dataset.y[row],
            "prediction": result.predictions[row],
            "margin": float(result.margins[row]),
            "state": states[row],
            "certified": bool(result.certified[row]),
        }
        for row in np.argsort(result.margins, kind="stable").tolist()[:MAX_ROWS]
    ]
