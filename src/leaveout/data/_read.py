# SPDX-License-Identifier: BSD-3-Clause
"""Read samples, and say what is wrong with them in the words of their owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from leaveout.data._dataset import Dataset
from leaveout.data._doubts import doubt_independence
from leaveout.data._features import (
    N_ROWS_FOR_ID,
    as_words,
    check_not_missing,
    make_features,
)
from leaveout.data._names import check_names_known, list_columns, list_names
from leaveout.data._svmlight import is_svmlight, read_svmlight
from leaveout.data._table import (
    Table,
    file_named,
    mark_missing,
    read_table,
    sample_names,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def read_dataset(
    path: str | Path,
    target: str | None = None,
    *,
    id_column: str | None = None,
    group_column: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
) -> Dataset:
    r"""Read samples from a file: CSV, TSV and the like, Parquet, or svmlight.

    Parameters
    ----------
    path : str or Path
        The file; the kind is told by its content.
    target : str or None
        Column of classes. With None the error lists the columns. An svmlight file has
        its classes in front, and needs none.
    id_column : str, optional
        Column that names the samples; no feature.
    group_column : str, optional
        Column whose equal entries belong together; no feature.
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns of numbers to take as categories.

    Returns
    -------
    dataset : Dataset
        All other columns as features, in the order of the file.

    Raises
    ------
    OSError
        The file is missing or cannot be read.
    DataFileError
        The file is no table, or its content cannot be used; the message says which
        column and what to do.

    Notes
    -----
    Needs pandas, which comes with ``pip install "leaveout[cli]"``.

    Examples
    --------
    >>> import tempfile
    >>> from leaveout.data import read_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "iris.csv")
    ...     _ = path.write_text("width,length,kind\n1.0,2.5,a\n3.0,0.5,b\n")
    ...     read_dataset(path, "kind").X.to_numpy()
    array([[1. , 2.5],
           [3. , 0.5]])
    """
    path = Path(path)
    if is_svmlight(path):
        if target or id_column or group_column or drop or categorical:
            raise ValueError(
                f"'{path}' is an svmlight file: its classes stand in front and its "
                "columns have no names, so none can be chosen or left out."
            )
        return _read_svmlight(path)
    ids = () if id_column is None else (id_column,)
    # What is dropped may be as it likes: numbers in two notations, for instance.
    table = read_table(path, as_text=(*ids, *drop))
    if target is None:
        raise ValueError(
            f"Name the column of classes: --target COL. The columns of '{path}' are "
            f"{list_columns(list(table.frame.columns))}."
        )
    with file_named(path):
        return _make_dataset(
            table, target, id_column, group_column, drop, categorical, path
        )


def _make_dataset(
    table: Table,
    target: str,
    id_column: str | None,
    group_column: str | None,
    drop: Sequence[str],
    categorical: Sequence[str],
    path: Path,
) -> Dataset:
    """Give the columns of a table their roles."""
    frame = table.frame
    special = [name for name in (target, id_column, group_column) if name is not None]
    check_columns([*special, *drop, *categorical], frame, path)
    _check_roles(target, id_column, group_column, drop, categorical)
    frame, counters = _drop_row_numbers(frame.drop(columns=list(drop)), special)
    frame, hollow = _drop_empty_columns(frame, special)
    _check_classes_known(frame[target], target, path)
    check_not_missing(
        _needed(frame, id_column, group_column),
        f"'{path}'",
        "Fill them in, delete these rows, or leave out these columns (--drop).",
    )
    features = make_features(
        frame.drop(columns=list(dict.fromkeys(special))), categorical
    )
    if features.frame.shape[1] == 0:
        raise ValueError(
            f"'{path}' has no column besides {list_names(special)} that "
            "can be a feature."
        )
    y, class_notes = _classes(frame[target], target)
    groups = None
    if group_column is not None:
        groups = as_words(frame[group_column]).to_numpy()
    return Dataset(
        name=path.name,
        X=features.frame,
        y=y,
        feature_names=list(features.frame.columns),
        target_name=target,
        text_features=features.text,
        ids=None if id_column is None else sample_names(frame, id_column),
        id_name=id_column,
        groups=groups,
        group_name=group_column,
        notes=(
            *table.notes,
            *counters,
            *hollow,
            *class_notes,
            *([] if groups is None else _capitals_notes("groups", groups)),
            *features.notes,
            *doubt_independence(features.frame, y, groups),
        ),
    )


def check_columns(names: Sequence[str], frame: DataFrame, path: Path) -> None:
    """Refuse the first name that no column has, and suggest the nearest.

    Examples
    --------
    >>> import pandas as pd
    >>> from leaveout.data import check_columns
    >>> check_columns(["ages"], pd.DataFrame({"age": [31]}), "people.csv")
    Traceback (most recent call last):
    ...
    ValueError: No column 'ages' in 'people.csv'. Did you mean 'age'? The columns are \
