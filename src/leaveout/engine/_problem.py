# SPDX-License-Identifier: BSD-3-Clause
"""The types that travel: a problem, its solution, folds and left-out values.

The binary SVM as mathematics sees it: a Gram matrix, signs, boxes.

What a solved SVM is: coefficients, bias interval, sets, and proof of optimality.

What leaving one out gives: for one machine, and for a classifier.

Groups of samples that are left out together, and what that gives.

Left-out values as they come in, and those that the full solution tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray, StateArray

if TYPE_CHECKING:
    pass

# States of a point at the optimum (KKT): h = y f is >= 1, = 1, <= 1.
OUTSIDE, MARGIN, BOUNDED = 0, 1, 2
# How an answer was reached; LooIntervals.settled_by holds positions in this tuple.
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


@dataclass(frozen=True)
class Problem:
    """One binary support vector machine with fixed kernel values.

    The primal, with :math:`f(x) = <w, phi(x)> + b`, is::

        min  1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i f(x_i))

    and b is not regularised; without an intercept b = 0.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix: float64, C-contiguous, symmetric, positive semi-definite.
    y : ndarray of shape (n,)
        Signs, -1.0 or +1.0.
    C : ndarray of shape (n,)
        Upper bound of each dual variable, C times class and sample weight; > 0.
    fit_intercept : bool, default=True
        Whether the machine has a bias b.
    """

    K: FloatArray
    y: FloatArray
    C: FloatArray
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        """Bring the arrays to the layout of the kernels; no copy if they have it."""
        for name in ("K", "y", "C"):
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, array)

    @property
    def n_samples(self) -> int:
        """Number of training points."""
        return self.y.shape[0]

    def subset(self, rows: IntArray) -> Problem:
        """Return the problem on some of the rows only (a copy)."""
        return Problem(
            self.K[np.ix_(rows, rows)], self.y[rows], self.C[rows], self.fit_intercept
        )

    def without(self, r: int) -> Problem:
        """Return the problem without row r (a copy)."""
        return self.subset(np.delete(np.arange(self.n_samples), r))


@dataclass(frozen=True)
class Solution:
    """An optimum of a :class:`~leaveout.engine._problem.Problem`, with its certificate.

    Parameters
    ----------
    beta : ndarray of shape (n,)
        Signed coefficients y_i alpha_i.
    intercept : float
        The bias b; the midpoint of its interval, as LIBSVM takes it.
    intercept_interval : tuple of float
        All optimal b; one point if there is a free support vector.
    decision_values : ndarray of shape (n,)
        f on the training points, K @ beta + b.
    state : ndarray of int8, shape (n,)
        OUTSIDE (alpha = 0), MARGIN (0 < alpha < C) or BOUNDED (alpha = C). The bordered
        kernel matrix of the MARGIN points is non-singular.
    kkt_residual : float
        Largest violation of the optimality conditions, each relative to
        max(1, sum_j |beta_j K_ij|).
    duality_gap : float
        (primal - dual) / primal.
    objective : float
        Primal value.
    n_iter : int
        SMO steps plus active-set steps.
    converged : bool
        Whether kkt_residual is below the tolerance asked for.
    """

    beta: FloatArray
    intercept: float
    intercept_interval: tuple[float, float]
    decision_values: FloatArray
    state: StateArray
    kkt_residual: float
    duality_gap: float
    objective: float
    n_iter: int
    converged: bool

    @property
    def alpha(self) -> FloatArray:
        """Dual variables, (n,)."""
        return np.abs(self.beta)

    @property
    def free(self) -> BoolArray:
        """Mask of the free support vectors M, (n,)."""
        return self.state == MARGIN


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
class LooIntervals:
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
        :func:`~leaveout.engine._anti_learning.is_anti_learning`.
    """

    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    certified: BoolArray
    settled_by: np.ndarray
    counts: Mapping[str, float]
    anti_learning: bool = False


@dataclass(frozen=True)
class Folds:
    """Some groups of samples; a sample may be in several.

    Parameters
    ----------
    members : ndarray of shape (n_members,)
        Samples, group by group.
    begin : ndarray of shape (n_groups + 1,)
        Where each group begins in ``members``.

    Examples
    --------
    >>> import numpy as np
    >>> groups = Folds.of([np.array([0, 2]), np.array([1])])
    >>> len(groups), groups[0]
    (2, array([0, 2]))
    """

    members: IntArray
    begin: IntArray

    @classmethod
    def of(cls, groups: Iterable[IntArray]) -> Folds:
        """Put arrays of samples together."""
        parts = [np.asarray(group, dtype=np.intp) for group in groups]
        sizes = [part.size for part in parts]
        members = np.concatenate([*parts, np.empty(0, dtype=np.intp)])
        return cls(members, np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp))

    @classmethod
    def singles(cls, rows: IntArray) -> Folds:
        """Make a group of each sample."""
        rows = np.asarray(rows, dtype=np.intp)
        return cls(rows, np.arange(rows.size + 1, dtype=np.intp))

    def __len__(self) -> int:
        """Return the number of groups."""
        return self.begin.size - 1

    def __iter__(self) -> Iterator[IntArray]:
        """Go through the groups."""
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> IntArray:
        """Return the samples of a group."""
        return self.members[self.begin[k] : self.begin[k + 1]]

    def entries(self, which: IntArray) -> IntArray:
        """Positions in ``members`` of some groups, group by group."""
        starts, sizes = self.begin[which], np.diff(self.begin)[which]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(starts, sizes) + within

    def take(self, which: IntArray) -> Folds:
        """Return some of the groups."""
        if which.size == len(self) and np.array_equal(which, np.arange(which.size)):
            return self
        sizes = np.diff(self.begin)[which]
        begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        return Folds(self.members[self.entries(which)], begin)


class Ends(NamedTuple):
    """What leaving out each of some groups gives.

    ``values`` has f for each sample of each group; the others have one entry a group:
    how far b may go ``down`` (<= 0) and ``up``, whether the optimality conditions were
    verified, and how the group was settled. ``everywhere`` has f for all samples, one
    row a group, if it was asked for; else it has no columns.
    """

    values: FloatArray
    down: FloatArray
    up: FloatArray
    certified: BoolArray
    settled_by: np.ndarray
    everywhere: FloatArray


@dataclass
class Answer:
    """Intervals of f as they come in."""

    lower: FloatArray
    upper: FloatArray
    certified: BoolArray
    settled_by: np.ndarray

    @classmethod
    def of_full_solution(cls, solution: Solution) -> Answer:
        """Start from what holds for alpha = 0 beside a free support vector."""
        f = solution.decision_values
        return cls(
            f.copy(),
            f.copy(),
            np.full(f.shape[0], solution.converged),
            np.full(f.shape[0], ZERO_ALPHA, dtype=np.int8),
        )

    def store(
        self, rows: IntArray, f: FloatArray, down: FloatArray, up: FloatArray
    ) -> None:
        """Write f and how far the intercept may go."""
        self.lower[rows], self.upper[rows] = f + down, f + up

    def copy(self, rows: IntArray, leaders: IntArray) -> None:
        """Give rows the answers of their leaders."""
        for array in (self.lower, self.upper, self.certified, self.settled_by):
            array[rows] = array[leaders]
