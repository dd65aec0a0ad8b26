# SPDX-License-Identifier: BSD-3-Clause
"""Classical bounds on and estimates of the leave-one-out error of one binary SVM.

A sample is *wrong* if its left-out margin is below 0 for every optimal intercept, and
*ambiguous* if that depends on the intercept. With an unregularised intercept most
bounds in the literature do not hold as printed (docs/method/bounds); ``kind`` says what
holds for the given problem:

    bound       at least the share of samples that are wrong or ambiguous
    weak bound  at least the share that are wrong; ambiguous ones may be missed
    other loss  a bound for the classifier with squared loss, none for this one
    estimate    no guarantee

Each function cites its paper. To add a bound, list its function in ``SVM_BOUNDS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import fsum
from time import perf_counter

import numpy as np
from scipy import linalg

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import has_room
from leaveout.engine._problem import Problem, Solution
from leaveout.engine._solve import solve_at_unit_scale
from leaveout.engine._walk import invert
from leaveout.methods._stopping import (
    ROUNDING,
    check_left_out,
    values_at_worst_b,
)

BOUND, WEAK, OTHER_LOSS = "bound", "weak bound", "other loss"
ESTIMATE, EXACT = "estimate", "exact"
# If rounding may move f by more, support vectors cannot be identified.
DOUBT = 1e-5
IN_DOUBT = "terms cancel: rounding may hide errors"
# Below this reciprocal condition number distances come from least squares.
SINGULAR = 1e-12


@dataclass(frozen=True)
class Bound:
    """A bound on or an estimate of the leave-one-out error.

    Parameters
    ----------
    name : str
        Its name.
    kind : {"bound", "weak bound", "other loss", "estimate", "exact"}
        What it guarantees for this classifier. "other loss" is a bound on the error of
        the classifier with squared slacks and the same C, and none for this one.
    value : float
        Share of samples; sums, such as radius-margin, may exceed 1.
    lower : float
        Share of samples that are certainly wrong; 0 if there is no lower bound.
    cost : str
        Operations besides the fit, for n samples, s support vectors, m of them free.
    note : str
        Why it does not guarantee more, or what else it estimates.
    seconds : float
        Time taken.
    """

    __module__ = "leaveout"

    name: str
    kind: str
    value: float
    lower: float = 0.0
    cost: str = ""
    note: str = ""
    seconds: float = 0.0


def bound_sv_count(problem: Problem, solution: Solution) -> Bound:
    """Share of support vectors: leaving out another sample does not change w.

    Without a free support vector the intercept may still move, and a sample with alpha
    = 0 may become ambiguous, but never certainly wrong. If the C_i balance up to
    rounding, the samples at the ends of the intercept's interval count, too.
    """
    settled = not problem.fit_intercept or has_room(
        problem.C, solution.alpha, solution.free
    )
    note = "" if settled else "no free support vector: others may be ambiguous"
    support = solution.beta != 0.0
    if not settled and fsum(solution.beta) != 0.0:
        at = problem.y - (solution.decision_values - solution.intercept)
        for end in solution.intercept_interval:
            support |= np.abs(at - end) <= ROUNDING
    kind, share = BOUND if settled else WEAK, share_of(support)
    return Bound("support-vector count", kind, share, cost="0", note=note)


def bound_jaakkola_haussler(problem: Problem, solution: Solution) -> Bound:
    """Jaakkola & Haussler (1999): alpha_p K_pp >= y_p f(x_p), Tsuda et al. eq. (4).

    Without an intercept h_p - alpha_p K_pp is a lower bound of the left-out margin.
    """
    worst = _margins(problem, solution) - solution.alpha * problem.K.diagonal()
    kind, note = _needs_no_intercept(problem)
    share = share_of(worst <= ROUNDING)
    return Bound("Jaakkola-Haussler", kind, share, cost="n", note=note)


def bound_xi_alpha(problem: Problem, solution: Solution) -> Bound:
    """Joachims (2000): rho alpha_p R^2 + xi_p >= 1.

    With an intercept rho = 2 and R^2 = max(K_ii - K_ij); without, rho = 1 and
    R^2 = max K_ii, and the bound follows from that of Jaakkola & Haussler.
    """
    K = problem.K
    if problem.fit_intercept:
        reach = 2.0 * float((K.diagonal()[:, None] - K).max())
    else:
        reach = float(K.diagonal().max())
    slack = np.maximum(0.0, 1.0 - _margins(problem, solution))
    kind, note = _needs_no_intercept(problem)
    share = share_of(solution.alpha * reach + slack >= 1.0 - ROUNDING)
    return Bound("xi-alpha", kind, share, cost="n²", note=note)


def bound_span(problem: Problem, solution: Solution) -> Bound:
    """Vapnik & Chapelle (2000): alpha_p S_p^2 > y_p f(x_p), Tsuda et al. eq. (5)."""
    spans = span_squared(problem, solution)
    support = solution.beta != 0.0
    shift = np.multiply(solution.alpha, spans, where=support, out=np.zeros_like(spans))
    wrong = support & (_margins(problem, solution) - shift < -ROUNDING)
    undefined = int(np.isinf(spans).sum())
    note = "assumes the same support vectors"
    if undefined:
        note = f"{undefined} without another free support vector, counted as wrong"
    return Bound("span", ESTIMATE, share_of(wrong), cost="m³ + s m²", note=note)


def bound_radius_margin(problem: Problem, solution: Solution) -> Bound:
    """Radius-margin criterion of the L1-SVM: (4 R^2 sum(alpha) + sum(xi)) / n.

    Without an intercept (max K_ii sum(alpha) + sum(xi)) / n is a bound: the sum of the
    left-hand sides of Jaakkola & Haussler's.
    """
    if problem.fit_intercept:
        reach = 4.0 * enclosing_radius_squared(problem.K)
    else:
        reach = float(problem.K.diagonal().max())
    slack = np.maximum(0.0, 1.0 - _margins(problem, solution))
    kind, note = _needs_no_intercept(problem)
    total = reach * float(solution.alpha.sum()) + float(slack.sum())
    value = total / problem.n_samples
    return Bound("radius-margin L1", kind, value, cost="n² per step", note=note)


def bound_radius_margin_l2(problem: Problem, solution: Solution) -> Bound:
    """4 R^2 ||w||^2 / n of the L2-SVM with the same C, a hard margin (Vapnik 1998).

    Without an intercept it is max K_ii ||w||^2 / n. It bounds the error of the L2-SVM.
    """
    hard, optimum = solve_l2_svm(problem)
    if problem.fit_intercept:
        reach = 4.0 * enclosing_radius_squared(hard.K)
    else:
        reach = float(hard.K.diagonal().max())
    value = reach * float(optimum.alpha.sum()) / problem.n_samples
    kind = OTHER_LOSS if optimum.converged else ESTIMATE
    note, cost = "of the L2-SVM with the same C", "a fit + n² per step"
    return Bound("radius-margin L2", kind, value, cost=cost, note=note)


def bound_gacv(problem: Problem, solution: Solution) -> Bound:
    """Wahba, Lin & Zhang (2000): the left-out hinge loss, by a first-order step.

    (sum(xi) + 2 sum_{h < -1} alpha K_ii + sum_{-1 <= h <= 1} alpha K_ii) / n.
    """
    h, pull = _margins(problem, solution), solution.alpha * problem.K.diagonal()
    slack = np.maximum(0.0, 1.0 - h)
    near = h <= 1.0 + ROUNDING
    total = slack.sum() + 2.0 * pull[h < -1.0].sum() + pull[near & (h >= -1.0)].sum()
    value, note = float(total) / h.size, "of the hinge loss"
    return Bound("GACV", ESTIMATE, value, cost="n", note=note)


def bound_certificate(problem: Problem, solution: Solution) -> Bound:
    """Rigorous intervals of all left-out margins (docs/method/bounds)."""
    checked, open_rows = check_left_out(problem, solution)
    low, high = np.sort(problem.y * [checked.lower, checked.upper], axis=0)
    wrong, unsure = high < -ROUNDING, low <= ROUNDING
    wrong[open_rows], unsure[open_rows] = False, True
    kind, share = BOUND if solution.converged else ESTIMATE, share_of(wrong | unsure)
    return Bound("certificate", kind, share, share_of(wrong), "s n log n")


# In the order of the table: from the cheapest to the tightest.
SVM_BOUNDS: tuple[Callable[[Problem, Solution], Bound], ...] = (
    bound_sv_count,
    bound_jaakkola_haussler,
    bound_xi_alpha,
    bound_radius_margin,
    bound_radius_margin_l2,
    bound_gacv,
    bound_span,
    bound_certificate,
)


def timed(
    function: Callable[[Problem, Solution], Bound], problem: Problem, solution: Solution
) -> Bound:
    """Compute a bound and measure the time it takes."""
    started = perf_counter()
    row = function(problem, solution)
    return replace(row, seconds=perf_counter() - started)


def _margins(problem: Problem, solution: Solution) -> FloatArray:
    """Return y f at the worst optimal intercept for each sample."""
    return problem.y * values_at_worst_b(problem, solution)


def _needs_no_intercept(problem: Problem) -> tuple[str, str]:
    """Return kind and note of a bound that is proved only without an intercept."""
    if problem.fit_intercept:
        return ESTIMATE, "not a bound with an intercept"
    return BOUND, ""


def share_of(mask: BoolArray) -> float:
    return float(np.mean(mask))


def span_squared(problem: Problem, solution: Solution) -> FloatArray:
    """Squared distance of each support vector to the hull of the other free ones.

    With M free, and K~ = [[K_MM, 1], [1', 0]], or K_MM without an intercept::

        p free:     1 / (inverse of K~)_pp
        p bounded:  K_pp - v' (inverse of K~) v,   v = (K_Mp; 1)

    If the sets do not change while alpha_p goes to 0, the left-out margin is
    h_p - alpha_p S_p^2. It is 0 if alpha = 0, inf without another free support vector.
    """
    free = np.flatnonzero(solution.free)
    rest = np.flatnonzero((solution.beta != 0.0) & ~solution.free)
    spans = np.zeros(problem.n_samples)
    inverse = _inverse(_bordered(problem, free))
    if inverse is None:
        for p in np.concatenate([free, rest]):
            spans[p] = _distance_squared(problem, np.setdiff1d(free, [p]), int(p))
        return spans
    with np.errstate(divide="ignore"):
        spans[free] = 1.0 / np.maximum(np.diag(inverse)[: free.size], 0.0)
    if free.size or not problem.fit_intercept:
        v = _columns(problem, free, rest)
        spans[rest] = problem.K.diagonal()[rest] - np.einsum("ip,ip->p", v, inverse @ v)
    else:
        spans[rest] = np.inf
    return np.maximum(spans, 0.0)


def _bordered(problem: Problem, free: IntArray) -> FloatArray:
    """K_MM, with a border of ones if there is an intercept."""
    K = problem.K[np.ix_(free, free)]
    if not problem.fit_intercept:
        return K
    return np.block([[K, np.ones((free.size, 1))], [np.ones(free.size), 0.0]])


def _columns(problem: Problem, free: IntArray, points: IntArray) -> FloatArray:
    """Return v = (K_Mp; 1) of each point, as columns."""
    v = problem.K[np.ix_(free, points)]
    return np.vstack([v, np.ones(points.size)]) if problem.fit_intercept else v


def _inverse(matrix: FloatArray) -> FloatArray | None:
    """Inverse, or None if the matrix is numerically singular."""
    if matrix.size == 0 or (matrix.shape == (1, 1) and matrix[0, 0] == 0.0):
        return np.zeros_like(matrix)  # no free support vector
    inverse = invert(matrix)
    if inverse is None:
        return None
    size = np.abs(matrix).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
    return inverse if size * SINGULAR < 1.0 else None


def _distance_squared(problem: Problem, hull: IntArray, p: int) -> float:
    """Squared distance of point p to the hull of some others, by least squares."""
    if hull.size == 0:
        return np.inf if problem.fit_intercept else float(problem.K[p, p])
    matrix, v = _bordered(problem, hull), _columns(problem, hull, np.array([p]))[:, 0]
    weights = linalg.lstsq(matrix, v, check_finite=False)[0]
    return max(0.0, float(problem.K[p, p] - v @ weights))


def enclosing_radius_squared(
    K: FloatArray, *, tol: float = 1e-6, max_iter: int = 10_000
) -> float:
    """Squared radius of a ball that contains all samples, nearly the smallest.

    Maximises ``sum_i beta_i K_ii - beta' K beta`` over the simplex by steps towards the
    farthest point and away from the nearest point with weight. The result is never too
    small, and too large by at most ``tol``, relatively, unless ``max_iter`` is reached.
    """
    n, diagonal = K.shape[0], K.diagonal()
    beta = np.zeros(n)
    first = int(np.argmax(diagonal - 2.0 * K[0]))
    beta[first] = 1.0
    g, norm = K[:, first].copy(), float(K[first, first])
    best = np.inf
    for _ in range(max_iter):
        distance = diagonal - 2.0 * g + norm  # squared, to the centre
        far = int(np.argmax(distance))
        best = min(best, float(distance[far]))
        value = float(beta @ diagonal) - norm  # a lower bound of R^2
        if best - value <= tol * max(best, 1e-300):
            break
        held = np.flatnonzero(beta)
        near = int(held[np.argmin(distance[held])])
        toward = distance[far] - value >= value - distance[near]
        p = far if toward else near
        limit = 1.0 if toward else -beta[near] / max(1.0 - beta[near], 1e-300)
        # beta + t (e_p - beta): the value is concave in t, with slope and curvature
        slope, curvature = distance[p] - value, 2.0 * distance[p]
        t = slope / curvature if curvature > 0.0 else 0.0
        t = min(t, limit) if toward else max(t, limit)
        if t == 0.0:
            break
        beta *= 1.0 - t
        beta[p] = 0.0 if t == limit and not toward else beta[p] + t
        norm = (1.0 - t) ** 2 * norm + 2.0 * t * (1.0 - t) * g[p] + t * t * K[p, p]
        g = (1.0 - t) * g + t * K[:, p]
    return best


def solve_l2_svm(problem: Problem) -> tuple[Problem, Solution]:
    """Solve the SVM with squared hinge loss, a hard margin with K + diag(1 / C).

    ``min 1/2 ||w||^2 + 1/2 sum_i C_i xi_i^2``; the slacks are alpha_i / C_i. Left-out
    values are those of the hard margin, because 1 / C_i is added to K_ii only.
    """
    K = problem.K + np.diag(1.0 / np.maximum(problem.C, 1e-300))
    # w = 0 costs sum(C) / 2, so C_i xi_i^2 <= sum(C) and alpha_i <= sqrt(C_i sum(C)):
    # a bound of twice that cannot be active.
    bound = 2.0 * np.sqrt(problem.C) * np.sqrt(problem.C.sum())
    hard = Problem(K, problem.y, bound, problem.fit_intercept)
    return hard, solve_at_unit_scale(hard)
