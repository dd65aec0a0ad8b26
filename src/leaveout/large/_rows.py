# SPDX-License-Identifier: BSD-3-Clause
"""Rows of FeatureSVC: read in blocks and checked, in every pass of a fit.

Where blocks end depends only on ``rows_at_once``, so sums over blocks have the same
bits for every source. Errors name the file or block, the row and the column; rows,
blocks and unnamed columns count from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d

from leaveout._messages import check_names_known, list_names
from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import count_rows, is_missing
from leaveout.run._parallel import Summable, map_in_order, sum_in_order

R = TypeVar("R")
S = TypeVar("S", bound=Summable)
WHAT_TO_PASS = (
    "a fit reads the rows many times. Pass a list of blocks, or a function without "
    "arguments that returns a new iterator over the blocks (X, y) or (X, y, weight): "
    "fit(lambda: read_blocks(path)), not fit(read_blocks(path))."
)
# Increment of SplitMix64 (Steele, Lea & Flood 2014).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix_bits(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each number by SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Block(NamedTuple):
    """Checked rows from row ``start`` on; may be views of the user's arrays."""

    start: int
    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray | None

    def part(self, first: int, stop: int | None = None) -> Block:
        rows = slice(first, stop)
        weight = None if self.weight is None else self.weight[rows]
        return Block(self.start + first, self.X[rows], self.y[rows], weight)


class RawRows(NamedTuple):
    """Unchecked rows from ``first_row`` on of the file or block with this name."""

    X: Any
    y: Any
    weight: Any
    name: str = ""
    first_row: int = 0


@dataclass(frozen=True)
class Schema:
    """Number of columns of all rows, and their names if any."""

    n_features: int
    names: NDArray[Any] | None = None

    def column(self, j: int) -> str:
        """Return "column 'age'", or "column 3" if columns have no names."""
        return f"column {j}" if self.names is None else f"column '{self.names[j]}'"


class RowSource:
    """Rows that can be read repeatedly, always in the same blocks."""

    def __init__(
        self,
        make: Callable[[], Iterator[RawRows]],
        schema: Schema,
        rows_at_once: int,
        name: str = "X",
    ) -> None:
        self.schema, self._name = schema, name
        self._make, self._rows_at_once = make, rows_at_once
        self._n_rows: int | None = None

    def blocks(self) -> Iterator[Any]:
        """Yield all rows in order; raise if the first pass had another number."""
        n_rows = 0
        checked = check_rows(self._make(), self.schema, 0, self._rows_at_once)
        for block in regroup(checked, self._rows_at_once):
            n_rows += len(block.y)
            yield block
        if self._n_rows is None and n_rows == 0:
            raise no_rows(self._name)
        if self._n_rows not in (None, n_rows):
            raise ValueError(
                f"The first pass over X had {self._n_rows} rows, but this one has "
                f"{n_rows}. The rows must stay the same until the fit is done: "
                f"{WHAT_TO_PASS}"
            )
        self._n_rows = n_rows

    def sum(self, job: Callable[[Any], S], n_threads: int = 1) -> S:
        """Add up the results of a job on every block: one pass."""
        return sum_in_order(job, self.blocks(), n_threads)

    def fetch(
        self, pick: Callable[[Any], R], index: IntArray, n_threads: int = 1
    ) -> list[R]:
        return list(map_in_order(pick, self.blocks(), n_threads))

    def keep(self, make: Callable[[Any], Any], n_threads: int = 1) -> KeptBlocks:
        return KeptBlocks(list(map_in_order(make, self.blocks(), n_threads)))


class KeptBlocks(RowSource):
    """Blocks in memory."""

    def __init__(self, blocks: list[Any]) -> None:
        self._kept = blocks

    def blocks(self) -> Iterator[Any]:
        return iter(self._kept)


def no_rows(name: str = "X") -> ValueError:
    return ValueError(f"Found array with 0 sample(s): {name} has no rows.")


def column_names(X: Any) -> NDArray[Any] | None:
    """Return the names of the columns of a table if all are text, else None."""
    names = list(getattr(X, "columns", ()))
    named = names and all(isinstance(name, str) for name in names)
    return np.array(names, dtype=object) if named else None


