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
from leaveout.loo._answer import Answer, settle_without_solving
from leaveout.loo._anti_learning import is_anti_learning
from leaveout.loo._result import CERTIFICATE, NEGATIVE_MARGIN, MachineLoo, middle
from leaveout.solve import Solution, loo_interval_from_solution

# A margin, or an end of an interval, nearer to 0 than this has no sign.
ROUNDING = 1e-10


@dataclass
class Checked(Answer):
    """What the checks say of every sample.

    ``lower`` and ``upper`` are intervals of f(x_r), of which only the sign counts for
    negative margins and certificates; nothing is certified of a sample that is open.

    Parameters
    ----------
    lower, upper, certified, settled_by : ndarray of shape (n,)
        As in :class:`Answer`.
    problem, solution : Problem, Solution
        What was checked.
    open_rows : ndarray of int
        Samples that no check settles.
    """

    problem: Problem
    solution: Solution
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
    answer = Answer.of_full_solution(solution)
    open_rows = settle_without_solving(problem, solution, answer, labels_only=False)
    checked = Checked(
        **vars(answer), problem=problem, solution=solution, open_rows=open_rows
    )
    if rows is not None:
        checked.open_rows = np.intersect1d(checked.open_rows, rows)
    g = solution.decision_values - solution.intercept
    # The least favourable b: also an upper bound of every left-out margin.
    worst_b = np.where(problem.y > 0, *solution.intercept_interval)
    wrong = (problem.y * (g + worst_b))[checked.open_rows] < -ROUNDING
    found = checked.open_rows[wrong]
    checked.lower[found] = checked.upper[found] = (g + worst_b)[found]
    checked.settled_by[found] = NEGATIVE_MARGIN
    checked.open_rows = checked.open_rows[~wrong]
    _settle_by_interval(problem, solution, checked)
    checked.certified[checked.open_rows] = False
    return checked


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
