# SPDX-License-Identifier: BSD-3-Clause
"""LooSearchCV.

``LooSearchCV``: GridSearchCV(cv=LeaveOneOut()), the fast way.

``cv_results_``: one entry per candidate, under GridSearchCV's names.

Which weights of ``fit`` reach the SVC inside an estimator, and its refit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from leaveout._typing import BoolArray, FloatArray
from leaveout.adapt._checks import (
    check_groups,
    check_labels,
    check_preprocessing,
    check_sample_weight,
    count_rows,
    tidy_sparse,
)
from leaveout.adapt._memory import check_search_memory
from leaveout.adapt._unwrap import ALL_FAMILIES, Model, unwrap
from leaveout.loo._result import LooResult
from leaveout.tune._choice import rank_candidates, tabulate_params, take_best
from leaveout.tune._paths import (
    Failure,
    PathJob,
    report_anti_learning,
    report_failures,
    run_paths,
    set_candidate,
    split_paths,
)
from leaveout.tune._scoring import Scoring, make_scoring


def _refitted_has(name: str) -> Any:
    """Return whether the best estimator, or the given one before fit, has a method."""

    def check(self: LooSearchCV) -> bool:
        if hasattr(self, "best_estimator_"):
            getattr(self.best_estimator_, name)
        else:
            getattr(self.estimator, name)
        return True

    return check


class LooSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Choose parameters of a support vector classifier by exact leave-one-out.

    Does what ``GridSearchCV(estimator, param_grid, cv=LeaveOneOut())`` does, with the
    same parameters, attributes and methods, at about the price of fitting the grid
    once. All values of C that share a kernel are one path.

    Parameters
    ----------
    estimator : SVC, LPMClassifier, LOOMClassifier, Pipeline that ends in one, or \
            OneVsRestClassifier of an SVC
        scikit-learn's SVC or ours. It is cloned, never changed.
    param_grid : dict or list of dict
        Values to try, by name of the parameter: ``{"C": [1, 10], "gamma": [0.1, 1]}``,
        ``{"svc__C": [1, 10]}`` in a Pipeline.
    scoring : str, callable, list, tuple or dict, default=None
        Scorers, as for GridSearchCV; None is the accuracy. Each is called once for all
        left-out predictions together, not once per sample, so that "f1" or
        "balanced_accuracy" have a meaning. It cannot need ``predict_proba``.
        "neg_hinge_loss" is minus the mean hinge loss of the left-out values.
    refit : bool, str or callable, default=True
        Whether to fit the estimator with the best parameters on all samples. With
        several scores, the name of the one that decides, or a function that takes
        ``cv_results_`` and returns ``best_index_``.
    n_jobs : int, default=None
        Number of cells at a time, over processes; if there is one cell only, threads
        inside it. None means 1, or what :func:`joblib.parallel_config` says, which
        can also send the cells to a cluster; -1 means all cores. The linear algebra
        below has one thread.
    verbose : int, default=0
        1 shows on stderr how far the search is, 2 each cell.
    checkpoint : str or path-like, default=None
        File that keeps each finished cell. A search that was killed goes on from there
        when it is run again with the same data, estimator and grid; with others it is
        refused. The file stays when the search is done.
    error_score : "raise" or float, default=nan
        Score of a candidate that fails; a FitFailedWarning tells. "raise" lets its
        error through.
    method : {"auto", "walk", "refit"}, default="auto"
        As in :func:`leave_one_out`; "bound" for a LOOMClassifier.
    preprocessing : {"frozen", "refit"}, default="frozen"
        Whether the steps of a Pipeline are fitted once on all rows, or anew without
        each sample, which is slower: see :func:`leave_one_out`.
    balanced : {"frozen", "fold"}, default="frozen"
        Whether ``class_weight="balanced"`` counts all rows, or those that are left.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        One entry per candidate, keys as GridSearchCV has them without ``split*``.
        ``mean_test_score`` is the score of the pooled left-out predictions, and
        **std_test_score is its standard error**, not a deviation over splits, where
        there is one sample each. ``rank_test_score``, ``params``, ``param_*``,
        ``mean_fit_time`` (seconds per left-out fit; their spread is not known, so
        ``std_fit_time`` is NaN), and ``n_ambiguous``: samples whose label depends on
        which of several optimal intercepts is taken. ``anti_learning``: whether C is so
        small that the balance of the classes decides (``LooResult.anti_learning``);
        a warning says if such a candidate is the best. With several scores,
        ``mean_test_<name>`` and so on.
    best_index_ : int
        The best candidate. Of equal scores, one that is not anti-learning wins, then
        the smaller C, then the smaller gamma, then the earlier in the grid.
    best_params_, best_score_ : dict, float
        Its parameters and score. The score is the largest of many, hence optimistic.
    best_loo_result_ : LooResult
        Its left-out predictions, with decision values and margins.
    best_estimator_ : estimator
        Fitted on all samples with the best parameters, if ``refit``.
    refit_time_ : float
        Seconds that took.
    scorer_ : callable or dict
        The scorers.
    multimetric_ : bool
        Whether there are several scores.
    n_splits_ : int
        Number of samples, or of groups.
    classes_ : ndarray of shape (n_classes,)
        Labels, if ``refit``.
    n_features_in_, feature_names_in_
        Columns of X, if ``refit`` and the best estimator has them.

    See Also
    --------
    leave_one_out : One setting.
    loo_curve : Every C of an interval.

    Notes
    -----
    ``gamma="scale"`` and ``class_weight="balanced"`` are resolved once on all rows;
    GridSearchCV resolves them anew in each split. With numbers both searches agree.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> import leaveout as lo
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1]}
    >>> search = lo.LooSearchCV(SVC(), grid).fit(X, y)
    >>> search.best_params_, round(search.best_score_, 4)
    ({'C': 1, 'gamma': 0.1}, 0.9733)
    >>> search.predict(X[:2])
    array([0, 0])
    """

    __module__ = "leaveout"

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        refit: Any = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        error_score: Any = np.nan,
        method: str = "auto",
        preprocessing: str = "frozen",
        balanced: str = "frozen",
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.error_score = error_score
        self.method = method
        self.preprocessing = preprocessing
        self.balanced = balanced

    def __sklearn_tags__(self) -> Any:
        """Be what the estimator is."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Say which metadata go to the estimator, to the scorers and to the search."""
        scoring = make_scoring(self.estimator, self.scoring)
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                scorer=scoring.router,
                method_mapping=MethodMapping()
                .add(caller="fit", callee="score")
                .add(caller="score", callee="score"),
            )
        )

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, **params: Any
    ) -> LooSearchCV:
        """Leave every sample out for all candidates, and take the best.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; the symmetric Gram matrix if kernel="precomputed". With a Pipeline,
            whatever its first step takes.
        y : array-like of shape (n_samples,)
            Class labels.
        groups : array-like of shape (n_samples,), default=None
            Samples with equal entries are left out together, as with LeaveOneGroupOut.
        **params : dict
            ``sample_weight``: factor of C per sample, and weight in the scores that
            take one. With scikit-learn's metadata routing enabled, it goes to the
            estimator and to the scorers that request it.

        Returns
        -------
        LooSearchCV
            This search.
        """
        self._check_parameters()
        self._forget()
        candidates = list(ParameterGrid(self.param_grid))
        if not candidates:
            raise ValueError("param_grid is empty. Give one dict or more.")
        with _estimator_blamed(self.estimator, candidates):
            scoring = make_scoring(self.estimator, self.scoring, self.error_score)
            estimators = [set_candidate(self.estimator, own) for own in candidates]
        if scoring.multimetric:
            self._check_decides(scoring.scorers)
        X, y = indexable(X, y)
        labels = check_labels(y, count_rows(X))
        models = [unwrap(estimator, ALL_FAMILIES) for estimator in estimators]
        metadata = self._metadata(params, estimators, models, scoring)
        weights = metadata[0].sample_weight
        results = self._leave_out(candidates, models, X, y, labels, weights, groups)
        decisive = self.refit if scoring.multimetric else "score"
        results = _with_score_weights(results, scoring, decisive, len(labels))
        self.n_splits_ = len(labels)
        if groups is not None:
            self.n_splits_ = int(check_groups(groups, np.ones(len(labels))).max()) + 1
        self.scorer_ = scoring.face
        self.cv_results_, names = tabulate(
            candidates, results, scoring, X, labels, self.n_splits_
        )
        self.multimetric_ = names != ["score"]
        if self.multimetric_:
            self._check_decides(names)
        self._choose(candidates, models, results)
        if self.refit is not False:
            self._refit(X, y, metadata[self.best_index_].fit_params)
        return self

    @available_if(_refitted_has("predict"))
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels of new samples by the best estimator."""
        return self._best("predict").predict(X)

    @available_if(_refitted_has("decision_function"))
    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of new samples by the best estimator."""
        return self._best("decision_function").decision_function(X)

    @available_if(_refitted_has("predict_proba"))
    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities of new samples by the best estimator."""
        return self._best("predict_proba").predict_proba(X)

    @available_if(_refitted_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the probabilities by the best estimator."""
        return self._best("predict_log_proba").predict_log_proba(X)

    @available_if(_refitted_has("transform"))
    def transform(self, X: Any) -> Any:
        """Return new samples as the best estimator transforms them."""
        return self._best("transform").transform(X)

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the best estimator on new samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.
        y : array-like of shape (n_samples,)
            Their labels.
        **params : dict
            Metadata for the scorer, if metadata routing is enabled.
        """
        best = self._best("score")
        if params and not _routing_enabled():
            raise ValueError(
                f"score got {', '.join(map(repr, params))}, which needs "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        if params:
            params = process_routing(self, "score", **params).scorer["score"]
        scorer = self.scorer_
        if isinstance(scorer, dict):
            scorer = scorer[self.refit]
        value = scorer(best, X, y, **params)
        return value[self.refit] if isinstance(value, dict) else value

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the best estimator."""
        return self._best("classes_").classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        try:
            check_is_fitted(self)
        except NotFittedError as error:
            raise AttributeError(
                f"{type(self).__name__} has no n_features_in_ before fit."
            ) from error
        return self.best_estimator_.n_features_in_

    @property
    def _raises(self) -> bool:
        return isinstance(self.error_score, str) and self.error_score == "raise"

    def _best(self, wanted: str) -> Any:
        """Return the best estimator, or say why there is none."""
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"{wanted} needs the best estimator, but refit=False. Fit the search "
                "with refit=True, or an estimator with best_params_."
            )
        return self.best_estimator_

    def _check_parameters(self) -> None:
        """Raise if a parameter of the search is wrong."""
        check_preprocessing(self.preprocessing)
        if not self._raises and not isinstance(self.error_score, Real):
            raise ValueError(
                f"error_score must be 'raise' or a number; got {self.error_score!r}."
            )
        if not (isinstance(self.refit, bool | str) or callable(self.refit)):
            raise ValueError(
                "refit must be True, False, the name of a score or a function; got "
                f"{self.refit!r}."
            )
        if not isinstance(self.verbose, Integral):
            raise TypeError(f"verbose must be a whole number; got {self.verbose!r}.")

    def _check_decides(self, names: Any) -> None:
        """Raise if it is not said which of several scores decides."""
        if self.refit is False or callable(self.refit) or self.refit in list(names):
            return
        raise ValueError(
            f"For multi-metric scoring, refit must say which score decides: one of "
            f"{', '.join(map(repr, names))}, a function of cv_results_, or False; got "
            f"{self.refit!r}."
        )

    def _forget(self) -> None:
        """Drop what an earlier fit has set."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _leave_out(
        self,
        candidates: list[dict[str, Any]],
        models: list[Model],
        X: Any,
        y: Any,
        labels: NDArray[Any],
        sample_weight: Any,
        groups: Any,
    ) -> list[LooResult | Failure]:
        """Leave one out for all candidates, cell by cell."""
        cells = split_paths(
            candidates,
            [f"{model.prefix}C" for model in models],
            [_own_C(model) for model in models],
        )
        if not (models[0].in_pipeline and self.preprocessing == "refit"):
            check_search_memory(
                models[0].estimator,
                len(labels),
                self.method,
                n_paths=len(cells),
                n_jobs=self.n_jobs,
                refit=self.refit is not False,
            )
        run = PathJob(
            self.estimator,
            X,
            y,
            sample_weight,
            groups,
            self.method,
            self.preprocessing,
            self.balanced,
            catch=not self._raises,
        )
        results = run_paths(
            cells,
            run,
            labels,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
            stacklevel=4,
        )
        report_failures(results, self.error_score, stacklevel=4)
        return results

    def _metadata(
        self,
        params: dict[str, Any],
        candidates: list[Any],
        models: list[Model],
        scoring: Scoring,
    ) -> list[Metadata]:
        """Divide what fit was given among the SVC of each candidate and the scorers."""
        if not _routing_enabled():
            metadata = [plain_metadata(params, model) for model in models]
            if metadata[0].sample_weight is not None:
                scoring.weigh(metadata[0].sample_weight)
            return metadata
        routed = process_routing(self, "fit", **params)
        scoring.route(routed.scorer.score)
        return [
            route_metadata(candidate, routed.estimator.fit, model)
            for candidate, model in zip(candidates, models, strict=True)
        ]

    def _choose(
        self,
        candidates: list[dict[str, Any]],
        models: list[Model],
        results: list[LooResult | Failure],
    ) -> None:
        """Take the best candidate, if it is said by what."""
        if callable(self.refit):
            self.best_index_ = _check_index(self.refit(self.cv_results_), candidates)
        elif self.multimetric_ and self.refit is False:
            return
        else:
            decisive = self.refit if self.multimetric_ else "score"
            scores = self.cv_results_[f"mean_test_{decisive}"]
            # The score decides, as with GridSearchCV; anti-learning only loses ties.
            ranks = self.cv_results_[f"rank_test_{decisive}"]
            flagged = np.ma.filled(self.cv_results_["anti_learning"], True)
            self.best_index_ = take_best(
                2 * ranks + flagged,
                [_own_C(model) for model in models],
                [model.params.gamma for model in models],
            )
            self.best_score_ = float(scores[self.best_index_])
        self.best_params_ = candidates[self.best_index_]
        best = results[self.best_index_]
        if isinstance(best, LooResult):
            self.best_loo_result_ = best
        report_anti_learning(best, stacklevel=4)

    def _refit(self, X: Any, y: Any, fit_params: Mapping[str, Any]) -> None:
        """Fit the best candidate on all samples."""
        self.best_estimator_ = set_candidate(self.estimator, self.best_params_)
        if sparse.issparse(X):  # scikit-learn's SVC sorts in place, and takes no others
            X = tidy_sparse(X.tocsr())
        started = time.perf_counter()
        self.best_estimator_.fit(X, y, **fit_params)
        self.refit_time_ = time.perf_counter() - started
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


@contextmanager
def _estimator_blamed(
    estimator: Any, candidates: list[dict[str, Any]]
) -> Iterator[None]:
    """Where scikit-learn refuses a grid or a score, look at the estimator first."""
    try:
        yield
    except (TypeError, ValueError) as error:
        model = unwrap(estimator, ALL_FAMILIES)
        own = set(model.estimator.get_params()).intersection(*map(set, candidates))
        if not model.prefix or not own:
            raise
        name = min(own)
        raise ValueError(f"{error} Did you mean '{model.prefix}{name}'?") from error


def _check_index(index: Any, candidates: list[dict[str, Any]]) -> int:
    """Return what a function passed as refit has returned, if it is a candidate."""
    if not isinstance(index, Integral):
        raise TypeError(
            "refit must return the index of a candidate, a whole number; it returned "
            f"{index!r}."
        )
    if not 0 <= int(index) < len(candidates):
        raise IndexError(
            f"refit returned {index}, but the {len(candidates)} candidates have "
            f"indices 0 to {len(candidates) - 1}."
        )
    return int(index)


def _routing_enabled() -> bool:
    return bool(get_config()["enable_metadata_routing"])


def _with_score_weights(
    results: list[LooResult | Failure], scoring: Scoring, decisive: Any, n_samples: int
) -> list[LooResult | Failure]:
    """Let the errors of the results count weights as the score that decides does."""
    weights = scoring.params.get(decisive, {}).get("sample_weight")
    if weights is None:
        return results
    weights = check_sample_weight(weights, n_samples)
    return [
        result if isinstance(result, Failure) else replace(result, weights=weights)
        for result in results
    ]


def tabulate(
    candidates: Sequence[dict[str, Any]],
    results: Sequence[LooResult | Failure],
    scoring: Scoring,
    X: Any,
    y: NDArray[Any],
    n_splits: int,
) -> tuple[dict[str, Any], list[str]]:
    """Score every candidate; return ``cv_results_`` and the names of the scores."""
    scores: list[dict[str, float]] = []
    errors: list[dict[str, float]] = []
    seconds = []
    for result in results:
        started = perf_counter()
        own: dict[str, float] = {}
        spread: dict[str, float] = {}
        if isinstance(result, LooResult):
            own, spread = scoring.score(result, X, y)
        scores.append(own)
        errors.append(spread)
        seconds.append(perf_counter() - started if own else np.nan)
    fullest: dict[str, float] = max(scores, key=len)  # a failed function names one
    names = list(fullest)
    known = [result for result in results if isinstance(result, LooResult)]
    failed = np.array([isinstance(result, Failure) for result in results])
    unknown = np.full(len(results), np.nan)
    table: dict[str, Any] = {
        "mean_fit_time": _fit_seconds(results) / n_splits,
        "std_fit_time": unknown.copy(),
        "mean_score_time": np.array(seconds) / n_splits,
        "std_score_time": unknown.copy(),
        **tabulate_params(candidates),
        "params": list(candidates),
    }
    for name in names:
        default = np.nan if scoring.error_score == "raise" else scoring.error_score
        means = np.array([own.get(name, default) for own in scores], dtype=np.float64)
        table[f"mean_test_{name}"] = means
        table[f"std_test_{name}"] = np.array([own.get(name, np.nan) for own in errors])
        table[f"rank_test_{name}"] = rank_candidates(means, avoid=failed)
    table["n_ambiguous"] = _masked([r.n_ambiguous for r in known], failed, np.intp)
    table["anti_learning"] = _masked([r.anti_learning for r in known], failed, np.bool_)
    return table, names


def _fit_seconds(results: Sequence[LooResult | Failure]) -> FloatArray:
    return np.array(
        [
            result.counts["seconds"] if isinstance(result, LooResult) else np.nan
            for result in results
        ]
    )


def _masked(values: Sequence[Any], failed: BoolArray, dtype: Any) -> Any:
    """Return one entry per candidate, masked where it failed."""
    column = np.ma.MaskedArray(np.zeros(failed.size, dtype), mask=failed)
    column[~failed] = values
    return column


@dataclass(frozen=True)
class Metadata:
    """What ``fit`` was given beside X and y.

    Parameters
    ----------
    sample_weight : array-like or None
        Weights for the SVC.
    fit_params : dict
        What the best estimator is fitted with.
    """

    sample_weight: Any
    fit_params: dict[str, Any]


def plain_metadata(params: Mapping[str, Any], model: Model) -> Metadata:
    """Take ``sample_weight``, or in a Pipeline ``svc__sample_weight``.

    Raises
    ------
    TypeError
        For anything else, and for weights that could not be passed on.
    """
    inside = f"{model.prefix}sample_weight"
    given = {name: value for name, value in params.items() if value is not None}
    weights = given.pop("sample_weight", given.pop(inside, None))
    if given:
        raise TypeError(
            f"fit got {', '.join(map(repr, given))}; without metadata routing it takes "
            f"groups and {' or '.join(dict.fromkeys(('sample_weight', inside)))}. "
            "Enable it by sklearn.set_config(enable_metadata_routing=True)."
        )
    if weights is None:
        return Metadata(None, {})
    if model.params.one_vs_rest:
        raise TypeError(
            "OneVsRestClassifier takes sample_weight only with metadata routing: call "
            "sklearn.set_config(enable_metadata_routing=True) and "
            "OneVsRestClassifier(SVC().set_fit_request(sample_weight=True))."
        )
    return Metadata(weights, {inside: weights})


def route_metadata(estimator: Any, params: Mapping[str, Any], model: Model) -> Metadata:
    """Follow scikit-learn's metadata routing down to the SVC.

    Parameters
    ----------
    estimator : object
        A candidate.
    params : mapping
        What is routed to its ``fit``.
    model : Model
        The SVC inside it.
    """
    own, holder = dict(params), estimator
    for name in model.prefix.split("__")[:-1]:
        if not own:
            break
        routed = process_routing(holder, "fit", **own)
        for other, methods in routed.items():
            asked = {key for values in methods.values() for key in values}
            if other != name and asked:
                raise ValueError(
                    f"Step {other!r} of the Pipeline requests {', '.join(asked)}, but "
                    "steps before the SVC are fitted without metadata when samples are "
                    "left out. Take the request back."
                )
        own = dict(routed[name]["fit"])
        inner = holder.named_steps if isinstance(holder, Pipeline) else vars(holder)
        holder = inner[name]
    unknown = own.keys() - {"sample_weight"}
    if unknown:
        raise TypeError(f"SVC.fit takes sample_weight only; got {', '.join(unknown)}.")
    return Metadata(own.get("sample_weight"), dict(params))


def _own_C(model: Model) -> float | None:  # noqa: N802
    """Return the C of a classifier, None if it has none."""
    return None if model.params.family == "loom" else model.params.C
