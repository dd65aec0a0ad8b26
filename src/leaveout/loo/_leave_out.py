# SPDX-License-Identifier: BSD-3-Clause
"""From a task and a plan to the left-out values of a classifier or regressor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._certificate import is_regular
from leaveout.engine._problem import (
    INDEFINITE,
    SETTLED_BY,
    UNCERTIFIED,
    Folds,
    LooIntervals,
)
from leaveout.engine._solve import restore_svc, solve_svc
from leaveout.loo._family import FAMILIES, Family, scale_bounds
from leaveout.loo._kfold import fits_groups, leave_groups_out, threads_worthwhile
from leaveout.loo._multiclass import (
    decide_one_vs_one,
    decide_one_vs_rest,
    one_vs_one_margins,
    one_vs_rest_margins,
)
from leaveout.loo._outputs import (
    LeftOut,
    complete_outputs,
    spread_coefficients,
    stack_outputs,
)
from leaveout.loo._regression import LooRegressionResult
from leaveout.loo._result import (
    LooResult,
    holds_lighter_class,
    is_anti_learning,
    labels_follow_proportions,
)
from leaveout.loo._task import LARGEST_PENALTY, Subproblem, Task
from leaveout.methods._screening import PathMemory
from leaveout.run._parallel import limit_blas

STEPS, REASONS = np.array(SETTLED_BY), np.array(UNCERTIFIED)
UNCHANGED = np.ones(1)  # factors of C
# The subproblems at each C.
Columns = list[list[LeftOut]]


@dataclass(frozen=True)
class Plan:
    """How samples are left out.

    Parameters
    ----------
    family : Family
        Type of the model.
    method : str
        Name of one of its methods.
    options : dict
        Keyword arguments of this method only.
    source : callable (tasks, plan, factors) -> list of lists of lists of LeftOut
        None for :func:`solve_and_leave_out`; with ``preprocessing="fold"`` a function
        that fits the steps in each fold. It takes tasks that differ in the kernel, and
        factors of C; it returns one entry per task, factor and subproblem.
    groups : ndarray of shape (n,), optional
        Samples with equal numbers, from 0, are left out together.
    rebalance : bool, default=False
        Whether class weights are computed again in each fold.
    labels_only : bool, default=False
        Whether to stop when a label is known.
    n_threads : int, default=1
        Threads over folds.
    """

    family: Family
    method: str
    options: dict[str, Any] = field(default_factory=dict)
    source: Callable[..., list[Columns]] | None = None
    groups: IntArray | None = None
    rebalance: bool = False
    labels_only: bool = False
    n_threads: int = 1

    @property
    def whole(self) -> bool:
        """Whether subproblems have all samples, because folds may contain any."""
        return self.groups is not None or self.rebalance

    def folds(self, subproblem: Subproblem) -> Folds | None:
        """Return the folds of a subproblem; None for single samples."""
        if not self.whole:
            return None
        codes = self.groups
        if codes is None:
            codes = np.arange(subproblem.codes.shape[0])
        folds = Folds.of_groups(codes)
        if not self.rebalance:
            return folds
        factors = fold_factors(subproblem.codes, subproblem.class_weight, folds)
        return replace(folds, C_factors=factors[:, subproblem.signs])


@dataclass(frozen=True)
class LooRun:
    """The leave-one-out result, and coefficients for a refit on all samples.

    Parameters
    ----------
    result : LooResult or LooRegressionResult
        Predictions and certificates of all samples.
    betas : ndarray of shape (n_subproblems, n), optional
        Coefficients of SVMs, at unit scale; None if every fold was refitted.
    """

    result: Any
    betas: FloatArray | None = None


@dataclass(frozen=True)
class Fitted:
    """A task, its subproblems without absent samples, and their solutions."""

    task: Task
    subproblems: list[Subproblem]
    solutions: list[Any]


def leave_out(task: Task, plan: Plan) -> LooRun:
    """Solve every subproblem of a task, and leave out every sample or group.

    Parameters
    ----------
    task : Task
        The task, at unit scale.
    plan : Plan
        How samples are left out.

    Returns
    -------
    LooRun
        The result and the coefficients.
    """
    return _leave_out([task], plan, UNCHANGED)[0][0]


def leave_out_path(task: Task, plan: Plan, Cs: FloatArray) -> list[LooRun]:
    """Leave out samples at each C, smallest first, each from the last solution.

    ``task.params.C`` should be one of ``Cs``. Returns one run per C, in their order.
    """
    return _leave_out([task], plan, Cs / float(task.params.C))[0]


def leave_out_grid(tasks: list[Task], plan: Plan, Cs: FloatArray) -> list[list[LooRun]]:
    """Leave out samples for each task at each C.

    The tasks differ in kernel, gamma, degree and coef0 only, so that they share the
    steps that are fitted in each fold. Returns one path of runs per task.
    """
    return _leave_out(tasks, plan, Cs / float(tasks[0].params.C))


def _leave_out(
    tasks: list[Task], plan: Plan, factors: FloatArray
) -> list[list[LooRun]]:
    """Leave out samples for each task at bounds factor * C_i."""
    started = perf_counter()
    with limit_blas(1), _quiet_overflow():
        if plan.source is None:
            found = [solve_and_leave_out(task, plan, factors) for task in tasks]
        else:
            found = plan.source(tasks, plan, factors)
    spent = [[sum(p.seconds for p in parts) for parts in each] for each in found]
    n_runs = len(tasks) * factors.size
    shared = (perf_counter() - started - sum(map(sum, spent))) / n_runs
    return [
        _assemble_runs(task, plan, columns, [seconds + shared for seconds in own])
        for task, columns, own in zip(tasks, found, spent, strict=True)
    ]


def solve_and_leave_out(
    task: Task, plan: Plan, factors: FloatArray, *, whole: bool = False
) -> Columns:
    """Solve each subproblem at each C, smallest first, and leave samples out.

    The subproblems have all samples if ``whole``, or if the plan needs that.
    """
    if fits_groups(task, plan):
        return leave_groups_out(task, plan, factors)
    columns: Columns = [[] for _ in factors]
    regular = factors.size > 1 and plan.family.warm_start and is_regular(task.K)
    order = factors.argsort(kind="stable")
    for sub in plan.family.make_problems(task, plan.whole or whole):
        if regular:
            sub = replace(sub, problem=replace(sub.problem, regular=True))
        memory = {}
        if factors.size > 1 and "memory" in plan.family.methods[plan.method].takes:
            memory["memory"] = PathMemory()
        before = None
        small = _leave_small_out(plan, sub, factors[order])
        part = None
        for k, (solution, known) in zip(order, small, strict=True):
            if part is not None and part.found.same_if_larger:
                part = replace(part, seconds=0.0)
            elif known is not None:
                part = known
            else:
                problem, start = _scale_after(sub.problem, factors[k], before)
                own = replace(sub, problem=problem)
                part = leave_subproblem_out(task, plan, own, start, solution, **memory)
            if plan.family.warm_start:
                before = factors[k], part.solution
            columns[k].append(part)
    return columns


def _leave_small_out(
    plan: Plan, sub: Subproblem, factors: FloatArray
) -> list[tuple[Any, LeftOut | None]]:
    """Leave samples out at ascending C in one call where the family can.

    Returns, for each factor, the solution and all results, or None for what is missing.
    """
    problem, leave_small = sub.problem, plan.family.leave_small
    if leave_small is None or plan.method != "walk" or plan.whole:
        return [(None, None)] * factors.size
    started = perf_counter()
    Cs = np.minimum(factors[:, None] * problem.C, LARGEST_PENALTY)
    found = leave_small(problem, Cs, labels_only=plan.labels_only)
    seconds = (perf_counter() - started) / factors.size
    parts: list[tuple[Any, LeftOut | None]] = []
    for C, (solution, own) in zip(Cs, found, strict=True):
        part = None
        if own is not None:
            held = holds_lighter_class(problem.y, C, solution.alpha)
            follows = held and labels_follow_proportions(problem, own.values)
            part = LeftOut(own, sub.rows, solution, bool(follows), seconds=seconds)
        parts.append((solution, part))
    return parts


def _scale_after(
    problem: Any, factor: float, before: tuple[float, Any] | None
) -> tuple[Any, FloatArray | None]:
    """Return the problem at bounds factor * C_i, and a start from another factor."""
    if before is None:
        return scale_bounds(problem, factor)
    last, _ = scale_bounds(problem, before[0])
    return scale_bounds(problem, factor, (last, before[1]))


def solve_task(task: Task) -> tuple[list[Subproblem], list[Any]]:
    """Return the subproblems of a task and their solutions."""
    family = FAMILIES[task.params.family]
    subproblems = list(family.make_problems(task, False))
    return subproblems, [family.solve(sub.problem) for sub in subproblems]


def restore(task: Task, betas: FloatArray | None) -> Fitted:
    """Return the solutions of a task of an SVC or SVR from known coefficients.

    ``betas`` are :attr:`LooRun.betas` of the same task. Subproblems for which they are
    not optimal are solved; all are if None.
    """
    tol, max_iter = float(task.params.tol), int(task.params.max_iter)
    make_problems = FAMILIES[task.params.family].make_problems
    subproblems, solutions = list(make_problems(task, False)), []
    for k, sub in enumerate(subproblems):
        if betas is None:
            found = solve_svc(sub.problem, tol=tol, max_iter=max_iter)
        else:
            beta = betas[k, sub.rows]
            found = restore_svc(sub.problem, beta, tol=tol, max_iter=max_iter)
        solutions.append(found)
    return Fitted(task, subproblems, solutions)


def leave_subproblem_out(
    task: Task,
    plan: Plan,
    sub: Subproblem,
    start: FloatArray | None = None,
    solution: Any = None,
    **memory: Any,
) -> LeftOut:
    """Leave samples out of a subproblem, which is solved from ``start`` if needed."""
    started = perf_counter()
    family, folds, problem = plan.family, plan.folds(sub), sub.problem
    if solution is None:
        starts = {"start": start} if family.warm_start else {}
        solution = family.solve(problem, **starts)
    tight = solution
    if family.tighten is not None:
        problem, tight = family.tighten(problem, tight)
    found = family.methods[plan.method].function(
        problem,
        tight,
        folds,
        labels_only=plan.labels_only,
        n_threads=threads_worthwhile(plan, sub.rows.size),
        **plan.options,
        **memory,
    )
    if family.certify is not None:
        found = family.certify(problem, tight, found, folds)
    if folds is not None:
        inside = LooIntervals.empty(task.C.shape[0])
        inside.write(folds.members, found)
        found = replace(inside, counts=found.counts)
    anti_learning = has_anti_learning(family, sub, solution, found, folds)
    seconds = perf_counter() - started
    return LeftOut(found, sub.rows, tight, anti_learning, seconds=seconds)


def has_anti_learning(
    family: Family,
    sub: Subproblem,
    solution: Any,
    found: LooIntervals,
    folds: Folds | None,
) -> bool:
    """Return whether the labels of a subproblem follow the class proportions."""
    if family.target != "classes" or not family.bounds_alpha:
        return False
    return is_anti_learning(sub.problem, solution, found.values, folds)


def _quiet_overflow() -> np.errstate:
    """Ignore overflow: certificates test for finite numbers."""
    return np.errstate(over="ignore", invalid="ignore")


def _assemble_runs(
    task: Task, plan: Plan, columns: list[list[LeftOut]], seconds: list[float]
) -> list[LooRun]:
    """Combine the subproblems of each C into predictions and certificates."""
    betas: list[FloatArray | None] = [None] * len(columns)
    if plan.family.warm_start and columns[0][0].solution is not None:
        betas = [spread_coefficients(task, parts) for parts in columns]
    if all(part.rows is None or part.rows.size == task.C.size for part in columns[0]):
        outputs = [stack_outputs([part.found for part in parts]) for parts in columns]
    else:
        started = perf_counter()
        outputs = complete_outputs(task, columns, np.array(betas))
        shared = (perf_counter() - started) / len(columns)
        seconds = [spent + shared for spent in seconds]
    return [
        LooRun(_make_result(task, plan, parts, own, spent), kept)
        for parts, own, spent, kept in zip(
            columns, outputs, seconds, betas, strict=True
        )
    ]


def _make_result(
    task: Task, plan: Plan, parts: list[LeftOut], outputs: LooIntervals, seconds: float
) -> LooResult | LooRegressionResult:
    """Combine all subproblems into a result."""
    values, lower, upper = outputs.values, outputs.lower, outputs.upper
    reasons = outputs.uncertified_by
    if task.gram is not None and task.gram.definite is False:
        reasons = np.full_like(reasons, INDEFINITE)
    common = {
        "y": task.target.labels,
        "settled_by": STEPS[outputs.settled_by],
        "uncertified_by": REASONS[reasons],
        "method": plan.method,
        "counts": {**_total_counts(parts), "seconds": seconds},
        "groups": plan.groups,
        "preprocessing": parts[0].preprocessing,
    }
    if plan.family.target == "numbers":
        predictions, low, high = (
            task.target.unscale(each[:, 0]) for each in (values, lower, upper)
        )
        return LooRegressionResult(predictions, lower=low, upper=high, **common)
    decided = decide(task, values.copy(), lower, upper, plan.groups)
    anti_learning = _mostly_anti_learning(task, parts, decided["predictions"])
    return LooResult(
        **decided, **common, binary_values=values, anti_learning=anti_learning
    )


def votes_by_pairs(task: Task) -> bool:
    """Return whether pairs of classes vote, rather than the largest value deciding."""
    return FAMILIES[task.params.family].pairs and not task.params.one_vs_rest


def decide(
    task: Task,
    values: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    groups: IntArray | None,
) -> dict[str, Any]:
    """Return labels, margins and ambiguous samples from the values of all outputs."""
    if votes_by_pairs(task):
        return decide_one_vs_one(task, values, lower, upper)
    return decide_one_vs_rest(task, values, lower, upper, groups)


def margins_of(task: Task, values: FloatArray) -> FloatArray:
    """Return the margin of each sample from the values of all outputs, (n,)."""
    margins = one_vs_one_margins if votes_by_pairs(task) else one_vs_rest_margins
    return margins(values, task.target.codes)


def fold_factors(codes: IntArray, class_weight: FloatArray, folds: Folds) -> FloatArray:
    """Return the factors of balanced class weights while a fold is left out.

    They are the balanced weights without the fold, divided by ``class_weight``, those
    of all samples; 1 for a class without samples. One row per fold, one column per
    class.
    """
    counts = np.zeros((len(folds), class_weight.size))
    fold = np.repeat(np.arange(len(folds)), folds.sizes)
    own = codes[folds.members]
    np.add.at(counts, (fold[own >= 0], own[own >= 0]), 1.0)
    left = np.bincount(codes[codes >= 0], minlength=class_weight.size) - counts
    n_present = (left > 0).sum(axis=1)
    shares = n_present[:, None] * np.maximum(left, 1.0)
    weights = left.sum(axis=1)[:, None] / shares
    return np.where(left > 0, weights / class_weight, 1.0)


def _mostly_anti_learning(
    task: Task, parts: list[LeftOut], predictions: np.ndarray
) -> bool:
    """Return whether the subproblems, and thus the labels, follow class proportions.

    This requires that most subproblems are anti-learning, and that the labels are not
    better than always predicting the most frequent class.
    """
    if 2 * sum(part.anti_learning for part in parts) <= len(parts):
        return False
    labels = task.target.labels
    most_frequent = np.unique(labels, return_counts=True)[1].max()
    return bool(np.count_nonzero(predictions == labels) <= most_frequent)


def _total_counts(parts: list[LeftOut]) -> dict[str, float]:
    """Sum the counts of the subproblems."""
    totals: dict[str, float] = {}
    for part in parts:
        for name, count in part.found.counts.items():
            totals[name] = totals.get(name, 0.0) + count
    return totals
