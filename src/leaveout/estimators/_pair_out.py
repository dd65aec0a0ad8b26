# SPDX-License-Identifier: BSD-3-Clause
"""``leave_pair_out_auc``: the AUC that leave-one-out values cannot give."""

from __future__ import annotations

from typing import Any

import numpy as np

from leaveout.estimators._adapt import adapt_svc
from leaveout.estimators._check import check_flag
from leaveout.loo import PairAUC, loo_pairs
from leaveout.run import blas_threads, count_threads


def leave_pair_out_auc(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> PairAUC:
    """Estimate the area under the ROC curve from pairs that are left out together.

    Every pair of a positive and a negative sample is left out in turn, exactly, and
    both are scored by the one machine that has seen neither. The AUC of pooled
    leave-one-out values is biased: each comes from another machine, and leaving a
    sample out pushes its own value down (Airola et al. 2011).

    Parameters
    ----------
    estimator : sklearn.svm.SVC or leaveout.SVC
        It need not be fitted and is not changed.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed".
    y : array-like of shape (n_samples,)
        Labels of two classes; the second in sorted order is the positive one.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample; samples with weight 0 are in no pair.
    n_jobs : int, default=None
        Threads; None means 1, -1 all cores.
    verbose : bool, default=False
        Whether to say on stderr how far it is.

    Returns
    -------
    PairAUC
        ``auc``, ``wins`` per sample, ``n_pairs``, ``counts``.

    References
    ----------
    .. [1] A. Airola, T. Pahikkala, W. Waegeman, B. De Baets and T. Salakoski, "An
       experimental comparison of cross-validation techniques for estimating the area
       under the ROC curve", Computational Statistics & Data Analysis 55(4), 2011.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> lo.leave_pair_out_auc(lo.SVC(C=1, gamma=0.1), X[50:], y[50:]).auc
    0.9952
    """
    check_flag("verbose", verbose)
    _, task = adapt_svc(estimator, X, y, sample_weight)
    if len(task.classes) != 2:
        raise ValueError(
            f"y has {len(task.classes)} classes; the AUC is about two. Take two of "
            "them, or one against the rest, y == label."
        )
    if np.count_nonzero(task.C) == 2:
        raise ValueError(
            "Leaving out a pair of 2 samples leaves none to train on. The AUC of "
            "left-out pairs needs 3 samples or more."
        )
    n_threads = count_threads(n_jobs)
    with blas_threads(1):
        pairs = loo_pairs(
            task.whole_problem(0, 1), n_threads=n_threads, verbose=verbose
        )
    return pairs
