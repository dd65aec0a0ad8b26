# SPDX-License-Identifier: BSD-3-Clause
"""LooResult and LooPath: exact leave-one-out of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._problem import (
    Folds,
    Problem,
    Solution,
)
from leaveout.loo._summary import Summary, as_percent, format_error

if TYPE_CHECKING:
    import pandas as pd

    from leaveout.lp._lpm import LpmSolution

# Sums of C, and alpha and its C, that differ by less than this share are equal.
EQUAL = 1e-9
NORMAL_975 = 1.959963984540054  # of a normal distribution, 95 % is within +- this


def wilson_interval(error: Any, n_effective: float) -> tuple[Any, Any]:
    """Return the ends of the 95 % Wilson score interval of a share, or of an array.

    All p with abs(error - p) <= z sqrt(p (1 - p) / n) (E. B. Wilson, "Probable
    inference, the law of succession, and statistical inference", Journal of the
    American Statistical Association 22, 1927).
    """
    square = NORMAL_975**2 / n_effective
    middle = error + 0.5 * square
    half = np.sqrt(square * (error * (1.0 - error) + 0.25 * square))
    ends = np.array([middle - half, middle + half]) / (1.0 + square)
    low, high = np.clip(ends, 0.0, 1.0).tolist()
    return low, high


class ExactResult(Summary):
    """What the results of classifiers and regressors share."""

    uncertified_by: np.ndarray
    method: str
    counts: Mapping[str, float]

    @property
    def certified(self) -> BoolArray:
        """Whether each prediction equals that of a tightly converged refit, (n,)."""
        return self.uncertified_by == ""

    def _describe_uncertified(self) -> str:
        """Count the samples that are not certified, by reason."""
        names, numbers = np.unique(
            self.uncertified_by[~self.certified], return_counts=True
        )
        total = str(int(numbers.sum()))
        if not names.size:
            return total
        reasons = [name.replace("_", " ") for name in names]
        if len(reasons) > 1:
            reasons = [f"{k} {why}" for k, why in zip(numbers, reasons, strict=True)]
        return f"{total} ({', '.join(reasons)})"

    def _head(self) -> str:
        return f"Leave-one-out ({self.method})"

    def _cost_rows(self) -> list[tuple[str, Any]]:
        return [
            ("not certified", self._describe_uncertified()),
            ("refits", int(self.counts.get("refits", 0))),
            ("seconds", f"{self.counts.get('seconds', 0.0):.3g}"),
        ]


@dataclass(frozen=True, eq=False, repr=False)
class LooResult(ExactResult):
    """Exact leave-one-out of a classifier.

    Parameters
    ----------
    decision_values : ndarray of shape (n,) or (n, n_outputs)
        Decision function at each sample by the classifier trained without it, with
        scikit-learn's signs and shapes; columns in the order of ``np.unique(y)``.
    predictions : ndarray of shape (n,)
        Labels by those values.
    y : ndarray of shape (n,)
        True labels.
    margins : ndarray of shape (n,)
        y f for two classes; true class minus best other for more.
    lower, upper : ndarray of shape (n,)
        Interval of the margin over all optimal intercepts; NaN with three classes or
        more where an intercept is not unique, because votes have no interval.
    ambiguous : ndarray of bool, shape (n,)
        Whether another optimal intercept gives another label, or f is 0 to rounding.
    settled_by : ndarray of str, shape (n,)
        How the value was found, cheapest first: "zero_alpha" (not a support vector),
        "negative_margin" (wrong on the training set already), "certificate" (an
        interval from the full solution), "first_segment" (a walk without an event: the
        span formula), "walk" (also if it leads to the kernel of the fold),
        "stopping", "eps_kkt", "consolidated", "refit", "singleton" (the only member of
        its class).
    uncertified_by : ndarray of str, shape (n,)
        Why a label is not certified: "not_converged", "rounding", "indefinite_kernel",
        "eps_only" or "bound_only"; empty if it is.
    method : str
        "walk", "refit" …
    counts : mapping
        pivots, refits, seconds and other counts, summed over the binary subproblems.
    weights : ndarray of shape (n,), optional
        Weights of the samples in the error.
    binary_values : ndarray of shape (n, n_subproblems), optional
        Left-out value of each binary subproblem, with its sign: one column for two
        classes, else one per pair of classes (0, 1), (0, 2), …, (1, 2), … in the order
        of ``np.unique(y)``, or per class (one-vs-rest). A
        subproblem that was not trained on a sample has its full value there.
    groups : ndarray of int, shape (n,), optional
        Number of the group each sample was left out with.
    anti_learning : bool, default=False
        Whether C is so small that class proportions alone decide the left-out labels:
        see :attr:`anti_learning_note`. With several subproblems: whether this holds in
        more than half of them, and the error is not smaller than that of always
        predicting the largest class. A single such subproblem does not decide the
        result, and one-vs-rest compares values, whose order may still be right.
    preprocessing : mapping of str to str
        How each step of a Pipeline was fitted without the left-out samples: "closed
        form", "stateless" (the step has nothing to fit) or "fitted in each fold" (a
        clone per fold). Empty if the steps were fitted once, or if every fold was
        fitted from the start.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> import leaveout as lo
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> res = lo.leave_one_out(lo.SVC(C=10, gamma=0.01), scale(X), y)
    >>> round(res.error, 4)
    0.0211
    >>> res.n_ambiguous
    0
    """

    __module__ = "leaveout"

    decision_values: FloatArray
    predictions: np.ndarray
    y: np.ndarray
    margins: FloatArray
    lower: FloatArray
    upper: FloatArray
    ambiguous: BoolArray
    settled_by: np.ndarray
    uncertified_by: np.ndarray
    method: str
    counts: Mapping[str, float] = field(default_factory=dict)
    weights: FloatArray | None = None
    binary_values: FloatArray | None = None
    groups: IntArray | None = None
    anti_learning: bool = False
    preprocessing: Mapping[str, str] = field(default_factory=dict)

    @property
    def anti_learning_note(self) -> str:
        """What is wrong and what to do, in plain words; empty if nothing is."""
        if not self.anti_learning:
            return ""
        return (
            "Anti-learning: C is so small that class proportions alone decide, not the "
            "features. Leaving a sample out shifts the intercept against the class of "
            "that sample, and the error reflects this. Use a larger C."
        )

    @property
    def wrong(self) -> BoolArray:
        """Mask of the samples the classifier trained without them gets wrong."""
        return self.predictions != self.y

    @property
    def error(self) -> float:
        """Share of wrong samples (weighted if weights were given)."""
        return float(np.average(self.wrong, weights=self.weights))

    @property
    def standard_error(self) -> float:
        """Binomial standard error of ``error``.

        With groups the deviations are summed over each group first, since samples of a
        group go wrong together.
        """
        p = self.error
        weights = np.ones(self.y.shape[0]) if self.weights is None else self.weights
        if self.groups is not None:
            sums = np.bincount(self.groups, weights * (self.wrong - p))
            return float(np.sqrt((sums**2).sum()) / weights.sum())
        return float(np.sqrt(p * (1.0 - p) / self.n_effective))

    @property
    def n_effective(self) -> float:
        """Number of independent samples that :attr:`interval` assumes.

        The number of groups if groups are left out, else (sum w)^2 / sum w^2 with
        weights w, else the number of samples.
        """
        weights = np.ones(self.y.shape[0]) if self.weights is None else self.weights
        if self.groups is not None:
            return float(np.unique(self.groups[weights > 0]).size)
        return float(weights.sum() ** 2 / (weights**2).sum())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson score interval of ``error``: its ends, as fractions.

        It covers the chance of which samples were drawn, as if :attr:`n_effective`
        independent ones had been. It does not cover dependence between the folds, or
        between groups, nor the choice of parameters: the smallest error of a grid is
        too small, see :func:`honest_loo`.
        """
        return wilson_interval(self.error, self.n_effective)

    @property
    def n_ambiguous(self) -> int:
        """Number of samples whose label depends on which optimal intercept is taken."""
        return int(self.ambiguous.sum())

    @property
    def screened(self) -> float:
        """Share of the coefficients that method "consolidated" did not solve for.

        Over all subproblems; 0 for "magic", NaN for other methods.
        """
        of = self.counts.get("screened_of", 0.0)
        return self.counts["screened"] / of if of else float("nan")

    def to_frame(self) -> pd.DataFrame:
        """Return one row per sample (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(
            {
                "y": self.y,
                "prediction": self.predictions,
                "margin": self.margins,
                "lower": self.lower,
                "upper": self.upper,
                "ambiguous": self.ambiguous,
                "certified": self.certified,
                "settled_by": self.settled_by,
            }
        )

    def _verdict(self) -> str:
        n_wrong, n = int(self.wrong.sum()), self.y.shape[0]
        error = format_error(self.error, self.interval)
        return f"leave-one-out error {error}, {n_wrong} of {n} wrong"

    def _rows(self) -> list[tuple[str, Any]]:
        rows: list[tuple[str, Any]] = [
            ("samples", self.y.shape[0]),
            *([] if self.groups is None else [("groups", np.unique(self.groups).size)]),
            ("error", format_error(self.error, self.interval)),
            ("wrong", int(self.wrong.sum())),
            ("ambiguous", self.n_ambiguous),
            *self._cost_rows(),
        ]
        if not np.isnan(self.screened):
            rows.insert(-1, ("screened", as_percent(self.screened)))
        return rows

    def _notes(self) -> list[str]:
        return [self.anti_learning_note] if self.anti_learning else []


@dataclass(frozen=True, eq=False, repr=False)
class ResultPath(Summary):
    """Results over a list of C; a subclass has ``best_index``."""

    Cs: FloatArray
    results: tuple[Any, ...]

    _align = ">"

    def __len__(self) -> int:
        """Return the number of C."""
        return len(self.results)

    def __getitem__(self, k: int) -> Any:
        """Return the result for the k-th C."""
        return self.results[k]

    @property
    def best_index(self) -> int:
        """Position of the best C."""
        raise NotImplementedError

    @property
    def best_C(self) -> float:  # noqa: N802
        """The best C, see :attr:`best_index`."""
        return float(self.Cs[self.best_index])

    @property
    def n_ambiguous(self) -> IntArray:
        """Number of ambiguous samples for each C, (n_Cs,)."""
        return np.array([result.n_ambiguous for result in self.results])


@dataclass(frozen=True, eq=False, repr=False)
class LooPath(ResultPath):
    """Leave-one-out results over a list of C.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        The values of C, as they were given.
    results : tuple of LooResult
        One for each C.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two classes
    >>> path = lo.loo_path(lo.SVC(gamma=0.1), X, y, Cs=[0.1, 1, 10])
    >>> print(path)
      C  error  ambiguous
    0.1  9.0 %          0
      1  4.0 %          0  best
     10  5.0 %          0
    >>> path.best_C, path.results[1].error
    (1.0, 0.04)
    """

    __module__ = "leaveout"

    @property
    def errors(self) -> FloatArray:
        """Leave-one-out error for each C, (n_Cs,)."""
        return np.array([result.error for result in self.results])

    @property
    def decision_values(self) -> FloatArray:
        """Left-out decision values, (n_Cs, n_samples, ...)."""
        return np.stack([result.decision_values for result in self.results])

    @property
    def anti_learning(self) -> BoolArray:
        """Whether class proportions alone decide, for each C, (n_Cs,)."""
        return np.array([result.anti_learning for result in self.results])

    @property
    def screened(self) -> FloatArray:
        """Share of the coefficients known before solving, for each C, (n_Cs,).

        NaN for methods that do not screen.
        """
        return np.array([result.screened for result in self.results])

    @property
    def best_index(self) -> int:
        """Position of the smallest error; among equals, of the smallest C.

        A C for which class proportions alone decide comes after all others.
        """
        return int(np.lexsort((self.Cs, self.errors, self.anti_learning))[0])

    def _verdict(self) -> str:
        error = as_percent(self.results[self.best_index].error)
        return f"smallest of {len(self)} errors {error}, at C = {self.best_C:.4g}"

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("C", "error", "ambiguous", "")]
        for k, (C, result) in enumerate(zip(self.Cs, self.results, strict=True)):
            mark = "anti-learning" if result.anti_learning else ""
            mark = "best" if k == self.best_index else mark
            mark = mark.ljust(len("anti-learning"))
            error = as_percent(result.error)
            rows.append((f"{C:.4g}", error, str(result.n_ambiguous), mark))
        return rows


def is_anti_learning(
    problem: Problem,
    solution: Solution | LpmSolution,
    values: FloatArray,
    folds: Folds | None = None,
) -> bool:
    """Return whether left-out labels follow class proportions, not the features.

    They do if there is an intercept, every alpha of the class with the smaller sum of
    C_i is at its bound and, of the samples whose class is the lighter one without them,
    all are wrong when left out if they are of one class, more than half if they are of
    both (docs/svccv.md has the derivation). A class with one sample does not count:
    without it there is nothing to balance. In an LPM the row duals are the alpha. Of
    ``values`` only the signs are used.
    """
    held = holds_lighter_class(problem.y, problem.C, solution.alpha)
    return held and bool(labels_follow_proportions(problem, values, folds))


def labels_follow_proportions(
    problem: Problem, values: FloatArray, folds: Folds | None = None
) -> Any:
    """Return whether left-out labels are as if only class proportions counted.

    ``values`` has the shape (..., n); one answer per row.
    """
    y, C = problem.y, problem.C
    totals = np.array([C[y < 0].sum(), C[y > 0].sum()])
    tipped = _is_lighter_without(problem, totals, folds)
    n_tipped = np.count_nonzero(tipped)
    n_wrong = np.count_nonzero((y * values < 0.0)[..., tipped], axis=-1)
    both = n_tipped > 0 and bool(np.ptp(y[tipped]))
    most = 2 * n_wrong > n_tipped if both else n_wrong == n_tipped
    return most & (n_tipped > 0) & problem.fit_intercept


def holds_lighter_class(y: FloatArray, C: FloatArray, alpha: FloatArray) -> bool:
    """Return whether every alpha of the class with the smaller sum of C is at C."""
    inside = y[~(alpha >= C * (1.0 - EQUAL))]
    if abs(inside.sum()) < inside.size:  # of both classes
        return False
    lighter = -1.0 if C[y < 0].sum() <= C[y > 0].sum() else 1.0
    return not (inside == lighter).any()


def _is_lighter_without(
    problem: Problem, totals: FloatArray, folds: Folds | None
) -> BoolArray:
    """Whether the class of a sample is there and the lighter one without its fold."""
    y, C = problem.y, problem.C
    codes = np.arange(y.size)
    gone = [np.where(y == sign, C, 0.0) for sign in (-1.0, 1.0)]
    if folds is not None:
        codes[folds.members] = np.repeat(np.arange(len(folds)), folds.sizes)
        gone = [np.bincount(codes, own) for own in gone]
    left = totals - np.column_stack(gone)
    # A difference of sums is zero only up to rounding.
    left[left <= EQUAL * totals] = 0.0
    if folds is not None and folds.C_factors is not None:
        left = left * folds.C_factors
    own = np.where(y > 0, left[codes, 1], left[codes, 0])
    other = np.where(y > 0, left[codes, 0], left[codes, 1])
    return (C > 0.0) & (own > 0.0) & (own < other * (1.0 - EQUAL))
