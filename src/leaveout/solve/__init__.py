# SPDX-License-Identifier: BSD-3-Clause
"""Solve: from a Problem to a Solution with a certificate. Imports data and kernel only."""

from leaveout.solve._certificate import (
    intercept_range_without,
    weighted_median_interval,
)
from leaveout.solve._solution import BOUNDED, MARGIN, OUTSIDE, Solution
from leaveout.solve._svc import solve_svc

__all__ = [
    "BOUNDED",
    "MARGIN",
    "OUTSIDE",
    "Solution",
    "intercept_range_without",
    "solve_svc",
    "weighted_median_interval",
]
