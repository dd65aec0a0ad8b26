# SPDX-License-Identifier: BSD-3-Clause
"""Exact copies: samples that leave the same problem behind share one answer."""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray, IntArray


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
