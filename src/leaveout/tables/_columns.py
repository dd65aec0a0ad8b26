# SPDX-License-Identifier: BSD-3-Clause
"""From a table to a Dataset: classes, features, ids and groups.

A column is a feature as numbers, as categories, or the reason why not is given with
column, row and value. A column that looks like numbers or dates but cannot be read as
numbers is refused, never taken as text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaveout._messages import (
    check_names_known,
    list_columns,
    list_items,
    list_names,
    name_cell,
)
from leaveout.tables._dataset import N_CATEGORIES, Dataset, warn_duplicate_rows
from leaveout.tables._files import (
    Table,
    header_hint,
    is_svmlight,
    mark_missing,
    name_file,
    read_bytes,
    read_svmlight,
    read_table,
    sample_names,
    text_columns,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Columns with missing values that an error lists, because they can be left out by name.
N_MISSING_SHOWN = 30
# With fewer rows, a different value in each of them does not make an id.
N_ROWS_FOR_ID = 10
# Digits and no letters but those of an exponent: 1,5  <0.5  $3  4’477  (2)  2021-03-04.
# Possessive quantifiers (*+) keep the time linear in the length of a cell.
_NUMBER_LIKE = r"[\W_]*+\d[\W\d_]*+(?:[eEdD][+−-]?\d++)?[\W\d_]*+"
_WITH_UNIT = _NUMBER_LIKE + r"[\w°µ/%^-]{0,8}"
_NUMBER = r"[+-]?(?:\d++[.,]?\d*+|[.,]\d++)(?:[eE][+-]?\d++)?"
_ID_NAME = re.compile(r"(?:^|[\W_])(?:id|index|idx|nr|no|number|row)$", re.IGNORECASE)


class Roles(NamedTuple):
    """The roles of columns, by the parameters of :func:`read_dataset`."""

    target: str
    id_column: str | None
    group_column: str | None
    drop: Sequence[str]
    categorical: Sequence[str]

    @property
    def special(self) -> list[str]:
        """The columns that are not features."""
        named = (self.target, self.id_column, self.group_column)
        return list(dict.fromkeys(name for name in named if name is not None))

    def check(self) -> None:
        """Refuse a column with two roles; an id may also be the group."""
        named = {
            role: {value} if isinstance(value, str) else set(value or ())
            for role, value in self._asdict().items()
        }
        for (role, names), (other, more) in combinations(named.items(), 2):
            both = names & more
            if both and (role, other) != ("id_column", "group_column"):
                raise ValueError(
                    f"column '{min(both)}' cannot be both {role}= and {other}=."
                )


def read_dataset(
    path: str | Path,
    target: str | None = None,
    *,
    id_column: str | None = None,
    group_column: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Dataset:
    r"""Read samples from a file: CSV, TSV and the like, Parquet, or svmlight.

    The content decides which, not the name. Files compressed by gzip are unpacked.

    Parameters
    ----------
    path : str or Path
        Path of the file; "-" reads stdin.
    target : str, default=None
        Column of classes. Needed except for svmlight files, where they come first; the
        error lists the columns.
    id_column, group_column : str, default=None
        Columns that name the samples, and the groups to leave out together.
    drop : sequence of str, default=()
        Columns to ignore.
    categorical : sequence of str, default=()
        Columns of numbers that are categories.
    sep : str, default=None
        Separator of the columns. None detects a comma, semicolon, tab, bar or blank.
    decimal : {".", ","}, default=None
        Decimal mark. None takes a point, or a comma if the columns have another
        separator and no number contradicts it.
    encoding : str, default=None
        Encoding of the text. None takes what a byte order mark says, else UTF-8.

    Returns
    -------
    Dataset
        Features and classes, with the names of both.

    Raises
    ------
    DataFileError
        The file is not such a table, or has entries that cannot be used. The message
        names the column, row and value.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from leaveout.data import read_dataset
    >>> text = "width,site,kind\n1.5,x,a\n2.5,y,b\n2.0,x,a\n3.5,y,b\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "flies.csv")
    ...     _ = path.write_text(text)
    ...     data = read_dataset(path, "kind")
    >>> data
    <Dataset: flies.csv, 4 samples, 2 features>
    >>> data.y.tolist(), data.text_features
    (['a', 'b', 'a', 'b'], ('site',))
    """
    path = Path(path)
    content = read_bytes(path)
    if is_svmlight(content):
        if target or id_column or group_column or drop or categorical:
            raise ValueError(
                f"'{path}' is an svmlight file: each line starts with its class and "
                "the columns have no names, so none can be chosen or left out."
            )
        return _read_svmlight(content, path)
    # Dropped columns may hold anything, such as numbers in two notations.
    as_text = (*drop, *([] if id_column is None else [id_column]))
    how = {"sep": sep, "decimal": decimal, "encoding": encoding}
    table = read_table(content, path, as_text=as_text, **how)
    if target is None:
        names = list(table.frame.columns)
        raise ValueError(
            f"Name the column of classes: target=. The columns of '{path}' are "
            f"{list_columns(names)}.{header_hint(names)}"
        )
    roles = Roles(target, id_column, group_column, drop, categorical)
    with name_file(path):
        return _make_dataset(table, roles, path)


def _make_dataset(table: Table, roles: Roles, path: Path) -> Dataset:
    """Give the columns of a table their roles."""
    special, id_column, group_column = roles.special, roles.id_column, roles[2]
    check_columns([*special, *roles.drop, *roles.categorical], table.frame, path)
    roles.check()
    frame = table.frame.drop(columns=list(roles.drop))
    frame, notes = _drop_useless_columns(frame, special)
    y, class_notes = _read_classes(frame[roles.target], roles.target)
    needed = frame
    if id_column is not None:  # an id may be missing or NA, a group may not
        same = id_column == group_column
        needed = mark_missing(frame) if same else frame.drop(columns=id_column)
    no_header = header_hint(table.frame.columns, table.frame)
    check_not_missing(
        needed,
        "Fill them in, delete these rows, or leave out these columns (drop=)."
        f"{no_header}",
    )
    rest = frame.drop(columns=special)
    X, text, feature_notes = make_features(rest, roles.categorical)
    if X.shape[1] == 0:
        raise ValueError(
            f"no column besides {list_names(special)} can be used as a feature."
        )
    notes = [*table.notes, *notes, *class_notes]
    if no_header:
        notes.append(
            f"The column names look like data: {list_names(table.frame.columns)}. If "
            "they are a sample, add a row of column names above it."
        )
    groups = None
    if group_column is not None:
        groups = as_words(frame[group_column]).to_numpy()
        notes += _capitals_notes("groups", groups)
    notes += [*feature_notes, *warn_duplicate_rows(X, y, groups)]
    return Dataset(
        name="stdin" if str(path) == "-" else path.name,
        X=X,
        y=y,
        feature_names=list(X.columns),
        target_name=roles.target,
        text_features=text,
        ids=None if id_column is None else sample_names(frame, id_column),
        id_name=id_column,
        groups=groups,
        group_name=group_column,
        notes=tuple(notes),
    )


def check_columns(names: Sequence[str], frame: DataFrame, path: Path) -> None:
    """Refuse the first name that no column has, and suggest the nearest."""
    try:
        check_names_known(names, list(frame.columns), f"'{path}'")
    except ValueError as error:
        hint = header_hint(frame.columns, frame)
        parts = {part.strip() for name in names for part in name.split(",")}
        if not hint and parts <= set(frame.columns):
            hint = " Name one column at a time."
        elif not hint and frame.shape[1] == 1:
            hint = " There is only one column: check the separator (sep=)."
        elif not hint and set(names) & set(frame.iloc[:, 0].astype(str)):
            hint = (
                " It is in the first column. leaveout needs one row per sample: "
                "transpose the table."
            )
        raise ValueError(f"{error}{hint}") from None


def _drop_useless_columns(
    frame: DataFrame, special: Sequence[str]
) -> tuple[DataFrame, list[str]]:
    """Leave out row names, which have no header, and columns without a value."""
    notes, first = [], frame.columns[0]
    if first not in special and str(first).startswith(("(unnamed 1)", "Unnamed: 0")):
        frame = frame.drop(columns=first)
        notes.append("The first column has no name: left out.")
    empty = frame.columns[frame.isna().all().to_numpy()].difference(list(special))
    if len(empty):
        frame = frame.drop(columns=empty)
        notes.append(f"Empty, left out: {list_names(empty)}.")
    return frame, notes


def check_not_missing(
    frame: DataFrame, way_out: str = "Fill them in, or delete these rows."
) -> None:
    """Refuse empty cells, counted by column."""
    empty = frame.isna()
    counts = empty.sum()
    counts = counts[counts > 0]
    if len(counts):
        found = [f"'{column}' ({count})" for column, count in counts.items()]
        rows = empty.any(axis=1).to_numpy()
        raise ValueError(
            f"missing values in {len(found)} of {frame.shape[1]} columns: "
            f"{list_items(found, most=N_MISSING_SHOWN)}, in {int(rows.sum())} of "
            f"{len(frame)} rows, first in row {int(np.argmax(rows)) + 1} of the file. "
            f"{way_out}"
        )


def make_features(
    frame: DataFrame, categorical: Collection[str]
) -> tuple[DataFrame, tuple[str, ...], list[str]]:
    """Return columns of numbers and categories, names of the latter, and notes.

    Text that is different in every row is an id, and left out.
    """
    import pandas as pd

    categorical = [c for c in categorical if c in frame]  # empty ones are left out
    text = [*categorical, *(c for c in text_columns(frame) if c not in categorical)]
    words = {name: as_words(frame[name]) for name in text}
    free = [name for name in text if name not in categorical]
    refused = [cell for name in free for cell in _find_number_like(name, words[name])]
    if refused:
        raise ValueError(
            f"values that look like numbers or dates, but cannot be read as numbers: "
            f"{list_items(refused)}. Correct the values, give decimal= or sep=, leave "
            "the column out (drop=; id_column= if it names the samples), or take it as "
            "categories (categorical=)."
        )
    unique = [c for c in free if len(frame) >= N_ROWS_FOR_ID and words[c].is_unique]
    kept = tuple(c for c in frame.columns if c in words and c not in unique)
    numbers = frame.drop(columns=text).astype(np.float64)
    infinite = ~np.isfinite(numbers.to_numpy()).all(axis=0)
    if infinite.any():
        names = list_names(numbers.columns[infinite])
        raise ValueError(f"infinite values in {names}. Correct them, or use drop=.")
    full = pd.concat([numbers, *(words[c] for c in kept)], axis=1)
    notes = _note_features({name: words[name] for name in kept}, unique, numbers)
    return full[[c for c in frame.columns if c in full]], kept, notes


def as_words(column: Series) -> Series:
    """Return the values as plain str objects without blanks at their ends."""
    return column.astype(str).str.strip().astype(object)


def _find_number_like(name: str, words: Series) -> list[str]:
    """Return the first unreadable cell of a column mostly of numbers, else nothing."""
    many = words.nunique() > max(N_CATEGORIES, len(words) / 3)
    if words.str.fullmatch(_WITH_UNIT if many else _NUMBER_LIKE).mean() < 0.5:
        return []
    # Numbers with the wrong mark count only if there is nothing worse.
    worst = [~words.str.fullmatch(_NUMBER), words.str.contains(",", regex=False)]
    rows = [int(np.argmax(found)) for found in worst if found.any()]
    row = [*rows, 0][0]  # 0: all are numbers, stored as text in a Parquet file
    return [name_cell(name, row, words.iloc[row])]


def _note_features(
    words: dict[str, Series], unique: list[str], numbers: DataFrame
) -> list[str]:
    """Note which text is encoded or left out, constant columns, ids and dates."""
    notes, counts = [], {name: column.nunique() for name, column in words.items()}
    if counts:
        kinds = [
            f"'{name}' ({count} {'category' if count == 1 else 'categories'})"
            for name, count in counts.items()
        ]
        notes.append(f"One-hot encoded: {list_items(kinds)}.")
    most = max(N_CATEGORIES, len(numbers) / 3)
    many = [name for name, count in counts.items() if count > most]
    if many:
        notes.append(
            f"Very many categories: {list_names(many)}. If it is a name or an id, use "
            "id_column= or drop=."
        )
    if unique:
        notes.append(
            f"Text that is different in every row, left out: {list_names(unique)}."
        )
    values = numbers.to_numpy()
    constant = list(numbers.columns[(values == values[:1]).all(axis=0)])
    constant += [name for name, count in counts.items() if count == 1]
    if constant:
        notes.append(
            f"Constant columns: {list_names(constant)}. They carry no information; "
            "leave them out with drop=."
        )
    found = _find_ids_and_dates(numbers)
    if found:
        notes.append(
            "Used as a feature, but looks like a row number, id or date: "
            f"{list_names(found)}. If it is one, leave it out with drop= or, if it "
            "names the samples, id_column=."
        )
    return notes


def _find_ids_and_dates(numbers: DataFrame) -> list[str]:
    """Return columns of dates (20210411) and of whole numbers without repetition.

    If most columns are whole and without repetition, they are measurements: only those
    without a gap, or called an id, are returned.
    """
    values = numbers.to_numpy()
    if len(values) < N_ROWS_FOR_ID:
        return []
    whole = np.flatnonzero((values == np.rint(values)).all(axis=0))
    distinct = [k for k in whole if len(np.unique(values[:, k])) == len(values)]
    few = 2 * len(distinct) <= values.shape[1]
    named = [bool(_ID_NAME.search(str(name))) for name in numbers.columns]
    ids = [
        k
        for k in distinct
        if few or named[k] or np.ptp(values[:, k]) == len(values) - 1
    ]
    dates = [k for k in whole if _are_dates(values[:, k])]
    return [str(numbers.columns[k]) for k in sorted({*ids, *dates})]


def _are_dates(values: NDArray[Any]) -> bool:
    """Whether all numbers read as year, month and day: 20210411."""
    months, days = values // 100 % 100, values % 100
    years = (values >= 1900_00_00) & (values < 2100_00_00)
    valid = years & (1 <= months) & (months <= 12) & (1 <= days) & (days <= 31)
    return bool(valid.all())


def _read_classes(column: Series, target: str) -> tuple[NDArray[Any], list[str]]:
    """Return the classes as an array of text, whole numbers or booleans; and notes."""
    is_text = bool(text_columns(column.to_frame()))
    empty = column.isna().to_numpy()
    known = column[~empty]
    y = as_words(known).to_numpy(dtype=str) if is_text else known.to_numpy()
    classes, counts = np.unique(y, return_counts=True)
    _refuse_numbers_and_ids(y, counts, target, is_text)
    if empty.any():
        raise ValueError(
            f"column '{target}' has no class in {int(empty.sum())} of {len(empty)} "
            f"rows, first in row {int(np.argmax(empty)) + 1} of the file. Delete "
            "these rows; leaveout predict can classify them."
        )
    if len(classes) < 2:
        raise ValueError(
            f"column '{target}' has one class only, '{classes[0]}'. At least two are "
            "needed."
        )
    notes = _capitals_notes("classes", classes) if is_text else []
    if (counts == 1).any():
        notes.append(
            f"Classes with one sample: {list_names(classes[counts == 1])}. Such a "
            "sample is always predicted wrongly, because its class is unknown without "
            "it. Merge or drop such classes."
        )
    return y, notes


def _refuse_numbers_and_ids(
    y: NDArray[Any], counts: NDArray[np.intp], target: str, is_text: bool
) -> None:
    """Refuse a column with few rows per value, or with fractions.

    Of many numbers that are measured, such as ages, some occur only once.
    """
    what = "an id" if is_text else "a regression target or an id"
    if counts.size <= N_CATEGORIES:
        size = 2
    elif is_text:
        size = 3
    else:
        size = 20 if counts.min() == 1 else 5
    if len(y) >= N_ROWS_FOR_ID and size * counts.size > len(y):
        advice = " If the numbers name classes, write them as text, such as 'type 7'."
        advice = "" if is_text else advice
        raise ValueError(
            f"column '{target}' has {counts.size} distinct values in {len(y)} rows. It "
            f"looks like {what}: choose another column, or bin it into classes.{advice}"
        )
    if y.dtype.kind != "f":
        return
    odd = y[(y != np.rint(y)) | (abs(y) >= 2**53)]
    if odd.size:  # scikit-learn takes them for a continuous target
        raise ValueError(
            f"column '{target}' looks like a regression target: it has the value "
            f"{odd[0]:g}. Choose another column, or write the classes as "
            "text, such as 'low' and 'high'."
        )


def _capitals_notes(what: str, words: NDArray[Any]) -> list[str]:
    """Note words that differ only in case; they count as different."""
    unlike = np.unique(words.astype(str))
    counts = Counter(word.casefold() for word in unlike)
    alike = [word for word in unlike if counts[word.casefold()] > 1]
    if not alike:
        return []
    return [f"Some {what} differ only in upper and lower case: {list_names(alike)}."]


def _read_svmlight(content: bytes, path: Path) -> Dataset:
    import pandas as pd

    X, y, names = read_svmlight(content, path)
    with name_file(path):
        y, notes = _read_classes(pd.Series(y), "class")
    return Dataset(path.name, X, y, names, "class", notes=tuple(notes))
