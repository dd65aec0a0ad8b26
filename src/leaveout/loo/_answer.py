# SPDX-License-Identifier: BSD-3-Clause
"""Left-out values as they come in, and those that the full solution tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._result import NEGATIVE_MARGIN, SINGLETON, ZERO_ALPHA
from leaveout.solve import Solution, intercept_range_without


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


def settle_without_solving(
    problem: Problem, solution: Solution, answer: Answer, labels_only: bool
) -> IntArray:
    """Answer what the full solution tells; return the other samples."""
    y, f = problem.y, solution.decision_values
    open_ = solution.beta != 0.0
    if problem.fit_intercept and not has_room(problem, solution):
        # Without a free support vector b is an interval, and grows as r leaves.
        idle = np.flatnonzero(~open_)
        answer.store(idle, f[idle], *intercept_range_without(problem, solution, idle))
    if labels_only:
        settled = open_ & (y * f < -1e-10)
        answer.settled_by[settled] = NEGATIVE_MARGIN
        open_ &= ~settled
    if problem.fit_intercept:
        for sign in (-1.0, 1.0):
            members = np.flatnonzero((y == sign) & (problem.C > 0.0))
            if members.size == 1:
                # One class is left: w = 0 and b is beyond its label.
                answer.settled_by[members] = SINGLETON
                answer.lower[members] = -np.inf if sign > 0 else 1.0
                answer.upper[members] = -1.0 if sign > 0 else np.inf
                open_[members] = False
    return np.flatnonzero(open_)


def has_room(problem: Problem, solution: Solution) -> bool:
    """Whether some support vector is free by more than rounding."""
    alpha, C = solution.alpha[solution.free], problem.C[solution.free]
    return bool(np.any(np.minimum(alpha, C - alpha) > 1e-9 * C))
