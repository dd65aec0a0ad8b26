# SPDX-License-Identifier: BSD-3-Clause
"""Scores of pooled left-out predictions, with jackknife standard errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, check_scoring, hinge_loss, make_scorer
from sklearn.utils.metadata_routing import process_routing

from leaveout._messages import list_names
from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import count_rows
from leaveout.adapt._pipeline import take_rows
from leaveout.adapt._unwrap import predicts_numbers
from leaveout.exceptions import PooledScoreWarning
from leaveout.loo._regression import LooRegressionResult
from leaveout.loo._result import LooResult

PROBABILITIES = {"predict_proba", "predict_log_proba"}
# Scorers of this type use only predictions and labels, not X.
MetricScorer = type(make_scorer(accuracy_score))
# scikit-learn has this metric, but no name for its scorer.
OWN_SCORERS = {
    "neg_hinge_loss": make_scorer(
        hinge_loss, greater_is_better=False, response_method="decision_function"
    )
}


class PooledModel(BaseEstimator):
    """Left-out predictions, presented to a scorer as a fitted model.

    A scorer must call it with all ``rows``; ``used`` records the methods that were
    called, ``ranked`` the names of scorers that compared decision values.
    """

    available = "predict"

    def __init__(self, result: Any, rows: IntArray | None = None) -> None:
        self.result = result
        self.rows = rows
        self.used: set[str] = set()
        self.ranked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        """Raise with an explanation; record a request for probabilities."""
        if name in PROBABILITIES:
            self.used.add(name)
        raise AttributeError(
            f"scoring uses {name!r}, but it is called with left-out predictions, not "
            f"with a fitted model. Available: {self.available}."
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction for each row by the model trained without it."""
        return self._pick("predict", X, self.result.predictions)

    def _pick(self, method: str, X: Any, values: NDArray[Any]) -> NDArray[Any]:
        self.used.add(method)
        values = values if self.rows is None else values[self.rows]
        if count_rows(X) != values.shape[0]:
            raise ValueError(
                f"scoring calls {method} with {count_rows(X)} rows, but left-out "
                f"predictions exist only for all {values.shape[0]} rows together. Call "
                f"{method} with the X passed to the scorer."
            )
        return values


class PooledRegressor(RegressorMixin, PooledModel):
    """Left-out predictions of a regressor."""


