# SPDX-License-Identifier: BSD-3-Clause
"""The leave-one-out error over C and gamma, as a heat map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.report._canvas import (
    ORANGE,
    VERMILION,
    open_axes,
    percent_formatter,
    short_number,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Up to so many columns, the number is written into each cell.
MAX_COLUMNS_WITH_TEXT = 14
MAX_TICKS = 14


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
