# SPDX-License-Identifier: BSD-3-Clause
"""Solve: from a Problem to a Solution with its proof. Imports data and kernel only."""

from leaveout.solve._certificate import (
    loo_interval_from_point,
    loo_interval_from_solution,
    loo_interval_in_ball,
)
from leaveout.solve._optimality import (
    intercept_range_without,
    weighted_median_interval,
)
from leaveout.solve._solution import BOUNDED, MARGIN, OUTSIDE, Solution
from leaveout.solve._sparse_linear import SparseLinear, solve_sparse_linear
from leaveout.solve._svc import make_solution, solve_svc

__all__ = [
    "BOUNDED",
    "MARGIN",
    "OUTSIDE",
    "Solution",
    "SparseLinear",
    "intercept_range_without",
    "loo_interval_from_point",
    "loo_interval_from_solution",
    "loo_interval_in_ball",
    "make_solution",
    "solve_sparse_linear",
    "solve_svc",
    "weighted_median_interval",
]
