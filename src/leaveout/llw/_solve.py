# SPDX-License-Identifier: BSD-3-Clause
"""The multi-class SVM of Lee, Lin & Wahba (2004), written as Guermeur & Monfrini do.

Q classes, one function each, h_k(x) = <w_k, phi(x)> + b_k, which sum to zero::

    primal  min  1/2 sum_k ||w_k||^2 + sum_i C_i sum_{k != y_i} xi_ik
            s.t. h_k(x_i) <= -1/(Q-1) + xi_ik  (k != y_i),   xi >= 0,
                 sum_k w_k = 0,  sum_k b_k = 0                      (Problems 1 and 2)
    dual    max  -1/2 a'Ha + 1/(Q-1) sum(a),     0 <= a_ik <= C_i,  a_{i,y_i} = 0,
                 sum_i a_ik the same for all k                      (Problem 3)
            H_{ik,jl} = (delta_kl - 1/Q) K_ij

    w_k = sum_i W_ik phi_i,   W_ik = (1/Q) sum_l a_il - a_ik,   G = 1/(Q-1) + K W
    optimal iff  G + b <= 0 where a < C  and  G + b >= 0 where a > 0

The penalty sum_i C_i [sum_k xi_ik^2 + (sum_k xi_ik)^2], xi of any sign, is the hard
margin with K + diag(1 / (2 C_i)), since I - 11'/Q on the classes k != y_i has the
inverse I + 11': this answers the question the paper leaves open (docs/method/llw).

SMO comes close to the optimum; a primal active set finishes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray, StateArray
from leaveout.engine._problem import BOUNDED, MARGIN, OUTSIDE
from leaveout.llw._llw_active_set_fast import run_llw_active_set
from leaveout.llw._llw_smo_fast import llw_smo

# Relative duality gap below which a point counts as optimal.
OPTIMAL = 1e-8
# An alpha this close to 0 or C, relative to C, counts as being there: nearly singular
# systems leave noise of 1e-10, and a bounded alpha that looks free makes b look unique.
SNAP = 1e-9
# A margin below 1e-5 of the spread of the samples counts as no margin.
LARGEST_SQUARED_NORM = 2e10
# Violation at which SMO hands over to the active set, relative to slopes 1/(Q-1): for
# n = 100...850 and 2...6 classes the total time is smallest around this value.
SMO_TOL = 0.15
# On ill-conditioned kernels with large C SMO is slow; the active set is not.
SMO_STEPS_PER_VARIABLE = 10
# Limit on the work of the active set, in units of (Q + 3) n^3. Ill-conditioned kernels
# with large C need up to 20.
ACTIVE_SET_WORK = 100
# Restarts of the active set after rounding errors have spoilt its factor.
RESTARTS = 10
# Steps between two checks for Python's signals, so that Ctrl-C works.
SMO_STEPS_PER_CALL = 20_000
ACTIVE_SET_STEPS_PER_CALL = 200
# Most free entries: the factor is a square matrix of this order.
MAX_FREE = 4000
# Smallest violation that matters, relative to the terms of a slope.
TOL, ROUNDING = 1e-11, 1e-15
# How the active set ends, as in _llw_active_set_fast.
DONE, MORE = 0, 1


@dataclass(frozen=True)
class LlwProblem:
    """The training problem of all classes with fixed kernel values."""

    K: FloatArray  # (n, n), symmetric, positive semi-definite
    codes: IntArray  # (n,), class of each sample, 0 to n_classes - 1
    C: FloatArray  # (n,), infinite for a hard margin, 0 for absent samples
    n_classes: int  # Q; every class has a sample that is present

    @cached_property
    def open(self) -> BoolArray:
        """Mask of the existing dual variables, (n, Q)."""
        other = self.codes[:, None] != np.arange(self.n_classes)
        return other & (self.C > 0.0)[:, None]

    @cached_property
    def upper(self) -> FloatArray:
        """Upper bound of each dual variable, (n, Q)."""
        return np.where(self.open, self.C[:, None], 0.0)

    @property
    def is_hard(self) -> bool:
        """Whether no slack is allowed."""
        return bool(np.isinf(self.C).any())

    def as_hard_margin(self) -> LlwProblem:
        """Return the hard-margin form of this problem with quadratic penalty."""
        present = self.C > 0.0
        ridge = np.divide(0.5, self.C, where=present, out=np.zeros_like(self.C))
        hard = np.where(present, np.inf, 0.0)
        return replace(self, K=self.K + np.diag(ridge), C=hard)

    def without(self, r: int) -> LlwProblem:
        """Return the problem with sample r absent."""
        C = self.C.copy()
        C[r] = 0.0
        return replace(self, C=C)


@dataclass(frozen=True)
class LlwSolution:
    """An optimum of an :class:`LlwProblem`, with its certificate."""

    alpha: FloatArray  # (n, Q), dual variables
    state: StateArray  # (n, Q), OUTSIDE (alpha = 0), MARGIN or BOUNDED (alpha = C)
    coef: FloatArray  # (n, Q), W, whose rows and columns sum to zero
    intercept: FloatArray  # (Q,), b; inside its interval if several are optimal
    intercept_lower: FloatArray  # (Q,), every b between these ends
    intercept_upper: FloatArray  # (Q,), with sum 0 is optimal
    gradient: FloatArray  # (n, Q), G
    squared_norm: float  # sum of ||w_k||^2
    objective: float  # primal value
    duality_gap: float  # (primal - dual) / primal
    kkt_residual: float  # largest violation, relative to max(1, |K| |W|)
    n_iter: int  # steps of SMO and of the active set, or pivots of a walk
    converged: bool  # the gap is below 1e-8, or at the level of rounding
    separable: bool = True  # False: there is no hard margin, and the rest is invalid

    @property
    def decision_values(self) -> FloatArray:
        """The functions h_k at the training points, (n, Q)."""
        return self.gradient - 1.0 / (self.alpha.shape[1] - 1) + self.intercept


@dataclass(frozen=True)
class LlwPoint:
    """A dual point with its sets; ``settled`` if the optimality conditions hold."""

    alpha: FloatArray
    state: StateArray
    settled: bool
    n_iter: int


def solve_llw(problem: LlwProblem) -> LlwSolution:
    """Solve the multi-class SVM of Lee, Lin & Wahba; failures are states, not errors.

    ``converged`` is False if the gap stayed above 1e-8, ``separable`` is False if no
    hard margin exists.
    """
    centred = centre(problem)
    # If a step overflows, the certificate shows that the result is not an optimum.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = descend(centred.K, problem.upper * centred.scale)
        if problem.is_hard and _has_no_margin(centred.K, found.alpha):
            return _not_separable(problem, found.n_iter)
        return with_certificate(problem, found, centred)


def _has_no_margin(K: FloatArray, alpha: FloatArray) -> bool:
    """Whether the dual value, a lower bound of ||w||^2 / 2, excludes a margin."""
    W = alpha.mean(axis=1, keepdims=True) - alpha
    dual = float(alpha.sum()) / (alpha.shape[1] - 1) - 0.5 * float((W * (K @ W)).sum())
    return 2.0 * dual > LARGEST_SQUARED_NORM


def intercept_bounds(
    gradient: FloatArray, can_fall: BoolArray, can_rise: BoolArray, free: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper ends of the optimal intercepts (docs/method/llw).

    b_k is at least -G where alpha > 0 (``can_fall``) and at most -G where alpha < C
    (``can_rise``); a column with a free entry has a unique b. The others are
    tightened by sum(b) = 0.
    """
    count = free.sum(axis=0)
    mean = np.where(free, -gradient, 0.0).sum(axis=0) / np.maximum(count, 1)
    if count.all():
        return mean, mean
    low = np.where(can_fall, -gradient, -np.inf).max(axis=0)
    high = np.where(can_rise, -gradient, np.inf).min(axis=0)
    # Rounding errors, or a point that is not quite optimal, may leave low above high.
    crossed = (count > 0) | (low > high)
    middle = np.where(count > 0, mean, 0.5 * (low + high))
    low, high = np.where(crossed, middle, low), np.where(crossed, middle, high)
    for _ in range(2):
        high = np.minimum(high, -_sum_of_others(low))
        low = np.maximum(low, -_sum_of_others(high))
    return low, np.maximum(low, high)


