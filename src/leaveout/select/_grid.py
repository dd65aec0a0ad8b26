# SPDX-License-Identifier: BSD-3-Clause
"""A grid of C and gamma around the scale of the data, and the choice on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.utils.sparsefuncs import mean_variance_axis

from leaveout._typing import FloatArray

# Distances among this many rows fix the median to a few per cent.
N_MEDIAN_ROWS = 500


def needs_gamma(kernel: str | Callable[..., Any]) -> bool:
    """Tell whether gamma changes the kernel.

    Examples
    --------
    >>> from leaveout.select import needs_gamma
    >>> needs_gamma("rbf"), needs_gamma("linear")
    (True, False)
    """
    return isinstance(kernel, str) and kernel not in ("linear", "cosine", "precomputed")


def median_heuristic(X: Any, kernel: str | Callable[..., Any] = "rbf") -> float:
    """Return the gamma that makes a typical kernel value neither 0 nor 1.

    It is 1 / median squared distance for "rbf", so that a typical value is exp(-1);
    1 / median sum of absolute differences for "laplacian"; and 1 / median squared norm
    for "poly" and "sigmoid", which take gamma times the inner product. Equal samples do
    not count, nor does the origin.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p)
        Samples. Of more than 500, every k-th is taken.
    kernel : str, default="rbf"
        Kernel that gamma is for.

    Returns
    -------
    gamma : float
        1.0 if all samples are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import median_heuristic
    >>> median_heuristic(np.array([[0.0], [0.0], [2.0]]))
    0.25
    """
    rows = X[:: max(1, -(-X.shape[0] // N_MEDIAN_ROWS))]
    with np.errstate(over="ignore"):  # gram_matrix says it better
        sizes = _sizes(rows, kernel)
    sizes = sizes[sizes > 0]
    gamma = float(1.0 / np.median(sizes)) if sizes.size else 1.0
    return gamma if 0.0 < gamma < np.inf else 1.0


def _sizes(rows: Any, kernel: str | Callable[..., Any]) -> FloatArray:
    """Return what gamma is multiplied by in the kernel, for some samples or pairs."""
    if kernel in ("poly", "sigmoid"):
        return np.asarray(
            rows.multiply(rows).sum(axis=1)
            if sparse.issparse(rows)
            else (rows * rows).sum(axis=1)
        ).ravel()
    return _distances(rows, absolute=kernel == "laplacian")


def _distances(rows: Any, *, absolute: bool) -> FloatArray:
    """Return the sum of absolute or squared differences of each pair of rows."""
    if not sparse.issparse(rows):
        return pdist(rows, "cityblock" if absolute else "sqeuclidean")
    table = (
        manhattan_distances(rows)
        if absolute
        else euclidean_distances(rows, squared=True)
    )
    return table[np.triu_indices(rows.shape[0], 1)]


def default_gammas(X: Any, kernel: str | Callable[..., Any] = "rbf") -> FloatArray:
    """Return the median heuristic times 1/16, 1/4, 1, 4 and 16.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p)
        Samples.
    kernel : str or callable, default="rbf"
        Kernel that gamma is for. One that ignores gamma gets a single value, 1.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import default_gammas
    >>> default_gammas(np.array([[0.0], [1.0]]))
    array([ 0.0625,  0.25  ,  1.    ,  4.    , 16.    ])
    """
    if not needs_gamma(kernel):
        return np.ones(1)
    return median_heuristic(X, kernel) * np.array([1 / 16, 1 / 4, 1.0, 4.0, 16.0])


def kernel_scale(X: Any, kernel: str | Callable[..., Any] = "rbf") -> float:
    """Return the mean squared distance of samples from their mean, in kernel space.

    Multiplying a kernel by s and dividing C by s leaves the classifier as it is: C is
    to be judged by C times this scale. It is computed for the kernels whose scale is
    that of the data, "linear" and "precomputed"; the others, with a gamma from
    :func:`default_gammas`, count as 1.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p), or (n, n) if precomputed
        Samples, or their Gram matrix.
    kernel : str or callable, default="rbf"
        The kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import kernel_scale
    >>> X = np.array([[0.0, 0.0], [6.0, 8.0]])
    >>> kernel_scale(X, "linear"), kernel_scale(X @ X.T, "precomputed")
    (25.0, 25.0)
    """
    if kernel == "precomputed":
        scale = float(np.trace(X) / X.shape[0] - X.mean())
    elif kernel != "linear":
        return 1.0
    elif sparse.issparse(X):
        scale = float(mean_variance_axis(X.tocsr(), axis=0)[1].sum())
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            scale = float(X.var(axis=0).sum())
    return scale if np.isfinite(scale) and scale > 0.0 else 1.0


def default_Cs(scale: float = 1.0) -> FloatArray:  # noqa: N802
    """Return 0.01, 0.1, ..., 1000, divided by the power of ten next to ``scale``.

    Parameters
    ----------
    scale : float, default=1.0
        Scale of the kernel, see :func:`kernel_scale`.

    Examples
    --------
    >>> from leaveout.select import default_Cs
    >>> default_Cs()
    array([1.e-02, 1.e-01, 1.e+00, 1.e+01, 1.e+02, 1.e+03])
    >>> default_Cs(30.0)
    array([1.e-03, 1.e-02, 1.e-01, 1.e+00, 1.e+01, 1.e+02])
    """
    exponent = round(np.log10(scale))
    return np.array([float(f"1e{k - exponent}") for k in range(-2, 4)])
