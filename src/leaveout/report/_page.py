# SPDX-License-Identifier: BSD-3-Clause
"""The HTML page of a SelectReport.

The figures of a page: drawn without windows, kept as text inside the page.

A report as one HTML file: no request to any network, everything escaped.

The page carries a content security policy that forbids all loading and all scripts but
its own, known by its hash: should a name in the data look like markup, it stays text.
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

from leaveout._typing import BoolArray, FloatArray
from leaveout.report._displays import (
    BLUE,
    GREY,
    MAX_COLUMNS_WITH_TEXT,
    LooCurveDisplay,
    LooGridDisplay,
    LooMarginDisplay,
    as_percent,
    lighten_frame,
    percent_formatter,
    short_number,
)
from leaveout.report._select_report import SelectReport
from leaveout.report._text import format_model, format_seconds
from leaveout.run._files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches and points: a phone shows a figure at nine tenths of this size, a desk at 1.2.
WIDTH = 4.2
STYLE = {"font.size": 9.5, "axes.titlesize": 9.5, "svg.hashsalt": "leaveout"}
MAX_RINGED = 8
# The picture of the margins shows at least so many samples, and all errors.
MIN_SHOWN = 80
TEMPLATES = Path(__file__).parent / "templates"
# Beyond so many rows a browser is slow; the smallest margins are kept.
MAX_ROWS = 5000
NO_BREAK = "\u00a0"


@dataclass(frozen=True)
class PageFigure:
    """One picture.

    Parameters
    ----------
    source : str
        The picture itself, as a data URI.
    alt : str
        What it shows, for those who do not see it.
    """

    source: str
    alt: str


def draw_figures(report: SelectReport) -> dict[str, PageFigure]:
    """Draw what the report has: "grid", "curve" or "lines", "roc", "margins".

    Parameters
    ----------
    report : SelectReport
        A choice of parameters.

    Returns
    -------
    dict of str to PageFigure
        Without those for which nothing was computed.
    """
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        figures = {"grid": _draw_grid(report), "margins": _draw_margins(report)}
        if report.curve is not None:
            figures["curve"] = _draw_curve(report)
        elif len(report.grid["C"]) > 1:
            figures["lines"] = _draw_lines(report)
        if report.pairs is not None:
            figures["roc"] = _draw_roc(report)
    return figures


def sample_names(report: SelectReport) -> list[str]:
    """Return what the samples are called: their ids, else rows as people count."""
    ids = report.dataset.ids
    if ids is None:
        return [f"row {k}" for k in range(1, len(report.dataset.y) + 1)]
    return [str(name) for name in ids]


def suspect_rows(report: SelectReport) -> np.ndarray:
    """Return the rows that are wrong when left out, the smallest margin first."""
    order = np.argsort(report.result.margins, kind="stable")
    return order[report.result.wrong[order]]


def _draw_grid(report: SelectReport) -> PageFigure:
    n_gammas = len(report.grid.get("gamma", [1]))
    figure, ax = _new_figure(WIDTH, min(1.3 + 0.37 * n_gammas, 9.0))
    display = LooGridDisplay.from_cv_results(
        report.cells,
        majority_error=report.majority_error,
        ax=ax,
        colorbar=len(report.grid["C"])
        > MAX_COLUMNS_WITH_TEXT,  # else numbers are there
    )
    smallest = as_percent(float(np.nanmin(display.errors)))
    alt = f"Heat map of the error over C and gamma. The smallest is {smallest}."
    return _keep(figure, alt)


def _draw_curve(report: SelectReport) -> PageFigure:
    assert report.curve is not None
    figure, ax = _new_figure(WIDTH, 3.1)
    LooCurveDisplay.from_curve(report.curve, ax=ax)
    low, high = report.curve.best_interval
    alt = (
        f"Error for every C from {short_number(report.curve.C_min)} to "
        f"{short_number(report.curve.C_max)}. Least, "
        f"{as_percent(report.curve.best_error)}, from {short_number(low)} to "
        f"{short_number(high)}."
    )
    return _keep(figure, alt)


def _draw_lines(report: SelectReport) -> PageFigure:
    """Draw the error over C as the grid has it, one line per other parameters."""
    figure, ax = _new_figure(WIDTH, 3.1)
    ax.set_xscale("log")
    low, high = np.inf, -np.inf
    for others, cells in _cells_by_the_rest(report).items():
        Cs, errors = np.array(cells)[:, 0], np.array(cells)[:, 1]
        if others != _rest(report.best_params):
            ax.plot(Cs, errors, color="0.72", linewidth=1.0, zorder=2)
            continue
        spread = np.sqrt(errors * (1.0 - errors) / len(report.dataset.y))
        ax.fill_between(
            Cs, errors - spread, errors + spread, color=BLUE, alpha=0.15, linewidth=0
        )
        label = ", ".join(f"{name} = {short_number(v)}" for name, v in others)
        ax.plot(Cs, errors, color=BLUE, marker="o", markersize=4, zorder=3, label=label)
        low, high = errors.min(), errors.max()
    ax.axhline(
        report.majority_error,
        color=GREY,
        linewidth=0.9,
        linestyle=(0, (4, 3)),
        label="always the largest class",
    )
    ax.set(xlabel="C", ylabel="Leave-one-out error")
    ax.set_ylim(bottom=0.0)
    ax.yaxis.set_major_formatter(percent_formatter())
    lighten_frame(ax)
    ax.legend(edgecolor="none", framealpha=0.9, fontsize="small")
    alt = f"Error over C at the chosen rest, {as_percent(low)} to {as_percent(high)}."
    return _keep(figure, alt)


def _rest(params: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return all parameters but C."""
    return tuple((name, value) for name, value in params.items() if name != "C")


