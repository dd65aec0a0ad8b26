# SPDX-License-Identifier: BSD-3-Clause
"""Dense linear systems that say by an exception, never by a warning, if they fail."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, lapack

from leaveout._typing import FloatArray

LU = tuple[FloatArray, np.ndarray]


def factor_lu(matrix: FloatArray) -> LU:
    """Return LU factors with pivots; LinAlgError if the matrix is singular."""
    lu, pivots, info = lapack.dgetrf(matrix)
    if info != 0 or not np.isfinite(lu).all():
        raise LinAlgError("singular matrix")
    return lu, pivots


def solve_lu(factors: LU, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    """Solve with the factors of :func:`factor_lu`."""
    return lapack.dgetrs(*factors, right, trans=int(transposed))[0]


def invert(matrix: FloatArray) -> FloatArray | None:
    """Return the inverse, None if the matrix is singular to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> invert(np.array([[2.0]])), invert(np.zeros((2, 2)))
    (array([[0.5]]), None)
    """
    try:
        inverse: FloatArray = np.linalg.inv(matrix).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return None
    return inverse if np.isfinite(inverse).all() else None
