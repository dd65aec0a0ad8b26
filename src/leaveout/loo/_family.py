# SPDX-License-Identifier: BSD-3-Clause
"""The models and, for each, its subproblems, solver and leave-one-out methods.

``FAMILIES`` makes an entry on first use: an SVC does not load the linear programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import FloatArray
from leaveout.engine._certificate import (
    KERNEL_RANGE,
    cap_unreachable_bounds,
    drop_unsafe_certificates,
    rounding_bound,
)
from leaveout.engine._problem import Folds, LooIntervals, Problem, Solution
from leaveout.engine._short import solve_and_leave_singles
from leaveout.engine._solve import solve_svc
from leaveout.exceptions import NotSeparableError
from leaveout.loo._task import (
    LARGEST_PENALTY,
    Subproblem,
    Task,
    rest_codes,
    svm_subproblems,
    svr_subproblems,
)
from leaveout.methods import METHODS, LooMethod, Method
from leaveout.methods._stopping import loo_refit

if TYPE_CHECKING:
    from leaveout.llw._solve import LlwProblem, LlwSolution


@dataclass(frozen=True)
class Family:
    """How a type of model is solved and left out."""

    name: str  # its class in this package
    methods: Mapping[str, Method]  # the first is "auto", one is "refit"
    # (task, whole): yields the subproblems, each on all samples if whole
    make_problems: Callable[[Task, bool], Iterator[Subproblem]]
    solve: Callable[..., Any]  # (problem) -> solution
    # (problem, solution, found, folds): removes certificates that rounding may have
    # invalidated
    certify: Callable[..., LooIntervals] | None = None
    # (problem, solution): lowers upper bounds that cannot be active when samples are
    # left out; returns both
    tighten: Callable[..., tuple[Any, Any]] | None = None
    # (problem, Cs, *, labels_only): solves a small problem and leaves out single
    # samples by walks, at all C in one call; None for what needs the general functions
    leave_small: Callable[..., list[tuple[Any, LooIntervals | None]]] | None = None
    # The Gram matrix is scaled if its largest K_ii is outside 2^+-kernel_range.
    kernel_range: int = KERNEL_RANGE
    needs_psd: bool = False  # an indefinite kernel requires refits, not certified
    pairs: bool = False  # pairs of classes vote, unless it is one-vs-rest
    warm_start: bool = False  # solve can start from the beta of another solution
    # C only scales the upper bounds of alpha: a list of C is one path, and a small C
    # may be anti-learning.
    bounds_alpha: bool = False
    hard_margin: bool = False  # C may be infinite
    target: str = "classes"  # or "numbers": the values of one subproblem

    @property
    def leaves_groups_out(self) -> bool:
        """Whether its methods leave out more than single samples."""
        return "groups" in self.methods["refit"].takes


def scale_bounds(
    problem: Any, factor: float, before: tuple[Any, Any] | None = None
) -> tuple[Any, FloatArray | None]:
    """Return the problem with bounds factor * C_i, and coefficients to start from.

    The coefficients of the optimum ``before``, scaled to these bounds, are feasible and
    nearly optimal, because bounded samples stay at their bounds, to the last bit. On
    the simulation of Wang & Yang (2022) this takes about 0.4 of the time of a start
    from zero.
    """
    if factor == 1.0:
        scaled, C = problem, problem.C
    else:
        C = np.minimum(problem.C * factor, LARGEST_PENALTY)
        scaled = replace(problem, C=C)
    if before is None:
        return scaled, None
    last, beta = before[0].C, before[1].beta
    return scaled, C * np.divide(beta, last, out=np.zeros_like(C), where=last > 0.0)


def _certify_svm(
    problem: Problem, solution: Solution, found: LooIntervals, folds: Folds | None
) -> LooIntervals:
    rounding = rounding_bound(problem, solution, folds)
    return drop_unsafe_certificates(problem, found, rounding)


def _tighten_svc(problem: Problem, solution: Solution) -> tuple[Problem, Solution]:
    return cap_unreachable_bounds(problem, solution), solution


def _lpm_subproblems(task: Task, whole: bool) -> Iterator[Subproblem]:
    """Yield one linear program for two classes, else each class against the rest."""
    codes, rows = task.target.codes, np.arange(task.C.shape[0])
    for code in rest_codes(task.target):
        y = np.where(codes == code, 1.0, -1.0)
        problem = Problem(task.K, y, task.C, bool(task.params.fit_intercept))
        yield Subproblem(problem, rows, codes, task.class_weight)


def _loom_subproblems(task: Task, whole: bool) -> Iterator[Subproblem]:
    """Yield the same with nu, the fraction of its own term that a sample lacks."""
    from leaveout.lp._loom import LoomProblem

    for sub in _lpm_subproblems(task, whole):
        problem = LoomProblem(**vars(sub.problem), nu=float(task.params.nu))
        yield replace(sub, problem=problem)


def _llw_subproblems(task: Task, whole: bool) -> Iterator[Subproblem]:
    """Yield the problem of all classes; quadratic loss is a hard margin with a ridge.

    Samples with weight 0 are absent.
    """
    from leaveout.llw._solve import LlwProblem

    codes = np.maximum(task.target.codes, 0)
    problem = LlwProblem(task.K, codes, task.C, len(task.target.classes))
    if task.params.loss == "quadratic" and np.isfinite(task.params.C):
        problem = problem.as_hard_margin()
    rows = np.arange(task.C.shape[0])
    yield Subproblem(problem, rows, task.target.codes, task.class_weight)


def solve_separable_llw(problem: LlwProblem) -> LlwSolution:
    """Solve the problem; raise NotSeparableError if there is no hard margin."""
    from leaveout.llw._solve import solve_llw

    solution = solve_llw(problem)
    if not solution.separable:
        raise NotSeparableError(
            "C=inf requires a hard margin, but the kernel does not separate the "
            "classes (or by less than 1e-5 of the spread of the samples). Use a finite "
            "C, or another kernel such as 'rbf' with a larger gamma."
        )
    return solution


def _for_single_samples(
    methods: Mapping[str, LooMethod], *takes: str
) -> dict[str, Method]:
    """Return methods that leave out single samples and give their values."""
    return {n: Method(f, frozenset({"values", *takes})) for n, f in methods.items()}


class _Families(Mapping[str, Family]):
    """Families by the key that ``Params.family`` holds."""

    def __init__(self, *makers: Callable[[], Family]) -> None:
        self._makers = {maker.__name__.strip("_"): cache(maker) for maker in makers}

    def __getitem__(self, key: str) -> Family:
        return self._makers[key]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def _svc() -> Family:
    return Family(
        "SVC",
        METHODS,
        svm_subproblems,
        solve_svc,
        certify=_certify_svm,
        tighten=_tighten_svc,
        leave_small=solve_and_leave_singles,
        needs_psd=True,
        pairs=True,
        warm_start=True,
        bounds_alpha=True,
    )


def _refit_svr(
    problem: Problem,
    solution: Solution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
) -> LooIntervals:
    """Solve a problem for each fold, exactly: ``eps`` of an SVC proves labels only."""
    return loo_refit(problem, solution, folds, n_threads=n_threads)


def _svr() -> Family:
    return Family(
        "SVR",
        {
            "walk": METHODS["walk"],
            "refit": Method(_refit_svr, frozenset({"groups", "values"})),
        },
        svr_subproblems,
        solve_svc,
        certify=_certify_svm,
        needs_psd=True,
        warm_start=True,
        bounds_alpha=True,
        target="numbers",
    )


def _lpm() -> Family:
    from leaveout.lp._lpm import solve_lpm
    from leaveout.lp._lpm_walk import LPM_METHODS

    return Family(
        "LPMClassifier",
        _for_single_samples(LPM_METHODS),
        _lpm_subproblems,
        solve_lpm,
        kernel_range=10,
        bounds_alpha=True,
    )


def _loom() -> Family:
    from leaveout.lp._loom import LOOM_METHODS, solve_loom

    return Family(
        "LOOMClassifier",
        _for_single_samples(LOOM_METHODS),
        _loom_subproblems,
        solve_loom,
        kernel_range=2000,  # its solver scales the kernel itself
    )


def _llw() -> Family:
    from leaveout.llw._walk import LLW_METHODS, drop_unsafe_llw

    return Family(
        "LLWClassifier",
        _for_single_samples(LLW_METHODS, "verbose"),
        _llw_subproblems,
        solve_separable_llw,
        certify=drop_unsafe_llw,
        hard_margin=True,
    )


FAMILIES = _Families(_svc, _svr, _lpm, _loom, _llw)
