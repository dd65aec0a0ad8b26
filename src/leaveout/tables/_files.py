# SPDX-License-Identifier: BSD-3-Clause
"""Users' files: CSV and the like, Parquet, svmlight; and tables written as CSV.

Text is UTF-8, the separator is found by trial, and numbers have decimal points. A
decimal comma is recognised where commas do not separate columns, if no number of the
file contradicts it. The options ``sep``, ``decimal`` and ``encoding`` override this.

Spreadsheets run cells that begin with =, +, - or @ as formulas. Text that is written to
CSV gets an apostrophe in front of them; reading removes it again.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leaveout._messages import list_names, name_cell, nearest_name, printable
from leaveout.exceptions import DataFileError

if TYPE_CHECKING:
    from pandas import DataFrame

# Marks of an empty cell. "None" is not one: it may be a treatment or a stage.
MISSING_MARKS = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "?"]
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
BLANKS = r"\s+"
# Separators are judged by this many rows.
N_ROWS_SNIFFED = 50
UNNAMED = "(unnamed {})"
# Values of a Parquet file and bytes of an unpacked one: a fixed number and some per
# byte of the file; beyond, it is a decompression bomb.
N_VALUES_FREE, VALUES_PER_BYTE = 2**28, 64
# Columns have names; a longer list would fill the memory of a small computer.
MAX_SVMLIGHT_COLUMNS = 10_000_000
_NUMBER = re.compile(r"[+-]?[\d.,]++(?:[eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
# The longer ones first: that of UTF-32 begins like that of UTF-16.
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_FOREIGN = {
    b"PK\x03\x04": "a zip archive, as Excel's .xlsx is. Save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel file. Save the sheet as CSV",
    b"%PDF": "a PDF. Save the table as CSV",
}
_CLASS = rb"\s*[+-]?[\d.]+(?:[eE][+-]?\d+)?(?:\s+qid:\d+)?"
_SVMLIGHT_LINE = re.compile(_CLASS + rb"(?:\s+\d+:[^\s:]+)+\s*(?:#.*)?")
_LINE_OF_ZEROS = re.compile(_CLASS + rb"\s*(?:#.*)?|\s*#.*|\s*")
# What spreadsheets take for the start of a formula, also as wide letters, and blanks,
# which some skip (and our reader). Text that has apostrophes in front of it already
# gets one more, so that reading can distinguish them.
_FORMULA = re.compile(r"'*[=+\-@\s＝＋－＠]")
_NUMERIC = re.compile(r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?")


@dataclass(frozen=True)
class Table:
    """Columns of numbers, booleans or text, and notes on how the file was read."""

    frame: DataFrame
    notes: tuple[str, ...] = ()


@contextmanager
def name_file(path: str | Path) -> Iterator[None]:
    """Turn a ValueError about the content of a file into one that names the file."""
    try:
        yield
    except ValueError as why:
        message = str(why)
        if str(path) not in message:
            message = f"'{path}': {message}"
        raise DataFileError(printable(message)) from why


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked if it is gzip; "-" is stdin."""
    if str(path) == "-":
        return _unpack(sys.stdin.buffer.read(), path)
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder. Give the path of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"No file '{path}'. There is no folder '{path.parent}' either."
        )
    if not path.exists():
        stems = {other.stem: other.name for other in path.parent.iterdir()}
        close = nearest_name(path.stem, stems)
        hint = "" if close is None else f" Did you mean '{stems[close]}'?"
        raise FileNotFoundError(f"No file '{path}'.{hint}")
    return _unpack(path.read_bytes(), path)


def _unpack(content: bytes, path: Path) -> bytes:
    """Return the content of a gzip file, or of any other; refuse an empty one."""
    if content.startswith(b"\x1f\x8b"):
        most = N_VALUES_FREE + VALUES_PER_BYTE * len(content)
        try:
            with gzip.open(BytesIO(content)) as file:
                content = file.read(most + 1)
        except (OSError, EOFError, zlib.error) as why:
            raise DataFileError(f"'{path}': corrupt gzip file: {why}.") from why
        if len(content) > most:
            raise DataFileError(f"'{path}' unpacks to more than {most:,} bytes.")
    if not content.strip():
        raise DataFileError(f"'{path}' is empty.")
    return content


