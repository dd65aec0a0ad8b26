# SPDX-License-Identifier: BSD-3-Clause
"""LooPredictionDisplay: predicted against observed values of a regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import FloatArray
from leaveout.loo._regression import LooRegressionResult
from leaveout.report._displays import (
    BLUE,
    GREY,
    LEGEND_ABOVE,
    ORANGE,
    VISIBLE,
    lighten_frame,
    open_axes,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


class LooPredictionDisplay:
    """Left-out predictions against observed values.

    A sample on the diagonal is predicted without error by the model trained without it.
    Bars are intervals of predictions that depend on which optimal intercept is taken.

    Create one with ``from_result``.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Observed values.
    predictions : ndarray of shape (n,)
        Left-out predictions.
    lower, upper : ndarray of shape (n,)
        Ends of their intervals.
    title : str, default=""
        Line above the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    points_, diagonal_ : matplotlib Line2D
        The samples, and the line of perfect predictions.
    intervals_ : matplotlib LineCollection or None
        Intervals long enough to be seen.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = lo.leave_one_out(lo.SVR(C=10, epsilon=10), X[:100], y[:100])
    >>> display = lo.LooPredictionDisplay.from_result(result)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('Observed', 'Predicted when left out')
    """

    __module__ = "leaveout"

    def __init__(
        self,
        *,
        y: FloatArray,
        predictions: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        title: str = "",
    ) -> None:
        self.y = y
        self.predictions = predictions
        self.lower = lower
        self.upper = upper
        self.title = title

    @classmethod
    def from_result(
        cls, result: LooRegressionResult, *, ax: Axes | None = None, **options: Any
    ) -> LooPredictionDisplay:
        """Draw the predictions of a result; ``options`` go to :meth:`plot`."""
        values = {n: getattr(result, n) for n in ("y", "predictions", "lower", "upper")}
        scores = f"$Q^2$ {result.q2:.3f}, RMSE {result.rmse:.4g}, MAE {result.mae:.4g}"
        return cls(**values, title=scores).plot(ax, **options)

    def plot(
        self, ax: Axes | None = None, *, legend: bool = True
    ) -> LooPredictionDisplay:
        """Draw on ``ax``, or on new axes, with equal scales on both axes."""
        self.ax_ = ax = open_axes(ax, (5.0, 5.2))
        self.figure_ = ax.get_figure()
        ends = np.concatenate([self.y, self.predictions])
        margin = 0.04 * (float(np.ptp(ends)) or 1.0)
        limits = float(ends.min()) - margin, float(ends.max()) + margin
        (self.diagonal_,) = ax.plot(limits, limits, color=GREY, linewidth=1.0, zorder=1)
        self.diagonal_.set_label("predicted = observed")
        self.intervals_ = self._draw_intervals(limits)
        (self.points_,) = ax.plot(self.y, self.predictions, ".", color=BLUE, zorder=3)
        self.points_.set(markersize=6, alpha=0.7, markeredgewidth=0.0)
        self.points_.set_label(f"samples: {self.y.shape[0]}")
        ax.set(xlim=limits, ylim=limits, aspect="equal")
        ax.set(xlabel="Observed", ylabel="Predicted when left out")
        lighten_frame(ax, "both")
        if legend:
            title = {"title": self.title, "title_fontsize": "small"}
            ax.legend(ncols=2, alignment="left", **title, **LEGEND_ABOVE)
        return self

    def _draw_intervals(self, limits: tuple[float, float]) -> Artist | None:
        """Draw bars from the lower to the upper end, inside the axes."""
        lower, upper = np.clip([self.lower, self.upper], *limits)
        seen = upper - lower > VISIBLE * (limits[1] - limits[0])
        if not seen.any():
            return None
        bars = self.ax_.vlines(self.y[seen], lower[seen], upper[seen], color=ORANGE)
        bars.set(linewidth=1.6, alpha=0.7, zorder=2)
        bars.set_label("interval over optimal intercepts")
        return bars
