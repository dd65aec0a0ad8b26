# SPDX-License-Identifier: BSD-3-Clause
"""From a task and a plan to the left-out values of a classifier.

``FAMILIES`` says, per classifier, which subproblems it has, how each is solved and left
out, and how their values become labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._certificate import (
    KERNEL_RANGE,
    cap_unreachable_bounds,
    drop_unsafe_certificates,
    intervals_at_new_rows,
    rounding_bound,
)
from leaveout.engine._problem import (
    INDEFINITE,
    SETTLED_BY,
    UNCERTIFIED,
    UNTOUCHED,
    Folds,
    LooIntervals,
    Problem,
    Solution,
)
from leaveout.engine._solve import restore_svc, solve_svc
from leaveout.exceptions import NotSeparableError
from leaveout.llw._solve import LlwProblem, LlwSolution, solve_llw
from leaveout.llw._walk import LLW_METHODS, bring_to_scale, drop_unsafe_llw
from leaveout.loo._multiclass import (
    decide_one_vs_one,
    decide_one_vs_rest,
    one_vs_one_margins,
    one_vs_rest_margins,
)
from leaveout.loo._result import LooResult, is_anti_learning
from leaveout.loo._task import (
    LARGEST_PENALTY,
    Subproblem,
    Task,
    rest_codes,
    svm_subproblems,
)
from leaveout.lp._loom import LOOM_METHODS, LoomProblem, solve_loom
from leaveout.lp._lpm import solve_lpm
from leaveout.lp._lpm_walk import LPM_METHODS
from leaveout.methods import METHODS, LooMethod, Method
from leaveout.methods._consolidated import PathMemory
from leaveout.run._parallel import limit_blas

Source = Callable[["Task", "Plan"], "Sourced"]
Sourced = tuple[list[Subproblem], list[Any], list[LooIntervals]]


@dataclass(frozen=True)
class Family:
    """What a kind of classifier does with a task.

    Parameters
    ----------
    methods : mapping of str to Method
        Ways to leave samples out; the first is "auto".
    make_problems : callable (task, whole) -> list of Subproblem
        Subproblems, each on all samples if ``whole``.
    solve : callable (problem) -> solution
        Solver of one of them.
    certify : callable (problem, solution, found, folds) -> LooIntervals, optional
        Withdraws certificates that rounding may have spoilt.
    tighten : callable (problem, solution) -> (problem, solution), optional
        Lowers upper bounds that no left-out solution reaches.
    kernel_range : int, default=20
        The Gram matrix is scaled if its largest K_ii is outside 2^±kernel_range.
    needs_psd : bool, default=False
        Whether a kernel that is not positive semi-definite is refitted, not certified.
    """

    methods: Mapping[str, Method]
    make_problems: Callable[[Task, bool], list[Subproblem]]
    solve: Callable[[Any], Any]
    certify: Callable[..., LooIntervals] | None = None
    tighten: Callable[..., tuple[Any, Any]] | None = None
    kernel_range: int = KERNEL_RANGE
    needs_psd: bool = False


@dataclass(frozen=True)
class Plan:
    """How samples are left out.

    Parameters
    ----------
    family : Family
        What kind of classifier it is.
    method : str
        Name of the method.
    function : LooMethod
        The method.
    options : dict
        Keywords of this method alone.
    source : callable (task, plan) -> subproblems, solutions, intervals
        None for :func:`solve_and_leave_out`; for ``preprocessing="refit"`` one that
        fits the steps in every fold.
    groups : ndarray of shape (n,), optional
        Samples with equal numbers, from 0, are left out together.
    rebalance : bool, default=False
        Whether class weights follow the counts of the fold.
    labels_only : bool, default=False
        Stop when a label is known.
    n_threads : int, default=1
        Threads over folds.
    """

    family: Family
    method: str
    function: LooMethod
    options: dict[str, Any] = field(default_factory=dict)
    source: Source | None = None
    groups: IntArray | None = None
    rebalance: bool = False
    labels_only: bool = False
    n_threads: int = 1

    @property
    def whole(self) -> bool:
        """Whether subproblems have all samples, because folds may hold any of them."""
        return self.groups is not None or self.rebalance

    def folds(self, subproblem: Subproblem) -> Folds | None:
        """Return what is left out of a subproblem together; None for single samples."""
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
class Fitted:
    """A task, its solved subproblems, and the leave-one-out result.

    Parameters
    ----------
    task : Task
        What was fitted.
    subproblems : list of Subproblem
        Its subproblems; empty if every fold made its own.
    solutions : list
        Their solutions.
    result : LooResult
        Labels, values and certificates of all samples; None if none was left out.
    """

    task: Task
    subproblems: list[Subproblem]
    solutions: list[Any]
    result: Any = None

    @property
    def betas(self) -> FloatArray | None:
        """Coefficients of the SVMs over all samples, (n_subproblems, n); else None."""
        if self.task.params.family != "svc" or not self.solutions:
            return None
        betas = np.zeros((len(self.solutions), self.task.C.shape[0]))
        for beta, sub, solution in zip(
            betas, self.subproblems, self.solutions, strict=True
        ):
            beta[sub.rows] = solution.beta
        return betas


def leave_out(task: Task, plan: Plan) -> Fitted:
    """Solve every subproblem of a task and leave every sample or group out of it.

    Parameters
    ----------
    task : Task
        The task, at unit scale.
    plan : Plan
        How samples are left out.

    Returns
    -------
    Fitted
        The solutions and the result.
    """
    started = perf_counter()
    with limit_blas(1):
        sourced = (plan.source or solve_and_leave_out)(task, plan)
        result = assemble_result(task, plan, *sourced)
    seconds = {"seconds": perf_counter() - started}
    result = replace(result, counts={**result.counts, **seconds})
    return Fitted(task, sourced[0], sourced[1], result)


def solve_and_leave_out(task: Task, plan: Plan) -> Sourced:
    """Solve each subproblem once, and leave samples out of its solution."""
    subproblems = plan.family.make_problems(task, plan.whole)
    solutions = [plan.family.solve(sub.problem) for sub in subproblems]
    found = [
        leave_subproblem_out(task, plan, sub, solution)
        for sub, solution in zip(subproblems, solutions, strict=True)
    ]
    return subproblems, solutions, found


def solve_task(task: Task) -> tuple[list[Subproblem], list[Any]]:
    """Return the subproblems of a task and their solutions."""
    family = FAMILIES[task.params.family]
    subproblems = family.make_problems(task, False)
    return subproblems, [family.solve(sub.problem) for sub in subproblems]


def restore(
    task: Task, betas: FloatArray | None, result: LooResult | None = None
) -> Fitted:
    """Return the solutions of an SVC from coefficients that are known.

    Parameters
    ----------
    task : Task
        Of a :class:`leaveout.SVC`; solved to its own ``tol``.
    betas : ndarray of shape (n_subproblems, n)
        :attr:`Fitted.betas` of the same task, at unit scale. A subproblem for which
        they are not optimal is solved; with None, all are.
    result : LooResult, optional
        The leave-one-out result that belongs to it.

    Returns
    -------
    Fitted
        The subproblems without absent samples, and their solutions.
    """
    how: dict[str, Any] = {
        "tol": float(task.params.tol),
        "max_iter": int(task.params.max_iter),
    }
    subproblems = svm_subproblems(task, whole=False)
    solutions = [
        solve_svc(sub.problem, **how)
        if betas is None
        else restore_svc(sub.problem, betas[k, sub.rows], **how)
        for k, sub in enumerate(subproblems)
    ]
    return Fitted(task, subproblems, solutions, result)


def leave_subproblem_out(
    task: Task, plan: Plan, sub: Subproblem, solution: Any, **memory: Any
) -> LooIntervals:
    """Leave samples out of one subproblem; the values are in the order of the samples.

    A subproblem on some of the samples has its value as it is for the others.
    """
    folds = plan.folds(sub)
    problem, tight = sub.problem, solution
    if plan.family.tighten is not None:
        problem, tight = plan.family.tighten(problem, tight)
    found = plan.function(
        problem,
        tight,
        folds,
        labels_only=plan.labels_only,
        n_threads=plan.n_threads,
        **plan.options,
        **memory,
    )
    if plan.family.certify is not None:
        found = plan.family.certify(problem, tight, found, folds)
    n = task.C.shape[0]
    if folds is not None:
        inside = LooIntervals.empty(n)
        inside.write(folds.members, found)
        return replace(inside, counts=found.counts)
    if sub.rows.size == n:
        return found
    all_rows = intervals_at_new_rows(problem, tight, task.K[:, sub.rows])
    all_rows.write(sub.rows, found)
    return replace(all_rows, counts=found.counts)


def leave_out_path(task: Task, plan: Plan, Cs: FloatArray) -> list[Fitted]:
    """Leave samples out at each of some C, the optimum at one starting the next.

    ``task`` is that at C = ``task.params.C``, best one of ``Cs``; what is returned is
    in the order of ``Cs``, its bounds are in the subproblems.
    """
    assert plan.source is None, "a path needs one Gram matrix for all folds"
    order = np.argsort(Cs, kind="stable")
    factors = Cs[order] / float(task.params.C)
    columns: list[tuple[list[Any], list[LooIntervals]]] = [([], []) for _ in Cs]
    seconds = np.zeros(Cs.size)
    with limit_blas(1):
        subproblems = plan.family.make_problems(task, plan.whole)
        for sub in subproblems:
            started = perf_counter()
            memory = {}
            if "memory" in plan.family.methods[plan.method].takes:
                memory["memory"] = PathMemory()
            for k, (problem, solution) in zip(
                order, solve_path(plan.family, sub.problem, factors), strict=True
            ):
                own = replace(sub, problem=problem)
                found = leave_subproblem_out(task, plan, own, solution, **memory)
                columns[k][0].append((own, solution))
                columns[k][1].append(found)
                seconds[k] += perf_counter() - started
                started = perf_counter()
    fitted = []
    for k, (solved, parts) in enumerate(columns):
        subs, solutions = map(list, zip(*solved, strict=True))
        result = assemble_result(task, plan, subs, solutions, parts)
        counts = {**result.counts, "seconds": float(seconds[k])}
        fitted.append(Fitted(task, subs, solutions, replace(result, counts=counts)))
    return fitted


def solve_path(
    family: Family, problem: Any, factors: FloatArray
) -> Iterator[tuple[Any, Any]]:
    """Solve a subproblem with upper bounds factor * C_i, smallest factor first.

    The coefficients of one optimum, scaled to the next bounds, are feasible there, and
    nearly optimal: bounded points stay bounded. Measured on the simulation of Wang &
    Yang (2022), such a start takes about 0.4 of the time of a start from zero.
    """
    beta, before = None, 1.0
    for factor in factors:
        with np.errstate(over="ignore"):
            C = np.minimum(problem.C * factor, LARGEST_PENALTY)
            start = None if beta is None else beta * (factor / before)
        scaled = replace(problem, C=C)
        if family.solve is not solve_svc:
            yield scaled, family.solve(scaled)
            continue
        if start is not None and not np.isfinite(start).all():
            start = None
        solution = solve_svc(scaled, start=start)
        beta, before = solution.beta, factor
        yield scaled, solution


def assemble_result(
    task: Task,
    plan: Plan,
    subproblems: list[Subproblem],
    solutions: list[Any],
    found: list[LooIntervals],
) -> LooResult:
    """Put the intervals of all subproblems together to labels and certificates."""
    values, lower, upper = (
        np.column_stack([getattr(part, name) for part in found])
        for name in ("values", "lower", "upper")
    )
    machine_values = values.copy()
    decided = decide(task, values, lower, upper, plan.groups)
    reasons = np.max([part.uncertified_by for part in found], axis=0)
    if task.gram is not None and task.gram.definite is False:
        reasons = np.full_like(reasons, INDEFINITE)
    anti_learning = False
    if solutions and isinstance(subproblems[0].problem, Problem):
        anti_learning = _mostly_anti_learning(
            plan, subproblems, solutions, found, decided["predictions"], task
        )
    return LooResult(
        **decided,
        y=task.target.labels,
        settled_by=_costliest_step(found),
        uncertified_by=np.array(UNCERTIFIED)[reasons],
        method=plan.method,
        counts=_total_counts(found),
        groups=plan.groups,
        machine_values=machine_values,
        anti_learning=anti_learning,
    )


def votes_by_pairs(task: Task) -> bool:
    """Whether pairs of classes vote for a label, rather than the largest value."""
    return task.params.family == "svc" and not task.params.one_vs_rest


def decide(
    task: Task,
    values: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    groups: IntArray | None,
) -> dict[str, Any]:
    """Return labels, margins and what is ambiguous from the values of all outputs."""
    if votes_by_pairs(task):
        return decide_one_vs_one(task, values, lower, upper)
    return decide_one_vs_rest(task, values, lower, upper, groups)


def margins_of(task: Task, values: FloatArray) -> FloatArray:
    """Return the margin of each sample by the values of all outputs, (n,)."""
    margins = one_vs_one_margins if votes_by_pairs(task) else one_vs_rest_margins
    return margins(values, task.target.codes)


def fold_factors(codes: IntArray, class_weight: FloatArray, folds: Folds) -> FloatArray:
    """Return what balanced class weights are multiplied by while a fold is out.

    Weights by the counts without the fold, over ``class_weight``, those of all samples;
    1 for a class that is gone. One row per fold, one column per class.
    """
    counts = np.zeros((len(folds), class_weight.size))
    fold = np.repeat(np.arange(len(folds)), folds.sizes)
    own = codes[folds.members]
    np.add.at(counts, (fold[own >= 0], own[own >= 0]), 1.0)
    left = counts.sum(axis=0) - counts
    n_present = (left > 0).sum(axis=1)
    shares = n_present[:, None] * np.maximum(left, 1.0)
    weights = left.sum(axis=1)[:, None] / shares
    return np.where(left > 0, weights / class_weight, 1.0)


def _mostly_anti_learning(
    plan: Plan,
    subproblems: list[Subproblem],
    solutions: list[Any],
    found: list[LooIntervals],
    predictions: np.ndarray,
    task: Task,
) -> bool:
    """Whether most subproblems follow the class proportions, and the labels show it.

    They do if they are not better than the most frequent label for every sample.
    """
    flags = []
    for sub, solution, part in zip(subproblems, solutions, found, strict=True):
        folds = plan.folds(sub)
        factors = None if folds is None else folds.C_factors
        groups = plan.groups
        flags.append(
            hasattr(solution, "alpha")
            and is_anti_learning(
                sub.problem,
                solution,
                part.values[sub.rows],
                groups=groups,
                factors=factors,
            )
        )
    if 2 * sum(flags) <= len(flags):
        return False
    labels = task.target.labels
    most_frequent = np.unique(labels, return_counts=True)[1].max()
    return bool(np.count_nonzero(predictions == labels) <= most_frequent)


def _total_counts(found: list[LooIntervals]) -> dict[str, float]:
    """Sum the counts of the subproblems."""
    totals: dict[str, float] = {}
    for part in found:
        for name, count in part.counts.items():
            totals[name] = totals.get(name, 0.0) + count
    return totals


def _costliest_step(found: list[LooIntervals]) -> np.ndarray:
    """Name, for each sample, the costliest way it was settled over the subproblems."""
    codes = np.column_stack([part.settled_by for part in found])
    cost = np.arange(1, len(SETTLED_BY) + 1)
    cost[UNTOUCHED] = 0
    worst = np.argmax(cost[codes], axis=1)
    return np.array(SETTLED_BY)[codes[np.arange(codes.shape[0]), worst]]


def _certify_svc(
    problem: Problem, solution: Solution, found: LooIntervals, folds: Folds | None
) -> LooIntervals:
    rounding = rounding_bound(problem, solution, folds)
    return drop_unsafe_certificates(found, rounding, problem.fit_intercept)


def _tighten_svc(problem: Problem, solution: Solution) -> tuple[Problem, Solution]:
    return cap_unreachable_bounds(problem, solution), solution


def _program_subproblems(task: Task, whole: bool) -> list[Subproblem]:
    """Return one linear program for two classes, else each class against the rest."""
    codes, rows = task.target.codes, np.arange(task.C.shape[0])
    fit_intercept = bool(task.params.fit_intercept)
    subproblems = []
    for code in rest_codes(task.target):
        y = np.where(codes == code, 1.0, -1.0)
        problem = Problem(task.K, y, task.C, fit_intercept)
        if task.params.family == "loom":
            problem = LoomProblem(
                task.K, y, task.C, fit_intercept, nu=float(task.params.nu)
            )
        subproblems.append(Subproblem(problem, rows, codes, task.class_weight))
    return subproblems


def _llw_subproblems(task: Task, whole: bool) -> list[Subproblem]:
    """Return the problem of all classes; quadratic loss is a hard margin with a ridge.

    Samples without weight are absent, whatever their code.
    """
    codes = np.maximum(task.target.codes, 0)
    problem = LlwProblem(task.K, codes, task.C, len(task.target.classes))
    if task.params.loss == "quadratic" and np.isfinite(task.params.C):
        problem = problem.as_hard_margin()
    rows = np.arange(task.C.shape[0])
    return [Subproblem(problem, rows, task.target.codes, task.class_weight)]


def solve_separable_llw(problem: LlwProblem) -> LlwSolution:
    """Solve; NotSeparableError if there is no hard margin."""
    solution = solve_llw(problem)
    if not solution.separable:
        raise NotSeparableError(
            "C=inf asks for a hard margin, and the kernel does not separate the "
            "classes (or by less than 1e-5 of the spread of the samples). Use a finite "
            "C, or another kernel such as 'rbf' with a larger gamma."
        )
    return solution


def _for_single_samples(methods: Mapping[str, LooMethod]) -> dict[str, Method]:
    """Return methods that leave out single samples and give their values."""
    return {name: Method(f, frozenset({"values"})) for name, f in methods.items()}


FAMILIES: dict[str, Family] = {
    "svc": Family(
        METHODS,
        svm_subproblems,
        solve_svc,
        certify=_certify_svc,
        tighten=_tighten_svc,
        needs_psd=True,
    ),
    "lpm": Family(
        _for_single_samples(LPM_METHODS),
        _program_subproblems,
        solve_lpm,
        kernel_range=10,
    ),
    # Its solver brings the kernel to its own scale.
    "loom": Family(
        _for_single_samples(LOOM_METHODS),
        _program_subproblems,
        solve_loom,
        kernel_range=2000,
    ),
    "llw": Family(
        _for_single_samples(LLW_METHODS),
        _llw_subproblems,
        solve_separable_llw,
        certify=drop_unsafe_llw,
        tighten=bring_to_scale,
    ),
}
