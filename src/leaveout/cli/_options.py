# SPDX-License-Identifier: BSD-3-Clause
"""Arguments and options that several commands have, spelled as in Python."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


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


def check_folder(path: Path | None) -> Path | None:
    """Refuse a file in a folder that does not exist, before any work is done."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        what = "is a folder" if path.is_dir() else f"no folder '{path.parent}'"
        raise typer.BadParameter(f"'{path}': {what}. Give the path of a file to write.")
    return path


DataArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet or svmlight file; none: breast cancer data.",
    ),
]
TargetOption = Annotated[
    str | None, typer.Option(metavar="COL", help="Column of DATA with the classes.")
]
IdOption = Annotated[
    str | None,
    typer.Option("--id", metavar="COL", help="Column that names the samples."),
]
DropOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="Column to leave out; may be repeated."),
]
CategoricalOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL", help="Column of numbers to take as categories; repeatable."
    ),
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="Leave samples with equal entries out together: replicates."
    ),
]
KernelOption = Annotated[Kernel, typer.Option(help="Kernel of the machine.")]
ClassWeightOption = Annotated[
    ClassWeight | None,
    typer.Option(help="Give small classes the weight of large ones."),
]
StandardizeOption = Annotated[
    bool,
    typer.Option(
        "--standardize/--no-standardize", help="Scale features to mean 0, variance 1."
    ),
]
PenaltyOption = Annotated[
    float | None, typer.Option("--C", metavar="NUMBER", help="Weight of the losses.")
]
GammaOption = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Kernel width; 'scale' as in scikit-learn."),
]
DegreeOption = Annotated[int, typer.Option(help="Exponent of --kernel poly.")]
Coef0Option = Annotated[
    float, typer.Option("--coef0", help="Constant of --kernel poly.")
]
JobsOption = Annotated[
    int,
    typer.Option("--n-jobs", callback=_check_jobs, help="Workers; -1: one per core."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="CSV", callback=check_folder, help="File to write."
    ),
]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show progress and where time goes.")
]
DebugOption = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of an error.")
]
