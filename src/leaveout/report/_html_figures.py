# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a page: drawn without windows, kept as text inside the page."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.report._canvas import BLUE, GREY, as_percent, lighten_frame, short_number
from leaveout.report._display_curve import LooCurveDisplay
from leaveout.report._display_grid import LooGridDisplay
from leaveout.report._display_margins import LooMarginDisplay
from leaveout.report._select_report import SelectReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches: small, so that letters are still large enough on a phone.
WIDTH = 5.4
MAX_RINGED = 8
# The picture of the margins shows at least so many samples, and all errors.
MIN_SHOWN = 80


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
    """Draw what the report has: "grid", "curve", "roc", "margins".

    Parameters
    ----------
    report : SelectReport
        A choice of parameters.

    Returns
    -------
    dict of str to PageFigure
        Without those for which nothing was computed.
    """
    figures = {"grid": _draw_grid(report), "margins": _draw_margins(report)}
    if report.curve is not None:
        figures["curve"] = _draw_curve(report)
    if report.pairs is not None:
        figures["roc"] = _draw_roc(report)
    return figures


def suspect_rows(report: SelectReport) -> np.ndarray:
    """Return the rows that are wrong when left out, the smallest margin first."""
    order = np.argsort(report.result.margins, kind="stable")
    return order[report.result.wrong[order]]


def _draw_grid(report: SelectReport) -> PageFigure:
    n_gammas = len(report.grid.get("gamma", [1]))
    figure, ax = _new_figure(WIDTH, min(1.6 + 0.4 * n_gammas, 9.0))
    display = LooGridDisplay.from_cv_results(
        report.cells, majority_error=report.majority_error, ax=ax
    )
    smallest = as_percent(float(np.nanmin(display.errors)))
    alt = f"Heat map of the error over C and gamma. The smallest is {smallest}."
    return _keep(figure, alt)


def _draw_curve(report: SelectReport) -> PageFigure:
    assert report.curve is not None
    figure, ax = _new_figure(WIDTH, 3.4)
    LooCurveDisplay.from_curve(report.curve, ax=ax)
    low, high = report.curve.best_interval
    alt = (
        f"Error for every C from {short_number(report.curve.C_min)} to "
        f"{short_number(report.curve.C_max)}. Least, "
        f"{as_percent(report.curve.best_error)}, from {short_number(low)} to "
        f"{short_number(high)}."
    )
    return _keep(figure, alt)


def _draw_margins(report: SelectReport) -> PageFigure:
    figure, ax = _new_figure(WIDTH, 3.6)
    suspects = suspect_rows(report)
    LooMarginDisplay.from_result(
        report.result,
        suspects=suspects[:MAX_RINGED],
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
    figure, ax = _new_figure(4.4, 4.2)
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
    import matplotlib as mpl

    stream = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "leaveout"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    encoded = b64encode(stream.getvalue()).decode("ascii")
    return PageFigure(f"data:image/svg+xml;base64,{encoded}", alt)
