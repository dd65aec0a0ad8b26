# SPDX-License-Identifier: BSD-3-Clause
"""Linear programs through HiGHS: quiet, on one thread, with strict tolerances.

highspy is imported on first use because loading it takes a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from leaveout._typing import FloatArray
from leaveout.exceptions import LeaveoutError

Bounds = tuple[FloatArray, FloatArray]
# Limit on the simplex steps of a run, per row and column. Ordinary programs need about
# 1.2; HiGHS may cycle if kernel values are near 0.
STEPS_PER_VARIABLE = 20


def load_highspy() -> Any:
    """Return the module highspy, which the extra ``lp`` installs."""
    try:
        import highspy
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "LPMClassifier and LOOMClassifier need highspy: "
            "pip install 'leaveout[lp]'.",
            name="highspy",
        ) from missing
    return highspy


def open_highs(
    cost: FloatArray,
    matrix: tuple[Any, Any, FloatArray],
    columns: Bounds,
    rows: Bounds,
    tolerance: float,
) -> Any:
    """Load ``min cost' x`` with bounds (lower, upper) on columns and rows.

    ``matrix`` is (start, index, value) by columns, as in
    :class:`scipy.sparse.csc_array`; ``tolerance`` applies to primal and dual.
    """
    highspy = load_highspy()
    lp = highspy.HighsLp()
    lp_shape = lp.num_col_, lp.num_row_ = cost.size, rows[0].size
    lp.col_cost_ = cost
    lp.col_lower_, lp.col_upper_ = columns
    lp.row_lower_, lp.row_upper_ = rows
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("small_matrix_value", 1e-12)
    highs.setOptionValue(
        "simplex_iteration_limit", 1000 + STEPS_PER_VARIABLE * sum(lp_shape)
    )
    highs.setOptionValue("primal_feasibility_tolerance", tolerance)
    highs.setOptionValue("dual_feasibility_tolerance", tolerance)
    highs.passModel(lp)
    return highs


def run_simplex(highs: Any, strategies: Sequence[dict[str, Any]], name: str) -> int:
    """Run the strategies until one finds an optimum; return the number of steps.

    ``name`` names the program in the error if none does.
    """
    highspy = load_highspy()
    status, n_iter = None, 0
    for options in strategies:
        for option, value in options.items():
            highs.setOptionValue(option, value)
        highs.run()
        n_iter += max(0, highs.getInfo().simplex_iteration_count)
        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            return n_iter
        highs.clearSolver()
    raise LeaveoutError(
        f"HiGHS found no optimum of the {name} (status "
        f"{highs.modelStatusToString(status)!r}). It needs kernel values from "
        "1e-3 to 1e3 and weights (C) below 1e6: scale the features, or lower C."
    )


@dataclass(frozen=True)
class SparseLinear:
    """An optimal linear classifier with a 1-norm penalty on its weights."""

    coef: FloatArray  # (n_features,), many of them zero
    intercept: float
    objective: float  # primal value
    duality_gap: float  # (primal - dual) / max(1, primal)


def solve_sparse_linear(Z: FloatArray, y: FloatArray, C: float) -> SparseLinear:
    """Minimise sum_j |w_j| + C sum_i max(0, 1 - y_i (w'z_i + b)).

    HiGHS solves the dual, max sum_i lam_i with |sum_i lam_i y_i z_ij| <= 1, sum_i lam_i
    y_i = 0 and 0 <= lam_i <= C: it has one row per feature, not one per sample. The
    weights are the dual values of those rows.
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
