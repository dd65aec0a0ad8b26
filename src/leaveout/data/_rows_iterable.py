# SPDX-License-Identifier: BSD-3-Clause
"""Rows that somebody's own code makes block by block, as often as they are asked for.

A fit passes over the rows many times, and is meaningless if they change on the way:
the checksums of the first pass are compared with those of all later ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout.data._names import list_names
from leaveout.data._row_checks import (
    Block,
    Form,
    Piece,
    check_pieces,
    column_names,
    form_of,
)
from leaveout.data._row_parts import no_rows, regroup

WHAT_TO_PASS = (
    "a fit reads the rows many times. Pass a list of blocks, or a function without "
    "arguments that returns a new iterator over the blocks (X, y) or (X, y, weight): "
    "fit(lambda: read_blocks(path)), not fit(read_blocks(path))."
)


def open_iterable(blocks: Any, rows_at_once: int) -> IterableRows:
    """Return the rows of a list of blocks, or of a function that iterates over them."""
    if callable(blocks):
        return IterableRows(blocks, rows_at_once)
    if iter(blocks) is blocks:
        kind = type(blocks).__name__
        raise ValueError(f"A {kind} can be read only once, but {WHAT_TO_PASS}")
    return IterableRows(lambda: blocks, rows_at_once)


class IterableRows:
    """A source that is read from the front to the back.

    Parameters
    ----------
    make : callable
        Without arguments; returns an iterable of (X, y) or (X, y, weight).
    rows_at_once : int
        Rows per block that is given out; those that come in may be of any size.
    """

    parts = None

    def __init__(self, make: Callable[[], Iterable[Any]], rows_at_once: int) -> None:
        self._make = make
        self._rows_at_once = rows_at_once
        self._checksums: list[int] = []
        self.n_rows: int | None = None
        first = next(self._pieces(), None)
        if first is None:
            raise no_rows()
        try:
            self._form = form_of(first.X, min_rows=0)
        except (TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise type(error)(f"X in {first.name} cannot be used: {reason}") from error
        self._weighted = first.weight is not None
        self._text_labels = _is_text(first.y)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self._form.n_features

    @property
    def feature_names(self) -> NDArray[Any] | None:
        """Names of the columns of the first block if they are text, else None."""
        return self._form.names

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in order; a pass that differs from the first is refused."""
        checksums: list[int] = []
        n_rows = 0
        pieces = self._alike(self._pieces())
        checked = check_pieces(pieces, self._form, 0, self._rows_at_once)
        for block in regroup(checked, self._rows_at_once):
            checksums.append(_checksum(block))
            n_rows += len(block.y)
            self._check_repeated(block, checksums)
            yield block
        self._check_count(n_rows)
        self._checksums, self.n_rows = checksums, n_rows

    def _check_repeated(self, block: Block, checksums: list[int]) -> None:
        """Refuse a block that the first pass did not give at this place."""
        known = self._checksums[: len(checksums)]
        if self.n_rows is None or known == checksums:
            return
        raise ValueError(
            f"Rows {block.start} to {block.start + len(block.y) - 1} of the iterable "
            "are not those of the first pass. Every iteration must give the same rows "
            "in the same order: seed what is random inside the function."
        )

    def _check_count(self, n_rows: int) -> None:
        """Refuse a pass without rows, or shorter than the first."""
        if self.n_rows is None and n_rows == 0:
            raise no_rows()
        if self.n_rows is not None and n_rows != self.n_rows:
            used_up = (
                f" An iterator that is used up gives nothing: {WHAT_TO_PASS}"
                if n_rows == 0
                else " Every iteration must give the same rows in the same order."
            )
            raise ValueError(
                f"The first pass over the iterable had {self.n_rows} rows, this one "
                f"has {n_rows}.{used_up}"
            )

    def _pieces(self) -> Iterator[Piece]:
        """Yield the user's blocks under their numbers."""
        for k, item in enumerate(self._make()):
            name = f"block {k} of the iterable"
            if not isinstance(item, tuple) or len(item) not in (2, 3):
                size = f" of {len(item)}" if isinstance(item, tuple) else ""
                raise ValueError(
                    f"Without y, X must be an iterable of tuples (X, y) or (X, y, "
                    f"weight); {name} is a {type(item).__name__}{size}. Give such "
                    "tuples, or pass the labels as y."
                )
            X, y, weight = (*item, None)[:3]
            yield Piece(_as_table(X, name), y, weight, name)

    def _alike(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Yield the pieces if columns, weights and labels are as in the first."""
        for piece in pieces:
            names = column_names(piece.X)
            if names is not None and self._form.names is not None:
                _check_names(names, self._form, piece.name)
            if (piece.weight is not None) is not self._weighted:
                raise ValueError(
                    f"Block 0 has {'weights' if self._weighted else 'no weights'}, "
                    f"{piece.name} has {'none' if self._weighted else 'some'}. Give "
                    "weights with every block, or with none."
                )
            if _is_text(piece.y) is not self._text_labels:
                raise ValueError(
                    f"The labels are {'text' if self._text_labels else 'numbers'} in "
                    f"block 0, but not in {piece.name}. Give labels of one kind."
                )
            yield piece


def _check_names(names: NDArray[Any], form: Form, where: str) -> None:
    if form.names is None or np.array_equal(names, form.names):
        return
    raise ValueError(
        f"The columns of {where} are {list_names(names)}; those of block 0 are "
        f"{list_names(form.names)}. Give all blocks the same columns in the same order."
    )


def _as_table(X: Any, where: str) -> Any:
    """Return X as something with rows and columns."""
    try:
        X = X if hasattr(X, "shape") else np.asarray(X)
    except ValueError as error:
        raise ValueError(
            f"X in {where} has rows of different lengths: {error}. Give every row the "
            "same columns."
        ) from error
    if len(X.shape) != 2:
        raise ValueError(
            f"X in {where} has {len(X.shape)} dimensions, where it must have 2, rows "
            "and columns. Reshape it: X.reshape(n_rows, n_columns)."
        )
    return X


def _is_text(labels: Any) -> bool:
    """Whether the first label is text."""
    known = hasattr(labels, "dtype")
    values = np.asarray(labels, dtype=None if known else object).ravel()
    return values.size > 0 and isinstance(values[0], str | bytes)


def _checksum(block: Block) -> int:
    """Return a number that the same rows give again, and others hardly ever."""
    labels = block.y
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    checksum = zlib.crc32(block.X.data)
    checksum = zlib.crc32(labels.tobytes(), checksum)
    if block.weight is None:
        return checksum
    return zlib.crc32(block.weight.tobytes(), checksum)
