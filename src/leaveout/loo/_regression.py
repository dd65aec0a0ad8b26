# SPDX-License-Identifier: BSD-3-Clause
"""LooRegressionResult and LooRegressionPath: exact leave-one-out of a regressor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.loo._result import ExactResult, ResultPath

if TYPE_CHECKING:
    import pandas as pd

# Predictions whose interval is longer than this share of the spread of y are ambiguous.
UNIQUE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class LooRegressionResult(ExactResult):
    """Exact leave-one-out of a regressor.

    Parameters
    ----------
    predictions : ndarray of shape (n,)
        Prediction for each sample by the regressor trained without it.
    y : ndarray of shape (n,)
        True values.
    lower, upper : ndarray of shape (n,)
        Interval of the prediction over all optimal intercepts; ``predictions`` are in
        its middle, as in LIBSVM. The ends are equal if the intercept is unique.
    settled_by : ndarray of str, shape (n,)
        How the value was found.
    uncertified_by : ndarray of str, shape (n,)
        Why a prediction is not certified: "not_converged", "rounding" or
        "indefinite_kernel"; empty if it is.
    method : str
        "walk" or "refit".
    counts : mapping
        pivots, refits, seconds …
    weights : ndarray of shape (n,), optional
        Weights of the samples in ``q2``, ``rmse`` and ``mae``.
    groups : ndarray of int, shape (n,), optional
        Number of the group each sample was left out with.
    preprocessing : mapping of str to str
        How each step of a Pipeline was fitted, as in :class:`LooResult`.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> res = lo.leave_one_out(SVR(C=100, epsilon=10), X, y)
    >>> res
    <LooRegressionResult: leave-one-out Q2 0.457, RMSE 56.74, MAE 43.76, 442 samples>
    """

    __module__ = "leaveout"

    predictions: FloatArray
    y: FloatArray
    lower: FloatArray
    upper: FloatArray
    settled_by: np.ndarray
    uncertified_by: np.ndarray
    method: str
    counts: Mapping[str, float] = field(default_factory=dict)
    weights: FloatArray | None = None
    groups: IntArray | None = None
    preprocessing: Mapping[str, str] = field(default_factory=dict)

    @property
    def residuals(self) -> FloatArray:
        """True value minus left-out prediction, (n,)."""
        return self.y - self.predictions

    @property
    def q2(self) -> float:
        """Cross-validated R2: 1 - sum (y - prediction)^2 / sum (y - mean of y)^2.

        The mean is that of all samples, so this equals scikit-learn's ``r2_score`` of
        all left-out predictions together. The mean of the other samples is the fairer
        comparison: it predicts without the sample, too. For n samples of equal weight,
        left out one by one, that value is 1 - (1 - q2) (1 - 1/n)^2, slightly larger.
        """
        deviations = self.y - np.average(self.y, weights=self.weights)
        total = float(np.average(deviations**2, weights=self.weights))
        left = self.rmse**2
        if total == 0.0:
            return 1.0 if left == 0.0 else 0.0
        return 1.0 - left / total

    @property
    def rmse(self) -> float:
        """Root of the mean squared residual (weighted if weights were given)."""
        return float(np.sqrt(np.average(self.residuals**2, weights=self.weights)))

    @property
    def mae(self) -> float:
        """Mean absolute residual (weighted if weights were given)."""
        return float(np.average(np.abs(self.residuals), weights=self.weights))

    @property
    def ambiguous(self) -> BoolArray:
        """Whether another optimal intercept gives another prediction, (n,)."""
        return self.upper - self.lower > UNIQUE * (float(np.ptp(self.y)) or 1.0)

    @property
    def n_ambiguous(self) -> int:
        """Number of ambiguous samples."""
        return int(self.ambiguous.sum())

    def to_frame(self) -> pd.DataFrame:
        """Return one row per sample (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(
            {
                "y": self.y,
                "prediction": self.predictions,
                "residual": self.residuals,
                "lower": self.lower,
                "upper": self.upper,
                "certified": self.certified,
                "settled_by": self.settled_by,
            }
        )

    def _verdict(self) -> str:
        return (
            f"leave-one-out Q2 {self.q2:.3f}, RMSE {self.rmse:.4g}, "
            f"MAE {self.mae:.4g}, {self.y.shape[0]} samples"
        )

    def _rows(self) -> list[tuple[str, Any]]:
        return [
            ("samples", self.y.shape[0]),
            ("Q2", f"{self.q2:.3f}"),
            ("RMSE", f"{self.rmse:.4g}"),
            ("MAE", f"{self.mae:.4g}"),
            ("ambiguous", self.n_ambiguous),
            *self._cost_rows(),
        ]


@dataclass(frozen=True, eq=False, repr=False)
class LooRegressionPath(ResultPath):
    """Leave-one-out results of a regressor over a list of C.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        The values of C, as they were given.
    results : tuple of LooRegressionResult
        One for each C.
    """

    __module__ = "leaveout"

    @property
    def q2(self) -> FloatArray:
        """Cross-validated R2 for each C, (n_Cs,)."""
        return np.array([result.q2 for result in self.results])

    @property
    def rmse(self) -> FloatArray:
        """Root mean squared residual for each C, (n_Cs,)."""
        return np.array([result.rmse for result in self.results])

    @property
    def mae(self) -> FloatArray:
        """Mean absolute residual for each C, (n_Cs,)."""
        return np.array([result.mae for result in self.results])

    @property
    def predictions(self) -> FloatArray:
        """Left-out predictions, (n_Cs, n_samples)."""
        return np.stack([result.predictions for result in self.results])

    @property
    def best_index(self) -> int:
        """Position of the largest ``q2``; among equals, of the smallest C."""
        return int(np.lexsort((self.Cs, -self.q2))[0])

    def _verdict(self) -> str:
        best = self.results[self.best_index].q2
        return f"largest of {len(self)} Q2 {best:.3f}, at C = {self.best_C:.4g}"

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("C", "Q2", "RMSE", "MAE", "")]
        for k, (C, own) in enumerate(zip(self.Cs, self.results, strict=True)):
            numbers = f"{own.q2:.3f}", f"{own.rmse:.4g}", f"{own.mae:.4g}"
            mark = "best" if k == self.best_index else ""
            rows.append((f"{C:.4g}", *numbers, mark))
        return rows
