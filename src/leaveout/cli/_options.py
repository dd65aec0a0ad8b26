# SPDX-License-Identifier: BSD-3-Clause
"""Options that commands share, and the grid.

Options that several commands have, spelled as in Python, in bundles.

A command takes a bundle as one argument; ``command`` in ``_session`` spreads its fields
on the command line.

Bundles of options: a dataclass is one argument in Python, many on the command line.

typer reads the signature of a command. Here it gets one in which each argument that is
a dataclass is replaced by the fields of it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from leaveout.estimators._svc import SVC

# Else typer writes <bool>, as if there were something to type.
NO_VALUE = " "
GAMMA_WORDS = ("scale", "auto")


class Kernel(StrEnum):
    """Kernels that are positive semi-definite whatever the data."""

    RBF = "rbf"
    LINEAR = "linear"
    POLY = "poly"
    LAPLACIAN = "laplacian"
    COSINE = "cosine"


class ClassWeight(StrEnum):
    """How classes of different size are weighed."""

    BALANCED = "balanced"


def _check_jobs(n_jobs: int) -> int:
    if n_jobs == 0:
        raise typer.BadParameter("must be positive, or -1 for one per core; got 0.")
    return n_jobs


def _check_gamma(text: str | None) -> str | None:
    try:
        if text is not None and text not in GAMMA_WORDS:
            float(text)
    except ValueError as why:
        raise typer.BadParameter(
            f"'{text}' is no number, nor 'scale' or 'auto'."
        ) from why
    return text


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


def flag(*names: str, help: str) -> Any:
    """Return an option that is there or not, and takes no value."""
    return typer.Option(*names, metavar=NO_VALUE, help=help)


IdOption = Annotated[
    str | None,
    typer.Option("--id", metavar="COL", help="Column that names the samples."),
]


OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="CSV", callback=check_folder, help="File to write."
    ),
]


JobsOption = Annotated[
    int,
    typer.Option(
        "--n-jobs",
        metavar="N",
        callback=_check_jobs,
        help="Workers; -1: one per core.",
    ),
]


@dataclass(frozen=True)
class TableOptions:
    """Which samples: a file, the roles of its columns, and what is done to them."""

    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV, Parquet or svmlight file; none: breast cancer data.",
        ),
    ] = None
    target: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of DATA with the classes.")
    ] = None
    id_column: IdOption = None
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="Column to leave out; may be repeated."),
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL", help="Column of numbers to take as categories; repeatable."
        ),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Leave samples with equal entries out together: replicates.",
        ),
    ] = None
    as_they_are: Annotated[
        bool,
        flag("--no-standardize", help="Do not scale features to mean 0, variance 1."),
    ] = False

    @property
    def standardize(self) -> bool:
        """Whether features are scaled."""
        return not self.as_they_are


@dataclass(frozen=True)
class FamilyOptions:
    """What all machines of a grid share."""

    kernel: Annotated[
        Kernel, typer.Option(metavar="NAME", help=f"One of {', '.join(Kernel)}.")
    ] = Kernel.RBF
    class_weight: Annotated[
        ClassWeight | None,
        typer.Option(
            metavar="balanced", help="Give small classes the weight of large ones."
        ),
    ] = None

    def make_svc(self) -> SVC:
        """Return an SVC with these, not fitted."""
        weight = None if self.class_weight is None else self.class_weight.value
        return SVC(kernel=self.kernel.value, class_weight=weight)


@dataclass(frozen=True)
class MachineOptions(FamilyOptions):
    """One machine; what is not given of C and gamma is chosen."""

    C: Annotated[
        float | None,
        typer.Option("--C", metavar="NUMBER", help="Weight of the losses."),
    ] = None
    gamma: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            callback=_check_gamma,
            help="Kernel width; 'scale' as in scikit-learn.",
        ),
    ] = None
    degree: Annotated[
        int | None,
        typer.Option(metavar="N", help="Exponent of --kernel poly; else 3."),
    ] = None
    coef0: Annotated[
        float | None,
        typer.Option(
            "--coef0", metavar="NUMBER", help="Constant of --kernel poly; else 0."
        ),
    ] = None

    @property
    def width(self) -> float | str | None:
        """Gamma as a number, unless it is a word."""
        if self.gamma is None or self.gamma in GAMMA_WORDS:
            return self.gamma
        return float(self.gamma)


@dataclass(frozen=True)
class TalkOptions:
    """What is told, and where."""

    as_json: Annotated[bool, flag("--json", help="Print JSON instead of text.")] = False
    verbose: Annotated[
        bool, flag("--verbose", "-v", help="Show progress and where time goes.")
    ] = False
    debug: Annotated[bool, flag("--debug", help="Show the traceback of an error.")] = (
        False
    )


def flatten_dataclass_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function with the fields of its bundles as keywords of their own."""
    parameters: list[Parameter] = []
    bundles: dict[str, Any] = {}
    hints = get_type_hints(function, include_extras=True)
    for parameter in signature(function).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind):
            bundles[parameter.name] = kind
            parameters += _parameters_of(kind)
        else:
            parameters.append(parameter.replace(annotation=kind))

    @functools.wraps(function)
    def run(**flat: Any) -> None:
        for name, kind in bundles.items():
            own = {field.name: flat.pop(field.name) for field in fields(kind)}
            flat[name] = kind(**own)
        function(**flat)

    run.__signature__ = Signature(  # type: ignore[attr-defined]
        [p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters]
    )
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parameters_of(bundle: Any) -> list[Parameter]:
    hints = get_type_hints(bundle, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(bundle)
    ]