def as_table(X: Any, name: str = "") -> Any:
    """Return X as a table or array with rows and columns, if possible."""
    try:
        if sparse.issparse(X):
            X = X.tocsr()
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        check_array(
            slice_rows(X, slice(0, 1)) if X.shape else X,
            accept_sparse=True,
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=0,
        )
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        reason = " ".join(str(error).split())
        raise kind(f"X{_in(name)} cannot be used: {reason}") from error
    return X


def slice_rows(X: Any, part: slice) -> Any:
    return X.iloc[part] if hasattr(X, "iloc") else X[part]


def _in(name: str) -> str:
    return f" in {name}" if name else ""


def split_frame(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Separate the columns with labels and weights from a table."""
    special = [name for name in (y, sample_weight) if isinstance(name, str)]
    if not special:
        return X, y, sample_weight
    check_names_known(special, list(X.columns), "X")
    features = X[[name for name in X.columns if name not in special]]
    y, sample_weight = (
        X[name] if isinstance(name, str) else name for name in (y, sample_weight)
    )
    return features, y, sample_weight


# From raw rows to blocks


def check_rows(
    pieces: Iterable[RawRows], schema: Schema, start: int, rows_at_once: int
) -> Iterator[Block]:
    """Yield the rows as checked blocks of at most rows_at_once rows."""
    first = None
    for piece in pieces:
        for rows in _cut(piece, rows_at_once):
            block = _check_piece(rows, schema, start)
            kinds = (isinstance(block.y[0], str | bytes), block.weight is None)
            first = first or kinds
            if first != kinds:
                raise ValueError(
                    f"From {_row(rows, 0, start)} on, the kind of labels or weights "
                    "changes. Pass labels that are all text or all numbers, and "
                    "weights for all rows or for none."
                )
            start += len(block.y)
            yield block


def _cut(piece: RawRows, rows_at_once: int) -> Iterator[RawRows]:
    """Yield parts of at most rows_at_once rows, with y and weight as vectors."""
    n_rows = count_rows(piece.X)
    y, weight = _column(piece.y, "y", piece, n_rows), piece.weight
    if weight is not None:
        weight = _column(weight, "sample_weight", piece, n_rows)
    for first in range(0, n_rows, rows_at_once):
        part = slice(first, first + rows_at_once)
        yield piece._replace(
            X=slice_rows(piece.X, part),
            y=y[part],
            weight=None if weight is None else weight[part],
            first_row=piece.first_row + first,
        )


def _column(values: Any, argument: str, piece: RawRows, n_rows: int) -> NDArray[Any]:
    """Return labels or weights as a vector with one entry per row."""
    where = _in(piece.name)
    try:
        if argument == "sample_weight" and np.ndim(values) == 0:
            values = np.full(n_rows, values)
        column = column_or_1d(values, warn=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument}{where}: {error} Pass one per row.") from error
    if len(column) != n_rows:
        raise ValueError(
            f"X has {n_rows} rows{where} but {argument} has {len(column)} entries. "
            "Pass one per row of X."
        )
    return column


def _row(piece: RawRows, k: int, start: int) -> str:
    """Name row k of a piece: its number within the file, and overall."""
    if not piece.name:
        return f"row {start + k}"
    overall = f"(row {start + k} overall, counted from 0)"
    return f"row {piece.first_row + k} of {piece.name} {overall}"


def _check_piece(piece: RawRows, schema: Schema, start: int) -> Block:
    """Check rows and return them as a block; ``start`` is their first row overall."""
    X = _to_numbers(piece, schema, start)
    if X.shape[1] != schema.n_features:
        raise ValueError(
            f"X has {X.shape[1]} columns at {_row(piece, 0, start)}, but earlier rows "
            f"have {schema.n_features}. Every block must have the same columns."
        )
    names, wanted = column_names(piece.X), schema.names
    if names is not None and wanted is not None and list(names) != list(wanted):
        raise ValueError(
            f"The columns{_in(piece.name)} are {list_names(names)}; those of the first "
            f"rows are {list_names(wanted)}. Give all rows the same columns in the "
            "same order."
        )
    _check_finite(X, piece, schema, start)
    y = np.asarray(piece.y)
    missing = np.flatnonzero(is_missing(y))
    if missing.size:
        raise ValueError(
            f"The label is missing (NaN, inf or None) in "
            f"{_row(piece, missing[0], start)}. Drop the rows without a label."
        )
    return Block(start, X, y, _check_weight(piece, start))


def _to_numbers(piece: RawRows, schema: Schema, start: int) -> FloatArray:
    """Return X as C-contiguous float64."""
    X = piece.X.toarray() if sparse.issparse(piece.X) else piece.X
    try:
        return check_array(
            X,
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,  # _check_finite reports where
            ensure_min_samples=0,
            input_name="X",
        )
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        for (k, *_, j), value in np.ndenumerate(np.asarray(X, dtype=object)):
            if not _is_number(value):
                raise kind(
                    f"X has {value!r} in {_row(piece, k, start)}, {schema.column(j)}, "
                    f"which is not a number: {error}. Encode such columns "
                    "(sklearn.preprocessing.OneHotEncoder) or drop them."
                ) from error
        raise


def _is_number(value: Any) -> bool:
    try:
        float(0.0 if value is None else value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _check_finite(X: FloatArray, piece: RawRows, schema: Schema, start: int) -> None:
    """Raise for NaN and infinity; a finite sum proves that there are none."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):
            return
    bad = np.argwhere(~np.isfinite(X))
    if not bad.size:  # only the sum overflowed
        return
    k, j = (int(i) for i in bad[0])
    word, advice = "infinity (inf)", "Replace or drop such values, or rescale them."
    if np.isnan(X[k, j]):
        word = "NaN"
        advice = "Fill missing values (sklearn.impute.SimpleImputer) or drop the rows."
    raise ValueError(
        f"X contains {word} in {_row(piece, k, start)}, {schema.column(j)}. {advice}"
    )


def _check_weight(piece: RawRows, start: int) -> FloatArray | None:
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


def regroup(blocks: Iterable[Block], rows_at_once: int) -> Iterator[Block]:
    """Join blocks of at most rows_at_once rows into blocks of exactly that many."""
    waiting: list[Block] = []
    n_waiting = 0
    for block in blocks:
        waiting.append(block)
        n_waiting += len(block.y)
        if n_waiting >= rows_at_once:
            joined = _join(waiting)
            yield joined.part(0, rows_at_once)
            n_waiting -= rows_at_once
            waiting = [joined.part(rows_at_once)] if n_waiting else []
    if waiting:
        yield _join(waiting)


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


# Arrays and iterables


def open_array(X: Any, y: Any, sample_weight: Any, rows_at_once: int) -> RowSource:
    """Return the rows of an array, a memory map, a table or a sparse matrix."""
    X = as_table(X)
    if isinstance(y, str) or isinstance(sample_weight, str):
        raise ValueError(
            "y or sample_weight is the name of a column, but the columns of X have no "
            "names. Pass arrays with one entry per row."
        )
    rows = RawRows(X, y, sample_weight)
    schema = Schema(X.shape[1], column_names(X))
    return RowSource(lambda: iter([rows]), schema, rows_at_once)


def open_iterable(blocks: Any, rows_at_once: int) -> RowSource:
    """Return the rows of a list of blocks, or of a function that iterates over them."""
    if not callable(blocks) and iter(blocks) is blocks:
        kind = type(blocks).__name__
        raise ValueError(f"A {kind} can be read only once, but {WHAT_TO_PASS}")

    def pieces() -> Iterator[RawRows]:
        return _name_blocks(blocks() if callable(blocks) else blocks)

    first = next(pieces(), None)
    if first is None:
        raise no_rows()
    schema = Schema(first.X.shape[1], column_names(first.X))
    return RowSource(pieces, schema, rows_at_once)


def _name_blocks(blocks: Iterable[Any]) -> Iterator[RawRows]:
    """Yield the user's blocks, named by their numbers."""
    for k, item in enumerate(blocks):
        name = f"block {k} of the iterable"
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            size = f" of {len(item)}" if isinstance(item, tuple) else ""
            raise ValueError(
                f"Without y, X must be an iterable of tuples (X, y) or (X, y, "
                f"weight); {name} is a {type(item).__name__}{size}. Yield such "
                "tuples, or pass the labels as y."
            )
        X, y, weight = (*item, None)[:3]
        yield RawRows(as_table(X, name), y, weight, name)
