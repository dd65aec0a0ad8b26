# SPDX-License-Identifier: BSD-3-Clause
"""How far a solution is from the optimum, and what rounding leaves open.

How good a dual point is: bias interval, optimality residual, duality gap.

Machines of any scale, brought to one where fixed tolerances mean what they say.

Two changes of a problem that change its optimum in a known way, both by powers of two,
so that nothing is rounded:

- ``K -> s K, C -> C / s``: f stays, beta becomes beta / s.
- A tiny box. If ``max_i K_ii * sum(C) < 1/2`` then ``|g_i| < 1/2`` for every feasible
  beta. With an intercept all breakpoints y_i - g_i of one class lie before those of the
  other, so b is a breakpoint of the heavier class, the lighter one is bounded as a
  whole, and what is left, ``min beta' K beta`` over the boxes of the heavier class with
  a given sum, is homogeneous: beta and g are proportional to C, and f is a label plus a
  multiple of C. Without an intercept all are bounded, and f is proportional to C. So
  a tiny box may be made larger and the deviations smaller again. Else all of them
  drown in the tolerance, and with them the answer which b are optimal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray, StateArray
from leaveout.engine._problem import Problem, Solution

# Kernel values whose largest K_ii is within 2^-20 ... 2^20 stay as they are.
KERNEL_RANGE = 20
# max K_ii * sum(C) below 2^-16 is brought to about 2^-3; proportional up to 2^-1.
TINY, PROPORTIONAL = -16, -3
# Larger boxes than this, with K_ii near 1, are never reached by a coefficient.
LARGEST_BOX = 2.0**100


def weighted_median_interval(
    values: FloatArray, weights: FloatArray, level: float
) -> tuple[float, float]:
    """Return all minimisers of a convex piecewise linear sum, as order statistics.

    ``argmin_b sum_i C_i max(0, 1 - y_i (g_i + b))`` is the interval between the
    smallest breakpoint ``v_i = y_i - g_i`` whose cumulative weight reaches ``level``,
    the weight of the positive class, and the smallest whose cumulative weight exceeds
    it. Holds for every g, so no dual variable is asked (docs/notation).

    Parameters
    ----------
    values : ndarray of shape (n,)
        Breakpoints.
    weights : ndarray of shape (n,)
        Their weights, C_i.
    level : float
        Weight of the positive class.

    Returns
    -------
    tuple of float
        Lower and upper end, -inf or inf where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_median_interval(np.array([-1.0, 0.0, 1.0]), np.ones(3), 2.0)
    (0.0, 1.0)
    """
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    slack = 1e-12 * cumulative[-1]
    below = int(np.searchsorted(cumulative, level - slack, side="left"))
    above = int(np.searchsorted(cumulative, level + slack, side="right"))
    low = float(values[order[below]]) if level > slack else -np.inf
    high = float(values[order[above]]) if above < values.size else np.inf
    return low, high


def weighted_median_intervals(
    values: FloatArray, weights: FloatArray, levels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Do what :func:`weighted_median_interval` does for each row of a matrix.

    Parameters
    ----------
    values, weights : ndarray of shape (k, n)
        Breakpoints and their weights; those with weight 0 do not count.
    levels : ndarray of shape (k,)
        Weight of the positive class in each row.

    Returns
    -------
    low, high : ndarray of shape (k,)
        Ends, -inf or inf where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> v, ones = np.array([[-1.0, 0.0, 1.0]]), np.ones((1, 3))
    >>> weighted_median_intervals(v, ones, np.array([2.0]))
    (array([0.]), array([1.]))
    """
    common = float(weights.max(initial=0.0))
    if np.all((weights == common) | (weights == 0.0)) and common > 0.0:
        return _median_intervals(np.where(weights, values, np.inf), levels / common)
    order = np.argsort(values, axis=1, kind="stable")
    cumulative = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    slack = 1e-12 * cumulative[:, -1]
    n, rows = values.shape[1], np.arange(values.shape[0])
    below = np.count_nonzero(cumulative < (levels - slack)[:, None], axis=1)
    above = np.count_nonzero(cumulative <= (levels + slack)[:, None], axis=1)
    low = values[rows, order[rows, np.minimum(below, n - 1)]]
    high = values[rows, order[rows, np.minimum(above, n - 1)]]
    return np.where(levels > slack, low, -np.inf), np.where(above < n, high, np.inf)


