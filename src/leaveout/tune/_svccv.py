# SPDX-License-Identifier: BSD-3-Clause
"""``SVCCV``: a support vector classifier that tunes C and gamma."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
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
from leaveout.adapt._prepare import checked_target
from leaveout.estimators._svc import SVC
from leaveout.exceptions import AntiLearningWarning
from leaveout.kernel._gram import check_gram, kernel_parameters
from leaveout.loo._result import LooResult
from leaveout.loo._task import Target
from leaveout.tune._calibration import Sigmoid, class_probabilities, fit_pair_sigmoids
from leaveout.tune._choice import (
    best_within_one_se,
    default_Cs,
    default_gammas,
    kernel_scale,
    rank_candidates,
    take_best,
)
from leaveout.tune._search import LooSearchCV


def _has_probabilities(self: SVCCV) -> bool:
    if self.probability:
        return True
    raise AttributeError("SVCCV has probability=False. Fit it with probability=True.")


class SVCCV(ClassifierMixin, BaseEstimator):
    """Support vector classifier tuned by exact leave-one-out.

    Chooses C and gamma on a grid adapted to the scale of the data, by the exact
    leave-one-out error of every cell (grid point). The best cell is refitted on all
    samples, and its left-out decision values calibrate the probabilities.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As in :class:`SVC`.
    Cs : "auto" or array-like, default="auto"
        Values of C. "auto" is 0.01, 0.1, ..., 1000, divided by a power of ten near the
        variance of the samples if kernel is "linear" or "precomputed".
    gammas : "auto" or array-like, default="auto"
        Values of gamma, for kernels that have one. "auto" is 1/16, 1/4, 1, 4 and 16
        times 1 / median squared distance ("rbf"; similar for other kernels).
    scoring : str or callable, default=None
        Score to maximise; None is the accuracy. It is called once with all left-out
        predictions, as in :class:`LooSearchCV`.
    probability : bool, default=True
        Whether to enable probability estimates, at almost no cost.
    class_weight : dict or "balanced", default=None
        Factor of C per class; "balanced" is resolved in each fold.
    one_se : bool, default=False
        Choose the cell with the smallest C, then the smallest gamma, whose score is
        within one standard error of the best.
    degree : int, default=3
        Degree of the polynomial kernel ("poly").
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    n_jobs, verbose, checkpoint
        As in :class:`LooSearchCV`.

    Attributes
    ----------
    C_, gamma_ : float
        Chosen values. ``gamma_`` is None for a kernel without gamma.
    loo_error_, loo_error_std_ : float
        Leave-one-out error of the chosen cell, and its standard error. The error is
        optimistic: the smallest of many.
    loo_decision_values_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Decision values of each sample by the classifier trained without it.
    loo_result_ : LooResult
        Predictions, margins and certificates of the chosen cell.
    cv_results_ : dict of ndarray
        One entry per cell, as in :class:`LooSearchCV`.
    best_index_, best_params_, best_score_
        Index of the chosen cell in ``cv_results_``, its parameters and its score.
    best_estimator_ : SVC
        Classifier fitted on all samples.
    platt_slope_, platt_offset_ : ndarray of shape (n_pairs,)
        P = 1 / (1 + exp(-(slope f + offset))) per pair of classes, if ``probability``.
    classes_, n_features_in_, feature_names_in_
        As in :class:`SVC`.

    See Also
    --------
    LooSearchCV : Any grid, Pipelines, groups.

    Notes
    -----
    Scale the features first: ``make_pipeline(StandardScaler(), SVCCV())``. The scaler
    is then fitted once on all rows, including those left out later;
    :class:`LooSearchCV` on a Pipeline fits it without them. Ties go to the smaller C,
    then to the smaller gamma. Cells whose C is too small, so that class proportions
    alone decide (``LooResult.anti_learning``), are chosen only if there is no other
    cell, with a warning.

    Probabilities come from Platt scaling of the exact left-out values [1]_ [2]_; for
    more than two classes they are coupled over pairs [3]_. If the left-out values rank
    the classes in the wrong order, as on pure noise, the probabilities are the class
    proportions, with a warning. As in scikit-learn's SVC, the most probable class may
    differ from the one that ``predict`` returns.

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
        """Choose C and gamma by exact leave-one-out, and fit on all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples; the symmetric Gram matrix if kernel="precomputed".
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Rescales C per sample, and weights the samples in the scores and in the
            calibration. Rows with weight 0 are ignored.

        Returns
        -------
        SVCCV
            Fitted estimator.
        """
        self._check_parameters()
        X = check_features(self, X, reset=True)
        target = checked_target(y, X.shape[0], sample_weight)
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
            refit=partial(_take_cell, one_se=self.one_se),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
            error_score="raise",
        )
        weights = {} if sample_weight is None else {"sample_weight": target.weights}
        # With routing, estimator and scorers would have to request the weights.
        routing_off = config_context(enable_metadata_routing=False)
        with warnings.catch_warnings(record=True) as caught, routing_off:
            warnings.simplefilter("always")
            search.fit(X, target.labels, **weights)
        for warning in caught:
            warnings.warn(warning.message, warning.category, stacklevel=2)
        self._store(vars(search), target)
        self._warn_passed_over()
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Evaluate the decision function; parameters as in :class:`SVC`."""
        X = self._check(X)
        return self.best_estimator_.decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels; parameters as in :class:`SVC`."""
        X = self._check(X)
        return self.best_estimator_.predict(X)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities, in the order of ``classes_``."""
        X = self._check(X)
        values = self.best_estimator_._values(X)
        fitted = zip(self.platt_slope_, self.platt_offset_, strict=True)
        return class_probabilities(values, [Sigmoid(*pair) for pair in fitted])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the class probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _check_parameters(self) -> None:
        """Raise if a parameter is invalid; the SVC checks its own parameters."""
        check_flag("probability", self.probability)
        check_flag("one_se", self.one_se)
        if isinstance(self.scoring, list | tuple | set | Mapping):
            raise ValueError(
                f"scoring must be a single score; got {self.scoring!r}. "
                "Use LooSearchCV for several."
            )

    def _make_grid(self, X: Any, present: BoolArray) -> dict[str, list[float]]:
        """Return the grid, sorted; rows with weight 0 are ignored."""
        rows = np.flatnonzero(present)
        X = X[np.ix_(rows, rows)] if self.kernel == "precomputed" else X[rows]
        if _is_auto("Cs", self.Cs):
            Cs = default_Cs(kernel_scale(X, self.kernel))
        else:
            Cs = check_penalties(self.Cs)
        grid = {"C": np.unique(Cs).tolist()}
        if "gamma" not in kernel_parameters(self.kernel):
            return grid
        if _is_auto("gammas", self.gammas):
            gammas = default_gammas(X, self.kernel)
        else:
            gammas = _check_gammas(self.gammas)
        return {**grid, "gamma": np.unique(gammas).tolist()}

    def _store(self, search: Mapping[str, Any], target: Target) -> None:
        """Set the fitted attributes from those of a search."""
        self.loo_result_: LooResult = search["best_loo_result_"]
        if self.probability:
            values: Any = self.loo_result_.binary_values
            sigmoids = fit_pair_sigmoids(values, target)
            self.platt_slope_ = np.array([s.slope for s in sigmoids])
            self.platt_offset_ = np.array([s.offset for s in sigmoids])
        self.cv_results_ = search["cv_results_"]
        self.best_index_ = search["best_index_"]
        self.best_params_ = search["best_params_"]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.best_estimator_ = search["best_estimator_"]
        self.classes_ = self.best_estimator_.classes_
        self.loo_decision_values_ = self.loo_result_.decision_values
        self.loo_error_ = self.loo_result_.error
        self.loo_error_std_ = self.loo_result_.standard_error
        self.C_ = float(self.best_params_["C"])
        gamma = self.best_params_.get("gamma")
        self.gamma_ = None if gamma is None else float(gamma)

    def _warn_passed_over(self) -> None:
        """Warn if the best score was not chosen because its cell is anti-learning."""
        scores = self.cv_results_["mean_test_score"]
        above = scores[_flagged(self.cv_results_) & (scores > self.best_score_)]
        if above.size and not self.loo_result_.anti_learning:
            warnings.warn(
                f"{above.size} cell(s) with a score up to {above.max():.4g} were "
                f"passed over for one with {self.best_score_:.4g}, because their C is "
                "too small: class proportions alone decide. The features may carry no "
                "information about the classes. Try larger C or other features.",
                AntiLearningWarning,
                stacklevel=3,
            )

    def _check(self, X: Any) -> Any:
        """Return new samples, checked against those seen in fit."""
        check_is_fitted(self)
        return check_features(self, X, reset=False)


def take_chosen(search: LooSearchCV, best: SVC, X: Any, y: Any) -> SVCCV:
    """Return the SVCCV whose grid is only the chosen cell of a search."""
    table, at = search.cv_results_, search.best_index_
    cell = {
        name: search.best_params_[name]
        for name in ("C", "gamma")
        if name in search.best_params_
    }
    model = SVCCV(
        best.kernel,
        Cs=[cell["C"]],
        gammas=[cell["gamma"]] if "gamma" in cell else "auto",
        class_weight=best.class_weight,
        degree=best.degree,
        coef0=best.coef0,
    )
    check_features(model, X, reset=True)
    row = {
        name: column[at : at + 1]
        for name, column in table.items()
        if name[6:] in cell or not name.startswith("param_")
    }
    found = {
        "cv_results_": row | {"params": [cell], "rank_test_score": np.ones(1, int)},
        "best_index_": 0,
        "best_params_": cell,
        "best_estimator_": best,
        "best_loo_result_": search.best_loo_result_,
    }
    model._store(found, checked_target(y, len(y)))
    return model


def _flagged(table: Mapping[str, Any]) -> BoolArray:
    return np.ma.filled(table["anti_learning"], True)


def _take_cell(table: Mapping[str, Any], one_se: bool) -> int:
    """Return the best cell that is not anti-learning, if there is one."""
    if "mean_test_score" not in table:
        raise ValueError(
            "scoring must return a single number, but it returned several. Use "
            "LooSearchCV for several scores."
        )
    scores, avoid = table["mean_test_score"], _flagged(table)
    cells = table["param_C"], table.get("param_gamma")
    if one_se:
        return best_within_one_se(scores, table["std_test_score"], *cells, avoid=avoid)
    return take_best(rank_candidates(scores, avoid), *cells)


def _is_auto(name: str, values: Any) -> bool:
    """Return whether the values are "auto"; refuse any other string."""
    if isinstance(values, str) and values != "auto":
        raise ValueError(f"{name} must be 'auto' or numbers; got {values!r}.")
    return isinstance(values, str)


def _check_gammas(gammas: Any) -> FloatArray:
    """Return one or more finite positive numbers."""
    values = np.ravel(np.asarray(gammas, dtype=object))
    if not values.size:
        raise ValueError("gammas is empty. Pass at least one value of gamma.")
    return np.array([check_number("gamma", gamma, above=0.0) for gamma in values])
