# SPDX-License-Identifier: BSD-3-Clause
"""The machine of Lee, Lin & Wahba: certified only where rounding cannot undo it.

As for one binary machine (:mod:`leaveout.loo._trust`): kernel values near 1, no boxes
that nobody reaches, and no certificate for labels that rounding may have changed. At
the optimum ``sum(alpha) / (Q - 1) = ||W||^2 + sum C xi``, which is between the optimal
value and twice that, and leaving a sample out lowers the value: no dual variable of a
left-out machine is above ``2 sum(alpha)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from leaveout._typing import BoolArray
from leaveout.loo._result import MachineLoo
from leaveout.loo._trust import (
    ACCURACY,
    NEAR_AMPLIFICATION,
    NEAR_ROUNDING,
    REACH,
    SEVERAL,
    TIE,
    nearly_coincide,
    rounding_of_sum,
)
from leaveout.solve import LlwProblem, LlwSolution, solve_llw

# Kernel values whose largest K_ii is within 2^-20 ... 2^20 stay as they are; boxes
# further than that beyond reach hide the coefficients, and the machine is solved anew.
RANGE = 20


def trusted_llw(
    method: Callable[..., list[MachineLoo]],
) -> Callable[..., list[MachineLoo]]:
    """Wrap a method that leaves samples out; its signature stays."""

    @wraps(method)
    def run(
        problem: LlwProblem, *, solution: LlwSolution | None = None, **options: Any
    ) -> list[MachineLoo]:
        solution = solve_llw(problem) if solution is None else solution
        problem, solution = bring_to_scale(problem, solution)
        found = method(problem, solution=solution, **options)
        rounding = np.inf
        if solution.converged:
            top = float(problem.K.diagonal().max())
            rounding = rounding_of_sum(top, float(solution.alpha.sum()))
            if nearly_coincide(problem.K, np.flatnonzero(problem.C > 0.0)):
                rounding = SEVERAL * max(NEAR_AMPLIFICATION * rounding, NEAR_ROUNDING)
        certified = found[0].certified & _is_clear(found, rounding)
        return [
            replace(
                machine, certified=certified,
                counts={**machine.counts, "rounding": rounding},
            )
            for machine in found
        ]  # fmt: skip

    return run


def bring_to_scale(
    problem: LlwProblem, solution: LlwSolution
) -> tuple[LlwProblem, LlwSolution]:
    """Return the machine with kernel values near 1 and boxes within reach."""
    exponent = int(np.frexp(problem.K.diagonal().max())[1])
    if abs(exponent) > RANGE:
        K, C = np.ldexp(problem.K, -exponent), np.ldexp(problem.C, exponent)
        problem = replace(problem, K=K, C=C)
        solution = solve_llw(problem)
    reach = REACH * float(solution.alpha.sum())
    boxes = np.where(np.isfinite(problem.C), problem.C, 0.0)
    if not solution.converged or not 0.0 < reach < boxes.max():
        return problem, solution
    C = np.where(np.isinf(problem.C), np.inf, np.minimum(problem.C, reach))
    closed = replace(problem, C=C)
    if boxes.max() > np.ldexp(reach, RANGE):
        solution = solve_llw(closed)
    return closed, solution


def _is_clear(machines: list[MachineLoo], rounding: float) -> BoolArray:
    """Whether the largest value stands clear of the second, (n,)."""
    values = np.column_stack([machine.values for machine in machines])
    if values.shape[1] == 1:
        apart = 2.0 * np.abs(values[:, 0])
    else:
        second, first = np.sort(values, axis=1)[:, -2:].T
        apart = first - second
    clear: BoolArray = (apart > 2.0 * rounding) & (rounding <= ACCURACY)
    return clear | (rounding <= TIE)
