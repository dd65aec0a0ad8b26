# SPDX-License-Identifier: BSD-3-Clause
"""Plots: LooCurveDisplay, LooGridDisplay, LooMarginDisplay.

Where the displays draw: axes, and the few colours they share.

The colours are those of Okabe and Ito (2008), which people with any of the common
colour deficiencies can tell apart; shape or hatching says the same once more, for grey
paper. matplotlib is imported when something is drawn, not before.

The leave-one-out error over C: every C, or a list of them.

The leave-one-out error over C and gamma, as a heat map.

The left-out margins of all samples, sorted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.assess._loo_curve import LooCurve
from leaveout.loo._result import LooPath, LooResult

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

BLUE = "#0072B2"  # the result itself
VERMILION = "#D55E00"  # what is wrong
ORANGE = "#E69F00"  # what is ambiguous
GREEN = "#009E73"  # what is best
GREY = "#595959"  # what they are compared with
# Height of the strip that marks ambiguous C, as a share of the axes.
STRIP = 0.035
# Up to so many columns, the number is written into each cell.
MAX_COLUMNS_WITH_TEXT = 14
MAX_TICKS = 14
# Intervals shorter than this share of the largest margin are points to the eye.
VISIBLE = 1e-3
MAX_NUMBERED_SUSPECTS = 12
MAX_NAME = 18  # letters
# Of a row number, as a share of the axes.
LINE_HEIGHT = 0.055


def open_axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """Return the axes to draw on, new ones if none are given.

    Parameters
    ----------
    ax : matplotlib Axes or None
        Axes of the caller.
    size : tuple of float
        Width and height of a new figure, in inches.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError(
            "Displays draw with matplotlib, which is not installed. Install it with "
            "pip install 'leaveout[plot]'."
        ) from missing
    if ax is not None:
        return ax
    _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax


def lighten_frame(ax: Axes, grid_axis: str | None = "y") -> None:
    """Keep the two axes that carry numbers, with a faint grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid_axis is not None:
        ax.grid(axis=grid_axis, color="0.9", linewidth=0.8)
        ax.set_axisbelow(True)


def as_percent(share: float) -> str:
    """Write a share in percent, with as many digits as it needs.

    Examples
    --------
    >>> as_percent(0.02109), as_percent(0.25)
    ('2.1 %', '25 %')
    """
    percent = 100.0 * share
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.2g} %"


def percent_formatter() -> FuncFormatter:
    """Return what writes shares on an axis in percent."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda share, _: f"{100.0 * share:.3g} %")


def short_number(value: float) -> str:
    """Write a parameter with three digits, without an exponent up to 100,000.

    Examples
    --------
    >>> short_number(0.015625), short_number(1000.0), short_number(1e-5)
    ('0.0156', '1000', '1e-05')
    """
    return f"{value:.0f}" if 1e3 <= value < 1e5 else f"{value:.3g}"


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

    __module__ = "leaveout"

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


