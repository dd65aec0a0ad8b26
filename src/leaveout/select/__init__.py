# SPDX-License-Identifier: BSD-3-Clause
"""Select: which parameters to try, and which to take. Imports data to loo, and run."""

from leaveout.select._grid import (
    GridErrors,
    default_Cs,
    default_gammas,
    kernel_scale,
    median_heuristic,
    needs_gamma,
)
from leaveout.select._platt import Sigmoid, couple_pairs, fit_sigmoid

__all__ = [
    "GridErrors",
    "Sigmoid",
    "couple_pairs",
    "default_Cs",
    "default_gammas",
    "fit_sigmoid",
    "kernel_scale",
    "median_heuristic",
    "needs_gamma",
]
