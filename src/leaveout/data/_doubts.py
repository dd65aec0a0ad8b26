# SPDX-License-Identifier: BSD-3-Clause
"""What makes a left-out sample known beforehand: copies, and columns of subjects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leaveout._typing import IntArray
from leaveout.data._features import N_CATEGORIES
from leaveout.data._names import list_names
from leaveout.data._table import text_columns

if TYPE_CHECKING:
    from pandas import DataFrame

# With fewer rows a column agrees with the classes by chance.
N_ROWS_FOR_PURITY = 20


def doubt_independence(
    frame: DataFrame, y: NDArray[Any], groups: NDArray[Any] | None = None
) -> list[str]:
    """Say what speaks against leaving out single samples; nothing is changed.

    Parameters
    ----------
    frame : DataFrame
        Features, without missing values.
    y : ndarray of shape (n,)
        Classes.
    groups : ndarray of shape (n,), optional
        Samples that are left out together anyway.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from leaveout.data import doubt_independence
    >>> frame = pd.DataFrame({"dose": [1.0, 2.0, 1.0]})
    >>> doubt_independence(frame, np.array(["a", "b", "a"]))
    ['1 of 3 rows is a copy of another, class included (row 3 of row 1). If a sample \
is there twice, it is never left out, and the error too small: delete copies, or leave \
them out together with --groups.']
    """
    notes = _copy_notes(frame, y, groups)
    if groups is None:
        notes += _subject_notes(frame, y)
    return notes


def _copy_notes(
    frame: DataFrame, y: NDArray[Any], groups: NDArray[Any] | None
) -> list[str]:
    """Count rows that equal an earlier one of another group in features and class."""
    first: dict[Any, int] = {}
    copies = []
    for row, key in enumerate(zip(_row_keys(frame), y.tolist(), strict=True)):
        earlier = first.setdefault(key, row)
        if earlier != row and (groups is None or groups[earlier] != groups[row]):
            copies.append((row + 1, earlier + 1))
    if not copies:
        return []
    verb = "is a copy" if len(copies) == 1 else "are copies"
    row, earlier = copies[0]
    return [
        f"{len(copies)} of {len(frame)} rows {verb} of another, class included (row "
        f"{row} of row {earlier}). If a sample is there twice, it is never left out, "
        "and the error too small: delete copies, or leave them out together with "
        "--groups."
    ]


def _row_keys(frame: DataFrame) -> list[tuple[bytes, ...]]:
    """Return something for each row that equal rows have in common."""
    numbers = frame.select_dtypes("number").to_numpy(dtype=np.float64) + 0.0  # no -0.0
    words = frame.select_dtypes(exclude="number").astype(str).to_numpy(dtype=object)
    return [
        (number.tobytes(), *(word.encode("utf-8", "replace") for word in own))
        for number, own in zip(numbers, words, strict=True)
    ]


def _subject_notes(frame: DataFrame, y: NDArray[Any]) -> list[str]:
    """Name columns whose entries repeat, and may be subjects, or tell the class."""
    if len(frame) < N_ROWS_FOR_PURITY:
        return []
    classes = np.unique(y, return_inverse=True)[1]
    pure, many = [], []
    for name, values in _columns_of_entries(frame):
        entries, codes = np.unique(values, return_inverse=True)
        if not 2 <= len(entries) <= len(values) / 2:
            continue
        if _tell_classes(codes, classes):
            pure.append(name)
        elif values.dtype.kind == "U" and len(entries) > N_CATEGORIES:
            many.append(name)
    notes = []
    if pure:
        notes.append(
            f"Rows with the same entry always have the same class: {list_names(pure)}. "
            f"{_advice(pure[0])} If it was known only after the class, --drop it."
        )
    if many:
        notes.append(
            f"Many entries, each in several rows: {list_names(many)}. "
            f"{_advice(many[0])}"
        )
    return notes


def _advice(name: object) -> str:
    return (
        f'If it says from whom or where a sample is, use --groups "{name}", else the '
        "error is too small."
    )


def _columns_of_entries(frame: DataFrame) -> Iterator[tuple[str, NDArray[Any]]]:
    """Go through the columns of whole numbers and of words, each as an array."""
    numbers = frame.select_dtypes("number")
    values = numbers.to_numpy()
    for k in np.flatnonzero((values == np.rint(values)).all(axis=0)):
        yield numbers.columns[k], values[:, k]
    for name in text_columns(frame):
        yield name, frame[name].to_numpy(dtype=str)


def _tell_classes(entries: IntArray, classes: IntArray) -> bool:
    """Whether each entry occurs in one class only."""
    both = entries.astype(np.int64) * (int(classes.max()) + 1) + classes
    return len(np.unique(both)) == int(entries.max()) + 1
