# SPDX-License-Identifier: BSD-3-Clause
"""From the estimator a user has to our SVC and what it is to be fitted on."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from leaveout.estimators._frozen import transform_once
from leaveout.estimators._one_vs_rest import make_one_vs_rest_task
from leaveout.estimators._svc import SVC
from leaveout.estimators._task import Task, make_task
from leaveout.estimators._unwrap import Model, unwrap

SHARED_PARAMETERS = (
    "C",
    "kernel",
    "degree",
    "gamma",
    "coef0",
    "class_weight",
    "decision_function_shape",
    "break_ties",
)


def adapt_svc(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None
) -> tuple[SVC, Task]:
    """Return our SVC with the estimator's parameters, and what it is to be fitted on.

    Parameters
    ----------
    estimator : SVC, or Pipeline that ends in one
        scikit-learn's SVC or ours. It need not be fitted and is not changed. Of
        scikit-learn's SVC, ``tol``, ``max_iter``, ``cache_size``, ``shrinking``,
        ``probability``, ``verbose`` and ``random_state`` are ignored: they steer
        LIBSVM, not the optimum. The steps of a Pipeline are fitted once on all rows,
        as clones, without its ``memory``; a warning says so.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed". With a Pipeline,
        whatever its first step takes.
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample, >= 0.

    Returns
    -------
    svc : SVC
        Unfitted.
    task : Task
        Classes, Gram matrix over all rows, boxes; gamma and balanced class weights are
        resolved once, on all rows.

    Raises
    ------
    TypeError
        For any other estimator, with advice on what to use instead.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from leaveout.estimators import adapt_svc
    >>> svc, task = adapt_svc(SVC(C=3, gamma=0.5), [[0.0], [1.0], [2.0]], [0, 0, 1])
    >>> svc
    SVC(C=3, gamma=0.5)
    >>> task.C, task.codes
    (array([3., 3., 3.]), array([0, 0, 1]))
    """
    model = unwrap(estimator)
    if model.one_vs_rest:
        raise TypeError(
            "OneVsRestClassifier goes into leave_one_out only. Pass the SVC itself, "
            "which treats more than two classes one-vs-one."
        )
    return adapt_model(model, X, y, sample_weight, stacklevel=4)


def adapt_model(
    model: Model, X: Any, y: Any, sample_weight: Any = None, *, stacklevel: int
) -> tuple[SVC, Task]:
    """Do what :func:`adapt_svc` does, for one-vs-rest too: ask ``task.machines``.

    Warnings name the line ``stacklevel`` above.
    """
    svc = as_leaveout_svc(model.svc)
    if model.steps:
        X = transform_once(model.steps, X, y, stacklevel=stacklevel + 1)
    make = make_one_vs_rest_task if model.one_vs_rest else make_task
    return svc, make(svc, X, y, sample_weight)


def as_leaveout_svc(estimator: Any) -> SVC:
    """Return an unfitted leaveout.SVC with the parameters of the estimator."""
    if isinstance(estimator, SVC):
        return clone(estimator)
    return SVC(**{name: getattr(estimator, name) for name in SHARED_PARAMETERS})
