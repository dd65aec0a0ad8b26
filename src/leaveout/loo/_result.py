# SPDX-License-Identifier: BSD-3-Clause
"""What leaving one out gives: for one machine, and for a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

# How an answer was reached; MachineLoo.settled_by holds positions in this tuple.
SETTLED_BY = (
    "zero_alpha",  # alpha_r = 0: the machine does not change
    "negative_margin",  # wrong even with r in the training set; without it is worse
    "certificate",  # an interval from the full solution excludes zero
    "first_segment",  # the walk met no event: the span formula is exact
    "walk",  # the walk, with events
    "stopping",  # a solver of the left-out problem, stopped when the label was proved
    "eps_kkt",  # the same solver, at a point optimal within eps
    "consolidated",  # all left-out problems at once, by smoothing, to the exact optimum
    "refit",  # solved anew
    "singleton",  # the only member of its class
    "untouched",  # r is not in this machine's training set (one-vs-one)
)
(
    ZERO_ALPHA, NEGATIVE_MARGIN, CERTIFICATE, FIRST_SEGMENT, WALK, STOPPING, EPS_KKT,
    CONSOLIDATED, REFIT, SINGLETON, UNTOUCHED,
) = range(len(SETTLED_BY))  # fmt: skip


def middle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Middle of each interval, as LIBSVM chooses b; the finite end of a half-line.

    Examples
    --------
    >>> import numpy as np
    >>> middle(np.array([0.0, -np.inf]), np.array([1.0, -1.0]))
    array([ 0.5, -1. ])
    """
    with np.errstate(invalid="ignore"):
        centre = 0.5 * (lower + upper)
    ends = np.where(np.isinf(lower), upper, lower)
    return np.where(np.isinf(lower) | np.isinf(upper), ends, centre)


@dataclass(frozen=True)
class MachineLoo:
    """Leave-one-out values of one binary machine, in the sign of its own labels.

    Parameters
    ----------
    values : ndarray of shape (n,)
        f without r at x_r, b in the middle of its interval. In labels mode only the
        sign counts where ``settled_by`` says negative_margin, certificate or stopping,
        or the walk was stopped.
    lower, upper : ndarray of shape (n,)
        Interval of f over all optimal b; infinite where b is not bounded.
    certified : ndarray of bool, shape (n,)
        Whether the optimality conditions were verified.
    settled_by : ndarray of int8, shape (n,)
        Position in ``SETTLED_BY``.
    counts : mapping
        pivots, walks, refits, shared (duplicates), columns, seconds …
    anti_learning : bool, default=False
        Whether the signs follow the balance of the classes, not the data:
        :func:`~leaveout.loo.is_anti_learning`.
    """

    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    certified: BoolArray
    settled_by: np.ndarray
    counts: Mapping[str, float]
    anti_learning: bool = False


@dataclass(frozen=True, eq=False)
class LooResult:
    """Exact leave-one-out of a classifier.

    Parameters
    ----------
    decision_values : ndarray of shape (n,) or (n, n_outputs)
        Decision function at each sample by the classifier trained without it, with
        scikit-learn's signs and shapes.
    predictions : ndarray of shape (n,)
        Labels by those values.
    y : ndarray of shape (n,)
        True labels.
    margins : ndarray of shape (n,)
        y f for two classes; true class minus best other for more.
    lower, upper : ndarray of shape (n,)
        Interval of the margin over all optimal intercepts; NaN with three classes or
        more where an intercept is not unique, for votes have no interval.
    ambiguous : ndarray of bool, shape (n,)
        Whether another optimal intercept gives another label, or f is 0 to rounding.
    certified : ndarray of bool, shape (n,)
        Whether the optimality conditions were verified.
    settled_by : ndarray of str, shape (n,)
        How the answer was reached.
    method : str
        "walk", "refit" …
    counts : mapping
        pivots, refits, seconds …
    weights : ndarray of shape (n,), optional
        Weights of the samples in the error.
    machine_values : ndarray of shape (n, n_machines), optional
        Left-out value of each binary machine, in the sign of the machine: one column
        for two classes, else one per pair of classes, or per class (one-vs-rest). A
        machine that was not trained on a sample has its full value there.
    groups : ndarray of int, shape (n,), optional
        Number of the group each sample was left out with.
    anti_learning : bool, default=False
        Whether C is so small that the left-out labels follow the balance of the
        classes: see :attr:`anti_learning_note`. With several machines: whether it is so
        in more than half of them, and the error is no smaller than that of the answer
        with the most frequent class. One such machine among many does not make the
        result, and one-vs-rest compares values, whose order may still be right.

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

    decision_values: FloatArray
    predictions: np.ndarray
    y: np.ndarray
    margins: FloatArray
    lower: FloatArray
    upper: FloatArray
    ambiguous: BoolArray
    certified: BoolArray
    settled_by: np.ndarray
    method: str
    counts: Mapping[str, float] = field(default_factory=dict)
    weights: FloatArray | None = None
    machine_values: FloatArray | None = None
    groups: IntArray | None = None
    anti_learning: bool = False

    @property
    def anti_learning_note(self) -> str:
        """What is wrong and what to do, in plain words; empty if nothing is.

        :func:`~leaveout.loo.is_anti_learning` has the derivation.
        """
        if not self.anti_learning:
            return ""
        return (
            "Anti-learning: C is so small that every alpha of the lighter class is at "
            "its bound. The balance of the classes sets the intercept, and a sample "
            "left out tips it against its own class: the error tells of this, not of "
            "the data. Take a larger C."
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
        effective = weights.sum() ** 2 / (weights**2).sum()
        return float(np.sqrt(p * (1.0 - p) / effective))

    @property
    def n_ambiguous(self) -> int:
        """Number of samples whose label depends on which optimal intercept is taken."""
        return int(self.ambiguous.sum())

    @property
    def screened(self) -> float:
        """Share of the coefficients that method "consolidated" knew before solving.

        Over all machines; not a number for other methods.
        """
        of = self.counts.get("screened_of", 0.0)
        return self.counts["screened"] / of if of else float("nan")

    def to_frame(self) -> pd.DataFrame:
        """Return one row a sample (needs pandas)."""
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

    def __str__(self) -> str:
        """Small table: error, how far to trust it, what it cost."""
        rows: list[tuple[str, Any]] = [
            ("samples", self.y.shape[0]),
            ("error", f"{self.error:.4f} ± {self.standard_error:.4f}"),
            ("wrong", int(self.wrong.sum())),
            ("ambiguous", self.n_ambiguous),
            ("not certified", int((~self.certified).sum())),
            ("refits", int(self.counts.get("refits", 0))),
            ("seconds", f"{self.counts.get('seconds', 0.0):.3g}"),
        ]
        if not np.isnan(self.screened):
            rows.insert(-1, ("screened", f"{self.screened:.1%}"))
        head = f"Leave-one-out ({self.method})"
        lines = [head, *(f"  {name:<14}{value}" for name, value in rows)]
        return "\n".join([*lines, *filter(None, [self.anti_learning_note])])
