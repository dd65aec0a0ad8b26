# SPDX-License-Identifier: BSD-3-Clause
"""Every method at a scale that suits it, and nothing certified that rounding can undo.

A method works with fixed tolerances. Around each of them stands :func:`trusted`, which

- brings the machine to a scale where these mean what they say
  (:func:`~leaveout.solve.rescale`);
- closes boxes that nobody reaches. ``sum(alpha) = ||w||^2 + sum C xi`` lies between the
  optimal value D and 2 D, and leaving a sample out lowers D. So every coefficient of
  every left-out machine is at most ``2 sum(alpha)``: a larger box does not bind, and
  beside C = 1e12 a coefficient of 1 would look like 0;
- withdraws the certificate of values that rounding may have changed. f is a sum of
  terms of which none is larger than ``max K_ii * alpha_j``: in doubles it is known to
  some multiple of ``2^-52 max K_ii sum(alpha)`` and no better, whoever solves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from leaveout._typing import FloatArray
from leaveout.kernel import Problem
from leaveout.loo._result import MachineLoo, middle
from leaveout.solve import Rescaled, Solution, rescale, solve_svc

# A box this many times the sum of all alpha is never reached without a sample (2 is
# proved), nor are tolerances relative to it large beside a coefficient.
REACH = 4.0
# Errors against exact arithmetic, over 2^-52 max K_ii sum(alpha), are below 1 for four
# of five samples that have any, and reach some hundreds where points nearly coincide.
AMPLIFICATION = 1024.0
# Nothing is certified if values are not even known to two digits.
ACCURACY = 1e-2
# Below this a value counts as 0 anyway, and the sample as ambiguous.
TIE = 1e-10


def trusted(method: Callable[..., MachineLoo]) -> Callable[..., MachineLoo]:
    """Wrap a method for one binary machine; its signature stays."""

    @wraps(method)
    def run(
        problem: Problem, *, solution: Solution | None = None, **options: Any
    ) -> MachineLoo:
        if solution is None:
            solution = solve_svc(problem)
        rescaled = rescale(problem)
        solution = _solution_at_scale(rescaled, solution)
        closed = close_boxes(rescaled.problem, solution)
        found = method(closed, solution=solution, **options)
        rounding = rounding_of_values(closed, solution)
        found = withdraw(found, rounding, problem.fit_intercept)
        return _shrink(found, rescaled)

    return run


def close_boxes(problem: Problem, solution: Solution) -> Problem:
    """Return the problem with boxes no left-out machine can reach made smaller."""
    reach = REACH * float(solution.alpha.sum())
    if not reach > 0.0 or problem.C.max() <= reach or not solution.converged:
        return problem
    C = np.minimum(problem.C, reach)
    return Problem(problem.K, problem.y, C, problem.fit_intercept)


def rounding_of_values(problem: Problem, solution: Solution) -> float:
    """Return how far rounding may move a left-out value; far, without an optimum."""
    if not solution.converged:
        return np.inf
    top = float(problem.K.diagonal().max(initial=0.0))
    unit = 2.0**-52 * top * float(solution.alpha.sum())
    return AMPLIFICATION * unit


def withdraw(found: MachineLoo, rounding: float, fit_intercept: bool) -> MachineLoo:
    """Return the answers without the certificates that rounding may have spoilt.

    With an intercept f is of size 1, and what is below ``TIE`` counts as 0 and as
    ambiguous; without one f may be of any size. ``counts["rounding"]`` tells how far
    values are known, relative to max(1, |f|).
    """
    certified = found.certified
    if rounding > TIE or not fit_intercept:
        ends = np.minimum(np.abs(found.lower), np.abs(found.upper))
        clear = (ends > rounding) | (ends == 0.0)
        certified = certified & clear & (rounding <= ACCURACY)
    counts = {**found.counts, "rounding": rounding}
    return replace(found, certified=certified, counts=counts)


def _solution_at_scale(rescaled: Rescaled, solution: Solution) -> Solution:
    """Return the optimum of the rescaled problem."""
    if rescaled.magnified:
        # What must be magnified is lost in f = label + deviation: solve anew.
        return solve_svc(rescaled.problem)
    if rescaled.kernel:
        return replace(solution, beta=rescaled.coefficients(solution.beta))
    return solution


def _shrink(found: MachineLoo, rescaled: Rescaled) -> MachineLoo:
    """Return the answers at the scale of the original problem."""
    if not rescaled.magnified:
        return found
    lower: FloatArray = rescaled.shrink(found.lower)
    upper: FloatArray = rescaled.shrink(found.upper)
    return replace(found, values=middle(lower, upper), lower=lower, upper=upper)
