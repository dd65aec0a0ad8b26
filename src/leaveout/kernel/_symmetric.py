# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric matrices in blocks of rows: equal rows, definiteness.

Symmetric matrices filled, compared and repaired in blocks of rows.

Nothing here holds a second matrix of the size of the first.

Whether a Gram matrix is positive semi-definite, asked only where it can fail.

Exact copies: samples that leave the same problem behind share one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from leaveout._typing import FloatArray, IntArray

# 128 rows of a 3000-column matrix are 3 MB: large enough for BLAS to be at full speed,
# small enough to stay in cache while exp or tanh runs over them.
BLOCK_ROWS = 128
# Two rows of a Gram matrix whose values differ by less than this share of |x| |y| are
# those of equal samples: products and distances of equal rows leave some 1e-14.
NEAR = 1e-12
# Eigenvalues above -PSD_TOLERANCE * trace(K) count as zero: rounding in the kernel
# values and in the Cholesky factorisation stays below it (some n * 1e-16 * trace at
# worst), a kernel that is indefinite by construction is far beyond it.
PSD_TOLERANCE = 1e-12
# Up to here a dense eigenvalue costs less than a second.
N_DENSE_EIGENVALUE = 1000


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


def may_be_indefinite(kernel: str | Callable[..., Any], coef0: float = 0.0) -> bool:
    """Tell whether the kernel can give a Gram matrix that is not PSD.

    Parameters
    ----------
    kernel : str or callable
        A name that :func:`gram_matrix` knows, or a callable.
    coef0 : float, default=0.0
        Constant of the "poly" kernel, which is indefinite only if it is negative.

    Examples
    --------
    >>> may_be_indefinite("rbf"), may_be_indefinite("sigmoid")
    (False, True)
    """
    if kernel == "poly":
        return coef0 < 0
    return callable(kernel) or kernel in ("sigmoid", "precomputed")


def is_psd(K: FloatArray) -> bool:
    """Tell whether the symmetric matrix K is positive semi-definite up to rounding.

    One Cholesky factorisation of ``K + 1e-12 * trace(K) * I``, n^3 / 3 flops, and a
    copy of K.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric matrix.

    Examples
    --------
    >>> import numpy as np
    >>> is_psd(np.ones((3, 3))), is_psd(np.array([[0.0, 1.0], [1.0, 0.0]]))
    (True, False)
    """
    diagonal = np.diagonal(K)
    if diagonal.min() < 0:
        return False
    # The floor lets the zero matrix pass.
    shift = max((PSD_TOLERANCE * diagonal).sum(), np.finfo(np.float64).tiny)
    shifted = np.array(K, order="C")
    shifted.flat[:: K.shape[0] + 1] += shift
    try:
        linalg.cholesky(shifted.T, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return False
    return True


def smallest_eigenvalue(K: FloatArray) -> float:
    """Return the smallest eigenvalue of the symmetric matrix K.

    For messages about a matrix that :func:`is_psd` refused: with more than 1000 rows
    it comes from Lanczos iterations and has about three digits.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric matrix.

    Examples
    --------
    >>> import numpy as np
    >>> round(smallest_eigenvalue(np.array([[0.0, 1.0], [1.0, 0.0]])), 12)
    -1.0
    """
    n_samples = K.shape[0]
    if n_samples > N_DENSE_EIGENVALUE:
        start = np.random.default_rng(0).standard_normal(n_samples)
        try:
            (value,) = eigsh(
                K, k=1, which="SA", v0=start, tol=1e-3, return_eigenvectors=False
            )
            return float(value)
        except ArpackNoConvergence:
            pass
    (value,) = linalg.eigh(K, eigvals_only=True, subset_by_index=[0, 0])
    return float(value)


def first_copies(
    K: FloatArray, y: FloatArray, C: FloatArray, rows: IntArray
) -> IntArray:
    """For each of some samples, the first among them with equal kernel row, y and C.

    Candidates by a fingerprint, then whole rows are compared: K itself says what is a
    copy, so it also works for precomputed kernels.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 0.0, 0.0])
    >>> K = np.equal.outer(x, x).astype(float)
    >>> first_copies(K, np.array([1.0, 1, 1, -1]), np.ones(4), np.arange(4))
    array([0, 1, 0, 3])
    """
    key = _fingerprints(K, y, C)[rows]
    order = np.argsort(key, kind="stable")
    # Copies have fingerprints that differ by rounding only: they are neighbours here.
    near = np.diff(key[order]) <= 1e-12 * (1.0 + np.abs(key[order[1:]]))
    leader = rows.copy()
    if near.any():
        group = np.concatenate([[0], np.cumsum(~near)])
        for run in np.split(order, np.flatnonzero(np.diff(group)) + 1):
            if run.size > 1:
                leader[run] = _match(K, y, C, np.sort(rows[run]))[
                    np.argsort(np.argsort(rows[run]))
                ]
    return leader


def _fingerprints(K: FloatArray, y: FloatArray, C: FloatArray) -> FloatArray:
    """One number a sample, equal up to rounding for copies, else hardly ever."""
    n = K.shape[0]
    scale = abs(float(K[0, 0])) or 1.0
    key = K.diagonal() + 0.617 * K[:, n // 3] + 0.349 * K[:, n - 1] + 0.731 * K[:, 0]
    return key / scale + 0.519 * y + 0.287 * C / C.max()


def _match(
    K: FloatArray, y: FloatArray, C: FloatArray, candidates: IntArray
) -> IntArray:
    """Leader of each candidate: the first candidate with the same row of K, y and C."""
    leaders: list[int] = []
    out = candidates.copy()
    # A copy j of i has K_ij = K_ii: most of those who only look alike end here.
    square = K[np.ix_(candidates, candidates)]
    alike = np.abs(square - K[candidates, candidates]) <= _rounding(square.diagonal())
    for a in np.flatnonzero(alike.sum(axis=0) > 1):
        i = candidates[a]
        for leader in leaders:
            # Bits may differ although the inputs do not (blocked products).
            same = y[i] == y[leader] and C[i] == C[leader]
            if same and np.abs(K[i] - K[leader]).max() <= _rounding(K[i, i]):
                out[a] = leader
                break
        else:
            leaders.append(int(i))
    return out


def _rounding(diagonal: FloatArray) -> FloatArray:
    return 1e-14 * np.abs(diagonal)
