# SPDX-License-Identifier: BSD-3-Clause
"""Rows of FeatureSVC: blocks, checks, parts; arrays and iterables.

Rows as they come become a Block of finite numbers, or an error that says where.

A stream of a billion rows is repaired only by somebody who is told which file, which
row and which column: every message here names them. Rows, blocks and columns without
a name count from 0, as Python does.

Parts of a source that threads or machines can read apart, and one pass over all.

Where blocks end depends on the source and on rows_at_once alone, never on who reads:
sums over blocks are then the same numbers in threads and on a cluster.

Rows from anywhere, some thousand at a time: what a fit beyond memory reads.

Rows of arrays, tables, sparse matrices and memory-mapped files, slice by slice.

Rows that somebody's own code makes block by block, as often as they are asked for.

A fit passes over the rows many times, and is meaningless if they change on the way:
the checksums of the first pass are compared with those of all later ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d

from leaveout._messages import list_names
from leaveout._typing import FloatArray
from leaveout.adapt._checks import count_rows, is_missing

WHAT_TO_PASS = (
    "a fit reads the rows many times. Pass a list of blocks, or a function without "
    "arguments that returns a new iterator over the blocks (X, y) or (X, y, weight): "
    "fit(lambda: read_blocks(path)), not fit(read_blocks(path))."
)


class Block(NamedTuple):
    """Rows that are ready to compute with; perhaps views of the user's: do not write.

    Parameters
    ----------
    start : int
        Index of the first of these rows in the whole source.
    X : ndarray of shape (m, n_features)
        Finite, float64 and C-contiguous.
    y : ndarray of shape (m,)
        Labels as they came, none of them missing.
    weight : ndarray of shape (m,) or None
        Finite weights >= 0.
    """

    start: int
    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray | None


class RawRows(NamedTuple):
    """Rows as a source gives them: unchecked, and with the name of where they stand.

    ``name`` is a file or a block in words, "" for an array of the user; ``first_row``
    is the row of that file with which the piece begins.
    """

    X: Any
    y: Any
    weight: Any
    name: str = ""
    first_row: int = 0


@dataclass(frozen=True)
class Schema:
    """What all rows of a source have in common.

    Parameters
    ----------
    n_features : int
        Number of columns of X.
    names : ndarray of str or None
        Their names, if they have any.
    """

    n_features: int
    names: NDArray[Any] | None = None

    def column(self, j: int) -> str:
        """Return "column 'age'", or "column 3" where columns have no names."""
        return f"column {j}" if self.names is None else f"column '{self.names[j]}'"


def column_names(X: Any) -> NDArray[Any] | None:
    """Return the names of the columns of a table if all are text, else None."""
    names = list(getattr(X, "columns", ()))
    if not names or not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def form_of(X: Any, *, min_rows: int = 1) -> Schema:
    """Return the form of the rows of X; refuse shapes that no features have."""
    head = take_rows(X, 0, 1) if X.shape else X
    check_array(  # speaks in the words of scikit-learn
        head,
        accept_sparse=True,
        dtype=None,
        ensure_all_finite=False,
        ensure_min_samples=min_rows,
    )
    return Schema(int(X.shape[1]), column_names(X))


def take_rows(X: Any, start: int, stop: int) -> Any:
    """Return rows start to stop - 1, without a copy where there is a way."""
    if hasattr(X, "iloc"):
        return X.iloc[start:stop]
    if sparse.issparse(X) and X.format == "csr":  # X[start:stop] would copy
        first, last = X.indptr[start], X.indptr[min(stop, X.shape[0])]
        indptr = X.indptr[start : stop + 1] - first
        kept = (X.data[first:last], X.indices[first:last], indptr)
        return type(X)(kept, shape=(len(indptr) - 1, X.shape[1]))
    return X[start:stop]


def check_pieces(
    pieces: Iterator[RawRows], form: Schema, start: int, rows_at_once: int
) -> Iterator[Block]:
    """Yield the rows of the pieces as checked blocks of at most rows_at_once rows."""
    for piece in pieces:
        for rows in _cut(piece, rows_at_once):
            block = check_piece(rows, form, start)
            start += len(block.y)
            yield block


def check_piece(piece: RawRows, form: Schema, start: int) -> Block:
    """Return the block that a piece makes; ``start`` is its first row of all.

    Examples
    --------
    >>> piece = RawRows([[1.0, float("nan")]], ["a"], None, "'b.parquet'", first_row=7)
    >>> check_piece(piece, Schema(2, ["age", "dose"]), start=107)
    Traceback (most recent call last):
    ...
    ValueError: X contains NaN in row 7 of 'b.parquet' (row 107 of all, counted from \
0), column 'dose'. Fill missing values (sklearn.impute.SimpleImputer) or drop the rows.
    """
    X = _to_numbers(piece, form, start)
    if X.shape[1] != form.n_features:
        raise ValueError(
            f"X has {X.shape[1]} columns at {_row(piece, 0, start)}, the rows before "
            f"have {form.n_features}. Every block must have the same columns."
        )
    _check_finite(X, piece, form, start)
    y = np.asarray(piece.y)
    missing = np.flatnonzero(is_missing(y))
    if missing.size:
        raise ValueError(
            f"The label is missing (NaN, inf or None) in "
            f"{_row(piece, missing[0], start)}. Drop the rows without a label."
        )
    return Block(start, X, y, _check_weight(piece, start))


def _cut(piece: RawRows, rows_at_once: int) -> Iterator[RawRows]:
    """Yield the piece, or parts of it that are small enough, with y and weight 1-D."""
    n_rows = count_rows(piece.X)
    y = _column(piece.y, "y", "label", piece, n_rows)
    weight = piece.weight
    if weight is not None:
        weight = _column(weight, "sample_weight", "weight", piece, n_rows)
    X = piece.X.tocsr() if sparse.issparse(piece.X) else piece.X
    for first in range(0, n_rows, rows_at_once):
        stop = min(first + rows_at_once, n_rows)
        yield piece._replace(
            X=X if stop - first == n_rows else take_rows(X, first, stop),
            y=y[first:stop],
            weight=None if weight is None else weight[first:stop],
            first_row=piece.first_row + first,
        )


def _column(
    values: Any, argument: str, word: str, piece: RawRows, n_rows: int
) -> NDArray[Any]:
    """Return labels or weights as a vector with one entry per row."""
    where = f" in {piece.name}" if piece.name else ""
    try:
        if argument == "sample_weight" and np.ndim(values) == 0:
            values = np.full(n_rows, values)
        column = column_or_1d(values, warn=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{argument}{where}: {error} Pass one {word} per row."
        ) from error
    if len(column) != n_rows:
        raise ValueError(
            f"X has {n_rows} rows{where} but {argument} has {len(column)} entries. "
            f"Pass one {word} per row of X."
        )
    return column


def _row(piece: RawRows, k: int, start: int) -> str:
    """Name row k of a piece: within its file, and of all."""
    if not piece.name:
        return f"row {start + k}"
    return (
        f"row {piece.first_row + k} of {piece.name} (row {start + k} of all, counted "
        "from 0)"
    )


def _to_numbers(piece: RawRows, form: Schema, start: int) -> FloatArray:
    """Return X as float64, one row after the other in memory."""
    X = piece.X.toarray() if sparse.issparse(piece.X) else piece.X
    try:
        return check_array(
            X,
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,  # _check_finite says where
            ensure_min_samples=0,
            input_name="X",
        )
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        found = _first_text(X)
        if found is None:
            where = f" in {piece.name}" if piece.name else ""
            raise kind(f"X{where} cannot be used: {error}") from error
        k, j, value = found
        raise kind(
            f"X has {value!r} in {_row(piece, k, start)}, {form.column(j)}, which is "
            f"not a number: {error}. Encode such columns "
            "(sklearn.preprocessing.OneHotEncoder) or drop them."
        ) from error


def _first_text(X: Any) -> tuple[int, int, Any] | None:
    """Return row, column and value of the first cell that is not a number, if any."""
    table = np.asarray(X, dtype=object)
    if table.ndim != 2:
        return None
    for (k, j), value in np.ndenumerate(table):
        try:
            float(0.0 if value is None else value)
        except (TypeError, ValueError, OverflowError):
            return k, j, value
    return None


def _check_finite(X: FloatArray, piece: RawRows, form: Schema, start: int) -> None:
    """Refuse NaN and infinities; a finite sum proves that there are none."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):
            return
    bad = np.argwhere(~np.isfinite(X))
    if not bad.size:  # only the sum overflowed
        return
    k, j = (int(i) for i in bad[0])
    missing = np.isnan(X[k, j])
    word = "NaN" if missing else "infinity (inf)"
    advice = (
        "Fill missing values (sklearn.impute.SimpleImputer) or drop the rows."
        if missing
        else "Replace or drop such values, or rescale the column."
    )
    raise ValueError(
        f"X contains {word} in {_row(piece, k, start)}, {form.column(j)}. {advice}"
    )


