# SPDX-License-Identifier: BSD-3-Clause
"""``loo_bounds``: what the literature offers in the place of leaving one out."""

from __future__ import annotations

from typing import Any

from leaveout.estimators._adapt import adapt_model
from leaveout.estimators._check import check_flag, check_kernel_size
from leaveout.estimators._leave_expansion_out import adapt_expansion
from leaveout.estimators._lpm import LPMClassifier
from leaveout.estimators._task import Task
from leaveout.estimators._unwrap import SVMS, unwrap
from leaveout.kernel import is_psd, may_be_indefinite
from leaveout.loo import LooBounds, tabulate_bounds, tabulate_lpm_bounds
from leaveout.run import blas_threads, count_threads
from leaveout.solve import rescale, solve_lpm, solve_svc


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

    Each row says what it is worth for the machine at hand. With an intercept, which
    scikit-learn's SVC always has, most of them are estimates: only the support-vector
    count and the certificate are bounds. The exact error stands beside them.

    Parameters
    ----------
    estimator : SVC, LPMClassifier, or Pipeline that ends in one
        scikit-learn's SVC or ours. It need not be fitted and is not changed. The steps
        of a Pipeline are fitted once on all rows; a warning says so. For an
        LPMClassifier only the support-vector count is known.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed".
    y : array-like of shape (n_samples,)
        Labels of two classes.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample. A sample with weight 0 is not counted.
    exact : bool, default=True
        Whether to compute the exact error, too.
    n_jobs : int, default=None
        Threads of the exact leave-one-out; None means 1, -1 all cores.

    Returns
    -------
    LooBounds
        A table; ``bounds["span"].value``, ``.to_frame()``, or print it.

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
    model = unwrap(estimator, (*SVMS, LPMClassifier))
    n_threads = count_threads(n_jobs)
    if isinstance(model.svc, LPMClassifier):
        _, task = adapt_expansion(model, X, y, sample_weight, stacklevel=3)
        problem = _only_machine(task)
        with blas_threads(1):
            return tabulate_lpm_bounds(
                problem, solve_lpm(problem), exact=exact, n_threads=n_threads
            )
    svc, task = adapt_model(model, X, y, sample_weight, stacklevel=3)
    if may_be_indefinite(svc.kernel, svc.coef0) and not is_psd(task.K):
        raise ValueError(
            f"loo_bounds needs a positive semi-definite kernel; {svc.kernel!r} is not "
            "on these data. Use leave_one_out(..., method='refit'), or another kernel."
        )
    check_kernel_size(task.K, "loo_bounds")
    problem = rescale(_only_machine(task), magnify=False).problem
    with blas_threads(1):
        solution = solve_svc(problem)
        return tabulate_bounds(problem, solution, exact=exact, n_threads=n_threads)


def _only_machine(task: Task) -> Any:
    """Return the machine between two classes; ValueError if there are more."""
    if len(task.classes) != 2:
        raise ValueError(
            f"y has {len(task.classes)} classes; the bounds are those of one machine "
            "between two. Pass two of the classes, or use leave_one_out, which takes "
            "any number."
        )
    [(part, i, j)] = task.machines
    return part.problem(i, j)
