# SPDX-License-Identifier: BSD-3-Clause
"""What a solved SVM is: coefficients, bias interval, sets, and proof of optimality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import BoolArray, FloatArray, StateArray

# States of a point at the optimum (KKT): h = y f is >= 1, = 1, <= 1.
OUTSIDE, MARGIN, BOUNDED = 0, 1, 2


@dataclass(frozen=True)
class Solution:
    """An optimum of a :class:`~leaveout.kernel.Problem`, with its certificate.

    Parameters
    ----------
    beta : ndarray of shape (n,)
        Signed coefficients y_i alpha_i.
    intercept : float
        The bias b; the midpoint of its interval, as LIBSVM takes it.
    intercept_interval : tuple of float
        All optimal b; one point if there is a free support vector.
    decision_values : ndarray of shape (n,)
        f on the training points, K @ beta + b.
    state : ndarray of int8, shape (n,)
        OUTSIDE (alpha = 0), MARGIN (0 < alpha < C) or BOUNDED (alpha = C). The bordered
        kernel matrix of the MARGIN points is non-singular.
    kkt_residual : float
        Largest violation of the optimality conditions, each relative to
        max(1, sum_j |beta_j K_ij|).
    duality_gap : float
        (primal - dual) / primal.
    objective : float
        Primal value.
    n_iter : int
        SMO steps plus active-set steps.
    converged : bool
        Whether kkt_residual is below the tolerance asked for.
    """

    beta: FloatArray
    intercept: float
    intercept_interval: tuple[float, float]
    decision_values: FloatArray
    state: StateArray
    kkt_residual: float
    duality_gap: float
    objective: float
    n_iter: int
    converged: bool

    @property
    def alpha(self) -> FloatArray:
        """Dual variables, (n,)."""
        return np.abs(self.beta)

    @property
    def free(self) -> BoolArray:
        """Mask of the free support vectors M, (n,)."""
        return self.state == MARGIN