def _cells_by_the_rest(
    report: SelectReport,
) -> dict[tuple[tuple[str, float], ...], list[tuple[float, float]]]:
    """Return the pairs of C and error, by ascending C, of each choice of the rest."""
    lines: dict[tuple[tuple[str, float], ...], list[tuple[float, float]]] = {}
    for params, error in zip(report.cells["params"], report.errors, strict=True):
        lines.setdefault(_rest(params), []).append((params["C"], float(error)))
    return {others: sorted(cells) for others, cells in lines.items()}


def _draw_margins(report: SelectReport) -> PageFigure:
    figure, ax = _new_figure(WIDTH, 3.1)
    suspects = suspect_rows(report)
    LooMarginDisplay.from_result(
        report.result,
        suspects=suspects[:MAX_RINGED],
        names=sample_names(report),
        n_smallest=max(MIN_SHOWN, 2 * suspects.size),
        ax=ax,
    )
    alt = f"The smallest margins, sorted; {suspects.size} samples are wrong."
    return _keep(figure, alt)


def pair_roc(wins: FloatArray, positive: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the ROC curve of left-out pairs, whose area is their AUC.

    A positive sample that wins the share w of its pairs has the share 1 - w of the
    negative ones above it. The curve is the distribution function of these shares
    (placement values): its area is the mean of w.

    Parameters
    ----------
    wins : ndarray of shape (n,)
        Share of pairs that each sample wins.
    positive : ndarray of bool, shape (n,)
        Samples of the positive class.

    Returns
    -------
    false, true : ndarray of shape (n_positive + 2,)
        Corners of a step function, ``true[k]`` from ``false[k]`` to ``false[k + 1]``.
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
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    ax.step(false, true, where="post", color=BLUE, linewidth=1.6)
    ax.set(
        xlabel="False positives, share",
        ylabel="True positives, share",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        aspect="equal",
    )
    lighten_frame(ax, "both")
    return _keep(figure, f"ROC curve from left-out pairs, area {report.pairs.auc:.3f}.")


def _new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Open a figure that no window knows of."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _keep(figure: Figure, alt: str) -> PageFigure:
    """Return the picture as vector graphics, the same bytes for the same data."""
    stream = BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    encoded = b64encode(stream.getvalue()).decode("ascii")
    return PageFigure(f"data:image/svg+xml;base64,{encoded}", alt)


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
