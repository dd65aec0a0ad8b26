# SPDX-License-Identifier: BSD-3-Clause
"""Users' files: CSV, Parquet, svmlight.

Whether 1.234 is a little more than one, or a thousand: what the file says itself.

From a file to a table of columns with names, whatever wrote the file.

Separator, encoding and decimal commas are found by looking; what was found and is not
the plain case is noted, so that a wrong guess can be seen.

Samples in the svmlight (LIBSVM) format: "class index:value index:value".

Tables as CSV text in which no cell is a formula to a spreadsheet.

A program that opens a CSV file runs cells that begin with =, +, - or @, wherever they
came from: the name of a sample may be one. Such text gets an apostrophe in front, the
sign of spreadsheets for "this is text"; reading takes it away again. Numbers stay.

Tables that commands give: samples with their names, in JSON with every digit.
"""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, StringIO
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leaveout._messages import list_names, name_cell, nearest_name, printable
from leaveout.exceptions import DataFileError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_MARKS = {".": "point", ",": "comma"}
_OTHER = {".": ",", ",": "."}
_DECIMAL = re.compile(r"[+-]?\d*([.,])\d+(?:[eE][+-]?\d+)?")
_IN_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
# What counts as an empty cell. Not "None": treatments and stages are called so.
MISSING_MARKS = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "?"]
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
BLANKS = r"\s+"
# Separators are judged by this many rows.
N_ROWS_SNIFFED = 50
UNNAMED = "(unnamed {})"
# Numbers of a Parquet file: so many, and so many more per byte; beyond, it is a trap.
N_VALUES_FREE, VALUES_PER_BYTE = 2**28, 64
_NUMBER = re.compile(r"[+-]?[\d.,]++(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
# The longer ones first: that of UTF-32 begins like that of UTF-16.
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_FOREIGN = {
    b"PK\x03\x04": "a zip archive, as Excel's .xlsx is. Save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel file. Save the sheet as CSV",
    b"\x1f\x8b": "compressed with gzip. Unpack it first",
    b"%PDF": "a PDF. Save the table as CSV",
}
# Columns have names; a list of more would fill the memory of a small machine.
MAX_COLUMNS = 10_000_000
_CLASS = rb"\s*[+-]?[\d.]+(?:[eE][+-]?\d+)?(?:\s+qid:\d+)?"
_LINE = re.compile(_CLASS + rb"(?:\s+\d+:[^\s:]+)+\s*(?:#.*)?")
_LINE_OF_ZEROS = re.compile(_CLASS + rb"\s*(?:#.*)?|\s*#.*|\s*")
# What spreadsheets take for the start of a formula, also as wide letters, and blanks,
# which some pass over (and our reader). Text with apostrophes in front of it gets one
# more: else reading could not tell them apart.
_FORMULA = re.compile(r"'*[=+\-@\s＝＋－＠]")
_NUMERIC = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


class _Marked(NamedTuple):
    """By mark, the first number that may be in thousands, and the first that is not."""

    doubtful: dict[str, str]
    decimal: dict[str, str]


def check_decimal_marks(cells: Mapping[str, Iterable[object]]) -> None:
    """Refuse a number such as 1.234 where a decimal comma says it may be a thousand.

    A column in which other numbers show the same mark to be decimal (0.5, 12.25) is
    left in peace; else all other columns count.

    Parameters
    ----------
    cells : mapping of str to cells
        Columns of numbers as they are written; other text does not matter.

    Raises
    ------
    ValueError
        Names the number, and the one that contradicts it.
    """
    columns = [_find_marked(name, column) for name, column in cells.items()]
    in_file: dict[str, str] = {}
    for column in columns:
        in_file = column.decimal | in_file
    for column in columns:
        known = column.decimal or in_file or column.doubtful
        for mark, cell in column.doubtful.items():
            other = _OTHER[mark]
            if other in known:
                raise ValueError(
                    f"Thousands or decimals? {cell} has a {_MARKS[mark]}, but the "
                    f"decimal mark of {known[other]} is a {_MARKS[other]}. Write all "
                    "numbers with the same decimal mark and without one for thousands."
                )


def _find_marked(name: str, column: Iterable[object]) -> _Marked:
    found = _Marked({}, {})
    for row, cell in enumerate(column):
        word = str(cell).strip()
        number = _DECIMAL.fullmatch(word)
        if number is None:
            continue
        cells = found.doubtful if _IN_THOUSANDS.fullmatch(word) else found.decimal
        if number[1] not in cells:
            cells[number[1]] = name_cell(name, row, word)
    return found


@dataclass(frozen=True)
class Table:
    """A table as it stands in a file, and what was found about the file.

    Parameters
    ----------
    frame : DataFrame
        Columns of numbers, booleans or text; all names differ.
    notes : tuple of str
        Sentences on how the file was read, none if it is a plain CSV file.
    """

    frame: DataFrame
    notes: tuple[str, ...] = ()


def read_table(path: str | Path, *, as_text: Collection[str] = ()) -> Table:
    r"""Read a table from delimited text or Parquet.

    Text may be separated by commas, semicolons, tabs, bars or blanks, be encoded as
    UTF-8, 16 or 32 or the West European way, and have decimal commas; the first row has
    the names.

    Parameters
    ----------
    path : str or Path
        The file. Parquet is told by its content.
    as_text : collection of str
        Columns to keep letter by letter where the file is text: ids such as 0042, or
        longer than a float can hold.

    Returns
    -------
    Table
        With the notes.

    Raises
    ------
    OSError
        The file is missing or cannot be read.
    DataFileError
        The file holds no table; the message says why.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "dose.csv")
    ...     _ = path.write_text("dose;kind\n1,5;a\n2,25;b\n")
    ...     table = read_table(path)
    >>> table.frame["dose"].tolist()
    [1.5, 2.25]
    >>> table.notes
    ('Columns are separated by semicolons.', "Decimal commas read as such: 'dose'.")
    """
    path = Path(path)
    with file_named(path):
        raw = read_bytes(path)
        if raw.startswith(b"PAR1"):
            return Table(mark_missing(_read_parquet(raw, path), as_text))
        for start, what in _FOREIGN.items():
            if raw.startswith(start):
                raise ValueError(f"'{path}' is {what}.")
        text, notes = _decode(raw, path)
        if not text.strip():  # a byte order mark alone
            raise ValueError(f"'{path}' is empty.")
        table = _read_text(text, path, as_text)
        return Table(table.frame, (*notes, *table.notes))


@contextmanager
def file_named(path: str | Path) -> Iterator[None]:
    """Turn a ValueError about the content of a file into one that names the file."""
    try:
        yield
    except DataFileError:
        raise
    except ValueError as why:
        message = str(why)
        if str(path) not in message:
            message = f"'{path}': {message}"
        raise DataFileError(printable(message)) from why


def read_bytes(path: Path) -> bytes:
    """Return the content of a file; a missing or empty one is named."""
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder. Give the path of a file.")
    if not path.exists():
        raise FileNotFoundError(f"No file '{path}'.{other_files(path)}")
    try:
        raw = path.read_bytes()
    except OSError as why:
        raise OSError(f"'{path}' cannot be read: {why.strerror}.") from why
    if not raw.strip():
        raise DataFileError(f"'{path}' is empty.")
    return raw


def other_files(path: Path) -> str:
    """Say which files of the folder have a name like the one not found."""
    if not path.parent.is_dir():
        return f" There is no folder '{path.parent}' either."
    stems = {other.stem: other.name for other in path.parent.iterdir()}
    close = nearest_name(path.stem, stems)
    return "" if close is None else f" Did you mean '{stems[close]}'?"


def _read_parquet(raw: bytes, path: Path) -> DataFrame:
    import pandas as pd

    try:
        from pyarrow import parquet
    except ImportError as why:
        raise ValueError(
            f"'{path}' is a Parquet file, which needs pyarrow: pip install pyarrow."
        ) from why
    try:
        file = parquet.ParquetFile(BytesIO(raw))
        _check_n_values(file.metadata, len(raw))
        table = file.read()
        table.validate(full=True)  # else broken text shows only when it is used
        frame = table.to_pandas()
    except MemoryError:
        raise
    except Exception as why:  # pyarrow has many kinds; each means a broken file
        reason = " ".join(str(why).split())
        raise ValueError(f"'{path}' is a damaged Parquet file: {reason}") from why
    frame.columns = [str(name) for name in frame.columns]
    index = [str(name) for name in frame.index.names if name is not None]
    _check_names([*index, *frame.columns], path)
    nameless = not index and not isinstance(frame.index, pd.MultiIndex)
    return frame.reset_index(drop=nameless)


def _check_n_values(metadata: Any, n_bytes: int) -> None:
    """Refuse a small file that unpacks to a huge table.

    The counts of single columns are not looked at: in a damaged file, pyarrow ends the
    process when asked for them.
    """
    n_values = metadata.num_rows * metadata.num_columns
    if n_values > N_VALUES_FREE + VALUES_PER_BYTE * n_bytes:
        raise ValueError(f"its {n_bytes:,} bytes unpack to {n_values:,} values.")


def _decode(raw: bytes, path: Path) -> tuple[str, list[str]]:
    """Return the text, and a note if it is not UTF-8."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if not raw.startswith(mark):
            continue
        try:
            return raw.decode(encoding), []
        except UnicodeDecodeError as why:
            raise ValueError(
                f"'{path}' is damaged {encoding} text: {why.reason}."
            ) from why
    if b"\x00" in raw:
        raise ValueError(
            f"'{path}' is not a table: it has bytes that are no text. If it is UTF-16 "
            "or UTF-32 without a byte order mark, save it as UTF-8."
        )
    try:
        return raw.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        pass
    for encoding in ("cp1252", "latin-1"):  # the second takes any byte
        try:
            return raw.decode(encoding), [f"Not UTF-8: read as {encoding}."]
        except UnicodeDecodeError:
            continue
    raise AssertionError("latin-1 decodes everything")


def _read_text(text: str, path: Path, as_text: Collection[str]) -> Table:
    """Return the table in a text with a row of names."""
    declared = re.match(r"sep=([,;\t|:^~])\r?\n", text)  # Excel's own first line
    if declared:
        text = text[declared.end() :]
    separator = declared[1] if declared else _find_separator(text)
    names = _column_names(text, separator, path)
    frame = _parse(text, separator, names, path, as_text)
    frame, n_empty = _drop_last_empty_rows(mark_missing(frame, as_text))
    if frame.empty:
        raise ValueError(f"'{path}' has a header but no rows.")
    hollow = {UNNAMED.format(k + 1) for k in range(len(names))} & set(names)
    empty = [name for name in hollow if frame[name].isna().all()]
    frame = frame.drop(columns=empty).copy()  # one block of memory, not one a column
    frame = _unguard(_long_integers_as_floats(frame, as_text))
    frame, commas = _convert_decimal_commas(frame, separator, as_text)
    if commas:  # once more as it is written: of a number 1.23, nobody knows if 1.230
        floats = frame.select_dtypes("floating").columns
        numeric = {*commas, *floats}
        written = _columns_as_written(text, separator, names)
        check_decimal_marks({name: written[name] for name in names if name in numeric})
    notes = []
    if n_empty:
        notes.append(f"Empty rows at the end, left out: {n_empty}.")
    if separator in (";", "|", BLANKS):
        word = SEPARATORS.get(separator, "blanks")
        notes.append(f"Columns are separated by {word}.")
    if commas:
        notes.append(f"Decimal commas read as such: {list_names(commas)}.")
    return Table(frame, tuple(notes))


def _parse(
    text: str, separator: str, names: list[str], path: Path, as_text: Collection[str]
) -> DataFrame:
    """Return the cells below the header, numbers as such unless ``as_text``."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                StringIO(text),
                sep=separator,
                header=0,
                names=names,
                index_col=False,
                dtype={name: str for name in as_text if name in names},
                skipinitialspace=True,
                na_values={name: _missing_marks(name, as_text) for name in names},
                keep_default_na=False,
                low_memory=False,
                **_exact_numbers(),
            )
    except pd.errors.ParserWarning as why:  # it would cut rows to the header's length
        raise ValueError(_long_row_message(text, separator, len(names), path)) from why
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as why:
        if "out of memory" in str(why):
            raise MemoryError(_memory_message(text, path)) from why
        if "EOF inside string" in str(why):
            raise ValueError(_open_quote_message(text, separator, path)) from why
        raise ValueError(_ragged_message(str(why), path)) from why


