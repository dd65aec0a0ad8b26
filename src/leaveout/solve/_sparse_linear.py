# SPDX-License-Identifier: BSD-3-Clause
"""A linear classifier on explicit features with the 1-norm of its weights, by an LP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from leaveout._typing import FloatArray
from leaveout.exceptions import LeaveoutError


@dataclass(frozen=True)
class SparseLinear:
    """An optimal sparse linear classifier.

    Parameters
    ----------
    coef : ndarray of shape (n_features,)
        Weights, many of them zero.
    intercept : float
        b.
    objective : float
        Value of the primal problem at this point.
    duality_gap : float
        (primal - dual) / max(1, primal).
    """

    coef: FloatArray
    intercept: float
    objective: float
    duality_gap: float


def solve_sparse_linear(Z: FloatArray, y: FloatArray, C: float) -> SparseLinear:
    """Minimise sum_j |w_j| + C sum_i max(0, 1 - y_i (w'z_i + b)).

    HiGHS solves the dual, max sum_i lam_i with |sum_i lam_i y_i z_ij| <= 1, sum_i lam_i
    y_i = 0 and 0 <= lam_i <= C: it has a row for each feature, not for each sample. The
    weights are the prices of those rows.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        -1 or 1.
    C : float
        Price of an error.

    Returns
    -------
    SparseLinear
        With the duality gap that was reached.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.solve import solve_sparse_linear
    >>> Z = np.array([[0.0, 3.0], [1.0, 3.0], [3.0, 3.0], [4.0, 3.0]])
    >>> found = solve_sparse_linear(Z, np.array([-1.0, -1.0, 1.0, 1.0]), C=10.0)
    >>> found.coef.round(6), round(found.intercept, 6)
    (array([1., 0.]), -2.0)
    """
    rows = (Z * y[:, None]).T
    answer = linprog(
        -np.ones(y.size),
        A_ub=np.vstack([rows, -rows]),
        b_ub=np.ones(2 * rows.shape[0]),
        A_eq=y[None],
        b_eq=[0.0],
        bounds=(0.0, C),
        method="highs-ds",
    )
    if answer.status != 0:
        raise LeaveoutError(
            f"HiGHS did not solve the LP of the sparse classifier: {answer.message}"
        )
    plus, minus = -answer.ineqlin.marginals.reshape(2, -1)
    coef, intercept = plus - minus, -float(answer.eqlin.marginals[0])
    hinge = np.maximum(0.0, 1.0 - y * (Z @ coef + intercept))
    objective = float(np.abs(coef).sum() + C * hinge.sum())
    gap = (objective + float(answer.fun)) / max(1.0, objective)
    return SparseLinear(coef, intercept, objective, gap)
