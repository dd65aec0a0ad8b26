# SPDX-License-Identifier: BSD-3-Clause
r"""Method "walk": every leave-one-out value from one factorisation and n short walks.

Leaving samples out is the end of a path: lower their alpha from the optimal values to
zero while all others stay optimal. The path is piecewise linear, with few events. All
walks share a principal-pivot tableau. With the bordered kernel ``[[0, 1'], [1, K]]``,
the basis B = {b} and M, and A the inverse on B, it is (docs/method/walk)::

    rows \ columns        j in M            j not in M
    i in M               A_ij              -Bm_ji           Bm = (1, K_.M) A
    i not in M           Bm_ij             S_ij = K_ij - (1, K_iM) A (1, K_jM)'

A comes from the Cholesky factor L of K_MM + c 11', which is positive definite even if
K_MM is singular; S and Bm do not depend on c. The row of b is never needed: the walk
follows f itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from math import fsum

import numpy as np
from scipy.linalg import LinAlgError, lapack

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import (
    cap_unreachable_bounds,
    intercept_range_without,
    is_any_free,
    rounding_bound,
)
from leaveout.engine._problem import (
    CERTIFIED,
    FIRST_SEGMENT,
    NEGATIVE_MARGIN,
    NOT_CONVERGED,
    SINGLETON,
    WALK,
    Folds,
    LooIntervals,
    Problem,
    Solution,
    middle,
)
from leaveout.engine._solve import refit_each, solve_svc, solve_without, store_refit
from leaveout.engine._tableau_fast import SLOTS_AT_ONCE, Tableau
from leaveout.engine._walk_fast import FOLDS_AT_ONCE, Status, run_walks
from leaveout.run._parallel import map_chunks

# Up to this many samples, all are slots of the tableau.
ALL_NEAR = 250
# A sample is near if it could move this many times as far as is usual: with 16, few
# walks are repeated (docs/method/walk).
NEAR_MOVES = 16.0
# Walks whose first segments tell what is usual.
PILOTS = 16
# With an empty margin, samples that are near because they come first on one side.
AT_THE_END = 4
# Rounds with more slots before the walks that still fail are refitted.
ROUNDS = 6
# Consecutive refits, each started from the one before. The number is fixed, so results
# do not depend on the number of threads.
REFITS_IN_A_ROW = 32
# For folds with more support vectors than this a warm-started refit is cheaper.
LARGEST_WALK = 48
# Values with a larger possible rounding error than this are not certified.
INFLUENCE_ACCURACY = 1e-3
# In a shorter interval of b, the middle is as good as the ends.
SHORT = 1e-6
LU = tuple[FloatArray, np.ndarray]


def loo_walk(
    problem: Problem,
    solution: Solution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
) -> LooIntervals:
    """Leave samples out of one binary SVM, exactly.

    Parameters
    ----------
    problem : Problem
        The SVM. A sample with C = 0 is not trained on, but gets a value.
    solution : Solution
        Its optimum.
    folds : Folds, optional
        What is left out together; every sample by itself if not given. No fold may hold
        all samples. With ``C_factors`` the folds with equal factors share a solution.
    labels_only : bool, default=False
        Stop as soon as the sign is known (single samples); ignored in a regression,
        whose values have no labels.
    n_threads : int, default=1
        Threads over folds.

    Returns
    -------
    LooIntervals
        One interval per member of the folds.
    """
    if folds is None:
        labels_only = labels_only and problem.epsilon is None
        return _leave_singles_out(problem, solution, labels_only, n_threads)
    if folds.C_factors is not None:
        return _leave_rebalanced_out(problem, solution, folds, n_threads)
    walker = Walker(problem, solution, n_threads=n_threads)
    walked = np.array(
        [_is_walkable(problem, solution, fold) for fold in folds], dtype=bool
    )
    some, others = np.flatnonzero(walked), np.flatnonzero(~walked)
    found = LooIntervals.empty(folds.members.size)
    found.write(folds.entries(some), walker.leave_out(folds.take(some)))
    refitted = refit_each(problem, solution, folds.take(others), n_threads=n_threads)
    found.write(folds.entries(others), refitted)
    walker.counts["refits"] += others.size
    return replace(found, counts=walker.counts)


def _leave_rebalanced_out(
    problem: Problem, solution: Solution, folds: Folds, n_threads: int
) -> LooIntervals:
    """Leave out folds that change the upper bounds of the other samples.

    Folds with equal factors walk from one solution at these bounds: those of the
    samples that are left out do not matter. A solution for one or two folds would cost
    more than their refits.
    """
    assert folds.C_factors is not None
    found = LooIntervals.empty(folds.members.size)
    counts: Counter[str] = Counter()
    factors, group = np.unique(folds.C_factors, axis=0, return_inverse=True)
    common = np.bincount(group.ravel()) > 2
    for j in np.flatnonzero(common):
        down, up = factors[j]
        own = replace(problem, C=problem.C * np.where(problem.y > 0.0, up, down))
        some = np.flatnonzero(group.ravel() == j)
        walked = loo_walk(
            own,
            solve_svc(own),
            replace(folds.take(some), C_factors=None),
            n_threads=n_threads,
        )
        found.write(folds.entries(some), walked)
        counts.update(walked.counts)
    others = np.flatnonzero(~common[group.ravel()])
    refitted = refit_each(problem, solution, folds.take(others), n_threads=n_threads)
    found.write(folds.entries(others), refitted)
    counts["refits"] += others.size
    return replace(found, counts=dict(counts))


def _leave_singles_out(
    problem: Problem, solution: Solution, labels_only: bool, n_threads: int
) -> LooIntervals:
    """Leave every sample out by itself; duplicates share one walk."""
    found = LooIntervals.from_solution(solution)
    rows = settle_from_solution(problem, solution, found, labels_only)
    copies = problem.first_copies(rows)
    leaders = rows if copies is rows else rows[copies == rows]
    walker = Walker(problem, solution, labels_only=labels_only, n_threads=n_threads)
    found.write(leaders, walker.leave_out(Folds.singles(leaders)))
    if copies is not rows:
        found.share_with_copies(rows, copies)
        walker.counts["shared"] = float(rows.size - leaders.size)
    at_bound = (solution.alpha >= problem.C) & (problem.C > 0.0)
    bounded = walker.reached_bounds or bool(at_bound.any())
    return replace(found, counts=walker.counts, same_if_larger=not bounded)


class Walker:
    """Leaves folds of samples out of one problem, each fold by one walk.

    With ``labels_only`` the walk of a single sample stops when its label is known; with
    ``changes`` the changes of beta and b are kept, too.
    """

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        *,
        labels_only: bool = False,
        n_threads: int = 1,
        changes: bool = False,
    ) -> None:
        self.problem, self.solution = problem, solution
        self.labels_only, self.changes = labels_only, changes
        self.n_threads = n_threads
        self._tableau: Tableau | None = None
        self.counts: dict[str, float] = dict.fromkeys(
            ("pivots", "walks", "slots", "repeated", "shared", "refits"), 0.0
        )

    @property
    def reached_bounds(self) -> bool:
        """Whether a beta may be at its bound where a fold is left out."""
        if self._tableau is None:
            return self.counts["refits"] > 0
        return self._tableau.reached_bounds or self.counts["refits"] > 0

    def _make_tableau(self, n_walks: int) -> Tableau:
        """Return the tableau of the full solution on the samples near a kink."""
        problem, solution = self.problem, self.solution
        f, beta, free = solution.decision_values, solution.beta, solution.free
        tableau = Tableau(
            problem.K, problem.y, problem.offsets, problem.levels, beta, f, free,
            random_signs(problem.n_samples), problem.fit_intercept,
        )  # fmt: skip
        others = np.flatnonzero(~free)
        if problem.n_samples > ALL_NEAR:
            others = others[_is_near(problem, solution, tableau)[others]]
        self._extend(tableau, others)
        if tableau.n_slots < problem.n_samples:
            tableau.sort_far(n_walks)
        return tableau

    def _extend(self, tableau: Tableau, rows: IntArray) -> None:
        """Give samples a place in the tableau."""
        tableau.add(rows)
        map_chunks(tableau.project, rows.size, self.n_threads, SLOTS_AT_ONCE)
        map_chunks(tableau.fill, rows.size, self.n_threads, SLOTS_AT_ONCE)
        tableau.finish()

    def leave_out(self, folds: Folds) -> LooIntervals:
        """Leave each fold out; folds whose walk fails are refitted and counted."""
        g, n = len(folds), self.problem.n_samples
        found = LooIntervals.empty(
            folds.members.size, WALK, (g, n + 1) if self.changes else None
        )
        failed = self._walk_all(folds, found)

        def refit(part: slice) -> None:
            near: dict[float, Solution] = {}
            for k in failed[part]:
                # Without one or another sample of a class the optimum is similar.
                side = float(self.problem.y[folds[k]].sum())
                start = near.get(side, self.solution)
                near[side] = solve_without(self.problem, start, folds[k])
                store_refit(found, folds, k, near[side], self.solution)

        map_chunks(refit, failed.size, self.n_threads, REFITS_IN_A_ROW)
        self.counts["refits"] += failed.size
        return found

    def _walk_all(self, folds: Folds, found: LooIntervals) -> IntArray:
        """Run the walks in rounds; return the folds whose walk failed.

        Samples that leave their range during a walk without having a slot get one, and
        that walk is run again.
        """
        open_, failed = np.arange(len(folds)), []
        if open_.size == 0:
            return open_
        try:
            tableau = self._tableau = self._tableau or self._make_tableau(open_.size)
        except LinAlgError:
            return open_
        for _ in range(ROUNDS):
            status, needed = self._run_round(tableau, folds, open_, found)
            failed.append(open_[status > Status.NOT_NEAR])
            open_ = open_[status == Status.NOT_NEAR]
            if open_.size == 0:
                break
            self.counts["repeated"] += open_.size
            self._extend(tableau, np.flatnonzero(needed))
        self.counts["slots"] = tableau.n_slots
        return np.concatenate([*failed, open_])

    def _run_round(
        self, tableau: Tableau, folds: Folds, which: IntArray, found: LooIntervals
    ) -> tuple[np.ndarray, np.ndarray]:
        """Run the walks of some folds over the threads and store those that end.

        Return the status of each and the samples that need a slot.
        """
        some = folds.take(which)
        g, n = which.size, self.problem.n_samples
        value, events = np.empty(some.members.size), np.empty(g, dtype=np.intp)
        down, up, shift = np.empty((3, g))
        status, needed = np.empty(g, dtype=np.int8), np.zeros(n, dtype=np.uint8)

        def run(part: slice) -> None:
            first, last = some.begin[part.start], some.begin[part.stop]
            begin = some.begin[part.start : part.stop + 1] - first
            changes = np.empty((0, 0))
            if found.changes is not None:
                changes = np.empty((part.stop - part.start, tableau.n_slots))
            run_walks(
                tableau, some.members[first:last], begin, self.labels_only,
                value[first:last], down[part], up[part], shift[part], status[part],
                events[part], needed, changes,
            )  # fmt: skip
            if found.changes is not None:
                kept = np.zeros((part.stop - part.start, n + 1))
                left_out = some.members[first:last]
                fold = np.repeat(np.arange(len(kept)), np.diff(begin))
                kept[fold, left_out] = -self.solution.beta[left_out]
                kept[:, tableau.rows] = changes
                kept[:, -1] = shift[part] + middle(down[part], up[part])
                found.changes[which[part]] = kept

        map_chunks(run, g, self.n_threads, FOLDS_AT_ONCE)
        self._collect(folds, which, some, (value, down, up, status, events), found)
        return status, needed

    def _collect(
        self,
        folds: Folds,
        which: IntArray,
        some: Folds,
        ends: tuple[FloatArray, FloatArray, FloatArray, np.ndarray, IntArray],
        found: LooIntervals,
    ) -> None:
        """Copy the values of the walks that are done."""
        value, down, up, status, events = ends
        done = (status <= Status.STOPPED).nonzero()[0]
        here, entries = some.entries(done), folds.entries(which[done])
        settled = np.where(events == 0, FIRST_SEGMENT, WALK).astype(np.int8)
        low, high = down, up
        if not some.are_single:
            low, high = np.repeat(down, some.sizes), np.repeat(up, some.sizes)
            settled = np.repeat(settled, some.sizes)
        found.lower[entries] = (value + low)[here]
        found.upper[entries] = (value + high)[here]
        found.settled_by[entries] = settled[here]
        reason = CERTIFIED if self.solution.converged else NOT_CONVERGED
        found.uncertified_by[entries] = reason
        self.counts["pivots"] += int(events[done].sum())
        self.counts["walks"] += done.size


def _is_near(problem: Problem, solution: Solution, tableau: Tableau) -> BoolArray:
    """Which samples are likely to reach a kink during a walk.

    The root mean square of the moves of f in the first segments of some walks is
    compared with the distance to the nearest kink.
    """
    f, moving = solution.decision_values, np.flatnonzero(solution.beta)
    count = min(moving.size, PILOTS if problem.n_samples < 1000 else 3 * PILOTS)
    pilots = moving[(np.arange(count) * moving.size) // max(count, 1)]
    moves = tableau.first_moves(pilots)
    size = np.sqrt((moves**2).mean(axis=0))
    reach = 0.5 * NEAR_MOVES * (size + size.mean())
    if problem.fit_intercept and tableau.n_free == 0:
        # b first moves to an end of its interval: distances from there, on either side.
        below, above = problem.bracket(solution.beta)
        near = np.zeros(f.shape[0], dtype=bool)
        for distance in (f - below, above - f):
            first = np.partition(distance, min(AT_THE_END, f.shape[0] - 1))
            near |= distance <= first[: AT_THE_END + 1].max()
            near |= distance <= first.min() + reach
        return near
    return np.abs(problem.kinks - f[:, None]).min(axis=1) <= reach


def random_signs(n: int) -> FloatArray:
    """Random signs for the check at the end of a walk, the same in every run."""
    return _many_signs(1 << n.bit_length())[:n]


@lru_cache(maxsize=8)
def _many_signs(n: int) -> FloatArray:
    return np.random.default_rng(n).choice([-1.0, 1.0], size=n)


def settle_from_solution(
    problem: Problem, solution: Solution, found: LooIntervals, labels_only: bool
) -> IntArray:
    """Write the values that follow from the full solution; return the other samples."""
    y, f = problem.y, solution.decision_values
    open_ = solution.beta != 0.0
    if problem.epsilon == 0.0:
        open_ |= problem.C > 0.0  # a beta of 0 may be free, and b move without it
    idle = (~open_).nonzero()[0]
    if idle.size and problem.fit_intercept and not is_any_free(problem, solution):
        # Without a free support vector b is an interval, which grows without r.
        down, up = intercept_range_without(problem, solution, idle)
        found.lower[idle], found.upper[idle] = f[idle] + down, f[idle] + up
    if labels_only:
        settled = open_ & (y * f < -1e-10)
        found.settled_by[settled] = NEGATIVE_MARGIN
        open_ &= ~settled
    open_[settle_singletons(problem, found)] = False
    return open_.nonzero()[0]


def settle_singletons(problem: Problem, found: LooIntervals) -> IntArray:
    """Write the values of samples that are alone in their class; return these samples.

    Without such a sample one class is left: w = 0, and b is its label or beyond.
    """
    alone = only_of_class(problem)
    if not alone.size:
        return alone
    positive = problem.y[alone] > 0
    found.settled_by[alone], found.uncertified_by[alone] = SINGLETON, CERTIFIED
    found.lower[alone] = np.where(positive, -np.inf, 1.0)
    found.upper[alone] = np.where(positive, -1.0, np.inf)
    return alone


def only_of_class(problem: Problem) -> IntArray:
    """Return the samples that are alone in their class.

    None without an intercept or in a regression: another sample determines b.
    """
    if not problem.fit_intercept or problem.epsilon is not None:
        return np.empty(0, dtype=np.intp)
    signs = np.sign(problem.y * problem.C)
    alone = [s for s in (-1.0, 1.0) if np.count_nonzero(signs == s) == 1]
    return np.isin(signs, alone).nonzero()[0] if alone else np.empty(0, dtype=np.intp)


def _is_walkable(problem: Problem, solution: Solution, rows: IntArray) -> bool:
    """Whether a group is small enough for a walk and leaves enough to train on."""
    if np.count_nonzero(solution.beta[rows]) > LARGEST_WALK:
        return False
    left = problem.C > 0.0
    left[rows] = False
    one_class_suffices = not problem.fit_intercept or problem.epsilon is not None
    return one_class_suffices or np.unique(problem.y[left]).size == 2


class Influence:
    """Decision values of all samples by one binary SVM without one of them.

    The value of the left-out sample is its leave-one-out value. ``method="refit"``
    solves a problem for each sample, which an indefinite kernel needs.
    """

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        *,
        method: str = "walk",
        n_threads: int = 1,
    ) -> None:
        self.problem = cap_unreachable_bounds(problem, solution)
        self.solution = solution
        self.method, self.n_threads = method, n_threads

    def values_without(self, rows: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return f of all samples without each of some rows, and which are certified.

        b is in the middle of its interval. A row is certified if its optimality
        conditions were verified and every b of the interval is optimal.
        """
        problem, solution = self.problem, self.solution
        f = solution.decision_values
        found = np.tile(f, (rows.size, 1))
        known = rounding_bound(problem, solution) <= INFLUENCE_ACCURACY
        low, high = solution.intercept_interval
        known &= self._all_b_optimal(f, high - low)
        certified = np.full(rows.size, known)
        inside = problem.C[rows] > 0.0
        moving = inside & (solution.beta[rows] != 0.0)
        resting = np.flatnonzero(inside & ~moving)
        if problem.fit_intercept and resting.size:
            # w does not change; the interval of b may grow.
            down, up = intercept_range_without(problem, solution, rows[resting])
            found[resting] = f + middle(down, up)[:, None]
            certified[resting] &= self._all_b_optimal_without(
                rows[resting], found[resting], up - down
            )
        walked = moving & ~np.isin(rows, only_of_class(problem))
        walked &= self.method != "refit"
        refit = partial(
            refit_each, problem, solution, n_threads=self.n_threads, changes=True
        )
        for some in (walked, moving & ~walked):
            if some.any():
                leave_out = self._walker.leave_out if some is walked else refit
                left = leave_out(Folds.singles(rows[some]))
                assert left.changes is not None
                beta, b = left.changes[:, :-1], left.changes[:, -1:]
                moved = np.flatnonzero(beta.any(axis=0))
                found[some] += beta[:, moved] @ problem.K[moved] + b
                certified[some] &= left.certified & self._all_b_optimal_without(
                    rows[some], found[some], left.upper - left.lower
                )
        return found, certified

    def _all_b_optimal_without(
        self, rows: IntArray, values: FloatArray, length: FloatArray
    ) -> BoolArray:
        """Whether every b of the interval is optimal without each of some rows."""
        proved = ~(np.isfinite(length) & (length > SHORT))
        for k in np.flatnonzero(~proved):
            proved[k] = self._all_b_optimal(values[k], length[k], rows[k])
        return proved

    def _all_b_optimal(
        self, f: FloatArray, length: float, left_out: int | None = None
    ) -> bool:
        """Whether every b of its interval is optimal; f is at the middle.

        Bounds C that balance up to rounding count as balanced. But unless they balance
        to the last bit, b is one end of the interval, and doubles cannot decide which.
        """
        if not length > SHORT or not np.isfinite(length):
            return True
        y, C = self.problem.y, self.problem.C
        bounded = y * f < 1.0
        if left_out is not None:
            bounded[left_out] = False
        return fsum(y[bounded] * C[bounded]) == 0.0

    @cached_property
    def _walker(self) -> Walker:
        return Walker(
            self.problem, self.solution, n_threads=self.n_threads, changes=True
        )


def factor_lu(matrix: FloatArray) -> LU:
    """Return LU factors with pivots; raise LinAlgError if the matrix is singular."""
    lu, pivots, info = lapack.dgetrf(matrix)
    if info != 0 or not np.isfinite(lu).all():
        raise LinAlgError("singular matrix")
    return lu, pivots


def solve_lu(factors: LU, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    """Solve with the factors of :func:`factor_lu`."""
    return lapack.dgetrs(*factors, right, trans=int(transposed))[0]


def invert(matrix: FloatArray) -> FloatArray | None:
    """Return the inverse, or None if the matrix is exactly singular."""
    try:
        inverse: FloatArray = np.linalg.inv(matrix).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return None
    return inverse if np.isfinite(inverse).all() else None
