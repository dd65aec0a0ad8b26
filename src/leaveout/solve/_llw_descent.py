# SPDX-License-Identifier: BSD-3-Clause
"""Find the neighbourhood of the optimum of Lee, Lin & Wahba's machine by SMO."""

from __future__ import annotations

import numpy as np

from leaveout._typing import BoolArray, FloatArray, StateArray
from leaveout.solve._llw_smo_fast import llw_smo
from leaveout.solve._solution import BOUNDED, MARGIN, OUTSIDE

# In this many steps per variable an interior point is at the end: SMO crawls.
STEPS_PER_VARIABLE = 50
# Steps between two looks at Python's signals, so that Ctrl-C works.
STEPS_PER_CALL = 20_000
# Stands for no upper bound.
UNBOUNDED = 1e300


class Descent:
    """Minimise ``1/2 a'(P x K) a - sum(a) / (Q - 1)`` by pairs and tuples.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of unit scale.
    C : ndarray of shape (n, Q)
        Upper bounds, possibly infinite; 0 where there is no variable.

    Attributes
    ----------
    n_iter : int
        Steps taken.
    """

    def __init__(self, K: FloatArray, C: FloatArray) -> None:
        self.K, self.diag = K, K.diagonal().copy()
        self.upper = np.minimum(C.T, UNBOUNDED, order="C")
        self.columns = np.zeros(self.upper.shape)
        self.gradient = np.full(self.upper.shape, 1.0 / (C.shape[1] - 1))
        self.n_iter = 0

    def run(self, tol: float) -> bool:
        """Go on until all slopes are right up to ``tol``, of 1/(Q-1); False: crawls."""
        tol *= 1.0 / (self.columns.shape[0] - 1)
        cap = STEPS_PER_VARIABLE * self.columns.size
        while self.n_iter < cap:
            budget = min(STEPS_PER_CALL, cap - self.n_iter)
            steps, violation = llw_smo(
                self.K, self.diag, self.upper, self.columns, self.gradient, tol, budget
            )
            self.n_iter += steps
            if violation <= tol:
                return True
            if steps < budget:  # overflow
                return False
        return False

    def point(self) -> tuple[FloatArray, FloatArray, StateArray]:
        """Return alpha, its gradient G and its sets, (n, Q) each."""
        above, below = self.columns > 0.0, self.columns < self.upper
        sets = np.where(above, np.where(below, MARGIN, BOUNDED), OUTSIDE)
        return (
            self.columns.T.copy(),
            self.gradient.T.copy(),
            np.ascontiguousarray(sets.T, dtype=np.int8),
        )