'age'.
    """
    try:
        check_names_known(names, list(frame.columns), f"'{path}'")
    except ValueError as error:
        hint = ""
        if all(_is_number(str(name)) for name in frame.columns):
            hint = " The first row holds numbers only: add a row of names above it."
        elif set(names) & set(frame.iloc[:, 0].astype(str)):
            hint = (
                " It is in the first column, so the table lies on its side: leaveout "
                "needs a row for each sample. Transpose it."
            )
        raise ValueError(f"{error}{hint}") from None


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _check_roles(
    target: str,
    id_column: str | None,
    group_column: str | None,
    drop: Sequence[str],
    categorical: Sequence[str],
) -> None:
    """Refuse a column that would be two things; an id may also be the group."""
    roles = {
        "--target": [target],
        "--id": [id_column] if id_column else [],
        "--groups": [group_column] if group_column else [],
        "--drop": drop,
        "--categorical": categorical,
    }
    seen: dict[str, str] = {}
    for role, names in roles.items():
        for name in dict.fromkeys(names):
            if name in seen and {role, seen[name]} != {"--id", "--groups"}:
                raise ValueError(
                    f"Column '{name}' cannot be both {seen[name]} and {role}."
                )
            seen[name] = role


def _drop_row_numbers(
    frame: DataFrame, special: Sequence[str]
) -> tuple[DataFrame, list[str]]:
    """Leave out a first column without name: R and pandas write row names so."""
    first = frame.columns[0]
    if first in special or not str(first).startswith(("(unnamed 1)", "Unnamed: 0")):
        return frame, []
    return frame.drop(columns=first), ["The first column has no name: left out."]


def _drop_empty_columns(
    frame: DataFrame, special: Sequence[str]
) -> tuple[DataFrame, list[str]]:
    """Leave out columns without a single value, unless they have a role."""
    empty = frame.columns[frame.isna().all().to_numpy()].difference(list(special))
    if empty.empty:
        return frame, []
    return frame.drop(columns=empty), [f"Empty, left out: {list_names(empty)}."]


def _needed(
    frame: DataFrame, id_column: str | None, group_column: str | None
) -> DataFrame:
    """Return the columns that may have no empty cell: a sample may lack a name."""
    if id_column is None:
        return frame
    if id_column == group_column:  # NA may be a name, but is no group
        return mark_missing(frame)
    return frame.drop(columns=id_column)


def _check_classes_known(column: Series, target: str, path: Path) -> None:
    """Refuse samples without a class."""
    empty = column.isna().to_numpy()
    if empty.any():
        raise ValueError(
            f"Column '{target}' of '{path}' has no class in {int(empty.sum())} of "
            f"{len(empty)} rows, first in row {int(np.argmax(empty)) + 1}. Delete "
            "these rows; leaveout predict finds their classes."
        )


def _classes(column: Series, target: str) -> tuple[NDArray[Any], list[str]]:
    """Return the classes as an array of text, whole numbers or booleans; and notes."""
    import pandas as pd

    is_text = not pd.api.types.is_numeric_dtype(column)
    y = column.to_numpy()
    if is_text:
        y = as_words(column).to_numpy(dtype=str)
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"Column '{target}' has one class only, '{classes[0]}' in all {len(y)} "
            "rows. At least two are needed."
        )
    many = len(classes) > len(y) / 2 and len(y) >= N_ROWS_FOR_ID
    if not is_text and (many or type_of_target(y) == "continuous"):
        raise ValueError(
            f"Column '{target}' has {len(classes)} different values in {len(y)} rows, "
            "which are no classes. Choose another column, or cut it into classes."
        )
    if many:
        raise ValueError(
            f"Column '{target}' has {len(classes)} classes in {len(y)} rows: too few "
            "samples of each to learn from. Is it the right column?"
        )
    notes = _capitals_notes("classes", classes) if is_text else []
    if (counts == 1).any():
        notes.append(
            f"Classes with one sample: {list_names(classes[counts == 1])}. Left out, "
            "it cannot be right. Merge or drop such a class."
        )
    return y, notes


def _capitals_notes(what: str, words: NDArray[Any]) -> list[str]:
    """Point out words that differ in capitals only, and so count as different."""
    unlike = np.unique(words.astype(str))
    counts = Counter(word.casefold() for word in unlike)
    alike = [word for word in unlike if counts[word.casefold()] > 1]
    if not alike:
        return []
    return [f"Some {what} differ in capitals only: {list_names(alike)}."]


def _read_svmlight(path: Path) -> Dataset:
    import pandas as pd

    X, y, names = read_svmlight(path)
    with file_named(path):
        y, notes = _classes(pd.Series(y), "class")
    return Dataset(
        name=path.name,
        X=X,
        y=y,
        feature_names=names,
        target_name="class",
        notes=tuple(notes),
    )
