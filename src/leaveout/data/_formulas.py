# SPDX-License-Identifier: BSD-3-Clause
"""Tables as CSV text in which no cell is a formula to a spreadsheet.

A program that opens a CSV file runs cells that begin with =, +, - or @, wherever they
came from: the name of a sample may be one. Such text gets an apostrophe in front, the
sign of spreadsheets for "this is text"; reading takes it away again. Numbers stay.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# What spreadsheets take for the start of a formula, also as wide letters, and blanks,
# which some pass over (and our reader). Text with apostrophes in front of it gets one
# more: else reading could not tell them apart.
_FORMULA = re.compile(r"'*[=+\-@\s＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def guard(text: str) -> str:
    """Put an apostrophe before what a spreadsheet could take for a formula.

    Examples
    --------
    >>> from leaveout.data import guard
    >>> guard("=1+1"), guard("-1.5"), guard("control")
    ("'=1+1", '-1.5', 'control')
    """
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def unguard(text: str) -> str:
    """Undo :func:`guard`.

    Examples
    --------
    >>> from leaveout.data import guard, unguard
    >>> [unguard(guard(text)) for text in ("=1+1", "'=1+1", "-1.5", "'tis")]
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
    >>> from leaveout.data import format_csv
    >>> frame = pd.DataFrame({"id": ["@you", "me"], "margin": [-1.5, 2.0]})
    >>> print(format_csv(frame), end="")
    id,margin
    '@you,-1.5
    me,2.0
    """
    import pandas as pd

    columns = {k: _guard_column(frame.iloc[:, k]) for k in range(frame.shape[1])}
    names = [guard(str(name)) for name in frame.columns]
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
    return column.map(lambda cell: guard(cell) if isinstance(cell, str) else cell)
