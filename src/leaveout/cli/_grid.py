# SPDX-License-Identifier: BSD-3-Clause
"""The parameter grid: values from the command line, the rest from the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import typer

from leaveout._messages import did_you_mean
from leaveout.kernel._gram import kernel_parameters
from leaveout.tune._choice import default_Cs, default_gammas, kernel_scale

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
        raise _bad(text, f"asks for {n_values} values; a range has 1 to {MAX_COUNT}")
    found = np.geomspace(*ends, n_values)
    return (np.rint(found) if name == "degree" else found).tolist()


def _bad(text: str, what: str, stop: str = ".") -> typer.BadParameter:
    return typer.BadParameter(
        f"'{text}' {what}{stop} Write NAME=1,10,100 or NAME=LOW:HIGH:COUNT, "
        f"with NAME one of {', '.join(GRID_PARAMETERS)}.",
        param_hint="'--grid'",
    )


def parameters_of(kernel: str) -> set[str]:
    """Return the parameters that a classifier with this kernel has."""
    return {"C", *kernel_parameters(kernel)}


def complete_grid(
    grid: dict[str, list[float]], X: Any, kernel: str
) -> dict[str, list[float]]:
    """Add the values that come from the data; refuse what the kernel cannot use."""
    uses = parameters_of(kernel)
    useless = [name for name in grid if name not in uses]
    if useless:
        raise ValueError(
            f"--grid {useless[0]}=… does not apply to --kernel {kernel}, which has "
            f"{' and '.join(sorted(uses))}."
        )
    full = {"C": grid.get("C") or default_Cs(kernel_scale(X, kernel)).tolist()}
    if "gamma" in uses:
        full["gamma"] = grid.get("gamma") or default_gammas(X, kernel).tolist()
    return full | {name: grid[name] for name in ("degree", "coef0") if name in grid}
