# SPDX-License-Identifier: BSD-3-Clause
"""Rows from anywhere, some thousand at a time: what a fit beyond memory reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from pathlib import Path
from tokenize import TokenError
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leaveout.data._names import check_names_known
from leaveout.data._row_checks import Block
from leaveout.data._row_parts import Part
from leaveout.data._rows_arrow import is_arrow, open_arrow
from leaveout.data._rows_dask import is_dask, open_dask
from leaveout.data._rows_in_memory import is_frame, open_array
from leaveout.data._rows_iterable import open_iterable

__all__ = ["Block", "Part", "RowSource", "open_rows"]


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


def open_rows(
    X: Any, y: Any = None, sample_weight: Any = None, *, rows_at_once: int = 16384
) -> RowSource:
    """Open rows to be read in blocks, many times over.

    Parameters
    ----------
    X : array, table, sparse matrix, path, dataset, dask collection or iterable
        One of

        - an array, ``numpy.memmap``, pandas or polars table, SciPy sparse matrix, or
          the path of an ``.npy`` file;
        - the path of a Parquet or Arrow file or of a folder of them, or a list of
          such paths; a ``pyarrow.Table`` or ``pyarrow.dataset.Dataset``;
        - a dask array or dask dataframe;
        - an iterable of blocks (X, y) or (X, y, weight) that can be iterated over
          again: a list, or a function without arguments that returns an iterator.
    y : array-like of shape (n_rows,), str or None
        Labels, or the name of their column, which files need; the path of an ``.npy``
        file beside one. None if X is an iterable of blocks.
    sample_weight : array-like of shape (n_rows,), float, str or None
        Weights >= 0, or the name of their column.
    rows_at_once : int, default=16384
        Rows per block. A reader holds so many rows in memory; while it joins small
        blocks of an iterable up to as many again; of an Arrow file one of its record
        batches; of a dask collection the partition.

    Returns
    -------
    RowSource
        What is wrong with single rows is found when they are read.

    Raises
    ------
    ValueError
        The message names file (or block), row and column, and what to do.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.data import open_rows
    >>> rows = open_rows(np.eye(5), list("aabba"), rows_at_once=2)
    >>> [(block.start, block.y.tolist()) for block in rows.blocks()]
    [(0, ['a', 'a']), (2, ['b', 'b']), (4, ['a'])]
    >>> next(rows.parts[1].read()).X
    array([[0., 0., 1., 0., 0.],
           [0., 0., 0., 1., 0.]])
    """
    if not isinstance(rows_at_once, Integral) or rows_at_once < 1:
        raise ValueError(
            f"rows_at_once must be a whole number of rows, 1 or more; got "
            f"{rows_at_once!r}."
        )
    rows_at_once = int(rows_at_once)
    if _is_npy(X):
        path = X
        X, y, sample_weight = (_map_npy(values) for values in (X, y, sample_weight))
        if X.ndim != 2:
            raise ValueError(
                f"'{path}' has an array of shape {X.shape}; it must have two "
                "dimensions, rows and columns."
            )
    if is_arrow(X):
        return open_arrow(X, y, sample_weight, rows_at_once)
    if is_frame(X) and (isinstance(y, str) or isinstance(sample_weight, str)):
        X, y, sample_weight = _split_frame(X, y, sample_weight)
    if is_dask(X):
        return open_dask(X, y, sample_weight, rows_at_once)
    if y is None and _gives_blocks(X):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight cannot stand beside an iterable of blocks. Put the "
                "weights into the blocks: (X, y, weight)."
            )
        return open_iterable(X, rows_at_once)
    return open_array(X, y, sample_weight, rows_at_once)


def _is_npy(path: Any) -> bool:
    return isinstance(path, str | Path) and Path(path).suffix == ".npy"


def _map_npy(path: Any) -> Any:
    """Return the array in a file without reading it; what is no path stays as it is."""
    if not _is_npy(path):
        return path
    try:
        return np.load(path, mmap_mode="r")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"No file '{path}'.") from error
    except (ValueError, OSError, EOFError, SyntaxError, TokenError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"'{path}' cannot be mapped to memory: {reason}") from error


def _split_frame(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Take the columns named as labels and weights out of a table."""
    special = [name for name in (y, sample_weight) if isinstance(name, str)]
    check_names_known(special, list(X.columns), "X")
    features = X[[name for name in X.columns if name not in special]]
    y, sample_weight = (
        X[name] if isinstance(name, str) else name for name in (y, sample_weight)
    )
    return features, y, sample_weight


def _gives_blocks(X: Any) -> bool:
    """Whether X is code of the user that makes blocks, or a list of them."""
    if isinstance(X, np.ndarray) or is_frame(X) or sparse.issparse(X):
        return False
    return callable(X) or hasattr(X, "__iter__")
