# SPDX-License-Identifier: BSD-3-Clause
"""loo_bounds and llw_bounds: bounds and estimates next to the exact error.

methods/_bounds and llw/_bounds compute them and define what each kind guarantees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout.adapt._checks import check_flag
from leaveout.adapt._prepare import prepare
from leaveout.engine._certificate import rounding_bound
from leaveout.engine._problem import Problem, Solution
from leaveout.llw._bounds import LlwGeometry, bound_llw, llw_geometry
from leaveout.llw._solve import solve_llw
from leaveout.loo._leave_out import Plan, leave_out, solve_task
from leaveout.loo._result import LooResult
from leaveout.loo._summary import Summary, as_percent
from leaveout.loo._task import Task
from leaveout.lp._lpm import LpmSolution
from leaveout.methods._bounds import (
    BOUND,
    DOUBT,
    ESTIMATE,
    EXACT,
    IN_DOUBT,
    OTHER_LOSS,
    SVM_BOUNDS,
    WEAK,
    Bound,
    share_of,
    timed,
)
from leaveout.run._parallel import limit_blas

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class LooBounds(Summary):
    """Bounds and estimates of the leave-one-out error of one classifier.

    Parameters
    ----------
    rows : tuple of Bound
        One per bound or estimate; the exact error is last, if it was computed.
    n_samples : int
        Number of samples.
    fit_intercept : bool
        Whether the model has an intercept. With one, most bounds are only estimates.
    geometry : LlwGeometry or None
        From :func:`llw_bounds`: margins, ball and norms behind its rows. None if no
        hard margin exists, and from :func:`loo_bounds`.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two classes
    >>> bounds = lo.loo_bounds(lo.SVC(C=1, gamma=0.1), X, y)
    >>> bounds
    <LooBounds: exact leave-one-out error 4.0 % of 100 samples>
    >>> bounds["span"].kind, bounds["span"].value
    ('estimate', 0.04)
    """

    __module__ = "leaveout"

    rows: tuple[Bound, ...]
    n_samples: int
    fit_intercept: bool
    geometry: LlwGeometry | None = None

    def __getitem__(self, name: str) -> Bound:
        """Return the row of that name."""
        for row in self.rows:
            if row.name == name:
                return row
        known = ", ".join(repr(row.name) for row in self.rows)
        raise KeyError(f"{name!r} is not in the table. It has: {known}.")

    def to_frame(self) -> pd.DataFrame:
        """Return one row per bound, indexed by its name (needs pandas)."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.rows]).set_index("name")

    _align = "<"

    def _verdict(self) -> str:
        last = self.rows[-1]
        if last.kind == EXACT:
            error = as_percent(last.value)
            return f"exact leave-one-out error {error} of {self.n_samples} samples"
        return f"{len(self.rows)} bounds and estimates for {self.n_samples} samples"

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("", "kind", "error in %", "")]
        for row in self.rows:
            ends = row.lower < row.value and (row.lower > 0.0 or row.kind == EXACT)
            low = f"{100 * row.lower:.1f} to " if ends else ""
            rows.append((row.name, row.kind, f"{low}{100 * row.value:.1f}", row.note))
        return rows

    def _head(self) -> str:
        intercept = "with" if self.fit_intercept else "without"
        return f"Leave-one-out error of {self.n_samples} samples, {intercept} intercept"


def tabulate_bounds(
    problem: Problem, solution: Solution, result: LooResult | None = None
) -> LooBounds:
    """Compute all bounds and estimates of one binary SVM without absent samples.

    With its leave-one-out ``result`` the exact error comes last.
    """
    rows = [timed(function, problem, solution) for function in SVM_BOUNDS]
    if rounding_bound(problem, solution) > DOUBT:
        rows = [replace(row, kind=ESTIMATE, note=IN_DOUBT) for row in rows]
    if result is not None:
        rows.append(exact_row(result, slice(None), COSTS["svc"]))
    return LooBounds(tuple(rows), problem.n_samples, problem.fit_intercept)


