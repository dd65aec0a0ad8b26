# SPDX-License-Identifier: BSD-3-Clause
"""Rows of arrays, tables, sparse matrices and memory-mapped files, slice by slice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d

from leaveout.data._row_checks import Piece, count_rows, form_of, take_rows
from leaveout.data._row_parts import Part, PartedRows, file_not_here


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

    def pieces(self) -> Iterator[Piece]:
        """Yield the slice as it is."""
        X, y, weight = (
            values.array if isinstance(values, MappedFile) else values
            for values in (self.X, self.y, self.weight)
        )
        yield Piece(X, y, weight, self.name, self.first_row)


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
