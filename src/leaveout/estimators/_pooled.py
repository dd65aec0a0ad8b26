# SPDX-License-Identifier: BSD-3-Clause
"""Left-out predictions that scorers can take for a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from leaveout._typing import FloatArray, IntArray
from leaveout.estimators._check import count_rows
from leaveout.loo import LooResult

PROBABILITIES = ("predict_proba", "predict_log_proba")


class PooledClassifier(ClassifierMixin, BaseEstimator):
    """What the n classifiers, each trained without a sample, say of their samples.

    Scorers call it with the rows of ``fit``, once for all of them. It notes in
    ``asked`` which methods they use.

    Parameters
    ----------
    result : LooResult
        The left-out predictions.
    rows : ndarray of int, default=None
        The rows that are scored; all if None.
    """

    def __init__(self, result: LooResult, rows: IntArray | None = None) -> None:
        self.result = result
        self.rows = rows
        self.classes_ = np.unique(result.y)
        self.asked: set[str] = set()

    def __sklearn_is_fitted__(self) -> bool:
        """Nothing is to be fitted."""
        return True

    def __getattr__(self, name: str) -> Any:
        """Note what is missing, and say why."""
        if name in PROBABILITIES:
            self.asked.add(name)
        raise AttributeError(
            f"scoring asks for {name!r}, but gets left-out predictions, not a fitted "
            "classifier: they have predict, decision_function and classes_."
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row by the classifier trained without it."""
        return self._pick("predict", X, self.result.predictions)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of each row by the classifier trained without."""
        return self._pick("decision_function", X, self.result.decision_values)

    def _pick(self, method: str, X: Any, values: NDArray[Any]) -> NDArray[Any]:
        self.asked.add(method)
        values = values if self.rows is None else values[self.rows]
        if count_rows(X) != values.shape[0]:
            raise ValueError(
                f"scoring calls {method} with {count_rows(X)} rows, but each of the "
                f"{values.shape[0]} rows it was given has its own left-out classifier. "
                "Call it with all of them."
            )
        return values
