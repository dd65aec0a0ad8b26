# SPDX-License-Identifier: BSD-3-Clause
"""Method "walk": every leave-one-out value from one factorisation and n short walks.

Leaving samples out is the end of a path: lower their alpha from the optimal values to
zero while all others stay optimal. The path is piecewise linear, with few events
(docs/method/walk).
"""

from __future__ import annotations

from functools import cache, cached_property
from math import fsum
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._anti_learning import is_anti_learning
from leaveout.engine._certificate import has_room, intercept_range_without
from leaveout.engine._problem import (
    FIRST_SEGMENT,
    NEGATIVE_MARGIN,
    REFIT,
    SINGLETON,
    WALK,
    Answer,
    Ends,
    Folds,
    LooIntervals,
    Problem,
    Solution,
    middle,
)
from leaveout.engine._solve import refit_groups, solve_svc, solve_without
from leaveout.engine._tableau import Tableau, build_tableau
from leaveout.engine._trust import ScaledProblem, scale_problem, with_rounding_checks
from leaveout.engine._walk_fast import Status, run_walks, work_shape
from leaveout.kernel._symmetric import first_copies
from leaveout.run._parallel import map_chunks, map_parts, shrinking_parts

# Room for the pivots of one walk. Most walks need fewer than ten; a walk that needs
# more is run again with more room.
CAPACITIES = (32, 512)
# Up to this many points on the margin a column costs less to make anew, in the walk
# that needs it, than to keep; beyond, columns are made together by BLAS-3.
ON_DEMAND = 16
# Walks meet mostly samples next to the margin: columns of this many of them, and of one
# more for every fourth member of M, are made beforehand.
N_NEAR = 10
# Refits that start from one another; the number of threads does not change the results.
REFITS_IN_A_ROW = 32
# The pivots of a walk grow with its group; beyond this many support vectors a
# warm-started refit is cheaper.
LARGEST_WALK = 48
# Values that rounding may have moved further than this are not certified.
ACCURACY = 1e-3
# The middle of a shorter interval of b is as good as its ends.
SHORT = 1e-6


def loo_walk(
    problem: Problem,
    *,
    solution: Solution | None = None,
    labels_only: bool = False,
    n_threads: int = 1,
) -> LooIntervals:
    """Leave every sample out of one binary machine, exactly.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution, optional
        Its optimum, if it is at hand.
    labels_only : bool, default=False
        Stop as soon as the sign is known.
    n_threads : int, default=1
        Threads over samples.

    Returns
    -------
    LooIntervals
        Values with the interval of the intercept.
    """
    started = perf_counter()
    if solution is None:
        solution = solve_svc(problem)
    fitted = perf_counter()
    answer = Answer.of_full_solution(solution)
    rows = settle_from_solution(problem, solution, answer, labels_only)
    copies = first_copies(problem.K, problem.y, problem.C, rows)
    leaders = rows[copies == rows]
    walker = Walker(problem, solution, labels_only=labels_only, n_threads=n_threads)
    ends = walker.leave_out(Folds.singles(leaders))
    answer.store(leaders, ends.values, ends.down, ends.up)
    answer.certified[leaders] = ends.certified
    answer.settled_by[leaders] = ends.settled_by
    answer.copy(rows, copies)
    walker.counts["shared"] = float(rows.size - leaders.size)
    walker.counts["fit_seconds"] = fitted - started
    walker.counts["seconds"] = perf_counter() - started
    values = middle(answer.lower, answer.upper)
    return LooIntervals(
        values, answer.lower, answer.upper, answer.certified, answer.settled_by,
        walker.counts, is_anti_learning(problem, solution, values),
    )  # fmt: skip


