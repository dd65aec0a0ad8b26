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
from leaveout.adapt._unwrap import ALL_FAMILIES, WITH_C_PATH
from leaveout.loo._leave_out import leave_out, leave_out_path
from leaveout.loo._regression import LooRegressionPath, LooRegressionResult
from leaveout.loo._result import LooPath, LooResult


def leave_one_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    method: str = "auto",
    groups: Any = None,
    labels_only: bool = False,
    preprocessing: str = "fold",
    score_sample_weight: Any = None,
    method_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> LooResult | LooRegressionResult:
    """Compute exact leave-one-out predictions for about the cost of one or two fits.

    The prediction for sample r is that of the model trained on all other samples, as by
    ``cross_val_predict(estimator, X, y, cv=LeaveOneOut())`` at a tight tolerance. The
    steps of a Pipeline, ``gamma="scale"`` and ``class_weight="balanced"`` are fitted
    without the sample, too.

    Parameters
    ----------
    estimator : classifier, regressor or Pipeline
        An SVC or SVR (scikit-learn's or leaveout's), LPMClassifier, LOOMClassifier or
        LLWClassifier, a Pipeline that ends in one, or a OneVsRestClassifier of an SVC.
        It does not need to be fitted and is not changed. Parameters that do not define
        the optimum, such as ``tol``, ``max_iter`` and ``probability``, have no effect.
        SVR, LPMClassifier and LLWClassifier have the methods "walk" and "refit";
        ``labels_only`` has no effect on an SVR. LOOMClassifier has "refit" and "bound",
        which evaluates the fitted model at each sample without the sample's own term;
        its error is ``loo_bound_``, and nothing is certified. For LPMClassifier,
        LOOMClassifier and LLWClassifier ``groups`` are not available, ``labels_only``
        has no effect, and where a fold changes the kernel or the class weights, each
        fold is solved from the start.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed". For a Pipeline,
        any input of its first step.
    y : array-like of shape (n_samples,)
        Class labels, or numbers for an SVR.
    sample_weight : array-like of shape (n_samples,), default=None
        Rescales C per sample, as in ``fit``. A sample with weight 0 is never used for
        training; its prediction is that of the full model, and counts in the error
        unless ``score_sample_weight`` excludes it. The steps of a Pipeline are fitted
        without weights.
    method : str, default="auto"
        "auto" takes "walk", or "refit" for a kernel that is not positive semi-definite.
        "walk" follows the optimum while the weight of the sample goes to zero; where
        each fold has its own kernel, it moves the optimum there. "refit" solves n
        problems; "stopping" solves each only until its label is proved, and
        gives labels only, as with ``labels_only=True``; "consolidated" and "magic"
        solve all n problems at once, the former after fixing coefficients that are
        known in advance. All give the same labels.
    groups : array-like of shape (n_samples,), default=None
        Samples with equal entries are left out together, as with LeaveOneGroupOut:
        replicates, subjects, batches, or the folds of K-fold. The interval of the error
        counts each group as one sample, which is too wide for the folds of K-fold.
    labels_only : bool, default=False
        Stop as soon as the label of a sample is known. Its decision value then has the
        correct sign, but is not the final value. This has no effect where values
        decide: for three or more classes with OneVsRestClassifier or ``break_ties``.
    preprocessing : {"fold", "frozen"}, default="fold"
        Where the steps of a Pipeline before the SVM, ``gamma="scale"`` and
        ``class_weight="balanced"`` are fitted: in each fold, without the left-out
        sample or group, or once on all rows. "fold" gives the error of the complete
        Pipeline; ``result.preprocessing`` says how each step was fitted. With "frozen"
        the steps have seen the left-out sample; a step whose output depends on y is
        refused. Clones are fitted, and the Pipeline's ``memory`` is not used.
    score_sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples in ``error``, or in ``q2``, ``rmse`` and ``mae``.
    method_params : mapping, default=None
        Additional parameters of the method. "refit": ``eps`` and ``seed``; "stopping":
        these, ``condition`` and ``n_trial``; "consolidated": ``rule``. The
        pages on these methods describe them. With ``eps``, labels that
        are not certified come from solutions that are optimal only within eps.
    n_jobs : int, default=None
        Number of threads, or of joblib workers where every fold is refitted. None means
        1, -1 means all cores.

    Returns
    -------
    LooResult
        Error, predictions and decision values, with ambiguous samples and certificates.
        With OneVsRestClassifier, a class whose only member is left out has the value
        -inf. For an SVR a :class:`LooRegressionResult`: predictions, residuals, ``q2``,
        ``rmse`` and ``mae``.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> res = lo.leave_one_out(SVC(C=1, gamma=0.1), X, y)
    >>> round(res.error, 4), res.n_ambiguous
    (0.0267, 0)

    Regression:

    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> res = lo.leave_one_out(SVR(C=100, epsilon=10), X, y)
    >>> round(res.q2, 3), round(res.rmse, 1), bool(res.certified.all())
    (0.457, 56.7, True)
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
        labels_only=labels_only,
        n_jobs=n_jobs,
        families=ALL_FAMILIES,
    )
    result = leave_out(task, plan).result
    result.counts["seconds"] = perf_counter() - started
    return result if weights is None else replace(result, weights=weights)


def loo_path(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    Cs: Any,
    sample_weight: Any = None,
    method: str = "auto",
    groups: Any = None,
    labels_only: bool = False,
    preprocessing: str = "fold",
    method_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> LooPath | LooRegressionPath:
    """Compute exact leave-one-out predictions for each C of a list.

    The results equal those of :func:`leave_one_out` at each C. The Gram matrix is
    computed once, and each fit starts from the optimum of the previous one. Where a
    fold has a Gram matrix of its own, it serves all C.

    Parameters
    ----------
    estimator : SVC, SVR, Pipeline that ends in one, or OneVsRestClassifier of an SVC
        Its own C is ignored.
    Cs : array-like of shape (n_Cs,)
        Values of C, in any order.
    X, y, sample_weight, method, groups, labels_only
        As in :func:`leave_one_out`.
    preprocessing, method_params, n_jobs
        As in :func:`leave_one_out`.

    Returns
    -------
    LooPath
        ``errors``, ``decision_values``, ``best_C``, and one LooResult per C. For an SVR
        a :class:`LooRegressionPath` with ``q2``, ``rmse``, ``mae`` and ``predictions``.

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
        preprocessing=preprocessing,
        labels_only=labels_only,
        n_jobs=n_jobs,
        C=middle_penalty(penalties),
        families=WITH_C_PATH,
    )
    results = tuple(at_C.result for at_C in leave_out_path(task, plan, penalties))
    numbers = plan.family.target == "numbers"
    return (
        LooRegressionPath(penalties, results)
        if numbers
        else LooPath(penalties, results)
    )
