# SPDX-License-Identifier: BSD-3-Clause
"""Select: which parameters to try, and which to take. Imports data to loo, and run."""

from leaveout.select._cells import (
    Cell,
    rank_candidates,
    split_cells,
    tabulate_params,
    take_best,
)
from leaveout.select._grid import (
    GridErrors,
    default_Cs,
    default_gammas,
    median_heuristic,
    needs_gamma,
)
from leaveout.select._standard_error import (
    alike_blocks,
    random_blocks,
    standard_errors,
)

__all__ = [
    "Cell",
    "GridErrors",
    "alike_blocks",
    "default_Cs",
    "default_gammas",
    "median_heuristic",
    "needs_gamma",
    "random_blocks",
    "rank_candidates",
    "split_cells",
    "standard_errors",
    "tabulate_params",
    "take_best",
]
