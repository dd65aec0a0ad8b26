# SPDX-License-Identifier: BSD-3-Clause
"""The left-out values of all subproblems of a task at all its samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import (
    VALUE_ACCURACY,
    clear_of_rounding,
    rounding_of_sum,
)
from leaveout.engine._problem import (
    BY_ROUNDING,
    CERTIFIED,
    NOT_CONVERGED,
    SETTLED_BY,
    UNTOUCHED,
    LooIntervals,
)
from leaveout.loo._multiclass import class_pairs

if TYPE_CHECKING:
    from leaveout.loo._task import Task


@dataclass(frozen=True)
class LeftOut:
    """Results of one subproblem, without its Gram matrix."""

    found: LooIntervals  # left-out values of its samples
    rows: IntArray | None = None  # its samples; None: all samples of the task
    solution: Any = None  # full solution, if there is one
    anti_learning: bool = False  # whether its labels follow the class proportions
    preprocessing: Mapping[str, str] = field(default_factory=dict)  # see LooResult
    seconds: float = 0.0  # spent on this subproblem alone


def stack_outputs(found: list[LooIntervals]) -> LooIntervals:
    """Combine subproblems that have values for all samples: one column per output."""
    if len(found) == 1 and found[0].lower.ndim == 1:
        only = found[0]
        lower = upper = only.lower[:, None]
        if only.lower is not only.upper:
            upper = only.upper[:, None]
        steps, reasons = only.settled_by, only.uncertified_by
        return LooIntervals(lower, upper, steps, reasons, chosen=only.values[:, None])
    values, lower, upper = (
        np.column_stack([getattr(intervals, name) for intervals in found])
        for name in ("values", "lower", "upper")
    )
    reasons = np.max([intervals.uncertified_by for intervals in found], axis=0)
    steps = _costliest_step(np.array([intervals.settled_by for intervals in found]))
    return LooIntervals(lower, upper, steps, reasons, chosen=values)


def spread_coefficients(task: Task, parts: list[LeftOut]) -> FloatArray:
    """Return the coefficients of each subproblem, 0 outside it, (q, n)."""
    betas = np.zeros((len(parts), task.C.shape[0]))
    for beta, part in zip(betas, parts, strict=True):
        beta[part.rows] = part.solution.beta
    return betas


def complete_outputs(
    task: Task, columns: list[list[LeftOut]], betas: FloatArray
) -> list[LooIntervals]:
    """Combine subproblems of some samples for each C; ``betas`` is (n_Cs, q, n).

    At all other samples the value of a subproblem is that of the full solution.
    """
    products = products_with(task, betas)
    return [
        _complete(task, parts, own)
        for parts, own in zip(columns, products, strict=True)
    ]


def products_with(
    task: Task, betas: FloatArray, rows: IntArray | None = None
) -> FloatArray:
    """Return ``betas @ K[:, rows]``, (n_Cs, q, n_rows); all rows if None.

    The betas (n_Cs, q, n) of a pair of classes are 0 at samples of other classes.
    """
    K = task.K if rows is None else task.K[rows]
    n_classes = len(task.target.classes)
    pairs = class_pairs(n_classes)
    if betas.shape[1] != len(pairs) or task.params.one_vs_rest:
        return betas @ K.T
    products = np.zeros((*betas.shape[:2], K.shape[0]))
    for code in range(n_classes):
        own = [k for k, pair in enumerate(pairs) if code in pair]
        trained = np.flatnonzero((task.target.codes == code) & (task.C > 0.0))
        left = betas[:, own][:, :, trained].reshape(-1, trained.size)
        block = K[trained] if rows is None else K[:, trained].T
        products[:, own] += (left @ block).reshape(-1, len(own), K.shape[0])
    return products


def _complete(task: Task, parts: list[LeftOut], products: FloatArray) -> LooIntervals:
    """Combine subproblems at one C, given K times their coefficients, (q, n)."""
    largest = float(task.K.diagonal().max())  # indefinite kernels: not certified
    fits = [part.solution for part in parts]
    ends = np.array([fit.intercept_interval for fit in fits])
    lower, upper = products + ends[:, :1], products + ends[:, 1:]
    sizes = np.array([np.abs(fit.beta).sum() for fit in fits])
    rounding = np.array([part.found.counts["rounding"] for part in parts])
    rounding = np.maximum(rounding, rounding_of_sum(largest, sizes))[:, None]
    converged = np.array([[fit.converged] for fit in fits])
    reasons = find_reasons(task, lower, upper, converged, rounding)
    steps = np.full(products.shape, UNTOUCHED, dtype=np.int8)
    for k, part in enumerate(parts):
        rows, found = part.rows, part.found
        lower[k, rows], upper[k, rows] = found.lower, found.upper
        reasons[k, rows], steps[k, rows] = found.uncertified_by, found.settled_by
    return LooIntervals(lower.T, upper.T, _costliest_step(steps), reasons.max(axis=0))


def find_reasons(
    task: Task,
    lower: FloatArray,
    upper: FloatArray,
    converged: BoolArray,
    rounding: FloatArray,
) -> np.ndarray:
    """Return why values at samples that were not trained on are not certified."""
    clear: Any = rounding <= VALUE_ACCURACY
    if len(task.target.classes):
        clear = clear_of_rounding(lower, upper, rounding, task.params.fit_intercept)
    reasons = np.where(clear, CERTIFIED, BY_ROUNDING)
    reasons = np.where(converged, reasons, NOT_CONVERGED).astype(np.int8)
    return np.broadcast_to(reasons, lower.shape).copy()


def _costliest_step(steps: np.ndarray) -> np.ndarray:
    """Return the costliest step per sample over the subproblems, (q, n)."""
    cost = np.arange(1, len(SETTLED_BY) + 1, dtype=np.int8)
    cost[UNTOUCHED] = 0
    by_cost = np.argsort(cost, kind="stable")
    return by_cost[cost[steps].max(axis=0)]
