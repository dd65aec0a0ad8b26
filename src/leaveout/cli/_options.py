# SPDX-License-Identifier: BSD-3-Clause
"""The options of the commands, spelled as in Python.

They are fields of dataclasses, which :func:`leaveout.cli._command.command` turns into
parameters. Fields of the last base come first.
"""
# ruff: noqa: RUF009, the calls return fields

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from leaveout.cli._grid import parse_grid

# Kernels that are positive semi-definite for any data.
KERNELS = ("rbf", "linear", "poly", "laplacian", "cosine")


def reader(
    what: str, kind: Callable[[str], Any] = str, fits: Callable[[Any], bool] = bool
) -> Callable[[Any], Any]:
    """Return a function that reads a value, or says what was expected and given."""

    def read(text: Any) -> Any:
        with suppress(ValueError):
            value = kind(text)
            if fits(value):
                return value
        raise typer.BadParameter(f"expected {what}; got '{text}'.")

    return read


def _read_sep(text: str) -> str:
    return "\t" if text == r"\t" else text  # a tab is hard to type


def _read_gamma(text: str) -> float | str:
    return text if text in ("scale", "auto") else float(text)


def _check_grid(texts: list[str] | None) -> list[str] | None:
    parse_grid(texts)
    return texts


def _refuse_single(context: typer.Context, text: str | None) -> None:
    if text is not None:
        context.fail(
            "leaveout select takes lists of values: --grid C=1,10,100 --grid "
            "gamma=0.01,0.1. leaveout loo takes single values."
        )


def check_folder(path: Path | None) -> Path | None:
    """Refuse a file that cannot be written, before any work is done."""
    if path is None:
        return path
    folder, what = path.absolute().parent, ""
    if path.is_dir():
        what = "is a folder"
    elif str(path) == "-" or (path.exists() and not path.is_file()):
        what = "is not a file"
    elif not folder.is_dir():
        what = f"there is no folder '{path.parent}'"
    elif not os.access(folder, os.W_OK | os.X_OK):
        what = f"the folder '{folder}' is not writable"
    if what:
        raise typer.BadParameter(f"'{path}': {what}. Give the path of a file to write.")
    return path


def check_ending(path: Path | None, what: str, *endings: str) -> Path | None:
    """Refuse a file whose name promises another format than the one written."""
    if path is not None and path.suffix and path.suffix.lower() not in endings:
        right = path.with_suffix(endings[0])
        raise typer.BadParameter(
            f"'{path}': {what}, not {path.suffix}. Write '{right}'."
        )
    return check_folder(path)


def _check_page(path: Path | None) -> Path | None:
    return check_ending(path, "the report is an HTML page", ".html", ".htm")


def _check_model(path: Path | None) -> Path | None:
    return check_ending(path, "models are saved as .skops", ".skops")


def _value(metavar: str | None, help: str, *names: str, **how: Any) -> Any:
    default = how.pop("default", None)
    option = typer.Option(*names, metavar=metavar, help=help, **how)
    return field(default=default, metadata={"typer": option})


def _choice(
    metavar: str, help: str, words: Sequence[str], default: str | None = None
) -> Any:
    *others, last = map(repr, words)
    what = f"{', '.join(others)} or {last}" if others else last
    parser = reader(what, fits=lambda word: word in words)
    how = {"parser": parser, "autocompletion": lambda: list(words)}
    return _value(metavar, help, default=default, **how)


def _flag(help: str, *names: str) -> Any:
    return _value(None, help, *names, default=False)


def _file(metavar: str, help: str, *names: str, check: Any = check_folder) -> Any:
    return _value(metavar, help, *names, callback=check)


IdColumn = Annotated[
    str | None,
    typer.Option("--id", metavar="COL", help="Column with the sample names."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write one row per sample to this file.",
        callback=check_folder,
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Number of workers; -1: one per core.",
        parser=reader("a positive whole number, or -1 for one per core", int),
    ),
]


