# SPDX-License-Identifier: BSD-3-Clause
"""New samples for a fitted model: the same columns by name, or what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from leaveout.data._features import check_not_missing
from leaveout.data._names import did_you_mean, list_items, list_names, name_cell

if TYPE_CHECKING:
    from pandas import DataFrame, Series


class NewRows(NamedTuple):
    """Features in the order of the model, and the columns not used."""

    frame: DataFrame
    unused: list[str]


def match_columns(
    frame: DataFrame,
    feature_names: Sequence[str],
    categories: Mapping[str, Sequence[str]],
    path: str | Path,
) -> NewRows:
    """Take the columns a model was trained on out of a table.

    Parameters
    ----------
    frame : DataFrame
        Table with at least these columns, in any order.
    feature_names : sequence of str
        Columns of the model.
    categories : mapping of str to sequence of str
        Categories of the text columns; the other columns are numbers.
    path : str or Path
        What to call the table in messages.

    Raises
    ------
    ValueError
        A column is missing, a cell empty, a category unknown, a number no number.

    Examples
    --------
    >>> import pandas as pd
    >>> from leaveout.data import match_columns
    >>> frame = pd.DataFrame({"b": [1], "c": [2], "a": [3]})
    >>> rows = match_columns(frame, ["a", "b"], {}, "new.csv")
    >>> list(rows.frame), rows.unused
    (['a', 'b'], ['c'])
    """
    columns = [str(name) for name in frame.columns]
    known = set(columns)
    missing = [name for name in feature_names if name not in known]
    if missing:
        hint = did_you_mean(missing[0], columns) if len(missing) == 1 else ""
        raise ValueError(
            f"'{path}' lacks {len(missing)} of the {len(feature_names)} columns of the "
            f"model: {list_names(missing)}.{hint} It has {list_names(columns)}."
        )
    rows = frame[list(feature_names)]
    check_not_missing(rows, f"'{path}'")
    numbers = _to_numbers(rows.drop(columns=list(categories)), path)
    words = {name: rows[name].astype(str).str.strip() for name in categories}
    _check_categories(words, categories, path)
    full = numbers.assign(**{name: w.astype(object) for name, w in words.items()})
    wanted = set(feature_names)
    return NewRows(
        full[list(feature_names)], [name for name in columns if name not in wanted]
    )


def _to_numbers(frame: DataFrame, path: str | Path) -> DataFrame:
    """Return float64 columns, or name the first value of each that is no number."""
    import pandas as pd

    kinds = {kind: pd.api.types.is_numeric_dtype(kind) for kind in set(frame.dtypes)}
    bad = []
    for name in [name for name, kind in frame.dtypes.items() if not kinds[kind]]:
        wrong = pd.to_numeric(frame[name], errors="coerce").isna().to_numpy()
        row = int(np.argmax(wrong))
        bad.append(name_cell(name, row, frame[name].iloc[row]))
    if bad:
        raise ValueError(
            f"'{path}' has text where the model has numbers: {list_items(bad)}. "
            "Correct these values."
        )
    numbers = frame.astype(np.float64)
    infinite = ~np.isfinite(numbers.to_numpy()).all(axis=0)
    if infinite.any():
        names = list_names(frame.columns[infinite])
        raise ValueError(f"'{path}' has infinite values in {names}. Correct them.")
    return numbers


def _check_categories(
    words: Mapping[str, Series],
    categories: Mapping[str, Sequence[str]],
    path: str | Path,
) -> None:
    """Refuse categories that were not there when the model was trained."""
    for name, column in words.items():
        unknown = column[~column.isin(list(categories[name]))]
        if len(unknown):
            raise ValueError(
                f"Column '{name}' of '{path}' has categories the model has not seen: "
                f"{list_names(unknown.unique())}, first in row "
                f"{int(unknown.index[0]) + 1}. It knows "
                f"{list_names(categories[name])}. Correct or remove these rows."
            )