class LooGridDisplay:
    """Leave-one-out error over C and gamma: the darker, the worse.

    The best cell has a frame. Cells where the machine is anti-learning are hatched:
    small C bring that about, since leaving out a sample makes the other class the
    majority. Where it is not known which these are, cells worse than always answering
    with the largest class are. The darkest colour is kept for the error of the largest
    class, or the worst cell that learns, and anything above. A dot marks cells with
    ambiguous samples.

    Create one with ``from_cv_results`` or ``from_estimator``.

    Parameters
    ----------
    errors : ndarray of shape (n_Cs, n_gammas)
        Leave-one-out errors; NaN where a cell was not computed.
    Cs : ndarray of shape (n_Cs,)
        Values of C, ascending.
    gammas : sequence of length n_gammas
        Values of gamma, ascending; None if the kernel has no gamma.
    best_index : tuple of int
        Row and column of the best cell.
    n_ambiguous : ndarray of shape (n_Cs, n_gammas), optional
        Number of ambiguous samples in each cell.
    anti_learning : ndarray of bool, shape (n_Cs, n_gammas), optional
        Cells where the balance of the classes decides, not the features.
    majority_error : float, optional
        Error of always answering with the largest class.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the heat map.
    figure_ : matplotlib Figure
        Figure that holds them.
    image_ : matplotlib AxesImage
        The heat map, gamma upwards and C to the right.
    best_ : matplotlib Rectangle
        Frame of the best cell.
    worse_ : list of matplotlib Rectangle
        Cells that are anti-learning, or worse than the largest class.
    ambiguous_ : matplotlib Line2D or None
        Dots in cells with ambiguous samples.
    text_ : list of matplotlib Text
        Errors in percent, in small grids.

    Examples
    --------
    >>> import numpy as np
    >>> import leaveout as lo
    >>> display = lo.LooGridDisplay(
    ...     errors=np.array([[0.5, 0.4], [0.1, 0.06]]), Cs=np.array([1.0, 10.0]),
    ...     gammas=np.array([0.1, 0.2]), best_index=(1, 1)).plot()
    >>> [text.get_text() for text in display.text_]
    ['50', '40', '10', '6.0']
    """

    __module__ = "leaveout"

    ax_: Axes
    figure_: Figure
    image_: Artist
    best_: Artist
    worse_: list[Artist]
    ambiguous_: Artist | None
    text_: list[Artist]

    def __init__(
        self,
        *,
        errors: FloatArray,
        Cs: FloatArray,
        gammas: Sequence[Any] | FloatArray | None,
        best_index: tuple[int, int],
        n_ambiguous: Any = None,
        anti_learning: BoolArray | None = None,
        majority_error: float | None = None,
    ) -> None:
        self.errors = errors
        self.Cs = Cs
        self.gammas = gammas
        self.best_index = best_index
        self.n_ambiguous = n_ambiguous
        self.anti_learning = anti_learning
        self.majority_error = majority_error

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        *,
        majority_error: float | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> LooGridDisplay:
        """Draw the table of a search, 1 - ``mean_test_score``, over its C and gamma.

        Where other parameters vary too, a cell shows the best over them.

        Parameters
        ----------
        cv_results : mapping
            ``cv_results_`` of a search whose score is the accuracy.
        majority_error : float, optional
            Error of always answering with the largest class.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **options
            As for :meth:`plot`.

        Returns
        -------
        LooGridDisplay
            The display, drawn.
        """
        return cls(**_pivot(cv_results), majority_error=majority_error).plot(
            ax, **options
        )

    @classmethod
    def from_estimator(
        cls, search: Any, *, ax: Axes | None = None, **options: Any
    ) -> LooGridDisplay:
        """Draw the grid of a fitted search.

        Parameters
        ----------
        search : LooSearchCV, SVCCV or GridSearchCV
            Fitted; its score is the accuracy.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **options
            ``majority_error``, and those of :meth:`plot`.

        Returns
        -------
        LooGridDisplay
            The display, drawn.
        """
        if not hasattr(search, "cv_results_"):
            raise ValueError(
                f"This {type(search).__name__} has no cv_results_. Fit it first, or "
                "give a search such as LooSearchCV or SVCCV."
            )
        scoring = getattr(search, "scoring", None)
        if scoring not in (None, "accuracy"):
            raise ValueError(
                f"LooGridDisplay draws errors, but the search has scoring={scoring!r}. "
                "Search by accuracy, or draw cv_results_['mean_test_score'] yourself."
            )
        return cls.from_cv_results(search.cv_results_, ax=ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        cmap: str = "Blues",
        colorbar: bool = True,
        show_text: bool | None = None,
    ) -> LooGridDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        cmap : str, default="Blues"
            Colour map, light for small errors.
        colorbar : bool, default=True
            Whether to draw the scale.
        show_text : bool, optional
            Whether to write the error into each cell; by default in grids with few
            columns.

        Returns
        -------
        LooGridDisplay
            Itself.
        """
        n_Cs, n_gammas = self.errors.shape
        size = (min(2.4 + 0.62 * n_Cs, 12.0), min(1.7 + 0.5 * n_gammas, 9.0))
        self.ax_ = ax = open_axes(ax, size)
        self.figure_ = ax.get_figure()
        top = self._end_of_scale()
        self.image_ = ax.imshow(
            self.errors.T,
            origin="lower",
            aspect="auto",
            cmap=cmap,
            vmin=float(np.nanmin(self.errors)),
            vmax=top,
        )
        if show_text is None:
            show_text = n_Cs <= MAX_COLUMNS_WITH_TEXT
        self.text_ = self._write_errors() if show_text else []
        self.worse_ = self._hatch(self._to_hatch())
        self.best_ = self._frame_best()
        self.ambiguous_ = self._dot_ambiguous()
        self._label_axes()
        if colorbar:
            self._draw_colorbar(bool(np.nanmax(self.errors) > top))
        return self

    def _to_hatch(self) -> BoolArray:
        """Mask of the anti-learning cells, or of those worse than the largest class."""
        if self.anti_learning is not None:
            return self.anti_learning
        if self.majority_error is None:
            return np.zeros(self.errors.shape, dtype=bool)
        return self.errors > self.majority_error * (1.0 + 1e-12)

    def _end_of_scale(self) -> float:
        """Return the error that gets the darkest colour."""
        learning = self.errors[~self._to_hatch()]
        learning = learning[~np.isnan(learning)]
        top = float(learning.max() if learning.size else np.nanmax(self.errors))
        if self.majority_error is None or self.majority_error <= np.nanmin(self.errors):
            return top  # all cells are worse than the largest class
        return min(top, self.majority_error)

    def _write_errors(self) -> list[Artist]:
        """Write each error in percent, dark on light and light on dark."""
        top, bottom = self.image_.norm.vmax, self.image_.norm.vmin
        texts: list[Artist] = []
        for (i, j), error in np.ndenumerate(self.errors):
            if np.isnan(error):
                continue
            dark = error - bottom > 0.6 * (top - bottom)
            percent = 100.0 * error
            texts.append(
                self.ax_.text(
                    i,
                    j,
                    f"{percent:.0f}" if percent >= 9.95 else f"{percent:.1f}",
                    ha="center",
                    va="center",
                    fontsize="small",
                    color="white" if dark else "black",
                )
            )
        return texts

    def _hatch(self, mask: BoolArray) -> list[Artist]:
        """Hatch the cells of a mask."""
        from matplotlib.patches import Rectangle

        return [
            self.ax_.add_patch(
                Rectangle(
                    (i - 0.5, j - 0.5),
                    1,
                    1,
                    fill=False,
                    hatch="////",
                    edgecolor=(1.0, 1.0, 1.0, 0.25),
                    linewidth=0,
                )
            )
            for i, j in np.argwhere(mask)
        ]

    def _frame_best(self) -> Artist:
        """Draw a frame round the best cell."""
        from matplotlib.patches import Rectangle

        i, j = self.best_index
        return self.ax_.add_patch(
            Rectangle(
                (i - 0.46, j - 0.46),
                0.92,
                0.92,
                fill=False,
                edgecolor=VERMILION,
                linewidth=2.4,
                zorder=3,
                label="best",
            )
        )

    def _dot_ambiguous(self) -> Artist | None:
        """Put a dot in the corner of every cell with ambiguous samples."""
        if self.n_ambiguous is None or not np.any(self.n_ambiguous):
            return None
        i, j = np.nonzero(self.n_ambiguous)
        (dots,) = self.ax_.plot(
            i + 0.34,
            j + 0.3,
            marker="o",
            markersize=5,
            color=ORANGE,
            markeredgecolor="white",
            linestyle="",
            label="ambiguous",
        )
        return dots

    def _label_axes(self) -> None:
        """Name the cells by their values, and say what the marks mean."""
        from matplotlib.patches import Patch

        ax = self.ax_
        _set_ticks(ax.set_xticks, self.Cs)
        ax.set_xlabel("C")
        if self.gammas is None:
            ax.set_yticks([])
        else:
            _set_ticks(ax.set_yticks, self.gammas)
            ax.set_ylabel("gamma")
        n_Cs, n_gammas = self.errors.shape
        ax.set_xticks(np.arange(n_Cs - 1) + 0.5, minor=True)
        ax.set_yticks(np.arange(n_gammas - 1) + 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1.0)
        ax.tick_params(which="both", length=0)
        ax.spines[:].set_visible(False)
        marks: list[Any] = [self.best_]
        if self.worse_:
            marks.append(
                Patch(
                    facecolor="#08306B",
                    edgecolor=(1.0, 1.0, 1.0, 0.6),
                    hatch="////",
                    linewidth=0,
                    label="worse than majority"
                    if self.anti_learning is None
                    else "anti-learning",
                )
            )
        if self.ambiguous_ is not None:
            marks.append(self.ambiguous_)
        ax.legend(
            handles=marks,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=len(marks),
            frameon=False,
            fontsize="small",
            borderaxespad=0.3,
            handlelength=1.2,
            handletextpad=0.5,
            columnspacing=1.2,
            handleheight=1.0,
        )

    def _draw_colorbar(self, is_cut: bool) -> None:
        """Draw the scale; an arrow says that cells beyond its end exist."""
        bar = self.figure_.colorbar(
            self.image_,
            ax=self.ax_,
            extend="max" if is_cut else "neither",
            format=percent_formatter(),
        )
        bar.outline.set_visible(False)
        bar.set_label("Leave-one-out error")


def _pivot(cv_results: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange the candidates of a search by C and gamma; the best one of each cell."""
    Cs, row_of = _axis_of(cv_results, "C")
    if Cs is None:
        raise ValueError(
            "The search does not vary C: LooGridDisplay needs 'param_C', or "
            "'param_<step>__C' of a Pipeline, in cv_results_."
        )
    gammas, column_of = _axis_of(cv_results, "gamma")
    ranks = np.asarray(cv_results["rank_test_score"])
    cells: dict[tuple[int, int], int] = {}
    # From the worst to the best: what is written last stays.
    for k in np.argsort(-ranks[::-1], kind="stable"):
        candidate = ranks.size - 1 - int(k)
        cells[row_of[candidate], column_of[candidate]] = candidate
    shape = len(Cs), 1 if gammas is None else len(gammas)

    def arrange(column: Any, empty: Any) -> np.ndarray:
        table = np.full(shape, empty)
        values = np.ma.filled(column, empty)
        for cell, candidate in cells.items():
            table[cell] = values[candidate]
        return table

    best = int(np.argmin(ranks))
    counts, anti = cv_results.get("n_ambiguous"), cv_results.get("anti_learning")
    return {
        "errors": 1.0 - arrange(cv_results["mean_test_score"], np.nan),
        "Cs": Cs,
        "gammas": gammas,
        "best_index": (row_of[best], column_of[best]),
        "n_ambiguous": None if counts is None else arrange(counts, 0),
        "anti_learning": None if anti is None else arrange(anti, False),
    }


