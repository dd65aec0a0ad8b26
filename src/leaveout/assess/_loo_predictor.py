# SPDX-License-Identifier: BSD-3-Clause
"""LooPredictor: leave-one-out errors estimated from one fit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import LeaveOneOut, ParameterGrid, cross_val_predict
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.adapt._checks import check_count, check_labels, check_number, count_rows
from leaveout.adapt._fitted import FittedExpansion, read_expansion
from leaveout.adapt._unwrap import has_exact_method
from leaveout.assess._leave_one_out import leave_one_out
from leaveout.assess._loo_features import (
    SQUARED,
    VARIANTS,
    leave_one_out_features,
    name_features,
    relative_to_own,
)
from leaveout.assess._loo_member import LooMember
from leaveout.exceptions import PredictorWarning

FEWEST_SAMPLES = 5
# Predictions are unreliable if more of the samples are outside the training range, or
# if two members disagree on more of them, on average. For five members the latter is
# about a vote that is not unanimous on 18 % of the samples: docs/method/predictor.
MOST_BEYOND, MOST_DISAGREE = 0.5, 0.09
# In the JSON of a predictor, besides its members.
PARAMETERS = ("variant", "C", "n_estimators", "max_samples")


class LooPredictor(BaseEstimator):
    """Predict which samples a kernel classifier misclassifies when they are left out.

    It learns from classifiers whose left-out labels are known. Features of a sample and
    its three nearest neighbours (coefficients, margins, distances) and their products
    of degree two are the input of a bag of sparse linear classifiers, which vote. The
    result is an *estimate*, for classifiers without an exact method: any class with the
    attributes of :class:`KernelExpansion`. For an SVC, :func:`leave_one_out` is exact
    and about as fast.

    Parameters
    ----------
    variant : str, default="auto"
        Units of the features. "natural": margins y f and coefficients times the largest
        squared distance in feature space. "relative": these, divided by the sum of
        their absolute values for the sample itself. "signed": margins y f / ||w|| and
        the coefficients. "scaled": like "signed", with coefficients divided by their
        upper bound C, or by the largest one if they have no bound. "printed":
        f / ||w||^2 and absolute values, as in the paper. "auto": "natural", and for
        every second member of the bag "relative" if the classifiers have no
        ``row_dual_``.
    C : float, default=30.0
        Weight of the losses against the 1-norm of the coefficients. It is multiplied by
        1000 / n_samples.
    n_estimators : int, default=10
        Number of members of the bag.
    max_samples : int, default=2000
        Maximum number of training samples of each member. They are drawn with
        replacement, equally many from each classifier.
    n_jobs : int, default=None
        Number of threads for exact leave-one-out, or of joblib workers for refits.
    random_state : int, RandomState instance or None, default=None
        Controls the draws of training samples.

    Attributes
    ----------
    feature_names_ : list of str
        The 14 features, or 18 if the classifiers have ``row_dual_``.
    estimators_ : list of LooMember
        The bag. Each member has ``variant``, ``coef`` and ``intercept``, ``mean`` and
        ``scale`` to standardise features, their range ``low`` and ``high``,
        ``duality_gap`` of its linear program, ``n_samples`` and ``error_rate``.
    classes_ : ndarray of shape (n_classes,)
        Classes, like the next four only after :meth:`fit_one_vs_rest`.
    params_ : list of dict
        Candidates.
    errors_ : ndarray of shape (n_classes, n_candidates)
        Left-out errors of one class against the rest: exact for the class learned from,
        predicted for the others.
    best_params_, best_estimators_ : dict
        Candidate with the smallest error, and the classifier fitted with it, by class.

    Notes
    -----
    Tsuda, Rätsch, Mika & Müller (2001), Learning to predict the leave-one-out error of
    kernel based classifiers. The paper's margin f / ||w||^2 lacks the label, and it has
    one classifier, not a bag; docs/method/predictor compares.

    Examples
    --------
    >>> import leaveout as lo
    >>> from leaveout.data import make_banana
    >>> tasks = []
    >>> for seed in range(4):
    ...     for C in (0.3, 1.0, 3.0):
    ...         X, y = make_banana(100, random_state=seed)
    ...         tasks.append((lo.SVC(C=C, gamma=1.0), X, y))
    >>> predictor = lo.LooPredictor(random_state=0).fit(tasks)
    >>> X, y = make_banana(100, random_state=9)
    >>> svc = lo.SVC(C=1.0, gamma=1.0).fit(X, y)
    >>> wrong = predictor.predict_errors(svc, X, y)
    >>> bool((wrong == lo.leave_one_out(svc, X, y).wrong).mean() > 0.95)
    True
    """

    __module__ = "leaveout"

    def __init__(
        self,
        *,
        variant: str = "auto",
        C: float = 30.0,
        n_estimators: int = 10,
        max_samples: int = 2000,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.variant = variant
        self.C = C
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, tasks: Iterable[tuple[Any, Any, Any]], wrong: Sequence[Any] | None = None
    ) -> LooPredictor:
        """Learn from the left-out labels of some classifiers.

        Parameters
        ----------
        tasks : list of (classifier, X, y)
            Classifiers that are not fitted yet are cloned and fitted. Either all or
            none have ``row_dual_``.
        wrong : list of bool arrays, default=None
            Per task, which samples are misclassified when they are left out; masked
            entries of a masked array are not used. By default :func:`leave_one_out`
            computes this exactly and masks ambiguous samples; for classifiers that it
            does not take, clones are refitted without each sample.

        Returns
        -------
        LooPredictor
            The fitted predictor.
        """
        self._check_params()
        listed = _check_tasks(tasks)
        masks = None if wrong is None else _check_wrong(wrong, listed)
        features = [self._features(_expansion(*task)) for task in listed]
        if masks is None:
            masks = [self._leave_out(*task) for task in listed]
        return self._learn(features, masks)

    def fit_one_vs_rest(
        self, estimator: Any, param_grid: Any, X: Any, y: Any, *, learn_from: Any = None
    ) -> LooPredictor:
        """Choose parameters for each class against the rest, leaving out for one only.

        The predictor learns from the classifiers of one class, all candidates, and
        predicts the left-out errors of the classifiers of all other classes (section
        4.2 of the paper).

        Parameters
        ----------
        estimator : object
            Classifier for two classes; it is cloned.
        param_grid : dict or list of dict
            Candidates, as in scikit-learn's ``ParameterGrid``.
        X, y : array-like of shape (n_samples, n_features) and (n_samples,)
            Samples and class labels.
        learn_from : object, default=None
            Label of the class to learn from; by default the most frequent one.

        Returns
        -------
        LooPredictor
            The predictor, with ``classes_``, ``params_``, ``errors_``,
            ``best_params_`` and ``best_estimators_``.

        Examples
        --------
        >>> import leaveout as lo
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.preprocessing import scale
        >>> X, y = load_wine(return_X_y=True)
        >>> X, grid = scale(X), {"gamma": [0.003, 0.03, 0.3], "C": [0.1, 1.0, 10.0]}
        >>> found = lo.LooPredictor(random_state=0).fit_one_vs_rest(
        ...     lo.SVC(), grid, X, y
        ... )
        >>> found.errors_.shape, sorted(found.best_params_)
        ((3, 9), [0, 1, 2])
        """
        self._check_params()
        labels = check_labels(y, count_rows(X))
        classes, counts = np.unique(labels, return_counts=True)
        first = classes[counts.argmax()] if learn_from is None else learn_from
        if first not in classes:
            raise ValueError(
                f"learn_from must be one of the classes {classes.tolist()}; got "
                f"{learn_from!r}."
            )
        params = list(ParameterGrid(param_grid))
        errors = np.empty((classes.size, len(params)))
        best: dict[Any, Any] = dict.fromkeys(classes.tolist())
        for c in sorted(range(classes.size), key=lambda c: classes[c] != first):
            target = (labels == classes[c]).astype(np.intp)
            models = [
                clone(estimator).set_params(**each).fit(X, target) for each in params
            ]
            if classes[c] == first:
                fitted = (_expansion(model, X, target) for model in models)
                features = [self._features(each) for each in fitted]
                outcomes = [self._leave_out(model, X, target) for model in models]
                self._learn(features, outcomes)
                errors[c] = [wrong.data.mean() for wrong in outcomes]
            else:
                errors[c] = [self.predict_error_rate(m, X, target) for m in models]
            chosen = int(errors[c].argmin())
            best[classes.tolist()[c]] = params[chosen], models[chosen]
        self.classes_, self.params_, self.errors_ = classes, params, errors
        self.best_params_ = {label: pair[0] for label, pair in best.items()}
        self.best_estimators_ = {label: pair[1] for label, pair in best.items()}
        return self

    def predict_errors(self, estimator: Any, X: Any, y: Any) -> BoolArray:
        """Return a mask of the samples predicted to be wrong when they are left out.

        More than half of the members predict an error. The classifier must have been
        fitted on X and y; otherwise a clone is fitted. A PredictorWarning says where
        the predictions are unreliable.
        """
        votes = self.decision_values(estimator, X, y) < 0.0
        return votes.mean(axis=0) > 0.5

    def predict_error_rate(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the predicted leave-one-out error: the share of all members' votes.

        Parameters are those of :meth:`predict_errors`.
        """
        return float((self.decision_values(estimator, X, y) < 0.0).mean())

    def decision_values(self, estimator: Any, X: Any, y: Any) -> FloatArray:
        """Return the decision values of the members, (n_estimators, n_samples).

        They are positive where a correct label is predicted. Parameters are those of
        :meth:`predict_errors`.
        """
        check_is_fitted(self)
        fitted = _expansion(estimator, X, y)
        if (fitted.row_dual is not None) != ("row_dual" in self.feature_names_):
            kinds = ["classifiers with row_dual_", "classifiers without row_dual_"]
            has, wants = kinds if fitted.row_dual is None else kinds[::-1]
            raise ValueError(
                f"This LooPredictor was trained on {has}, not on {wants}. Train "
                "another one, or use LooPredictor.load_default(kind=...)."
            )
        features = self._features(fitted)
        members = self.estimators_
        values = np.array([each.decide(features[each.variant]) for each in members])
        beyond = np.mean([each.is_beyond(features[each.variant]) for each in members])
        _warn_if_unreliable(float(beyond), _disagreement(values < 0.0))
        return values

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the predicted accuracy, as a scorer for ``cv=[(rows, rows)]``."""
        return 1.0 - self.predict_error_rate(estimator, X, y)

    def to_json(self, **provenance: Any) -> str:
        """Return the fitted predictor as JSON, with notes on its origin."""
        check_is_fitted(self)
        content = {
            "provenance": provenance,
            "parameters": {name: getattr(self, name) for name in PARAMETERS},
            "feature_names": self.feature_names_,
            "members": [member.to_dict() for member in self.estimators_],
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> LooPredictor:
        """Return the predictor that :meth:`to_json` wrote."""
        content = json.loads(text)
        predictor = cls(**content["parameters"])
        predictor.feature_names_ = content["feature_names"]
        predictor.estimators_ = [LooMember.from_dict(m) for m in content["members"]]
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
        >>> abs(predicted - exact) < 0.02
        True
        """
        if kind not in ("svm", "lpm"):
            raise ValueError(f"kind must be one of 'svm' and 'lpm'; got {kind!r}.")
        name = f"_loo_predictor_{kind}.json"
        return cls.from_json((files(__package__) / name).read_text())

    def _leave_out(self, estimator: Any, X: Any, y: Any) -> MaskedArray:
        """Return which left-out labels are wrong; ambiguous ones are masked."""
        if has_exact_method(estimator):
            result: Any = leave_one_out(estimator, X, y, n_jobs=self.n_jobs)
            return MaskedArray(result.wrong, mask=result.ambiguous)
        labels = cross_val_predict(
            clone(estimator), X, y, cv=LeaveOneOut(), n_jobs=self.n_jobs
        )
        return MaskedArray(labels != np.asarray(y))

    def _check_params(self) -> None:
        """Raise if a parameter is invalid."""
        if self.variant not in ("auto", *VARIANTS):
            raise ValueError(
                f"variant must be one of {['auto', *VARIANTS]}; got {self.variant!r}."
            )
        check_number("C", self.C, above=0.0)
        check_count("max_samples", self.max_samples)
        check_count("n_estimators", self.n_estimators)

    def _features(self, fitted: FittedExpansion) -> dict[str, FloatArray]:
        """Return the features in each unit that members use, which take turns."""
        variants: tuple[str, ...] = (self.variant,)
        if self.variant == "auto":
            variants = SQUARED if fitted.row_dual is None else SQUARED[:1]
        features = {variants[0]: leave_one_out_features(fitted, variants[0])}
        if len(variants) > 1:
            features["relative"] = relative_to_own(features["natural"])
        return features

    def _learn(
        self, parts: list[dict[str, FloatArray]], outcomes: list[MaskedArray]
    ) -> LooPredictor:
        """Fit the bag to the features and the left-out errors of each task."""
        variants = list(parts[0])
        if len({part[name].shape[1] for part in parts for name in part}) > 1:
            raise ValueError(
                "Some of the classifiers have row_dual_ (LPM, LOOM) and some do not, "
                "so their features differ. Train one LooPredictor for each kind."
            )
        known = [~np.ma.getmaskarray(wrong) for wrong in outcomes]
        right = ~np.ma.concatenate(outcomes).compressed()
        features = {
            variant: np.vstack(
                [part[variant][rows] for part, rows in zip(parts, known, strict=True)]
            )
            for variant in variants
        }
        sizes = np.array([np.count_nonzero(rows) for rows in known])
        random = check_random_state(self.random_state)
        members = []
        for i in range(self.n_estimators):
            variant = variants[i % len(variants)]
            rows = _draw(sizes, self.max_samples, random)
            _check_both_outcomes(right[rows])
            drawn = features[variant][rows]
            members.append(LooMember.learn(variant, drawn, right[rows], self.C))
        self.estimators_ = members
        row_dual = members[0].mean.size > len(name_features("natural", row_dual=False))
        self.feature_names_ = name_features(variants[0], row_dual=row_dual)
        return self


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


