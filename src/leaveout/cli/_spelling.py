# SPDX-License-Identifier: BSD-3-Clause
"""Words of a new table as a model spells them.

A table is typed by its own content: a column 1, 2, x is text, and numbers without the
last row. So a model's words are told by their value where all of them are numbers or
all truth values (1, 1.0 and 01 are one then), and letter by letter where they are text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import Series

TRUTH = {"true": True, "false": False}


def are_text(known: Sequence[str]) -> bool:
    """Whether some word is not how Python writes a number or a truth value."""
    return any(
        isinstance(_value(word), str) or str(_value(word)) != word for word in known
    )


def spell_as(column: Series, known: Sequence[str]) -> Series:
    """Return a column as text, in the spelling of the known words; gaps stay."""
    words = column.astype(str).str.strip().astype(object)
    if not are_text(known):
        by_value = {_value(word): word for word in known}
        words = words.map(lambda word: by_value.get(_value(word), word))
    return words.where(column.notna())


def _value(word: str) -> bool | int | float | str:
    """Return the number or truth value that a word spells, else the word."""
    if word.casefold() in TRUTH:
        return TRUTH[word.casefold()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
