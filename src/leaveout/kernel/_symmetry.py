# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric matrices filled, compared and repaired in blocks of rows.

Nothing here holds a second matrix of the size of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from leaveout._typing import FloatArray, IntArray

# 128 rows of a 3000-column matrix are 3 MB: large enough for BLAS to be at full speed,
# small enough to stay in cache while exp or tanh runs over them.
BLOCK_ROWS = 128
# Two rows of a Gram matrix whose values differ by less than this share of |x| |y| are
# those of equal samples: products and distances of equal rows leave some 1e-14.
NEAR = 1e-12


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Cut range(n_rows) into consecutive slices of at most BLOCK_ROWS rows."""
    for start in range(0, n_rows, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, n_rows))


def mirror_upper_rows(K: FloatArray, rows: slice) -> None:
    """Write K[rows, rows.start:] onto its mirror image below the diagonal."""
    K[rows.stop :, rows] = K[rows, rows.stop :].T
    corner = K[rows, rows]
    below = _below_diagonal(corner.shape[0])
    corner[below] = corner.T[below]


@lru_cache(maxsize=4)
def _below_diagonal(n: int) -> tuple[IntArray, ...]:
    return np.tril_indices(n, -1)


def largest_asymmetry(K: FloatArray) -> tuple[float, int, int]:
    """Return the largest |K[i, j] - K[j, i]| and where it is, (value, i, j)."""
    worst = (0.0, 0, 0)
    for rows in row_blocks(K.shape[0]):
        difference = np.abs(K[rows, rows.start :] - K[rows.start :, rows].T)
        i, j = np.unravel_index(np.argmax(difference), difference.shape)
        if difference[i, j] > worst[0]:
            worst = (float(difference[i, j]), int(i) + rows.start, int(j) + rows.start)
    return worst


def symmetrised(K: FloatArray) -> FloatArray:
    """Return a copy of K with each pair K[i, j], K[j, i] replaced by its mean."""
    K = np.array(K, order="C")
    for rows in row_blocks(K.shape[0]):
        upper = K[rows, rows.start :]
        upper += K[rows.start :, rows].T
        upper *= 0.5
        mirror_upper_rows(K, rows)
    return K


def first_equal_rows(X: Any) -> IntArray:
    """Return, for each row of X, the index of the first row equal to it.

    Parameters
    ----------
    X : ndarray or CSR matrix of float64, shape (n, p)
        Rows to compare; -0.0 equals 0.0.

    Returns
    -------
    first : ndarray of shape (n,)
        ``first[i] <= i``, with equality where row i is new.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.kernel import first_equal_rows
    >>> first_equal_rows(np.array([[1.0], [2.0], [1.0]]))
    array([0, 1, 0])
    """
    if sparse.issparse(X):
        rows, keys = np.arange(X.shape[0]), _sparse_row_keys(X)
    else:
        rows = _candidates(X)
        keys = _dense_row_keys(X[rows])
    first = np.arange(X.shape[0])
    seen: dict[bytes, int] = {}
    for i, key in zip(rows.tolist(), keys, strict=True):
        first[i] = seen.setdefault(key, i)
    return first


def first_near_rows(K: FloatArray) -> IntArray:
    """Return, for each row of K, the index of the first row equal up to rounding.

    Kernel values of equal samples differ by some 1e-14 if they come from distances by
    inner products. Left so, such a pair is not dependent, only nearly: the worst there
    is for a factorisation. Candidates by a random projection, then rows are compared.

    Examples
    --------
    >>> import numpy as np
    >>> first_near_rows(np.array([[1, 1 - 1e-14, 0], [1 - 1e-14, 1, 0], [0, 0, 1]]))
    array([0, 0, 2])
    """
    n_samples = K.shape[0]
    norms = np.sqrt(np.maximum(K.diagonal(), 0.0))
    weights = np.random.default_rng(n_samples).uniform(-1.0, 1.0, n_samples)
    units = np.where(norms > 0.0, norms, 1.0)
    key = K @ (weights / units) / units
    order = np.argsort(key, kind="stable")
    new = np.flatnonzero(np.diff(key[order]) > NEAR * n_samples) + 1
    ends = np.concatenate([[0], new, [n_samples]])
    first = np.arange(n_samples)
    for run in np.flatnonzero(np.diff(ends) > 1):
        leaders: list[int] = []
        for i in np.sort(order[ends[run] : ends[run + 1]]):
            tol = NEAR * norms[i] * norms
            near = (k for k in leaders if np.all(np.abs(K[i] - K[k]) <= tol))
            first[i] = next(near, i)
            if first[i] == i:
                leaders.append(int(i))
    return first


def share_equal_rows(K: FloatArray, first: IntArray) -> None:
    """Give equal samples equal rows and columns of K, to the last bit.

    BLAS may round the inner products of two equal rows differently, depending on
    where they stand in a block. Whoever asks "is this a duplicate?" of K needs them
    equal: so the row and column of the first one are copied to the others.
    """
    repeated = np.flatnonzero(first != np.arange(first.shape[0]))
    for i in repeated:
        K[i] = K[first[i]]
    for rows in row_blocks(K.shape[0] if repeated.size else 0):
        K[rows, repeated] = K[rows, first[repeated]]


def _candidates(X: FloatArray) -> IntArray:
    """Rows whose first and last entries are not unique: no other can have an equal."""
    rows = np.arange(X.shape[0])
    for column in (0, X.shape[1] - 1):
        _, inverse, counts = np.unique(
            X[rows, column], return_inverse=True, return_counts=True
        )
        rows = rows[counts[inverse] > 1]
    return rows


def _dense_row_keys(X: FloatArray) -> Iterator[bytes]:
    """Yield one digest per row (16 bytes, so that keys cost less memory than X)."""
    for row in X:
        yield _digest(row + 0.0)  # + 0.0 turns -0.0 into 0.0


def _sparse_row_keys(X: Any) -> Iterator[bytes]:
    """Yield one digest per row of a CSR matrix; stored zeros do not count."""
    X = sparse.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield _digest(X.indices[start:stop]) + _digest(X.data[start:stop])


def _digest(values: Any) -> bytes:
    """Return 16 bytes that two different arrays share with probability 2**-128."""
    return blake2b(np.ascontiguousarray(values).data, digest_size=16).digest()
