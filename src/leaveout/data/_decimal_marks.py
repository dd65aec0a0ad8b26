# SPDX-License-Identifier: BSD-3-Clause
"""Whether 1.234 is a little more than one, or a thousand: what the file says itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from leaveout.data._names import name_cell

_MARKS = {".": "point", ",": "comma"}
_OTHER = {".": ",", ",": "."}
_DECIMAL = re.compile(r"[+-]?\d*([.,])\d+(?:[eE][+-]?\d+)?")
_IN_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")


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
