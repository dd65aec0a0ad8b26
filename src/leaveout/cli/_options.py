# SPDX-License-Identifier: BSD-3-Clause
"""The options of the commands, spelled as in Python.

They are fields of dataclasses, which :func:`leaveout.cli._command.command` turns into
parameters. Fields of the last base come first.
"""
# ruff: noqa: RUF009, the calls return fields

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

# Else typer writes <bool>, as if there were something to type.
NO_VALUE = " "


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
    default = how.pop("default", None)
    option = typer.Option(*names, metavar=metavar, help=help, **how)
    return field(default=default, metadata={"typer": option})


def _flag(help: str, *names: str) -> Any:
    return _value(NO_VALUE, help, *names, default=False)


def _file(metavar: str, help: str, *names: str) -> Any:
    return _value(metavar, help, *names, callback=check_folder)


IdColumn = Annotated[
    str | None, typer.Option("--id", metavar="COL", help="Column naming the samples.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="CSV", help="File to write.", callback=check_folder
    ),
]
Jobs = Annotated[
    int,
    typer.Option(metavar="N", help="Workers; -1: one per core.", callback=_check_jobs),
]


@dataclass(frozen=True)
class ColumnOptions:
    """A file, and the roles of its columns."""

    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV, Parquet or svmlight file; none: breast cancer data.",
        ),
    ] = None
    target: str | None = _value("COL", "Column of DATA with the classes.")
    id_column: IdColumn = None
    drop: list[str] | None = _value("COL", "Column to leave out; repeatable.")
    categorical: list[str] | None = _value(
        "COL", "Numbers to take as categories; repeatable."
    )
    groups: str | None = _value(
        "COL", "Samples with equal entries are left out together."
    )
    no_standardize: bool = _flag(
        "Do not scale features to mean 0, variance 1.", "--no-standardize"
    )


@dataclass(frozen=True)
class FormatOptions:
    """How numbers and text are written in a file."""

    sep: str | None = _value("CHAR", "Separator, if not the one found.")
    decimal: DecimalMark | None = _value("MARK", "Decimal mark: . or ,")
    encoding: str | None = _value("NAME", "Encoding of the text, if not UTF-8.")

    @property
    def format(self) -> dict[str, str | None]:
        r"""By the keywords of readers; \\t is a tab, which is hard to type."""
        sep = "\t" if self.sep == r"\t" else self.sep
        return {"sep": sep, "decimal": self.decimal, "encoding": self.encoding}


@dataclass(frozen=True)
class TableOptions(FormatOptions, ColumnOptions):
    """Which samples."""


@dataclass(frozen=True)
class KernelOptions:
    """A classifier without its parameters."""

    kernel: Kernel = _value("NAME", f"One of {', '.join(Kernel)}.", default=Kernel.RBF)
    class_weight: ClassWeight | None = _value(
        "balanced", "Give small classes the weight of large ones."
    )


@dataclass(frozen=True)
class ModelOptions(KernelOptions):
    """One classifier; a missing C or gamma is chosen."""

    C: float | None = _value("NUMBER", "Weight of the losses.", "--C")
    gamma: Any = _value(
        "NUMBER", "Kernel width; 'scale' as in scikit-learn.", parser=_parse_gamma
    )
    degree: int | None = _value("N", "Exponent of --kernel poly; else 3.")
    coef0: float | None = _value(
        "NUMBER", "Constant of --kernel poly; else 0.", "--coef0"
    )


@dataclass(frozen=True)
class SelectOptions:
    """What to try, and what is wanted beside the choice."""

    grid: list[str] | None = _value(
        "NAME=VALUES", "Values to try: C=1,10,100 or gamma=0.01:1:5; repeatable."
    )
    honest: bool = _flag("Also the error with the choice left out.", "--honest")
    curve: bool = _flag("Also the error for every C (two classes).", "--curve")
    save: Path | None = _file("MODEL.skops", "Write the chosen model.")
    page: Path | None = _file(
        "PAGE.html", "Write a page with figures and all samples.", "--report"
    )
    checkpoint: Path | None = _file(
        "RUN.db", "Keep finished cells; a killed run goes on from there."
    )
    n_jobs: Jobs = 1


@dataclass(frozen=True)
class ShowOptions:
    """What is printed."""

    as_json: bool = _flag("Print JSON instead of text.", "--json")
    verbose: bool = _flag("Show progress and where time goes.", "--verbose", "-v")
    debug: bool = _flag("Show the traceback of an error.", "--debug")

    @property
    def watched(self) -> bool:
        """Whether progress is shown: if asked for, or at a terminal."""
        return self.verbose or sys.stderr.isatty()
