# SPDX-License-Identifier: BSD-3-Clause
"""Read a table of samples, and say what is wrong with it in the words of its owner."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from leaveout._typing import FloatArray
from leaveout.data._dataset import Dataset

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# How many names a message lists before it says "and 12 more".
N_NAMES_SHOWN = 8


def read_csv(path: str | Path, target: str | None) -> Dataset:
    r"""Read samples from a CSV file: one column of classes, the others numbers.

    Parameters
    ----------
    path : str or Path
        The file.
    target : str or None
        Name of the column of classes. With None the error lists the columns.

    Returns
    -------
    dataset : Dataset
        All other columns as features, in the order of the file.

    Raises
    ------
    OSError
        The file is missing or cannot be read.
    ValueError
        The file is no table, or its content cannot be used; the message says which
        column and what to do.

    Notes
    -----
    Needs pandas, which comes with ``pip install "leaveout[cli]"``.

    Examples
    --------
    >>> import tempfile
    >>> from leaveout.data import read_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "iris.csv")
    ...     _ = path.write_text("width,length,kind\n1.0,2.5,a\n3.0,0.5,b\n")
    ...     read_csv(path, "kind").X
    array([[1. , 2.5],
           [3. , 0.5]])
    """
    path = Path(path)
    table = _read_table(path)
    columns = [str(column) for column in table.columns]
    if target is None:
        raise ValueError(
            f"Name the column of classes: --target COL. The columns of '{path}' are "
            f"{_list_names(columns)}."
        )
    if target not in columns:
        raise ValueError(_unknown_column_message(target, columns, path))
    if len(columns) == 1:
        raise ValueError(f"'{path}' has no column besides '{target}': no features.")
    _check_no_missing_values(table, path)
    y = _classes(table[target], target)
    return Dataset(
        name=path.name,
        X=_numeric_features(table.drop(columns=target)),
        y=y,
        feature_names=[column for column in columns if column != target],
        target_name=target,
    )


def _read_table(path: Path) -> DataFrame:
    """Return the table in the file; every way to fail names the file."""
    import pandas as pd

    if not path.is_file():
        raise FileNotFoundError(
            f"No file '{path}'. Give the path of a CSV file with a header row."
        )
    try:
        table = pd.read_csv(path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as why:
        raise ValueError(f"'{path}' is not a CSV table: {why}".strip()) from why
    if table.empty:
        raise ValueError(f"'{path}' has a header but no rows.")
    return table


def _unknown_column_message(target: str, columns: list[str], path: Path) -> str:
    close = get_close_matches(target, columns, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return (
        f"No column '{target}' in '{path}'.{hint} The columns are "
        f"{_list_names(columns)}."
    )


def _check_no_missing_values(table: DataFrame, path: Path) -> None:
    counts = table.isna().sum()
    counts = counts[counts > 0]
    if len(counts):
        found = [f"'{column}' ({count})" for column, count in counts.items()]
        raise ValueError(
            f"'{path}' has missing values in {len(found)} of {table.shape[1]} columns: "
            f"{_join(found)}. Fill them in, or drop these rows or columns."
        )


def _numeric_features(features: DataFrame) -> FloatArray:
    """Return the columns as numbers, or name the first value that is none."""
    text = [
        f"'{column}' (row {row + 1}: {value!r})"
        for column in features.columns
        for row, value in _first_non_numeric(features[column])
    ]
    if text:
        raise ValueError(
            f"{len(text)} feature column(s) are not numeric: {_join(text)}. "
            "Encode them as numbers, or drop them."
        )
    X = features.to_numpy(dtype=np.float64)
    infinite = ~np.isfinite(X).all(axis=0)
    if infinite.any():
        names = [str(name) for name in features.columns[infinite]]
        raise ValueError(f"Infinite values in {_list_names(names)}. Correct them.")
    return np.ascontiguousarray(X)


def _first_non_numeric(column: Series) -> list[tuple[int, Any]]:
    """Return [(row, value)] of the first entry that is no number, [] if all are."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return []
    bad = pd.to_numeric(column, errors="coerce").isna().to_numpy()
    row = int(np.argmax(bad))
    return [(row, column.iloc[row])]


def _classes(column: Series, target: str) -> np.ndarray[Any, Any]:
    """Return the classes as an array of text, whole numbers or booleans."""
    import pandas as pd

    is_text = not pd.api.types.is_numeric_dtype(column)
    y = column.astype(str).to_numpy(dtype=str) if is_text else column.to_numpy()
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(
            f"Column '{target}' has one class only, '{classes[0]}' in all {len(y)} "
            "rows. At least two are needed."
        )
    if type_of_target(y) == "continuous":
        raise ValueError(
            f"Column '{target}' has {len(classes)} different values with decimals, "
            "which are no classes. Choose another column, or cut it into classes."
        )
    return y


def _list_names(names: list[str]) -> str:
    return _join([f"'{name}'" for name in names])


def _join(items: list[str]) -> str:
    shown = ", ".join(items[:N_NAMES_SHOWN])
    more = len(items) - N_NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
