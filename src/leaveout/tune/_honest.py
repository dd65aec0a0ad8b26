# SPDX-License-Identifier: BSD-3-Clause
"""``honest_loo``: nested leave-one-out, the error with tuning included."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.adapt._checks import (
    check_groups,
    check_labels,
    check_sample_weight,
    count_rows,
)
from leaveout.adapt._pipeline import take_columns, take_rows
from leaveout.adapt._unwrap import predicts_numbers
from leaveout.loo._result import wilson_interval
from leaveout.loo._summary import Summary, as_percent, format_error
from leaveout.run._parallel import count_workers, limit_blas, show_progress
from leaveout.tune._paths import open_checkpoint, run_tasks
from leaveout.tune._search import LooSearchCV
from leaveout.tune._svccv import SVCCV


@dataclass(frozen=True, eq=False, repr=False)
class HonestLoo(Summary):
    """Nested leave-one-out: parameters are chosen again without each left-out sample.

    Parameters
    ----------
    y : ndarray of shape (n,)
        True labels.
    predictions : ndarray of shape (n,)
        Labels predicted by the classifier tuned and fitted without the sample.
    folds : ndarray of shape (n,)
        Fold in which each sample was left out: its own, or that of its group.
    params : tuple of dict
        Parameters chosen in each fold; empty if a fold had only one class.
    naive_error : float
        Leave-one-out error of the parameters chosen on all samples. Optimistic, since
        they were chosen for a small error.
    seconds : float
        Computing time.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two classes
    >>> search = lo.LooSearchCV(lo.SVC(gamma=0.1), {"C": [1, 10]})
    >>> result = lo.honest_loo(search, X, y, verbose=0)
    >>> result.error, result.naive_error
    (0.05, 0.04)
    >>> result.choices
    [({'C': 1}, 92), ({'C': 10}, 8)]
    """

    __module__ = "leaveout"

    y: np.ndarray
    predictions: np.ndarray
    folds: IntArray
    params: tuple[Mapping[str, Any], ...]
    naive_error: float
    seconds: float

    @property
    def wrong(self) -> BoolArray:
        """Mask of wrong predictions."""
        return self.predictions != self.y

    @property
    def error(self) -> float:
        """Fraction of wrong predictions."""
        return float(self.wrong.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of ``error``, as if folds were independent."""
        sums = np.bincount(self.folds, self.wrong - self.error)
        return float(np.sqrt((sums**2).sum()) / self.y.shape[0])

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson score interval of ``error``: its ends, as fractions.

        As if folds were independent; with groups, each group counts as one sample. The
        choice of parameters is covered, dependence between the folds is not.
        """
        return wilson_interval(self.error, np.unique(self.folds).size)

    @property
    def optimism(self) -> float:
        """Bias of the naive error: ``error - naive_error``."""
        return self.error - self.naive_error

    @property
    def choices(self) -> list[tuple[Mapping[str, Any], int]]:
        """Parameters and the number of folds that chose them, most frequent first."""
        texts = [repr(sorted(chosen.items())) for chosen in self.params]
        first = {text: k for k, text in reversed(list(enumerate(texts)))}
        counted = Counter(texts).most_common()
        return [(self.params[first[text]], count) for text, count in counted]

    _title = "Nested leave-one-out"

    def _verdict(self) -> str:
        return f"error with tuning included {format_error(self.error, self.interval)}"

    def _rows(self) -> list[tuple[str, Any]]:
        return [
            ("samples", self.y.shape[0]),
            ("folds", len(self.params)),
            ("error", format_error(self.error, self.interval)),
            (
                "naive error",
                f"{as_percent(self.naive_error)} (optimistic)",
            ),
            ("seconds", f"{self.seconds:.3g}"),
        ]

    def _notes(self) -> list[str]:
        notes = [f"  chosen {_text(p)} in {k}" for p, k in self.choices[:5]]
        if len(self.choices) > 5:
            notes.append(f"  … {len(self.choices) - 5} other choices")
        return notes


def _text(params: Mapping[str, Any]) -> str:
    """Return parameters as a user would write them."""
    shown = [
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    ]
    return ", ".join(shown) or "nothing (one class)"


def honest_loo(
    search: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
) -> HonestLoo:
    """Estimate the error with tuning included, by nested leave-one-out.

    The smallest leave-one-out error of a grid is optimistic, because the parameters
    were chosen on the same samples. Here every sample is left out of the complete
    procedure, including the choice of parameters and the preprocessing.

    Parameters
    ----------
    search : LooSearchCV or SVCCV
        The search to evaluate. It does not need to be fitted and is not changed.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed".
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Passed to ``search.fit``. All samples count equally in the error.
    groups : array-like of shape (n_samples,), default=None
        Samples with equal entries are left out together, in the outer and the inner
        loop. At least three groups are needed.
    n_jobs : int, default=None
        Number of folds to run in parallel. None means 1, -1 means all cores. The inner
        searches use one job each.
    verbose : int, default=1
        If positive, show progress and the remaining time on stderr.
    checkpoint : str or path-like, default=None
        File that stores each finished fold. Run again with the same data and search to
        resume from it.

    Returns
    -------
    HonestLoo
        ``error``, ``interval``, ``naive_error``, ``predictions``, ``choices``.

    References
    ----------
    .. [1] G. C. Cawley and N. L. C. Talbot, "On over-fitting in model selection and
       subsequent selection bias in performance evaluation", Journal of Machine Learning
       Research 11, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> import leaveout as lo
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 5)), rng.integers(0, 2, 40)  # nothing to learn
    >>> search = lo.LooSearchCV(lo.SVC(), {"C": [10, 100], "gamma": [0.03, 0.1, 1]})
    >>> result = lo.honest_loo(search, X, y, verbose=0)
    >>> round(result.error, 3), round(result.naive_error, 3)
    (0.525, 0.425)
    """
    started = perf_counter()
    nested = _prepare(search, X, y, sample_weight, groups)
    full, warned = nested.fit(np.arange(nested.labels.size))
    result = full.loo_result_ if isinstance(full, SVCCV) else full.best_loo_result_
    data = [nested.X, nested.labels, nested.weights, nested.groups]
    outcomes = run_tasks(
        _Nested.run,
        [(nested, number) for number in range(int(nested.folds.max()) + 1)],
        open_checkpoint(checkpoint, task="honest", data=data, search=nested.search),
        lambda number, arrays, facts: _FoldOutcome(number, **arrays, **facts),
        partial(show_progress, label="Folds", verbose=verbose > 0),
        n_workers=count_workers(n_jobs),
        small=True,
        unit="folds",
        verbose=verbose,
    )
    _repeat_warnings(warned, outcomes)
    predictions = np.empty_like(nested.labels)
    for number, outcome in outcomes.items():
        predictions[nested.folds == number] = nested.classes[outcome.codes]
    params = []
    for choice in (outcome.choice for outcome in outcomes.values()):
        if isinstance(choice, int):
            choice = dict(sorted(full.cv_results_["params"][choice].items()))
        params.append(choice)
    return HonestLoo(
        y=nested.labels,
        predictions=predictions,
        folds=nested.folds,
        params=tuple(params),
        naive_error=float(result.wrong.mean()),
        seconds=perf_counter() - started,
    )


Warned: TypeAlias = tuple[tuple[type[Warning], str], ...]


class _FoldOutcome(NamedTuple):
    """Result of a fold: codes of the predicted classes, and the chosen candidate."""

    number: int
    codes: IntArray
    choice: int | dict[str, float]  # index in the grid, or parameters for SVCCV
    warned: Warned = ()

    def pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return arrays and facts for the checkpoint."""
        return {"codes": self.codes}, {"choice": self.choice}