def _columns_as_written(
    text: str, separator: str, names: list[str]
) -> dict[str, tuple[str, ...]]:
    """Return the cells below the header, letter by letter."""
    rows = [row for _, row in _rows(text, separator) if row]
    return dict(zip(names, zip_longest(*rows[1:], fillvalue=""), strict=False))


def _missing_marks(name: str, as_text: Collection[str]) -> list[str]:
    """Return what counts as an empty cell: where letters matter, no letters at all."""
    return [""] if name in as_text else MISSING_MARKS


def mark_missing(frame: DataFrame, as_text: Collection[str] = ()) -> DataFrame:
    """Take text away that is blank or stands for nothing, whatever file it is from."""
    masked = {}
    for name in text_columns(frame):
        # Plain Python: of thousands of short columns, pandas would take its time.
        marks = set(_missing_marks(name, as_text))
        missing = [str(cell).strip() in marks for cell in frame[name].tolist()]
        if any(missing):
            masked[name] = frame[name].copy()
            masked[name][missing] = None  # mask of pandas 2 warns where nothing is left
    return frame.assign(**masked)


def _drop_last_empty_rows(frame: DataFrame) -> tuple[DataFrame, int]:
    """Drop rows of separators only, which spreadsheets leave at the end; count them."""
    n_rows = len(frame)
    while n_rows and frame.iloc[n_rows - 1].isna().all():
        n_rows -= 1
    return frame.iloc[:n_rows], len(frame) - n_rows


