# SPDX-License-Identifier: BSD-3-Clause
"""Scores from left-out values and their standard errors.

Left-out predictions that scorers can take for a classifier.

Standard error of any score of pooled predictions, by leaving rows out of the score.

For a mean theta of x_1 … x_n, theta - theta_(-b) = (sum_b x - m theta) / (n - m) for a
block b of m rows, so (n - m) (theta - theta_(-b)) is the sum of x - theta over b. For
other scores this is the jackknife's linear term. The squares add up to n^2 times the
variance if rows are independent. For the accuracy p it gives sqrt(p (1 - p) / n).

Scores of left-out predictions: each scorer is called once for all samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, check_scoring, hinge_loss, make_scorer
from sklearn.utils.metadata_routing import process_routing

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import count_rows
from leaveout.adapt._pipeline import take_rows
from leaveout.exceptions import PooledScoreWarning
from leaveout.loo._result import LooResult

PROBABILITIES = ("predict_proba", "predict_log_proba")
# Blocks if every row is different: 50 fix a standard error to a tenth.
N_BLOCKS = 50
# Scorers of this kind see predictions and labels only, never X.
MetricScorer = type(make_scorer(accuracy_score))
# Scores that scikit-learn has, but no name for.
OWN_SCORERS = {
    "neg_hinge_loss": make_scorer(
        hinge_loss, greater_is_better=False, response_method="decision_function"
    )
}


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


@dataclass(frozen=True)
class Block:
    """Rows that are left out of the score together, and how many blocks are like it."""

    rows: IntArray
    n_alike: int = 1


def alike_blocks(*columns: NDArray[Any]) -> list[Block]:
    """One row for all rows that agree in every column: their effect is the same.

    Examples
    --------
    >>> import numpy as np
    >>> blocks = alike_blocks(np.array([0, 1, 0]), np.array(["a", "a", "a"]))
    >>> [(block.rows.tolist(), block.n_alike) for block in blocks]
    [([0], 2), ([1], 1)]
    """
    codes = [np.unique(column, return_inverse=True)[1] for column in columns]
    _, first, counts = np.unique(
        np.column_stack(codes), axis=0, return_index=True, return_counts=True
    )
    return [
        Block(np.array([row]), int(count))
        for row, count in zip(first, counts, strict=True)
    ]


def random_blocks(n: int, groups: IntArray | None = None) -> list[Block]:
    """Return all rows in at most 50 blocks, always the same; groups stay together.

    Examples
    --------
    >>> import numpy as np
    >>> blocks = random_blocks(4, np.array([0, 1, 0, 1]))
    >>> sorted(block.rows.tolist() for block in blocks)
    [[0, 2], [1, 3]]
    """
    groups = np.arange(n) if groups is None else groups
    n_groups = int(groups.max()) + 1
    order, n_blocks = (
        np.random.default_rng(0).permutation(n_groups),
        min(n_groups, N_BLOCKS),
    )
    block = np.empty(n_groups, dtype=np.intp)
    for k, some in enumerate(np.array_split(order, n_blocks)):
        block[some] = k
    return [Block(np.flatnonzero(block[groups] == k)) for k in range(n_blocks)]


def standard_errors(
    score: Callable[[IntArray], Mapping[str, float]],
    scores: Mapping[str, float],
    blocks: list[Block],
    n: int,
) -> dict[str, float]:
    """Return the standard error of each score.

    Parameters
    ----------
    score : callable
        Scores on some of the rows.
    scores : mapping
        Scores on all rows.
    blocks : list of Block
        Together, all rows.
    n : int
        Number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 0.0, 1.0, 1.0])
    >>> mean = lambda rows: {"mean": x[rows].mean()}
    >>> found = standard_errors(mean, {"mean": 0.75}, random_blocks(4), 4)["mean"]
    >>> bool(np.isclose(found, np.sqrt(0.75 * 0.25 / 4)))
    True
    """
    squares = dict.fromkeys(scores, 0.0)
    for block in blocks:
        rest = np.delete(np.arange(n), block.rows)
        without = score(rest) if rest.size else dict.fromkeys(scores, np.nan)
        for name in scores:
            effect = rest.size * (scores[name] - without[name])
            squares[name] += block.n_alike * effect**2
    return {name: float(np.sqrt(square)) / n for name, square in squares.items()}


@dataclass
class Scoring:
    """The scorers of a search, by name.

    Parameters
    ----------
    scorers : dict of str to callable
        ``scorer(estimator, X, y, **params)``; the only one is called "score".
    router : object
        What scikit-learn's metadata routing asks which of them wants which metadata.
    multimetric : bool
        Whether names were given.
    is_accuracy : bool
        Whether the score is the share of right predictions, which a LooResult knows.
    error_score : "raise" or float, default="raise"
        Score where a scorer fails.
    params : dict of str to dict, default={}
        Metadata for each scorer, one entry per row.
    warned : bool, default=False
        Whether it is said already that pooled decision values are a poor ranking.
    """

    scorers: dict[str, Callable[..., Any]]
    router: Any
    multimetric: bool
    is_accuracy: bool
    error_score: Any = "raise"
    params: dict[str, dict[str, Any]] = field(default_factory=dict)
    warned: bool = False

    @property
    def face(self) -> Any:
        """The scorers as GridSearchCV shows them: one, or a dict of them."""
        return self.scorers if self.multimetric else self.scorers["score"]

    def route(self, metadata: Mapping[str, Any]) -> None:
        """Give each scorer what it has requested (scikit-learn's metadata routing)."""
        if self.multimetric:
            routed = process_routing(self.router, "score", **metadata)
            self.params = {name: dict(routed[name].score) for name in self.scorers}
        else:
            self.params = {"score": dict(metadata)}

    def weigh(self, sample_weight: Any) -> None:
        """Give the weights to all scorers that take any; warn of the others."""
        for name, scorer in self.scorers.items():
            metric = getattr(scorer, "_score_func", scorer)
            if self.is_accuracy or "sample_weight" in signature(metric).parameters:
                self.params[name] = {"sample_weight": sample_weight}
            else:
                warnings.warn(
                    f"scoring: {name} takes no sample_weight, so it counts all samples "
                    "alike.",
                    UserWarning,
                    stacklevel=4,
                )

    def score(
        self, result: LooResult, X: Any, y: NDArray[Any]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the scores of pooled predictions, and their standard errors."""
        if self.is_accuracy:
            accuracy = float(np.average(~result.wrong, weights=result.weights))
            return {"score": accuracy}, {"score": result.standard_error}
        pooled = PooledClassifier(result)
        scores = self._call(pooled, X, y, self.error_score)
        # With method="bound" all values are those of one machine; a mean of losses
        # compares no sample with another.
        ranks = any(own not in OWN_SCORERS.values() for own in self.scorers.values())
        several = result.method != "bound" and ranks
        if several and "decision_function" in pooled.asked and not self.warned:
            _warn_pooled(self.scorers)
            self.warned = True
        return scores, self._standard_errors(pooled, scores, X, y)

    def _call(
        self,
        pooled: PooledClassifier,
        X: Any,
        y: NDArray[Any],
        error_score: Any = "raise",
    ) -> dict[str, float]:
        """Call every scorer; one that returns a dict names its own scores."""
        scores: dict[str, float] = {}
        for name, scorer in self.scorers.items():
            params = self.params.get(name, {})
            if pooled.rows is not None:
                params = {key: take_rows(v, pooled.rows) for key, v in params.items()}
            try:
                value = scorer(pooled, X, y, **params)
            except Exception as error:
                missing = isinstance(error, AttributeError)
                if missing and pooled.asked.intersection(PROBABILITIES):
                    raise _no_probabilities(name, self.multimetric) from error
                if error_score == "raise":
                    raise
                warnings.warn(
                    f"scoring: {name} failed with {type(error).__name__}: {error} The "
                    f"score is set to {error_score}.",
                    UserWarning,
                    stacklevel=5,
                )
                value = error_score
            scores.update(value if isinstance(value, dict) else {name: value})
        return {name: _check_score(name, value) for name, value in scores.items()}

    def _standard_errors(
        self,
        pooled: PooledClassifier,
        scores: dict[str, float],
        X: Any,
        y: NDArray[Any],
    ) -> dict[str, float]:
        """Leave rows out of the scores; NaN where they are then undefined."""
        n = y.shape[0]
        labels_only = pooled.asked == {"predict"} and not any(self.params.values())
        metrics_only = all(isinstance(s, MetricScorer) for s in self.scorers.values())
        groups = pooled.result.groups
        blocks = (
            alike_blocks(y, pooled.result.predictions)
            if labels_only and metrics_only and groups is None
            else random_blocks(n, groups)
        )

        def score_rows(rows: IntArray) -> dict[str, float]:
            part = PooledClassifier(pooled.result, rows)
            return self._call(part, take_rows(X, rows), y[rows])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the scores themselves gave them
            try:
                return standard_errors(score_rows, scores, blocks, n)
            except Exception:  # such as the AUC of one class
                return dict.fromkeys(scores, np.nan)


def make_scoring(estimator: Any, scoring: Any, error_score: Any = "raise") -> Scoring:
    """Check ``scoring`` as GridSearchCV does.

    Parameters
    ----------
    estimator : object
        Whose ``score`` counts if scoring is None.
    scoring : None, str, callable, list, tuple or dict
        One scorer, or several by name.
    error_score : "raise" or float, default="raise"
        Score where a scorer fails.
    """
    scoring = _with_own_scorers(scoring)
    router = check_scoring(estimator, scoring=scoring)
    if scoring is None or isinstance(scoring, str) or callable(scoring):
        is_accuracy = scoring is None or scoring == "accuracy"
        return Scoring({"score": router}, router, False, is_accuracy, error_score)
    named = (
        scoring if isinstance(scoring, Mapping) else {name: name for name in scoring}
    )
    scorers = {name: check_scoring(estimator, scoring=s) for name, s in named.items()}
    return Scoring(scorers, router, True, False, error_score)


def _with_own_scorers(scoring: Any) -> Any:
    """Put the scorers in the place of our own names."""
    if isinstance(scoring, str):
        return OWN_SCORERS.get(scoring, scoring)
    if isinstance(scoring, list | tuple | set):
        scoring = {name: name for name in scoring}
    if isinstance(scoring, Mapping):
        return {name: _with_own_scorers(own) for name, own in scoring.items()}
    return scoring


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


def _no_probabilities(name: str, multimetric: bool) -> ValueError:
    which = f"scoring[{name!r}]" if multimetric else "scoring"
    return ValueError(
        f"{which} needs predict_proba, and leaving one out of an SVC gives decision "
        "values, no probabilities. Take a score of labels ('accuracy', "
        "'balanced_accuracy', 'f1', …), or leave_pair_out_auc for the AUC."
    )


def _warn_pooled(scorers: Mapping[str, Any]) -> None:
    warnings.warn(
        f"scoring ({', '.join(map(repr, scorers))}) uses decision values: those of "
        "different samples come from different classifiers, and ranking them against "
        "each other is biased (pooled AUC is too low, on noise far below one half). "
        "leave_pair_out_auc gives the AUC without this bias.",
        PooledScoreWarning,
        stacklevel=5,
    )
