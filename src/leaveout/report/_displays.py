# SPDX-License-Identifier: BSD-3-Clause
"""Plots: LooCurveDisplay, LooGridDisplay, LooMarginDisplay.

As in scikit-learn, ``__init__`` keeps the numbers, and ``plot`` sets ``ax_``,
``figure_`` and the artists. The colours are those of Okabe and Ito (2008), safe for
colour-blind readers; a shape repeats what a colour says, for prints in grey. matplotlib
is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.assess._loo_curve import LooCurve
from leaveout.loo._regression import LooRegressionPath, LooRegressionResult
from leaveout.loo._result import LooPath, LooResult, wilson_interval
from leaveout.loo._summary import as_percent

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import FuncFormatter

BLUE = "#0072B2"  # the result itself
VERMILION = "#D55E00"  # wrong
ORANGE = "#E69F00"  # ambiguous
GREEN = "#009E73"  # best
GREY = "#595959"  # reference
STRIP_HEIGHT = 0.035  # strip of ambiguous C, as a share of the axes
MAX_COLUMNS_WITH_TEXT = 14  # wider grids have no numbers in their cells
MAX_TICKS = 14
VISIBLE = 1e-3  # shorter intervals, as a share of the largest margin, look like points
MAX_NAMED_SUSPECTS = 12
MAX_NAME = 18  # letters
LINE_HEIGHT = 0.055  # of a name, as a share of the axes
LEGEND_ABOVE = {
    "loc": "lower left",
    "bbox_to_anchor": (0.0, 1.0),
    "frameon": False,
    "fontsize": "small",
    "borderaxespad": 0.3,
}


def open_axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """Return the axes to draw on, new ones of a size in inches if none are given."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError(
            "Displays draw with matplotlib, which is not installed. Install it with "
            "pip install 'leaveout[plot]'."
        ) from missing
    if ax is not None:
        return ax
    return plt.subplots(figsize=size, layout="constrained")[1]


def lighten_frame(ax: Axes, grid_axis: str = "y") -> None:
    """Keep the two axes that carry numbers, with a faint grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid_axis, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


def percent_formatter() -> FuncFormatter:
    """Return a formatter that writes the shares of an axis in percent."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda share, _: f"{100.0 * share:.3g} %")


def _check_classifier(display: str, shown: Any) -> None:
    """Refuse the result or path of a regressor."""
    if isinstance(shown, LooRegressionResult | LooRegressionPath):
        raise TypeError(
            f"{display} draws results of classifiers; got a {type(shown).__name__}. "
            "Use LooPredictionDisplay.from_result for the result of a regressor."
        )


def short_number(value: float) -> str:
    """Write a parameter with three digits, without an exponent below 100,000."""
    return f"{value:.0f}" if 1e3 <= value < 1e5 else f"{value:.3g}"


