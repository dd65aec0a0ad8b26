# SPDX-License-Identifier: BSD-3-Clause
"""The left-out margins of all samples, sorted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.loo import LooResult
from leaveout.report._canvas import (
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    lighten_frame,
    open_axes,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Intervals shorter than this share of the largest margin are points to the eye.
VISIBLE = 1e-3
MAX_NUMBERED_SUSPECTS = 12
MAX_NAME = 18  # letters
# Of a row number, as a share of the axes.
LINE_HEIGHT = 0.055


class LooMarginDisplay:
    """Left-out margins from the smallest to the largest.

    A margin below zero is an error. Bars are intervals: where they cross zero the label
    depends on which optimal intercept is taken, and the sample is ambiguous. Rings and
    names mark suspects, samples that may be mislabelled.

    Create one with ``from_result``.

    Parameters
    ----------
    margins : ndarray of shape (n,)
        Left-out margins.
    lower, upper : ndarray of shape (n,)
        Ends of their intervals; may be infinite or NaN.
    wrong : ndarray of bool, shape (n,)
        Samples whose left-out prediction is wrong.
    ambiguous : ndarray of bool, shape (n,)
        Samples whose prediction is not unique.
    suspects : array of int, optional
        Rows of suspect samples, the worst first.
    names : array-like of shape (n,), optional
        What to call the samples; by default "row" and the row.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the margins.
    figure_ : matplotlib Figure
        Figure that holds them.
    order_ : ndarray of int, shape (n_shown,)
        Rows of the samples from left to right.
    right_, wrong_, ambiguous_, suspects_ : matplotlib artists or None
        Points of the samples; None where there are none.
    intervals_ : matplotlib LineCollection or None
        Intervals long enough to be seen.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> result = lo.leave_one_out(lo.SVC(C=1, gamma=0.1), X, y)
    >>> display = lo.LooMarginDisplay.from_result(result)
    >>> len(display.wrong_.get_xdata())  # errors, at the left
    4
    """

    ax_: Axes
    figure_: Figure
    order_: np.ndarray
    right_: Artist | None
    wrong_: Artist | None
    ambiguous_: Artist | None
    suspects_: Artist | None
    intervals_: Artist | None

    def __init__(
        self,
        *,
        margins: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        wrong: BoolArray,
        ambiguous: BoolArray,
        suspects: Any = None,
        names: Any = None,
    ) -> None:
        self.margins = margins
        self.lower = lower
        self.upper = upper
        self.wrong = wrong
        self.ambiguous = ambiguous
        self.suspects = suspects
        self.names = names

    @classmethod
    def from_result(
        cls,
        result: LooResult,
        *,
        suspects: Any = None,
        names: Any = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> LooMarginDisplay:
        """Draw the margins of a leave-one-out result.

        Parameters
        ----------
        result : LooResult
            What :func:`leave_one_out` returns.
        suspects : array-like of int, optional
            Rows of suspect samples, the worst first.
        names : array-like of shape (n,), optional
            What to call the samples; by default "row" and the row.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **options
            As for :meth:`plot`.

        Returns
        -------
        LooMarginDisplay
            The display, drawn.
        """
        return cls(
            margins=result.margins,
            lower=result.lower,
            upper=result.upper,
            wrong=result.wrong,
            ambiguous=result.ambiguous,
            suspects=suspects,
            names=names,
        ).plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        n_smallest: int | None = None,
        legend: bool = True,
    ) -> LooMarginDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        n_smallest : int, optional
            Draw only so many samples, those with the smallest margins.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        LooMarginDisplay
            Itself.
        """
        if n_smallest is not None and n_smallest < 1:
            raise ValueError(f"n_smallest must be 1 or more, got {n_smallest}.")
        self.ax_ = ax = open_axes(ax)
        self.figure_ = ax.get_figure()
        self.order_ = np.argsort(self.margins, kind="stable")[:n_smallest]
        self.intervals_ = self._draw_intervals()
        self._draw_samples()
        self.suspects_ = self._ring_suspects()
        ax.axhline(0.0, color=GREY, linewidth=1.0, zorder=1)
        ax.set(
            xlabel="Samples, sorted by margin",
            ylabel="Margin when left out",
            xlim=(-0.02 * self.order_.size - 0.5, 1.02 * self.order_.size - 0.5),
        )
        lighten_frame(ax)
        if legend:
            # Above the points: names of suspects may stand in every corner.
            ax.legend(
                loc="lower left",
                bbox_to_anchor=(0.0, 1.0),
                ncols=2,
                frameon=False,
                fontsize="small",
                borderaxespad=0.3,
            )
        return self

    def _draw_samples(self) -> None:
        """Draw right, wrong and ambiguous samples; the legend says how many of all."""
        right = ~self.ambiguous & ~self.wrong
        wrong = ~self.ambiguous & self.wrong
        both = int(np.sum(self.ambiguous & self.wrong))
        self.right_ = self._draw_points(
            right, f"right: {right.sum()}", marker=".", markersize=5, color=BLUE
        )
        self.wrong_ = self._draw_points(
            wrong, f"wrong: {wrong.sum()}", marker="X", markersize=7, color=VERMILION
        )
        self.ambiguous_ = self._draw_points(
            self.ambiguous,
            f"ambiguous: {self.ambiguous.sum()} ({both} counted wrong)",
            marker="D",
            markersize=5,
            color=ORANGE,
        )

    def _draw_points(self, mask: BoolArray, label: str, **style: Any) -> Artist | None:
        """Draw the samples of a mask."""
        places = np.flatnonzero(mask[self.order_])
        if not places.size:
            return None
        (points,) = self.ax_.plot(
            places,
            self.margins[self.order_[places]],
            linestyle="",
            markeredgecolor="white" if style["marker"] != "." else style["color"],
            markeredgewidth=0.6,
            zorder=3,
            label=label,
            **style,
        )
        return points

    def _draw_intervals(self) -> Artist | None:
        """Draw bars from the lower to the upper end, infinite ones to the edge."""
        finite = self.margins[np.isfinite(self.margins)]
        reach = 1.15 * np.abs(finite).max() if finite.size else 1.0
        lower = np.clip(self.lower[self.order_], -reach, reach)
        upper = np.clip(self.upper[self.order_], -reach, reach)
        places = np.flatnonzero(upper - lower > VISIBLE * reach)
        if not places.size:
            return None
        return self.ax_.vlines(
            places,
            lower[places],
            upper[places],
            color=ORANGE,
            linewidth=1.6,
            alpha=0.7,
            zorder=2,
            label="interval over optimal intercepts",
        )

    def _ring_suspects(self) -> Artist | None:
        """Ring the suspects, and write the rows of the first of them."""
        if self.suspects is None:
            return None
        rows = np.asarray(self.suspects, dtype=np.intp)
        place_of = {int(row): place for place, row in enumerate(self.order_)}
        shown = [int(row) for row in rows if int(row) in place_of]
        if not shown:
            return None
        places = [place_of[row] for row in shown]
        (rings,) = self.ax_.plot(
            places,
            self.margins[shown],
            linestyle="",
            marker="o",
            markersize=10,
            markerfacecolor="none",
            markeredgecolor="black",
            markeredgewidth=1.0,
            zorder=4,
            label=f"suspect: {len(rows)}",
        )
        self._write_rows(places[:MAX_NUMBERED_SUSPECTS], shown[:MAX_NUMBERED_SUSPECTS])
        return rings

    def _name(self, row: int) -> str:
        """Return what a sample is called, cut where it would fill the picture."""
        name = f"row {row}" if self.names is None else str(self.names[row])
        return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"

    def _write_rows(self, places: list[int], rows: list[int]) -> None:
        """Write the rows in a column beside their points, each on a line of its own."""
        low, high = self.ax_.get_ylim()
        line = LINE_HEIGHT * (high - low)
        # To the right of all errors, which lie lower than what comes after them.
        last = max(*places, np.sum(self.margins[self.order_] < 0) - 1)
        column = last + 0.06 * self.order_.size
        height = -np.inf
        for place, row in sorted(zip(places, rows, strict=True)):
            height = max(height + line, self.margins[row])
            self.ax_.annotate(
                self._name(row),
                (place, self.margins[row]),
                xytext=(column, height),
                fontsize="small",
                va="center",
                parse_math=False,  # a name may have dollars in it
                zorder=5,
                bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.0},
                arrowprops={
                    "arrowstyle": "-",
                    "color": GREY,
                    "linewidth": 0.7,
                    "shrinkB": 6,
                },
            )
