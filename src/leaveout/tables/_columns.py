# SPDX-License-Identifier: BSD-3-Clause
"""From a table to a Dataset: target, features, groups.

Columns of a table as features: numbers, categories, or a reason why not.

What makes a left-out sample known beforehand: copies, and columns of subjects.

Read samples, and say what is wrong with them in the words of their owner.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from leaveout._messages import (
    check_names_known,
    list_columns,
    list_items,
    list_names,
    name_cell,
)
from leaveout._typing import IntArray
from leaveout.tables._dataset import Dataset
from leaveout.tables._files import (
    Table,
    file_named,
    is_svmlight,
    mark_missing,
    read_svmlight,
    read_table,
    sample_names,
    text_columns,
)

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
# With fewer rows a column agrees with the classes by chance.
N_ROWS_FOR_PURITY = 20


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


def warn_duplicate_rows(
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
    >>> frame = pd.DataFrame({"dose": [1.0, 2.0, 1.0]})
    >>> warn_duplicate_rows(frame, np.array(["a", "b", "a"]))
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
            *warn_duplicate_rows(features.frame, y, groups),
        ),
    )


def check_columns(names: Sequence[str], frame: DataFrame, path: Path) -> None:
    """Refuse the first name that no column has, and suggest the nearest.

    Examples
    --------
    >>> import pandas as pd
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