class Walker:
    """Leaves groups of samples out of one machine, each group by one walk.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum.
    labels_only : bool, default=False
        Stop a walk of a single sample when its label is known.
    n_threads : int, default=1
        Threads over groups.
    everywhere : bool, default=False
        Whether f is wanted for all samples, not only for those left out.
    """

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        *,
        labels_only: bool = False,
        n_threads: int = 1,
        everywhere: bool = False,
    ) -> None:
        self.problem = problem
        self.solution = solution
        self.labels_only = labels_only
        self.n_threads = n_threads
        self.everywhere = everywhere
        self.counts: dict[str, float] = dict.fromkeys(
            ("pivots", "walks", "columns", "shared", "refits"), 0.0
        )

    @cached_property
    def columns(self) -> _Columns:
        """The columns of the tableau made so far."""
        return _Columns(self.problem, self.solution, self.n_threads)

    @cached_property
    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Random signs z, and K @ z."""
        signs = _signs(self.problem.n_samples)
        # Half of K is enough: the product takes as long as reading it.
        return signs, blas.dsymv(1.0, self.problem.K.T, signs)

    def leave_out(self, groups: Folds) -> Ends:
        """Leave each of the groups out; failed walks are solved anew, and counted."""
        n = len(groups)
        ends = Ends(
            np.empty(groups.members.size), np.zeros(n), np.zeros(n),
            np.full(n, self.solution.converged), np.full(n, WALK, dtype=np.int8),
            np.empty((n, self.problem.n_samples if self.everywhere else 0)),
        )  # fmt: skip
        failed = self._walk_all(groups, ends)

        def refit(part: slice) -> None:
            near: dict[float, Solution] = {}
            for k in failed[part]:
                # Without one sample or another of a class: nearly the same optimum.
                side = float(self.problem.y[groups[k]].sum())
                start = near.get(side, self.solution)
                near[side] = self._refit(groups, k, ends, start)

        map_chunks(refit, len(failed), self.n_threads, REFITS_IN_A_ROW)
        self.counts["refits"] += len(failed)
        return ends

    def _walk_all(self, groups: Folds, ends: Ends) -> list[int]:
        """Run the walks in rounds; return the groups whose walk failed.

        A walk that needs a tableau column nobody has made yet is run again in the next
        round, when the missing columns of all walks are made by one product.
        """
        open_ = np.arange(len(groups))
        if open_.size == 0:
            return []
        try:
            columns = self.columns
        except np.linalg.LinAlgError:
            return open_.tolist()
        failed: list[int] = []
        if columns.tableau is not None and not columns.on_demand:
            columns.add(groups.members)
            columns.add(self._next_to_margin(open_.size))
        # From an empty margin a long walk builds up M point by point, as it happens if
        # gamma is so large that K is nearly diagonal; a refit does it in one go.
        capacities = iter(CAPACITIES if columns.members.size else CAPACITIES[:1])
        capacity = next(capacities)
        while open_.size:
            out = self._run_round(groups.take(open_), capacity)
            done = (out.status == Status.DONE) | (out.status == Status.STOPPED)
            self._collect(groups, open_, out, done, ends)
            broken = (out.status == Status.FAILED) | (out.status == Status.STUCK)
            failed.extend(open_[broken].tolist())
            waiting = out.status == Status.NEEDS_COLUMN
            columns.add(out.missing[waiting])
            long = out.status == Status.TOO_LONG
            if long.any() and not waiting.any():
                larger = next(capacities, None)
                if larger is None:
                    failed.extend(open_[long].tolist())
                    long[:] = False
                else:
                    capacity = larger
            open_ = open_[waiting | long]
        self.counts["columns"] = columns.n_columns
        return failed

    def _next_to_margin(self, most: int) -> IntArray:
        """Return samples with alpha = 0 that walks are likely to meet."""
        idle = np.flatnonzero((self.solution.beta == 0.0) & (self.problem.C > 0.0))
        k = min(most, N_NEAR + self.columns.members.size // 4)
        margins = (self.problem.y * self.solution.decision_values)[idle]
        return idle[np.argsort(margins, kind="stable")[:k]]

    def _run_round(self, groups: Folds, capacity: int) -> _Round:
        """Run the walks of some groups over the threads."""
        problem, solution, columns = self.problem, self.solution, self.columns
        factors, probe = columns.factors, self.probe
        n, K = problem.n_samples, problem.K
        scale = float(K.diagonal().mean()) or 1.0
        value = np.empty(groups.members.size)
        everywhere = np.empty((len(groups) if self.everywhere else 0, n))
        down, up = np.empty((2, len(groups)))
        status = np.empty(len(groups), dtype=np.int8)
        pivots, missing = np.empty((2, len(groups)), dtype=np.intp)

        # One workspace a thread: fresh memory for every part would cost as much again.
        idle = [
            (np.empty(work_shape(n, capacity)), np.empty(capacity + 2 * n, np.intp))
            for _ in range(self.n_threads)
        ]

        def run(part: slice) -> None:
            work = idle.pop()
            first, last = groups.begin[part.start], groups.begin[part.stop]
            run_walks(
                K, problem.y, problem.C,
                solution.beta, solution.decision_values, solution.state,
                problem.fit_intercept, columns.rows, columns.where, *factors, *probe,
                scale, 1e-13 * scale,
                groups.members[first:last],
                groups.begin[part.start : part.stop + 1] - first,
                self.labels_only, 8 * capacity, *work, everywhere[part],
                value[first:last], down[part], up[part],
                status[part], pivots[part], missing[part],
            )  # fmt: skip
            idle.append(work)

        parts = shrinking_parts(len(groups), self.n_threads, most=256, least=8)
        map_parts(run, parts, self.n_threads)
        return _Round(value, down, up, status, pivots, missing, everywhere)

    def _collect(
        self, groups: Folds, which: IntArray, out: _Round, done: BoolArray, ends: Ends
    ) -> None:
        """Take over the answers of the walks that are done."""
        here = groups.take(which).entries(np.flatnonzero(done))
        ends.values[groups.entries(which[done])] = out.value[here]
        ends.down[which[done]] = out.down[done]
        ends.up[which[done]] = out.up[done]
        if self.everywhere:
            ends.everywhere[which[done]] = out.everywhere[done]
        first = out.pivots[done] == 0
        ends.settled_by[which[done]] = np.where(first, FIRST_SEGMENT, WALK)
        self.counts["pivots"] += int(out.pivots[done].sum())
        self.counts["walks"] += int(done.sum())

    def _refit(self, groups: Folds, k: int, ends: Ends, start: Solution) -> Solution:
        """Solve the problem without a group whose walk failed or became too long."""
        rows = groups[k]
        left_out = solve_without(self.problem, start, rows)
        ends.values[groups.entries(np.array([k]))] = left_out.decision_values[rows]
        low, high = left_out.intercept_interval
        ends.down[k], ends.up[k] = low - left_out.intercept, high - left_out.intercept
        ends.settled_by[k] = REFIT
        ends.certified[k] = left_out.converged
        if self.everywhere:
            ends.everywhere[k] = left_out.decision_values
        return left_out


class _Round(NamedTuple):
    """What the kernel says of a number of walks."""

    value: FloatArray
    down: FloatArray
    up: FloatArray
    status: np.ndarray
    pivots: IntArray
    missing: IntArray
    everywhere: FloatArray


class _Columns:
    """The columns of the tableau made so far, in rows of one array."""

    def __init__(
        self, problem: Problem, solution: Solution, n_threads: int = 1
    ) -> None:
        self.n_threads = n_threads
        n = problem.n_samples
        self.where = np.full(n, -1, dtype=np.intp)
        self.rows = np.empty((n, n))  # pages are only taken when written
        self.n_columns = 0
        self.members = np.flatnonzero(solution.free)
        self.tableau: Tableau | None = None
        self.on_demand = 0 < self.members.size <= ON_DEMAND
        if self.members.size:
            self.tableau = build_tableau(problem, solution, n_threads)
        elif not problem.fit_intercept:
            # Nobody on the margin, no bias: the tableau is the kernel itself.
            self.rows, self.where = problem.K, np.arange(n, dtype=np.intp)

    @cached_property
    def factors(self) -> tuple[np.ndarray, ...]:
        """What the kernel needs to make columns itself; empty if it is not to."""
        if self.tableau is None or not self.on_demand:
            none = np.empty((0, self.where.size))
            return self.members, none, np.empty(0), none, none
        t = self.tableau
        V, Bm = np.ascontiguousarray(t.V.T), np.ascontiguousarray(t.Bm.T)
        return self.members, V, t.weights, Bm, t.A

    def add(self, indices: IntArray) -> None:
        """Make the columns of some samples."""
        wanted = np.zeros(self.where.size, dtype=bool)
        wanted[indices] = True
        wanted &= self.where < 0
        # Members first: the others are then next to each other, and made by products.
        members = self.members[wanted[self.members]]
        wanted[members] = False
        indices = np.concatenate([members, np.flatnonzero(wanted)])
        if self.tableau is None or indices.size == 0:
            return
        start, stop = self.n_columns, self.n_columns + indices.size
        self.tableau.write_columns(indices, self.rows[start:stop], self.n_threads)
        self.where[indices] = np.arange(start, stop)
        self.n_columns = stop


@cache
def _signs(n: int) -> FloatArray:
    """Random signs for the check at the end of a walk; the same ones every time."""
    return np.random.default_rng(n).choice([-1.0, 1.0], size=n)


def settle_from_solution(
    problem: Problem, solution: Solution, answer: Answer, labels_only: bool
) -> IntArray:
    """Answer what the full solution tells; return the other samples."""
    y, f = problem.y, solution.decision_values
    open_ = solution.beta != 0.0
    if problem.fit_intercept and not has_room(problem.C, solution.alpha, solution.free):
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


@with_rounding_checks
def loo_groups(
    problem: Problem,
    codes: IntArray,
    *,
    solution: Solution | None = None,
    method: str = "walk",
    factors: FloatArray | None = None,
    n_threads: int = 1,
) -> LooIntervals:
    """Leave every group out of one binary machine, exactly.

    Parameters
    ----------
    problem : Problem
        The machine. A sample with C = 0 is never trained on, but is answered with its
        group.
    codes : ndarray of shape (n,)
        Group of each sample, 0 to n_groups - 1; every group leaves samples behind.
    solution : Solution, optional
        The optimum, if it is at hand.
    method : {"walk", "refit"}, default="walk"
        "walk" fades all samples of a group out together, in one walk; groups of many
        support vectors are refitted, which is then cheaper, and counted.
    factors : ndarray of shape (n_groups, 2), optional
        Factors of the boxes of the negative and of the positive samples while a group
        is out. Every group is then refitted.
    n_threads : int, default=1
        Threads over groups.

    Returns
    -------
    LooIntervals
        Values with the interval of the intercept.
    """
    started = perf_counter()
    if solution is None:
        solution = solve_svc(problem)
    order = np.argsort(codes, kind="stable")
    groups = Folds.of(np.split(order, np.flatnonzero(np.diff(codes[order])) + 1))
    can_walk = method == "walk" and factors is None
    walked = np.array([can_walk and _is_walk(problem, solution, g) for g in groups])
    walker = Walker(problem, solution, n_threads=n_threads)
    some, others = (groups.take(np.flatnonzero(w)) for w in (walked, ~walked))
    kept = None if factors is None else factors[~walked]
    refitted = refit_groups(
        problem, solution, others, factors=kept, n_threads=n_threads
    )
    n = problem.n_samples
    lower, upper = np.empty((2, n))
    certified, settled_by = np.empty(n, dtype=bool), np.empty(n, dtype=np.int8)
    for part, ends in ((some, walker.leave_out(some)), (others, refitted)):
        sizes = np.diff(part.begin)
        lower[part.members] = ends.values + np.repeat(ends.down, sizes)
        upper[part.members] = ends.values + np.repeat(ends.up, sizes)
        certified[part.members] = np.repeat(ends.certified, sizes)
        settled_by[part.members] = np.repeat(ends.settled_by, sizes)
    walker.counts["refits"] += len(others)
    walker.counts["seconds"] = perf_counter() - started
    values = middle(lower, upper)
    return LooIntervals(
        values, lower, upper, certified, settled_by, walker.counts,
        is_anti_learning(problem, solution, values, groups=codes, factors=factors),
    )  # fmt: skip


def _is_walk(problem: Problem, solution: Solution, rows: IntArray) -> bool:
    """Whether a group is small enough to walk, and leaves both classes behind."""
    if np.count_nonzero(solution.beta[rows]) > LARGEST_WALK:
        return False
    left = problem.C > 0.0
    left[rows] = False
    return not problem.fit_intercept or np.unique(problem.y[left]).size == 2


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
    >>> from leaveout.engine._problem import Problem
    >>> from leaveout.engine._solve import solve_svc
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
                ends = leave_out(Folds.singles(rows[some]))
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

    def _refit(self, groups: Folds) -> Ends:
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
    def _footing(self) -> ScaledProblem:
        return scale_problem(self.problem, self.solution)

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
