# SPDX-License-Identifier: BSD-3-Clause
"""A grid of C and gamma around the scale of the data, and the choice on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist

from leaveout._typing import FloatArray, IntArray

# Distances among this many rows fix the median to a few per cent.
N_MEDIAN_ROWS = 500


def needs_gamma(kernel: str) -> bool:
    """Tell whether gamma changes the kernel.

    Examples
    --------
    >>> from leaveout.select import needs_gamma
    >>> needs_gamma("rbf"), needs_gamma("linear")
    (True, False)
    """
    return kernel not in ("linear", "cosine")


def median_heuristic(X: FloatArray, kernel: str = "rbf") -> float:
    """Return gamma = 1 / median distance, so that a typical kernel value is exp(-1).

    The distance is the squared Euclidean one, or the sum of absolute differences for
    the "laplacian" kernel. Equal samples do not count.

    Parameters
    ----------
    X : ndarray of shape (n, p)
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
    distances = pdist(rows, "cityblock" if kernel == "laplacian" else "sqeuclidean")
    distances = distances[distances > 0]
    return float(1.0 / np.median(distances)) if distances.size else 1.0


def default_gammas(X: FloatArray, kernel: str = "rbf") -> FloatArray:
    """Return the median heuristic times 1/16, 1/4, 1, 4 and 16.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Samples.
    kernel : str, default="rbf"
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


def default_Cs() -> FloatArray:  # noqa: N802
    """Return 0.01, 0.1, ..., 1000.

    Examples
    --------
    >>> from leaveout.select import default_Cs
    >>> default_Cs()
    array([1.e-02, 1.e-01, 1.e+00, 1.e+01, 1.e+02, 1.e+03])
    """
    return np.array([1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3])


@dataclass(frozen=True)
class GridErrors:
    """Leave-one-out errors on a grid, and the best cell.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        Values of C, ascending.
    gammas : ndarray of shape (n_gammas,)
        Values of gamma, ascending.
    n_wrong : ndarray of int, shape (n_Cs, n_gammas)
        Number of samples whose leave-one-out prediction is wrong.
    n_ambiguous : ndarray of int, shape (n_Cs, n_gammas)
        Number of samples whose leave-one-out prediction is not unique.
    n_samples : int
        Number of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import GridErrors
    >>> n_wrong = np.array([[5, 3], [3, 4]])
    >>> grid = GridErrors(np.array([1.0, 10.0]), np.array([0.1, 0.2]), n_wrong,
    ...                   np.zeros_like(n_wrong), n_samples=50)
    >>> grid.best_C, grid.best_gamma, grid.best_error
    (1.0, 0.2, 0.06)
    """

    Cs: FloatArray
    gammas: FloatArray
    n_wrong: IntArray
    n_ambiguous: IntArray
    n_samples: int

    @property
    def errors(self) -> FloatArray:
        """Share of wrong predictions, (n_Cs, n_gammas)."""
        return self.n_wrong / self.n_samples

    @property
    def best_index(self) -> tuple[int, int]:
        """Cell with the smallest error; of equal ones smaller C, then smaller gamma."""
        # argmin takes the first in row order, and the values ascend.
        i, j = np.unravel_index(np.argmin(self.n_wrong), self.n_wrong.shape)
        return int(i), int(j)

    @property
    def best_C(self) -> float:  # noqa: N802
        """C of the best cell."""
        return float(self.Cs[self.best_index[0]])

    @property
    def best_gamma(self) -> float:
        """Gamma of the best cell."""
        return float(self.gammas[self.best_index[1]])

    @property
    def best_error(self) -> float:
        """Error of the best cell."""
        return float(self.errors[self.best_index])

    @property
    def best_standard_error(self) -> float:
        """Standard error of the best error, as if the samples were independent."""
        error = self.best_error
        return float(np.sqrt(error * (1.0 - error) / self.n_samples))
