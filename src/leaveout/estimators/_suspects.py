# SPDX-License-Identifier: BSD-3-Clause
"""``suspects``: the samples most likely mislabelled, and what they do to the others."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.estimators._adapt import adapt_model
from leaveout.estimators._check import check_count, check_ids
from leaveout.estimators._decide import one_vs_one_margins
from leaveout.estimators._leave_one_out import make_plan, summarise
from leaveout.estimators._machines import Plan
from leaveout.estimators._one_vs_rest import one_vs_rest_margins
from leaveout.estimators._task import Task
from leaveout.estimators._unwrap import Model, unwrap
from leaveout.loo import Suspects, Without
from leaveout.run import blas_threads, show_progress
from leaveout.solve import solve_svc

# Decision values held at a time: samples left out x samples x machines.
VALUES_AT_A_TIME = 4_000_000


def suspects(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    ids: Any = None,
    top: int | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Suspects:
    """List the samples most likely mislabelled or odd, by exact leave-one-out margin.

    A sample with a negative margin is one whose label all others together speak
    against. Every sample is left out once, exactly; the same walks tell how the margins
    of the others change, its influence.

    Parameters
    ----------
    estimator : SVC, Pipeline that ends in one, or OneVsRestClassifier of one
        scikit-learn's SVC or ours. It need not be fitted and is not changed. The steps
        of a Pipeline are fitted once on all rows, and refused if they use y.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed".
    y : array-like of shape (n_samples,)
        Class labels.
    ids : array-like of shape (n_samples,), default=None
        Names of the samples. By default the index of a data frame, else row numbers.
    top : int, default=None
        How many to list; None lists all.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample. A sample with weight 0 is listed, but is none of the
        others whose margins count for the influence.
    groups : array-like of shape (n_samples,), default=None
        Samples with equal entries are left out together, replicates for one, which
        would else vouch for each other's wrong label. The influence is still that of
        the single sample.
    n_jobs : int, default=None
        Threads; None means 1, -1 all cores.
    verbose : int, default=0
        Above 0, how far it is is written to stderr.

    Returns
    -------
    Suspects
        By ascending margin: ``rows``, ``ids``, ``labels``, ``predictions``, ``margins``
        with their intervals, ``ambiguous``, ``certified``, ``influence``, ``flagged``;
        ``n_flagged`` of all samples.

    Notes
    -----
    The influence of sample r is the mean over all other samples j of m_j without r
    minus m_j with r, where m_j is the margin of j on the training set: y_j f(x_j) for
    two classes, true class minus best other for more. It is positive if the others are
    better off without r. Samples with alpha = 0 have influence 0, unless the intercept
    is an interval.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> y[60] = 0  # a slip of the pen
    >>> found = lo.suspects(lo.SVC(C=1, gamma=0.1), X[:100], y[:100], top=3)
    >>> found.rows
    array([60, 98, 57])
    >>> print(found)
    Suspects: 1 of 100 samples are labelled differently by the others; 3 listed
      id  label  others say   margin  influence
      60      0           1  -1.1087    +0.0260
      98      1           1   0.5549    +0.0026
      57      1           1   0.6635    -0.0261
    """
    started = perf_counter()
    model = unwrap(estimator)
    names = check_ids(ids, X)
    svc, task = adapt_model(model, X, y, sample_weight, stacklevel=3)
    n = task.labels.size
    k = n if top is None else min(check_count("top", top), n)
    plan, definite = make_plan(svc, task, "auto", groups, "frozen", n_jobs)
    with blas_threads(1):
        machines = plan.leave_out_all(task)
        seconds = perf_counter() - started
        result = summarise(
            model, svc, task, machines, plan.name, definite, seconds, groups=plan.groups
        )
        rows = np.argsort(result.margins, kind="stable")[:k]
        influence, known = measure_influence(
            model, task, plan, rows, verbose=verbose > 0
        )
    return Suspects(
        rows=rows,
        ids=names[rows],
        labels=result.y[rows],
        predictions=result.predictions[rows],
        margins=result.margins[rows],
        lower=result.lower[rows],
        upper=result.upper[rows],
        ambiguous=result.ambiguous[rows],
        certified=result.certified[rows] & known,
        influence=influence,
        n_samples=n,
        error=result.error,
        n_flagged=int(np.count_nonzero(result.wrong)),
    )


def measure_influence(
    model: Model, task: Task, plan: Plan, rows: IntArray, *, verbose: bool = False
) -> tuple[FloatArray, BoolArray]:
    """Return the mean change of all other margins when each of some rows leaves.

    Also, whether it is certified.
    Rows are taken a few at a time, so that memory stays bounded.
    """
    machines = [
        Without(problem, solve_svc(problem), method=plan.name, n_threads=plan.n_threads)
        for problem in (part.whole_problem(i, j) for part, i, j in task.machines)
    ]
    n = task.labels.size
    full = np.column_stack([machine.solution.decision_values for machine in machines])
    before = _margins(model, full, task.codes)
    counted, gone = task.weights > 0, task.vanishing()
    influence, certified = np.empty(rows.size), np.empty(rows.size, dtype=bool)
    size = max(1, VALUES_AT_A_TIME // (n * len(machines)))
    starts = range(0, rows.size, size)
    for start in show_progress(starts, len(starts), "influence", verbose=verbose):
        some = rows[start : start + size]
        answers = [machine.answer(some) for machine in machines]
        values = np.stack([values for values, _ in answers], axis=-1)
        known = np.all([known for _, known in answers], axis=0)
        certified[start : start + size] = known
        if model.one_vs_rest and len(machines) > 1:
            # A class whose only member leaves has no machine.
            values[np.repeat(gone[some, None], n, axis=1)] = -np.inf
        after = np.stack([_margins(model, v, task.codes) for v in values])
        others = np.tile(counted, (some.size, 1))
        others[np.arange(some.size), some] = False
        change = np.subtract(after, before, out=np.zeros_like(after), where=others)
        influence[start : start + size] = change.sum(axis=1) / others.sum(axis=1)
    return influence, certified


def _margins(model: Model, values: FloatArray, codes: IntArray) -> FloatArray:
    """Return the margin of each sample by the values of all machines, (n,)."""
    margins = one_vs_rest_margins if model.one_vs_rest else one_vs_one_margins
    return margins(values, codes)
