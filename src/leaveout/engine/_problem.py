# SPDX-License-Identifier: BSD-3-Clause
"""The shared types: a problem, its solution, folds and left-out intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray, StateArray

# States of a point at the optimum (KKT): h = y f is >= 1, = 1, <= 1.
OUTSIDE, MARGIN, BOUNDED = 0, 1, 2
# How a left-out value was found; LooIntervals.settled_by holds positions in this tuple.
SETTLED_BY = (
    "zero_alpha",  # alpha_r = 0: the solution does not change
    "negative_margin",  # wrong even with r in the training set, and so without it
    "certificate",  # an interval derived from the full solution excludes zero
    "first_segment",  # the walk met no event: the span formula is exact
    "walk",  # the walk, with events
    "stopping",  # the left-out problem, solved until the label was proved
    "eps_kkt",  # the left-out problem, solved until optimal within eps
    "consolidated",  # all left-out problems at once, by smoothing, to the exact optimum
    "refit",  # the left-out problem, solved to the optimum
    "singleton",  # the only member of its class
    "untouched",  # r is not in the training set of this subproblem (one-vs-one)
)
(
    ZERO_ALPHA, NEGATIVE_MARGIN, CERTIFICATE, FIRST_SEGMENT, WALK, STOPPING, EPS_KKT,
    CONSOLIDATED, REFIT, SINGLETON, UNTOUCHED,
) = range(len(SETTLED_BY))  # fmt: skip
# Why a left-out value is not certified; LooIntervals.uncertified_by holds positions in
# this tuple, 0 for a certified value.
UNCERTIFIED = (
    "",
    "not_converged",  # the solver stopped before the optimality conditions held
    "rounding",  # rounding errors may have changed the sign
    "indefinite_kernel",  # the problem is not convex: a stationary point only
    "eps_only",  # optimal within eps, as requested
    "bound_only",  # a bound or an estimate, not the value of a refit
)
CERTIFIED, NOT_CONVERGED, BY_ROUNDING, INDEFINITE, EPS_ONLY, BOUND_ONLY = range(6)
# Values this close to 0, relative to max(1, |f|), have no sign.
TIE = 1e-10


@dataclass(frozen=True)
class Problem:
    """One binary or regression SVM with fixed kernel values.

    The primal, with :math:`f(x) = <w, phi(x)> + b`, is::

        min  1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i f(x_i))             (classification)
        min  1/2 ||w||^2 + sum_i C_i max(0, |y_i - f(x_i)| - epsilon)   (regression)

    and b is not regularised; without an intercept b = 0. Solvers and walks see only the
    staircase of each sample: its kinks ``y_i + offsets`` and its ``levels``, the values
    of beta between them (docs/method/walk).

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix: float64, C-contiguous, symmetric, positive semi-definite.
    y : ndarray of shape (n,)
        Signs, -1.0 or +1.0; or the targets of a regression, of the order of 1.
    C : ndarray of shape (n,)
        Upper bound of each dual variable, C times class and sample weight; 0 for a
        sample that is not trained on but gets a decision value.
    fit_intercept : bool, default=True
        Whether f has an intercept b.
    first_equal : ndarray of shape (n,), optional
        Equal numbers for samples with equal rows of K; None if all are distinct.
    epsilon : float, optional
        Half the width of the tube of a regression; None for classification.
    regular : bool, default=False
        Whether it is known that no two samples nearly coincide and that none dominates
        (:func:`~leaveout.engine._certificate.is_regular`).
    """

    K: FloatArray
    y: FloatArray
    C: FloatArray
    fit_intercept: bool = True
    first_equal: IntArray | None = None
    epsilon: float | None = None
    regular: bool = False

    def __post_init__(self) -> None:
        """Convert the arrays to the layout of the kernels; copy only if needed."""
        for name in ("K", "y", "C"):
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, array)

    @property
    def n_samples(self) -> int:
        """Number of training points."""
        return self.y.shape[0]

    @cached_property
    def diagonal(self) -> FloatArray:
        """K_ii, (n,)."""
        return np.ascontiguousarray(self.K.diagonal())

    @cached_property
    def offsets(self) -> FloatArray:
        """Kinks of a sample minus y, (n_kinks,)."""
        eps = self.epsilon
        return np.array([-eps, eps]) if eps else np.zeros(1)

    @cached_property
    def levels(self) -> FloatArray:
        """Values of beta between the kinks, falling, (n, n_kinks + 1)."""
        C = self.C
        levels = np.zeros((C.size, self.offsets.size + 1))
        if self.epsilon is not None:
            levels[:, 0], levels[:, -1] = C, -C
        else:
            np.copyto(levels[:, 0], C, where=self.y > 0)
            np.copyto(levels[:, 1], -C, where=self.y <= 0)
        return levels

    @cached_property
    def kinks(self) -> FloatArray:
        """Where the loss of each sample has its kinks, (n, n_kinks)."""
        return self.y[:, None] + self.offsets

    def bracket(
        self, beta: FloatArray, near: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the range in which f of each sample must be at the optimum.

        A beta within ``near`` of a level counts as being on it.
        """
        levels, near = self.levels, np.asarray(near)[..., None]
        can_rise = levels[:, :-1] - beta[:, None] > near
        can_fall = beta[:, None] - levels[:, 1:] > near
        below = np.where(can_rise, self.kinks, -np.inf).max(axis=1)
        return below, np.where(can_fall, self.kinks, np.inf).min(axis=1)

    def room(self, beta: FloatArray) -> FloatArray:
        """Distance of each beta to the nearest level."""
        return np.abs(self.levels - beta[:, None]).min(axis=1)

    def subset(self, rows: IntArray) -> Problem:
        """Return the problem on some of the samples (a copy)."""
        copies = None if self.first_equal is None else self.first_equal[rows]
        K, y, C = self.K[np.ix_(rows, rows)], self.y[rows], self.C[rows]
        return replace(self, K=K, y=y, C=C, first_equal=copies)

    def first_copies(self, rows: IntArray) -> IntArray:
        """For each of some samples, the first of them with equal kernel row, y and C.

        Leaving out either of two such samples leaves the same problem.
        """
        if self.first_equal is None or rows.size == 0:
            return rows
        columns = [self.first_equal[rows], self.y[rows], self.C[rows]]
        _, first, same = np.unique(
            np.column_stack(columns), axis=0, return_index=True, return_inverse=True
        )
        return rows[first[same.ravel()]]


