# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a source that threads or machines can read apart, and one pass over all.

Where blocks end depends on the source and on rows_at_once alone, never on who reads:
sums over blocks are then the same numbers in threads and on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leaveout.data._row_checks import Block, Form, Piece, check_pieces


def no_rows(name: str = "") -> ValueError:
    """Return the error for a source, called by its name if it has one, without rows."""
    return ValueError(
        f"Found array with 0 sample(s): {name or 'the source of rows'} is empty, while "
        "a minimum of 1 is required."
    )


class Reader(Protocol):
    """What finds the rows of one part: a slice, a file, a partition. Picklable."""

    @property
    def name(self) -> str:
        """What a message calls it: a file, a partition; "" for arrays."""

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows in order, unchecked."""


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a source, to be read by themselves: a task for a worker.

    Parameters
    ----------
    reader : Reader
        Finds the rows.
    form : Form
        Columns that every row must have.
    rows_at_once : int
        Rows per block; the last block of a part may have fewer.
    start : int
        Index of the first row in the whole source.
    n_rows : int or None
        Number of rows; None if nobody has counted yet.
    """

    reader: Reader
    form: Form
    rows_at_once: int
    start: int = 0
    n_rows: int | None = None

    def read(self) -> Iterator[Block]:
        """Yield the rows in order; several threads may read at the same time."""
        pieces = self.reader.pieces()
        checked = check_pieces(pieces, self.form, self.start, self.rows_at_once)
        n_read = 0
        for block in regroup(checked, self.rows_at_once):
            n_read += len(block.y)
            self._check_count(n_read, at_end=False)
            yield block
        self._check_count(n_read, at_end=True)

    def _check_count(self, n_read: int, *, at_end: bool) -> None:
        """Refuse rows that came or went since they were counted."""
        if self.n_rows is None or n_read == self.n_rows:
            return
        if n_read > self.n_rows or at_end:
            raise ValueError(
                f"{self.reader.name or 'X'} had {self.n_rows} rows when they were "
                f"counted, now it has {'more' if not at_end else n_read}. The rows "
                "must stay the same until the fit is done."
            )


class PartedRows:
    """A source that falls into parts.

    Parameters
    ----------
    parts : iterable of Part
        In order. Starts are filled in as soon as the rows before are counted.
    form : Form
        What all parts share.
    name : str, default=""
        What a message calls the source: a file, the first of several.
    """

    def __init__(self, parts: Iterable[Part], form: Form, name: str = "") -> None:
        self._parts = list(parts)
        self._form = form
        self._name = name

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self._form.n_features

    @property
    def feature_names(self) -> NDArray[Any] | None:
        """Names of the columns if they are text, else None."""
        return self._form.names

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None before the first pass if only a pass can tell."""
        counts = [part.n_rows for part in self._parts]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def parts(self) -> Sequence[Part] | None:
        """The parts, each with its start; None as long as rows are not counted."""
        if self.n_rows is None:
            return None
        starts = accumulate((part.n_rows or 0 for part in self._parts), initial=0)
        return [
            replace(part, start=start)
            for part, start in zip(self._parts, starts, strict=False)
        ]

    def count(self, count: Callable[[Sequence[Part]], Sequence[int]]) -> None:
        """Let somebody else count the rows of the parts that nobody has counted."""
        unknown = [k for k, part in enumerate(self._parts) if part.n_rows is None]
        if unknown:
            counts = count([self._parts[k] for k in unknown])
            for k, n_rows in zip(unknown, counts, strict=True):
                self._parts[k] = replace(self._parts[k], n_rows=n_rows)
        if self.n_rows == 0:
            raise no_rows(self._name)

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in order; every pass gives the same blocks."""
        start = 0
        for k, part in enumerate(self._parts):
            n_read = 0
            for block in replace(part, start=start).read():
                n_read += len(block.y)
                yield block
            self._parts[k] = replace(part, n_rows=n_read)
            start += n_read
        if start == 0:
            raise no_rows(self._name)


def file_not_here(name: str) -> FileNotFoundError:
    """Return the error for a file that was there when the source was opened."""
    return FileNotFoundError(
        f"No file {name} on this machine. All workers of a cluster must find it under "
        "the same path: put it on a disk that they share."
    )


def regroup(blocks: Iterable[Block], rows_at_once: int) -> Iterator[Block]:
    """Cut and join blocks so that each has rows_at_once rows, the last one the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.data._row_checks import Block
    >>> from leaveout.data._row_parts import regroup
    >>> sizes = [1, 5, 0, 2]
    >>> blocks = [Block(0, np.ones((m, 2)), np.zeros(m), None) for m in sizes]
    >>> [len(block.y) for block in regroup(blocks, 3)]
    [3, 3, 2]
    """
    waiting: list[Block] = []
    n_waiting = 0
    for block in blocks:
        rest = block
        while n_waiting + len(rest.y) >= rows_at_once:
            n_taken = rows_at_once - n_waiting
            yield _join([*waiting, _slice(rest, 0, n_taken)])
            rest = _slice(rest, n_taken, len(rest.y))
            waiting, n_waiting = [], 0
        if len(rest.y):
            waiting.append(rest)
            n_waiting += len(rest.y)
    if waiting:
        yield _join(waiting)


def _slice(block: Block, first: int, stop: int) -> Block:
    if first == 0 and stop == len(block.y):
        return block
    weight = None if block.weight is None else block.weight[first:stop]
    return Block(block.start + first, block.X[first:stop], block.y[first:stop], weight)


def _join(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    weights = [block.weight for block in blocks if block.weight is not None]
    return Block(
        blocks[0].start,
        np.concatenate([block.X for block in blocks]),
        np.concatenate([block.y for block in blocks]),
        np.concatenate(weights) if weights else None,
    )