def _check_wrong(wrong: Any, tasks: list[tuple[Any, Any, Any]]) -> list[MaskedArray]:
    """Return one mask per task."""
    masks = [np.ma.asarray(mask) for mask in wrong]
    if len(masks) != len(tasks):
        raise ValueError(
            f"wrong has {len(masks)} masks for {len(tasks)} tasks. Pass one per task."
        )
    for i, (mask, (_, X, _)) in enumerate(zip(masks, tasks, strict=True)):
        if mask.dtype != bool or mask.shape != (count_rows(X),):
            raise ValueError(
                f"wrong[{i}] must be a bool array with one entry per sample, "
                f"{count_rows(X)}; got {mask.dtype} of shape {mask.shape}. Pass "
                "left_out_labels != y."
            )
    return masks


def _check_both_outcomes(right: BoolArray) -> None:
    """Raise if all left-out labels are right, or all wrong."""
    if right.all() or not right.any():
        what = "no" if right.all() else "only"
        raise ValueError(
            f"The {right.size} left-out samples have {what} errors, so there is "
            "nothing to learn. Add other tasks, or change the classifiers' C."
        )


def _draw(sizes: IntArray, most: int, random: np.random.RandomState) -> IntArray:
    """Draw at most ``most`` of all samples with replacement, evenly from the tasks."""
    starts, n = np.cumsum(sizes) - sizes, min(most, int(sizes.sum()))
    tasks = np.resize(random.permutation(np.flatnonzero(sizes)), n)
    return starts[tasks] + (random.random_sample(n) * sizes[tasks]).astype(np.intp)


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


def _disagreement(votes: BoolArray) -> float:
    """Return the share of samples on which two members disagree, mean over pairs."""
    n, share = votes.shape[0], votes.mean(axis=0)
    return float(np.mean(2.0 * share * (1.0 - share))) * n / max(1, n - 1)


def _warn_if_unreliable(beyond: float, disagree: float) -> None:
    """Warn if many samples are outside the training range, or members disagree."""
    if beyond <= MOST_BEYOND and disagree <= MOST_DISAGREE:
        return
    reason = (
        f"{beyond:.0%} of the samples have features outside the range of the training "
        "data"
        if beyond > MOST_BEYOND
        else f"two members of the bag disagree on {disagree:.0%} of the samples"
    )
    warnings.warn(
        f"The predicted left-out errors may be unreliable: {reason}. Train a "
        "LooPredictor on classifiers and data like these, or use leave_one_out or "
        "refits.",
        PredictorWarning,
        stacklevel=4,
    )
