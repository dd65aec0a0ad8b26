# SPDX-License-Identifier: BSD-3-Clause
"""The binary SVM as mathematics sees it: a Gram matrix, signs, boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import FloatArray, IntArray


@dataclass(frozen=True)
class Problem:
    """One binary support vector machine with fixed kernel values.

    The primal, with :math:`f(x) = <w, phi(x)> + b`, is::

        min  1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i f(x_i))

    and b is not regularised; without an intercept b = 0.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix: float64, C-contiguous, symmetric, positive semi-definite.
    y : ndarray of shape (n,)
        Signs, -1.0 or +1.0.
    C : ndarray of shape (n,)
        Upper bound of each dual variable, C times class and sample weight; > 0.
    fit_intercept : bool, default=True
        Whether the machine has a bias b.
    """

    K: FloatArray
    y: FloatArray
    C: FloatArray
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        """Bring the arrays to the layout of the kernels; no copy if they have it."""
        for name in ("K", "y", "C"):
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, array)

    @property
    def n_samples(self) -> int:
        """Number of training points."""
        return self.y.shape[0]

    def subset(self, rows: IntArray) -> Problem:
        """Return the problem on some of the rows only (a copy)."""
        return Problem(
            self.K[np.ix_(rows, rows)], self.y[rows], self.C[rows], self.fit_intercept
        )

    def without(self, r: int) -> Problem:
        """Return the problem without row r (a copy)."""
        return self.subset(np.delete(np.arange(self.n_samples), r))
