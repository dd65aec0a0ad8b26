# SPDX-License-Identifier: BSD-3-Clause
"""loo_curve: the leave-one-out error at every C.

``loo_curve``: the leave-one-out error for every C between two ends.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from leaveout.adapt._checks import check_kernel_size, check_penalty
from leaveout.adapt._prepare import _warn_singletons, adapt_model
from leaveout.adapt._unwrap import unwrap
from leaveout.engine._problem import Problem
from leaveout.exceptions import CertificateWarning
from leaveout.kernel._gram import may_be_indefinite
from leaveout.kernel._symmetric import is_psd
from leaveout.methods._curve import LooCurve, trace_loo_curve
from leaveout.run._parallel import count_threads, limit_blas


def loo_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    C_min: float = 1e-2,
    C_max: float = 1e3,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> LooCurve:
    """Compute the exact leave-one-out error of a two-class SVC for every C at once.

    Without sample r the optimum is piecewise affine in C. It is followed from C_min to
    C_max for every r; where the value it gives to x_r changes its sign, the error makes
    a step. No C in between is missed, as by a grid.

    Parameters
    ----------
    estimator : sklearn.svm.SVC or leaveout.SVC, or a Pipeline that ends in one
        For two classes. It need not be fitted and is not changed; its C is not used.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed".
    y : array-like of shape (n_samples,)
        Class labels.
    C_min, C_max : float, default=1e-2, 1e3
        Ends of the range, 0 < C_min < C_max.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample, as in ``fit``. A sample with weight 0 is never trained
        on and gets the answer of the full classifier.
    n_jobs : int, default=None
        Threads; None means 1, -1 all cores.

    Returns
    -------
    LooCurve
        ``breakpoints``, ``errors``, ``n_ambiguous``, ``best_interval``, ``error_at``.

    References
    ----------
    .. [1] T. Hastie, S. Rosset, R. Tibshirani and J. Zhu, "The entire regularization
       path for the support vector machine", Journal of Machine Learning Research 5,
       2004.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> curve = lo.loo_curve(lo.SVC(gamma=0.1), X[50:], y[50:], C_max=100)
    >>> low, high = curve.best_interval
    >>> print(f"error {curve.best_error:.2f} for C from {low:.4f} to {high:.4f}")
    error 0.03 for C from 1.7105 to 2.0994
    >>> curve.error_at([0.1, 1.0, 10.0])
    array([0.09, 0.04, 0.05])
    """
    low = check_penalty(C_min, "C_min")
    high = check_penalty(C_max, "C_max")
    if low >= high:
        raise ValueError(f"C_min must be below C_max; got {C_min!r} and {C_max!r}.")
    svc, task = adapt_model(unwrap(estimator), X, y, sample_weight, stacklevel=3)
    if len(task.classes) != 2:
        raise ValueError(
            f"y has {len(task.classes)} classes; loo_curve is for two. Use loo_path, "
            "which takes a list of C and any number of classes."
        )
    if may_be_indefinite(svc.kernel, svc.coef0) and not is_psd(task.K):
        raise ValueError(
            f"loo_curve needs a positive semi-definite kernel; {svc.kernel!r} is not "
            "on these data. Use leave_one_out(..., method='refit') at each C, "
            "or another kernel."
        )
    check_kernel_size(task.K, "loo_curve")
    _warn_singletons(task)
    [(part, i, j)] = task.machines
    machine = part.whole_problem(i, j)
    weights = Problem(
        machine.K, machine.y, machine.C / float(svc.C), machine.fit_intercept
    )
    truth = np.where(task.codes < 0, 0.0, machine.y)
    n_threads = count_threads(n_jobs)
    with limit_blas(1):
        curve = trace_loo_curve(weights, low, high, truth=truth, n_threads=n_threads)
    if curve.n_uncertified:
        warnings.warn(
            f"{curve.n_uncertified} of {curve.n_samples} paths did not pass their "
            "checks: the curve may be off there. Compare with leave_one_out at the C "
            "you choose, or take a smaller C_max.",
            CertificateWarning,
            stacklevel=2,
        )
    return curve