@dataclass(frozen=True)
class _Nested:
    """Data and search shared by all folds."""

    search: Any
    X: Any
    labels: NDArray[Any]
    classes: NDArray[Any]
    weights: FloatArray | None
    groups: IntArray | None
    folds: IntArray

    def fit(self, rows: IntArray) -> tuple[Any, Warned]:
        """Tune and fit on some rows; also return the warnings, each once."""
        X = take_rows(self.X, rows)
        if self._pairwise:
            X = take_columns(X, rows)
        how: dict[str, Any] = {}
        if self.weights is not None:
            how["sample_weight"] = self.weights[rows]
        if self.groups is not None:
            how["groups"] = self.groups[rows]
        with warnings.catch_warnings(record=True) as caught, limit_blas(1):
            warnings.simplefilter("always")
            fitted = clone(self.search).fit(X, self.labels[rows], **how)
        warned = dict.fromkeys((w.category, str(w.message)) for w in caught)
        return fitted, tuple(warned)

    def run(self, number: int) -> _FoldOutcome:
        """Leave out one sample or group, tune and fit on the rest, and predict."""
        left_out = self.folds == number
        kept, rows = np.flatnonzero(~left_out), np.flatnonzero(left_out)
        present = slice(None) if self.weights is None else self.weights[kept] > 0
        found = np.unique(self.labels[kept][present])
        if found.size == 1:
            # Every candidate predicts the only class.
            return _FoldOutcome(number, np.full(rows.size, self._code(found)[0]), {})
        fitted, warned = self.fit(kept)
        x = take_rows(self.X, rows)
        labels = fitted.predict(take_columns(x, kept) if self._pairwise else x)
        choice = (
            fitted.best_index_
            if isinstance(fitted, LooSearchCV)
            else {name: float(v) for name, v in fitted.best_params_.items()}
        )
        return _FoldOutcome(number, self._code(labels), choice, warned)

    @property
    def _pairwise(self) -> bool:
        return bool(get_tags(self.search).input_tags.pairwise)

    def _code(self, labels: NDArray[Any]) -> IntArray:
        return np.searchsorted(self.classes, labels)