def _exact_numbers() -> dict[str, Any]:
    """Ask pandas before 3.1 for the double nearest to what is written."""
    import pandas as pd

    is_old = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    return {"float_precision": "round_trip"} if is_old else {}


def _long_integers_as_floats(frame: DataFrame, as_text: Collection[str]) -> DataFrame:
    """Make floats of integers beyond 64 bits, which pandas leaves as they are."""
    for name in text_columns(frame):
        texts = [str(cell) for cell in frame[name].dropna().tolist()]
        if name not in as_text and all(map(_INTEGER.fullmatch, texts)):
            # By way of text: beyond 308 digits it is infinite, where int has no float.
            present = frame[name].notna().to_numpy()
            column = np.full(len(frame), np.nan)
            column[present] = [float(text) for text in texts]
            frame[name] = column
    return frame


def _unguard(frame: DataFrame) -> DataFrame:
    """Take away the apostrophes that ``format_csv`` put before formulas."""
    for name in text_columns(frame):
        column = frame[name]
        if any(str(cell).startswith("'") for cell in column.tolist()):
            plain = column.map(
                lambda cell: unescape_formula(cell) if isinstance(cell, str) else cell
            )
            frame[name] = plain.astype(column.dtype)
    return frame


def _find_separator(text: str) -> str:
    """Return the separator by which header and rows have the same number of fields."""
    best, best_rank = ",", (0.0, 0, 1)
    for separator in SEPARATORS:
        if (rank := _rank(_first_rows(text, separator))) > best_rank:
            best, best_rank = separator, rank
    if best_rank > (0.0, 0, 1):
        return best
    widths = [len(row) for row in _first_rows(text, BLANKS)]
    return BLANKS if len(set(widths)) == 1 and widths[0] > 1 else ","