def _check_weight(piece: RawRows, start: int) -> FloatArray | None:
    """Return the weights, finite and >= 0."""
    if piece.weight is None:
        return None
    try:
        weight = np.ascontiguousarray(piece.weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"sample_weight must hold numbers: {error} in the rows from "
            f"{_row(piece, 0, start)}. Pass one weight per row."
        ) from error
    bad = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if bad.size:
        raise ValueError(
            f"sample_weight must be finite and >= 0; got {weight[bad[0]]:g} in "
            f"{_row(piece, bad[0], start)}. Use 0 to leave a row out."
        )
    return weight


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

    def pieces(self) -> Iterator[RawRows]:
        """Yield the rows in order, unchecked."""


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a source, to be read by themselves: a task for a worker.

    Parameters
    ----------
    reader : Reader
        Finds the rows.
    form : Schema
        Columns that every row must have.
    rows_at_once : int
        Rows per block; the last block of a part may have fewer.
    start : int
        Index of the first row in the whole source.
    n_rows : int or None
        Number of rows; None if nobody has counted yet.
    """

    reader: Reader
    form: Schema
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
    form : Schema
        What all parts share.
    name : str, default=""
        What a message calls the source: a file, the first of several.
    """

    def __init__(self, parts: Iterable[Part], form: Schema, name: str = "") -> None:
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


