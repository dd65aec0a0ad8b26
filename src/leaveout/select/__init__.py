# SPDX-License-Identifier: BSD-3-Clause
"""Select: which parameters to try, and which to take. Imports data to loo, and run."""

from leaveout.select._cells import (
    Cell,
    rank_candidates,
    split_cells,
    tabulate_params,
    take_best,
    take_smoothest,
)
from leaveout.select._grid import (
    default_Cs,
    default_gammas,
    kernel_scale,
    median_heuristic,
    needs_gamma,
)
from leaveout.select._honest import HonestLoo
from leaveout.select._platt import Sigmoid, couple_pairs, fit_sigmoid
from leaveout.select._standard_error import (
    alike_blocks,
    random_blocks,
    standard_errors,
)

__all__ = [
    "Cell",
    "HonestLoo",
    "Sigmoid",
    "alike_blocks",
    "couple_pairs",
    "default_Cs",
    "default_gammas",
    "fit_sigmoid",
    "kernel_scale",
    "median_heuristic",
    "needs_gamma",
    "random_blocks",
    "rank_candidates",
    "split_cells",
    "standard_errors",
    "tabulate_params",
    "take_best",
    "take_smoothest",
]