def _rank(rows: list[list[str]]) -> tuple[float, int, int]:
    """Return how well fields make a table: rows of equal width, whole numbers, width.

    Of "weight, kg;kind" over "1,5;a", only semicolons leave all of the number together.
    """
    if not rows or len(rows[0]) == 1:
        return (0.0, 0, 0)
    width, body = len(rows[0]), rows[1:] or rows
    # Row names without a header (R), or a separator at the end: one field more.
    share = sum(len(row) in (width, width + 1) for row in body) / len(body)
    fields = [field.strip() for row in body for field in row]
    n_characters = sum(len(field) for field in fields if _NUMBER.fullmatch(field))
    return (round(share, 1), n_characters, width)


def _first_rows(text: str, separator: str) -> list[list[str]]:
    """Return the fields of the first rows that are not blank."""
    rows = (row for _, row in _rows(text, separator) if row)
    return list(islice(rows, N_ROWS_SNIFFED))


def _rows(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line and the fields of each row."""
    if separator == BLANKS:
        for number, line in enumerate(StringIO(text, newline=None), start=1):
            yield number, line.split()
        return
    lines = StringIO(text, newline="")  # also \r alone ends a line
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    limit = csv.field_size_limit(2**31 - 1)  # a long text is not yet a broken one
    try:
        for row in rows:
            yield rows.line_num, row
    finally:
        csv.field_size_limit(limit)


def _column_names(text: str, separator: str, path: Path) -> list[str]:
    """Return one name per column; unnamed columns get one, equal names are refused."""
    rows = _first_rows(text, separator)
    header = [unescape_formula(name.strip()) for name in rows[0]] if rows else []
    if len(rows) > 1 and all(len(row) == len(header) + 1 for row in rows[1:]):
        at_end = all(not row[-1].strip() for row in rows[1:])
        header = [*header, ""] if at_end else ["", *header]
    names = [name or UNNAMED.format(k + 1) for k, name in enumerate(header)]
    _check_names(names, path)
    return names


def _check_names(names: list[str], path: Path) -> None:
    """Refuse equal names: nobody could say which column is meant."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        first = [k + 1 for k, name in enumerate(names) if name == twice[0]]
        raise ValueError(
            f"'{path}' has more than one column named {list_names(twice)} "
            f"('{twice[0]}': columns {', '.join(map(str, first))}). Rename them."
        )


def _ragged_message(why: str, path: Path) -> str:
    """Say which line has too many fields, from what pandas says."""
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", why)
    if found is None:
        return f"'{path}' is not a table: {why}".strip()
    expected, line, saw = found.groups()
    return (
        f"'{path}' is not a table: line {line} has {saw} fields, the lines before it "
        f"{expected}. Quote values that contain the separator."
    )


def _long_row_message(text: str, separator: str, n_names: int, path: Path) -> str:
    """Say which line has more fields than there are names."""
    for line, row in _rows(text, separator):
        if len(row) > n_names:
            return (
                f"'{path}' is not a table: line {line} has {len(row)} fields, the "
                f"header {n_names}. Quote values that contain the separator."
            )
    return f"'{path}' is not a table: a row has more fields than the header has names."


def _open_quote_message(text: str, separator: str, path: Path) -> str:
    """Say in which line the row begins that a quotation mark keeps open to the end."""
    rows = _rows(text, " " if separator == BLANKS else separator)
    ends = [line for line, _ in rows]
    return (
        f"'{path}' is not a table: a quotation mark in the row that begins in line "
        f"{ends[-2] + 1 if len(ends) > 1 else 1} is not closed. Close or delete it."
    )


def _memory_message(text: str, path: Path) -> str:
    return (
        f"Not enough memory to read '{path}': its {len(text):,} characters need more. "
        "Leave out rows or columns, or use a larger machine."
    )


def _convert_decimal_commas(
    frame: DataFrame, separator: str, as_text: Collection[str]
) -> tuple[DataFrame, list[str]]:
    """Turn text such as 1,5 into numbers, column by column; return the columns too.

    A comma in a number of a comma-separated file (in quotes, then) may as well group
    thousands: these stay text, and are refused later.
    """
    import pandas as pd

    converted: dict[str, Any] = {}
    for name in [] if separator == "," else text_columns(frame):
        if name in as_text:
            continue
        column = frame[name]
        present = column.notna().to_numpy()
        words = [str(cell).strip() for cell in column[present].tolist()]
        commas = [_DECIMAL_COMMA.fullmatch(word) is not None for word in words]
        if not any(commas):
            continue
        pointed = [
            word.replace(",", ".") if has_comma else word
            for word, has_comma in zip(words, commas, strict=True)
        ]
        # By Python's float: to_numeric of pandas 2 is wrong in the last bit.
        numbers = [float(word) for word in pointed if _is_number(word)]
        if len(numbers) < len(words) / 2:
            continue
        if len(numbers) == len(words):
            converted[name] = np.full(len(frame), np.nan)
            converted[name][present] = numbers
        else:
            texts = np.full(len(frame), None, dtype=object)
            texts[present] = pointed
            converted[name] = pd.Series(texts, index=frame.index, dtype="string")
    return (frame.assign(**converted) if converted else frame), list(converted)


def _is_number(word: str) -> bool:
    """Whether Python reads a word as a number, and so would people."""
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def sample_names(frame: DataFrame, column: str) -> np.ndarray:
    """Return the ids in a column as text, empty where there is none."""
    return frame[column].astype(str).mask(frame[column].isna(), "").to_numpy()


def text_columns(frame: DataFrame) -> list[str]:
    """Return the names of the columns that hold neither numbers nor booleans."""
    import pandas as pd

    is_number = {
        kind: pd.api.types.is_numeric_dtype(kind) for kind in set(frame.dtypes)
    }
    return [name for name, kind in frame.dtypes.items() if not is_number[kind]]


def is_svmlight(path: str | Path) -> bool:
    """Whether the first line with features reads "class index:value index:value".

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("+1 1:0.5 7:2")
    ...     file.flush()
    ...     is_svmlight(file.name)
    True
    """
    for line in read_bytes(Path(path)).splitlines():
        if not _LINE_OF_ZEROS.fullmatch(line):
            return _LINE.fullmatch(line) is not None
    return False


def read_svmlight(
    path: str | Path, names: list[str] | None = None
) -> tuple[Any, NDArray[Any], list[str]]:
    """Read a file; its columns are called by their indices.

    Parameters
    ----------
    path : str or Path
        The file.
    names : list of str, optional
        Columns of an earlier file, to be met by this one. Without, they start from
        "0" if that index occurs, else from "1".

    Returns
    -------
    X : CSR matrix of shape (n, p)
        Features.
    y : ndarray of shape (n,)
        Classes, as whole numbers if they are.
    names : list of str
        Names of the p columns.

    Raises
    ------
    DataFileError
        The file is damaged, or has a column that ``names`` has not; or ``names`` are
        not numbers without a gap.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("+1 1:0.5 3:2")
    ...     file.flush()
    ...     X, y, names = read_svmlight(file.name)
    >>> X.toarray(), y, names
    (array([[0.5, 0. , 2. ]]), array([1]), ['1', '2', '3'])
    """
    with file_named(path):
        return _read(Path(path), names)


def _read(path: Path, names: list[str] | None) -> tuple[Any, NDArray[Any], list[str]]:
    X, y = _parse_svmlight(path)
    if not np.isfinite(X.data).all():
        raise ValueError(f"'{path}' has values that are not finite. Correct them.")
    if not (np.abs(y) <= 2**53).all():
        raise ValueError(
            f"'{path}' has a class that is not finite, or larger than 2**53. Use small "
            "whole numbers."
        )
    if X.shape[1] > MAX_COLUMNS:
        raise ValueError(
            f"'{path}' has an index {X.shape[1] - 1}; at most {MAX_COLUMNS:,} columns "
            "are read. Number the columns that occur from 1."
        )
    if names is None:
        names = [str(k) for k in range(int(X[:, 0].nnz == 0), X.shape[1])]
    first, last = _ends(names, path)
    if X.shape[1] > last + 1 or X[:, :first].nnz:
        wrong = X.shape[1] - 1 if X.shape[1] > last + 1 else 0
        raise ValueError(
            f"'{path}' has a column {wrong}; those of the model are {first} to {last}."
        )
    X = sparse.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], last + 1))
    whole = bool((y == np.rint(y)).all())
    return X[:, first:], y.astype(np.int64) if whole else y, names


