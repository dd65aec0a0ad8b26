# SPDX-License-Identifier: BSD-3-Clause
"""Coefficients, kernel and distances of a fitted kernel classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_labels
from leaveout.kernel._gram import (
    check_gram,
    gram_matrix,
    kernel_parameters,
    resolve_gamma,
)

NEEDED = (
    "Use a classifier that is a kernel expansion: an SVC for two classes "
    "(scikit-learn's or leaveout's), OneVsRestClassifier(SVC()), a classifier with the "
    "attributes of leaveout.KernelExpansion such as LPMClassifier, or a Pipeline "
    "ending in one."
)


@runtime_checkable
class KernelExpansion(Protocol):
    """What :class:`LooPredictor` needs of a fitted classifier: a kernel expansion.

    A class does not need to inherit from it; attributes and ``predict`` are enough. Its
    decision values are sum_j a_j K(x, x_j) + b over its training samples x_j. To be
    fitted by ``LooPredictor``, it also needs ``fit`` and ``get_params``, as every
    classifier of scikit-learn has them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    expansion_coef_ : ndarray of shape (n_classifiers, n_samples) or (n_samples,)
        Coefficients a, one per training sample and in their order. With two classes
        there is one classifier, positive for ``classes_[1]``; with more, one per class.
    intercept_ : float or ndarray of shape (n_classifiers,)
        Intercepts b.
    kernel : str or callable
        As in :class:`SVC`: the name of a kernel, "precomputed", or a function of two
        matrices. Where a named kernel uses them, ``gamma``, ``degree`` and ``coef0``
        must be attributes, too.
    row_dual_ : ndarray of shape (n_classifiers, n_samples), optional
        Dual variables of the constraints, if they differ from the coefficients, as in
        :class:`LPMClassifier`. They are divided by ``C``, if there is one.

    Examples
    --------
    Kernel ridge regression on labels -1 and 1:

    >>> import numpy as np
    >>> import leaveout as lo
    >>> from sklearn.base import BaseEstimator, ClassifierMixin
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> class KernelRidge(ClassifierMixin, BaseEstimator):
    ...     kernel = "rbf"
    ...     def __init__(self, alpha=1.0, gamma=0.1):
    ...         self.alpha, self.gamma = alpha, gamma
    ...     def fit(self, X, y):
    ...         self.classes_, codes = np.unique(y, return_inverse=True)
    ...         K = rbf_kernel(X, gamma=self.gamma) + self.alpha * np.eye(len(X))
    ...         self.expansion_coef_ = np.linalg.solve(K, 2.0 * codes - 1.0)
    ...         self.X_, self.intercept_ = X, 0.0
    ...         return self
    ...     def predict(self, X):
    ...         values = rbf_kernel(X, self.X_, gamma=self.gamma) @ self.expansion_coef_
    ...         return self.classes_[(values > 0).astype(int)]
    >>> X, y = lo.data.make_banana(40, random_state=0)
    >>> isinstance(KernelRidge().fit(X, y), lo.KernelExpansion)
    True
    """

    classes_: Any
    expansion_coef_: Any
    intercept_: Any
    kernel: Any

    def predict(self, X: Any) -> Any:
        """Return the class label of each row of X."""


KernelExpansion.__module__ = "leaveout"  # where users find it


@dataclass(frozen=True)
class FittedExpansion:
    """Classifiers f_c(x) = sum_j coef_cj K(x, x_j) + b_c on their training set.

    For two classes ``coef`` has one row, positive for class 1; for more, one per class.
    ``squares`` holds the squared distances of the inputs. ``bound`` and ``row_bound``
    are upper bounds of each sample's absolute coefficient and dual variable.
    ``row_dual`` is for classifiers whose coefficients are not dual variables (LPM).
    """

    K: FloatArray  # (n, n)
    squares: FloatArray  # (n, n)
    codes: IntArray  # (n,), class of each sample, from 0
    coef: FloatArray  # (n_classifiers, n)
    intercept: FloatArray  # (n_classifiers,)
    bound: FloatArray | None = None  # (n,)
    row_dual: FloatArray | None = None  # (n_classifiers, n)
    row_bound: FloatArray | None = None  # (n,)

    @property
    def rows(self) -> IntArray:
        """Row of ``coef`` for the class of each sample."""
        return self.codes if self.coef.shape[0] > 1 else np.zeros_like(self.codes)

    @property
    def signs(self) -> FloatArray:
        """-1 where that row's classifier is positive for the other class, else 1."""
        if self.coef.shape[0] > 1:
            return np.ones(self.codes.size)
        return np.where(self.codes == 1, 1.0, -1.0)


