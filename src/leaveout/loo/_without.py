# SPDX-License-Identifier: BSD-3-Clause
"""What a machine trained without one sample says of all the others."""

from __future__ import annotations

from functools import cached_property
from math import fsum

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._groups import Ends, Groups
from leaveout.loo._refit import refit_groups
from leaveout.loo._result import middle
from leaveout.loo._trust import Footing, find_footing
from leaveout.loo._walk import Walker
from leaveout.solve import Solution, intercept_range_without

# Values that rounding may have moved further than this are not certified.
ACCURACY = 1e-3
# The middle of a shorter interval of b is as good as its ends.
SHORT = 1e-6


class Without:
    """Decision values of all samples by one binary machine without one of them.

    They stand at the end of each walk; the value of the left-out sample itself is its
    leave-one-out value, the others are values on the training set that is left.

    Parameters
    ----------
    problem : Problem
        The machine. A sample with C = 0 is not trained on, but has a value.
    solution : Solution
        Its optimum.
    method : {"walk", "refit"}, default="walk"
        "refit" solves a problem for each sample, as kernels that are not positive
        semi-definite need it.
    n_threads : int, default=1
        Threads over samples.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.kernel import Problem
    >>> from leaveout.loo import Without
    >>> from leaveout.solve import solve_svc
    >>> x = np.array([-2.0, -1.0, 1.0, 4.0])
    >>> problem = Problem(np.outer(x, x), np.sign(x), np.full(4, 10.0))
    >>> without = Without(problem, solve_svc(problem))
    >>> without.values(np.array([0, 2])).round(3)
    array([[-2. , -1. ,  1. ,  4. ],
           [-1.4, -1. , -0.2,  1. ]])
    """

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        *,
        method: str = "walk",
        n_threads: int = 1,
    ) -> None:
        self.problem = problem
        self.solution = solution
        self.method = method
        self.n_threads = n_threads

    def values(self, rows: IntArray) -> FloatArray:
        """Return f of all n samples without each of some rows, (n_rows, n).

        The intercept is in the middle of its interval, as everywhere.
        """
        return self.answer(rows)[0]

    def answer(self, rows: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return the values, and for each row whether they are certified.

        They are if the optimality conditions were verified, rounding has left three
        digits or more, and b is in the middle of an interval only where that is one.
        """
        footing = self._footing
        problem, solution = footing.problem, footing.solution
        found = np.tile(self.solution.decision_values, (rows.size, 1))
        known = self.solution.converged and footing.rounding <= ACCURACY
        low, high = solution.intercept_interval
        known &= self._is_middle(
            solution.decision_values,
            low - solution.intercept,
            high - solution.intercept,
        )
        certified = np.full(rows.size, known)
        inside = problem.C[rows] > 0.0
        if not inside.any():
            return found, certified
        moving = inside & (solution.beta[rows] != 0.0)
        resting = np.flatnonzero(inside & ~moving)
        if problem.fit_intercept and resting.size:
            # w stays; b may have more room.
            room = intercept_range_without(problem, solution, rows[resting])
            full = np.tile(solution.decision_values, (resting.size, 1))
            found[resting] = self._settle(full, *room)
            certified[resting] &= self._are_middles(rows[resting], full, *room)
        walked = moving & self._can_walk[rows]
        for some, leave_out in (
            (walked, self._walker.leave_out),
            (moving & ~walked, self._refit),
        ):
            if some.any():
                ends = leave_out(Groups.singles(rows[some]))
                found[some] = self._settle(ends.everywhere, ends.down, ends.up)
                certified[some] &= ends.certified & self._are_middles(
                    rows[some], ends.everywhere, ends.down, ends.up
                )
        return found, certified

    def _are_middles(
        self, rows: IntArray, values: FloatArray, down: FloatArray, up: FloatArray
    ) -> BoolArray:
        """Whether b may be anywhere in its interval, without each of some rows."""
        wide = np.isfinite(up - down) & (up - down > SHORT)
        proved = ~wide
        for k in np.flatnonzero(wide):
            proved[k] = self._is_middle(values[k], down[k], up[k], rows[k])
        return proved

    def _is_middle(
        self, f: FloatArray, down: float, up: float, left_out: int | None = None
    ) -> bool:
        """Whether b may be anywhere between f + down and f + up.

        Boxes that balance up to rounding count as balanced; but unless they do to the
        last bit, one end of the interval is b, and no digit kept tells which.
        """
        if not up - down > SHORT or not np.isfinite(up - down):
            return True
        y, C = self.problem.y, self.problem.C
        bounded = y * (f + 0.5 * (down + up)) < 1.0
        if left_out is not None:
            bounded[left_out] = False
        return fsum(y[bounded] * C[bounded]) == 0.0

    def _refit(self, groups: Groups) -> Ends:
        return refit_groups(
            self._footing.problem,
            self._footing.solution,
            groups,
            n_threads=self.n_threads,
            everywhere=True,
        )

    def _settle(
        self, values: FloatArray, down: FloatArray, up: FloatArray
    ) -> FloatArray:
        """Move each row of values to the middle of its interval, at our scale."""
        if not self._footing.rescaled.magnified:
            return values + middle(down, up)[:, None]
        shrink = self._footing.shrink
        return middle(shrink(values + down[:, None]), shrink(values + up[:, None]))

    @cached_property
    def _footing(self) -> Footing:
        return find_footing(self.problem, self.solution)

    @cached_property
    def _can_walk(self) -> BoolArray:
        """Whether each sample leaves both classes behind (no walk ends at one)."""
        y, C = self.problem.y, self.problem.C
        can = np.full(y.shape[0], self.method != "refit")
        for sign in (-1.0, 1.0):
            members = np.flatnonzero((y == sign) & (C > 0.0))
            if members.size == 1 and self.problem.fit_intercept:
                can[members] = False
        return can

    @cached_property
    def _walker(self) -> Walker:
        return Walker(
            self._footing.problem,
            self._footing.solution,
            n_threads=self.n_threads,
            everywhere=True,
        )
