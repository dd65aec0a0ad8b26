# SPDX-License-Identifier: BSD-3-Clause
"""Columns of Arrow by name: features, labels and weights, and their way to NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout.data._names import check_names_known, list_items, list_names
from leaveout.data._row_checks import Form, Piece


@dataclass(frozen=True)
class Columns:
    """Which columns are features, which is the target, which the weight.

    Parameters
    ----------
    features : tuple of str
        Columns of X, in the order of the file or table.
    target : str
        Column of labels.
    weight : str or None
        Column of weights.
    """

    features: tuple[str, ...]
    target: str
    weight: str | None = None

    @property
    def form(self) -> Form:
        """What all rows have in common."""
        return Form(len(self.features), np.array(self.features, dtype=object))

    @property
    def names(self) -> list[str]:
        """Names of all columns that are read."""
        special = [self.target] if self.weight is None else [self.target, self.weight]
        return [*self.features, *special]

    def pieces(
        self,
        batches: Iterable[Any],
        rows_at_once: int,
        *,
        name: str,
        first_row: int,
        constants: Mapping[str, Any],
    ) -> Iterator[Piece]:
        """Yield the rows of record batches; constants has columns of one value."""
        for batch in batches:
            for start in range(0, batch.num_rows, rows_at_once):
                rows = batch.slice(start, rows_at_once)
                yield self._piece(rows, name, first_row + start, constants)
            first_row += batch.num_rows

    def _piece(
        self, batch: Any, name: str, first_row: int, constants: Mapping[str, Any]
    ) -> Piece:
        def values(column: str) -> NDArray[Any]:
            if column in constants:
                return np.full(batch.num_rows, constants[column])
            return _to_numpy(batch.column(column))

        X = np.empty((batch.num_rows, len(self.features)))
        for j, column in enumerate(self.features):
            X[:, j] = values(column)
        weight = None if self.weight is None else values(self.weight)
        return Piece(X, values(self.target), weight, name, first_row)


def assign_columns(names: list[str], y: Any, weight: Any, where: str) -> Columns:
    """Give columns their roles by the names of target and weight; the rest is X."""
    for argument, name in (("y", y), ("sample_weight", weight)):
        if not isinstance(name, str) and (argument == "y" or name is not None):
            raise ValueError(
                f"{argument} must be the name of a column of {where}, whose columns "
                f"are {list_names(names)}; got a {type(name).__name__}."
            )
    special = [y] if weight is None else [y, weight]
    check_names_known(special, names, where)
    if y == weight:
        raise ValueError(f"Column '{y}' cannot be both y and sample_weight.")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"More than one column of {where} is named {list_names(twice)}. Rename "
            "them."
        )
    features = tuple(name for name in names if name not in special)
    if not features:
        raise ValueError(
            f"Found array with 0 feature(s): no column of {where} is left beside "
            f"{list_names(special)}."
        )
    return Columns(features, y, weight)


def check_types(types: Mapping[str, Any], columns: Columns, where: str) -> None:
    """Refuse features and weights that are not numbers, by name and type."""
    text = [
        f"'{name}' ({types[name]})"
        for name in columns.names
        if name != columns.target and kind_of(types[name]) != "numbers"
    ]
    if text:
        raise ValueError(
            f"Not numbers in {where}: column {list_items(text)}. Encode such columns "
            "as numbers, or leave them out by a dataset of fewer columns: "
            "dataset = pyarrow.dataset.dataset(path), then dataset.replace_schema("
            "dataset.schema.remove(k)) for column k."
        )


def kind_of(arrow_type: Any) -> str:
    """Return "numbers", "text", or the name of another type."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        # Categories of numbers are codes, not measurements: as labels they will do.
        return f"categories of {kind_of(arrow_type.value_type)}"
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(is_kind(arrow_type) for is_kind in numbers):
        return "numbers"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type):
        return "text"
    return str(arrow_type)


def _to_numpy(column: Any) -> NDArray[Any]:
    """Return a column of a batch as an array; what is missing becomes NaN or None."""
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    return column.to_numpy(zero_copy_only=False)
