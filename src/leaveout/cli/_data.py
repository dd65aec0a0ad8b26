# SPDX-License-Identifier: BSD-3-Clause
"""From options to samples as a classifier needs them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import typer
from scipy import sparse

from leaveout.cli._command import write_options
from leaveout.cli._options import KernelOptions, TableOptions
from leaveout.estimators._svc import SVC
from leaveout.kernel._gram import kernel_parameters
from leaveout.tables._columns import read_dataset
from leaveout.tables._dataset import Dataset, load_example
from leaveout.tables._preparation import describe_preparation, make_preparation
from leaveout.tune._choice import default_Cs, default_gammas, kernel_scale
from leaveout.tune._search import LooSearchCV

# Squares of larger numbers, summed over many samples, are infinite.
MAX_SIZE = 1e150


def load(table: TableOptions) -> Dataset:
    """Read the data, or take the example."""
    if table.data is None:
        for name, value in vars(table).items():
            if value and name != "no_standardize":
                option = {"id_column": "id"}.get(name, name)
                raise ValueError(f"--{option} needs a table; give its path as DATA.")
        return load_example()
    dataset = read_dataset(
        table.data,
        table.target,
        id_column=table.id_column,
        group_column=vars(table).get("groups"),
        drop=table.drop or (),
        categorical=table.categorical or (),
        **table.format,
    )
    return replace(dataset, notes=tuple(map(write_options, dataset.notes)))


@dataclass(frozen=True)
class Prepared:
    """A dataset, its preparation fitted on all rows (or None), and what comes out."""

    dataset: Dataset
    preparation: Any
    X: Any
    sentence: str

    @property
    def numbers(self) -> Any:
        """X as an array, or sparse."""
        return self.X if sparse.issparse(self.X) else np.asarray(self.X)

    @property
    def names(self) -> np.ndarray:
        """Sample names: the ids, or the rows of the file counted from 1."""
        ids = self.dataset.ids
        return np.arange(1, len(self.dataset.y) + 1) if ids is None else ids


def prepare(dataset: Dataset, *, standardize: bool) -> Prepared:
    """Encode and standardise the features, once on all rows."""
    _check_sizes(dataset)
    preparation = make_preparation(dataset, standardize=standardize)
    X = dataset.X if preparation is None else preparation.fit_transform(dataset.X)
    sentence = describe_preparation(dataset, standardize=standardize)
    return Prepared(dataset, preparation, X, sentence)


def _check_sizes(dataset: Dataset) -> None:
    """Refuse numbers whose squares overflow: variances and kernels need them."""
    X, names = dataset.X, dataset.feature_names
    if not sparse.issparse(X):
        frame = X.drop(columns=list(dataset.text_features))
        X, names = frame.to_numpy(), list(frame)
    rows, columns = (abs(X) > MAX_SIZE).nonzero()
    if len(rows):
        row, column = rows[0], columns[0]
        raise ValueError(
            f"Column '{names[column]}' has {X[row, column]:g} in row {row + 1} of the "
            f"file, too large to be squared (more than {MAX_SIZE:g}). Correct it, give "
            "the column in a larger unit, or leave it out (--drop)."
        )


def check_binary(dataset: Dataset, what: str, way_out: str) -> None:
    """Refuse groups and more than two classes, before the search."""
    n_classes = len(set(dataset.y.tolist()))
    if n_classes != 2:
        raise ValueError(
            f"{what} needs two classes; '{dataset.target_name}' has {n_classes}. "
            f"{way_out}"
        )
    if dataset.groups is not None:
        raise ValueError(f"{what} leaves out single samples; omit --groups.")


def make_svc(options: KernelOptions) -> SVC:
    """Return an SVC with this kernel and weight, not fitted."""
    return SVC(kernel=options.kernel, class_weight=options.class_weight)


def search_grid(
    prepared: Prepared, grid: dict[str, list[float]], svc: SVC, **how: Any
) -> LooSearchCV:
    """Run leave-one-out in every cell of the grid."""
    search = LooSearchCV(svc, grid, refit=False, error_score="raise", **how)
    return search.fit(prepared.X, prepared.dataset.y, groups=prepared.dataset.groups)


def parameters_of(kernel: str) -> set[str]:
    """Return the parameters that a classifier with this kernel has."""
    return {"C", *kernel_parameters(kernel)}


def check_parameters(names: Iterable[str], kernel: str, option: str) -> None:
    """Refuse a parameter that the kernel does not have, before any work."""
    uses = parameters_of(kernel)
    for name in names:
        if name not in uses:
            raise typer.BadParameter(
                f"{option.format(name)} does not apply to --kernel {kernel}, which has "
                f"{' and '.join(sorted(uses))}."
            )


def complete_grid(
    grid: dict[str, list[float]], X: Any, kernel: str
) -> dict[str, list[float]]:
    """Add the values that come from the data."""
    full = {"C": grid.get("C") or default_Cs(kernel_scale(X, kernel)).tolist()}
    if "gamma" in parameters_of(kernel):
        full["gamma"] = grid.get("gamma") or default_gammas(X, kernel).tolist()
    return full | {name: grid[name] for name in ("degree", "coef0") if name in grid}
