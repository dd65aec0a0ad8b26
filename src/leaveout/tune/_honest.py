# SPDX-License-Identifier: BSD-3-Clause
"""honest_loo: the error of tuning and fitting together.

The error of "tune by leave-one-out, then fit", from nested leave-one-out.

``honest_loo``: nested leave-one-out, the error of tuning and fitting together.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

import leaveout
from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.adapt._checks import (
    check_groups,
    check_labels,
    check_sample_weight,
    count_rows,
)
from leaveout.adapt._pipeline import take_columns, take_rows
from leaveout.run._checkpoint import Checkpoint, fingerprint, report_interruption
from leaveout.run._parallel import (
    count_workers,
    limit_blas,
    map_parallel,
    show_progress,
)

# Choices that str() shows.
SHOWN = 5


@dataclass(frozen=True, eq=False)
class HonestLoo:
    """Nested leave-one-out: parameters were chosen anew without each left-out sample.

    Parameters
    ----------
    y : ndarray of shape (n,)
        True labels.
    predictions : ndarray of shape (n,)
        Labels by the classifier tuned and fitted without the sample.
    folds : ndarray of shape (n,)
        Fold in which each sample was left out: its own, or that of its group.
    params : tuple of dict
        Parameters chosen in each fold; empty where a fold had one class only.
    naive_error : float
        Leave-one-out error of the parameters chosen on all samples: the smallest of
        many, hence optimistic.
    seconds : float
        Time it took.

    Examples
    --------
    >>> import numpy as np
    >>> labels, found = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    >>> chosen = ({"C": 1}, {"C": 10}, {"C": 1}, {"C": 1})
    >>> result = HonestLoo(labels, found, np.arange(4), chosen, 0.0, 0.1)
    >>> result.error, result.choices[0]
    (0.25, ({'C': 1}, 3))
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
        """Mask of the samples that are predicted wrongly."""
        return self.predictions != self.y

    @property
    def error(self) -> float:
        """Share of wrong samples."""
        return float(self.wrong.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of ``error``, as if folds were independent.

        The deviations are summed over each fold first, since samples of a group go
        wrong together; with one sample a fold it is sqrt(p (1 - p) / n).
        """
        sums = np.bincount(self.folds, self.wrong - self.error)
        return float(np.sqrt((sums**2).sum()) / self.y.shape[0])

    @property
    def optimism(self) -> float:
        """How much the naive error is too small: ``error - naive_error``."""
        return self.error - self.naive_error

    @property
    def choices(self) -> list[tuple[Mapping[str, Any], int]]:
        """Parameters and how many folds chose them, the most frequent first."""
        texts = [repr(sorted(chosen.items())) for chosen in self.params]
        first = {text: k for k, text in reversed(list(enumerate(texts)))}
        counted = Counter(texts).most_common()
        return [(self.params[first[text]], count) for text, count in counted]

    def __str__(self) -> str:
        """Small table: the honest error beside the naive one, and what was chosen."""
        rows: list[tuple[str, Any]] = [
            ("samples", self.y.shape[0]),
            ("folds", len(self.params)),
            ("error", f"{self.error:.4f} ± {self.standard_error:.4f}"),
            ("naive error", f"{self.naive_error:.4f} (smallest of the grid)"),
            ("seconds", f"{self.seconds:.3g}"),
        ]
        lines = [f"  {name:<14}{value}" for name, value in rows]
        lines += [f"  chosen {_text(p)} in {k}" for p, k in self.choices[:SHOWN]]
        if len(self.choices) > SHOWN:
            lines.append(f"  … {len(self.choices) - SHOWN} other choices")
        return "\n".join(["Nested leave-one-out", *lines])


def _text(params: Mapping[str, Any]) -> str:
    """Parameters as a user would write them."""
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
    """Estimate the error of "tune by leave-one-out, then fit", by nested leave-one-out.

    The smallest leave-one-out error of a grid is too good: its parameters were chosen
    with the very samples it is measured on. Here every sample is left out of the whole
    procedure in turn: parameters are chosen by exact leave-one-out on the others, the
    classifier is fitted on them, preprocessing included, and asked about the one.

    Parameters
    ----------
    search : LooSearchCV or SVCCV
        How parameters are chosen. It need not be fitted and is not changed.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed".
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        What ``search.fit`` gets of it. The error counts all samples alike.
    groups : array-like of shape (n_samples,), default=None
        Samples with equal entries are left out together, outside and inside. There
        must be three groups or more.
    n_jobs : int, default=None
        joblib's workers over the samples or groups left out; None means 1, -1 all
        cores. The searches inside have one.
    verbose : int, default=1
        Above 0, the time it will take, measured on the first fold, and how far it is
        are written to stderr.
    checkpoint : str or path-like, default=None
        File that keeps each finished fold. Run again with the same data and search, it
        goes on from there.

    Returns
    -------
    HonestLoo
        ``error``, ``standard_error``, ``naive_error``, ``predictions``, ``choices``.

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
    case = _prepare(search, X, y, sample_weight, groups)
    full, warned = case.fit(np.arange(case.labels.size))
    naive_error = _left_out_error(full)
    outcomes = _run_folds(case, count_workers(n_jobs), verbose, checkpoint)
    _repeat_warnings(warned, outcomes)
    predictions = np.empty_like(case.labels)
    for number, outcome in outcomes.items():
        predictions[case.folds == number] = case.classes[outcome.codes]
    return HonestLoo(
        y=case.labels,
        predictions=predictions,
        folds=case.folds,
        params=tuple(case.params_of(outcomes[k].choice) for k in range(len(outcomes))),
        naive_error=naive_error,
        seconds=perf_counter() - started,
    )


Warned: TypeAlias = tuple[tuple[type[Warning], str], ...]


class _Outcome(NamedTuple):
    """What a fold gives.

    ``codes`` are the classes predicted for the samples left out, ``choice`` is the
    chosen candidate: its number, or its parameters if the search has no list of them.
    """

    number: int
    codes: IntArray
    choice: int | dict[str, float]
    warned: Warned = ()


@dataclass(frozen=True)
class _Case:
    """What all folds share."""

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
        return fitted, tuple(
            dict.fromkeys((w.category, str(w.message)) for w in caught)
        )

    def run(self, number: int) -> _Outcome:
        """Leave one sample or group out of everything."""
        left_out = self.folds == number
        kept, rows = np.flatnonzero(~left_out), np.flatnonzero(left_out)
        present = slice(None) if self.weights is None else self.weights[kept] > 0
        found = np.unique(self.labels[kept][present])
        if found.size == 1:
            # Nothing to choose: whatever the parameters, all are of that class.
            return _Outcome(number, np.full(rows.size, self._code(found)[0]), {})
        fitted, warned = self.fit(kept)
        x = take_rows(self.X, rows)
        labels = fitted.predict(take_columns(x, kept) if self._pairwise else x)
        return _Outcome(number, self._code(labels), _choice(fitted), warned)

    def params_of(self, choice: int | dict[str, float]) -> Mapping[str, Any]:
        """Return the parameters of a choice."""
        if isinstance(choice, dict):
            return choice
        return dict(sorted(ParameterGrid(self.search.param_grid)[choice].items()))

    @property
    def _pairwise(self) -> bool:
        return bool(get_tags(self.search).input_tags.pairwise)

    def _code(self, labels: NDArray[Any]) -> IntArray:
        return np.searchsorted(self.classes, labels)


def _prepare(search: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> _Case:
    """Check what was passed; make the search inside a fold silent and sequential."""
    of_sklearn = type(search).__module__.startswith("sklearn.")
    if of_sklearn or not hasattr(search, "fit") or not hasattr(search, "get_params"):
        raise _unfit(search)
    labels = check_labels(y, count_rows(X))
    n = labels.size
    weights = None if sample_weight is None else check_sample_weight(sample_weight, n)
    folds = np.arange(n)
    if groups is not None:
        if not has_fit_parameter(search, "groups"):
            raise ValueError(
                f"groups: {type(search).__name__} leaves out single samples and has no "
                "groups to choose by. Pass a LooSearchCV."
            )
        present = np.ones(n) if weights is None else weights
        groups = folds = check_groups(groups, present)
        if folds.max() < 2:
            raise ValueError(
                "groups: nested leave-one-out needs three groups or more, one to ask "
                "about, one to choose parameters by, one to fit on; got 2."
            )
    known = search.get_params(deep=False)
    quiet = {"n_jobs": 1, "verbose": 0, "checkpoint": None, "probability": False}
    if known.get("refit") is False:
        quiet["refit"] = True  # it has to predict
        if isinstance(search.scoring, list | tuple | set | Mapping):
            raise ValueError(
                "search has several scores and refit=False: there is no choice to "
                "judge. Set refit to the name of the score that decides."
            )
    quiet = {name: value for name, value in quiet.items() if name in known}
    inner = clone(search).set_params(**quiet)
    return _Case(inner, X, labels, np.unique(labels), weights, groups, folds)


def _run_folds(
    case: _Case, n_workers: int, verbose: int, checkpoint: Any
) -> dict[int, _Outcome]:
    """Run all folds that the checkpoint does not have."""
    n_folds = int(case.folds.max()) + 1
    found: dict[int, _Outcome] = {}
    with _open(checkpoint, case) as kept, report_interruption(kept, n_folds, "folds"):
        for number in range(n_folds):
            stored = None if kept is None else kept.get(number)
            if stored is not None:
                arrays, facts = stored
                found[number] = _Outcome(number, arrays["codes"], facts["choice"])
        open_ = [number for number in range(n_folds) if number not in found]
        if verbose > 0 and found:
            sys.stderr.write(f"Resumed: {len(found)} of {n_folds} folds are there.\n")
        for outcome in _outcomes(case, open_, n_workers, verbose):
            found[outcome.number] = outcome
            if kept is not None:
                facts = {"choice": outcome.choice}
                kept.put(outcome.number, {"codes": outcome.codes}, facts)
    return found


def _outcomes(
    case: _Case, numbers: list[int], n_workers: int, verbose: int
) -> Iterator[_Outcome]:
    """Yield each fold when it is done; the first one tells how long all will take."""
    if not numbers:
        return
    started = perf_counter()
    yield case.run(numbers[0])
    seconds = perf_counter() - started
    later = numbers[1:]
    if verbose > 0:
        total = seconds * -(-len(later) // n_workers)
        sys.stderr.write(
            f"Nested leave-one-out: {len(later)} folds to go, {seconds:.2g} s each, "
            f"about {total:.2g} s on {n_workers} worker(s)\n"
        )
        sys.stderr.flush()
    others = map_parallel(
        _Case.run,
        ((case, number) for number in later),
        n_jobs=min(n_workers, max(1, len(later))),
        ordered=False,
    )
    yield from show_progress(others, len(later), "folds", verbose=verbose > 0)


def _open(path: Any, case: _Case) -> Any:
    """Open the checkpoint of these data and this search, if asked for."""
    if path is None:
        return nullcontext()
    data = [case.X, case.labels, case.weights, case.groups]
    meta = {
        "task": "honest_loo",
        "data": fingerprint(data),
        "search": fingerprint(case.search),
        "version": leaveout.__version__,
    }
    return Checkpoint(path, meta)


def _choice(fitted: Any) -> int | dict[str, float]:
    """Return what a fitted search has chosen."""
    if hasattr(fitted, "param_grid"):
        return int(fitted.best_index_)
    return {name: float(value) for name, value in fitted.best_params_.items()}


def _left_out_error(fitted: Any) -> float:
    """Return the leave-one-out error of what a search has chosen on all samples."""
    for name in ("best_loo_result_", "loo_result_"):
        if hasattr(fitted, name):
            return float(getattr(fitted, name).wrong.mean())
    raise _unfit(fitted)


def _unfit(search: Any) -> TypeError:
    """Say what to pass instead of something that does not tune by leave-one-out."""
    return TypeError(
        f"search must be a LooSearchCV or SVCCV; got {type(search).__name__}. Wrap an "
        "SVC: LooSearchCV(SVC(), {'C': [...], 'gamma': [...]}); for other searches use "
        "sklearn.model_selection.cross_val_predict(search, X, y, cv=LeaveOneOut())."
    )


def _repeat_warnings(full: Warned, outcomes: Mapping[int, _Outcome]) -> None:
    """Give the warnings of the full fit, and one of each other kind of the folds."""
    for category, text in full:
        warnings.warn(text, category, stacklevel=3)
    known = {category for category, _ in full}
    texts: dict[type[Warning], list[str]] = {}
    for outcome in outcomes.values():
        for category, text in dict(outcome.warned).items():
            texts.setdefault(category, []).append(text)
    for category in texts.keys() - known:
        found = texts[category]
        warnings.warn(
            f"In {len(found)} of {len(outcomes)} folds: {found[0]}",
            category,
            stacklevel=3,
        )