def _ends(names: list[str], path: Path) -> tuple[int, int]:
    """Return the first and the last index, or refuse names that are none."""
    start = int(names[0] == "1")
    if names != [str(k) for k in range(start, start + len(names))]:
        raise ValueError(
            f"'{path}' is an svmlight file, whose columns are numbered; those of the "
            f"model are {list_names(names)}. Give a table with these columns."
        )
    return start, start + len(names) - 1


def _parse_svmlight(path: Path) -> tuple[Any, NDArray[Any]]:
    """Return features, the indices as they stand (column 0 may be empty), and classes.

    Raises
    ------
    ValueError
        Says that the file is damaged.
    """
    # Here, not above: sklearn.datasets takes as long to import as the rest of leaveout.
    from sklearn.datasets import load_svmlight_file

    try:
        return load_svmlight_file(BytesIO(read_bytes(path)), zero_based=True)
    except (ValueError, OverflowError) as why:
        raise ValueError(f"'{path}' is a damaged svmlight file: {why}") from why


def escape_formula(text: str) -> str:
    """Put an apostrophe before what a spreadsheet could take for a formula.

    Examples
    --------
    >>> escape_formula("=1+1"), escape_formula("-1.5"), escape_formula("control")
    ("'=1+1", '-1.5', 'control')
    """
    if _FORMULA.match(text) and not _NUMERIC.fullmatch(text):
        return f"'{text}"
    return text