def read_expansion(estimator: Any, X: Any, y: Any) -> FittedExpansion:
    """Return the expansion of a classifier fitted on X and y; fit a clone if needed.

    Raises TypeError if it is not a kernel expansion, ValueError if it was fitted on
    other samples or is an SVC with more than two classes.
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
    one = estimator
    if isinstance(estimator, OneVsRestClassifier):
        one = estimator.estimators_[0]
    _check_kind(one)
    K, squares = _geometry(one, X)
    coef, intercept = _coefficients(estimator, X, K)
    row_dual = getattr(estimator, "row_dual_", None)
    bound = _bounds(one, len(estimator.classes_), codes)
    return FittedExpansion(
        K=K,
        squares=squares,
        codes=codes,
        coef=coef,
        intercept=intercept,
        bound=bound if _is_svc(one) else None,
        row_dual=None if row_dual is None else np.atleast_2d(row_dual),
        row_bound=bound,
    )


def _encode(estimator: Any, labels: Any) -> IntArray:
    """Return the position of each label among the classes of the classifier."""
    classes = np.asarray(estimator.classes_)
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"y has the label {unknown[0]!r}, which is not one of the classifier's "
            f"classes {classes.tolist()}. Pass the X and y that it was fitted on."
        )
    return np.searchsorted(classes, labels)


def _check_kind(classifier: Any) -> None:
    """Raise if the classifier is neither an SVC nor a KernelExpansion."""
    if _is_svc(classifier) or isinstance(classifier, KernelExpansion):
        return
    name, missing = type(classifier).__name__, ""
    if hasattr(classifier, "expansion_coef_"):
        wanted = [*KernelExpansion.__annotations__, "predict"]
        lacks = [each for each in wanted if not hasattr(classifier, each)]
        missing = f": it has expansion_coef_, but not {', '.join(lacks)}"
    raise TypeError(f"{name} is not supported{missing}. {NEEDED}")


def _coefficients(estimator: Any, X: Any, K: FloatArray) -> tuple[Any, Any]:
    """Return signed coefficients, one row per classifier, and the intercepts."""
    if isinstance(estimator, OneVsRestClassifier):
        pairs = [_coefficients(each, X, K) for each in estimator.estimators_]
        coefs, intercepts = zip(*pairs, strict=True)
        return np.concatenate(coefs), np.concatenate(intercepts)
    if _is_svc(estimator):
        return _svc_coefficients(estimator, X)
    coef = np.atleast_2d(np.asarray(estimator.expansion_coef_, dtype=np.float64))
    intercept = np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64))
    _check_size(estimator, coef.shape[1], X.shape[0])
    _check_expansion(estimator, X, K @ coef.T + intercept)
    return coef, intercept


def _check_expansion(estimator: Any, X: Any, values: FloatArray) -> None:
    """Raise if ``predict`` contradicts the decision values of the expansion."""
    name, n_classes = type(estimator).__name__, len(estimator.classes_)
    n_wanted = 1 if n_classes == 2 else n_classes
    if values.shape[1] != n_wanted:
        raise ValueError(
            f"The {name} has {n_classes} classes, so expansion_coef_ must have "
            f"{n_wanted} row(s) and intercept_ as many values; they give "
            f"{values.shape[1]} decision values per sample."
        )
    if n_wanted == 1:
        values = np.hstack([-values, values])
    labels = _encode(estimator, estimator.predict(X))
    predicted = np.take_along_axis(values, labels[:, None], axis=1)[:, 0]
    differs = predicted < values.max(axis=1) - 1e-6 * np.abs(values).max()
    if differs.any():
        raise ValueError(
            f"predict of the {name} contradicts its kernel expansion for "
            f"{np.count_nonzero(differs)} of {differs.size} samples: the sign of "
            "K @ expansion_coef_ + intercept_ (positive for classes_[1]), or with more "
            "classes the largest value, must give the label. Pass the X that it was "
            "fitted on, and check the sign of the coefficients and the kernel."
        )


def _is_svc(estimator: Any) -> bool:
    """Return whether it is scikit-learn's or leaveout's SVC, without importing it."""
    return any(base.__name__ == "SVC" for base in type(estimator).__mro__)


def _svc_coefficients(svc: Any, X: Any) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and intercept of an SVC for two classes."""
    if len(svc.classes_) > 2:
        raise ValueError(
            f"The SVC has {len(svc.classes_)} classes and one classifier per pair of "
            "them. Use OneVsRestClassifier(SVC()), which has one per class."
        )
    _check_size(svc, svc.shape_fit_[0], X.shape[0])
    if svc.kernel != "precomputed":
        if (X[svc.support_] != svc.support_vectors_).sum():
            raise ValueError(
                "The SVC was fitted on other samples: its support vectors are not the "
                "rows support_ of X. Pass the X that it was fitted on."
            )
    dual = svc.dual_coef_
    coef = np.zeros((1, X.shape[0]))
    coef[0, svc.support_] = np.ravel(dual.toarray() if sparse.issparse(dual) else dual)
    return coef, np.atleast_1d(svc.intercept_)


