# SPDX-License-Identifier: BSD-3-Clause
"""Loo: from a Problem to its leave-one-out values. Imports data, kernel, solve, run."""

from leaveout.loo._curve import LooCurve, trace_loo_curve
from leaveout.loo._refit import loo_refit
from leaveout.loo._registry import METHODS, LooMethod, find_method
from leaveout.loo._result import SETTLED_BY, UNTOUCHED, LooResult, MachineLoo
from leaveout.loo._walk import loo_walk

__all__ = [
    "METHODS",
    "SETTLED_BY",
    "UNTOUCHED",
    "LooCurve",
    "LooMethod",
    "LooResult",
    "MachineLoo",
    "find_method",
    "loo_refit",
    "loo_walk",
    "trace_loo_curve",
]