def unescape_formula(text: str) -> str:
    """Undo :func:`escape_formula`.

    Examples
    --------
    >>> texts = ("=1+1", "'=1+1", "-1.5", "'tis")
    >>> [unescape_formula(escape_formula(text)) for text in texts]
    ['=1+1', "'=1+1", '-1.5', "'tis"]
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def format_csv(frame: DataFrame) -> str:
    """Return a table as CSV with a row of names, its text guarded.

    Parameters
    ----------
    frame : DataFrame
        Columns of numbers, booleans or text; the index is left out.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"id": ["@you", "me"], "margin": [-1.5, 2.0]})
    >>> print(format_csv(frame), end="")
    id,margin
    '@you,-1.5
    me,2.0
    """
    import pandas as pd

    columns = {k: _guard_column(frame.iloc[:, k]) for k in range(frame.shape[1])}
    names = [escape_formula(str(name)) for name in frame.columns]
    text = pd.DataFrame(columns)
    # Python's csv leaves a lone \r without quotes, and readers end the row there.
    returns = any("\r" in name for name in names) or any(
        text[k].astype(str).str.contains("\r", regex=False).any()
        for k in columns
        if not pd.api.types.is_numeric_dtype(text[k])
    )
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    return text.to_csv(index=False, header=names, quoting=quoting)


def _guard_column(column: Series) -> Series:
    """Guard the cells that are text."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    return column.map(
        lambda cell: escape_formula(cell) if isinstance(cell, str) else cell
    )


def insert_names(frame: DataFrame, heading: str, names: Any) -> None:
    """Put the names of the samples in front, under a heading no other column has."""
    frame.insert(0, f"{heading} (id)" if heading in frame else heading, names)


def to_records(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows for JSON; what JSON has no number for is None.

    ``DataFrame.to_json`` would round to 15 decimals at most.
    """
    plain = frame.astype(object)
    missing = frame.isna() | frame.isin([np.inf, -np.inf])
    return plain.mask(missing, None).to_dict("records")