def _median_intervals(
    values: FloatArray, ranks: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Equal weights: order statistics of given ranks, by selection; inf if absent."""
    n, rows = values.shape[1], np.arange(values.shape[0])
    slack = 1e-12 * n
    # The smallest with at least, and the smallest with more than this many up to it.
    below = np.ceil(ranks - slack).astype(np.intp) - 1
    above = np.floor(ranks + slack).astype(np.intp)
    wanted = np.clip([below, above], 0, n - 1)
    chosen = np.partition(values, np.unique(wanted), axis=1)
    low = np.where(ranks > slack, chosen[rows, wanted[0]], -np.inf)
    return low, np.where(above < n, chosen[rows, wanted[1]], np.inf)


def intercept_interval(
    problem: Problem, beta: FloatArray, F: FloatArray, free: IntArray
) -> tuple[float, float]:
    """All optimal b at an optimal beta with F = y - K beta; a point if one is free."""
    if has_room(problem.C, np.abs(beta), free):
        b = float(np.mean(F[free]))
        return b, b
    level = float(problem.C[problem.y > 0].sum())
    return weighted_median_interval(F, problem.C, level)


def box_unit(C: FloatArray, alpha: FloatArray) -> FloatArray:
    """Return what "near a bound" is relative to: the box, or the largest alpha if less.

    Beside a box of 1e12 that no coefficient comes near, all of them would look like 0.
    """
    return np.minimum(C, alpha.max(initial=0.0))


def has_room(C: FloatArray, alpha: FloatArray, free: IntArray | BoolArray) -> bool:
    """Whether one of the free support vectors is so by more than rounding."""
    room = np.minimum(alpha[free], C[free] - alpha[free])
    return bool(np.any(room > 1e-9 * box_unit(C, alpha)[free]))


def intercept_range_without(
    problem: Problem, solution: Solution, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """How far b may go down and up when a sample with alpha = 0 leaves.

    The machine does not change, but without a free support vector b is an interval, and
    the sample may have been what held its end (docs/method/walk).

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum.
    rows : ndarray of shape (k,)
        Samples with alpha = 0.

    Returns
    -------
    down, up : ndarray of shape (k,)
        Ends of the interval less the intercept of the solution.
    """
    y, C, alpha = problem.y, problem.C, solution.alpha
    near = 1e-9 * box_unit(C, alpha)
    can_rise, can_fall = C - alpha > near, alpha > near
    distance = y - solution.decision_values
    below = np.where(np.where(y > 0, can_rise, can_fall), distance, -np.inf)
    above = np.where(np.where(y > 0, can_fall, can_rise), distance, np.inf)
    return _max_without(below, rows), -_max_without(-above, rows)


def _max_without(values: FloatArray, rows: IntArray) -> FloatArray:
    """Maximum of values when one entry is left out, for each of some entries."""
    first, second = np.sort(values)[:-3:-1]
    only = (values[rows] == first) & (np.count_nonzero(values == first) == 1)
    return np.where(only, second, first)


def kkt_residual(
    problem: Problem, beta: FloatArray, f: FloatArray, state: StateArray
) -> float:
    """Largest violation of the optimality conditions.

    Outside h >= 1, on the margin h = 1, bounded h <= 1, each relative to
    max(1, sum_j |beta_j K_ij|); the box holds by construction; sum(beta) = 0 is
    relative to sum |beta|.
    """
    excess = problem.y * f - 1.0
    violation = np.abs(excess)
    violation[(state == 0) & (excess > 0)] = 0.0
    violation[(state == 2) & (excess < 0)] = 0.0
    violation[problem.C == 0.0] = 0.0
    support = np.flatnonzero(beta)
    violated = np.flatnonzero(violation > 1e-12)
    worst = float(violation.max(initial=0.0))
    if violated.size:
        rows = np.abs(problem.K[np.ix_(violated, support)])
        scale = np.maximum(1.0, rows @ np.abs(beta[support]))
        worst = max(1e-12, float((violation[violated] / scale).max()))
    if problem.fit_intercept and support.size:
        worst = max(worst, abs(float(beta.sum())) / float(np.abs(beta).sum()))
    return worst


def duality_gap(
    problem: Problem, beta: FloatArray, f: FloatArray, b: float
) -> tuple[float, float]:
    """Return (primal, (primal - dual) / primal) at beta with values f = K beta + b.

    The gap is the sum of the complementarity terms C_i xi_i - alpha_i (1 - h_i) >= 0,
    free of the cancellation in primal minus dual.
    """
    alpha, short = np.abs(beta), 1.0 - problem.y * f
    hinge = problem.C * np.maximum(0.0, short)
    primal = 0.5 * float(beta @ (f - b)) + float(hinge.sum())
    gap = float((hinge - alpha * short).sum()) - b * float(beta.sum())
    return primal, gap / primal if primal > 0.0 else 0.0


@dataclass(frozen=True)
class Rescaled:
    """A problem at a better scale, and the way back.

    Parameters
    ----------
    problem : Problem
        The machine with ``2^kernel K`` and ``2^(magnified - kernel) C``.
    kernel : int
        Exponent of the change of K.
    magnified : int
        Exponent by which deviations of f from a label are larger; 0 but for tiny boxes.
    """

    problem: Problem
    kernel: int = 0
    magnified: int = 0

    @property
    def changed(self) -> bool:
        """Whether anything was done."""
        return self.kernel != 0 or self.magnified != 0

    def coefficients(self, beta: FloatArray) -> FloatArray:
        """Return coefficients of the problem at hand for those of the original."""
        return np.ldexp(beta, self.magnified - self.kernel)

    def shrink(self, ends: FloatArray) -> FloatArray:
        """Return values f at an end of the interval of b, as the original has them."""
        if not self.magnified:
            return ends
        label = np.sign(ends) if self.problem.fit_intercept else 0.0
        with np.errstate(invalid="ignore"):  # an infinite end stays
            small = label + np.ldexp(ends - label, -self.magnified)
        return np.where(np.isinf(ends), ends, small)

    def restore(self, solution: Solution, original: Problem) -> Solution:
        """Return the solution of the original problem."""
        beta = np.ldexp(solution.beta, self.kernel - self.magnified)
        interval, b = solution.intercept_interval, solution.intercept
        f = solution.decision_values
        if self.magnified:
            low, high = self.shrink(np.array(interval))
            interval = (float(low), float(high))
            middle = low if np.isinf(high) else high if np.isinf(low) else None
            b = float(0.5 * (low + high) if middle is None else middle)
            f = np.ldexp(f - solution.intercept, -self.magnified) + b
        with np.errstate(over="ignore"):
            objective, _ = duality_gap(original, beta, f, b)
        return replace(
            solution,
            beta=beta,
            intercept=b,
            intercept_interval=interval,
            decision_values=f,
            objective=objective,
        )


def rescale(problem: Problem, *, magnify: bool = True) -> Rescaled:
    """Bring kernel values near 1 and tiny boxes out of the tolerances' reach.

    Parameters
    ----------
    problem : Problem
        The machine.
    magnify : bool, default=True
        Whether tiny boxes are made larger, which changes f.

    Returns
    -------
    Rescaled
        The problem itself if there is nothing to do, which is nearly always so.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.engine._problem import Problem
    >>> x = np.array([[-1.0], [1.0], [3.0]])
    >>> rescale(Problem(x @ x.T, np.sign(x[:, 0]), np.ones(3))).changed
    False
    >>> x *= 1e100
    >>> rescaled = rescale(Problem(x @ x.T, np.sign(x[:, 0]), np.ones(3)))
    >>> rescaled.kernel, float(rescaled.problem.K.max()) <= 1.0
    (-668, True)
    """
    top = float(problem.K.diagonal().max(initial=0.0))
    most = min(float(problem.C.max(initial=0.0)), np.finfo(float).max)
    if not top > 0.0 or not most > 0.0:
        return Rescaled(problem)
    exponent = _exponent(top)
    kernel = -exponent if abs(exponent) > KERNEL_RANGE else 0
    size = exponent + _exponent(most) + problem.n_samples.bit_length()
    magnified = PROPORTIONAL - size if magnify and size < TINY else 0
    if not kernel and not magnified and most <= LARGEST_BOX:
        return Rescaled(problem)
    K = np.ldexp(problem.K, kernel) if kernel else problem.K
    with np.errstate(over="ignore"):
        C = np.minimum(np.ldexp(problem.C, magnified - kernel), LARGEST_BOX)
    return Rescaled(Problem(K, problem.y, C, problem.fit_intercept), kernel, magnified)


def _exponent(value: float) -> int:
    """Return the smallest e with value < 2^e."""
    return int(np.frexp(value)[1])