def _prepare(search: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> _Nested:
    """Check the arguments; make the inner search silent and sequential."""
    if not isinstance(search, LooSearchCV | SVCCV):
        raise TypeError(
            f"search must be a LooSearchCV or SVCCV; got {type(search).__name__}. Wrap "
            "an SVC: LooSearchCV(SVC(), {'C': [...], 'gamma': [...]}); for other "
            "searches use sklearn.model_selection.cross_val_predict(search, X, y, "
            "cv=LeaveOneOut())."
        )
    if predicts_numbers(getattr(search, "estimator", None)):
        raise TypeError(
            "honest_loo takes classifiers only; the LooSearchCV is over a "
            "regressor. Use sklearn.model_selection.cross_val_predict(search, X, y, "
            "cv=LeaveOneOut())."
        )
    labels = check_labels(y, count_rows(X))
    n = labels.size
    weights = None if sample_weight is None else check_sample_weight(sample_weight, n)
    folds = np.arange(n)
    if groups is not None:
        if not has_fit_parameter(search, "groups"):
            raise ValueError(
                f"groups: {type(search).__name__} leaves out single samples. Pass a "
                "LooSearchCV, which can leave out groups."
            )
        groups = folds = check_groups(
            groups, np.ones(n) if weights is None else weights
        )
        if folds.max() < 2:
            raise ValueError(
                "groups: nested leave-one-out needs at least three groups, one to "
                "predict, one to choose parameters, one to fit; got 2."
            )
    known = search.get_params(deep=False)
    quiet: dict[str, Any] = {"n_jobs": 1, "verbose": 0, "checkpoint": None}
    if "probability" in known:
        quiet["probability"] = False
    if known.get("refit") is False:
        quiet["refit"] = True  # needed for predict
        if isinstance(search.scoring, list | tuple | set | Mapping):
            raise ValueError(
                "search has several scores and refit=False, so no score decides. Set "
                "refit to the name of the score that decides."
            )
    inner = clone(search).set_params(**quiet)
    return _Nested(inner, X, labels, np.unique(labels), weights, groups, folds)


def _repeat_warnings(full: Warned, outcomes: Mapping[int, _FoldOutcome]) -> None:
    """Repeat the warnings of the full fit, and one per other category of the folds."""
    for category, text in full:
        warnings.warn(text, category, stacklevel=3)
    texts: dict[type[Warning], list[str]] = {}
    for outcome in outcomes.values():
        for category, text in dict(outcome.warned).items():
            texts.setdefault(category, []).append(text)
    for category in texts.keys() - dict(full):
        found = texts[category]
        text = f"In {len(found)} of {len(outcomes)} folds: {found[0]}"
        warnings.warn(text, category, stacklevel=3)
