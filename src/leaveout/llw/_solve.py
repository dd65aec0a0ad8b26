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
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray, StateArray
from leaveout.engine._problem import BOUNDED, MARGIN, OUTSIDE, Problem
from leaveout.engine._solve import solve_svc
from leaveout.llw._interior import LARGEST_SQUARED_NORM, InteriorPoint
from leaveout.llw._llw_active_set_fast import run_llw_active_set
from leaveout.llw._llw_smo_fast import llw_smo
from leaveout.llw._pivot import FAR, NEAR, LlwPoint, pivot

# Relative duality gap below which a point counts as optimal.
OPTIMAL = 1e-8
# An alpha this close to 0 or C, relative to C, is there: systems near a singular face
# leave 1e-10 of noise, and a bound that looks free would make b look unique.
SNAP = 1e-8
# Linear systems from a warm start before the interior point takes over.
WARM_ROUNDS = 15
# SMO finds the neighbourhood, the active set the point: over n = 100...850 and 2...6
# classes the sum of both is smallest around this violation, of slopes 1/(Q-1).
SMO_TOL = 0.15
# On ill-conditioned kernels with large C SMO crawls; the active set does not.
SMO_STEPS_PER_VARIABLE = 10
# Work of the active set before it counts as lost, in units of (Q + 3) n^3, which is a
# step of the interior point; that one's operations run a few times faster.
ACTIVE_SET_WORK = 8
# Steps between two looks at Python's signals, so that Ctrl-C works.
SMO_STEPS_PER_CALL = 20_000
ACTIVE_SET_STEPS_PER_CALL = 200
# Free entries at most: the factor is a square of this order.
MAX_FREE = 4000
# Violation that counts, relative to the terms of a slope.
TOL, ROUNDING = 1e-11, 1e-15
# Stands for no upper bound; the kernels know no infinity.
UNBOUNDED = 1e300
# How the active set ends, as in _llw_active_set_fast.
DONE, MORE = 0, 1


@dataclass(frozen=True)
class LlwProblem:
    """One multi-class machine with fixed kernel values.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix: symmetric, positive semi-definite.
    codes : ndarray of int, shape (n,)
        Class of each sample, 0 to n_classes - 1.
    C : ndarray of shape (n,)
        Upper bound of the dual variables of each sample; infinite for a hard margin,
        0 for a sample that is absent.
    n_classes : int
        Q; every class has a sample that is present.
    """

    K: FloatArray
    codes: IntArray
    C: FloatArray
    n_classes: int

    @cached_property
    def open(self) -> BoolArray:
        """Where there is a dual variable, (n, Q)."""
        other = self.codes[:, None] != np.arange(self.n_classes)
        return other & (self.C > 0.0)[:, None]

    @cached_property
    def box(self) -> FloatArray:
        """Upper bound of each dual variable, (n, Q)."""
        return np.where(self.open, self.C[:, None], 0.0)

    @property
    def is_hard(self) -> bool:
        """Whether no slack is allowed."""
        return bool(np.isinf(self.C).any())

    def as_hard_margin(self) -> LlwProblem:
        """Return the machine with quadratic penalty of the same C, a hard margin."""
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
    """An optimum of an :class:`LlwProblem`, with its certificate.

    Parameters
    ----------
    alpha : ndarray of shape (n, Q)
        Dual variables.
    state : ndarray of int8, shape (n, Q)
        OUTSIDE (alpha = 0), MARGIN or BOUNDED (alpha = C).
    coef : ndarray of shape (n, Q)
        W, whose rows and columns sum to zero.
    intercept : ndarray of shape (Q,)
        b; inside its box if several are optimal.
    intercept_lower, intercept_upper : ndarray of shape (Q,)
        Box of b: every b in it with sum 0 is optimal.
    gradient : ndarray of shape (n, Q)
        G = 1/(Q-1) + K W.
    squared_norm : float
        Sum of ||w_k||^2.
    objective : float
        Primal value.
    duality_gap : float
        (primal - dual) / primal.
    kkt_residual : float
        Largest violation of the optimality conditions, relative to max(1, |K| |W|).
    n_iter : int
        Steps of all kinds: of SMO and the active set, linear systems, Newton steps.
    converged : bool
        Whether the gap is below 1e-8, or what rounding leaves.
    found_by : str
        "active set", "binary SVM" (two classes), "pivots" (from a warm start), "walk";
        "interior point" if those did not end at an optimum.
    separable : bool
        False if a hard margin was asked for and there is none; the rest is then void.
    """

    alpha: FloatArray
    state: StateArray
    coef: FloatArray
    intercept: FloatArray
    intercept_lower: FloatArray
    intercept_upper: FloatArray
    gradient: FloatArray
    squared_norm: float
    objective: float
    duality_gap: float
    kkt_residual: float
    n_iter: int
    converged: bool
    found_by: str
    separable: bool = True

    @property
    def decision_values(self) -> FloatArray:
        """H on the training points, (n, Q)."""
        return self.gradient - 1.0 / (self.alpha.shape[1] - 1) + self.intercept