def choose_intercept(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return b with sum 0, at the same fraction of the interval of each column."""
    width = high - low
    total = float(width.sum())
    if total <= 0.0:
        return low - low.mean()
    if not np.isfinite(width).all():
        b = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
        return b - b.mean()
    share = min(max(-float(low.sum()) / total, 0.0), 1.0)
    b = low + share * width
    return b - b.mean()


def _sum_of_others(values: FloatArray) -> FloatArray:
    """Sum over all columns but each one, correct for infinite entries, too."""
    spread = np.tile(values, (values.size, 1))
    np.fill_diagonal(spread, 0.0)
    return spread.sum(axis=1)


@dataclass(frozen=True)
class Centred:
    """K centred over the present samples and scaled to 1, its scale, and the means.

    The columns of W sum to zero, so constants added to the rows of K only move b, and
    would cost digits needlessly.
    """

    K: FloatArray
    scale: float
    means: FloatArray
    magnitude: FloatArray  # |K|


def centre(problem: LlwProblem) -> Centred:
    """Centre and scale the kernel matrix."""
    present = problem.C > 0.0
    count = np.count_nonzero(present)
    rows = problem.K if count == present.size else problem.K[:, present]
    means = rows.sum(axis=1) / count
    K = problem.K - means[:, None]
    K -= means - means[present].sum() / count
    scale = float(K.diagonal()[present].sum() / count)
    if not scale > 1e-14 * float(np.abs(problem.K.diagonal()).max(initial=0.0)):
        scale = 1.0  # for a constant kernel
    K /= scale
    return Centred(K, scale, means, np.abs(K))


def with_certificate(
    problem: LlwProblem, found: LlwPoint, centred: Centred
) -> LlwSolution:
    """Combine a point with its intercepts and its certificate of optimality."""
    Q, open_, upper = problem.n_classes, problem.open, problem.upper
    alpha = np.minimum(found.alpha / centred.scale, upper)
    state = _snap(alpha, found, upper)
    free, bounded = state == MARGIN, state == BOUNDED
    coef = alpha.mean(axis=1, keepdims=True) - alpha
    gradient = 1.0 / (Q - 1) + centred.K @ (centred.scale * coef)
    can_fall, can_rise = free | bounded, open_ & ~bounded
    low, high = intercept_bounds(gradient, can_fall, can_rise, free)
    b = choose_intercept(low, high)
    slope = gradient + b
    norm = float((coef * (gradient - 1.0 / (Q - 1))).sum())
    linear = float(alpha.sum()) / (Q - 1)
    terms = np.maximum(1.0, centred.magnitude @ np.abs(centred.scale * coef))
    primal, rounding = _primal(problem, norm, slope, terms)
    violation = np.maximum(
        np.where(can_rise, slope, 0.0), np.where(can_fall, -slope, 0.0)
    )
    gap = (primal - (linear - 0.5 * norm)) / max(primal, 1e-300)
    gap = gap if np.isfinite(primal) else np.inf
    shift = centred.means @ coef  # from the centred kernel back to K
    return LlwSolution(
        alpha, state, coef, b - shift, low - shift, high - shift,
        gradient + shift, norm, primal, float(gap),
        float((violation / terms).max()), found.n_iter,
        bool(abs(gap) <= max(OPTIMAL, rounding)),
    )  # fmt: skip


def _snap(alpha: FloatArray, found: LlwPoint, upper: FloatArray) -> StateArray:
    """Move alpha to the bounds it reaches up to rounding, in place; return the sets.

    A free entry at its bound would make b look unique when it is not.
    """
    state, finite = found.state.copy(), np.isfinite(upper)
    reached = float(alpha.max(initial=0.0))  # a large C may be far from every alpha
    slack = np.where(finite, SNAP * np.minimum(upper, reached), 0.0)
    free = state == MARGIN
    state[free & (alpha <= slack)] = OUTSIDE
    state[free & finite & (alpha >= upper - slack)] = BOUNDED
    if found.settled:
        alpha[state == OUTSIDE] = 0.0
        alpha[state == BOUNDED] = upper[state == BOUNDED]
    return state


def _primal(
    problem: LlwProblem, norm: float, slope: FloatArray, terms: FloatArray
) -> tuple[float, float]:
    """Return the value of a feasible primal point, and its rounding error.

    The point is h with its slacks, or h scaled until it needs none: if C is large and
    no alpha reaches it, slacks are rounding errors, and C times these would hide the
    optimum.
    """
    eps, Q, open_ = 16 * np.finfo(float).eps, problem.n_classes, problem.open
    worst = float(np.where(open_, slope, -np.inf).max()) * (Q - 1)
    scaled = 0.5 * norm / (1.0 - worst) ** 2 if worst < 1.0 else np.inf
    scaled_eps = eps * 2.0 * (Q - 1) * float(terms.max())
    if problem.is_hard:
        return scaled, scaled_eps
    slack = np.where(open_, np.maximum(slope, 0.0), 0.0)
    soft = 0.5 * norm + float(problem.C @ slack.sum(axis=1))
    if scaled < soft:
        return scaled, scaled_eps
    return soft, eps * float(problem.C @ terms.sum(axis=1)) / max(soft, 1e-300)


def _not_separable(problem: LlwProblem, n_iter: int) -> LlwSolution:
    """Return the result for a problem without a hard margin."""
    shape, Q = problem.open.shape, problem.n_classes
    nothing, zero = np.zeros(shape), np.zeros(Q)
    return LlwSolution(
        nothing, np.zeros(shape, dtype=np.int8), nothing, zero, zero, zero, nothing,
        np.inf, np.inf, np.inf, np.inf, n_iter, False, False,
    )  # fmt: skip


def descend(K: FloatArray, C: FloatArray) -> LlwPoint:
    """Solve the dual from alpha = 0; K has unit scale, C (n, Q) is 0 for no variable.

    No alpha of a hard margin exceeds (Q - 1) ||w||^2. Larger bounds cannot be active,
    and keep the problem bounded if there is no margin.
    """
    Q = C.shape[1]
    bound = np.where(np.isinf(C), 4.0 * Q * LARGEST_SQUARED_NORM, C)
    upper = np.minimum(bound.T, 1e300, order="C")
    alpha, gradient = np.zeros(upper.shape), np.full(upper.shape, 1.0 / (Q - 1))
    n_smo = _run_smo(K, upper, alpha, gradient)
    hard = bool(np.isinf(C).any())
    free, n_active, settled = _finish(K, upper, alpha, gradient, hard)
    if not np.isfinite(alpha).all():
        alpha, free = np.zeros(upper.shape), free[:0]
    state = np.where(alpha > 0.0, BOUNDED, OUTSIDE).astype(np.int8)
    state.flat[free] = MARGIN
    return LlwPoint(
        np.ascontiguousarray(alpha.T), np.ascontiguousarray(state.T), settled,
        n_smo + n_active,
    )  # fmt: skip


def _run_smo(
    K: FloatArray, upper: FloatArray, alpha: FloatArray, gradient: FloatArray
) -> int:
    """Run SMO in place, in calls short enough for Ctrl-C; return the steps taken."""
    diag, tol = K.diagonal().copy(), SMO_TOL / (upper.shape[0] - 1)
    total, cap = 0, SMO_STEPS_PER_VARIABLE * upper.size
    while total < cap:
        budget = min(SMO_STEPS_PER_CALL, cap - total)
        steps, violation = llw_smo(K, diag, upper, alpha, gradient, tol, budget)
        total += steps
        if violation <= tol or steps < budget:
            break
    return total


def _finish(
    K: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    gradient: FloatArray,
    hard: bool,
) -> tuple[IntArray, int, bool]:
    """Run the active set in place; return free entries, steps, and whether it ended.

    If rounding spoils its factor, it restarts from the point it has reached.
    """
    (Q, n), capacity = upper.shape, min(upper.size, MAX_FREE)
    members, factor = np.empty(capacity, dtype=np.intp), np.empty((capacity, capacity))
    total, work, restarts = 0, ACTIVE_SET_WORK * (Q + 3) * n**3, RESTARTS
    free, end = np.flatnonzero((alpha > 0.0) & (alpha < upper)), MORE
    while end != DONE and free.size <= capacity and work > 0 and restarts > 0:
        terms = np.abs(alpha.mean(axis=0) - alpha) @ np.abs(K)
        tol = max(TOL, ROUNDING * float(terms.max()))
        members[: free.size] = free
        m, steps, end = run_llw_active_set(
            K, upper, alpha, gradient, members, free.size, factor, 1.0, tol,
            ACTIVE_SET_STEPS_PER_CALL,
        )  # fmt: skip
        total += steps
        work -= steps * (m * m + Q * n * n // 2)
        free = members[:m].copy()
        if hard and _has_no_margin(K, alpha.T):
            break
        if end not in (DONE, MORE):
            restarts -= 1
            gradient[:] = 1.0 / (Q - 1) + (alpha.mean(axis=0) - alpha) @ K
            free = np.flatnonzero((alpha > 0.0) & (alpha < upper))
    return free, total, end == DONE and bool(np.isfinite(alpha).all())
