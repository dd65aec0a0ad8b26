# SPDX-License-Identifier: BSD-3-Clause
"""HiGHS, as the linear programs of this package want it: quiet, on one thread, strict.

highspy is imported when it is first needed: it takes a while to load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaveout._typing import FloatArray
from leaveout.exceptions import LeaveoutError

Bounds = tuple[FloatArray, FloatArray]
# Most simplex steps of a run, by rows and columns. Some 1.2 is what ordinary programs
# need; on kernel values next to nothing HiGHS may go in circles for ever.
STEPS_PER_VARIABLE = 20


def open_highs(
    cost: FloatArray,
    matrix: tuple[Any, Any, FloatArray],
    columns: Bounds,
    rows: Bounds,
    tolerance: float,
) -> Any:
    """Load a program.

    Parameters
    ----------
    cost : ndarray of shape (n_columns,)
        What is minimised.
    matrix : tuple of (start, index, value)
        By columns, as in :class:`scipy.sparse.csc_array`.
    columns, rows : tuple of ndarray
        Lower and upper bounds of the variables, and of the constraints.
    tolerance : float
        By how much HiGHS may violate them, primal and dual.
    """
    import highspy

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
    """Let HiGHS work, by one strategy after the other; return its number of steps.

    ``name`` is what the program is called in the error if none finds an optimum.
    """
    import highspy

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
        f"{highs.modelStatusToString(status)!r}). Kernel values from 1e-3 to 1e3 and "
        "weights (C) below 1e6 are what it can take: scale the features, or lower C."
    )
