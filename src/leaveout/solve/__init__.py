# SPDX-License-Identifier: BSD-3-Clause
"""Solve: from a Problem to a Solution with its proof. Imports data and kernel only."""

from leaveout.solve._certificate import (
    left_out_radii,
    loo_interval_from_point,
    loo_interval_from_solution,
    loo_interval_in_ball,
)
from leaveout.solve._dense import invert
from leaveout.solve._family import Certificate, Family, certify
from leaveout.solve._linear_machines import LinearMachines
from leaveout.solve._linear_svc import (
    LinearProgress,
    is_small,
    sample_sizes,
    solve_linear,
)
from leaveout.solve._llw import (
    LlwProblem,
    LlwSolution,
    choose_intercept,
    intercept_box,
    solve_llw,
)
from leaveout.solve._llw_walk import LlwWalker
from leaveout.solve._loom import LoomSolution, LoomSolver, solve_loom
from leaveout.solve._lpm import (
    LpmBasis,
    LpmSolution,
    LpmSolver,
    design_matrix,
    lpm_certificate,
    solve_lpm,
    solve_lpm_basis,
)
from leaveout.solve._majorise import Iterate
from leaveout.solve._optimality import (
    has_room,
    intercept_range_without,
    weighted_median_interval,
    weighted_median_intervals,
)
from leaveout.solve._scale import Rescaled, rescale
from leaveout.solve._smoothed_hinge import box_share, smoothed_hinge
from leaveout.solve._smoothing import Smoothed, solve_family
from leaveout.solve._solution import BOUNDED, MARGIN, OUTSIDE, Solution
from leaveout.solve._sparse_linear import SparseLinear, solve_sparse_linear
from leaveout.solve._svc import make_solution, solve_svc
from leaveout.solve._window import (
    LinearOptimum,
    Nearest,
    Sides,
    WindowProblem,
    look,
)

__all__ = [
    "BOUNDED",
    "MARGIN",
    "OUTSIDE",
    "Certificate",
    "Family",
    "Iterate",
    "LinearMachines",
    "LinearOptimum",
    "LinearProgress",
    "LlwProblem",
    "LlwSolution",
    "LlwWalker",
    "LoomSolution",
    "LoomSolver",
    "LpmBasis",
    "LpmSolution",
    "LpmSolver",
    "Nearest",
    "Rescaled",
    "Sides",
    "Smoothed",
    "Solution",
    "SparseLinear",
    "WindowProblem",
    "box_share",
    "certify",
    "choose_intercept",
    "design_matrix",
    "has_room",
    "intercept_box",
    "intercept_range_without",
    "invert",
    "is_small",
    "left_out_radii",
    "loo_interval_from_point",
    "loo_interval_from_solution",
    "loo_interval_in_ball",
    "look",
    "lpm_certificate",
    "make_solution",
    "rescale",
    "sample_sizes",
    "smoothed_hinge",
    "solve_family",
    "solve_linear",
    "solve_llw",
    "solve_loom",
    "solve_lpm",
    "solve_lpm_basis",
    "solve_sparse_linear",
    "solve_svc",
    "weighted_median_interval",
    "weighted_median_intervals",
]
