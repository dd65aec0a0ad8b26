# SPDX-License-Identifier: BSD-3-Clause
"""Select: which parameters to try, and which to take. Imports data to loo, and run."""

from leaveout.select._grid import (
    GridErrors,
    default_Cs,
    default_gammas,
    median_heuristic,
    needs_gamma,
)

__all__ = [
    "GridErrors",
    "default_Cs",
    "default_gammas",
    "median_heuristic",
    "needs_gamma",
]
