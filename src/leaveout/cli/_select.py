# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout select``: choose C and gamma."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from sklearn.preprocessing import StandardScaler

from leaveout._typing import FloatArray
from leaveout.data import Dataset, load_example, read_dataset
from leaveout.estimators import SVC, leave_one_out
from leaveout.report import format_choice, format_dataset, format_grid
from leaveout.run import map_parallel
from leaveout.select import GridErrors, default_Cs, default_gammas, needs_gamma


class Kernel(StrEnum):
    """Kernels that are positive semi-definite whatever the data."""

    RBF = "rbf"
    LINEAR = "linear"
    POLY = "poly"
    LAPLACIAN = "laplacian"
    COSINE = "cosine"


def select(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]", help="CSV file with a header; none: breast cancer data."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column of DATA that holds the classes.")
    ] = None,
    kernel: Annotated[Kernel, typer.Option(help="Kernel of the machine.")] = Kernel.RBF,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of text.")
    ] = False,
    n_jobs: Annotated[int, typer.Option(help="Cells at a time; -1: one per core.")] = 1,
) -> None:
    """Choose C and gamma by exact leave-one-out over a grid."""
    if n_jobs == 0:
        _fail("--n-jobs must be a positive number, or -1 for one per core; got 0.")
    started = time.perf_counter()
    dataset = _load(data, target)
    with _plain_warnings():
        grid = _search(dataset, kernel.value, n_jobs)
    seconds = time.perf_counter() - started
    if as_json:
        print(json.dumps(_as_dict(dataset, grid, kernel.value, seconds), indent=2))
    else:
        print(_as_text(dataset, grid, kernel.value, seconds))


def _load(data: Path | None, target: str | None) -> Dataset:
    """Read the data; a mistake of the user ends the run with its message alone."""
    if data is None and target is not None:
        _fail("--target names a column of DATA, but no file is given.")
    if data is None:
        return load_example()
    try:
        return read_dataset(data, target)
    except (OSError, ValueError) as mistake:
        _fail(str(mistake))


def _fail(message: str) -> NoReturn:
    """End the run with exit code 2 and nothing but the message."""
    typer.echo(message, err=True)
    raise typer.Exit(2)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show each warning once, as its message, on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = lambda message, *_: typer.echo(
            f"Warning: {message}", err=True
        )
        yield


def _search(dataset: Dataset, kernel: str, n_jobs: int) -> GridErrors:
    """Leave one out in every cell of the default grid."""
    X = StandardScaler().fit_transform(dataset.X)
    Cs, gammas = default_Cs(), default_gammas(X, kernel)
    cells = [(X, dataset.y, kernel, C, gamma) for C in Cs for gamma in gammas]
    counts = track(
        map_parallel(_count_errors, cells, n_jobs=n_jobs),
        total=len(cells),
        description="Leaving one out",
        console=Console(stderr=True),
        transient=True,
    )
    shape = (len(Cs), len(gammas))
    n_wrong, n_ambiguous = np.array(list(counts)).T
    return GridErrors(
        Cs, gammas, n_wrong.reshape(shape), n_ambiguous.reshape(shape), X.shape[0]
    )


def _count_errors(
    X: FloatArray, y: Any, kernel: str, C: float, gamma: float
) -> tuple[int, int]:
    """Return how many samples are wrong and how many ambiguous when left out."""
    result = leave_one_out(SVC(C=C, kernel=kernel, gamma=gamma), X, y)
    return int(np.sum(result.predictions != y)), int(result.n_ambiguous)


def _as_text(dataset: Dataset, grid: GridErrors, kernel: str, seconds: float) -> str:
    """Return the report for people."""
    return "\n".join(
        [
            format_dataset(dataset),
            "Features standardised once on all rows, not anew in every fold.",
            "",
            format_grid(grid, kernel),
            "",
            format_choice(grid, kernel, dataset),
            f"It is the smallest of {grid.n_wrong.size} errors, hence optimistic.",
            f"{seconds:.1f} s",
        ]
    )


def _as_dict(
    dataset: Dataset, grid: GridErrors, kernel: str, seconds: float
) -> dict[str, Any]:
    """Return the report for machines."""
    labels, counts = np.unique(dataset.y, return_counts=True)
    with_gamma = needs_gamma(kernel)
    return {
        "data": dataset.name,
        "target": dataset.target_name,
        "n_samples": grid.n_samples,
        "n_features": dataset.X.shape[1],
        "class_counts": dict(
            zip(map(str, labels.tolist()), counts.tolist(), strict=True)
        ),
        "preprocessing": "standardised once on all rows",
        "kernel": kernel,
        "Cs": grid.Cs.tolist(),
        "gammas": grid.gammas.tolist() if with_gamma else None,
        "errors": grid.errors.tolist(),
        "n_ambiguous": grid.n_ambiguous.tolist(),
        "best": {
            "C": grid.best_C,
            "gamma": grid.best_gamma if with_gamma else None,
            "error": grid.best_error,
            "standard_error": grid.best_standard_error,
        },
        "majority_error": 1.0 - int(counts.max()) / grid.n_samples,
        "seconds": round(seconds, 3),
    }
