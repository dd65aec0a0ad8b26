# SPDX-License-Identifier: BSD-3-Clause
"""Columns of a table as features: numbers, categories, or a reason why not."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from leaveout.data._names import list_items, list_names, name_cell
from leaveout.data._table import text_columns

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Below this many rows, different values in all of them say nothing.
N_ROWS_FOR_ID = 10
# A column of more categories than this, and of one per three rows, deserves a word.
N_CATEGORIES = 20

# Digits with what people put around them: <0.5, 12 %, 1.234,5, 3 000, 12.03.2021,
# −1.5, 4’477.5, € 34,77, (34.77), 3.5D+02, ="34" (Excel).
# Nothing is given back (*+, ++): the time stays linear in the length of a cell.
_NUMBER_LIKE = (
    r"[<>~≈=±$€£¥(\"\s+−–-]*+(?=[.,'’]*+\d)[\d.,'’\s]++"
    r"(?:[eE][+−-]?\d++|[dD][+−-]\d++)?\s*+[%$€£¥)\"]*+"
)
_WITH_UNIT = _NUMBER_LIKE + r"[\w°µ/%^-]{0,8}"
_MONTH = (
    r"(?:jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|märz?|apr(?:il)?|may|mai|jun[ei]?|"
    r"jul[yi]?|aug(?:ust)?|sep(?:t|tember)?|o[ck]t(?:ober)?|nov(?:ember)?|"
    r"de[cz](?:ember)?)\.?"
)
_DAY = "|".join(
    [
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}",
        r"\d{1,2}[-/]\d{1,2}[-/]\d{2,4}",
        rf"\d{{1,2}}[-./\s]*{_MONTH}[-./,\s]*(?:\d{{4}}|\d\d)",
        rf"{_MONTH}\s*\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}",
    ]
)
# Month and year; two digits at least, for MAR1 and Oct-4 are genes.
_MONTH_OF_YEAR = rf"(?:19|20)\d\d[-/](?:0[1-9]|1[0-2])|{_MONTH}[-/\s](?:\d{{4}}|\d\d)"
_DATE_LIKE = rf"(?i:(?:{_DAY})(?:\D.*)?|{_MONTH_OF_YEAR})"
_ID_NAME = re.compile(r"(?:^|[\W_])(?:id|index|idx|nr|no|number|row)$", re.IGNORECASE)


class Features(NamedTuple):
    """Features of a table: float64 columns, text columns, and notes on them."""

    frame: DataFrame
    text: tuple[str, ...]
    notes: tuple[str, ...]


def check_not_missing(
    frame: DataFrame, source: str, way_out: str = "Fill them in, or delete these rows."
) -> None:
    """Refuse empty cells, counted by column.

    Examples
    --------
    >>> import pandas as pd
    >>> from leaveout.data import check_not_missing
    >>> check_not_missing(pd.DataFrame({"age": [31.0, None]}), "people.csv")
    Traceback (most recent call last):
    ...
    ValueError: people.csv has missing values in 1 of 1 columns: 'age' (1), in 1 of 2 \
