# SPDX-License-Identifier: BSD-3-Clause
"""``SVCCV``: a support vector classifier that chooses C and gamma by itself."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from leaveout._typing import BoolArray, FloatArray
from leaveout.adapt._checks import (
    check_features,
    check_flag,
    check_number,
    check_penalties,
)
from leaveout.estimators._svc import SVC
from leaveout.exceptions import AntiLearningWarning
from leaveout.kernel._gram import check_gram
from leaveout.loo._task import make_target
from leaveout.tune._calibration import Sigmoid, class_probabilities, fit_pair_sigmoids
from leaveout.tune._choice import (
    best_within_one_se,
    default_Cs,
    default_gammas,
    kernel_scale,
    needs_gamma,
    rank_candidates,
    take_best,
)
from leaveout.tune._search import LooSearchCV


def _has_probabilities(self: SVCCV) -> bool:
    if not self.probability:
        raise AttributeError(
            "This SVCCV has probability=False. Fit it with probability=True."
        )
    return True


class SVCCV(ClassifierMixin, BaseEstimator):
    """Support vector classifier tuned by exact leave-one-out.

    One line from data to a tuned classifier: a grid of C and gamma from the scale of
    the data, the exact leave-one-out error of every cell, the best cell fitted on all
    samples, and probabilities from its left-out decision values.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As in :class:`SVC`.
    Cs : "auto" or array-like, default="auto"
        Values of C. "auto" is 0.01, 0.1, ..., 1000; divided by a power of ten near the
        variance of the samples if kernel is "linear" or "precomputed".
    gammas : "auto" or array-like, default="auto"
        Values of gamma, for the kernels that have one. "auto" is 1/16, 1/4, 1, 4 and 16
        times 1 / median squared distance ("rbf"; others alike).
    scoring : str or callable, default=None
        Score of the left-out predictions that decides; None is the accuracy. It is
        called once for all of them, as in :class:`LooSearchCV`.
    probability : bool, default=True
        Whether there is ``predict_proba``. It costs next to nothing.
    class_weight : dict or "balanced", default=None
        Factor of C per class; "balanced" is resolved once, on all rows.
    one_se : bool, default=False
        Take the smoothest model, the one with the smallest C and then the smallest
        gamma, whose score is within one standard error of the best.
    degree : int, default=3
        Exponent of kernel="poly".
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    n_jobs : int, default=None
        Cells at a time, as in :class:`LooSearchCV`; None means 1, -1 all cores.
    verbose : int, default=0
        1 shows on stderr how far the search is, 2 each cell.
    checkpoint : str or path-like, default=None
        File that keeps finished cells, as in :class:`LooSearchCV`.

    Attributes
    ----------
    C_, gamma_ : float
        The values chosen. ``gamma_`` is None for a kernel without one.
    loo_error_, loo_error_std_ : float
        Leave-one-out error of the chosen cell, and its standard error. The error is the
        smallest of many, hence optimistic.
    loo_decision_values_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        ``decision_function`` of each sample by the classifier trained without it.
    loo_result_ : LooResult
        All there is to know of the chosen cell.
    cv_results_ : dict of ndarray
        One entry per cell, as in :class:`LooSearchCV`.
    best_index_, best_params_, best_score_
        Where the chosen cell stands in it, its parameters, its score.
    best_estimator_ : SVC
        Fitted on all samples.
    platt_slope_, platt_offset_ : ndarray of shape (n_machines,)
        P = 1 / (1 + exp(-(slope f + offset))) for each pair of classes, if probability.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has them and all are strings.

    See Also
    --------
    LooSearchCV : Any grid, Pipelines, groups.

    Notes
    -----
    Scale the features first: ``make_pipeline(StandardScaler(), SVCCV())``. In such a
    Pipeline the scaler is fitted once on all rows, also on those left out later.

    Of equal scores, the smaller C wins, then the smaller gamma. Cells whose C is so
    small that the balance of the classes decides (``LooResult.anti_learning``) are
    taken only if there is no other; a warning then says so.

    Probabilities are Platt's, fitted to the exact left-out values [1]_ [2]_, for more
    than two classes coupled over pairs [3]_. Where the left-out values order the
    classes the wrong way round, as on pure noise, the probabilities are the shares of
    the classes, and a warning says so. As in scikit-learn's SVC, the most probable
    class need not be the one ``predict`` returns.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons
       to regularized likelihood methods", Advances in Large Margin Classifiers, 1999.
    .. [2] H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs
       for support vector machines", Machine Learning 68, 2007.
    .. [3] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class
       classification by pairwise coupling", Journal of Machine Learning Research 5,
       2004.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = lo.SVCCV().fit(X, y)
    >>> clf.C_, round(clf.loo_error_, 4)
    (1.0, 0.0267)
    >>> clf.predict(X[[0, 60]])
    array([0, 1])
    >>> clf.predict_proba(X[[0, 60]]).round(2)
    array([[0.97, 0.01, 0.01],
           [0.02, 0.94, 0.04]])
    """

    __module__ = "leaveout"

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rbf",
        *,
        Cs: Any = "auto",
        gammas: Any = "auto",
        scoring: Any = None,
        probability: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        one_se: bool = False,
        degree: int = 3,
        coef0: float = 0.0,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.kernel = kernel
        self.Cs = Cs
        self.gammas = gammas
        self.scoring = scoring
        self.probability = probability
        self.class_weight = class_weight
        self.one_se = one_se
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input, or a Gram matrix as input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SVCCV:
        """Leave every sample out in every cell, take the best, fit it on all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples; the symmetric Gram matrix if kernel="precomputed".
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of C per sample, and weight in the scores and in the fit of the
            probabilities. A row with 0 takes no part.

        Returns
        -------
        SVCCV
            This estimator.
        """
        self._check_parameters()
        X = check_features(self, X, reset=True)
        target = make_target(y, X.shape[0], sample_weight)
        if self.kernel == "precomputed":
            X = check_gram(X)
        search = LooSearchCV(
            SVC(
                kernel=self.kernel,
                degree=self.degree,
                coef0=self.coef0,
                class_weight=self.class_weight,
            ),
            self._make_grid(X, target.weights > 0),
            scoring=self.scoring,
            refit=_take_smoothest if self.one_se else _take_best,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
            error_score="raise",
        )
        weights = {} if sample_weight is None else {"sample_weight": target.weights}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # The weights are for everyone here; routing would ask each for a request.
            with config_context(enable_metadata_routing=False):
                search.fit(X, target.labels, **weights)
        for warning in caught:
            warnings.warn(warning.message, warning.category, stacklevel=2)
        self._store(search)
        self._report_passed_over()
        if self.probability:
            values: Any = self.loo_result_.machine_values
            sigmoids = fit_pair_sigmoids(values, target, stacklevel=3)
            self.platt_slope_ = np.array([s.slope for s in sigmoids])
            self.platt_offset_ = np.array([s.offset for s in sigmoids])
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return the values of the chosen classifier, as :class:`SVC` does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; if kernel="precomputed", their kernel values with the training
            samples, (n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        X = self._check(X)
        return self.best_estimator_.decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels by the chosen classifier; X as in decision_function."""
        X = self._check(X)
        return self.best_estimator_.predict(X)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, in the order of ``classes_``."""
        X = self._check(X)
        values = self.best_estimator_._machine_values(X)
        fitted = zip(self.platt_slope_, self.platt_offset_, strict=True)
        return class_probabilities(values, [Sigmoid(*pair) for pair in fitted])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of the probability of each class."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _check_parameters(self) -> None:
        """Raise if a parameter is wrong; the SVC checks its own."""
        check_flag("probability", self.probability)
        check_flag("one_se", self.one_se)
        if isinstance(self.scoring, list | tuple | set | Mapping):
            raise ValueError(
                f"scoring must be one score, which decides; got {self.scoring!r}. "
                "Use LooSearchCV for several."
            )

    def _make_grid(self, X: Any, present: BoolArray) -> dict[str, list[float]]:
        """Return the values to try, ascending; rows without weight do not count."""
        rows = np.flatnonzero(present)
        X = X[np.ix_(rows, rows)] if self.kernel == "precomputed" else X[rows]
        Cs = (
            default_Cs(kernel_scale(X, self.kernel))
            if _is_auto("Cs", self.Cs)
            else check_penalties(self.Cs)
        )
        grid = {"C": np.unique(Cs).tolist()}
        if needs_gamma(self.kernel):
            gammas = (
                default_gammas(X, self.kernel)
                if _is_auto("gammas", self.gammas)
                else _check_gammas(self.gammas)
            )
            grid["gamma"] = np.unique(gammas).tolist()
        return grid

    def _store(self, search: LooSearchCV) -> None:
        """Set the fitted attributes."""
        self.cv_results_ = search.cv_results_
        self.best_index_ = search.best_index_
        self.best_params_ = search.best_params_
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.best_estimator_ = search.best_estimator_
        self.classes_ = search.classes_
        self.loo_result_ = search.best_loo_result_
        self.loo_decision_values_ = self.loo_result_.decision_values
        self.loo_error_ = self.loo_result_.error
        self.loo_error_std_ = self.loo_result_.standard_error
        self.C_ = float(self.best_params_["C"])
        gamma = self.best_params_.get("gamma")
        self.gamma_ = None if gamma is None else float(gamma)

    def _report_passed_over(self) -> None:
        """Warn if the best score was not taken because it is no learning."""
        scores = self.cv_results_["mean_test_score"]
        above = scores[_flagged(self.cv_results_) & (scores > self.best_score_)]
        if above.size and not self.loo_result_.anti_learning:
            warnings.warn(
                f"{above.size} cell(s) with a score up to {above.max():.4g} were "
                f"passed over for one with {self.best_score_:.4g}: their C is so small "
                "that the balance of the classes decides. Where that scores better, "
                "there may be nothing to learn; else try larger C or other features.",
                AntiLearningWarning,
                stacklevel=3,
            )

    def _check(self, X: Any) -> Any:
        """Return new samples, checked against those of fit."""
        check_is_fitted(self)
        return check_features(self, X, reset=False)


def _take_best(table: Mapping[str, Any]) -> int:
    """Return the best cell that is not anti-learning, if there is one."""
    ranks = rank_candidates(_scores(table), avoid=_flagged(table))
    return take_best(ranks, table["param_C"], table.get("param_gamma"))


def _scores(table: Mapping[str, Any]) -> FloatArray:
    if "mean_test_score" not in table:
        raise ValueError(
            "scoring must return one number, which decides; it returned several. Use "
            "LooSearchCV for these."
        )
    return table["mean_test_score"]


def _flagged(table: Mapping[str, Any]) -> BoolArray:
    return np.ma.filled(table["anti_learning"], True)


def _take_smoothest(table: Mapping[str, Any]) -> int:
    """Return the cell for ``one_se=True``, from ``cv_results_``."""
    return best_within_one_se(
        _scores(table),
        table["std_test_score"],
        table["param_C"],
        table.get("param_gamma"),
        avoid=_flagged(table),
    )


def _is_auto(name: str, values: Any) -> bool:
    """Whether the values are to come from the data; no other text will do."""
    if isinstance(values, str) and values != "auto":
        raise ValueError(f"{name} must be 'auto' or numbers; got {values!r}.")
    return isinstance(values, str)


def _check_gammas(gammas: Any) -> FloatArray:
    """Return finite positive numbers, one or more."""
    values = [
        check_number("gamma", gamma, above=0.0)
        for gamma in np.ravel(np.asarray(gammas, dtype=object))
    ]
    if not values:
        raise ValueError("gammas is empty. Give one value of gamma or more.")
    return np.array(values)
