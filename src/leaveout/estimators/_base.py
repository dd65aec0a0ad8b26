# SPDX-License-Identifier: BSD-3-Clause
"""Base classes of the kernel expansions f(x) = sum_j coef_j K(x, x_j) + b.

A regressor has one f, as has a classifier of two classes; for more, there is usually
one per class against the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._problem import TIE
from leaveout.exceptions import CertificateWarning

if TYPE_CHECKING:
    from leaveout.loo._task import Task


class KernelModel(BaseEstimator):
    """Base class of leaveout's kernel classifiers and regressors.

    A subclass has the parameters of a kernel and ``_family``, its key in ``FAMILIES``.
    """

    _family: str

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input, or a Gram matrix as input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def _values(self, X: Any) -> FloatArray:
        """Return the values of all expansions, one column each."""
        from leaveout.adapt._checks import check_features
        from leaveout.kernel._gram import check_gram, evaluate_expansion

        check_is_fitted(self)
        X = check_features(self, X, reset=False)
        if self.kernel == "precomputed":
            X = check_gram(X, n_columns=self.shape_fit_[0])[:, self.support_]
        return evaluate_expansion(
            X,
            self.support_vectors_,
            self._columns(),
            self.intercept_,
            kernel=self.kernel,
            gamma=self.gamma_,
            degree=self.degree,
            coef0=self.coef0,
        )

    def _columns(self) -> FloatArray:
        """Return the coefficients of the support vectors, one column per expansion."""
        return self.expansion_coef_[:, self.support_].T

    def _store_task(self, task: Task, support: IntArray) -> None:
        """Set the fitted attributes that all models share."""
        self.gamma_ = task.gram.gamma
        self.shape_fit_ = task.X.shape
        self.support_ = support
        self.support_vectors_ = (
            np.empty((0, 0)) if self.kernel == "precomputed" else task.X[support]
        )

    def _warn_indefinite(self, task: Task, stacklevel: int) -> None:
        """Warn that the kernel is not positive semi-definite, with the eigenvalue."""
        from leaveout.kernel._symmetric import smallest_eigenvalue

        least = smallest_eigenvalue(np.ldexp(task.K, task.gram.exponent))
        warnings.warn(
            f"The kernel {self.kernel!r} is not positive semi-definite on these data: "
            f"its smallest eigenvalue is {least:.2g}, so the optimum cannot be "
            "certified. Use another kernel or other kernel parameters, or set the "
            "negative eigenvalues of the matrix to zero.",
            CertificateWarning,
            stacklevel=stacklevel + 1,
        )


class KernelClassifier(ClassifierMixin, KernelModel):
    """Base class of leaveout's kernel classifiers.

    A subclass also has the parameters ``class_weight`` and ``fit_intercept``.
    """

    def decision_function(self, X: Any) -> FloatArray:
        """Evaluate the decision function for the samples in X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; if kernel="precomputed", their kernel values with the training
            samples, of shape (n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes f, positive for ``classes_[1]``; otherwise one column per
            class.
        """
        values = self._values(X)
        return values[:, -1] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels for the samples in X.

        Parameters are those of :meth:`decision_function`.
        """
        values = self.decision_function(X)
        if values.ndim == 1:
            return self.classes_[(values > TIE).astype(np.intp)]
        # Samples on the margin of two classes have f = -1 in both. The first class
        # wins, independently of rounding.
        best = values.max(axis=1, keepdims=True)
        return self.classes_[np.argmax(values >= best - TIE, axis=1)]

    def _store_task(self, task: Task, support: IntArray) -> None:
        """Set the fitted attributes that all classifiers share."""
        super()._store_task(task, support)
        self.classes_ = task.target.classes
        self.class_weight_ = task.class_weight

    def _store_expansion(self, task: Task, solutions: Sequence[Any]) -> None:
        """Set the fitted attributes of the linear programs."""
        self.expansion_coef_ = task.unscale(stack(solutions, "coef"))
        self.intercept_ = stack(solutions, "intercept")
        self.objective_: Any = task.unscale(stack(solutions, "objective"))
        self.duality_gap_: Any = stack(solutions, "duality_gap")
        self.n_iter_: Any = stack(solutions, "n_iter")
        self._store_task(task, np.flatnonzero(self.expansion_coef_.any(axis=0)))


def stack(solutions: Sequence[Any], name: str) -> NDArray[Any]:
    """Return one attribute of all solutions as an array."""
    return np.array([getattr(solution, name) for solution in solutions])
