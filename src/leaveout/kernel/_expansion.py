# SPDX-License-Identifier: BSD-3-Clause
"""Values of kernel expansions at new points, in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leaveout._typing import FloatArray
from leaveout.kernel._functions import gram_matrix

# Kernel values of one block: 32 MB, some thousand rows for some thousand centres.
BLOCK_VALUES = 2**22


def evaluate_expansion(
    X: Any,
    centres: Any,
    coefficients: FloatArray,
    intercepts: FloatArray,
    *,
    kernel: str | Callable[..., Any],
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 0.0,
) -> FloatArray:
    """Compute f_k(x) = sum_s c_sk K(x, x_s) + b_k for each row x of X.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p), or (n, m) if precomputed
        New points; if kernel="precomputed", their kernel values with the centres.
    centres : array-like or sparse matrix of shape (m, p)
        The points x_s, not asked if kernel="precomputed".
    coefficients : ndarray of shape (m, n_machines)
        c. Without centres, m = 0, the values are the intercepts.
    intercepts : ndarray of shape (n_machines,)
        b.
    kernel, gamma, degree, coef0
        As :func:`gram_matrix` takes them.

    Returns
    -------
    ndarray of shape (n, n_machines)
        The values. Besides them and X, at most 32 MB of kernel values are in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.kernel import evaluate_expansion
    >>> evaluate_expansion(
    ...     [[0.0], [2.0]], [[1.0]], np.array([[3.0]]), np.array([1.0]), kernel="linear"
    ... )
    array([[1.],
           [7.]])
    """
    X = X if hasattr(X, "shape") else np.asarray(X, dtype=np.float64)
    values = np.tile(intercepts, (X.shape[0], 1))
    n_centres = coefficients.shape[0]
    if n_centres == 0:
        return values
    step = max(1, BLOCK_VALUES // n_centres)
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        K = X[rows]
        if kernel != "precomputed":
            K = gram_matrix(
                K, centres, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0
            )
        values[rows] += K @ coefficients
    return values
