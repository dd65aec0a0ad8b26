# SPDX-License-Identifier: BSD-3-Clause
"""What classifiers by kernel expansions share: f(x) = sum_j coef_j K(x, x_j) + b.

Two classes have one f; with more, each class has one against the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_features
from leaveout.engine._problem import TIE
from leaveout.kernel._gram import check_gram, evaluate_expansion
from leaveout.loo._task import Task


class KernelClassifier(ClassifierMixin, BaseEstimator):
    """Base of the classifiers that keep the coefficients of all samples.

    A subclass has the parameters of a kernel, ``class_weight`` and ``fit_intercept``,
    and the key of its family in ``FAMILIES``.
    """

    _family: str

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input, or a Gram matrix as input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def decision_function(self, X: Any) -> FloatArray:
        """Return f, positive for ``classes_[1]``, or one column per class.

        X are samples; if kernel="precomputed", their kernel values with the training
        samples, (n_samples, n_training_samples).
        """
        values = self._values(X)
        return values[:, -1] if len(self.classes_) == 2 else values

    def _values(self, X: Any) -> FloatArray:
        """Values of all expansions, one column each."""
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
        """Coefficients of the support vectors, one column per expansion."""
        return self.expansion_coef_[:, self.support_].T

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each sample; X as in :meth:`decision_function`."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return self.classes_[(values > TIE).astype(np.intp)]
        # Samples on the margin of two classes have f = -1 in both: the first wins,
        # whatever the last bits are.
        best = values.max(axis=1, keepdims=True)
        return self.classes_[np.argmax(values >= best - TIE, axis=1)]

    def _store_task(self, task: Task, support: IntArray) -> None:
        """Set the fitted attributes that all have."""
        self.classes_ = task.target.classes
        self.class_weight_ = task.class_weight
        self.gamma_ = task.gram.gamma
        self.shape_fit_ = task.X.shape
        self.support_ = support
        self.support_vectors_ = (
            np.empty((0, 0)) if self.kernel == "precomputed" else task.X[support]
        )

    def _store_expansion(self, task: Task, solutions: Sequence[Any]) -> None:
        """Set the fitted attributes of the linear programs."""
        self.expansion_coef_ = task.unscale(
            np.array([solution.coef for solution in solutions])
        )
        self.intercept_ = np.array([solution.intercept for solution in solutions])
        self.objective_: Any = task.unscale(
            np.array([solution.objective for solution in solutions])
        )
        self.duality_gap_: Any = np.array(
            [solution.duality_gap for solution in solutions]
        )
        self.n_iter_: Any = np.array([solution.n_iter for solution in solutions])
        self._store_task(task, np.flatnonzero(self.expansion_coef_.any(axis=0)))
