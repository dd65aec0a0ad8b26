# SPDX-License-Identifier: BSD-3-Clause
"""``loo_path``: leave-one-out over a list of C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from leaveout.estimators._adapt import adapt_model
from leaveout.estimators._check import check_flag, check_penalties
from leaveout.estimators._leave_one_out import make_plan, summarise, values_decide
from leaveout.estimators._room import check_room
from leaveout.estimators._unwrap import unwrap
from leaveout.loo import LooPath, MachineLoo, follow_path, solve_path
from leaveout.run import blas_threads


def loo_path(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    Cs: Any,
    sample_weight: Any = None,
    method: str = "auto",
    groups: Any = None,
    balanced: str = "frozen",
    labels_only: bool = False,
    method_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> LooPath:
    """Leave every sample out for each of a list of C, exactly.

    The same as :func:`leave_one_out` at each C, in one go: the Gram matrix is made
    once, and each optimum starts from the one before.

    Parameters
    ----------
    estimator : SVC, Pipeline that ends in one, or OneVsRestClassifier of one
        Its own C is not used. The steps of a Pipeline are fitted once, on all rows.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed".
    y : array-like of shape (n_samples,)
        Class labels.
    Cs : array-like of shape (n_Cs,)
        Values of C, in any order.
    sample_weight, method, groups, balanced, labels_only, method_params, n_jobs
        As in :func:`leave_one_out`.

    Returns
    -------
    LooPath
        ``errors``, ``decision_values``, ``best_C``, and a LooResult for each C.

    Examples
    --------
    >>> import numpy as np
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = lo.loo_path(lo.SVC(gamma=0.1), X, y, Cs=np.logspace(-1, 2, 4))
    >>> len(path), path.decision_values.shape
    (4, (4, 150, 3))
    """
    check_flag("labels_only", labels_only)
    penalties = check_penalties(Cs)
    model = unwrap(estimator)
    check_room(model.svc, X, method)
    svc, task = adapt_model(model, X, y, sample_weight, stacklevel=3)
    plan, definite = make_plan(
        svc,
        task,
        method,
        groups,
        balanced,
        n_jobs,
        params=method_params,
        labels_only=labels_only,
        values_decide=values_decide(model, svc, task),
    )
    order = np.argsort(penalties, kind="stable")
    factors = penalties[order] / float(svc.C)
    machines: list[list[MachineLoo]] = [[] for _ in penalties]
    seconds = np.zeros(penalties.size)
    with blas_threads(1):
        for part, i, j in task.machines:
            started = perf_counter()
            steps = solve_path(plan.problem(part, i, j), factors)
            own = replace(plan, method=follow_path(plan.name, plan.method))
            for k, (problem, solution) in zip(order, steps, strict=True):
                machines[k].append(own.leave_out(part, i, j, problem, solution))
                seconds[k] += perf_counter() - started
                started = perf_counter()
    results = tuple(
        summarise(
            model, svc, task, own, plan.name, definite, float(spent), groups=plan.groups
        )
        for own, spent in zip(machines, seconds, strict=True)
    )
    return LooPath(penalties, results)