class PooledClassifier(ClassifierMixin, PooledModel):
    """Left-out labels and decision values of a classifier."""

    available = "predict, decision_function and classes_"

    def __init__(self, result: LooResult, rows: IntArray | None = None) -> None:
        super().__init__(result, rows)
        self.classes_ = np.unique(result.y)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of each row by the model trained without it."""
        return self._pick("decision_function", X, self.result.decision_values)


def pool(result: Any, rows: IntArray | None = None) -> PooledModel:
    """Return a result as the model that a scorer calls."""
    regression = isinstance(result, LooRegressionResult)
    return (PooledRegressor if regression else PooledClassifier)(result, rows)


def identical_rows(*columns: NDArray[Any]) -> list[tuple[IntArray, int]]:
    """Return one row of each kind, and the number of rows equal to it."""
    codes = [np.unique(column, return_inverse=True)[1] for column in columns]
    _, first, counts = np.unique(
        np.column_stack(codes), axis=0, return_index=True, return_counts=True
    )
    return [(np.array([row]), int(k)) for row, k in zip(first, counts, strict=True)]


def random_blocks(n: int, groups: IntArray | None = None) -> list[tuple[IntArray, int]]:
    """Split all rows into at most 50 reproducible blocks; groups stay together."""
    groups = np.arange(n) if groups is None else groups
    n_groups = int(groups.max()) + 1
    order = np.random.default_rng(0).permutation(n_groups)
    parts = np.array_split(order, min(n_groups, 50))  # accurate to about 10 %
    return [(np.flatnonzero(np.isin(groups, part)), 1) for part in parts]


def standard_errors(
    score: Callable[[IntArray], Mapping[str, float]],
    scores: Mapping[str, float],
    blocks: list[tuple[IntArray, int]],
    n: int,
) -> dict[str, float]:
    """Return the jackknife standard error of each score.

    ``blocks`` holds rows to leave out together, and the number of blocks with the same
    effect. For a mean theta and a block b of m rows, (n - m) (theta - theta_(-b)) is
    the sum of x - theta over b; for the accuracy p this gives sqrt(p (1 - p) / n).
    """
    squares = dict.fromkeys(scores, 0.0)
    for rows, n_alike in blocks:
        rest = np.delete(np.arange(n), rows)
        without = score(rest) if rest.size else dict.fromkeys(scores, np.nan)
        for name in scores:
            effect = rest.size * (scores[name] - without[name])
            squares[name] += n_alike * effect**2
    return {name: float(np.sqrt(square)) / n for name, square in squares.items()}


@dataclass
class Scoring:
    """The scorers of a search by name; a single one is named "score"."""

    scorers: dict[str, Callable[..., Any]]
    router: Any  # the scorer for scikit-learn's metadata routing
    multimetric: bool
    is_accuracy: bool  # computed from the LooResult
    error_score: Any = "raise"
    params: dict[str, dict[str, Any]] = field(default_factory=dict)  # metadata of each
    label: str = "score"  # of a single scorer, in messages
    warned: bool = False  # about pooled decision values

    def label_of(self, name: str) -> str:
        """Return the name of a scorer as the user wrote it."""
        return name if self.multimetric else self.label

    def route(self, metadata: Mapping[str, Any]) -> None:
        """Store the metadata that each scorer requests, by metadata routing."""
        if self.multimetric:
            routed = process_routing(self.router, "score", **metadata)
            self.params = {name: dict(routed[name].score) for name in self.scorers}
        else:
            self.params = {"score": dict(metadata)}

    def pass_weights(self, sample_weight: Any) -> None:
        """Pass the weights to all scorers that take them; warn about the others."""
        for name, scorer in self.scorers.items():
            metric = getattr(scorer, "_score_func", scorer)
            if self.is_accuracy or "sample_weight" in signature(metric).parameters:
                self.params[name] = {"sample_weight": sample_weight}
            else:
                warnings.warn(
                    f"scoring: {self.label_of(name)} does not take sample_weight, so "
                    "all samples count equally in it.",
                    UserWarning,
                    stacklevel=4,
                )

    def score(
        self, result: LooResult | LooRegressionResult, X: Any, y: NDArray[Any]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the scores of pooled predictions, and their standard errors."""
        if self.is_accuracy:
            assert isinstance(result, LooResult)
            accuracy = float(np.average(~result.wrong, weights=result.weights))
            return {"score": accuracy}, {"score": result.standard_error}
        pooled = pool(result)
        scores = self._call(pooled, X, y, self.error_score)
        # With method="bound" all values come from one classifier.
        if pooled.ranked and result.method != "bound" and not self.warned:
            self.warned = True
            warnings.warn(
                f"scoring ({list_names(pooled.ranked)}) ranks the left-out "
                "decision values of all samples together. Each comes from a different "
                "classifier, so such a pooled AUC is too low, on noise far below 0.5. "
                "Use leave_pair_out_auc for an AUC without this bias.",
                PooledScoreWarning,
                stacklevel=4,
            )
        return scores, self._standard_errors(pooled, scores, X, y)

    def _call(
        self, pooled: PooledModel, X: Any, y: NDArray[Any], error_score: Any
    ) -> dict[str, float]:
        """Call every scorer; a scorer may return a dict of named scores."""
        scores: dict[str, float] = {}
        for name, scorer in self.scorers.items():
            params, label = self.params.get(name, {}), self.label_of(name)
            used, pooled.used = pooled.used, set()
            if pooled.rows is not None:
                params = {key: take_rows(v, pooled.rows) for key, v in params.items()}
            try:
                value = scorer(pooled, X, y, **params)
            except Exception as error:
                if isinstance(error, AttributeError) and pooled.used & PROBABILITIES:
                    raise ValueError(
                        f"scoring: {label} needs predict_proba, but leave-one-out of "
                        "an SVC gives decision values, not probabilities. Use a score "
                        "based on labels ('accuracy', 'balanced_accuracy', 'f1', …), "
                        "or leave_pair_out_auc for the AUC."
                    ) from error
                if error_score == "raise":
                    raise
                warnings.warn(
                    f"scoring: {label} failed with {type(error).__name__}: {error} The "
                    f"score is set to {error_score}.",
                    UserWarning,
                    stacklevel=5,
                )
                value = error_score
            # A mean of losses does not compare samples.
            ranks = "decision_function" in pooled.used
            if ranks and scorer not in OWN_SCORERS.values():
                pooled.ranked.append(label)
            pooled.used |= used
            scores.update(value if isinstance(value, dict) else {name: value})
        return {name: _check_score(name, value) for name, value in scores.items()}

    def _standard_errors(
        self,
        pooled: PooledModel,
        scores: dict[str, float],
        X: Any,
        y: NDArray[Any],
    ) -> dict[str, float]:
        """Return jackknife standard errors; NaN if a score is undefined on a part."""
        result, n = pooled.result, y.shape[0]
        labels_only = pooled.used == {"predict"} and not any(self.params.values())
        labels_only &= isinstance(pooled, PooledClassifier)  # numbers hardly repeat
        metrics_only = all(isinstance(s, MetricScorer) for s in self.scorers.values())
        blocks = (
            identical_rows(y, result.predictions)
            if labels_only and metrics_only and result.groups is None
            else random_blocks(n, result.groups)
        )

        def score_rows(rows: IntArray) -> dict[str, float]:
            part = pool(result, rows)
            return self._call(part, take_rows(X, rows), y[rows], "raise")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # already issued for the scores themselves
            try:
                return standard_errors(score_rows, scores, blocks, n)
            except Exception:  # such as the AUC of one class
                return dict.fromkeys(scores, np.nan)


def make_scoring(estimator: Any, scoring: Any, error_score: Any = "raise") -> Scoring:
    """Check ``scoring`` as GridSearchCV does."""
    regression = predicts_numbers(estimator)
    if regression and scoring is None:
        scoring = "r2"
    if isinstance(scoring, list | tuple | set):
        scoring = {name: name for name in scoring}
    if not isinstance(scoring, Mapping):
        is_accuracy = not regression and scoring in (None, "accuracy")
        scorer = check_scoring(estimator, scoring=_own_scorer(scoring))
        found = Scoring({"score": scorer}, scorer, False, is_accuracy, error_score)
        return replace(found, label=scoring) if isinstance(scoring, str) else found
    scoring = {name: _own_scorer(own) for name, own in scoring.items()}
    router = check_scoring(estimator, scoring=scoring)
    scorers = {name: check_scoring(estimator, scoring=s) for name, s in scoring.items()}
    return Scoring(scorers, router, True, False, error_score)


def _own_scorer(scoring: Any) -> Any:
    return OWN_SCORERS.get(scoring, scoring) if isinstance(scoring, str) else scoring


def _check_score(name: str, value: Any) -> float:
    """Return the score as a number."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(
            f"scoring must return a number; {name} returned {value!r} "
            f"({type(value).__name__})."
        )
    return float(value)
