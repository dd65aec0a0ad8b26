# SPDX-License-Identifier: BSD-3-Clause
"""Rows as they come become a Block of finite numbers, or an error that says where.

A stream of a billion rows is repaired only by somebody who is told which file, which
row and which column: every message here names them. Rows, blocks and columns without
a name count from 0, as Python does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d

from leaveout._typing import BoolArray, FloatArray


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


class Piece(NamedTuple):
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
class Form:
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


def form_of(X: Any, *, min_rows: int = 1) -> Form:
    """Return the form of the rows of X; refuse shapes that no features have."""
    head = take_rows(X, 0, 1) if X.shape else X
    check_array(  # speaks in the words of scikit-learn
        head,
        accept_sparse=True,
        dtype=None,
        ensure_all_finite=False,
        ensure_min_samples=min_rows,
    )
    return Form(int(X.shape[1]), column_names(X))


def count_rows(X: Any) -> int:
    """Return the number of rows of an array, a table or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


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
    pieces: Iterator[Piece], form: Form, start: int, rows_at_once: int
) -> Iterator[Block]:
    """Yield the rows of the pieces as checked blocks of at most rows_at_once rows."""
    for piece in pieces:
        for rows in _cut(piece, rows_at_once):
            block = check_piece(rows, form, start)
            start += len(block.y)
            yield block


def check_piece(piece: Piece, form: Form, start: int) -> Block:
    """Return the block that a piece makes; ``start`` is its first row of all.

    Examples
    --------
    >>> from leaveout.data._row_checks import Form, Piece, check_piece
    >>> piece = Piece([[1.0, float("nan")]], ["a"], None, "'b.parquet'", first_row=7)
    >>> check_piece(piece, Form(2, ["age", "dose"]), start=107)
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


def is_missing(labels: NDArray[Any]) -> BoolArray:
    """Return which labels are NaN, infinite, None or a missing value of pandas."""
    if labels.dtype.kind in "fc":
        return ~np.isfinite(labels)
    if labels.dtype.kind != "O":
        return (
            np.isnat(labels)
            if labels.dtype.kind in "mM"
            else np.zeros(labels.shape, dtype=np.bool_)
        )
    values = labels.tolist()
    suspects = {kind for kind in set(map(type, values)) if kind not in (str, int, bool)}
    if not suspects:
        return np.zeros(labels.shape, dtype=np.bool_)
    return np.array([_is_missing(value) for value in values], dtype=np.bool_)


def _is_missing(label: Any) -> bool:
    if isinstance(label, float | np.floating):
        return not np.isfinite(label)
    return label is None or type(label).__name__ in ("NAType", "NaTType")


def _cut(piece: Piece, rows_at_once: int) -> Iterator[Piece]:
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
    values: Any, argument: str, word: str, piece: Piece, n_rows: int
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


def _row(piece: Piece, k: int, start: int) -> str:
    """Name row k of a piece: within its file, and of all."""
    if not piece.name:
        return f"row {start + k}"
    return (
        f"row {piece.first_row + k} of {piece.name} (row {start + k} of all, counted "
        "from 0)"
    )


def _to_numbers(piece: Piece, form: Form, start: int) -> FloatArray:
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


def _check_finite(X: FloatArray, piece: Piece, form: Form, start: int) -> None:
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


def _check_weight(piece: Piece, start: int) -> FloatArray | None:
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
