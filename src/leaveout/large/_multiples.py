# SPDX-License-Identifier: BSD-3-Clause
"""Small C: all solutions are multiples of one.

As long as the lighter class has all its alpha at their bounds, alpha / C does not
depend on C. With s the sign of the heavier class (0 if both have the same weight)::

    w(C) = rho w(C_A),   b(C) = s + rho (b(C_A) - s),   rho = C / C_A

up to C_1, where a row of the lighter class reaches the margin (docs/method/large).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leaveout._typing import FloatArray
from leaveout.engine._certificate import intercept_interval
from leaveout.engine._certificate_fast import measure
from leaveout.engine._problem import Problem, middle
from leaveout.large._window import LinearOptimum, LinearProblems, WindowProblem


def scale_to(problems: LinearProblems, C: FloatArray) -> LinearProblems:
    """Return the multiples of the problems' points at other values of C."""
    ratio, s = C / problems.C, problems.heavy_sign
    W, b = ratio[:, None] * problems.W, s + ratio * (problems.b - s)
    return replace(problems, C=C, W=W, b=b)


def largest_multiple(problems: LinearProblems, highest: FloatArray) -> FloatArray:
    """Return C_1, up to which the solutions are multiples of these, (L,).

    ``highest`` (L, 2) are the largest h of either class. In the lighter class
    h = -1 + rho (1 + h_A); with equal weights h = rho h_A in both.
    """
    s = problems.heavy_sign
    light = np.where(s > 0.0, highest[:, 1], highest[:, 0])
    reach = np.where(s == 0.0, highest.sum(axis=1), 1.0 + light)
    return problems.C * 2.0 / np.maximum(reach, 1e-300)


def holds_below(head: LinearOptimum, problem: LinearProblems) -> bool:
    """Whether C_1 is not below the C of a head, over all rows."""
    w, b = head.point[:-1] - head.window.origin[:-1], head.point[-1]
    moved = float(np.linalg.norm(w)) * head.radius + abs(b - head.window.origin[-1])
    limit = largest_multiple(problem, head.highest[None] + moved + head.residual)
    return bool(limit[0] >= problem.C[0])


def scale_window(window: WindowProblem, C: float, sign: float) -> WindowProblem:
    """Return the window of the multiple at a smaller C."""
    ratio = C / window.C
    # Rows outside approach b at most in proportion. With equal weights all rows are
    # inside, and 1 - h = 1 - ratio h_A.
    edges = ratio * window.edges + (1.0 - ratio if sign == 0.0 else 0.0)
    origin = ratio * window.origin
    origin[-1] += (1.0 - ratio) * sign
    return replace(window, C=C, edges=edges, origin=origin)


def scale_optimum(head: LinearOptimum, C: float, sign: float) -> LinearOptimum:
    """Return the optimum at a smaller C: alpha / C is the same."""
    window, solution = head.window, head.solution
    ratio = C / window.C
    scaled = scale_window(window, C, sign)
    problem = Problem(np.empty((0, 0)), window.y, window.weight)
    F = window.y - ratio * (solution.decision_values - solution.intercept)
    free = np.flatnonzero(solution.free)
    beta = solution.beta.copy()
    _, interval = intercept_interval(problem, beta, F, free)
    b = float(middle(*np.array(interval)))
    f = window.y - F + b
    *_, primal, gap = measure(problem.y, problem.offsets, problem.levels, beta, f, b)
    found = replace(
        solution, intercept=b, intercept_interval=interval, decision_values=f,
        objective=primal, duality_gap=gap / primal if primal > 0.0 else 0.0,
    )  # fmt: skip
    return LinearOptimum(scaled, found, head.radius, head.highest)
