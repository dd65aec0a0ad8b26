# SPDX-License-Identifier: BSD-3-Clause
"""From a task and a plan to the left-out values of a classifier.

Leave samples or groups out of every machine of a classifier.

Leave-one-out over a list of C: each optimum starts from the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._problem import (
    SETTLED_BY,
    UNTOUCHED,
    LooIntervals,
    Problem,
    Solution,
    middle,
)
from leaveout.engine._solve import solve_svc
from leaveout.engine._trust import intervals_at_new_rows
from leaveout.engine._walk import loo_groups
from leaveout.loo._multiclass import positive_class

if TYPE_CHECKING:
    from leaveout.loo._task import Task
    from leaveout.methods import LooMethod


@dataclass(frozen=True)
class Plan:
    """How samples are left out.

    Parameters
    ----------
    name : str
        Name of the method.
    method : LooMethod
        The method for single samples.
    n_threads : int
        Threads over samples or groups.
    labels_only : bool, default=False
        Stop when a label is known (single samples).
    groups : ndarray of shape (n,), optional
        Group of each sample, 0 to n_groups - 1.
    rebalance : bool, default=False
        Whether class weights follow the counts of the fold.
    """

    name: str
    method: LooMethod
    n_threads: int
    labels_only: bool = False
    groups: IntArray | None = None
    rebalance: bool = False

    def problem(self, task: Task, i: int, j: int) -> Problem:
        """Return the machine between classes i and j, on the rows this plan needs."""
        if self.groups is None and not self.rebalance:
            return task.problem(i, j)
        return task.whole_problem(i, j)

    def leave_out_all(self, task: Task) -> list[LooIntervals]:
        """Fit each machine of a task and leave everybody out of it."""
        machines = []
        for part, i, j in task.machines:
            problem = self.problem(part, i, j)
            machines.append(self.leave_out(part, i, j, problem, solve_svc(problem)))
        return machines

    def leave_out(
        self, task: Task, i: int, j: int, problem: Problem, solution: Solution
    ) -> LooIntervals:
        """Leave everybody out of the machine between classes i and j."""
        if self.groups is None and not self.rebalance:
            return self._leave_samples_out(task, task.rows(i, j), problem, solution)
        codes = self.groups
        if codes is None:
            codes = np.arange(problem.n_samples)
        factors = None
        if self.rebalance:
            positive = positive_class(i, j, len(task.classes))
            order = [j if positive == i else i, positive]
            factors = fold_factors(task, codes)[:, order]
        return loo_groups(
            problem,
            codes,
            solution=solution,
            method=self.name,
            factors=factors,
            n_threads=self.n_threads,
        )

    def _leave_samples_out(
        self, task: Task, rows: IntArray, problem: Problem, solution: Solution
    ) -> LooIntervals:
        """Leave every sample out of a machine on some of the rows.

        It does not know the samples of other classes, nor those with weight 0: they
        get its value as it is.
        """
        part = self.method(
            problem,
            solution=solution,
            labels_only=self.labels_only,
            n_threads=self.n_threads,
        )
        n = task.codes.shape[0]
        if rows.size == n:
            return part
        lower, upper, certified = intervals_at_new_rows(
            problem, solution, task.K[:, rows]
        )
        values = middle(lower, upper)
        settled_by = np.full(n, UNTOUCHED, dtype=np.int8)
        for whole, own in (
            (values, part.values),
            (lower, part.lower),
            (upper, part.upper),
            (certified, part.certified),
            (settled_by, part.settled_by),
        ):
            whole[rows] = own
        return LooIntervals(
            values, lower, upper, certified, settled_by, part.counts, part.anti_learning
        )


def fold_factors(task: Task, groups: IntArray) -> FloatArray:
    """Return what balanced class weights are multiplied by while a group is out.

    Parameters
    ----------
    task : Task
        With the weights n / (n_classes * count) of all rows.
    groups : ndarray of shape (n,)
        Group of each sample.

    Returns
    -------
    ndarray of shape (n_groups, n_classes)
        Weights by the counts without the group, over the weights of all rows; 1 for a
        class that is gone.
    """
    n_groups, n_classes = int(groups.max()) + 1, len(task.classes)
    known = task.codes >= 0
    counts = np.zeros((n_groups, n_classes))
    np.add.at(counts, (groups[known], task.codes[known]), 1.0)
    left = counts.sum(axis=0) - counts
    n_present = (left > 0).sum(axis=1)
    shares = n_present[:, None] * np.maximum(left, 1.0)
    weights = left.sum(axis=1)[:, None] / shares
    return np.where(left > 0, weights / task.class_weight, 1.0)


def all_certified(machines: list[LooIntervals]) -> BoolArray:
    """Whether every machine of a sample was verified, (n,)."""
    return np.all([machine.certified for machine in machines], axis=0)


def mostly_anti_learning(
    machines: list[LooIntervals], predictions: NDArray[Any], labels: NDArray[Any]
) -> bool:
    """Whether most machines follow the balance of the classes, and the labels show it.

    They do if they are no better than the most frequent label for everybody.
    """
    if 2 * sum(machine.anti_learning for machine in machines) <= len(machines):
        return False
    most_frequent = np.unique(labels, return_counts=True)[1].max()
    return bool(np.count_nonzero(predictions == labels) <= most_frequent)


def total_counts(machines: list[LooIntervals]) -> dict[str, float]:
    """Sum the counts of the machines."""
    totals: dict[str, float] = {}
    for machine in machines:
        for name, count in machine.counts.items():
            totals[name] = totals.get(name, 0.0) + count
    return totals


def costliest_step(machines: list[LooIntervals]) -> np.ndarray:
    """Name, for each sample, the costliest way it was settled over the machines."""
    codes = np.column_stack([m.settled_by for m in machines])
    cost = np.arange(1, len(SETTLED_BY) + 1)
    cost[UNTOUCHED] = 0
    worst = np.argmax(cost[codes], axis=1)
    return np.array(SETTLED_BY)[codes[np.arange(codes.shape[0]), worst]]


def solve_path(
    problem: Problem, factors: FloatArray
) -> Iterator[tuple[Problem, Solution]]:
    """Solve one machine for boxes factor * C_i, smallest factor first.

    The coefficients of one optimum, scaled to the next box, are feasible there, and
    nearly optimal: bounded points stay bounded. Measured on the simulation of Wang &
    Yang (2022), such a start takes about 0.4 of the time of a start from zero.

    Parameters
    ----------
    problem : Problem
        The machine at factor 1.
    factors : ndarray of shape (n_factors,)
        Ascending, > 0.

    Yields
    ------
    tuple of Problem and Solution
        One for each factor.
    """
    beta, before = None, 1.0
    for factor in factors:
        with np.errstate(over="ignore"):  # an infinite box is a hard margin
            C = problem.C * factor
            start = None if beta is None else beta * (factor / before)
        if start is not None and not np.isfinite(start).all():
            start = None
        scaled = Problem(problem.K, problem.y, C, problem.fit_intercept)
        solution = solve_svc(scaled, start=start)
        beta, before = solution.beta, factor
        yield scaled, solution
