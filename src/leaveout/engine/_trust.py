# SPDX-License-Identifier: BSD-3-Clause
"""Every method at a scale that suits it, and nothing certified that rounding can undo.

A method works with fixed tolerances. Around each of them stands :func:`trusted`, which

- brings the machine to a scale where these mean what they say
  (:func:`~leaveout.engine._certificate.rescale`);
- closes boxes that nobody reaches. ``sum(alpha) = ||w||^2 + sum C xi`` lies between the
  optimal value D and 2 D, and leaving a sample out lowers D. So every coefficient of
  every left-out machine is at most ``2 sum(alpha)``: a larger box does not bind, and
  beside C = 1e12 a coefficient of 1 would look like 0;
- withdraws the certificate of values that rounding may have changed. f is a sum of
  terms of which none is larger than ``max K_ii * alpha_j``: in doubles it is known to
  some multiple of ``2^-52 max K_ii sum(alpha)`` and no better, whoever solves it;
- asks the machine of the others about samples far larger than they are, and about
  groups with such samples: at that scale theirs is rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import Rescaled, rescale
from leaveout.engine._problem import REFIT, LooIntervals, Problem, Solution, middle
from leaveout.engine._solve import solve_svc

# A box this many times the sum of all alpha is never reached without a sample (2 is
# proved), nor are tolerances relative to it large beside a coefficient.
REACH = 4.0
# Errors against exact arithmetic, over 2^-52 max K_ii sum(alpha), are below 1 for four
# of five samples that have any, and reach some hundreds where points nearly coincide.
AMPLIFICATION = 1024.0
# Without several samples at once they are some times as large: what nearly coincides
# leaves together, and others stay that do.
SEVERAL = 8.0
# Points on or next to the margin whose squared distance is a smaller share of K_ii than
# NEAR, and yet not 0, can hardly be told apart: an optimum to 12 digits may then give
# another f elsewhere. Errors were NEAR_AMPLIFICATION times as large, and up to
# NEAR_ROUNDING where others have none.
NEAR, NEAR_AMPLIFICATION, NEAR_ROUNDING = 1e-9, 2.0**19, 1e-5
# A K_ii this many times as large as the next: without it the machine may be another.
GIANT = 2.0**10
# More than these do not leave at once, nor do they all lie outside.
FEW = 16
# Where it is not known, f at x_r is off by so much for each time that r is longer.
GIANT_ROUNDING = 6e-11
# Units of 2^-52 that f may be off however small it is.
ONE = 16.0
# Nothing is certified if values are not even known to two digits.
ACCURACY = 1e-2
# Below this a value counts as 0 anyway, and the sample as ambiguous.
TIE = 1e-10


@dataclass(frozen=True)
class ScaledProblem:
    """A machine at a scale that suits the tolerances, and how far it is known there.

    Parameters
    ----------
    problem, solution : Problem, Solution
        The machine, rescaled, without boxes out of reach, and its optimum.
    rounding : float
        How far rounding may move a left-out value.
    rescaled : Rescaled
        The way back.
    """

    problem: Problem
    solution: Solution
    rounding: float
    rescaled: Rescaled

    def shrink(self, ends: FloatArray) -> FloatArray:
        """Return an end of intervals of f at the scale of the original."""
        return self.rescaled.shrink(ends)

    def is_clear(self, lower: FloatArray, upper: FloatArray) -> BoolArray:
        """Whether rounding cannot have changed the sign of either end."""
        return clear_of_rounding(
            lower, upper, self.rounding, self.problem.fit_intercept
        )


def scale_problem(
    problem: Problem,
    solution: Solution,
    *,
    several: bool = False,
    growth: float = 1.0,
) -> ScaledProblem:
    """Bring a machine to a scale where its left-out values can be trusted.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum.
    several : bool, default=False
        Whether more than one sample is left out at a time.
    growth : float, default=1.0
        If not 1, boxes change by factors up to this while a sample is out. The optimal
        value is concave in the boxes: it grows no more than they do.
    """
    rescaled = rescale(problem, magnify=growth == 1.0)
    solution = _solution_at_scale(rescaled, solution)
    closed = rescaled.problem
    if growth == 1.0:
        closed = cap_unreachable_bounds(closed, solution)
    rounding = growth * rounding_of_values(closed, solution)
    rounding *= SEVERAL if several else 1.0
    return ScaledProblem(closed, solution, rounding, rescaled)


def with_rounding_checks(
    method: Callable[..., LooIntervals],
) -> Callable[..., LooIntervals]:
    """Wrap a method for one binary machine; its signature stays.

    What stands between the machine and the keywords says which groups are left out.
    """

    @wraps(method)
    def run(
        problem: Problem, *which: Any, solution: Solution | None = None, **options: Any
    ) -> LooIntervals:
        if solution is None:
            solution = solve_svc(problem)
        factors = options.get("factors")
        growth = 1.0 if factors is None else max(1.0, float(np.max(factors)))
        footing = scale_problem(problem, solution, several=bool(which), growth=growth)
        found = method(footing.problem, *which, solution=footing.solution, **options)
        found = _shrink(drop_unsafe_certificates(found, footing), footing)
        codes = which[0] if which else np.arange(problem.n_samples)
        return _ask_without_giants(problem, found, codes, factors)

    return run


def clear_of_rounding(
    lower: FloatArray, upper: FloatArray, rounding: Any, fit_intercept: bool
) -> BoolArray:
    """Whether rounding cannot have changed the sign of either end of intervals of f.

    With an intercept f is of size 1, and what is below ``TIE`` counts as 0 and as
    ambiguous; without one f may be of any size.
    """
    ends = np.minimum(np.abs(lower), np.abs(upper))
    clear = ((ends > rounding) | (ends == 0.0)) & (rounding <= ACCURACY)
    return clear | (fit_intercept & (rounding <= TIE))


def cap_unreachable_bounds(problem: Problem, solution: Solution) -> Problem:
    """Return the problem with boxes no left-out machine can reach made smaller."""
    reach = REACH * float(solution.alpha.sum())
    if not reach > 0.0 or problem.C.max() <= reach or not solution.converged:
        return problem
    C = np.minimum(problem.C, reach)
    return Problem(problem.K, problem.y, C, problem.fit_intercept)


def rounding_of_values(problem: Problem, solution: Solution) -> float:
    """Return how far rounding may move a left-out value; far, without an optimum."""
    top = float(problem.K.diagonal().max(initial=0.0))
    if not solution.converged:
        return np.inf
    rounding = rounding_of_sum(top, float(solution.alpha.sum()))
    margins = problem.y * solution.decision_values
    rows = np.flatnonzero((solution.beta != 0.0) | (np.abs(margins - 1.0) < 1e-2))
    if nearly_coincide(problem.K, rows):
        rounding = max(NEAR_AMPLIFICATION * rounding, NEAR_ROUNDING)
    return rounding


def nearly_coincide(K: FloatArray, rows: IntArray) -> bool:
    """Whether two of some points are nearly one, but not quite.

    Points that are have nearly the same product with any vector, here a random one:
    with points in its order, the pairs to look at are few.
    """
    diagonal = K.diagonal()[rows]
    largest = float(diagonal.max(initial=0.0))
    probe = np.random.default_rng(0).standard_normal(K.shape[0])
    products = K @ probe
    # |<phi_i - phi_j, v>| <= ||phi_i - phi_j|| ||v||, with twice the room it needs
    reach = 2.0 * np.sqrt(NEAR * largest) * np.sqrt(max(float(probe @ products), 0.0))
    order = np.argsort(products[rows])
    rows, diagonal, products = rows[order], diagonal[order], products[rows[order]]
    for shift in range(1, rows.size):
        first = np.flatnonzero(~(products[shift:] - products[:-shift] > reach))
        if first.size == 0:
            break
        i, j = rows[first], rows[first + shift]
        own = K[i, j]
        distances = (diagonal[first] - own) + (diagonal[first + shift] - own)
        zero, near = 4.0 * 2.0**-52 * largest, NEAR * largest
        if np.any((distances > zero) & (distances < near)):
            return True
    return False


def rounding_of_sum(largest: float, size: float) -> float:
    """Return how far rounding may move f, a sum of alpha_j times kernel values.

    ``largest`` is the largest of these, ``size`` the sum of alpha.
    """
    # f is kept as y - (y - f): its last digits are those of 1.
    return 2.0**-52 * (AMPLIFICATION * largest * size + ONE)


def intervals_at_new_rows(
    problem: Problem, solution: Solution, K: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return f at samples a machine was not trained on: both ends, and certificates.

    Parameters
    ----------
    problem, solution : Problem, Solution
        The machine and its optimum.
    K : ndarray of shape (m, n)
        Kernel values of these samples with those of the machine.
    """
    footing = scale_problem(problem, solution)
    found, magnified = footing.solution, footing.rescaled.magnified
    if footing.rescaled.kernel:
        K = np.ldexp(K, footing.rescaled.kernel)
    largest = float(np.abs(K).max(initial=0.0))
    rounding = max(footing.rounding, rounding_of_sum(largest, float(found.alpha.sum())))
    ends, values = np.array(found.intercept_interval), K @ found.beta
    if magnified and problem.fit_intercept:
        # Out there f may be far from a label where the machine was not: b tells which.
        ends, values = footing.shrink(ends), np.ldexp(values, -magnified)
        rounding, magnified = max(np.ldexp(rounding, -magnified), ONE * 2.0**-52), 0
    lower, upper = (values + b for b in ends)
    clear = clear_of_rounding(lower, upper, rounding, problem.fit_intercept)
    lower, upper = (np.ldexp(end, -magnified) for end in (lower, upper))
    return lower, upper, clear & found.converged


