# SPDX-License-Identifier: BSD-3-Clause
"""A few large groups, as in K-fold: one fit per fold on the shared Gram matrix.

A walk from the full solution has about as many events as a group has support vectors.
For few groups it is cheaper to solve the problem without each group from the start, and
the full problem is not needed. In each fold one solution leads to the next C.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import is_regular, rounding_of_sum
from leaveout.engine._problem import (
    NOT_CONVERGED,
    REFIT,
    LooIntervals,
    middle,
)
from leaveout.engine._short import Fits, solve_path
from leaveout.loo._family import scale_bounds
from leaveout.loo._outputs import LeftOut, find_reasons, products_with
from leaveout.loo._result import holds_lighter_class, labels_follow_proportions
from leaveout.loo._task import LARGEST_PENALTY
from leaveout.run._parallel import map_chunks

if TYPE_CHECKING:
    from leaveout.loo._leave_out import Plan
    from leaveout.loo._task import Task

# With more groups it is faster to start from the full solution. A pair of classes then
# needs the kernel values of all samples.
MOST_FOLDS, MOST_FOLDS_OF_PAIRS = 6, 12

# With fewer samples, handing work to threads costs as much as it saves.
LEAST_THREADED = 1000


def fits_groups(task: Task, plan: Plan) -> bool:
    """Whether there are so few groups that fits without them are fastest."""
    if plan.groups is None or plan.source is not None or not plan.family.warm_start:
        return False
    has_pairs = len(task.target.classes) > 2 and not task.params.one_vs_rest
    most = MOST_FOLDS_OF_PAIRS if has_pairs else MOST_FOLDS
    return int(plan.groups.max()) < most


def threads_worthwhile(plan: Plan, n_samples: int) -> int:
    """Return the number of threads; one for walks and fits that take milliseconds."""
    small = plan.method == "walk" and n_samples < LEAST_THREADED
    return 1 if small else plan.n_threads


def leave_groups_out(
    task: Task, plan: Plan, factors: FloatArray
) -> list[list[LeftOut]]:
    """Leave each group out at upper bounds factor * C_i, by fits without it.

    Returns the values of all samples, per factor and subproblem.
    """
    order = np.argsort(factors, kind="stable")
    kfold = _KFold(task, plan, factors[order])
    n_threads = threads_worthwhile(plan, task.C.shape[0])
    map_chunks(kfold.fit, len(kfold.whole), n_threads, size=1)
    map_chunks(kfold.predict, kfold.n_folds, n_threads, size=1)
    parts = [kfold.parts(q) for q in range(len(kfold.whole))]
    return [[part[k] for part in parts] for k in np.argsort(order)]


class _KFold:
    """Values of all subproblems at ascending C."""

    def __init__(self, task: Task, plan: Plan, factors: FloatArray) -> None:
        self.task, self.plan, self.factors = task, plan, factors
        self.whole = list(plan.family.make_problems(task, True))
        self.codes: IntArray = plan.groups  # type: ignore[assignment]
        self.n_folds = int(self.codes.max()) + 1
        self.regular = is_regular(task.K)
        self.largest = float(np.abs(task.K.diagonal()).max())
        # Of each subproblem and fold, the samples it was trained on and its solutions.
        self.fits: list[list[tuple[IntArray, Fits]]] = [[] for _ in self.whole]
        shape = (factors.size, len(self.whole), task.C.shape[0])
        self.lower, self.upper = np.empty(shape), np.empty(shape)
        self.reasons = np.full(shape, NOT_CONVERGED, dtype=np.int8)

    def fit(self, part: slice) -> None:
        """Solve one subproblem without each group."""
        sub = self.whole[part.start]
        folds: Any = self.plan.folds(sub)
        rows = np.flatnonzero(sub.problem.C > 0.0)
        rows = rows[np.argsort(self.codes[rows], kind="stable")]
        K, own = self.task.K, rows
        if 2 * rows.size <= K.shape[0]:  # a pair of classes: one block for all groups
            K, own = K[np.ix_(rows, rows)], np.arange(rows.size)
        for fold in range(self.n_folds):
            kept = self.codes[rows] != fold
            y, C = sub.problem.y[rows[kept]], sub.problem.C[rows[kept]]
            if folds.C_factors is not None:
                C = C * np.where(
                    y > 0, folds.C_factors[fold, 1], folds.C_factors[fold, 0]
                )
            problem = replace(
                sub.problem,
                K=_take_square(K, own[kept]),
                y=y,
                C=C,
                first_equal=None,
                regular=self.regular,
            )
            Cs = np.minimum(self.factors[:, None] * C, LARGEST_PENALTY)
            self.fits[part.start].append((rows[kept], solve_path(problem, Cs)))

    def predict(self, part: slice) -> None:
        """Evaluate all solutions without one group at its samples."""
        fold = part.start
        fits = [own[fold] for own in self.fits]
        rows = np.flatnonzero(self.codes == fold)
        betas = np.zeros((self.factors.size, len(fits), self.codes.size))
        for q, (trained, fit) in enumerate(fits):
            betas[:, q, trained] = fit.betas
        products = products_with(self.task, betas, rows)
        ends = np.stack([fit.ends for _, fit in fits], axis=1)[:, :, :, None]
        lower, upper = products + ends[:, :, 0], products + ends[:, :, 1]
        converged = np.stack([fit.converged for _, fit in fits], axis=1)[:, :, None]
        # The largest kernel value may be that of a sample that is not trained on.
        sizes = np.abs(betas).sum(axis=2)
        rounding = np.stack([fit.rounding for _, fit in fits], axis=1)
        rounding = np.maximum(rounding, rounding_of_sum(self.largest, sizes))[
            :, :, None
        ]
        reasons = find_reasons(self.task, lower, upper, converged, rounding)
        self.lower[:, :, rows], self.upper[:, :, rows] = lower, upper
        self.reasons[:, :, rows] = reasons

    def parts(self, q: int) -> list[LeftOut]:
        """Return the values of a subproblem at each C."""
        rounding = np.max([fit.rounding for _, fit in self.fits[q]], axis=0)
        flagged = self._is_anti_learning(q)
        parts = []
        for k in range(self.factors.size):
            counts = {"refits": float(self.n_folds), "rounding": float(rounding[k])}
            steps = np.full(self.codes.size, REFIT, dtype=np.int8)
            found = LooIntervals(
                self.lower[k, q], self.upper[k, q], steps, self.reasons[k, q], counts
            )
            parts.append(LeftOut(found, anti_learning=bool(flagged[k])))
        return parts

    def _is_anti_learning(self, q: int) -> BoolArray:
        """Solve the full problem only if the labels are like those of a tiny C."""
        family, sub = self.plan.family, self.whole[q]
        flagged = np.zeros(self.factors.size, dtype=bool)
        if family.target == "classes":
            values = middle(self.lower[:, q], self.upper[:, q])
            folds = self.plan.folds(sub)
            flagged |= labels_follow_proportions(sub.problem, values, folds)
        for k in np.flatnonzero(flagged):
            scaled, _ = scale_bounds(sub.problem, self.factors[k])
            scaled = scaled.subset(np.flatnonzero(scaled.C > 0.0))
            alpha = family.solve(scaled).alpha
            flagged[k] = holds_lighter_class(scaled.y, scaled.C, alpha)
        return flagged


def _take_square(K: FloatArray, rows: IntArray) -> FloatArray:
    """Return ``K[np.ix_(rows, rows)]``, by blocks if the rows are a few runs."""
    cuts = np.flatnonzero(np.diff(rows) != 1) + 1
    if cuts.size > 3 or rows.size == 0:
        return K[np.ix_(rows, rows)]
    square = np.empty((rows.size, rows.size))
    runs = [
        (slice(a, b), slice(rows[a], rows[a] + b - a))
        for a, b in pairwise([0, *cuts.tolist(), rows.size])
    ]
    for to, i in runs:
        for too, j in runs:
            square[to, too] = K[i, j]
    return square
