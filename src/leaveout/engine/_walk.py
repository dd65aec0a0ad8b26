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

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from math import fsum
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, blas, lapack

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import (
    cap_unreachable_bounds,
    has_room,
    intercept_range_without,
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
from leaveout.engine._solve import refit_each, solve_without, store_refit
from leaveout.engine._walk_fast import (
    Status,
    fill_factors,
    run_walks,
    work_shape,
    write_columns,
)
from leaveout.run._parallel import map_chunks, map_parts, shrinking_parts

# Pivots of one walk. Most need fewer than ten; a walk that needs more is run again.
CAPACITIES = (32, 512)
# Up to this many points on the margin, each walk recomputes the columns it needs, which
# costs less than storing them; with more, columns are computed together by BLAS-3.
ON_DEMAND = 16
# Columns computed in advance, of samples next to the margin; one more per four of M.
N_NEAR = 10
# Consecutive refits, each started from the one before. The number is fixed, so results
# do not depend on the number of threads.
REFITS_IN_A_ROW = 32
# For folds with more support vectors than this a warm-started refit is cheaper.
LARGEST_WALK = 48
# Values with a larger possible rounding error than this are not certified.
INFLUENCE_ACCURACY = 1e-3
# In a shorter interval of b, the middle is as good as the ends.
SHORT = 1e-6
# Samples worked on at a time: enough for BLAS-3, few enough for an even load.
BLOCK = 96
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
        all samples. With ``C_factors`` every fold is refitted.
    labels_only : bool, default=False
        Stop as soon as the sign is known (single samples).
    n_threads : int, default=1
        Threads over folds.

    Returns
    -------
    LooIntervals
        One interval per member of the folds.
    """
    if folds is None:
        return _leave_singles_out(problem, solution, labels_only, n_threads)
    walker = Walker(problem, solution, n_threads=n_threads)
    walked = np.array(
        [_is_walkable(problem, solution, fold) for fold in folds], dtype=bool
    )
    if folds.C_factors is not None:
        walked[:] = False
    some, others = np.flatnonzero(walked), np.flatnonzero(~walked)
    found = LooIntervals.empty(folds.members.size)
    found.write(folds.entries(some), walker.leave_out(folds.take(some)))
    refitted = refit_each(problem, solution, folds.take(others), n_threads=n_threads)
    found.write(folds.entries(others), refitted)
    walker.counts["refits"] += others.size
    return replace(found, counts=walker.counts)


def _leave_singles_out(
    problem: Problem, solution: Solution, labels_only: bool, n_threads: int
) -> LooIntervals:
    """Leave every sample out by itself; duplicates share one walk."""
    found = LooIntervals.from_solution(solution)
    rows = settle_from_solution(problem, solution, found, labels_only)
    copies = problem.first_copies(rows)
    leaders = rows[copies == rows]
    walker = Walker(problem, solution, labels_only=labels_only, n_threads=n_threads)
    found.write(leaders, walker.leave_out(Folds.singles(leaders)))
    found.share_with_copies(rows, copies)
    walker.counts["shared"] = float(rows.size - leaders.size)
    return replace(found, counts=walker.counts)


class Walker:
    """Leaves groups of samples out of one problem, each group by one walk.

    With ``labels_only`` the walk of a single sample stops when its label is known; with
    ``everywhere`` f is computed for all samples, not only for those left out.
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
        self.problem, self.solution = problem, solution
        self.labels_only, self.everywhere = labels_only, everywhere
        self.n_threads = n_threads
        self.counts: dict[str, float] = dict.fromkeys(
            ("pivots", "walks", "columns", "shared", "refits"), 0.0
        )

    @cached_property
    def columns(self) -> _Columns:
        """The columns of the tableau computed so far."""
        return _Columns(self.problem, self.solution, self.n_threads)

    @cached_property
    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Random signs z, and K @ z."""
        signs = _signs(self.problem.n_samples)
        # Half of K is enough, and reading K is what takes the time.
        return signs, blas.dsymv(1.0, self.problem.K.T, signs)

    def leave_out(self, folds: Folds) -> LooIntervals:
        """Leave each fold out; folds whose walk fails are refitted and counted."""
        g, n = len(folds), self.problem.n_samples
        found = LooIntervals.empty(
            folds.members.size, WALK, (g, n) if self.everywhere else None
        )
        failed = self._walk_all(folds, found)

        def refit(part: slice) -> None:
            near: dict[float, Solution] = {}
            for k in failed[part]:
                # Without one or another sample of a class the optimum is similar.
                side = float(self.problem.y[folds[k]].sum())
                start = near.get(side, self.solution)
                near[side] = solve_without(self.problem, start, folds[k])
                store_refit(found, folds, k, near[side])

        map_chunks(refit, len(failed), self.n_threads, REFITS_IN_A_ROW)
        self.counts["refits"] += len(failed)
        return found

    def _walk_all(self, groups: Folds, found: LooIntervals) -> list[int]:
        """Run the walks in rounds; return the folds whose walk failed.

        A walk that needs a missing column of the tableau is run again in the next
        round, after the missing columns of all walks were computed by one product.
        """
        open_ = np.arange(len(groups))
        if open_.size == 0:
            return []
        try:
            columns = self.columns
        except LinAlgError:
            return open_.tolist()
        failed: list[int] = []
        if columns.tableau is not None and not columns.on_demand:
            columns.add(groups.members)
            columns.add(self._next_to_margin(open_.size))
        # From an empty margin a long walk adds to M one by one; refits are faster.
        capacities = iter(CAPACITIES if columns.members.size else CAPACITIES[:1])
        capacity = next(capacities)
        while open_.size:
            out = self._run_round(groups.take(open_), capacity)
            self._collect(groups, open_, out, found)
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

        # One workspace per thread: allocating it for each part would double the time.
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
        self, folds: Folds, which: IntArray, out: _Round, found: LooIntervals
    ) -> None:
        """Copy the values of the walks that are done."""
        done = (out.status == Status.DONE) | (out.status == Status.STOPPED)
        here = folds.take(which).entries(np.flatnonzero(done))
        entries, sizes = folds.entries(which[done]), folds.sizes[which[done]]
        down, up = out.down[done], out.up[done]
        found.lower[entries] = out.value[here] + np.repeat(down, sizes)
        found.upper[entries] = out.value[here] + np.repeat(up, sizes)
        first = np.where(out.pivots[done] == 0, FIRST_SEGMENT, WALK)
        found.settled_by[entries] = np.repeat(first, sizes)
        reason = CERTIFIED if self.solution.converged else NOT_CONVERGED
        found.uncertified_by[entries] = reason
        if found.everywhere is not None:
            b = middle(down, up)[:, None]
            found.everywhere[which[done]] = out.everywhere[done] + b
        self.counts["pivots"] += int(out.pivots[done].sum())
        self.counts["walks"] += int(done.sum())


class _Round(NamedTuple):
    """Results of the kernel for a number of walks."""

    value: FloatArray
    down: FloatArray
    up: FloatArray
    status: np.ndarray
    pivots: IntArray
    missing: IntArray
    everywhere: FloatArray


class _Columns:
    """The columns of the tableau computed so far, as rows of one array."""

    def __init__(self, problem: Problem, solution: Solution, n_threads: int) -> None:
        self.n_threads = n_threads
        n = problem.n_samples
        self.where = np.full(n, -1, dtype=np.intp)
        self.rows = np.empty((0, n))
        self.n_columns = 0
        self.members = np.flatnonzero(solution.free)
        self.tableau: Tableau | None = None
        self.on_demand = 0 < self.members.size <= ON_DEMAND
        if self.members.size:
            self.tableau = build_tableau(problem, solution, n_threads)
            if not self.on_demand:
                self.rows = np.empty((n, n))  # pages are allocated only when written
        elif not problem.fit_intercept:
            # No sample on the margin, no intercept: the tableau is the kernel itself.
            self.rows, self.where = problem.K, np.arange(n, dtype=np.intp)

    @cached_property
    def factors(self) -> tuple[np.ndarray, ...]:
        """Factors from which the kernel computes columns; empty if it should not."""
        if self.tableau is None or not self.on_demand:
            none = np.empty((0, self.where.size))
            return self.members, none, np.empty(0), none, none
        t = self.tableau
        V, Bm = np.ascontiguousarray(t.V.T), np.ascontiguousarray(t.Bm.T)
        return self.members, V, t.weights, Bm, t.A

    def add(self, indices: IntArray) -> None:
        """Compute the columns of some samples."""
        wanted = np.zeros(self.where.size, dtype=bool)
        wanted[indices] = True
        wanted &= self.where < 0
        # Members first, so that the others are contiguous and computed by products.
        members = self.members[wanted[self.members]]
        wanted[members] = False
        indices = np.concatenate([members, np.flatnonzero(wanted)])
        if self.tableau is None or indices.size == 0:
            return
        start, stop = self.n_columns, self.n_columns + indices.size
        self.tableau.write_columns(indices, self.rows[start:stop], self.n_threads)
        self.where[indices] = np.arange(start, stop)
        self.n_columns = stop


@lru_cache(maxsize=8)
def _signs(n: int) -> FloatArray:
    """Random signs for the check at the end of a walk, the same in every run."""
    return np.random.default_rng(n).choice([-1.0, 1.0], size=n)


def settle_from_solution(
    problem: Problem, solution: Solution, found: LooIntervals, labels_only: bool
) -> IntArray:
    """Write the values that follow from the full solution; return the other samples."""
    y, f = problem.y, solution.decision_values
    open_ = solution.beta != 0.0
    if problem.fit_intercept and not has_room(problem.C, solution.alpha, solution.free):
        # Without a free support vector b is an interval, which grows without r.
        idle = np.flatnonzero(~open_)
        down, up = intercept_range_without(problem, solution, idle)
        found.lower[idle], found.upper[idle] = f[idle] + down, f[idle] + up
    if labels_only:
        settled = open_ & (y * f < -1e-10)
        found.settled_by[settled] = NEGATIVE_MARGIN
        open_ &= ~settled
    open_[settle_singletons(problem, found)] = False
    return np.flatnonzero(open_)


def settle_singletons(problem: Problem, found: LooIntervals) -> IntArray:
    """Write the values of samples that are alone in their class; return these samples.

    Without such a sample one class is left: w = 0, and b is its label or beyond.
    """
    alone = only_of_class(problem)
    positive = problem.y[alone] > 0
    found.settled_by[alone], found.uncertified_by[alone] = SINGLETON, CERTIFIED
    found.lower[alone] = np.where(positive, -np.inf, 1.0)
    found.upper[alone] = np.where(positive, -1.0, np.inf)
    return alone


def only_of_class(problem: Problem) -> IntArray:
    """Return the samples that are alone in their class; none without an intercept."""
    singles = []
    for sign in (-1.0, 1.0) if problem.fit_intercept else ():
        members = np.flatnonzero((problem.y == sign) & (problem.C > 0.0))
        singles += members.tolist() if members.size == 1 else []
    return np.array(singles, dtype=np.intp)


def _is_walkable(problem: Problem, solution: Solution, rows: IntArray) -> bool:
    """Whether a group is small enough for a walk and leaves both classes."""
    if np.count_nonzero(solution.beta[rows]) > LARGEST_WALK:
        return False
    left = problem.C > 0.0
    left[rows] = False
    return not problem.fit_intercept or np.unique(problem.y[left]).size == 2


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
            refit_each, problem, solution, n_threads=self.n_threads, everywhere=True
        )
        for some in (walked, moving & ~walked):
            if some.any():
                leave_out = self._walker.leave_out if some is walked else refit
                left = leave_out(Folds.singles(rows[some]))
                assert left.everywhere is not None
                found[some] = left.everywhere
                certified[some] &= left.certified & self._all_b_optimal_without(
                    rows[some], left.everywhere, left.upper - left.lower
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
            self.problem, self.solution, n_threads=self.n_threads, everywhere=True
        )


@dataclass(frozen=True)
class Tableau:
    """Factors from which any column of the tableau follows.

    With P = (K_MM + c 11')^-1, V has the columns Y = (K_.M + c) L^-T, then d =
    (1 - (K_.M + c) P 1) / sqrt(1'P 1), then ones, and is zero for members;
    S = K + V diag(weights) V' with weights -1 for Y, +1 for d, c for the ones (the last
    two 0 without an intercept).
    """

    K: FloatArray  # (n, n)
    members: IntArray  # (m,), the free support vectors M
    V: FloatArray  # (n, m + 2)
    weights: FloatArray  # (m + 2,)
    Bm: FloatArray  # (n, m), affine coefficients on M; the identity for M itself
    A: FloatArray  # (m, m), inverse of the bordered matrix without the intercept

    def write_columns(
        self, indices: IntArray, out: FloatArray, n_threads: int = 1
    ) -> None:
        """Write columns of the tableau, one per row, into out (len(indices), n)."""
        indices = np.ascontiguousarray(indices)
        place = np.full(self.K.shape[0], -1)
        place[self.members] = np.arange(self.members.size)

        def write(part: slice) -> None:
            write_columns(
                self.K, self.members, place, self.V, self.weights, self.Bm, self.A,
                indices[part], out[part],
            )  # fmt: skip

        map_chunks(write, indices.size, n_threads, BLOCK)


def build_tableau(problem: Problem, solution: Solution, n_threads: int = 1) -> Tableau:
    """Factor the bordered kernel on the free support vectors; M must not be empty.

    About |M|^3 + 2 (n - |M|) |M|^2 flops; every column outside M costs another
    2 n |M|. Raises ``numpy.linalg.LinAlgError`` if the bordered matrix is numerically
    singular.
    """
    K, n = problem.K, problem.n_samples
    members, others = np.flatnonzero(solution.free), np.flatnonzero(~solution.free)
    m = members.size
    c = (float(K.diagonal().mean()) or 1.0) if problem.fit_intercept else 0.0
    upper, failed = lapack.dpotrf((K[np.ix_(members, members)] + c).T, 0, overwrite_a=1)
    if failed:
        raise LinAlgError("the bordered kernel on the margin is singular")
    # L^-T, because OpenBLAS multiplies by a triangle faster than it solves with one.
    inverse, _ = lapack.dtrtri(upper, lower=0, overwrite_c=1)
    A = _gram_of_triangle(inverse, n_threads)
    unit = np.empty(0)
    if problem.fit_intercept:
        unit = A.sum(axis=0)
        unit /= np.sqrt(unit.sum())
        A -= np.multiply.outer(unit, unit)
    V, Bm = np.zeros((n, m + 2)), np.zeros((n, m))
    Bm[members, np.arange(m)] = 1.0

    def fill(part: slice) -> None:
        fill_factors(K, members, others[part], inverse, unit, c, V, Bm)

    map_chunks(fill, others.size, n_threads, BLOCK)
    weights = np.concatenate([np.full(m, -1.0), [1.0, c]])
    return Tableau(K, members, V, weights, Bm, A)


def _gram_of_triangle(inverse: FloatArray, n_threads: int) -> FloatArray:
    """(L L')^-1 = L^-T L^-1 as a full symmetric matrix; inverse = L^-T, upper."""
    m = inverse.shape[0]
    full = np.empty((m, m))

    def multiply(part: slice) -> None:
        # Row i of L^-T begins at i, and so does the product of rows i and j <= i.
        start, stop = part.start, part.stop
        np.matmul(
            inverse[part, start:], inverse[:stop, start:].T, out=full[part, :stop]
        )
        full[:start, part] = full[part, :start].T

    map_chunks(multiply, m, n_threads, BLOCK)
    return full


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
