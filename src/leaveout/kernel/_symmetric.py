# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric matrices in blocks of rows: symmetry, equal rows, definiteness.

Except for the factorisations, nothing here needs a second matrix of the same size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel._gram_fast import TILE_ROWS, first_equal

# Two rows of a Gram matrix that differ by less than this share of |x| |y| belong to
# equal samples: rounding of products and distances leaves about 1e-14.
NEAR = 1e-12
# Eigenvalues above -PSD_TOLERANCE * trace(K) count as zero: rounding errors are
# smaller, and a kernel that is indefinite by construction exceeds it by far.
PSD_TOLERANCE = 1e-12
# Products of matrices that are positive semi-definite with a random vector: for a list
# of C the test, which takes longer than a fit, is needed once.
_known_psd: deque[bytes] = deque(maxlen=8)
# Up to this size a dense eigenvalue solver takes less than a second.
N_DENSE_EIGENVALUE = 1000


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Cut range(n_rows) into consecutive slices of at most TILE_ROWS rows."""
    for start in range(0, n_rows, TILE_ROWS):
        yield slice(start, min(start + TILE_ROWS, n_rows))


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
        mean = 0.5 * (K[rows, rows.start :] + K[rows.start :, rows].T)
        K[rows, rows.start :], K[rows.start :, rows] = mean, mean.T
    return K


def first_equal_rows(X: Any) -> IntArray | None:
    """Return the index of the first equal row per row of X, dense or CSR.

    None if all rows are distinct. -0.0 equals 0.0.
    """
    if not sparse.issparse(X):
        first = np.empty(X.shape[0], dtype=np.intp)
        return first if first_equal(X, first) else None
    seen: dict[Hashable, int] = {}
    keys = enumerate(_sparse_row_keys(X))
    first = np.array([seen.setdefault(key, i) for i, key in keys])
    return first if len(seen) < first.size else None


def _sparse_row_keys(X: Any) -> Iterator[tuple[bytes, bytes]]:
    """Yield one key per row of a CSR matrix; stored zeros do not count."""
    X = sparse.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[start:stop].tobytes(), _digest(X.data[start:stop])


def _digest(values: FloatArray) -> bytes:
    """Return 16 bytes that two different arrays share with probability 2**-128."""
    values = np.ascontiguousarray(values + 0.0)  # + 0.0 turns -0.0 into 0.0
    return blake2b(values.data, digest_size=16).digest()


@lru_cache(maxsize=8)
def random_vector(n: int) -> FloatArray:
    """Return n numbers between -1 and 1, the same in every run."""
    return np.random.default_rng(n).uniform(-1.0, 1.0, n)


def first_near_rows(K: FloatArray) -> IntArray | None:
    """Return, for each row of K, the index of the first row equal up to rounding.

    None if all rows differ. Rows computed from inner products may differ by 1e-14,
    which is worse for a factorisation than exact duplicates. A random projection finds
    candidates.
    """
    n_samples = K.shape[0]
    norms = np.sqrt(np.maximum(K.diagonal(), 0.0))
    weights = random_vector(n_samples)
    units = np.where(norms > 0.0, norms, 1.0)
    key = K @ (weights / units) / units
    order = np.argsort(key, kind="stable")
    new = np.flatnonzero(np.diff(key[order]) > NEAR * n_samples) + 1
    if new.size == n_samples - 1:
        return None
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
    return first if np.any(first != np.arange(n_samples)) else None


def share_equal_rows(K: FloatArray, first: IntArray) -> None:
    """Copy row and column of the first of equal samples to the others.

    BLAS may round equal rows differently, but duplicates are found by the bits of K.
    """
    repeated = np.flatnonzero(first != np.arange(first.shape[0]))
    for i in repeated:
        K[i] = K[first[i]]
    for rows in row_blocks(K.shape[0] if repeated.size else 0):
        K[rows, repeated] = K[rows, first[repeated]]


def is_psd(K: FloatArray) -> bool:
    """Return whether the symmetric matrix K is positive semi-definite up to rounding.

    The test: ``K + 1e-12 * trace(K) * I`` has a Cholesky factorisation. A matrix is
    remembered by its product with a random vector, which changes unless rounding hides
    the difference.
    """
    diagonal = np.diagonal(K)
    if diagonal.min() < 0:
        return False
    key = (K @ random_vector(K.shape[0])).tobytes()
    if key in _known_psd:
        return True
    # The floor lets the zero matrix pass.
    shift = max((PSD_TOLERANCE * diagonal).sum(), np.finfo(np.float64).tiny)
    shifted = np.array(K, order="C")
    shifted.flat[:: K.shape[0] + 1] += shift
    _, failed = linalg.lapack.dpotrf(shifted.T, overwrite_a=True, clean=False)
    if not failed:
        _known_psd.append(key)
    return not failed


def smallest_eigenvalue(K: FloatArray) -> float:
    """Return the smallest eigenvalue of K; to three digits above 1000 rows."""
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
