# SPDX-License-Identifier: BSD-3-Clause
"""The options of the commands, spelled as in Python, and the grid."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leaveout._messages import did_you_mean

if TYPE_CHECKING:
    from leaveout.estimators._svc import SVC

# Else typer writes <bool>, as if there were something to type.
NO_VALUE = " "
GRID_PARAMETERS = ("C", "gamma", "degree", "coef0")
# A finer range takes hours, and a mistyped one all memory.
MAX_COUNT = 1000


class Kernel(StrEnum):
    """Kernels that are positive semi-definite for any data."""

    RBF = "rbf"
    LINEAR = "linear"
    POLY = "poly"
    LAPLACIAN = "laplacian"
    COSINE = "cosine"


class ClassWeight(StrEnum):
    """How classes of different size are weighted."""

    BALANCED = "balanced"


class DecimalMark(StrEnum):
    """Marks between the whole part of a number and its fraction."""

    POINT = "."
    COMMA = ","


def _check_jobs(n_jobs: int) -> int:
    if n_jobs == 0:
        raise typer.BadParameter("must be positive, or -1 for one per core; got 0.")
    return n_jobs


def _parse_gamma(text: str) -> float | str:
    try:
        return text if text in ("scale", "auto") else float(text)
    except ValueError as why:
        raise typer.BadParameter(
            f"'{text}' is not a number, nor 'scale' or 'auto'."
        ) from why


def parse_sep(text: str | None) -> str | None:
    r"""Return a separator; \\t is a tab, which is hard to type."""
    return "\t" if text == r"\t" else text


def check_folder(path: Path | None) -> Path | None:
    """Refuse a file that cannot be written, before any work is done."""
    if path is None:
        return path
    folder, what = path.absolute().parent, ""
    if path.is_dir():
        what = "is a folder"
    elif not folder.is_dir():
        what = f"no folder '{path.parent}'"
    elif not os.access(folder, os.W_OK | os.X_OK):
        what = f"the folder '{folder}' may not be written to"
    if what:
        raise typer.BadParameter(f"'{path}': {what}. Give the path of a file to write.")
    return path


def _value(metavar: str, help: str, *names: str, **how: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, **how)


def _flag(help: str, *names: str) -> Any:
    return typer.Option(*names, metavar=NO_VALUE, help=help)


def _file(metavar: str, help: str, *names: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, callback=check_folder)


Data = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet or svmlight file; none: breast cancer data.",
    ),
]
Target = Annotated[str | None, _value("COL", "Column of DATA with the classes.")]
IdColumn = Annotated[str | None, _value("COL", "Column naming the samples.", "--id")]
Drop = Annotated[list[str] | None, _value("COL", "Column to leave out; repeatable.")]
Categorical = Annotated[
    list[str] | None, _value("COL", "Numbers to take as categories; repeatable.")
]
Groups = Annotated[
    str | None, _value("COL", "Samples with equal entries are left out together.")
]
NoStandardize = Annotated[
    bool, _flag("Do not scale features to mean 0, variance 1.", "--no-standardize")
]
Sep = Annotated[str | None, _value("CHAR", "Separator, if not the one found.")]
Decimal = Annotated[DecimalMark | None, _value("MARK", "Decimal mark: . or ,")]
Encoding = Annotated[str | None, _value("NAME", "Encoding of the text, if not UTF-8.")]
KernelName = Annotated[Kernel, _value("NAME", f"One of {', '.join(Kernel)}.")]
Weight = Annotated[
    ClassWeight | None,
    _value("balanced", "Give small classes the weight of large ones."),
]
C = Annotated[float | None, _value("NUMBER", "Weight of the losses.", "--C")]
Gamma = Annotated[
    Any,
    _value("NUMBER", "Kernel width; 'scale' as in scikit-learn.", parser=_parse_gamma),
]
Degree = Annotated[int | None, _value("N", "Exponent of --kernel poly; else 3.")]
Coef0 = Annotated[
    float | None, _value("NUMBER", "Constant of --kernel poly; else 0.", "--coef0")
]
Grid = Annotated[
    list[str] | None,
    _value("NAME=VALUES", "Values to try: C=1,10,100 or gamma=0.01:1:5; repeatable."),
]
Honest = Annotated[bool, _flag("Also the error with the choice left out.", "--honest")]
Curve = Annotated[bool, _flag("Also the error for every C (two classes).", "--curve")]
Save = Annotated[Path | None, _file("MODEL.skops", "Write the chosen model.", "--save")]
Page = Annotated[
    Path | None,
    _file("PAGE.html", "Write a page with figures and all samples.", "--report"),
]
Checkpoint = Annotated[
    Path | None,
    _file("RUN.db", "Keep finished cells; a killed run goes on from there."),
]
Top = Annotated[int, typer.Option(min=1, help="How many samples to list.")]
Output = Annotated[Path | None, _file("CSV", "File to write.", "--output", "-o")]
Jobs = Annotated[
    int,
    _value("N", "Workers; -1: one per core.", "--n-jobs", callback=_check_jobs),
]
Json = Annotated[bool, _flag("Print JSON instead of text.", "--json")]
Verbose = Annotated[
    bool, _flag("Show progress and where time goes.", "--verbose", "-v")
]
Debug = Annotated[bool, _flag("Show the traceback of an error.", "--debug")]


@dataclass(frozen=True)
class TableOptions:
    """Which samples: a file, how it is read, and the roles of its columns."""

    data: Path | None
    target: str | None
    id_column: str | None
    groups: str | None
    drop: Sequence[str] | None
    categorical: Sequence[str] | None
    sep: str | None
    decimal: str | None
    encoding: str | None
    no_standardize: bool


@dataclass(frozen=True)
class ModelOptions:
    """One classifier; a missing C or gamma is chosen."""

    kernel: Kernel
    class_weight: ClassWeight | None
    n_jobs: int
    C: float | None = None
    gamma: float | str | None = None
    degree: int | None = None
    coef0: float | None = None

    def make_svc(self) -> SVC:
        """Return an SVC with this kernel and weight, not fitted."""
        from leaveout.estimators._svc import SVC

        weight = None if self.class_weight is None else self.class_weight.value
        return SVC(kernel=self.kernel.value, class_weight=weight)


def parse_grid(texts: Sequence[str] | None) -> dict[str, list[float]]:
    """Read "C=0.1,1,10" or "C=0.01:1000:6", six values evenly apart in logarithm."""
    grid: dict[str, list[float]] = {}
    for text in texts or ():
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals or not values.strip():
            raise _bad(text, "has no values")
        if name not in GRID_PARAMETERS:
            hint = did_you_mean(name, GRID_PARAMETERS)
            raise _bad(text, f"names no parameter of the grid.{hint}", "")
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
    """Return values evenly apart in logarithm; degrees are the nearest whole ones."""
    import numpy as np

    ends, n_values = (float(low), float(high)), int(count)
    if not all(0 < end < math.inf for end in ends):
        raise _bad(text, "has an end that is not positive, so it has no logarithm")
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
    from leaveout.kernel._gram import kernel_parameters

    return {"C", *kernel_parameters(kernel)}


def complete_grid(
    grid: dict[str, list[float]], X: Any, kernel: str
) -> dict[str, list[float]]:
    """Add the values that come from the data; refuse what the kernel cannot use."""
    from leaveout.tune._choice import default_Cs, default_gammas, kernel_scale

    uses = parameters_of(kernel)
    useless = [name for name in grid if name not in uses]
    if useless:
        raise ValueError(
            f"--grid {useless[0]}=… has no meaning for --kernel {kernel}, which has "
            f"{' and '.join(sorted(uses))}."
        )
    full = {"C": grid.get("C") or default_Cs(kernel_scale(X, kernel)).tolist()}
    if "gamma" in uses:
        full["gamma"] = grid.get("gamma") or default_gammas(X, kernel).tolist()
    return full | {name: grid[name] for name in ("degree", "coef0") if name in grid}
