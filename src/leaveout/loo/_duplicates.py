# SPDX-License-Identifier: BSD-3-Clause
"""Exact copies: samples that leave the same problem behind share one answer."""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray, IntArray


def first_copies(K: FloatArray, y: FloatArray, C: FloatArray, rows: IntArray) -> IntArray:
    """For each of some samples, the first among them with equal kernel row, y and C.

    Candidates by the diagonal and three columns of K, then whole rows are compared: K
    itself says what is a copy, so it also works for precomputed kernels.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 0.0, 0.0])
    >>> K = np.equal.outer(x, x).astype(float)
    >>> first_copies(K, np.array([1.0, 1, 1, -1]), np.ones(4), np.arange(4))
    array([0, 1, 0, 3])
    """
    n = K.shape[0]
    anchors = K[:, [0, n // 3, n - 1]][rows]
    keys = np.column_stack([K.diagonal()[rows], anchors, y[rows], C[rows]])
    _, inverse, counts = np.unique(
        np.round(keys, 12), axis=0, return_inverse=True, return_counts=True
    )
    leader = rows.copy()
    for group in np.flatnonzero(counts > 1):
        leader[inverse == group] = _match(K, rows[inverse == group])
    return leader


def _match(K: FloatArray, candidates: IntArray) -> IntArray:
    """Leader of each candidate: the first candidate with the same row of K."""
    leaders: list[int] = []
    out = np.empty_like(candidates)
    for a, i in enumerate(candidates):
        for leader in leaders:
            # Bits may differ although the inputs do not (blocked products).
            if np.abs(K[i] - K[leader]).max() <= 1e-14 * abs(K[i, i]):
                out[a] = leader
                break
        else:
            leaders.append(int(i))
            out[a] = i
    return out
