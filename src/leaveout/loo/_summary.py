# SPDX-License-Identifier: BSD-3-Clause
"""How results are shown: as text, in a notebook, in one line. Errors are in percent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from textwrap import fill
from typing import Any

WIDTH = 80  # of a terminal


def as_percent(share: float) -> str:
    """Write a share in percent, "2.1 %"."""
    return f"{100.0 * share:.1f} %"


def format_error(error: float, interval: tuple[float, float]) -> str:
    """Write an error and its interval, "2.1 % (95 % interval 1.2 to 3.7 %)"."""
    low, high = interval
    return f"{as_percent(error)} (95 % interval {100 * low:.1f} to {as_percent(high)})"


def shorten(text: str, most: int = 17) -> str:
    """Leave out the middle of a long text; three such columns fit a terminal."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def wrap(lines: Iterable[str]) -> str:
    """Break lines that are too long for a terminal; the rest is indented.

    A no-break space joins two words and becomes an ordinary one.
    """
    shape: dict[str, Any] = {"width": WIDTH, "subsequent_indent": "  "}
    shape |= {"break_long_words": False, "break_on_hyphens": False}
    return "\n".join(fill(line, **shape) for line in lines).replace("\xa0", " ")


class Summary:
    """Text, notebook and one-line form of a result.

    Subclasses have ``_verdict``, one sentence, and ``_rows``: pairs of a name and a
    value or, with ``_align``, a table whose first row has the titles.
    """

    _title = ""
    _align = ""  # "<" or ">"

    def _verdict(self) -> str:
        raise NotImplementedError

    def _rows(self) -> Sequence[tuple[Any, ...]]:
        raise NotImplementedError

    def _head(self) -> str:
        return self._title

    def _notes(self) -> list[str]:
        return []

    def __repr__(self) -> str:
        """Return the verdict in one line."""
        return f"<{type(self).__name__}: {self._verdict()}>"

    def __str__(self) -> str:
        """Return a small table."""
        rows = self._rows()
        lines = [f"  {row[0]:<14}{row[1]}" for row in rows]
        if self._align:
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            shape = "  ".join(f"{{:{self._align}{width}}}" for width in widths)
            lines = [shape.format(*row).rstrip() for row in rows]
        notes = [wrap([note]) for note in self._notes()]
        return "\n".join([*filter(None, [self._head()]), *lines, *notes])

    def _repr_html_(self) -> str:
        """Return the verdict, then the table, for notebooks."""
        rows = [[escape(str(cell)) for cell in row] for row in self._rows()]
        lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
        if self._align:
            lines[0] = lines[0].replace("td>", "th>")
        table = "".join(f"<tr>{line}</tr>" for line in lines)
        verdict = escape(self._verdict())
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return (
            f"<div><p><strong>{verdict[:1].upper()}{verdict[1:]}</strong></p>"
            f'<div style="max-height: 24em; overflow: auto"><table>{table}</table>'
            f"</div>{notes}</div>"
        )
