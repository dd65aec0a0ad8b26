# SPDX-License-Identifier: BSD-3-Clause
"""Whether a Gram matrix is positive semi-definite, asked only where it can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from leaveout._typing import FloatArray

# Eigenvalues above -PSD_TOLERANCE * trace(K) count as zero: rounding in the kernel
# values and in the Cholesky factorisation stays below it (some n * 1e-16 * trace at
# worst), a kernel that is indefinite by construction is far beyond it.
PSD_TOLERANCE = 1e-12

# Up to here a dense eigenvalue costs less than a second.
N_DENSE_EIGENVALUE = 1000


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
    >>> from leaveout.kernel import may_be_indefinite
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
    >>> from leaveout.kernel import is_psd
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
    >>> from leaveout.kernel import smallest_eigenvalue
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
