# SPDX-License-Identifier: BSD-3-Clause
"""Names in messages: escaping, lists, and suggestions for misspelt names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

# Number of names that a message lists before "and 12 more".
N_NAMES_SHOWN = 8
# Control characters, line separators, surrogates and bidi controls.
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)


def printable(text: str, keep: str = "") -> str:
    r"""Write control characters as codes such as \x1b, except those in ``keep``.

    Names in untrusted files may contain terminal escapes or bidi controls.
    """
    return _CONTROL.sub(
        lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text
    )


def count_of(n: int, noun: str) -> str:
    """Return "1 sample" or "2 samples"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def list_items(items: Sequence[str], *, most: int = N_NAMES_SHOWN) -> str:
    """Join the first items with commas, and count the rest."""
    shown = ", ".join(items[:most])
    more = len(items) - most
    return f"{shown} and {more} more" if more > 0 else shown


def list_names(names: Iterable[object]) -> str:
    """Join the first names, each in quotes, and count the rest."""
    return list_items([f"'{name}'" for name in names])


def name_cell(column: object, row: int, value: object) -> str:
    """Describe a cell of a table: value, row counted from 1, column."""
    text = str(value) if len(str(value)) <= 50 else f"{str(value)[:49]}…"
    return f"{text!r} in row {row + 1} of column '{column}'"


def list_columns(names: Sequence[object]) -> str:
    """Join the first and the last names; the target is often the last column."""
    if len(names) <= N_NAMES_SHOWN:
        return list_names(names)
    half = N_NAMES_SHOWN // 2
    more = len(names) - 2 * half
    return f"{list_names(names[:half])}, … {more} more …, {list_names(names[-half:])}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" with the nearest known name, or ""."""
    close = nearest_name(name, known)
    return "" if close is None else f" Did you mean '{close}'?"


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the nearest known name, if any, ignoring case and outer blanks."""
    plain = {other.strip().casefold(): other for other in known}
    close = get_close_matches(name.strip().casefold(), plain, n=1)
    return plain[close[0]] if close else None


def check_names_known(
    names: Iterable[str], columns: Sequence[object], where: str
) -> None:
    """Raise for the first name that is not a column, and suggest the nearest."""
    known = [str(column) for column in columns]
    for name in names:
        if name not in known:
            raise ValueError(
                f"No column '{name}' in {where}.{did_you_mean(name, known)} The "
                f"columns are {list_columns(known)}."
            )
