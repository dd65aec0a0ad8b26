# SPDX-License-Identifier: BSD-3-Clause
"""``LooSearchCV``: ``GridSearchCV(cv=LeaveOneOut())`` by exact leave-one-out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from operator import index
from time import perf_counter
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from leaveout._typing import FloatArray
from leaveout.adapt._checks import (
    check_groups,
    check_preprocessing,
    check_sample_weight,
    check_search_memory,
    count_rows,
    tidy_sparse,
)
from leaveout.adapt._prepare import checked_y
from leaveout.adapt._unwrap import ALL_FAMILIES, Model, unwrap
from leaveout.estimators._exact import ExactSVM
from leaveout.exceptions import AntiLearningWarning
from leaveout.loo._family import FAMILIES
from leaveout.loo._result import ExactResult, LooResult
from leaveout.tune._choice import rank_candidates, tabulate_params, take_best
from leaveout.tune._paths import (
    Outcome,
    PathJob,
    make_candidates,
    own_C,
    report_failures,
    run_paths,
    set_candidate,
    split_paths,
)
from leaveout.tune._scoring import Scoring, make_scoring

# Values of the Gram matrices that kernels of a Pipeline keep at once: 1 GB.
MOST_KERNEL_VALUES = 2**27


class LooSearchCV(GridSearchCV):
    """Choose parameters of a support vector machine by exact leave-one-out.

    Gives the results of ``GridSearchCV(estimator, param_grid, cv=LeaveOneOut())``, with
    the same interface, for about the cost of fitting the grid once. All values of C
    with the same kernel parameters form one path; of a Pipeline also all kernels, which
    share the steps fitted in each fold.

    Parameters
    ----------
    estimator : classifier, regressor or Pipeline
        Any that :func:`leave_one_out` takes. It is cloned, never changed.
    param_grid : dict or list of dict
        Lists of values by parameter name: ``{"C": [1, 10], "gamma": [0.1, 1]}``, or
        ``{"svc__C": [1, 10]}`` for a Pipeline.
    scoring : str, callable, list, tuple or dict, default=None
        Scorers, as in GridSearchCV; None is the accuracy, and "r2" for an SVR. Each is
        called once with all left-out predictions, not once per sample, so "f1",
        "balanced_accuracy" and "r2" (``LooRegressionResult.q2``) are meaningful. It
        cannot use ``predict_proba``. "neg_hinge_loss" is minus the mean hinge loss of
        the left-out decision values.
    refit : bool, str or callable, default=True
        Whether to refit the best candidate on all samples. For multiple metrics, the
        name of the score that decides, or a function from ``cv_results_`` to
        ``best_index_``.
    n_jobs : int, default=None
        Number of paths to run in parallel processes; number of threads if there is only
        one path. None means 1 unless in a :func:`joblib.parallel_config` context, which
        can also send the paths to a cluster; -1 means all cores.
    verbose : int, default=0
        1 shows progress on stderr, 2 shows one line per path.
    checkpoint : str or path-like, default=None
        File that stores each finished path. Run an interrupted search again with the
        same data, estimator and grid to resume from it; a file of another search is
        refused.
    error_score : "raise" or float, default=nan
        Score of a candidate that fails, with a FitFailedWarning. If "raise", the error
        is raised.
    method : str, default="auto"
        As in :func:`leave_one_out`; "bound" for a LOOMClassifier.
    method_params : mapping, default=None
        Parameters of the method, as in :func:`leave_one_out`.
    preprocessing : {"fold", "frozen"}, default="fold"
        Whether the steps of a Pipeline, ``gamma="scale"`` and
        ``class_weight="balanced"`` are fitted in each fold, or once on all rows.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        One entry per candidate, with GridSearchCV's keys except ``split*``.
        ``mean_test_score`` is one score of all left-out predictions, and
        **std_test_score is its standard error**, not a standard deviation over splits,
        which have one sample each. ``mean_fit_time`` is in seconds per left-out fit.
        ``n_ambiguous`` is the number of samples whose prediction depends on the choice
        among optimal intercepts. For classifiers, ``anti_learning`` is True if C is too
        small, so that class proportions alone decide (``LooResult.anti_learning``).
    best_index_ : int
        Index of the best candidate. Ties go to a candidate that is not anti-learning,
        then to the smaller C, then to the smaller gamma, then to the earlier one.
    best_params_, best_score_ : dict, float
        Its parameters and score. The score is optimistic: the largest of many.
    best_loo_result_ : LooResult or LooRegressionResult
        Its left-out predictions, with decision values and margins, or residuals.
    best_estimator_ : estimator
        Fitted on all samples with the best parameters, if ``refit``.
    n_splits_ : int
        Number of samples, or of groups.
    scorer_, multimetric_, refit_time_, classes_, n_features_in_, feature_names_in_
        As in GridSearchCV.

    See Also
    --------
    leave_one_out : Leave-one-out for one setting.
    loo_curve : The error for every C of an interval.

    Notes
    -----
    The steps of a Pipeline are fitted without each sample, as by GridSearchCV. Without
    a Pipeline, and if gamma is a number, one Gram matrix serves all folds, which takes
    less time; but preprocessing before the search has seen the left-out samples.

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
    # GridSearchCV's other parameters, which have no effect here.
    cv = None
    pre_dispatch = "2*n_jobs"
    return_train_score = False

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
        method_params: Mapping[str, Any] | None = None,
        preprocessing: str = "fold",
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
        self.method_params = method_params
        self.preprocessing = preprocessing

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata go to the estimator, the scorers and the search."""
        # GridSearchCV would route groups to a splitter, and lacks OWN_SCORERS.
        scorer = make_scoring(self.estimator, self.scoring).router
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_score = MethodMapping().add(caller="fit", callee="score")
        to_score.add(caller="score", callee="score")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=to_fit)
        return router.add(scorer=scorer, method_mapping=to_score)

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, **params: Any
    ) -> LooSearchCV:
        """Run leave-one-out for all candidates, and refit the best one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; the Gram matrix if kernel="precomputed"; any input of a Pipeline.
        y : array-like of shape (n_samples,)
            Class labels, or numbers for an SVR.
        groups : array-like of shape (n_samples,), default=None
            Samples with equal entries are left out together, as with LeaveOneGroupOut.
        **params : dict
            ``sample_weight`` rescales C per sample, and weights the samples in scores
            that take weights. If scikit-learn's metadata routing is enabled, it is
            passed to the estimator and the scorers that request it.

        Returns
        -------
        LooSearchCV
            Fitted search.
        """
        self._check_parameters()
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a fit that fails keeps no results of an earlier one
        candidates, estimators, scoring = self._make_candidates()
        X, y = indexable(X, y)
        models = [unwrap(estimator, ALL_FAMILIES) for estimator in estimators]
        labels = checked_y(y, count_rows(X), FAMILIES[models[0].params.family])
        weights, fit_params = self._share_metadata(params, estimators, models, scoring)
        frozen = self.preprocessing == "frozen"
        at_once = max(1, MOST_KERNEL_VALUES // max(1, len(labels)) ** 2)
        paths = split_paths(candidates, models, 1 if frozen else at_once)
        if not models[0].steps or frozen:
            check_search_memory(
                models[0].estimator,
                len(labels),
                self.method,
                n_paths=len(paths),
                n_jobs=self.n_jobs,
                refit=self.refit is not False,
            )
        catch = self.error_score != "raise"
        how = (self.method, self.method_params, self.preprocessing)
        results, betas = run_paths(
            paths,
            PathJob(self.estimator, X, y, weights, groups, *how, catch),
            labels,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
        )
        report_failures(results, self.error_score)
        decisive = self.refit if scoring.multimetric else "score"
        own = scoring.params.get(decisive, {}).get("sample_weight")
        if own is not None:
            results = _weight_errors(results, check_sample_weight(own, len(labels)))
        n_splits = len(labels)
        if groups is not None:
            n_splits = int(check_groups(groups, np.ones(n_splits)).max()) + 1
        table, names = tabulate(candidates, results, scoring, X, labels, n_splits)
        if names != ["score"]:
            self._check_refit(names)
        fitted: dict[str, Any] = {
            "n_splits_": n_splits,
            "scorer_": scoring.scorers if scoring.multimetric else scoring.router,
            "multimetric_": names != ["score"],
            "cv_results_": table,
        }
        fitted |= self._choose(table, models, results, names)
        if "best_index_" in fitted:
            # For reports and refits: errors as exact fractions, and the optimum.
            best = fitted["best_index_"]
            errors = [getattr(result, "error", np.nan) for result in results]
            fitted |= {"_errors_": np.array(errors), "_best_betas_": betas[best]}
        if self.refit is not False:
            fitted |= self._fit_best(
                candidates[best], betas[best], X, y, fit_params[best]
            )
        self.__dict__.update(fitted)
        return self

    def _check_parameters(self) -> None:
        """Raise if a parameter of the search is invalid."""
        check_preprocessing(self.preprocessing)
        score, refit = self.error_score, self.refit
        if score != "raise" and not isinstance(score, Real):
            raise ValueError(f"error_score must be 'raise' or a number; got {score!r}.")
        if not (isinstance(refit, bool | str) or callable(refit)):
            raise ValueError(
                f"refit must be True, False, the name of a score or a function; got "
                f"{refit!r}."
            )
        if not isinstance(self.verbose, Integral):
            raise TypeError(f"verbose must be an integer; got {self.verbose!r}.")

    def _check_refit(self, names: Any) -> None:
        """Raise if refit does not select one of several scores."""
        if self.refit is False or callable(self.refit) or self.refit in list(names):
            return
        raise ValueError(
            f"For multi-metric scoring, refit must be the name of the score that "
            f"decides ({', '.join(map(repr, names))}), a function of cv_results_, or "
            f"False; got {self.refit!r}."
        )

    def _make_candidates(self) -> tuple[list[dict[str, Any]], list[Any], Scoring]:
        """Return the grid, one estimator per candidate, and the scorers."""
        candidates = list(ParameterGrid(self.param_grid))
        if not candidates:
            raise ValueError("param_grid is empty. Pass at least one dict.")
        try:
            scoring = make_scoring(self.estimator, self.scoring, self.error_score)
            estimators = make_candidates(self.estimator, candidates)
        except (TypeError, ValueError) as error:
            model = unwrap(self.estimator, ALL_FAMILIES)  # its error takes precedence
            own = set(model.estimator.get_params()).intersection(*map(set, candidates))
            if not model.prefix or not own:
                raise
            hint = f"Did you mean '{model.prefix}{min(own)}'?"
            raise ValueError(f"{error} {hint}") from error
        if scoring.multimetric:
            self._check_refit(scoring.scorers)
        return candidates, estimators, scoring

    def _share_metadata(
        self,
        params: dict[str, Any],
        estimators: list[Any],
        models: list[Model],
        scoring: Scoring,
    ) -> tuple[Any, list[dict[str, Any]]]:
        """Return weights for leave-one-out, and the fit parameters per candidate."""
        if not get_config()["enable_metadata_routing"]:
            shared = [_plain_metadata(params, model) for model in models]
            weights = shared[0][0]
            if weights is not None:
                scoring.pass_weights(weights)
            return weights, [fit_params for _, fit_params in shared]
        routed = process_routing(self, "fit", **params)
        scoring.route(routed.scorer.score)
        to_fit = dict(routed.estimator.fit)
        pairs = zip(estimators, models, strict=True)
        found = [_route_weights(estimator, to_fit, model) for estimator, model in pairs]
        return found[0], [to_fit] * len(found)

    def _choose(
        self,
        table: dict[str, Any],
        models: list[Model],
        results: list[Outcome],
        names: list[str],
    ) -> dict[str, Any]:
        """Return the attributes of the best candidate; none if no score decides."""
        found: dict[str, Any] = {}
        if names != ["score"] and self.refit is False:
            return found
        if callable(self.refit):
            best = index(self.refit(table))
            if not 0 <= best < len(models):
                raise IndexError(f"refit returned {best}, not a candidate's index.")
        else:
            decisive = "score" if names == ["score"] else self.refit
            # The score decides, as in GridSearchCV; anti-learning only loses ties.
            flagged = np.ma.filled(table.get("anti_learning", 0), True)
            best = take_best(
                2 * table[f"rank_test_{decisive}"] + flagged,
                [own_C(model) for model in models],
                [model.params.gamma for model in models],
            )
            found["best_score_"] = float(table[f"mean_test_{decisive}"][best])
        found |= {"best_index_": best, "best_params_": table["params"][best]}
        result = results[best]
        if isinstance(result, ExactResult):
            found["best_loo_result_"] = result
        if isinstance(result, LooResult) and result.anti_learning:
            why = result.anti_learning_note.removeprefix("Anti-learning: ")
            note = f"The best candidate is anti-learning. {why}"
            warn(note, AntiLearningWarning, stacklevel=3)
        return found

    def _fit_best(
        self,
        params: dict[str, Any],
        betas: FloatArray | None,
        X: Any,
        y: Any,
        fit_params: dict[str, Any],
    ) -> dict[str, Any]:
        """Fit the best candidate on all samples; return its attributes."""
        best = set_candidate(self.estimator, params)
        model = unwrap(best, ALL_FAMILIES)
        if isinstance(model.estimator, ExactSVM) and not model.params.one_vs_rest:
            model.estimator._kept_betas = betas  # fit uses them instead of solving
        if sparse.issparse(X):  # scikit-learn's SVC would sort the indices in place
            X = tidy_sparse(X.tocsr())
        started = perf_counter()
        best.fit(X, y, **fit_params)
        found = {"best_estimator_": best, "refit_time_": perf_counter() - started}
        if hasattr(best, "feature_names_in_"):
            found["feature_names_in_"] = best.feature_names_in_
        return found


def _plain_metadata(
    params: Mapping[str, Any], model: Model
) -> tuple[Any, dict[str, Any]]:
    """Return ``sample_weight`` (or ``svc__sample_weight``), alone and as fit params."""
    inside = f"{model.prefix}sample_weight"
    given = {name: value for name, value in params.items() if value is not None}
    weights = given.pop("sample_weight", given.pop(inside, None))
    if given:
        raise TypeError(
            f"fit got {', '.join(map(repr, given))}; without metadata routing it takes "
            f"groups and {' or '.join(dict.fromkeys(('sample_weight', inside)))}. "
            "Enable routing with sklearn.set_config(enable_metadata_routing=True)."
        )
    if weights is None:
        return None, {}
    if model.params.one_vs_rest:
        raise TypeError(
            "OneVsRestClassifier takes sample_weight only with metadata routing: call "
            "sklearn.set_config(enable_metadata_routing=True) and "
            "OneVsRestClassifier(SVC().set_fit_request(sample_weight=True))."
        )
    return weights, {inside: weights}


def _route_weights(estimator: Any, params: dict[str, Any], model: Model) -> Any:
    """Follow scikit-learn's metadata routing to the SVC; return its weights."""
    own, holder = params, estimator
    for name in model.prefix.split("__")[:-1]:
        if not own:
            break
        routed = process_routing(holder, "fit", **own)
        for other, methods in routed.items():
            requested = {key for values in methods.values() for key in values}
            if other != name and requested:
                raise ValueError(
                    f"Step {other!r} of the Pipeline requests {', '.join(requested)}, "
                    "but steps before the SVC are fitted without metadata when samples "
                    "are left out. Remove the request."
                )
        own = dict(routed[name]["fit"])
        inner = holder.named_steps if isinstance(holder, Pipeline) else vars(holder)
        holder = inner[name]
    return own.get("sample_weight")