def tabulate_lpm_bounds(problem: Problem, solution: LpmSolution) -> LooBounds:
    """Do the same for an LPM, for which only the support-vector count is known.

    Without a sample that has neither a coefficient nor a row dual, the full optimum is
    still optimal, and there the sample's margin is at least 1.
    """
    present = problem.C > 0.0
    active = (solution.coef != 0.0) | (solution.row_dual != 0.0)
    count = Bound(
        "support-vector count", WEAK, share_of(active[present]), cost="0",
        note="other optima may be ambiguous",
    )  # fmt: skip
    return LooBounds((count,), int(present.sum()), problem.fit_intercept)


TABULATE = {"svc": tabulate_bounds, "lpm": tabulate_lpm_bounds}
COSTS = {"svc": "a few pivots per SV", "lpm": "pivots", "llw": "a walk per SV"}


def exact_row(result: LooResult, rows: Any, cost: str) -> Bound:
    """Return the exact error of some samples, from wrong to wrong or ambiguous.

    Samples that are not certified may be right or wrong.
    """
    unknown = ~result.certified[rows]
    ambiguous = result.ambiguous[rows] & ~unknown
    wrong = result.wrong[rows] & ~ambiguous & ~unknown
    counts = ambiguous.sum(), unknown.sum()
    said = zip(counts, ("ambiguous", "not certified"), strict=True)
    note = ", ".join(f"{count} {word}" for count, word in said if count)
    most = share_of(wrong | ambiguous | unknown)
    seconds = float(result.counts["seconds"])
    return Bound("exact", EXACT, most, share_of(wrong), cost, note, seconds)


def _with_exact_row(bounds: LooBounds, task: Task, plan: Plan) -> LooBounds:
    """Leave every sample out, and add the exact error."""
    cost = COSTS[task.params.family]
    row = exact_row(leave_out(task, plan).result, task.C > 0.0, cost)
    return replace(bounds, rows=(*bounds.rows, row))


def loo_bounds(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    exact: bool = True,
    n_jobs: int | None = None,
) -> LooBounds:
    """Compare the known bounds and estimates of the leave-one-out error.

    The kind of each row says whether it is a bound or an estimate for this classifier.
    With an intercept, which scikit-learn's SVC always has, most are estimates: only the
    support-vector count and the certificate are bounds. The exact error comes last.

    Parameters
    ----------
    estimator : SVC, LPMClassifier, or Pipeline that ends in one
        scikit-learn's SVC or leaveout's. It does not need to be fitted and is not
        changed. The bounds need one kernel for all folds: steps of a Pipeline are
        fitted once on all rows, with a warning, and ``gamma="scale"`` and
        ``class_weight="balanced"`` are resolved there.
        For an LPMClassifier only the support-vector count is known.
    exact : bool, default=True
        Whether to compute the exact error as well.
    X, y, sample_weight, n_jobs
        As in :func:`leave_one_out`; samples with weight 0 are not counted.

    Returns
    -------
    LooBounds
        A table to print; see ``bounds["span"].value`` and ``bounds.to_frame()``.

    Examples
    --------
    >>> import leaveout as lo
    >>> from leaveout.data import make_twonorm
    >>> X, y = make_twonorm(100, random_state=0)
    >>> bounds = lo.loo_bounds(lo.SVC(C=1, gamma=0.05), X, y)
    >>> for name in ("support-vector count", "xi-alpha", "span", "exact"):
    ...     print(name, bounds[name].kind, round(bounds[name].value, 2))
    support-vector count bound 0.72
    xi-alpha estimate 0.36
    span estimate 0.08
    exact exact 0.08
    """
    check_flag("exact", exact)
    task, plan = prepare(
        estimator,
        X,
        y,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        families=tuple(TABULATE),
        singletons=False,
        psd_for="loo_bounds",
        frozen_for="loo_bounds",
    )
    if len(task.target.classes) != 2:
        raise ValueError(
            f"y has {len(task.target.classes)} classes, but the bounds are for two. "
            "Pass two of the classes, or use leave_one_out, which takes any number."
        )
    tabulate: Any = TABULATE[task.params.family]
    with limit_blas(1):
        [sub], [solution] = solve_task(task)
        bounds = tabulate(sub.problem, solution)
    return _with_exact_row(bounds, task, plan) if exact else bounds


