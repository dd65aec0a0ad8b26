# SPDX-License-Identifier: BSD-3-Clause
"""Left-out labels that follow from the full solution (Franc et al. 2008, Table 1).

As printed the checks can be wrong with an intercept; here is what holds
(docs/method/stopping):

1. alpha_r = 0: the machine stays; without a free support vector b may move.
2. h_r < 0 for some optimal b: an error for every optimal b without r.
3. In the place of ``2 alpha_r R^2 + xi_r < 1``: the interval of
   :func:`~leaveout.solve.loo_interval_from_solution` excludes zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._anti_learning import is_anti_learning
from leaveout.loo._result import (
    CERTIFICATE,
    NEGATIVE_MARGIN,
    SINGLETON,
    ZERO_ALPHA,
    MachineLoo,
    middle,
)
from leaveout.solve import (
    Solution,
    intercept_range_without,
    loo_interval_from_solution,
)

# A margin, or an end of an interval, nearer to 0 than this has no sign.
ROUNDING = 1e-10


@dataclass
class Checked:
    """What the checks say of every sample.

    Parameters
    ----------
    problem, solution : Problem, Solution
        What was checked.
    lower, upper : ndarray of shape (n,)
        Intervals of f(x_r); only their sign counts for negative margins and
        certificates.
    certified : ndarray of bool, shape (n,)
        Whether the full solution was optimal; False for samples that are open.
    settled_by : ndarray of int8, shape (n,)
        Which check it was.
    open_rows : ndarray of int
        Samples that no check settles.
    """

    problem: Problem
    solution: Solution
    lower: FloatArray
    upper: FloatArray
    certified: BoolArray
    settled_by: np.ndarray
    open_rows: IntArray

    def fill(
        self,
        rows: IntArray,
        lower: FloatArray,
        upper: FloatArray,
        certified: BoolArray,
        settled_by: np.ndarray,
    ) -> None:
        """Write the answers of samples that were open."""
        self.lower[rows], self.upper[rows] = lower, upper
        self.certified[rows], self.settled_by[rows] = certified, settled_by

    def result(self, counts: Mapping[str, float]) -> MachineLoo:
        """Return the answers with what they cost."""
        values = middle(self.lower, self.upper)
        return MachineLoo(
            values, self.lower, self.upper, self.certified, self.settled_by, counts,
            is_anti_learning(self.problem, self.solution, values),
        )  # fmt: skip


def check_left_out(
    problem: Problem, solution: Solution, rows: IntArray | None = None
) -> Checked:
    """Settle the samples whose left-out label the full solution tells.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum. From one that is optimal within some eps only, the answers are
        those of the paper's algorithm, but nothing is certified.
    rows : ndarray of int, optional
        Samples that are asked for; all if not given.

    Returns
    -------
    Checked
        With the samples, among those asked for, that are left.
    """
    y, n = problem.y, problem.n_samples
    g = solution.decision_values - solution.intercept
    checked = Checked(
        problem,
        solution,
        solution.decision_values.copy(),
        solution.decision_values.copy(),
        np.full(n, solution.converged),
        np.full(n, ZERO_ALPHA, dtype=np.int8),
        np.flatnonzero(solution.beta),
    )
    if rows is not None:
        checked.open_rows = np.intersect1d(checked.open_rows, rows)
    if problem.fit_intercept:
        alpha, C = solution.alpha[solution.free], problem.C[solution.free]
        if not np.any(np.minimum(alpha, C - alpha) > 1e-9 * C):
            idle = np.flatnonzero(solution.beta == 0.0)
            down, up = intercept_range_without(problem, solution, idle)
            checked.lower[idle] += down
            checked.upper[idle] += up
        _settle_singletons(problem, checked)
    # The least favourable b: also an upper bound of every left-out margin.
    worst_b = np.where(y > 0, *solution.intercept_interval)
    wrong = (y * (g + worst_b))[checked.open_rows] < -ROUNDING
    found = checked.open_rows[wrong]
    checked.lower[found] = checked.upper[found] = (g + worst_b)[found]
    checked.settled_by[found] = NEGATIVE_MARGIN
    checked.open_rows = checked.open_rows[~wrong]
    _settle_by_interval(problem, solution, checked)
    checked.certified[checked.open_rows] = False
    return checked


def _settle_singletons(problem: Problem, checked: Checked) -> None:
    """Without the only member of a class w = 0, and b is beyond the other label."""
    for sign in (-1.0, 1.0):
        members = np.flatnonzero((problem.y == sign) & (problem.C > 0.0))
        if members.size == 1:
            checked.settled_by[members] = SINGLETON
            checked.lower[members] = -np.inf if sign > 0 else 1.0
            checked.upper[members] = -1.0 if sign > 0 else np.inf
            checked.open_rows = np.setdiff1d(checked.open_rows, members)


def _settle_by_interval(problem: Problem, solution: Solution, checked: Checked) -> None:
    """Check 3, by the interval that is always valid."""
    left = []
    for r in checked.open_rows:
        low, high = loo_interval_from_solution(problem, solution, int(r))
        if low > ROUNDING or high < -ROUNDING:
            checked.lower[r], checked.upper[r] = low, high
            checked.settled_by[r] = CERTIFICATE
        else:
            left.append(r)
    checked.open_rows = np.array(left, dtype=np.intp)