@dataclass(frozen=True)
class Solution:
    """An optimum of a :class:`~leaveout.engine._problem.Problem`, with its certificate.

    Parameters
    ----------
    beta : ndarray of shape (n,)
        Signed coefficients y_i alpha_i.
    intercept : float
        The intercept b: the midpoint of its interval, as in LIBSVM.
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
        Whether kkt_residual is below the tolerance.
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
    """Middle of each interval, as LIBSVM chooses b; the finite end of a half-line."""
    with np.errstate(invalid="ignore"):
        centre = 0.5 * (lower + upper)
    ends = np.where(np.isinf(lower), upper, lower)
    return np.where(np.isinf(lower) | np.isinf(upper), ends, centre)


@dataclass(frozen=True)
class Folds:
    """Samples that are left out together, fold by fold; a sample may be in several.

    Parameters
    ----------
    members : ndarray of shape (k,)
        Samples, fold by fold.
    begin : ndarray of shape (n_folds + 1,)
        Where each fold begins in ``members``.
    C_factors : ndarray of shape (n_folds, 2), optional
        Factors of the upper bounds of the negative and of the positive samples while
        a fold is left out: class weights that follow the counts of the fold.

    Examples
    --------
    >>> import numpy as np
    >>> folds = Folds.of([np.array([0, 2]), np.array([1])])
    >>> len(folds), folds[0]
    (2, array([0, 2]))
    """

    members: IntArray
    begin: IntArray
    C_factors: FloatArray | None = None

    @classmethod
    def of(cls, folds: Iterable[IntArray]) -> Folds:
        """Make one fold from each array of samples."""
        parts = [np.asarray(fold, dtype=np.intp) for fold in folds]
        sizes = [part.size for part in parts]
        members = np.concatenate([*parts, np.empty(0, dtype=np.intp)])
        return cls(members, np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp))

    @classmethod
    def singles(cls, rows: IntArray) -> Folds:
        """Make one fold per sample."""
        rows = np.asarray(rows, dtype=np.intp)
        return cls(rows, np.arange(rows.size + 1, dtype=np.intp))

    @classmethod
    def of_groups(cls, codes: IntArray) -> Folds:
        """Make one fold per code, 0 to n_folds - 1."""
        order = np.argsort(codes, kind="stable").astype(np.intp)
        sizes = np.bincount(codes)
        return cls(order, np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp))

    @cached_property
    def sizes(self) -> IntArray:
        """Number of samples in each fold."""
        return self.begin[1:] - self.begin[:-1]

    @cached_property
    def are_single(self) -> bool:
        """Whether every fold is one sample."""
        return bool((self.sizes == 1).all())

    def __len__(self) -> int:
        """Return the number of folds."""
        return self.begin.size - 1

    def __iter__(self) -> Iterator[IntArray]:
        """Iterate over the folds."""
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> IntArray:
        """Return the samples of a fold."""
        return self.members[self.begin[k] : self.begin[k + 1]]

    def entries(self, which: IntArray) -> IntArray:
        """Positions in ``members`` of some folds, fold by fold."""
        if self.are_single:
            return which
        starts, sizes = self.begin[which], self.sizes[which]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(starts, sizes) + within

    def take(self, which: IntArray) -> Folds:
        """Return some of the folds."""
        if which.size == len(self) and np.array_equal(which, np.arange(which.size)):
            return self
        sizes = self.sizes[which]
        begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        factors = None if self.C_factors is None else self.C_factors[which]
        return Folds(self.members[self.entries(which)], begin, factors)


@dataclass(frozen=True, eq=False)
class LooIntervals:
    """Left-out values with the interval of the intercept, one per member of the folds.

    The only container of left-out values below :class:`LooResult`. Signs refer
    to the labels of the problem. Methods fill the arrays in place before they return.

    Parameters
    ----------
    lower, upper : ndarray of shape (k,), or (k, q) for q outputs
        Interval of f over all optimal b; infinite where b is not bounded.
    settled_by : ndarray of int8, shape (k,)
        How the value was found: position in ``SETTLED_BY``. With ``labels_only``, only
        the sign is valid for negative_margin, certificate and stopping.
    uncertified_by : ndarray of int8, shape (k,)
        Why the value is not certified: position in ``UNCERTIFIED``; 0: certified.
    counts : mapping
        pivots, walks, refits, shared (duplicates), columns …; ``rounding`` bounds the
        rounding error of a value.
    changes : ndarray of shape (n_folds, n + 1), optional
        Changes of beta and of b, in the middle of its interval, without each fold.
    chosen : ndarray of shape (k, q), optional
        Values that are not the middle of the interval (several outputs share one sum).
    same_if_larger : bool, default=False
        Whether solution and values are known to be the same at every larger C, because
        no beta is at its bound, whatever is left out.
    """

    lower: FloatArray
    upper: FloatArray
    settled_by: np.ndarray
    uncertified_by: np.ndarray
    counts: Mapping[str, float] = field(default_factory=dict)
    changes: FloatArray | None = None
    chosen: FloatArray | None = None
    same_if_larger: bool = False

    @classmethod
    def empty(
        cls, k: int, settled_by: int = WALK, changes: tuple[int, int] | None = None
    ) -> LooIntervals:
        """Return arrays to fill for k members, marked as not converged."""
        lower, upper = np.empty((2, k))
        steps, reasons = np.empty((2, k), dtype=np.int8)
        steps[:], reasons[:] = settled_by, NOT_CONVERGED
        kept = None if changes is None else np.zeros(changes)
        return cls(lower, upper, steps, reasons, {}, kept)

    @classmethod
    def from_solution(cls, solution: Solution) -> LooIntervals:
        """Return the values for alpha = 0 if a support vector is free: same f."""
        f = solution.decision_values
        started = cls.empty(f.shape[0], ZERO_ALPHA)
        started.lower[:] = started.upper[:] = f
        started.uncertified_by[:] = CERTIFIED if solution.converged else NOT_CONVERGED
        return started

    @cached_property
    def values(self) -> FloatArray:
        """Left-out values: f with b in the middle of its interval."""
        if self.lower is self.upper:
            return self.lower
        return middle(self.lower, self.upper) if self.chosen is None else self.chosen

    @property
    def certified(self) -> BoolArray:
        """Whether each value is proved to equal that of a refit, with its sign."""
        return self.uncertified_by == CERTIFIED

    def write(self, entries: IntArray, other: LooIntervals) -> None:
        """Copy the values of another object into some entries."""
        self.lower[entries], self.upper[entries] = other.lower, other.upper
        self.settled_by[entries] = other.settled_by
        self.uncertified_by[entries] = other.uncertified_by

    def take(self, entries: IntArray) -> LooIntervals:
        """Return some of the values."""
        names = ("lower", "upper", "settled_by", "uncertified_by")
        own = {name: getattr(self, name)[entries] for name in names}
        chosen = None if self.chosen is None else self.chosen[entries]
        return LooIntervals(**own, counts=self.counts, chosen=chosen)

    def share_with_copies(self, copies: IntArray, leaders: IntArray) -> None:
        """Copy the value of each leader, the first of equal samples, to its copies."""
        for array in (self.lower, self.upper, self.settled_by, self.uncertified_by):
            array[copies] = array[leaders]