def read_table(
    content: bytes,
    path: str | Path,
    *,
    as_text: Collection[str] = (),
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Table:
    """Read delimited text or Parquet; columns in ``as_text`` are kept letter by letter.

    ``path`` is only for messages.
    """
    if sep is not None and len(sep) != 1:
        raise ValueError(f"sep= must be one character; got {sep!r}.")
    if decimal not in (None, ".", ",") or decimal == (sep or "none"):
        raise ValueError("decimal= must be '.' or ',', and not the separator.")
    with name_file(path):
        if content.startswith(b"PAR1"):
            return Table(mark_missing(_read_parquet(content), as_text))
        for start, what in _FOREIGN.items():
            if content.startswith(start):
                raise ValueError(f"the file is {what}.")
        return _read_text(_decode(content, encoding), as_text, sep, decimal)


def _read_parquet(content: bytes) -> DataFrame:
    import pandas as pd

    try:
        from pyarrow import parquet
    except ImportError as why:
        raise ValueError("Parquet needs pyarrow: pip install pyarrow.") from why
    try:
        file = parquet.ParquetFile(BytesIO(content))
        check_parquet_size(file.metadata, len(content))
        table = file.read()
        table.validate(full=True)  # otherwise invalid text is noticed only on use
        frame = table.to_pandas()
    except MemoryError:
        raise
    except Exception as why:  # pyarrow has many kinds; each means a corrupt file
        reason = " ".join(str(why).split())
        raise ValueError(f"corrupt Parquet file: {reason}") from why
    frame.columns = [str(name) for name in frame.columns]
    index = [str(name) for name in frame.index.names if name is not None]
    _check_names([*index, *frame.columns])
    nameless = not index and not isinstance(frame.index, pd.MultiIndex)
    return frame.reset_index(drop=nameless)


def check_parquet_size(
    metadata: Any, n_bytes: int, n_values_free: int = N_VALUES_FREE
) -> None:
    """Refuse a small file that unpacks to a huge table.

    The counts of single columns are not used: pyarrow crashes on corrupt ones.
    """
    n_values = metadata.num_rows * metadata.num_columns
    if n_values > n_values_free + VALUES_PER_BYTE * n_bytes:
        raise ValueError(f"its {n_bytes:,} bytes unpack to {n_values:,} values.")


def _decode(content: bytes, encoding: str | None) -> str:
    """Return the text; by default UTF-8, or what a byte order mark says."""
    found = [e for mark, e in _BYTE_ORDER_MARKS.items() if content.startswith(mark)]
    name = encoding or [*found, "utf-8-sig"][0]
    try:
        text = content.decode(name)
    except LookupError as why:
        raise ValueError(f"encoding='{encoding}' is not an encoding: {why}.") from why
    except UnicodeError as why:
        raise ValueError(
            f"the text cannot be decoded: {why}. Save it as UTF-8, or give its "
            "encoding, such as encoding='cp1252' (Windows in Western Europe)."
        ) from why
    if "\x00" in text:
        raise ValueError(
            "not a table: it has zero bytes. If it is UTF-16 without a byte order "
            "mark, save it as UTF-8 or give encoding='utf-16-le'."
        )
    return text


def _read_text(
    text: str, as_text: Collection[str], sep: str | None, decimal: str | None
) -> Table:
    """Return the table in a text with a row of names."""
    if not text.strip():  # a byte order mark alone
        raise ValueError("the file is empty.")
    sep = sep or _find_separator(text)
    names = _column_names(text, sep)
    frame = _parse(text, sep, decimal or ".", names, as_text)
    notes = []
    if sep in (";", "|", BLANKS):
        notes.append(f"Columns are separated by {SEPARATORS.get(sep, 'blanks')}.")
    if decimal is None and sep != "," and _has_decimal_commas(frame, as_text):
        pointed, frame = frame, _parse(text, sep, ",", names, as_text)
        still_text = set(text_columns(frame))
        _check_decimal_points(pointed, frame, still_text)
        commas = [name for name in text_columns(pointed) if name not in still_text]
        if commas:
            notes.append(f"Decimal commas recognised in {list_names(commas)}.")
    frame, n_empty = _drop_last_empty_rows(mark_missing(frame, as_text))
    if frame.empty:
        raise ValueError("the table has a header but no rows.")
    if n_empty:
        notes.insert(0, f"Empty rows at the end, left out: {n_empty}.")
    return Table(_unescape(frame).copy(), tuple(notes))  # one block, not one per column


def _find_separator(text: str) -> str:
    """Return the separator that makes rows as wide as the header.

    csv.Sniffer takes decimal commas for separators.
    """
    ranks = {sep: _rank(_first_rows(text, sep)) for sep in SEPARATORS}
    best = max(ranks, key=lambda sep: ranks[sep])
    if ranks[best] > (0.0, 0, 1):
        return best
    widths = [len(row) for row in _first_rows(text, BLANKS)]
    return BLANKS if len(set(widths)) == 1 and widths[0] > 1 else ","


def _rank(rows: list[list[str]]) -> tuple[float, int, int]:
    """Return how well fields make a table: equal widths, digits in numbers, width.

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


def _first_rows(text: str, sep: str) -> list[list[str]]:
    """Return the fields of the first rows that are not blank."""
    return list(islice((row for _, row in _rows(text, sep) if row), N_ROWS_SNIFFED))


def _rows(text: str, sep: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line and the fields of each row."""
    if sep == BLANKS:
        lines = StringIO(text, newline=None)
        yield from enumerate((line.split() for line in lines), start=1)
        return
    # newline="": also \r alone ends a line
    rows = csv.reader(StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    # With a wrong separator, a whole line of a wide table is one field.
    limit = csv.field_size_limit(2**31 - 1)
    try:
        for row in rows:
            yield rows.line_num, row
    finally:
        csv.field_size_limit(limit)


def _column_names(text: str, sep: str) -> list[str]:
    """Return one name per column; unnamed columns get one, equal names are refused."""
    rows = _first_rows(text, sep)
    header = [unescape_formula(name.strip()) for name in rows[0]]
    if len(rows) > 1 and all(len(row) == len(header) + 1 for row in rows[1:]):
        at_end = all(not row[-1].strip() for row in rows[1:])
        header = [*header, ""] if at_end else ["", *header]
    names = [name or UNNAMED.format(k + 1) for k, name in enumerate(header)]
    _check_names(names)
    return names


def _check_names(names: list[str]) -> None:
    """Refuse equal names."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        first = [k + 1 for k, name in enumerate(names) if name == twice[0]]
        raise ValueError(
            f"more than one column is named {list_names(twice)} "
            f"('{twice[0]}': columns {', '.join(map(str, first))}). "
            f"{header_hint(names).strip() or 'Rename them.'}"
        )


def header_hint(names: Iterable[object], frame: DataFrame | None = None) -> str:
    """Return advice if the first row looks like data: half of it are numbers.

    Sorted numbers beside names, and more than three, are a header: wavelengths, years,
    indices. In ``frame``, half of the text columns hold their own names as values.
    """
    advice = " The first row looks like data: add a row of column names above it."
    text = [] if frame is None else text_columns(frame)
    own = [name for name in text if frame is not None and name in set(frame[name])]
    if 2 <= len(own) >= len(text) / 2:
        return advice
    words = [str(name).strip("'") for name in names]
    numbers = [float(word) for word in words if _NUMERIC.fullmatch(word)]
    up = numbers == sorted(numbers)
    in_order = up and len(numbers) < len(words)
    if len(numbers) > 3:
        in_order = up or numbers == sorted(numbers, reverse=True)
    if 2 * len(numbers) < len(words) or in_order:
        return ""
    return advice


def _parse(
    text: str, sep: str, decimal: str, names: list[str], as_text: Collection[str]
) -> DataFrame:
    """Return the cells below the header, numbers as such unless ``as_text``."""
    import pandas as pd

    # pandas before 3.1 does not read the double nearest to what is written.
    is_old = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    exact: Any = {"float_precision": "round_trip"} if is_old else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                StringIO(text),
                sep=sep,
                decimal=decimal,
                header=0,
                names=names,
                index_col=False,
                dtype={name: str for name in as_text if name in names},
                skipinitialspace=True,
                na_values={name: _missing_marks(name, as_text) for name in names},
                keep_default_na=False,
                low_memory=False,
                **exact,
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning) as why:
        if "out of memory" in str(why):
            raise MemoryError(f"the table of {len(text):,} characters") from why
        raise ValueError(f"not a table: {_explain(text, sep, names, why)}") from why


def _explain(text: str, sep: str, names: list[str], why: Exception) -> str:
    """Name the first line with more fields than the header, else repeat pandas."""
    if "EOF inside string" in str(why):
        return f"a quotation mark is not closed ({why})."
    for line, row in _rows(text, sep):
        if len(row) > len(names):
            return (
                f"line {line} has {len(row)} fields, the header {len(names)}. Quote "
                "values that contain the separator, or give sep=."
            )
    return f"{' '.join(str(why).split())}."


def _has_decimal_commas(frame: DataFrame, as_text: Collection[str]) -> bool:
    """Whether at least half of the cells of some text column look like 1,5."""
    for name in text_columns(frame):
        cells = [] if name in as_text else frame[name].dropna().tolist()
        found = sum(_DECIMAL_COMMA.fullmatch(str(c).strip()) is not None for c in cells)
        if 0 < len(cells) <= 2 * found:
            return True
    return False


def _check_decimal_points(
    pointed: DataFrame, frame: DataFrame, still_text: set[str]
) -> None:
    """Refuse numbers with points where others have decimal commas: 1.234 beside 1,5.

    It could be a little more than one, or a thousand.
    """
    before = set(text_columns(pointed))
    for name in frame.columns:
        if name in still_text and name not in before:
            cells = list(map(str, frame[name].tolist()))  # NaN too, in text columns
            row = next(k for k, cell in enumerate(cells) if "." in cell)
            raise ValueError(
                f"Thousands or decimals? {name_cell(name, row, cells[row])} has a "
                "point, but other numbers have decimal commas. Decide with "
                "decimal=',' or decimal='.', or write all numbers the same way."
            )


def _missing_marks(name: str, as_text: Collection[str]) -> list[str]:
    """Return what counts as an empty cell: in text columns, only an empty one."""
    return [""] if name in as_text else MISSING_MARKS


def mark_missing(frame: DataFrame, as_text: Collection[str] = ()) -> DataFrame:
    """Make cells of text missing that are blank or a mark for a missing value."""
    masked = {}
    for name in text_columns(frame):
        # Plain Python: with thousands of short columns, pandas would be slow.
        marks = set(_missing_marks(name, as_text))
        missing = [str(cell).strip() in marks for cell in frame[name].tolist()]
        if any(missing):
            masked[name] = frame[name].copy()
            masked[name][missing] = None  # mask of pandas 2 warns where nothing is left
    return frame.assign(**masked) if masked else frame


def _drop_last_empty_rows(frame: DataFrame) -> tuple[DataFrame, int]:
    """Drop rows of separators only, which spreadsheets leave at the end; count them."""
    n_rows = len(frame)
    while n_rows and frame.iloc[n_rows - 1].isna().all():
        n_rows -= 1
    return frame.iloc[:n_rows], len(frame) - n_rows


def _unescape(frame: DataFrame) -> DataFrame:
    """Remove the apostrophes that ``format_csv`` put before formulas."""
    changed = {}
    for name in text_columns(frame):
        cells = frame[name]
        if any(str(cell).startswith("'") for cell in cells.tolist()):
            changed[name] = _map_text(cells, unescape_formula).astype(cells.dtype)
    return frame.assign(**changed) if changed else frame


def _map_text(column: Any, function: Any) -> Any:
    return column.map(lambda cell: function(cell) if isinstance(cell, str) else cell)


def sample_names(frame: DataFrame, column: str) -> NDArray[Any]:
    """Return the ids in a column as text, empty where there is none."""
    return frame[column].astype(str).mask(frame[column].isna(), "").to_numpy()


def text_columns(frame: DataFrame) -> list[str]:
    """Return the names of the columns that hold neither numbers nor booleans."""
    import pandas as pd

    is_number = {
        kind: pd.api.types.is_numeric_dtype(kind) for kind in set(frame.dtypes)
    }
    return [name for name, kind in frame.dtypes.items() if not is_number[kind]]


def is_svmlight(content: bytes) -> bool:
    """Whether the first line with features reads "class index:value index:value"."""
    for line in BytesIO(content):
        if not _LINE_OF_ZEROS.fullmatch(line.strip()):
            return _SVMLIGHT_LINE.fullmatch(line.strip()) is not None
    return False


def read_svmlight(
    content: bytes, path: str | Path, names: list[str] | None = None
) -> tuple[Any, NDArray[Any], list[str]]:
    """Return features (CSR), classes, and names of the columns: their indices.

    ``names`` are the columns of an earlier file, which this one must fit. Without, they
    start from "0" if that index occurs, else from "1".
    """
    with name_file(path):
        X, y = _parse_svmlight(content)
        if names is None:
            names = [str(k) for k in range(int(X[:, 0].nnz == 0), X.shape[1])]
        first = int(names[0] == "1")
        last = first + len(names) - 1
        if names != [str(k) for k in range(first, last + 1)]:
            raise ValueError(
                f"the columns of an svmlight file are numbered; those of the model are "
                f"{list_names(names)}. Give a table with these columns."
            )
        if X.shape[1] > last + 1 or X[:, :first].nnz:
            wrong = X.shape[1] - 1 if X.shape[1] > last + 1 else 0
            raise ValueError(
                f"it has a column {wrong}; those of the model are {first} to {last}."
            )
    X = sparse.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], last + 1))
    whole = bool((y == np.rint(y)).all())
    return X[:, first:], y.astype(np.int64) if whole else y, names


def _parse_svmlight(content: bytes) -> tuple[Any, NDArray[Any]]:
    """Return features, indexed as written (column 0 may be empty), and classes."""
    # Here, not above: sklearn.datasets takes as long to import as the rest of leaveout.
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(BytesIO(content), zero_based=True)
    except (ValueError, OverflowError) as why:
        raise ValueError(f"corrupt svmlight file: {why}") from why
    if not np.isfinite(X.data).all():
        raise ValueError("it has values that are not finite. Correct them.")
    if not (np.abs(y) <= 2**53).all():
        raise ValueError(
            "it has a class that is not finite, or larger than 2**53. Use small whole "
            "numbers."
        )
    if X.shape[1] > MAX_SVMLIGHT_COLUMNS:
        raise ValueError(
            f"it has an index {X.shape[1] - 1}; at most {MAX_SVMLIGHT_COLUMNS:,} "
            "columns are read. Number the columns that occur from 1."
        )
    return X, y


def escape_formula(text: str) -> str:
    """Put an apostrophe before what a spreadsheet could take for a formula."""
    if _FORMULA.match(text) and not _NUMERIC.fullmatch(text):
        return f"'{text}"
    return text


def unescape_formula(text: str) -> str:
    """Undo :func:`escape_formula`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def format_csv(frame: DataFrame) -> str:
    """Return a table as CSV with a row of names and without its index."""
    import pandas as pd

    text = frame.set_axis(range(frame.shape[1]), axis=1)
    names = [escape_formula(str(name)) for name in frame.columns]
    words = {k: _map_text(text[k], escape_formula) for k in text_columns(text)}
    # Python's csv leaves a lone \r without quotes, and readers end the row there.
    cells = [*names, *(str(cell) for column in words.values() for cell in column)]
    returns = any("\r" in cell for cell in cells)
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    whole = pd.DataFrame({k: words.get(k, text[k]) for k in text.columns})
    return whole.to_csv(index=False, header=names, quoting=quoting)


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