def solve_llw(problem: LlwProblem, *, start: LlwSolution | None = None) -> LlwSolution:
    """Solve the multi-class machine of Lee, Lin & Wahba.

    Parameters
    ----------
    problem : LlwProblem
        Kernel values, classes and boxes.
    start : LlwSolution, optional
        The optimum of a problem nearby (another C, a sample less): its sets are tried
        first.

    Returns
    -------
    LlwSolution
        With ``converged=False`` if rounding kept the gap above 1e-8, and
        ``separable=False`` if there is no hard margin; never an exception.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> machine = LlwProblem(np.outer(x, x), np.array([0, 0, 1, 1]), np.full(4, 9.0), 2)
    >>> solution = solve_llw(machine)
    >>> solution.alpha[:, 0].round(4), round(solution.objective, 4)
    (array([0., 0., 1., 0.]), 1.0)
    """
    if start is None and problem.n_classes == 2 and not problem.is_hard:
        solution = _solve_as_binary(problem)
        if solution.converged:
            return solution
    centred, tried = centre(problem), []
    # A step that overflows is no optimum, which the certificate tells.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for found, n_iter in _attempts(problem, centred, start):
            if found is None:
                return _not_separable(problem, n_iter)
            tried.append(with_certificate(problem, found, centred, n_iter))
            if tried[-1].converged:
                return tried[-1]
    return min(tried, key=lambda solution: solution.duality_gap)


def _attempts(
    problem: LlwProblem, centred: Centred, start: LlwSolution | None
) -> Iterator[tuple[LlwPoint | None, int]]:
    """Yield points that may be optimal, with the steps so far; None: not separable."""
    K, scale = centred.K, centred.scale
    open_, box = problem.open, problem.box * scale
    n_iter = 0
    if start is not None:
        found = pivot(
            K, open_, box, start.state, start.alpha * scale,
            start.intercept + centred.means @ start.coef, max_rounds=WARM_ROUNDS,
        )  # fmt: skip
        n_iter = found.n_iter
        if found.settled:
            yield found, n_iter
    found = descend(K, box)
    n_iter += found.n_iter
    if found.settled and problem.is_hard and _is_tiny(found):
        yield None, n_iter
        return
    if found.settled:
        yield found, n_iter
    yield from _interior_attempts(K, open_, box, n_iter)