class RowSource(Protocol):
    """Rows that can be passed over as often as needed, always in the same blocks."""

    @property
    def n_features(self) -> int:
        """Number of columns of X."""

    @property
    def feature_names(self) -> NDArray[Any] | None:
        """Names of the columns if they are text, else None."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None before the first pass if only a pass can tell."""

    @property
    def parts(self) -> Sequence[Part] | None:
        """Parts to read apart, in order, by threads or other machines.

        None if the rows can be read from front to back only, or before they are
        counted (dask collections of unknown size: after the first pass).
        """

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in order: one pass."""


def is_frame(X: Any) -> bool:
    """Whether X is a table of pandas or polars."""
    return all(hasattr(X, name) for name in ("columns", "dtypes", "shape"))


def open_array(X: Any, y: Any, sample_weight: Any, rows_at_once: int) -> PartedRows:
    """Return the rows of an array, a table or a sparse matrix, cut into slices."""
    if sparse.issparse(X):
        X = X.tocsr()
    elif not isinstance(X, np.ndarray) and not is_frame(X):
        X = np.asarray(X)
    form = form_of(X)
    n_rows = count_rows(X)
    y = _vector(y, "y", n_rows)
    if sample_weight is not None and not isinstance(sample_weight, Real):
        sample_weight = _vector(sample_weight, "sample_weight", n_rows)
    parts = []
    for start in range(0, n_rows, rows_at_once):
        stop = min(start + rows_at_once, n_rows)
        reader = SliceReader(
            X=_keep(X, start, stop),
            y=_keep(y, start, stop),
            weight=_keep(sample_weight, start, stop),
            first_row=start,
        )
        parts.append(Part(reader, form, rows_at_once, start, stop - start))
    return PartedRows(parts, form)


@dataclass(frozen=True)
class SliceReader:
    """Rows that are at hand, or mapped from a file that others can map as well."""

    X: Any
    y: Any
    weight: Any
    first_row: int
    name: str = ""

    def pieces(self) -> Iterator[RawRows]:
        """Yield the slice as it is."""
        X, y, weight = (
            values.array if isinstance(values, MappedFile) else values
            for values in (self.X, self.y, self.weight)
        )
        yield RawRows(X, y, weight, self.name, self.first_row)


class MappedFile:
    """A slice of a numpy.memmap that travels as the name of its file, not as numbers.

    Parameters
    ----------
    array : ndarray
        The slice; read from the disk only when somebody looks at it.
    path : str
        The file.
    offset : int
        Where in the file the first entry of the slice stands, in bytes.
    """

    def __init__(self, array: np.ndarray, path: str, offset: int) -> None:
        self._array: np.ndarray | None = array
        self._layout = (path, array.shape, array.dtype, array.strides, offset)

    @property
    def array(self) -> np.ndarray:
        """The slice, mapped anew after a journey to another process."""
        if self._array is None:
            path, shape, dtype, strides, offset = self._layout
            if not Path(path).exists():
                raise file_not_here(f"'{path}'")
            raw = np.memmap(path, dtype=np.uint8, mode="r")
            try:
                self._array = np.ndarray(shape, dtype, raw, offset, strides)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"'{path}' has become shorter, or differs on this machine: {error}."
                ) from error
        return self._array

    def __getstate__(self) -> dict[str, Any]:
        return {"_array": None, "_layout": self._layout}


def _keep(values: Any, start: int, stop: int) -> Any:
    """Return a slice of X, y or weights in the shape in which it can travel."""
    if values is None or np.isscalar(values):
        return values
    part = take_rows(values, start, stop)
    if not isinstance(part, np.memmap):
        return part
    # Changes to a copy-on-write map are not in the file: only numbers can travel.
    if part.filename is None or part.mode == "c":
        return np.asarray(part)
    return MappedFile(np.asarray(part), str(part.filename), _offset(part))


def _offset(part: np.memmap) -> int:
    """Return the place of the first entry in the file, in bytes."""
    root: Any = part
    while isinstance(root.base, np.memmap):
        root = root.base
    return root.offset + part.ctypes.data - root.ctypes.data


def _vector(values: Any, argument: str, n_rows: int) -> Any:
    """Return labels or weights as a vector as long as X; a memmap stays one."""
    if values is None:
        raise ValueError(
            "The classifier requires y to be passed, but the target y is None. "
            "Pass one label per row of X."
        )
    if isinstance(values, str):
        raise ValueError(
            f"{argument}='{values}' names a column, but the columns of X have no "
            f"names. Pass an array with one entry per row as {argument}."
        )
    if not isinstance(values, np.memmap) or values.ndim != 1:
        values = column_or_1d(values, warn=True)
    if len(values) != n_rows:
        raise ValueError(
            f"X has {n_rows} rows but {argument} has {len(values)} entries. Pass one "
            "entry per row of X."
        )
    return values


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

    def _pieces(self) -> Iterator[RawRows]:
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
            yield RawRows(_as_table(X, name), y, weight, name)

    def _alike(self, pieces: Iterator[RawRows]) -> Iterator[RawRows]:
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


def _check_names(names: NDArray[Any], form: Schema, where: str) -> None:
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