class LooCurveDisplay:
    """Leave-one-out error over C, on a logarithmic axis.

    A :class:`LooCurve` is drawn as steps, a :class:`LooPath` as points. The band is
    the 95 % Wilson interval: steps much lower than it is wide are noise. The C with the
    smallest error are shaded; a hatched strip marks those where the label of some
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
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    steps_, points_, band_ : matplotlib StepPatch, Line2D, PolyCollection, or None
        The curve, the path, and the 95 % interval.
    best_ : list of matplotlib artists
        Span and line of the C with the smallest error, ring of a path's best.
    ambiguous_ : matplotlib StepPatch, Line2D or None
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

    def __init__(
        self, *, curve: LooCurve | None = None, path: LooPath | None = None
    ) -> None:
        if curve is None and path is None:
            raise ValueError("LooCurveDisplay needs a curve, a path, or both.")
        _check_classifier("LooCurveDisplay", path)
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
        """Draw a curve, and the points of a path of the same classifier if given.

        ``ax`` and ``options`` go to :meth:`plot`.
        """
        return cls(curve=curve, path=path).plot(ax, **options)

    @classmethod
    def from_path(
        cls, path: LooPath, *, ax: Axes | None = None, **options: Any
    ) -> LooCurveDisplay:
        """Draw a path; ``ax`` and ``options`` go to :meth:`plot`."""
        return cls(path=path).plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        color: str = BLUE,
        interval: bool = True,
        mark_best: bool = True,
        mark_ambiguous: bool = True,
        legend: bool = True,
    ) -> LooCurveDisplay:
        """Draw on ``ax``, or on new axes; ``name`` is for the legend."""
        self.ax_ = ax = open_axes(ax)
        self.figure_ = ax.get_figure()
        ax.set_xscale("log")
        self.band_ = self._draw_band(color) if interval else None
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
        """Draw steps, points, or hollow points on the steps."""
        self.steps_ = self.points_ = None
        if self.curve is not None:
            self.steps_ = self.ax_.stairs(
                self.curve.errors, self.curve.breakpoints, baseline=None
            )
            self.steps_.set(edgecolor=color, linewidth=1.4, label=f"{name}, every C")
            self.ax_.set_xlim(self.curve.C_min, self.curve.C_max)
        if self.path is not None:
            order, label = np.argsort(self.path.Cs), f"{name}, {len(self.path)} values"
            Cs, errors = self.path.Cs[order], self.path.errors[order]
            (self.points_,) = self.ax_.plot(Cs, errors, "o-", color=color)
            self.points_.set(markersize=5, linewidth=1, label=f"{label} of C")
            if self.curve is not None:
                self.points_.set(markerfacecolor="white", linestyle="")

    def _draw_band(self, color: str) -> Artist:
        """Shade the 95 % interval."""
        if self.curve is not None:
            Cs = self.curve.breakpoints
            errors = np.append(self.curve.errors, self.curve.errors[-1])
            low, high = wilson_interval(errors, self.curve.n_samples)
        else:
            assert self.path is not None
            order = np.argsort(self.path.Cs)
            Cs = self.path.Cs[order]
            low, high = np.array([r.interval for r in self.path.results])[order].T
        step = "post" if self.curve is not None else None
        band = self.ax_.fill_between(Cs, low, high, step=step, color=color, alpha=0.15)
        band.set(linewidth=0, label="95 % interval")
        return band

    def _draw_best(self) -> list[Artist]:
        """Shade the best C of a curve, or ring the best point of a path."""
        if self.curve is None:
            assert self.path is not None
            C, error = self.path.best_C, float(self.path.errors[self.path.best_index])
            label = f"smallest: {as_percent(error)} at C = {short_number(C)}"
            (ring,) = self.ax_.plot([C], [error], "o", color=GREEN, label=label)
            ring.set(markersize=12, markerfacecolor="none", markeredgewidth=2.0)
            return [ring]
        low, high = self.curve.best_interval
        error = self.curve.best_error
        ends = f"{short_number(low)} to {short_number(high)}"
        label = f"smallest: {as_percent(error)} for C = {ends}"
        # With a linewidth, an interval narrower than a pixel stays visible.
        span = self.ax_.axvspan(low, high, color=GREEN, alpha=0.18, linewidth=0.8)
        (line,) = self.ax_.plot([low, high], [error, error], color=GREEN, label=label)
        line.set(linewidth=4, solid_capstyle="butt")
        return [span, line]

    def _draw_ambiguous(self) -> Artist | None:
        """Mark ambiguous C by a strip along the axis, or crosses on the points."""
        shown = self.path if self.curve is None else self.curve
        assert shown is not None
        found = shown.n_ambiguous > 0
        if not found.any():
            return None
        label = f"ambiguous: up to {shown.n_ambiguous.max()} at a time"
        if isinstance(shown, LooCurve):
            heights, where = np.where(found, STRIP_HEIGHT, np.nan), shown.breakpoints
            transform = self.ax_.get_xaxis_transform()
            strip = self.ax_.stairs(heights, where, fill=True, transform=transform)
            strip.set(facecolor="white", edgecolor=ORANGE, hatch="//////", zorder=2.5)
            strip.set(linewidth=0.8, label=label)
            return strip
        Cs, errors = shown.Cs[found], shown.errors[found]
        (marks,) = self.ax_.plot(Cs, errors, "x", color=ORANGE, label=label)
        marks.set(markersize=9, markeredgewidth=2.0)
        return marks


class LooGridDisplay:
    """Leave-one-out error over C and gamma: the darker, the worse.

    The best cell has a frame. Crosses mark anti-learning cells: with such a small C,
    leaving out a sample makes the other class the majority, and class proportions alone
    decide. If it is not known which these are, cells worse than always predicting the
    largest class are crossed. The colours range from the smallest error to the largest,
    with finer steps near the smallest. Dots mark cells with ambiguous samples.

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
        Cells where class proportions alone decide.
    majority_error : float, optional
        Error of always predicting the largest class.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    image_ : matplotlib QuadMesh
        The heat map, gamma upwards and C to the right.
    best_ : matplotlib Rectangle
        Frame of the best cell.
    worse_, ambiguous_ : matplotlib Line2D or None
        Crosses and dots, as above.
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
        """Draw 1 - ``mean_test_score`` of a search by accuracy, over C and gamma.

        If other parameters vary too, a cell shows the best over them. ``ax`` and
        ``options`` go to :meth:`plot`.
        """
        display = cls(**arrange_cells(cv_results), majority_error=majority_error)
        return display.plot(ax, **options)

    @classmethod
    def from_estimator(
        cls, search: Any, *, ax: Axes | None = None, **options: Any
    ) -> LooGridDisplay:
        """Draw the grid of a fitted LooSearchCV, SVCCV or GridSearchCV.

        ``options`` are ``majority_error`` and those of :meth:`plot`.
        """
        if not hasattr(search, "cv_results_"):
            raise ValueError(
                f"This {type(search).__name__} has no cv_results_. Fit it first, or "
                "give a search such as LooSearchCV or SVCCV."
            )
        scoring = getattr(search, "scoring", None)
        if scoring is None and is_regressor(search):
            scoring = "r2"
        if scoring not in (None, "accuracy"):
            raise ValueError(
                f"LooGridDisplay draws errors, but the search has scoring={scoring!r}. "
                "Search by accuracy, or draw cv_results_['mean_test_score'] yourself."
            )
        cells = arrange_cells(search.cv_results_, getattr(search, "best_index_", None))
        display = cls(**cells, majority_error=options.pop("majority_error", None))
        return display.plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        cmap: str = "Blues",
        colorbar: bool = True,
        show_text: bool | None = None,
    ) -> LooGridDisplay:
        """Draw on ``ax``, or on new axes.

        ``cmap`` should be light for small errors; ``show_text`` writes the errors into
        the cells, by default if there are few columns.
        """
        n_Cs, n_gammas = self.errors.shape
        size = (min(2.4 + 0.62 * n_Cs, 12.0), min(1.7 + 0.5 * n_gammas, 9.0))
        self.ax_ = ax = open_axes(ax, size)
        self.figure_ = ax.get_figure()
        self.image_ = ax.pcolormesh(
            self.errors.T, cmap=cmap, norm=self._scale(), edgecolors="white"
        )
        small = n_Cs <= MAX_COLUMNS_WITH_TEXT
        show_text = small if show_text is None else show_text
        self.text_ = self._write_errors() if show_text else []
        self.best_ = self._frame_best()
        label = "worse than majority" if self.anti_learning is None else "anti-learning"
        self.worse_ = self._mark(self._worse_cells(), 0.2, "X", VERMILION, label)
        ambiguous = np.asarray(0 if self.n_ambiguous is None else self.n_ambiguous) > 0
        self.ambiguous_ = self._mark(ambiguous, 0.8, "o", ORANGE, "ambiguous")
        self._label_axes()
        if colorbar:
            ticks = self.image_.norm.inverse(np.linspace(0.0, 1.0, 5))
            bar = self.figure_.colorbar(self.image_, ax=ax, ticks=ticks)
            bar.set_ticklabels([as_percent(error) for error in ticks])
            bar.outline.set_visible(False)
            bar.set_label("Leave-one-out error")
        return self

    def _worse_cells(self) -> BoolArray:
        """Mask of the anti-learning cells, or of those worse than the largest class."""
        if self.anti_learning is not None:
            return self.anti_learning
        if self.majority_error is None:
            return np.zeros(self.errors.shape, dtype=bool)
        return self.errors > self.majority_error * (1.0 + 1e-12)

    def _scale(self) -> PowerNorm:
        """Return the scale of the colours, over all errors shown."""
        from matplotlib.colors import PowerNorm

        bottom, top = float(np.nanmin(self.errors)), float(np.nanmax(self.errors))
        # The square root separates the good cells even if the worst is far off.
        return PowerNorm(0.5, bottom, top if top > bottom else bottom + 1e-3)

    def _write_errors(self) -> list[Artist]:
        """Write each error in percent, dark on light and light on dark."""
        texts: list[Artist] = []
        for (i, j), error in np.ndenumerate(self.errors):
            if np.isnan(error):
                continue
            color = "white" if self.image_.norm(error) > 0.7 else "black"
            style = {"ha": "center", "va": "center", "fontsize": "small"}
            percent = 100.0 * error
            text = f"{percent:.0f}" if percent >= 9.95 else f"{percent:.1f}"
            texts.append(self.ax_.text(i + 0.5, j + 0.5, text, color=color, **style))
        return texts

    def _frame_best(self) -> Artist:
        """Draw a frame round the best cell."""
        from matplotlib.patches import Rectangle

        i, j = self.best_index
        frame = Rectangle((i + 0.04, j + 0.04), 0.92, 0.92, fill=False, label="best")
        frame.set(edgecolor=VERMILION, linewidth=2.4, zorder=3)
        return self.ax_.add_patch(frame)

    def _mark(
        self, mask: BoolArray, place: float, marker: str, color: str, label: str
    ) -> Artist | None:
        """Mark the cells of a mask, at a place on the diagonal of each."""
        if not mask.any():
            return None
        places = np.argwhere(mask) + place
        (marks,) = self.ax_.plot(*places.T, marker, color=color, label=label)
        marks.set(markersize=6, markeredgecolor="white", markeredgewidth=0.7)
        return marks

    def _label_axes(self) -> None:
        """Name the cells by their values, not more than fit, and explain the marks."""
        ax = self.ax_
        for axis, values in ((ax.xaxis, self.Cs), (ax.yaxis, self.gammas)):
            values = [] if values is None else values
            shown = range(0, len(values), -(-len(values) // MAX_TICKS) or 1)
            names = [v if isinstance(v, str) else short_number(v) for v in values]
            axis.set_ticks([k + 0.5 for k in shown], [names[k] for k in shown])
        ax.set(xlabel="C", ylabel=None if self.gammas is None else "gamma")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.legend(ncols=3, handlelength=1.2, columnspacing=1.2, **LEGEND_ABOVE)


def arrange_cells(
    cv_results: Mapping[str, Any], best_index: int | None = None
) -> dict[str, Any]:
    """Arrange the candidates of a search by C and gamma; the best one of each cell.

    ``best_index`` is the chosen candidate, by default the first with the best rank.
    """
    Cs, rows = _axis_of(cv_results, "C")
    if Cs is None:
        raise ValueError(
            "The search does not vary C: LooGridDisplay needs 'param_C', or "
            "'param_<step>__C' of a Pipeline, in cv_results_."
        )
    gammas, columns = _axis_of(cv_results, "gamma")
    shape = len(Cs), 1 if gammas is None else len(gammas)
    # From the worst to the best: of several values for a cell, the last one stays.
    order = np.argsort(cv_results["rank_test_score"], kind="stable")[::-1]

    def arrange(name: str, empty: Any) -> Any:
        if name not in cv_results:
            return None
        table = np.full(shape, empty)
        values = np.ma.filled(cv_results[name], empty)
        table[rows[order], columns[order]] = values[order]
        return table

    best = order[-1] if best_index is None else best_index
    return {
        "errors": 1.0 - arrange("mean_test_score", np.nan),
        "Cs": Cs,
        "gammas": gammas,
        "best_index": (int(rows[best]), int(columns[best])),
        "n_ambiguous": arrange("n_ambiguous", 0),
        "anti_learning": arrange("anti_learning", False),
    }


def _axis_of(cv_results: Mapping[str, Any], name: str) -> tuple[Any, IntArray]:
    """Return the values of one parameter, in order, and the place of each candidate."""
    params = [key for key in cv_results if key.startswith("param_")]
    keys = [k for k in params if k == f"param_{name}" or k.endswith(f"__{name}")]
    if len(keys) > 1:
        raise ValueError(
            f"cv_results_ has several parameters that could be {name}: "
            f"{', '.join(keys)}. Search over one of them at a time."
        )
    if not keys:
        return None, np.zeros(len(cv_results["mean_test_score"]), dtype=np.intp)
    # Candidates without this parameter, a linear kernel's gamma for one, are masked.
    column = np.ma.filled(np.ma.asarray(cv_results[keys[0]]).astype(object), "none")
    # Numbers in order, then words such as "scale".
    values = sorted(set(column.tolist()), key=lambda v: (isinstance(v, str), v))
    return values, np.array([values.index(value) for value in column.tolist()])


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
        Names of the samples; by default "row" and the row.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    order_ : ndarray of int, shape (n_shown,)
        Rows of the samples from left to right.
    right_, wrong_, ambiguous_, suspects_ : matplotlib Line2D or None
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
        """Draw the margins of a result; ``ax`` and ``options`` go to :meth:`plot`."""
        _check_classifier("LooMarginDisplay", result)
        fields = ("margins", "lower", "upper", "wrong", "ambiguous")
        values = {name: getattr(result, name) for name in fields}
        return cls(**values, suspects=suspects, names=names).plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        n_smallest: int | None = None,
        legend: bool = True,
    ) -> LooMarginDisplay:
        """Draw on ``ax``, or on new axes, all or the ``n_smallest`` margins."""
        if n_smallest is not None and n_smallest < 1:
            raise ValueError(f"n_smallest must be 1 or more, got {n_smallest}.")
        self.ax_ = ax = open_axes(ax)
        self.figure_ = ax.get_figure()
        self.order_ = np.argsort(self.margins, kind="stable")[:n_smallest]
        self.intervals_ = self._draw_intervals()
        ambiguous, wrong = self.ambiguous, ~self.ambiguous & self.wrong
        right = ~self.ambiguous & ~self.wrong
        both = np.sum(self.ambiguous & self.wrong)
        label = f"ambiguous: {ambiguous.sum()} ({both} counted wrong)"
        self.right_ = self._draw_points(right, ".", BLUE, f"right: {right.sum()}")
        self.wrong_ = self._draw_points(wrong, "X", VERMILION, f"wrong: {wrong.sum()}")
        self.ambiguous_ = self._draw_points(ambiguous, "D", ORANGE, label)
        self.suspects_ = self._draw_suspects()
        ax.axhline(0.0, color=GREY, linewidth=1.0, zorder=1)
        n_shown = self.order_.size
        ax.set_xlim(-0.02 * n_shown - 0.5, 1.02 * n_shown - 0.5)
        ax.set(xlabel="Samples, sorted by margin", ylabel="Margin when left out")
        lighten_frame(ax)
        if legend:  # above the axes: names of suspects may be in every corner
            ax.legend(ncols=2, **LEGEND_ABOVE)
        return self

    def _draw_points(
        self, mask: BoolArray, marker: str, color: str, label: str
    ) -> Artist | None:
        """Draw the samples of a mask; the label counts all of them, drawn or not."""
        places = np.flatnonzero(mask[self.order_])
        if not places.size:
            return None
        margins = self.margins[self.order_[places]]
        (points,) = self.ax_.plot(places, margins, marker, color=color, label=label)
        edge = color if marker == "." else "white"
        points.set(markersize=6, markeredgecolor=edge, markeredgewidth=0.6, zorder=3)
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
        bars = self.ax_.vlines(places, lower[places], upper[places], color=ORANGE)
        bars.set(linewidth=1.6, alpha=0.7, zorder=2)
        bars.set_label("interval over optimal intercepts")
        return bars

    def _draw_suspects(self) -> Artist | None:
        """Ring the suspects, and name the first of them."""
        if self.suspects is None:
            return None
        place_of = {int(row): place for place, row in enumerate(self.order_)}
        shown = [int(row) for row in self.suspects if int(row) in place_of]
        if not shown:
            return None
        places = [place_of[row] for row in shown]
        (rings,) = self.ax_.plot(places, self.margins[shown], "o", color="black")
        rings.set(markersize=10, markerfacecolor="none", zorder=4)
        rings.set_label(f"suspect: {len(self.suspects)}")
        self._name_suspects(places[:MAX_NAMED_SUSPECTS], shown[:MAX_NAMED_SUSPECTS])
        return rings

    def _name_suspects(self, places: list[int], rows: list[int]) -> None:
        """Write the names in a column beside the points, each on a line of its own."""
        low, high = self.ax_.get_ylim()
        line = LINE_HEIGHT * (high - low)
        # To the right of all errors, which lie lower than what comes after them.
        last = max(*places, int(np.sum(self.margins[self.order_] < 0)) - 1)
        column = last + 0.06 * self.order_.size
        arrow = {"arrowstyle": "-", "color": GREY, "linewidth": 0.7, "shrinkB": 6}
        box = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.0}
        height = -np.inf
        for place, row in sorted(zip(places, rows, strict=True)):
            name = f"row {row}" if self.names is None else str(self.names[row])
            if len(name) > MAX_NAME:
                name = f"{name[: MAX_NAME - 1]}…"
            height = max(height + line, self.margins[row])
            self.ax_.annotate(
                name, (place, self.margins[row]), xytext=(column, height),
                fontsize="small", va="center", zorder=5, bbox=box, arrowprops=arrow,
                parse_math=False,  # a name may have dollars in it
            )  # fmt: skip
