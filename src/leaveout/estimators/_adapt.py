# SPDX-License-Identifier: BSD-3-Clause
"""From the estimator a user has to our SVC, or to advice on what to use instead."""

from __future__ import annotations

from typing import Any

import sklearn.svm
from sklearn.base import clone

from leaveout.estimators._svc import SVC
from leaveout.estimators._task import Task, make_task

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

# By class name, so that nothing is imported for the sake of a message.
ADVICE = {
    "LinearSVC": "it squares the hinge loss and regularises the bias. "
    "Use SVC(kernel='linear', C=...).",
    "NuSVC": "its nu means another C whenever a sample is left out. Use SVC(C=...).",
    "LinearSVR": "it is a regressor. Use an SVC on class labels.",
    "SVR": "it is a regressor. Use an SVC on class labels.",
    "NuSVR": "it is a regressor. Use an SVC on class labels.",
    "OneClassSVM": "it knows one class only. Use an SVC, with the outliers labelled.",
    "SGDClassifier": "it stops short of the optimum. Use SVC(kernel='linear', C=...).",
    "Pipeline": "it transforms X first. Do that yourself, "
    "X = pipeline[:-1].fit_transform(X), and pass the SVC, pipeline[-1].",
    "BaseSearchCV": "it is a search. Pass its best_estimator_ or an SVC(...).",
    "OneVsRestClassifier": "it is a meta-estimator. Pass the SVC itself, which treats "
    "more than two classes one-vs-one.",
}
OTHERWISE = (
    "it is not a support vector classifier. Use "
    "sklearn.model_selection.cross_val_predict(estimator, X, y, cv=LeaveOneOut())."
)


def adapt_svc(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None
) -> tuple[SVC, Task]:
    """Return our SVC with the estimator's parameters, and what it is to be fitted on.

    Parameters
    ----------
    estimator : sklearn.svm.SVC or leaveout.SVC
        It need not be fitted and is not changed. Of scikit-learn's SVC, ``tol``,
        ``max_iter``, ``cache_size``, ``shrinking``, ``probability``, ``verbose`` and
        ``random_state`` are ignored: they steer LIBSVM, not the optimum.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed".
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
    svc = as_leaveout_svc(estimator)
    return svc, make_task(svc, X, y, sample_weight)


def as_leaveout_svc(estimator: Any) -> SVC:
    """Return an unfitted leaveout.SVC with the parameters of the estimator."""
    if isinstance(estimator, SVC):
        return clone(estimator)
    if isinstance(estimator, sklearn.svm.SVC):
        return SVC(**{name: getattr(estimator, name) for name in SHARED_PARAMETERS})
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator must be an object, not the class {estimator.__name__}. "
            f"Pass {estimator.__name__}()."
        )
    names = [base.__name__ for base in type(estimator).__mro__]
    reason = next((ADVICE[name] for name in names if name in ADVICE), OTHERWISE)
    raise TypeError(
        "estimator must be an sklearn.svm.SVC or a leaveout.SVC; "
        f"{type(estimator).__name__} will not do: {reason}"
    )
