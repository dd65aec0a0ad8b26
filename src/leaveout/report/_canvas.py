# SPDX-License-Identifier: BSD-3-Clause
"""Where the displays draw: axes, and the few colours they share.

The colours are those of Okabe and Ito (2008), which people with any of the common
colour deficiencies can tell apart; shape or hatching says the same once more, for grey
paper. matplotlib is imported when something is drawn, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import FuncFormatter

BLUE = "#0072B2"  # the result itself
VERMILION = "#D55E00"  # what is wrong
ORANGE = "#E69F00"  # what is ambiguous
GREEN = "#009E73"  # what is best
GREY = "#595959"  # what they are compared with


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
    >>> from leaveout.report._canvas import as_percent
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
    >>> from leaveout.report._canvas import short_number
    >>> short_number(0.015625), short_number(1000.0), short_number(1e-5)
    ('0.0156', '1000', '1e-05')
    """
    return f"{value:.0f}" if 1e3 <= value < 1e5 else f"{value:.3g}"