def _interior_attempts(
    K: FloatArray, open_: BoolArray, box: FloatArray, n_iter: int
) -> Iterator[tuple[LlwPoint | None, int]]:
    """Go on where the faster ways did not end at an optimum."""
    interior = InteriorPoint(K, open_, box)
    # The sets are mostly known long before the end; if not, it goes on from there.
    for tol, proximity, max_rounds in (
        (1e-5, NEAR, 8), (1e-10, NEAR, 8), (1e-10, FAR, 30),
    ):  # fmt: skip
        interior.run(tol)
        n_steps = interior.point.n_iter
        if interior.unbounded:
            yield None, n_iter + n_steps
            return
        alpha, b = interior.spread(interior.best.alpha), interior.best.b
        guess = _guess_sets(interior)
        found = pivot(
            K, open_, box, guess, alpha, b, proximity=proximity, max_rounds=max_rounds
        )
        n_iter, found.by = n_iter + found.n_iter, "interior point"
        if found.settled:
            yield purify(K, box, found), n_iter + n_steps
            yield found, n_iter + n_steps
    inside = _even_columns(np.where(guess == OUTSIDE, 0.0, alpha), box)
    yield LlwPoint(inside, b, guess, False, 0, "interior point"), n_iter + n_steps


def _is_tiny(found: LlwPoint) -> bool:
    """Whether a hard margin counts as none; at the optimum ||w||^2 = sum(a) / (Q-1)."""
    squared_norm = float(found.alpha.sum()) / (found.alpha.shape[1] - 1)
    return squared_norm > LARGEST_SQUARED_NORM


def _solve_as_binary(problem: LlwProblem) -> LlwSolution:
    """Two classes are the SVM with C / 2: h_1 = f = -h_0, with twice the value."""
    y = np.where(problem.codes == 1, 1.0, -1.0)
    svm = solve_svc(Problem(problem.K, y, 0.5 * problem.C))
    signs, open_ = np.array([-1.0, 1.0]), problem.open
    alpha = np.where(open_, 2.0 * np.abs(svm.beta)[:, None], 0.0)
    state = np.where(open_, svm.state[:, None], OUTSIDE).astype(np.int8)
    outputs = svm.decision_values - svm.intercept
    (low, high), b = svm.intercept_interval, svm.intercept
    return LlwSolution(
        alpha, state, svm.beta[:, None] * signs, b * signs,
        np.array([-high, low]), np.array([-low, high]),
        1.0 + outputs[:, None] * signs, 2.0 * float(svm.beta @ outputs),
        2.0 * svm.objective, svm.duality_gap, svm.kkt_residual, svm.n_iter,
        svm.converged and abs(svm.duality_gap) <= OPTIMAL, "binary SVM",
    )  # fmt: skip


