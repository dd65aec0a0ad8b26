# SPDX-License-Identifier: BSD-3-Clause
"""From a fitted kernel classifier and its training set to its coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_labels
from leaveout.assess._loo_features import FittedExpansion, feature_squares
from leaveout.estimators._svc import SVC
from leaveout.kernel._gram import check_gram, gram_matrix, resolve_gamma

NEEDED = (
    "A classifier must have coefficients of a kernel expansion: an SVC of two classes "
    "(scikit-learn's or leaveout's), OneVsRestClassifier(SVC()), or a classifier with "
    "expansion_coef_ and intercept_ such as LPMClassifier; a Pipeline may end in one."
)


def read_expansion(estimator: Any, X: Any, y: Any) -> FittedExpansion:
    """Return coefficients, kernel and distances of a classifier fitted on X and y.

    Parameters
    ----------
    estimator : classifier
        If it is not fitted, a clone of it is.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        What it was fitted on; the Gram matrix if kernel="precomputed".
    y : array-like of shape (n_samples,)
        Labels it was fitted on.

    Returns
    -------
    FittedExpansion

    Raises
    ------
    TypeError
        If the classifier has no coefficients of samples.
    ValueError
        If it was fitted on other samples, or is an SVC of more than two classes.
    """
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        estimator = clone(estimator).fit(X, y)
    if isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
        estimator = estimator.steps[-1][1]
    X = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    labels = check_labels(y, X.shape[0])
    codes = _encode(estimator, labels)
    coef, intercept = _coefficients(estimator, X)
    K, squares = _geometry(_kernel_of(estimator), X)
    row_dual = getattr(estimator, "row_dual_", None)
    box = _boxes(estimator, codes)
    return FittedExpansion(
        K=K,
        squares=squares,
        codes=codes,
        coef=coef,
        intercept=intercept,
        box=box if _has_box(estimator) else None,
        row_dual=None if row_dual is None else np.atleast_2d(row_dual),
        row_box=box,
    )


def _encode(estimator: Any, labels: Any) -> IntArray:
    """Return the place of each label among the classes of the classifier."""
    classes = np.asarray(estimator.classes_)
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"y has the label {unknown[0]!r}, unknown to the classifier, whose classes "
            f"are {classes.tolist()}. Pass the X and y that it was fitted on."
        )
    return np.searchsorted(classes, labels)


def _coefficients(estimator: Any, X: Any) -> tuple[FloatArray, FloatArray]:
    """Return signed coefficients of all samples and intercepts, a machine a row."""
    if isinstance(estimator, OneVsRestClassifier):
        machines = [_coefficients(machine, X) for machine in estimator.estimators_]
        coefs, intercepts = zip(*machines, strict=True)
        return np.concatenate(coefs), np.concatenate(intercepts)
    if isinstance(estimator, SVC | sklearn.svm.SVC):
        return _svc_coefficients(estimator, X)
    if not hasattr(estimator, "expansion_coef_"):
        raise TypeError(f"{type(estimator).__name__} will not do. {NEEDED}")
    coef = np.atleast_2d(estimator.expansion_coef_)
    _check_size(estimator, coef.shape[1], X.shape[0])
    return coef, np.atleast_1d(estimator.intercept_)


def _svc_coefficients(svc: Any, X: Any) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of an SVC of two classes."""
    if len(svc.classes_) > 2:
        raise ValueError(
            f"The SVC has {len(svc.classes_)} classes and a machine for each pair. "
            "Use OneVsRestClassifier(SVC()), which has one for each class."
        )
    _check_size(svc, svc.shape_fit_[0], X.shape[0])
    if svc.kernel != "precomputed":
        here = X[svc.support_]
        difference = here - svc.support_vectors_
        if (difference != 0).sum():
            raise ValueError(
                "The SVC was fitted on other samples: its support vectors are not in "
                "the rows of X where they should be. Pass the X that it was fitted on."
            )
    dual = svc.dual_coef_
    coef = np.zeros((1, X.shape[0]))
    coef[0, svc.support_] = np.ravel(dual.toarray() if sparse.issparse(dual) else dual)
    return coef, np.atleast_1d(svc.intercept_)


def _check_size(estimator: Any, n_fitted: int, n: int) -> None:
    """ValueError if the classifier was fitted on more or fewer samples."""
    if n_fitted != n:
        raise ValueError(
            f"X has {n} samples, but the {type(estimator).__name__} was fitted on "
            f"{n_fitted}. Pass the X and y that it was fitted on."
        )


def _geometry(classifier: Any, X: Any) -> tuple[FloatArray, FloatArray]:
    """Return the Gram matrix, and the squared distances between inputs.

    With a precomputed kernel the inputs are unknown: their distances are those in
    feature space.
    """
    if classifier.kernel == "precomputed":
        K = check_gram(X)
        return K, feature_squares(K)
    gamma = None
    if not callable(classifier.kernel):
        gamma = getattr(classifier, "gamma_", None)
        gamma = resolve_gamma(classifier.gamma, X) if gamma is None else gamma
    K = gram_matrix(
        X,
        kernel=classifier.kernel,
        gamma=gamma,
        degree=classifier.degree,
        coef0=classifier.coef0,
    )
    return K, euclidean_distances(X, squared=True)


def _kernel_of(estimator: Any) -> Any:
    """Return the classifier that knows the kernel."""
    if isinstance(estimator, OneVsRestClassifier):
        return estimator.estimators_[0]
    return estimator


def _has_box(estimator: Any) -> bool:
    """Whether the coefficients are alpha of an SVM, which are at most C."""
    return isinstance(_kernel_of(estimator), SVC | sklearn.svm.SVC)


def _boxes(estimator: Any, codes: IntArray) -> FloatArray | None:
    """Return C of each sample, if there is one, without sample weights."""
    classifier = _kernel_of(estimator)
    if not hasattr(classifier, "C"):
        return None
    weights = getattr(classifier, "class_weight_", None)
    if weights is None or len(weights) != len(estimator.classes_):
        weights = np.ones(len(estimator.classes_))
    return float(classifier.C) * np.asarray(weights)[codes]