def _check_size(estimator: Any, n_fitted: int, n: int) -> None:
    """Raise if the classifier was fitted on more or fewer samples."""
    if n_fitted != n:
        raise ValueError(
            f"X has {n} samples, but the {type(estimator).__name__} was fitted on "
            f"{n_fitted}. Pass the X and y that it was fitted on."
        )


def _geometry(classifier: Any, X: Any) -> tuple[FloatArray, FloatArray]:
    """Return the Gram matrix and the squared distances of the inputs.

    For a precomputed kernel these are distances in feature space.
    """
    if classifier.kernel == "precomputed":
        K = check_gram(X)
        return K, feature_squares(K)
    names = kernel_parameters(classifier.kernel)
    missing = [name for name in names if not hasattr(classifier, name)]
    if missing:
        raise TypeError(
            f"{type(classifier).__name__} has kernel={classifier.kernel!r}, but no "
            f"attribute {missing[0]!r}, which this kernel uses. Set it."
        )
    parameters = {name: getattr(classifier, name) for name in names}
    if isinstance(parameters.get("gamma"), str):
        gamma = getattr(classifier, "gamma_", None)
        parameters["gamma"] = (
            resolve_gamma(classifier.gamma, X) if gamma is None else gamma
        )
    K = gram_matrix(X, kernel=classifier.kernel, **parameters)
    return K, euclidean_distances(X, squared=True)


def _bounds(classifier: Any, n_classes: int, codes: IntArray) -> FloatArray | None:
    """Return C_i per sample, without sample weights; None if there is no C."""
    if not hasattr(classifier, "C"):
        return None
    weights = getattr(classifier, "class_weight_", None)
    if weights is None or len(weights) != n_classes:
        weights = np.ones(n_classes)
    return float(classifier.C) * np.asarray(weights)[codes]


def feature_squares(K: FloatArray) -> FloatArray:
    """Return all squared distances in feature space."""
    diagonal = K.diagonal()
    return np.maximum(np.add.outer(diagonal, diagonal) - 2.0 * K, 0.0)