def intercept_box(
    gradient: FloatArray, can_fall: BoolArray, can_rise: BoolArray, free: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the box of the optimal intercepts, theory as in docs/method/llw.

    b_k is at least -G where alpha > 0 and at most -G where alpha < C; a column with a
    free entry has one b. The others are tightened by sum(b) = 0.

    Parameters
    ----------
    gradient : ndarray of shape (n, Q)
        G.
    can_fall, can_rise, free : ndarray of bool, shape (n, Q)
        Where alpha > 0, alpha < C, and both.

    Returns
    -------
    tuple of ndarray
        Lower and upper ends, (Q,) each.
    """
    count = free.sum(axis=0)
    mean = np.where(free, -gradient, 0.0).sum(axis=0) / np.maximum(count, 1)
    if count.all():
        return mean, mean
    low = np.where(can_fall, -gradient, -np.inf).max(axis=0)
    high = np.where(can_rise, -gradient, np.inf).min(axis=0)
    # Rounding, or a point not quite optimal, may leave low above high.
    crossed = (count > 0) | (low > high)
    middle = np.where(count > 0, mean, 0.5 * (low + high))
    low, high = np.where(crossed, middle, low), np.where(crossed, middle, high)
    for _ in range(2):
        high = np.minimum(high, -_sum_of_others(low))
        low = np.maximum(low, -_sum_of_others(high))
    return low, np.maximum(low, high)


def choose_intercept(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return b in its box with sum 0, the same share of the way in every column."""
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
    """Sum over all columns but each one, right for infinite entries too."""
    spread = np.tile(values, (values.size, 1))
    np.fill_diagonal(spread, 0.0)
    return spread.sum(axis=1)


@dataclass(frozen=True)
class Centred:
    """K centred over the present samples, of unit scale; that scale; the means.

    The columns of W sum to zero, so that constants added to the rows of K only move b,
    and digits lost to them would be lost for nothing.
    """

    K: FloatArray
    scale: float
    means: FloatArray

    @cached_property
    def magnitude(self) -> FloatArray:
        """|K|."""
        return np.abs(self.K)


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
        scale = 1.0  # of a constant kernel
    K /= scale
    return Centred(K, scale, means)


def _guess_sets(interior: InteriorPoint) -> StateArray:
    """Which entries the interior point holds at a bound: the multiplier tells."""
    p, boxed = interior.best, interior.boxed
    bounded = boxed & (p.room < p.v) & (p.room < p.alpha)
    outside = (p.alpha < p.z) & ~bounded & ~(boxed & (p.room < p.alpha))
    inner = np.where(bounded, BOUNDED, np.where(outside, OUTSIDE, MARGIN))
    return interior.spread(inner).astype(np.int8)


def _even_columns(alpha: FloatArray, box: FloatArray) -> FloatArray:
    """Scale the columns to the smallest sum: feasible to rounding."""
    alpha = np.clip(alpha, 0.0, box)
    sums = alpha.sum(axis=0)
    return alpha * (sums.min() / np.maximum(sums, 1e-300))


def with_certificate(
    problem: LlwProblem, found: LlwPoint, centred: Centred, n_iter: int
) -> LlwSolution:
    """Put a point, its intercepts and the proof of optimality together."""
    Q, open_, box = problem.n_classes, problem.open, problem.box
    alpha = np.minimum(found.alpha / centred.scale, box)
    state = _snap(alpha, found, box)
    free, bounded = state == MARGIN, state == BOUNDED
    coef = alpha.mean(axis=1, keepdims=True) - alpha
    gradient = 1.0 / (Q - 1) + centred.K @ (centred.scale * coef)
    can_fall, can_rise = free | bounded, open_ & ~bounded
    low, high = intercept_box(gradient, can_fall, can_rise, free)
    b = choose_intercept(low, high)
    slope = gradient + b
    norm = float((coef * (gradient - 1.0 / (Q - 1))).sum())
    linear = float(alpha.sum()) / (Q - 1)
    terms = np.maximum(1.0, centred.magnitude @ np.abs(centred.scale * coef))
    primal, rounding = _primal(problem, norm, slope, open_, terms)
    violation = np.maximum(
        np.where(can_rise, slope, 0.0), np.where(can_fall, -slope, 0.0)
    )
    gap = (primal - (linear - 0.5 * norm)) / max(primal, 1e-300)
    shift = centred.means @ coef  # from the centred kernel back to K
    return LlwSolution(
        alpha, state, coef, b - shift, low - shift, high - shift,
        gradient + shift, norm, primal, float(gap),
        float((violation / terms).max()), n_iter,
        bool(abs(gap) <= max(OPTIMAL, rounding)), found.by,
    )  # fmt: skip


def _snap(alpha: FloatArray, found: LlwPoint, box: FloatArray) -> StateArray:
    """Put alpha to the bounds it reaches but for rounding, in place; return the sets.

    A free entry at its bound would make b look unique where it is not.
    """
    state, finite = found.state.copy(), np.isfinite(box)
    reached = float(alpha.max(initial=0.0))  # a large C may be far from every alpha
    slack = np.where(finite, SNAP * np.minimum(box, reached), 0.0)
    free = state == MARGIN
    state[free & (alpha <= slack)] = OUTSIDE
    state[free & finite & (alpha >= box - slack)] = BOUNDED
    if found.settled:
        alpha[state == OUTSIDE] = 0.0
        alpha[state == BOUNDED] = box[state == BOUNDED]
    return state


def _primal(
    problem: LlwProblem,
    norm: float,
    slope: FloatArray,
    open_: BoolArray,
    terms: FloatArray,
) -> tuple[float, float]:
    """Return the value of a feasible primal point, and what rounding leaves open of it.

    Either h with its slacks, or h scaled until it needs none: where nobody reaches a
    large C, slacks are rounding, and C times that would hide the optimum.
    """
    eps, Q = 16 * np.finfo(float).eps, problem.n_classes
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
    """Say that there is no hard margin."""
    shape, Q = problem.open.shape, problem.n_classes
    nothing, zero = np.zeros(shape), np.zeros(Q)
    return LlwSolution(
        nothing, np.zeros(shape, dtype=np.int8), nothing, zero, zero, zero, nothing,
        np.inf, np.inf, np.inf, np.inf, n_iter, False, "interior point", False,
    )  # fmt: skip


def descend(K: FloatArray, C: FloatArray) -> LlwPoint:
    """Solve the dual from alpha = 0.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of unit scale.
    C : ndarray of shape (n, Q)
        Upper bounds, possibly infinite; 0 where there is no variable.

    Returns
    -------
    Pivoted
        ``settled`` if the active set ended at an optimum; b is left to the certificate.
    """
    Q = C.shape[1]
    upper = np.minimum(C.T, UNBOUNDED, order="C")
    alpha, gradient = np.zeros(upper.shape), np.full(upper.shape, 1.0 / (Q - 1))
    n_smo = _run_smo(K, upper, alpha, gradient)
    return _end(K, upper, alpha, gradient, n_smo, "active set")


def purify(K: FloatArray, C: FloatArray, found: LlwPoint) -> LlwPoint:
    """Leave free entries only that depend on no others, as a walk has to begin.

    Parameters
    ----------
    K, C : ndarray of shape (n, n) and (n, Q)
        As for :func:`descend`.
    found : Pivoted
        An optimum.

    Returns
    -------
    Pivoted
        One with the same w, or ``found`` itself if there rounding decides.
    """
    upper = np.minimum(C.T, UNBOUNDED, order="C")
    alpha = np.minimum(found.alpha.T, upper, order="C")
    W = alpha.mean(axis=0) - alpha
    gradient = 1.0 / (alpha.shape[0] - 1) + W @ K
    pure = _end(K, upper, alpha, gradient, found.n_iter, found.by)
    return pure if pure.settled else found


def _end(
    K: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    gradient: FloatArray,
    n_iter: int,
    by: str,
) -> LlwPoint:
    """Go on from a feasible point by the active set."""
    free = np.flatnonzero((alpha > 0.0) & (alpha < upper))
    free, n_active, settled = _finish(K, upper, alpha, gradient, free)
    state = np.where(alpha > 0.0, BOUNDED, OUTSIDE).astype(np.int8)
    state.flat[free] = MARGIN
    return LlwPoint(
        np.ascontiguousarray(alpha.T), np.zeros(alpha.shape[0]),
        np.ascontiguousarray(state.T), settled, n_iter + n_active, by,
    )  # fmt: skip


def _run_smo(
    K: FloatArray, upper: FloatArray, alpha: FloatArray, gradient: FloatArray
) -> int:
    """SMO in place, in calls short enough for Ctrl-C; return the steps taken."""
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
    free: IntArray,
) -> tuple[IntArray, int, bool]:
    """Active set in place; return the free entries, the steps, whether it ended."""
    (Q, n), capacity = upper.shape, min(upper.size, MAX_FREE)
    if free.size > capacity:
        return free, 0, False
    members, factor = np.empty(capacity, dtype=np.intp), np.empty((capacity, capacity))
    total, work, end = 0, ACTIVE_SET_WORK * (Q + 3) * n**3, MORE
    while end == MORE and work > 0:
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
    return free, total, end == DONE and bool(np.isfinite(alpha).all())
