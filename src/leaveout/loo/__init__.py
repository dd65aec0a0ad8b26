# SPDX-License-Identifier: BSD-3-Clause
"""Loo: from a Problem to its leave-one-out values. Imports data, kernel, solve, run."""

from leaveout.loo._anti_learning import is_anti_learning
from leaveout.loo._bounds import (
    SVM_BOUNDS,
    Bound,
    LooBounds,
    tabulate_bounds,
    tabulate_lpm_bounds,
    wrong_and_ambiguous,
)
from leaveout.loo._consolidated import loo_consolidated, loo_magic
from leaveout.loo._curve import LooCurve, trace_loo_curve
from leaveout.loo._leave_groups import loo_groups
from leaveout.loo._linear_loo import (
    LinearLoo,
    ProvedError,
    label_rows,
    leave_one_out_linear,
)
from leaveout.loo._linear_votes import elect
from leaveout.loo._llw import LLW_METHODS, loo_llw_refit, loo_llw_walk
from leaveout.loo._llw_bounds import bound_llw, llw_key_numbers
from leaveout.loo._loom import (
    LOOM_METHODS,
    loo_loom_bound,
    loo_loom_refit,
    loom_bound,
)
from leaveout.loo._lpm import LPM_METHODS, loo_lpm_refit, loo_lpm_walk
from leaveout.loo._pairs import PairAUC, loo_pairs
from leaveout.loo._path import LooPath, solve_path
from leaveout.loo._permutation import (
    PermutationTest,
    permute_groups,
    permute_within,
)
from leaveout.loo._prediction import (
    VARIANTS,
    FittedExpansion,
    feature_squares,
    leave_one_out_features,
    name_features,
)
from leaveout.loo._radius import enclosing_radius_squared, solve_l2_svm
from leaveout.loo._record import pack_results, unpack_results
from leaveout.loo._registry import (
    GROUP_METHODS,
    LABEL_METHODS,
    METHODS,
    LooMethod,
    find_method,
    follow_path,
)
from leaveout.loo._result import (
    REFIT,
    SETTLED_BY,
    UNTOUCHED,
    LooResult,
    MachineLoo,
    middle,
)
from leaveout.loo._span import span_squared
from leaveout.loo._standard import loo_refit
from leaveout.loo._stopping import loo_stopping
from leaveout.loo._suspects import Suspects
from leaveout.loo._trust import ask_elsewhere
from leaveout.loo._walk import loo_walk
from leaveout.loo._without import Without

__all__ = [
    "GROUP_METHODS",
    "LABEL_METHODS",
    "LLW_METHODS",
    "LOOM_METHODS",
    "LPM_METHODS",
    "METHODS",
    "REFIT",
    "SETTLED_BY",
    "SVM_BOUNDS",
    "UNTOUCHED",
    "VARIANTS",
    "Bound",
    "FittedExpansion",
    "LinearLoo",
    "LooBounds",
    "LooCurve",
    "LooMethod",
    "LooPath",
    "LooResult",
    "MachineLoo",
    "PairAUC",
    "PermutationTest",
    "ProvedError",
    "Suspects",
    "Without",
    "ask_elsewhere",
    "bound_llw",
    "elect",
    "enclosing_radius_squared",
    "feature_squares",
    "find_method",
    "follow_path",
    "is_anti_learning",
    "label_rows",
    "leave_one_out_features",
    "leave_one_out_linear",
    "llw_key_numbers",
    "loo_consolidated",
    "loo_groups",
    "loo_llw_refit",
    "loo_llw_walk",
    "loo_loom_bound",
    "loo_loom_refit",
    "loo_lpm_refit",
    "loo_lpm_walk",
    "loo_magic",
    "loo_pairs",
    "loo_refit",
    "loo_stopping",
    "loo_walk",
    "loom_bound",
    "middle",
    "name_features",
    "pack_results",
    "permute_groups",
    "permute_within",
    "solve_l2_svm",
    "solve_path",
    "span_squared",
    "tabulate_bounds",
    "tabulate_lpm_bounds",
    "trace_loo_curve",
    "unpack_results",
    "wrong_and_ambiguous",
]