rows. Fill them in, or delete these rows.
    """
    empty = frame.isna()
    counts = empty.sum()
    counts = counts[counts > 0]
    if len(counts) == 0:
        return
    found = [f"'{column}' ({count})" for column, count in counts.items()]
    raise ValueError(
        f"{source} has missing values in {len(found)} of {frame.shape[1]} columns: "
        f"{list_items(found)}, in {int(empty.any(axis=1).sum())} of {len(frame)} rows. "
        f"{way_out}"
    )


def make_features(frame: DataFrame, categorical: Collection[str] = ()) -> Features:
    """Sort columns into numbers and categories.

    Text that is different in every row is an id, and left out. A column mostly of
    numbers, with text in it, is refused by name, row and value.

    Parameters
    ----------
    frame : DataFrame
        Without missing values.
    categorical : collection of str, default=()
        Columns to take as categories whatever they hold.

    Returns
    -------
    Features
        The frame has float64 and text columns only.

    Raises
    ------
    ValueError
        For text among numbers, dates and infinities.

    Examples
    --------
    >>> import pandas as pd
    >>> from leaveout.data import make_features
    >>> frame = pd.DataFrame({"age": [31, 44], "sex": ["f", "m"]})
    >>> features = make_features(frame)
    >>> features.text, features.frame.dtypes["age"]
    (('sex',), dtype('float64'))
    """
    import pandas as pd

    text = [*categorical, *(c for c in text_columns(frame) if c not in categorical)]
    words = {name: as_words(frame[name]) for name in text}
    refused = [
        problem
        for name in text
        if name not in categorical
        for problem in _number_problem(name, words[name])
    ]
    if refused:
        raise ValueError(
            f"{len(refused)} column(s) of numbers or dates hold text: "
            f"{list_items(refused)}. Correct the values, leave the column out "
            "(--drop), or take it as categories (--categorical)."
        )
    unique = [c for c in text if c not in categorical and _all_differ(words[c])]
    kept = tuple(c for c in frame.columns if c in words and c not in unique)
    numbers = frame.drop(columns=text).astype(np.float64)
    _check_finite(numbers)
    notes = [
        *_text_notes(kept, words, unique),
        *_constant_notes(numbers, {name: words[name] for name in kept}),
        *_number_notes(numbers),
    ]
    order = [c for c in frame.columns if c not in unique]
    full = pd.concat([numbers, *(words[c] for c in kept)], axis=1)
    return Features(full[order], kept, tuple(notes))


def as_words(column: Series) -> Series:
    """Return the values as plain str objects without blanks at their ends."""
    return column.astype(str).str.strip().astype(object)


def _number_problem(name: str, words: Series) -> list[str]:
    """Return what is wrong with a column that should be numbers or dates, or []."""
    import pandas as pd

    dates = words[words.str.fullmatch(_DATE_LIKE)]
    if len(dates) > len(words) / 2:
        return [f"'{name}' (dates such as {dates.iloc[0]!r})"]
    pattern = _WITH_UNIT if words.nunique() > _many(words) else _NUMBER_LIKE
    if words.str.fullmatch(pattern).mean() < 0.5:
        return []
    bad = pd.to_numeric(words, errors="coerce").isna().to_numpy()
    if not bad.any():  # numbers kept as text, as Parquet files may
        return [f"'{name}' (numbers stored as text)"]
    row = int(np.argmax(bad))
    return [name_cell(name, row, words.iloc[row])]


def _many(words: Series) -> float:
    """How many categories are too many to be meant as such."""
    return max(N_CATEGORIES, len(words) / 3)


def _all_differ(words: Series) -> bool:
    return len(words) >= N_ROWS_FOR_ID and bool(words.is_unique)


def _check_finite(numbers: DataFrame) -> None:
    infinite = ~np.isfinite(numbers.to_numpy()).all(axis=0)
    if infinite.any():
        names = list_names(numbers.columns[infinite])
        raise ValueError(f"Infinite values in {names}. Correct them, or use --drop.")


def _text_notes(
    kept: tuple[str, ...], words: dict[str, Series], unique: list[str]
) -> list[str]:
    """Say which text is encoded, and which is left out."""
    notes = []
    if kept:
        counts = [f"'{name}' ({_count_categories(words[name])})" for name in kept]
        notes.append(f"Text, one-hot encoded: {list_items(counts)}.")
    many = [name for name in kept if words[name].nunique() > _many(words[name])]
    if many:
        notes.append(f"Very many categories: {list_names(many)}. Is it a name or id?")
    if unique:
        notes.append(
            f"Text that is different in every row, left out: {list_names(unique)}."
        )
    return notes


def _count_categories(words: Series) -> str:
    n_categories = words.nunique()
    return f"{n_categories} {'category' if n_categories == 1 else 'categories'}"


def _constant_notes(numbers: DataFrame, words: dict[str, Series]) -> list[str]:
    """Point out columns of numbers or words that are constant."""
    values = numbers.to_numpy()
    constant = list(numbers.columns[(values == values[:1]).all(axis=0)])
    constant += [name for name, column in words.items() if column.nunique() == 1]
    if not constant:
        return []
    return [
        f"The same in every row: {list_names(constant)}. Such a column tells nothing; "
        "leave it out with --drop."
    ]


def _number_notes(numbers: DataFrame) -> list[str]:
    """Point out columns that count rows."""
    values = numbers.to_numpy()
    ids = [
        name
        for name, v in zip(numbers.columns, values.T, strict=True)
        if _counts_rows(str(name), v)
    ]
    if not ids:
        return []
    return [
        f"Used as a feature, but looks like a row number or id: {list_names(ids)}. "
        "If it is one, leave it out with --id or --drop."
    ]


def _counts_rows(name: str, values: np.ndarray) -> bool:
    """Whether whole numbers, all different, run without a gap or are called an id."""
    if len(values) < N_ROWS_FOR_ID or values[0] != np.rint(values[0]):
        return False
    if (values != np.rint(values)).any() or len(np.unique(values)) < len(values):
        return False
    gapless = np.ptp(values) == len(values) - 1
    return bool(gapless or _ID_NAME.search(name))
