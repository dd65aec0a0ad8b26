# SPDX-License-Identifier: BSD-3-Clause
"""``llw_bounds``: bounds on the leave-one-out error of an LLWClassifier."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from leaveout.estimators._check import check_flag
from leaveout.estimators._leave_expansion_out import adapt_expansion
from leaveout.estimators._leave_one_out import leave_one_out
from leaveout.estimators._llw import LLWClassifier, llw_problem
from leaveout.estimators._unwrap import unwrap
from leaveout.loo import Bound, LooBounds, bound_llw
from leaveout.run import blas_threads
from leaveout.solve import solve_llw


def llw_bounds(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    exact: bool = True,
    n_jobs: int | None = None,
) -> LooBounds:
    """Bound the leave-one-out error of Lee, Lin & Wahba's machine.

    ``radius_margin`` is Theorem 2 of Guermeur & Monfrini (2009), ``sharp_sum`` and
    ``sharp_count`` are sharper: of the two only the count can be below 1, the sums are
    for comparing kernels and C. They are bounds for ``C=inf`` and for
    ``loss="quadratic"``. With hinge loss and a finite C no such bound is known, and
    they are those of the quadratic loss with the same C.

    Parameters
    ----------
    estimator : LLWClassifier, or Pipeline that ends in one
        It need not be fitted and is not changed. The steps of a Pipeline are fitted
        once on all rows; a warning says so.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed".
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample. A sample with weight 0 is not counted.
    exact : bool, default=True
        Whether to compute the exact error, too.
    n_jobs : int, default=None
        Threads of the exact leave-one-out; None means 1, -1 all cores.

    Returns
    -------
    LooBounds
        A table; ``bounds["sharp_count"].value``, ``.to_frame()``, or print it. If there
        is no hard margin, the sums are infinite and nothing is exact.

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
    sharp_sum bound 50.116
    sharp_count bound 0.2
    exact exact 0.053
    """
    check_flag("exact", exact)
    model = unwrap(estimator, (LLWClassifier,))
    llw, task = adapt_expansion(model, X, y, sample_weight, stacklevel=3)
    with blas_threads(1):
        started = perf_counter()
        problem = llw_problem(llw, task)
        solution = solve_llw(problem)
        present = problem.C > 0.0
        count = float(np.mean(solution.alpha[present].any(axis=1)))
        rows = [Bound("support-vector count", _count_kind(llw), count, cost="0")]
        hard, note = problem, ""
        if not problem.is_hard:
            hard, note = problem.as_hard_margin(), "of the quadratic loss, same C"
            rows += bound_llw(hard, solve_llw(hard), note)
        else:
            rows = rows if solution.separable else []
            rows += bound_llw(hard, solution)
        seconds = perf_counter() - started
    rows = [Bound(**{**vars(row), "seconds": seconds}) for row in rows]
    if exact and solution.separable:
        rows.append(_exact(llw, task, present, n_jobs))
    return LooBounds(tuple(rows), int(present.sum()), True)


def _count_kind(llw: LLWClassifier) -> str:
    """Say what the count is worth: without a free multiplier b may be open."""
    hard = llw.loss == "quadratic" or np.isinf(llw.C)
    return "bound" if hard else "weak bound"


def _exact(llw: LLWClassifier, task: Any, present: Any, n_jobs: int | None) -> Bound:
    """Leave one out, from wrong samples to wrong or ambiguous ones."""
    gram = LLWClassifier(**{**llw.get_params(), "kernel": "precomputed"})
    weights = np.where(present, task.weights, 0.0)
    result = leave_one_out(
        gram, task.K, task.labels, sample_weight=weights, n_jobs=n_jobs
    )
    wrong = result.wrong[present] & ~result.ambiguous[present]
    either = result.wrong[present] | result.ambiguous[present]
    n_ambiguous = int(result.ambiguous[present].sum())
    return Bound(
        "exact", "exact", float(either.mean()), float(wrong.mean()),
        "a walk per SV", f"{n_ambiguous} ambiguous" if n_ambiguous else "",
        float(result.counts["seconds"]),
    )  # fmt: skip