def _ask_without_giants(
    problem: Problem, found: LooIntervals, codes: IntArray, factors: FloatArray | None
) -> LooIntervals:
    """Return the answers, those of samples far larger than the rest made anew.

    Where it cannot be done other giants pull at a machine of two scales: what is off by
    rounding at the small samples is off by far more at the large ones. ``codes`` and
    ``factors`` are those of :func:`~leaveout.engine._walk.loo_groups`.
    """
    giants, rest = _split_by_size(problem)
    if giants.size == 0:
        return found
    lengths = np.sqrt(np.maximum(problem.K.diagonal(), 0.0))
    values, lower, upper = found.values.copy(), found.lower.copy(), found.upper.copy()
    certified, settled_by = found.certified.copy(), found.settled_by.copy()
    rounding = found.counts["rounding"]
    for code in np.unique(codes[giants]):
        leaving = codes == code
        rows, stay = rest[~leaving[rest]], giants[~leaving[giants]]
        asked = np.flatnonzero(leaving & found.certified)
        n_classes = np.unique(problem.y[rows]).size
        if asked.size == 0 or n_classes < 1 + problem.fit_intercept:
            continue
        C = problem.C[rows]
        if factors is not None:
            C = C * factors[code, (problem.y[rows] > 0).astype(np.intp)]
        ends = _ask_the_rest(problem, rows, C, stay, asked)
        if ends is not None:
            lower[asked], upper[asked], certified[asked] = ends
            values[asked] = middle(lower[asked], upper[asked])
            settled_by[asked] = REFIT
            continue
        longest = lengths[asked].max()
        with np.errstate(over="ignore", divide="ignore"):
            # |sum of beta_j K_rj| <= sum of C_j ||x_j|| ||x_r||, whatever beta is
            pull = 2.0 * (C @ lengths[rows]) * longest
            noise = float(min(GIANT_ROUNDING * longest / lengths[rows].max(), pull))
        certified[asked] &= clear_of_rounding(
            lower[asked], upper[asked], noise, problem.fit_intercept
        )
        rounding = max(rounding, noise)
    return replace(
        found, values=values, lower=lower, upper=upper, certified=certified,
        settled_by=settled_by, counts={**found.counts, "rounding": rounding},
    )  # fmt: skip


