# SPDX-License-Identifier: BSD-3-Clause
"""Samples in the svmlight (LIBSVM) format: "class index:value index:value"."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leaveout.data._names import list_names
from leaveout.data._table import file_named, read_bytes

# Columns have names; a list of more would fill the memory of a small machine.
MAX_COLUMNS = 10_000_000

_CLASS = rb"\s*[+-]?[\d.]+(?:[eE][+-]?\d+)?(?:\s+qid:\d+)?"
_LINE = re.compile(_CLASS + rb"(?:\s+\d+:[^\s:]+)+\s*(?:#.*)?")
_LINE_OF_ZEROS = re.compile(_CLASS + rb"\s*(?:#.*)?|\s*#.*|\s*")


def is_svmlight(path: str | Path) -> bool:
    """Whether the first line with features reads "class index:value index:value".

    Examples
    --------
    >>> import tempfile
    >>> from leaveout.data import is_svmlight
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("+1 1:0.5 7:2")
    ...     file.flush()
    ...     is_svmlight(file.name)
    True
    """
    for line in read_bytes(Path(path)).splitlines():
        if not _LINE_OF_ZEROS.fullmatch(line):
            return _LINE.fullmatch(line) is not None
    return False


def read_svmlight(
    path: str | Path, names: list[str] | None = None
) -> tuple[Any, NDArray[Any], list[str]]:
    """Read a file; its columns are called by their indices.

    Parameters
    ----------
    path : str or Path
        The file.
    names : list of str, optional
        Columns of an earlier file, to be met by this one. Without, they start from
        "0" if that index occurs, else from "1".

    Returns
    -------
    X : CSR matrix of shape (n, p)
        Features.
    y : ndarray of shape (n,)
        Classes, as whole numbers if they are.
    names : list of str
        Names of the p columns.

    Raises
    ------
    DataFileError
        The file is damaged, or has a column that ``names`` has not; or ``names`` are
        not numbers without a gap.

    Examples
    --------
    >>> import tempfile
    >>> from leaveout.data import read_svmlight
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("+1 1:0.5 3:2")
    ...     file.flush()
    ...     X, y, names = read_svmlight(file.name)
    >>> X.toarray(), y, names
    (array([[0.5, 0. , 2. ]]), array([1]), ['1', '2', '3'])
    """
    with file_named(path):
        return _read(Path(path), names)


def _read(path: Path, names: list[str] | None) -> tuple[Any, NDArray[Any], list[str]]:
    X, y = _parse(path)
    if not np.isfinite(X.data).all():
        raise ValueError(f"'{path}' has values that are not finite. Correct them.")
    if not (np.abs(y) <= 2**53).all():
        raise ValueError(
            f"'{path}' has a class that is not finite, or larger than 2**53. Use small "
            "whole numbers."
        )
    if X.shape[1] > MAX_COLUMNS:
        raise ValueError(
            f"'{path}' has an index {X.shape[1] - 1}; at most {MAX_COLUMNS:,} columns "
            "are read. Number the columns that occur from 1."
        )
    if names is None:
        names = [str(k) for k in range(int(X[:, 0].nnz == 0), X.shape[1])]
    first, last = _ends(names, path)
    if X.shape[1] > last + 1 or X[:, :first].nnz:
        wrong = X.shape[1] - 1 if X.shape[1] > last + 1 else 0
        raise ValueError(
            f"'{path}' has a column {wrong}; those of the model are {first} to {last}."
        )
    X = sparse.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], last + 1))
    whole = bool((y == np.rint(y)).all())
    return X[:, first:], y.astype(np.int64) if whole else y, names


def _ends(names: list[str], path: Path) -> tuple[int, int]:
    """Return the first and the last index, or refuse names that are none."""
    start = int(names[0] == "1")
    if names != [str(k) for k in range(start, start + len(names))]:
        raise ValueError(
            f"'{path}' is an svmlight file, whose columns are numbered; those of the "
            f"model are {list_names(names)}. Give a table with these columns."
        )
    return start, start + len(names) - 1


def _parse(path: Path) -> tuple[Any, NDArray[Any]]:
    """Return features, the indices as they stand (column 0 may be empty), and classes.

    Raises
    ------
    ValueError
        Says that the file is damaged.
    """
    # Here, not above: sklearn.datasets takes as long to import as the rest of leaveout.
    from sklearn.datasets import load_svmlight_file

    try:
        return load_svmlight_file(BytesIO(read_bytes(path)), zero_based=True)
    except (ValueError, OverflowError) as why:
        raise ValueError(f"'{path}' is a damaged svmlight file: {why}") from why