def _axis_of(cv_results: Mapping[str, Any], name: str) -> tuple[Any, list[int]]:
    """Return the values of one parameter, in order, and where each candidate lies."""
    keys = [
        key
        for key in cv_results
        if key == f"param_{name}" or (key[:6] == "param_" and key.endswith(f"__{name}"))
    ]
    if len(keys) > 1:
        raise ValueError(
            f"cv_results_ has several parameters that could be {name}: "
            f"{', '.join(keys)}. Search over one of them at a time."
        )
    if not keys:
        return None, [0] * len(cv_results["mean_test_score"])
    # Candidates without this parameter, a linear kernel's gamma for one, are masked.
    column = np.ma.filled(np.ma.asarray(cv_results[keys[0]]).astype(object), "none")
    # Numbers in order, then words such as "scale".
    values = sorted(set(column.tolist()), key=lambda v: (isinstance(v, str), v))
    return values, [values.index(value) for value in column.tolist()]


def _set_ticks(set_ticks: Any, values: Any) -> None:
    """Label cells by their values, not more than fit."""
    every = -(-len(values) // MAX_TICKS)
    shown = range(0, len(values), every)
    set_ticks(
        list(shown),
        [
            v if isinstance(v, str) else short_number(v)
            for v in (values[k] for k in shown)
        ],
    )


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

    __module__ = "leaveout"

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