def _ask_the_rest(
    problem: Problem, rows: IntArray, C: FloatArray, stay: IntArray, asked: IntArray
) -> tuple[FloatArray, FloatArray, BoolArray] | None:
    """Return the values of a problem on some rows at others.

    See :func:`intervals_at_new_rows`.

    None unless all who ``stay`` lie outside of its margin: these do not change it.
    """
    K, y = problem.K, problem.y
    small = Problem(K[np.ix_(rows, rows)], y[rows], C, problem.fit_intercept)
    machine = solve_svc(small)
    low, high, clear = intervals_at_new_rows(small, machine, K[np.ix_(stay, rows)])
    outside = np.minimum(y[stay] * low, y[stay] * high) > 1.0 + ACCURACY
    if not np.all(clear & outside):
        return None
    return intervals_at_new_rows(small, machine, K[np.ix_(asked, rows)])


def _split_by_size(problem: Problem) -> tuple[IntArray, IntArray]:
    """Return a few samples far larger than the rest, if there are any, and the rest."""
    trained = np.flatnonzero(problem.C > 0.0)
    order = trained[np.argsort(-problem.K.diagonal()[trained], kind="stable")]
    sizes = problem.K.diagonal()[order]
    gaps = np.flatnonzero((sizes[:-1] / GIANT > sizes[1:]) & (sizes[1:] > 0.0))
    first = int(gaps[0]) + 1 if gaps.size else 0
    if first > min(FEW, order.size // 2):
        first = 0
    return order[:first], np.sort(order[first:])


def drop_unsafe_certificates(
    found: LooIntervals, footing: ScaledProblem
) -> LooIntervals:
    """Return the answers without the certificates that rounding may have spoilt.

    ``counts["rounding"]`` tells how far values are known, relative to max(1, |f|).
    """
    certified = found.certified & footing.is_clear(found.lower, found.upper)
    counts = {**found.counts, "rounding": footing.rounding}
    return replace(found, certified=certified, counts=counts)


def _solution_at_scale(rescaled: Rescaled, solution: Solution) -> Solution:
    """Return the optimum of the rescaled problem."""
    if rescaled.magnified:
        # What must be magnified is lost in f = label + deviation: solve anew.
        return solve_svc(rescaled.problem)
    if rescaled.kernel:
        return replace(solution, beta=rescaled.coefficients(solution.beta))
    return solution


def _shrink(found: LooIntervals, footing: ScaledProblem) -> LooIntervals:
    """Return the answers at the scale of the original problem."""
    if not footing.rescaled.magnified:
        return found
    lower, upper = footing.shrink(found.lower), footing.shrink(found.upper)
    return replace(found, values=middle(lower, upper), lower=lower, upper=upper)
