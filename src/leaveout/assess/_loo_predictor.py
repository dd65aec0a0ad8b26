# SPDX-License-Identifier: BSD-3-Clause
"""LooPredictor: leave-one-out errors estimated from one fit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leaveout._typing import BoolArray, FloatArray
from leaveout.adapt._checks import check_count, check_number
from leaveout.adapt._fitted import FittedExpansion, read_expansion
from leaveout.assess._leave_one_out import leave_one_out
from leaveout.assess._loo_features import (
    VARIANTS,
    leave_one_out_features,
    name_features,
)
from leaveout.lp._highs import solve_sparse_linear

FEWEST_SAMPLES = 5
# Attributes in the JSON of a predictor, besides its parameters.
SUMMARY = ("feature_names_", "n_samples_", "error_rate_", "duality_gap_")
LEARNED = ("mean_", "scale_", "low_", "high_", "coef_", "intercept_")


class LooPredictor(BaseEstimator):
    """Predict which samples a kernel classifier misclassifies when they are left out.

    It learns from classifiers whose exact left-out labels are known. Features of a
    sample and its three nearest neighbours (coefficients, margins, distances) and their
    products of degree two are the input of a sparse linear classifier. The result is an
    *estimate*, for classifiers without an exact method. For an SVC,
    :func:`leave_one_out` is exact and about as fast.

    Parameters
    ----------
    variant : {"natural", "signed", "scaled", "printed"}, default="natural"
        Units of the features. "natural": margins y f and coefficients times the largest
        squared distance in feature space. "signed": margins y f / ||w|| and the
        coefficients. "scaled": like "signed", with coefficients divided by their upper
        bound C, or by the largest one if they have no bound. "printed": f / ||w||^2 and
        absolute values, as in the paper.
    C : float, default=1.0
        Weight of the losses against the 1-norm of the coefficients. It is multiplied by
        1000 / n_samples.
    max_samples : int, default=4000
        Maximum number of training samples; a random subset is drawn if there are more.
    n_jobs : int, default=None
        Number of threads for the exact leave-one-out in ``fit``.
    random_state : int, RandomState instance or None, default=None
        Controls the random subset of training samples.

    Attributes
    ----------
    feature_names_ : list of str
        The 14 features, or 18 if the classifiers have ``row_dual_``.
    coef_ : ndarray of shape (n_monomials,)
        Weights of the features and their products; positive for a correct label.
    intercept_ : float
        Intercept.
    mean_, scale_, low_, high_ : ndarray of shape (n_features,)
        Statistics used to clip features to the training range and to standardise them.
    n_samples_ : int
        Number of training samples.
    error_rate_ : float
        Fraction of left-out errors among them.
    duality_gap_ : float
        Duality gap of the linear program.

    Notes
    -----
    Tsuda, Rätsch, Mika & Müller (2001), Learning to predict the leave-one-out error of
    kernel based classifiers. The paper's margin f / ||w||^2 lacks the label;
    docs/method/predictor compares the variants.

    Examples
    --------
    >>> import leaveout as lo
    >>> from leaveout.data import make_banana, make_mixture
    >>> tasks = []
    >>> for seed in range(4):
    ...     for C in (0.3, 3.0):
    ...         X, y = make_mixture(60, random_state=seed)
    ...         tasks.append((lo.SVC(C=C, gamma=0.01), X, y))
    >>> predictor = lo.LooPredictor(random_state=0).fit(tasks)
    >>> X, y = make_mixture(60, random_state=9)
    >>> svc = lo.SVC(C=1.0, gamma=0.01).fit(X, y)
    >>> predictor.predict_errors(svc, X, y)[:4]
    array([False, False, False, False])
    """

    __module__ = "leaveout"

    def __init__(
        self,
        *,
        variant: str = "natural",
        C: float = 1.0,
        max_samples: int = 4000,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.variant = variant
        self.C = C
        self.max_samples = max_samples
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, tasks: Iterable[tuple[Any, Any, Any]]) -> LooPredictor:
        """Learn from the exact left-out labels of some classifiers.

        ``tasks`` is a list of (classifier, X, y). Classifiers that are not fitted yet
        are cloned and fitted. Either all or none have ``row_dual_``. Ambiguous samples
        are omitted.
        """
        if self.variant not in VARIANTS:
            raise ValueError(
                f"variant must be one of {list(VARIANTS)}; got {self.variant!r}."
            )
        check_number("C", self.C, above=0.0)
        check_count("max_samples", self.max_samples)
        features, right = [], []
        for estimator, X, y in _check_tasks(tasks):
            result = leave_one_out(estimator, X, y, n_jobs=self.n_jobs)
            known = ~result.ambiguous
            features.append(self._features(_expansion(estimator, X, y))[known])
            right.append(~result.wrong[known])
        if len({part.shape[1] for part in features}) > 1:
            raise ValueError(
                "Some of the classifiers have row_dual_ (LPM, LOOM) and some do not, "
                "so their features differ. Train one LooPredictor for each kind."
            )
        return self._learn(np.vstack(features), np.concatenate(right))

    def predict_errors(self, estimator: Any, X: Any, y: Any) -> BoolArray:
        """Return a mask of the samples predicted to be wrong when they are left out.

        The classifier must have been fitted on X and y; otherwise a clone is fitted.
        """
        return self.decision_values(estimator, X, y) < 0.0

    def decision_values(self, estimator: Any, X: Any, y: Any) -> FloatArray:
        """Return the decision values, positive where a correct label is predicted.

        Parameters are those of :meth:`predict_errors`.
        """
        check_is_fitted(self)
        monomials = self._monomials(self._features(_expansion(estimator, X, y)))
        return monomials @ self.coef_ + self.intercept_

    def predict_error_rate(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the fraction of samples predicted to be wrong when left out.

        Parameters are those of :meth:`predict_errors`.
        """
        return float(self.predict_errors(estimator, X, y).mean())

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the predicted accuracy, as a scorer for ``cv=[(rows, rows)]``."""
        return 1.0 - self.predict_error_rate(estimator, X, y)

    def to_json(self, **provenance: Any) -> str:
        """Return the fitted predictor as JSON, with notes on its origin."""
        check_is_fitted(self)
        content = {
            "provenance": provenance,
            "parameters": {name: getattr(self, name) for name in ("variant", "C")},
            **{name: getattr(self, name) for name in SUMMARY},
            **{name: np.asarray(getattr(self, name)).tolist() for name in LEARNED},
        }
        return json.dumps(content, indent=1)

    @classmethod
    def from_json(cls, text: str) -> LooPredictor:
        """Return the predictor that :meth:`to_json` wrote."""
        content = json.loads(text)
        predictor = cls(**content["parameters"])
        for name in SUMMARY:
            setattr(predictor, name, content[name])
        for name in LEARNED:
            value = np.array(content[name], dtype=np.float64)
            setattr(predictor, name, value if value.ndim else float(value))
        return predictor

    @classmethod
    def load_default(cls, kind: str = "svm") -> LooPredictor:
        """Return a predictor included in the package, trained on simulated data.

        Parameters
        ----------
        kind : {"svm", "lpm"}, default="svm"
            "svm" is for classifiers without ``row_dual_``; "lpm" is for those with it,
            trained on ``LPMClassifier``.

        Examples
        --------
        >>> import leaveout as lo
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> X, svc = scale(X), lo.SVC(C=1.0, gamma=0.03)
        >>> predicted = lo.LooPredictor.load_default().predict_error_rate(svc, X, y)
        >>> exact = lo.leave_one_out(svc, X, y).error
        >>> abs(predicted - exact) < 0.01
        True
        """
        if kind not in ("svm", "lpm"):
            raise ValueError(f"kind must be one of 'svm' and 'lpm'; got {kind!r}.")
        name = f"_loo_predictor_{kind}.json"
        return cls.from_json((files(__package__) / name).read_text())

    def _features(self, fitted: FittedExpansion) -> FloatArray:
        """Return the features; raise if they differ from those in training."""
        found = name_features(self.variant, row_dual=fitted.row_dual is not None)
        known = getattr(self, "feature_names_", found)
        if known != found:
            kinds = ["classifiers with row_dual_", "classifiers without row_dual_"]
            has, wants = kinds if len(known) > len(found) else kinds[::-1]
            raise ValueError(
                f"This LooPredictor was trained on {has}, not on {wants}. Train "
                "another one, or use LooPredictor.load_default(kind=...)."
            )
        return leave_one_out_features(fitted, self.variant)

    def _learn(self, features: FloatArray, right: BoolArray) -> LooPredictor:
        """Fit the sparse linear classifier."""
        if right.all() or not right.any():
            what = "no" if right.all() else "only"
            raise ValueError(
                f"The {right.size} left-out samples have {what} errors, so there is "
                "nothing to learn. Add other tasks, or change the classifiers' C."
            )
        random = check_random_state(self.random_state)
        if right.size > self.max_samples:
            rows = np.sort(random.permutation(right.size)[: self.max_samples])
            features, right = features[rows], right[rows]
        self.mean_, self.scale_ = features.mean(axis=0), features.std(axis=0)
        self.scale_[self.scale_ == 0.0] = 1.0
        self.low_, self.high_ = features.min(axis=0), features.max(axis=0)
        monomials = self._monomials(features)
        price = self.C * 1000.0 / right.size
        found = solve_sparse_linear(monomials, np.where(right, 1.0, -1.0), price)
        self.coef_, self.intercept_ = found.coef, found.intercept
        self.duality_gap_ = found.duality_gap
        row_dual = features.shape[1] > len(name_features("natural", row_dual=False))
        self.feature_names_ = name_features(self.variant, row_dual=row_dual)
        self.n_samples_, self.error_rate_ = int(right.size), float(1.0 - right.mean())
        return self

    def _monomials(self, features: FloatArray) -> FloatArray:
        """Return standardised features and their products: 119 from 14, 189 from 18.

        Features are clipped, because products grow fast outside the training range.
        """
        inside = np.clip(features, self.low_, self.high_)
        standard = (inside - self.mean_) / self.scale_
        i, j = np.triu_indices(standard.shape[1])
        return np.hstack([standard, standard[:, i] * standard[:, j]])


def _check_tasks(tasks: Any) -> list[tuple[Any, Any, Any]]:
    """Return the tasks as a list of at least one triple."""
    listed = list(tasks)
    wrong = [task for task in listed if not isinstance(task, tuple) or len(task) != 3]
    if wrong or not listed:
        found = type(wrong[0]).__name__ if wrong else "an empty list"
        raise ValueError(
            f"tasks must be a non-empty list of (estimator, X, y); got {found}."
        )
    return listed


def _expansion(estimator: Any, X: Any, y: Any) -> FittedExpansion:
    """Return the expansion of a classifier; raise if there are too few samples."""
    fitted = read_expansion(estimator, X, y)
    n = fitted.codes.size
    if n < FEWEST_SAMPLES:
        raise ValueError(
            f"X has {n} samples; LooPredictor uses three neighbours and needs at least "
            f"{FEWEST_SAMPLES} samples."
        )
    return fitted
