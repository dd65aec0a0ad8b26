# SPDX-License-Identifier: BSD-3-Clause
"""The values of ``--grid``. No imports of NumPy: a mistake is reported at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import typer

from leaveout._messages import did_you_mean

GRID_PARAMETERS = ("C", "gamma", "degree", "coef0")
# More values would take hours, or all memory if mistyped.
MAX_COUNT = 1000


def parse_grid(texts: Sequence[str] | None) -> dict[str, list[float]]:
    """Read "C=0.1,1,10" or "C=0.01:1000:6", six values evenly spaced in log."""
    grid: dict[str, list[float]] = {}
    for text in texts or ():
        name, _, values = (part.strip() for part in text.partition("="))
        if not values:
            raise _bad(text, "has no values")
        if name not in GRID_PARAMETERS:
            hint = did_you_mean(name, GRID_PARAMETERS)
            raise _bad(text, f"does not name a parameter of the grid.{hint}", "")
        if name in grid:
            raise _bad(text, f"gives {name} a second time")
        grid[name] = sorted(set(_parse_values(text, name, values)))
    return grid


def _parse_values(text: str, name: str, values: str) -> list[float]:
    try:
        if ":" in values:
            found = _spread(text, name, *values.split(":"))
        else:
            found = [float(value) for value in values.split(",")]
    except (ValueError, TypeError) as why:
        raise _bad(text, "is not a list of numbers") from why
    if not all(map(math.isfinite, found)):
        raise _bad(text, "has a value that is not finite")
    if name != "coef0" and min(found) <= 0:
        raise _bad(text, "has a value that is not positive")
    if name != "degree":
        return found
    if not all(value.is_integer() for value in found):
        raise _bad(text, "has a degree that is not a whole number")
    return [int(value) for value in found]


def _spread(text: str, name: str, low: str, high: str, count: str) -> list[float]:
    """Return values evenly spaced on a log scale; degrees are rounded."""
    ends, n_values = (float(low), float(high)), int(count)
    if not all(0 < end < math.inf for end in ends):
        raise _bad(text, "has an end that is not positive; the scale is logarithmic")
    if not 1 <= n_values <= MAX_COUNT:
        raise _bad(text, f"has {n_values} values; a range has 1 to {MAX_COUNT}")
    start, stop = map(math.log10, ends)
    step = (stop - start) / max(1, n_values - 1)
    inner = [10.0 ** (start + k * step) for k in range(1, n_values - 1)]
    found = [ends[0], *inner, ends[1]][:n_values]  # the ends to the last bit
    return [float(round(x)) for x in found] if name == "degree" else found


def _bad(text: str, what: str, stop: str = ".") -> typer.BadParameter:
    return typer.BadParameter(
        f"'{text}' {what}{stop} Write NAME=1,10,100 or NAME=LOW:HIGH:COUNT, "
        f"with NAME one of {', '.join(GRID_PARAMETERS)}.",
        param_hint="'--grid'",
    )
