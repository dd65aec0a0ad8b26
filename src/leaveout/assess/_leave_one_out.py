# SPDX-License-Identifier: BSD-3-Clause
"""leave_one_out and loo_path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from leaveout.adapt._checks import (
    check_penalties,
    check_sample_weight,
    count_rows,
    middle_penalty,
)
from leaveout.adapt._prepare import prepare
from leaveout.adapt._unwrap import ALL_FAMILIES
from leaveout.loo._leave_out import leave_out, leave_out_path
from leaveout.loo._result import LooPath, LooResult


def leave_one_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    method: str = "auto",
    groups: Any = None,
    balanced: str = "frozen",
    labels_only: bool = False,
    preprocessing: str = "frozen",
    score_sample_weight: Any = None,
    method_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> LooResult:
    """Leave every sample out once, exactly, for about the price of one fit.

    The answer for sample r is that of the classifier trained on all samples but r,
    with the same C, kernel and weights. ``gamma="scale"`` and
    ``class_weight="balanced"`` are resolved once, on all rows.

    Parameters
    ----------
    estimator : SVC, LPMClassifier, LOOMClassifier, LLWClassifier, Pipeline that \
            ends in one, or OneVsRestClassifier of an SVC
        scikit-learn's SVC or ours. It need not be fitted and is not changed. An
        LPMClassifier has the methods "walk" and "refit", a LOOMClassifier "refit" and
        "bound": f of all samples at each one, without its own term, whose error is
        ``loo_bound_``, and which certifies nothing; an LLWClassifier has "walk" and
        "refit". To these three, groups,
        ``balanced="fold"`` and ``preprocessing="refit"`` do not apply, and
        ``labels_only`` changes nothing.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed". With a Pipeline,
        whatever its first step takes.
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample, as in ``fit``. A sample with weight 0 is never trained
        on and gets the answer of the full classifier. The steps of a Pipeline do not
        get the weights.
    method : {"auto", "walk", "refit", "stopping", "consolidated", "magic"}, \
            default="auto"
        "walk" follows the optimum as the sample fades out; "refit" solves n problems;
        "stopping" solves them only until the labels are proved, and gives labels only,
        as with ``labels_only=True``; "consolidated" and "magic" solve all of them at
        once, with and without leaving known coefficients aside. All give the same
        labels.
    groups : array-like of shape (n_samples,), default=None
        Samples with equal entries are left out together, as with LeaveOneGroupOut:
        replicates, subjects, batches, or the folds of K-fold.
    balanced : {"frozen", "fold"}, default="frozen"
        With ``class_weight="balanced"``: whether the weights are those of all rows, or
        those of the rows that are left, as a refit by scikit-learn has them. The second
        refits every sample or group.
    labels_only : bool, default=False
        Stop as soon as the label of a sample is known. Its decision value is then not
        the final one, only on the right side of zero. Where values decide, among
        three classes or more with OneVsRestClassifier or ``break_ties``, it changes
        nothing.
    preprocessing : {"frozen", "refit"}, default="frozen"
        What happens to the steps of a Pipeline before the SVC. "frozen": fitted once,
        as clones, on all rows; a warning says so, and a step whose output depends on y
        is refused. "refit": the whole Pipeline is fitted again without each sample or
        group, as cross_val_predict does; ``gamma="scale"`` and
        ``class_weight="balanced"`` are then resolved again too. Without a Pipeline both
        are the same. The Pipeline's ``memory`` is not used.
    score_sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples in ``error``.
    method_params : mapping, default=None
        Parameters of the method alone. "refit": ``eps`` and ``seed``; "stopping": these
        and ``condition`` and ``n_trial``; "consolidated": ``rule``; see
        ``loo_refit`` and ``loo_stopping`` in ``methods/_stopping.py`` and
        ``loo_consolidated`` in ``methods/_consolidated.py``. With ``eps`` labels that
        are not certified are optimal within eps only.
    n_jobs : int, default=None
        Threads; None means 1, -1 all cores. With preprocessing="refit", joblib's
        workers.

    Returns
    -------
    LooResult
        Decision values, predictions, error, what is ambiguous, how it was settled. With
        OneVsRestClassifier, the value of a class whose only member is left out is -inf.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> res = lo.leave_one_out(SVC(C=1, gamma=0.1), X, y)
    >>> round(res.error, 4), res.n_ambiguous
    (0.0267, 0)
    """
    weights = None
    if score_sample_weight is not None:
        weights = check_sample_weight(
            score_sample_weight, count_rows(X), "score_sample_weight"
        )
    started = perf_counter()
    task, plan = prepare(
        estimator,
        X,
        y,
        sample_weight=sample_weight,
        groups=groups,
        method=method,
        method_params=method_params,
        preprocessing=preprocessing,
        balanced=balanced,
        labels_only=labels_only,
        n_jobs=n_jobs,
        families=ALL_FAMILIES,
    )
    result = leave_out(task, plan).result
    counts = {**result.counts, "seconds": perf_counter() - started}
    return replace(result, weights=weights, counts=counts)


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
    Cs : array-like of shape (n_Cs,)
        Values of C, in any order.
    X, y, sample_weight, method, groups, balanced, labels_only, method_params, n_jobs
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
    >>> path.errors.round(4), path.best_C
    (array([0.06  , 0.0267, 0.0333, 0.04  ]), 1.0)
    """
    penalties = check_penalties(Cs)
    task, plan = prepare(
        estimator,
        X,
        y,
        sample_weight=sample_weight,
        groups=groups,
        method=method,
        method_params=method_params,
        balanced=balanced,
        labels_only=labels_only,
        n_jobs=n_jobs,
        C=middle_penalty(penalties),
    )
    fitted = leave_out_path(task, plan, penalties)
    return LooPath(penalties, tuple(at_C.result for at_C in fitted))