def llw_bounds(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    exact: bool = True,
    n_jobs: int | None = None,
) -> LooBounds:
    """Bound the leave-one-out error of an LLWClassifier.

    ``radius_margin`` is Theorem 2 of Guermeur & Monfrini (2009), ``lemma_count`` the
    share of samples that satisfy their Lemma 1; ``sharp_sum`` and ``sharp_count`` are
    sharper. Only the counts can be below 1; the sums are for comparing kernels and
    values of C. They are bounds for ``C=inf`` and for ``loss="quadratic"``. For the
    hinge loss with a finite C no such bound is known; the rows then hold the bounds for
    the quadratic loss with the same C, and their kind is "other loss".

    Parameters
    ----------
    estimator : LLWClassifier, or Pipeline that ends in one
        It does not need to be fitted and is not changed. As for :func:`loo_bounds`,
        everything before the kernel is fitted once on all rows.
    exact : bool, default=True
        Whether to compute the exact error as well.
    X, y, sample_weight, n_jobs
        As in :func:`leave_one_out`; samples with weight 0 are not counted.

    Returns
    -------
    LooBounds
        A table to print; see ``bounds["sharp_count"].value``, ``bounds.to_frame()``
        and the margins in ``bounds.geometry``. If the classes cannot be separated with
        ``C=inf``, the sums are infinite and the exact error is missing.

    References
    ----------
    .. [1] Y. Guermeur and E. Monfrini, "Radius-margin bound on the leave-one-out error
       of the LLW-M-SVM", ASMDA 2009.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = lo.LLWClassifier(C=100, loss="quadratic", gamma=0.5)
    >>> bounds = lo.llw_bounds(clf, X, y)
    >>> for row in bounds.rows:
    ...     print(row.name, row.kind, round(row.value, 3))
    support-vector count bound 0.26
    radius_margin bound 306.982
    lemma_count bound 0.247
    sharp_sum bound 50.116
    sharp_count bound 0.2
    exact exact 0.053
    """
    check_flag("exact", exact)
    task, plan = prepare(
        estimator,
        X,
        y,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        families=("llw",),
        singletons=False,
        frozen_for="llw_bounds",
    )
    with limit_blas(1):
        started = perf_counter()
        [sub] = plan.family.make_problems(task, False)
        problem = sub.problem
        solution = solve_llw(problem)
        present = problem.C > 0.0
        count = float(np.mean(solution.alpha[present].any(axis=1)))
        # With a soft margin b may not be unique if no multiplier is free.
        kind = BOUND if problem.is_hard else WEAK
        rows = [Bound("support-vector count", kind, count, cost="0")]
        hard, margin, kind, note = problem, solution, BOUND, ""
        if not problem.is_hard:
            hard = problem.as_hard_margin()
            margin = solve_llw(hard)
            kind, note = OTHER_LOSS, "of the quadratic loss, same C"
        elif not solution.separable:
            rows = []
        geometry = None
        if margin.separable:
            geometry = llw_geometry(hard, margin, task.gram.exponent)
        rows += bound_llw(geometry, kind, note)
        seconds = perf_counter() - started
    rows = [replace(row, seconds=seconds) for row in rows]
    bounds = LooBounds(tuple(rows), int(present.sum()), True, geometry)
    if exact and solution.separable:
        bounds = _with_exact_row(bounds, task, plan)
    return bounds
