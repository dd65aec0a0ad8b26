# SPDX-License-Identifier: BSD-3-Clause
"""The leave-one-out error over C: every C, or a list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.loo import LooCurve, LooPath
from leaveout.report._canvas import (
    BLUE,
    GREEN,
    ORANGE,
    as_percent,
    lighten_frame,
    open_axes,
    percent_formatter,
    short_number,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Height of the strip that marks ambiguous C, as a share of the axes.
STRIP = 0.035


class LooCurveDisplay:
    """Leave-one-out error over C, on a logarithmic axis.

    A :class:`LooCurve` is drawn as steps, a :class:`LooPath` as points. The band is one
    standard error either way: steps much lower than it is wide are noise. The C with
    the least error are shaded; a hatched strip marks those where the label of some
    sample depends on which optimal intercept is taken.

    Create one with ``from_curve`` or ``from_path``.

    Parameters
    ----------
    curve : LooCurve or None
        Error for every C.
    path : LooPath or None
        Error for some C.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure that holds them.
    steps_ : matplotlib StepPatch or None
        The curve.
    points_ : matplotlib Line2D or None
        The path.
    band_ : matplotlib PolyCollection or None
        One standard error either way.
    best_ : list of matplotlib artists
        Span and line of the C with the least error.
    ambiguous_ : matplotlib PolyCollection, Line2D or None
        Strip of ambiguous C, crosses on the points of a path.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> curve = lo.loo_curve(lo.SVC(gamma=0.1), X[50:], y[50:], C_max=100)
    >>> display = lo.LooCurveDisplay.from_curve(curve)
    >>> display.ax_.get_xlabel(), display.ax_.get_xscale()
    ('C', 'log')
    """

    ax_: Axes
    figure_: Figure
    steps_: Artist | None
    points_: Artist | None
    band_: Artist | None
    best_: list[Artist]
    ambiguous_: Artist | None

    def __init__(
        self, *, curve: LooCurve | None = None, path: LooPath | None = None
    ) -> None:
        if curve is None and path is None:
            raise ValueError("LooCurveDisplay needs a curve, a path, or both.")
        self.curve = curve
        self.path = path

    @classmethod
    def from_curve(
        cls,
        curve: LooCurve,
        *,
        path: LooPath | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> LooCurveDisplay:
        """Draw the error for every C.

        Parameters
        ----------
        curve : LooCurve
            What :func:`loo_curve` returns.
        path : LooPath, optional
            Some C of the same machine, drawn as points on the curve.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **options
            As for :meth:`plot`.

        Returns
        -------
        LooCurveDisplay
            The display, drawn.
        """
        return cls(curve=curve, path=path).plot(ax, **options)

    @classmethod
    def from_path(
        cls, path: LooPath, *, ax: Axes | None = None, **options: Any
    ) -> LooCurveDisplay:
        """Draw the error for a list of C.

        Parameters
        ----------
        path : LooPath
            What :func:`loo_path` returns.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **options
            As for :meth:`plot`.

        Returns
        -------
        LooCurveDisplay
            The display, drawn.
        """
        return cls(path=path).plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        color: str = BLUE,
        standard_error: bool = True,
        mark_best: bool = True,
        mark_ambiguous: bool = True,
        legend: bool = True,
    ) -> LooCurveDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        name : str, optional
            What the legend calls the machine.
        color : str
            Colour of steps and points.
        standard_error : bool, default=True
            Whether to draw a band of one standard error either way.
        mark_best : bool, default=True
            Whether to shade the C with the least error.
        mark_ambiguous : bool, default=True
            Whether to mark the C where labels are ambiguous.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        LooCurveDisplay
            Itself.
        """
        self.ax_ = ax = open_axes(ax)
        self.figure_ = ax.get_figure()
        ax.set_xscale("log")
        self.band_ = self._draw_band(color) if standard_error else None
        self._draw_errors(name or "leave-one-out error", color)
        self.best_ = self._draw_best() if mark_best else []
        self.ambiguous_ = self._draw_ambiguous() if mark_ambiguous else None
        ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter(percent_formatter())
        ax.set(xlabel="C", ylabel="Leave-one-out error")
        lighten_frame(ax)
        if legend:
            ax.legend(edgecolor="none", framealpha=0.9, fontsize="small")
        return self

    def _draw_errors(self, name: str, color: str) -> None:
        """Draw steps, points, or points on the steps."""
        ax, curve, path = self.ax_, self.curve, self.path
        self.steps_ = self.points_ = None
        if curve is not None:
            self.steps_ = ax.stairs(
                curve.errors,
                curve.breakpoints,
                baseline=None,
                color=color,
                linewidth=1.4,
                label=f"{name}, every C",
            )
            ax.set_xlim(curve.C_min, curve.C_max)
        if path is not None:
            order = np.argsort(path.Cs)
            (self.points_,) = ax.plot(
                path.Cs[order],
                path.errors[order],
                marker="o",
                markersize=5,
                color=color,
                markerfacecolor="white" if curve is not None else color,
                linestyle="" if curve is not None else "-",
                linewidth=1.0,
                label=f"{name}, {len(path)} values of C",
            )

    def _draw_band(self, color: str) -> Artist:
        """Shade one standard error either way."""
        Cs, errors, widths = self._errors_and_widths()
        return self.ax_.fill_between(
            Cs,
            np.maximum(errors - widths, 0.0),
            np.minimum(errors + widths, 1.0),
            step="post" if self.curve is not None else None,
            color=color,
            alpha=0.15,
            linewidth=0,
            label="one standard error",
        )

    def _errors_and_widths(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return C, error and standard error along the axis."""
        if self.curve is not None:
            errors = np.append(self.curve.errors, self.curve.errors[-1])
            widths = np.sqrt(errors * (1.0 - errors) / self.curve.n_samples)
            return self.curve.breakpoints, errors, widths
        assert self.path is not None
        order = np.argsort(self.path.Cs)
        widths = np.array([result.standard_error for result in self.path.results])
        return self.path.Cs[order], self.path.errors[order], widths[order]

    def _draw_best(self) -> list[Artist]:
        """Shade the C with the least error."""
        if self.curve is None:
            return self._mark_best_point()
        low, high = self.curve.best_interval
        error = self.curve.best_error
        ends = f"{short_number(low)} to {short_number(high)}"
        label = f"least: {as_percent(error)} for C = {ends}"
        # The line round the span keeps an interval narrower than a pixel in sight.
        span = self.ax_.axvspan(
            low, high, facecolor=GREEN, edgecolor=GREEN, alpha=0.18, linewidth=0.8
        )
        (line,) = self.ax_.plot(
            [low, high], [error, error], color=GREEN, linewidth=4, label=label
        )
        line.set_solid_capstyle("butt")
        return [span, line]

    def _mark_best_point(self) -> list[Artist]:
        """Ring the best of a list of C."""
        assert self.path is not None
        C, error = self.path.best_C, float(self.path.errors[self.path.best_index])
        return self.ax_.plot(
            [C],
            [error],
            marker="o",
            markersize=12,
            markerfacecolor="none",
            markeredgecolor=GREEN,
            markeredgewidth=2.0,
            linestyle="",
            label=f"least: {as_percent(error)} at C = {short_number(C)}",
        )

    def _draw_ambiguous(self) -> Artist | None:
        """Mark C where labels are ambiguous, by a strip along the axis."""
        if self.curve is None:
            return self._mark_ambiguous_points()
        runs = _runs(self.curve.n_ambiguous > 0, self.curve.breakpoints)
        if not runs:
            return None
        return self.ax_.broken_barh(
            runs,
            (0.0, STRIP),
            transform=self.ax_.get_xaxis_transform(),
            facecolor="white",
            edgecolor=ORANGE,
            hatch="//////",
            linewidth=0.8,
            zorder=2.5,
            label=f"ambiguous: up to {self.curve.n_ambiguous.max()} at a time",
        )

    def _mark_ambiguous_points(self) -> Artist | None:
        """Cross the values of C at which some label is ambiguous."""
        assert self.path is not None
        found = self.path.n_ambiguous > 0
        if not found.any():
            return None
        (marks,) = self.ax_.plot(
            self.path.Cs[found],
            self.path.errors[found],
            marker="x",
            color=ORANGE,
            markersize=9,
            markeredgewidth=2.0,
            linestyle="",
            label=f"ambiguous: up to {self.path.n_ambiguous.max()} at a time",
        )
        return marks


def _runs(mask: BoolArray, edges: FloatArray) -> list[tuple[float, float]]:
    """Return start and length of the ranges where neighbouring intervals are marked."""
    changes = np.diff(mask.astype(int), prepend=0, append=0)
    starts, ends = edges[changes == 1], edges[changes == -1]
    return list(zip(starts.tolist(), (ends - starts).tolist(), strict=True))