@dataclass(frozen=True)
class ColumnOptions:
    """A file, and the roles of its columns."""

    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV, Parquet or svmlight file, also as .gz; - reads stdin. "
            "Default: breast-cancer data.",
        ),
    ] = None
    target: str | None = _value("COL", "Column with the classes.")
    id_column: IdColumn = None
    drop: list[str] | None = _value("COL", "Column to leave out; repeatable.")
    categorical: list[str] | None = _value(
        "COL", "Column of codes to treat as categories; repeatable."
    )
    no_standardize: bool = _flag(
        "Do not scale features to mean 0, variance 1.", "--no-standardize"
    )


@dataclass(frozen=True)
class GroupOptions(ColumnOptions):
    """Also a column of groups."""

    groups: str | None = _value("COL", "Column of groups to leave out together.")


@dataclass(frozen=True)
class FormatOptions:
    """How numbers and text are written in a file."""

    sep: str | None = _value(
        "CHAR",
        "Separator; detected by default.",
        parser=reader("one character", _read_sep, lambda sep: len(sep) == 1),
    )
    decimal: str | None = _choice(
        "MARK", "Decimal mark, . or , ; detected by default.", (".", ",")
    )
    encoding: str | None = _value("NAME", "Text encoding; default UTF-8.")

    @property
    def format(self) -> dict[str, str | None]:
        """Keywords of the readers."""
        return {"sep": self.sep, "decimal": self.decimal, "encoding": self.encoding}


@dataclass(frozen=True)
class TableOptions(FormatOptions, ColumnOptions):
    """A file, the roles of its columns, and its format."""


@dataclass(frozen=True)
class GroupedTableOptions(TableOptions, GroupOptions):
    """The same with groups."""


@dataclass(frozen=True)
class KernelOptions:
    """A classifier without its parameters."""

    kernel: str = _choice("NAME", f"One of {', '.join(KERNELS)}.", KERNELS, "rbf")
    class_weight: str | None = _choice(
        "balanced", "Give all classes the same total weight.", ("balanced",)
    )


@dataclass(frozen=True)
class ModelOptions(KernelOptions):
    """One classifier; a missing C or gamma is chosen."""

    C: float | None = _value(
        "NUMBER",
        "Regularization parameter; chosen if omitted.",
        "--C",
        parser=reader("a positive number", float, lambda C: 0 < C < math.inf),
    )
    gamma: Any = _value(
        "NUMBER",
        "Kernel coefficient, 'scale' or 'auto'; chosen if omitted.",
        parser=reader(
            "a number >= 0, 'scale' or 'auto'",
            _read_gamma,
            lambda gamma: isinstance(gamma, str) or 0 <= gamma < math.inf,
        ),
    )
    degree: int | None = _value(
        "N",
        "Degree of --kernel poly; default 3.",
        parser=reader("a whole number >= 0", int, lambda degree: degree >= 0),
    )
    coef0: float | None = _value(
        "NUMBER",
        "Constant of --kernel poly; default 0.",
        "--coef0",
        parser=reader("a number", float, math.isfinite),
    )


@dataclass(frozen=True)
class SelectOptions:
    """The grid, what else to compute, and the files to write."""

    grid: list[str] | None = _value(
        "NAME=VALUES",
        "Values to try: C=1,10,100 or gamma=0.01:1:5; repeatable.",
        callback=_check_grid,
    )
    single: str | None = _value(
        "NUMBER",
        "",
        *("--C", "--gamma", "--degree", "--coef0"),
        hidden=True,
        callback=_refuse_single,
    )
    honest: bool = _flag(
        "Also compute the error to report: with tuning included, by nested "
        "leave-one-out.",
        "--honest",
    )
    curve: bool = _flag(
        "Also compute the error for every C in the range of the grid (two classes).",
        "--curve",
    )
    save: Path | None = _file(
        "MODEL.skops", "Write the chosen model.", check=_check_model
    )
    page: Path | None = _file(
        "PAGE.html",
        "Write a page with figures and all samples.",
        "--report",
        check=_check_page,
    )
    checkpoint: Path | None = _file(
        "RUN.db",
        "Store finished work; after Ctrl-C or a crash, the same command resumes.",
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
        """Whether progress is shown: with --verbose, or at a terminal."""
        return self.verbose or sys.stderr.isatty()