def _weight_errors(results: list[Outcome], weights: FloatArray) -> list[Outcome]:
    """Weight the errors of the results like the score that decides."""
    return [
        replace(result, weights=weights) if isinstance(result, ExactResult) else result
        for result in results
    ]


def tabulate(
    candidates: Sequence[dict[str, Any]],
    results: Sequence[Outcome],
    scoring: Scoring,
    X: Any,
    y: NDArray[Any],
    n_splits: int,
) -> tuple[dict[str, Any], list[str]]:
    """Score every candidate; return ``cv_results_`` and the names of the scores."""
    scores: list[dict[str, float]] = [{} for _ in results]
    errors: list[dict[str, float]] = [{} for _ in results]
    seconds = np.full((2, len(results)), np.nan)  # to fit, to score
    failed = np.array([isinstance(result, Exception) for result in results])
    for k, result in enumerate(results):
        if isinstance(result, ExactResult):
            started = perf_counter()
            scores[k], errors[k] = scoring.score(result, X, y)
            seconds[:, k] = result.counts["seconds"], perf_counter() - started
    table: dict[str, Any] = {
        "mean_fit_time": seconds[0] / n_splits,
        "std_fit_time": np.full(len(results), np.nan),
        "mean_score_time": seconds[1] / n_splits,
        "std_score_time": np.full(len(results), np.nan),
        **tabulate_params(candidates),
        "params": list(candidates),
    }
    names = max(map(list, scores), key=len)  # a scorer that failed has only one name
    default = np.nan if scoring.error_score == "raise" else scoring.error_score
    for name in names:
        means = np.array([own.get(name, default) for own in scores], dtype=np.float64)
        table[f"mean_test_{name}"] = means
        table[f"std_test_{name}"] = np.array([own.get(name, np.nan) for own in errors])
        table[f"rank_test_{name}"] = rank_candidates(means, avoid=failed)
    known = [result for result in results if isinstance(result, ExactResult)]
    for name, dtype in (("n_ambiguous", np.intp), ("anti_learning", np.bool_)):
        if all(hasattr(result, name) for result in known):  # numbers have no classes
            column: Any = np.ma.MaskedArray(np.zeros(failed.size, dtype), mask=failed)
            column[~failed] = [getattr(result, name) for result in known]
            table[name] = column
    return table, names
