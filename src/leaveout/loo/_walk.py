# SPDX-License-Identifier: BSD-3-Clause
"""Method "walk": every leave-one-out value from one factorisation and n short walks.

Leaving r out is the end of a path: lower alpha_r from its optimal value to zero while
all others stay optimal. The path is piecewise linear, with few events
(docs/method/walk).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from time import perf_counter
from typing import NamedTuple

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._duplicates import first_copies
from leaveout.loo._refit import refit_without
from leaveout.loo._result import (
    FIRST_SEGMENT,
    NEGATIVE_MARGIN,
    REFIT,
    SINGLETON,
    WALK,
    ZERO_ALPHA,
    MachineLoo,
)
from leaveout.loo._tableau import Tableau, build_tableau
from leaveout.loo._walk_fast import Status, run_walks, work_shape
from leaveout.run import map_chunks
from leaveout.solve import Solution, intercept_range_without, solve_svc

# Room for the pivots of one walk. Most walks need fewer than ten; a walk that needs
# more is run again with more room.
CAPACITIES = (32, 512)
# Up to this many points on the margin a column costs less to make anew, in the walk
# that needs it, than to keep; beyond, columns are made together by BLAS-3.
ON_DEMAND = 16
# Walks that are run first, to learn which other columns are needed.
PILOT = 32


@dataclass
class _Walks:
    """What the walks of one machine share, and the answers as they come in."""

    problem: Problem
    solution: Solution
    labels_only: bool
    n_threads: int
    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    certified: BoolArray
    settled_by: np.ndarray
    counts: dict[str, float]

    @cached_property
    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Random signs z, and K @ z."""
        signs = _signs(self.problem.n_samples)
        return signs, self.problem.K @ signs


def loo_walk(
    problem: Problem,
    *,
    solution: Solution | None = None,
    labels_only: bool = False,
    n_threads: int = 1,
) -> MachineLoo:
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
    MachineLoo
        Values with the interval of the intercept.
    """
    started = perf_counter()
    if solution is None:
        solution = solve_svc(problem)
    fitted = perf_counter()
    n = problem.n_samples
    state = _Walks(
        problem, solution, labels_only, n_threads,
        values=solution.decision_values.copy(),
        lower=solution.decision_values.copy(),
        upper=solution.decision_values.copy(),
        certified=np.full(n, solution.converged),
        settled_by=np.full(n, ZERO_ALPHA, dtype=np.int8),
        counts=dict.fromkeys(
            ("pivots", "walks", "columns", "shared", "refits"), 0.0
        ),
    )  # fmt: skip
    rows = _settle_without_walking(state)
    copies = first_copies(problem.K, problem.y, problem.C, rows)
    leaders = np.unique(copies)
    failed = _walk_all(state, leaders)
    _mend_all(state, failed)
    state.counts["shared"] = rows.size - leaders.size
    for array in (state.values, state.lower, state.upper):
        array[rows] = array[copies]
    state.certified[rows] = state.certified[copies]
    state.settled_by[rows] = state.settled_by[copies]
    now = perf_counter()
    state.counts["fit_seconds"] = fitted - started
    state.counts["seconds"] = now - started
    return MachineLoo(
        state.values, state.lower, state.upper, state.certified,
        state.settled_by, state.counts,
    )  # fmt: skip


def _settle_without_walking(state: _Walks) -> IntArray:
    """Answer what needs no walk; return the samples that do."""
    problem, solution = state.problem, state.solution
    y, f = problem.y, solution.decision_values
    open_ = solution.beta != 0.0
    if problem.fit_intercept and not _has_room(problem, solution):
        # Without a free support vector b is an interval, and grows as r leaves.
        idle = np.flatnonzero(~open_)
        down, up = intercept_range_without(problem, solution, idle)
        _store(state, idle, f[idle], down, up)
    if state.labels_only:
        settled = open_ & (y * f < -1e-10)
        state.settled_by[settled] = NEGATIVE_MARGIN
        open_ &= ~settled
    if problem.fit_intercept:
        for sign in (-1.0, 1.0):
            members = np.flatnonzero(y == sign)
            if members.size == 1:
                # One class is left: w = 0 and b is beyond its label.
                state.settled_by[members] = SINGLETON
                open_[members] = False
                _store(
                    state, members, np.array([-sign]),
                    np.array([-np.inf if sign > 0 else 0.0]),
                    np.array([0.0 if sign > 0 else np.inf]),
                )  # fmt: skip
    return np.flatnonzero(open_)


def _has_room(problem: Problem, solution: Solution) -> bool:
    """Whether some support vector is free by more than rounding."""
    alpha, C = solution.alpha[solution.free], problem.C[solution.free]
    return bool(np.any(np.minimum(alpha, C - alpha) > 1e-9 * C))


def _store(
    state: _Walks, rows: IntArray, f: FloatArray, down: FloatArray, up: FloatArray
) -> None:
    """Write f and its interval; the value is the middle, or the finite end."""
    low, high = f + down, f + up
    state.lower[rows], state.upper[rows] = low, high
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (low + high)
    state.values[rows] = np.where(
        np.isinf(low), high, np.where(np.isinf(high), low, middle)
    )


def _walk_all(state: _Walks, rows: IntArray) -> list[int]:
    """Run the walks in rounds; return the samples whose walk failed.

    A walk that needs a tableau column nobody has made yet is run again in the next
    round, when the missing columns of all walks are made together by one product.
    """
    failed: list[int] = []
    if rows.size == 0:
        return failed
    problem = state.problem
    try:
        columns = _Columns(problem, state.solution)
    except np.linalg.LinAlgError:
        return rows.tolist()
    later = rows[:0]
    if not columns.on_demand:
        columns.add(rows)
        pilot = np.zeros(rows.size, dtype=bool)
        pilot[:: max(1, rows.size // PILOT)] = True
        rows, later = rows[pilot], rows[~pilot]
    capacity_left = list(CAPACITIES)
    capacity = capacity_left.pop(0)
    while rows.size:
        out = _run_round(state, columns, rows, capacity)
        status = out.status
        done = (status == Status.DONE) | (status == Status.STOPPED)
        ended = rows[done]
        _store(state, ended, out.value[done], out.down[done], out.up[done])
        first = out.pivots[done] == 0
        state.settled_by[ended] = np.where(first, FIRST_SEGMENT, WALK)
        state.counts["pivots"] += int(out.pivots[done].sum())
        state.counts["walks"] += int(done.sum())
        broken = (status == Status.FAILED) | (status == Status.STUCK)
        failed.extend(rows[broken].tolist())
        waiting = status == Status.NEEDS_COLUMN
        columns.add(np.unique(out.missing[waiting]))
        long = status == Status.TOO_LONG
        if long.any() and not waiting.any():
            if not capacity_left:
                failed.extend(rows[long].tolist())
                break
            capacity = capacity_left.pop(0)
        rows = np.concatenate([rows[waiting | long], later])
        later = later[:0]
    state.counts["columns"] = columns.n_columns
    return failed


class _Round(NamedTuple):
    """What the kernel says of a number of walks."""

    value: FloatArray
    down: FloatArray
    up: FloatArray
    status: np.ndarray
    pivots: IntArray
    missing: IntArray


class _Columns:
    """The columns of the tableau made so far, in rows of one array."""

    def __init__(self, problem: Problem, solution: Solution) -> None:
        n = problem.n_samples
        self.where = np.full(n, -1, dtype=np.intp)
        self.rows = np.empty((n, n))  # pages are only taken when written
        self.n_columns = 0
        self.members = np.flatnonzero(solution.free)
        self.tableau: Tableau | None = None
        self.on_demand = 0 < solution.free.sum() <= ON_DEMAND
        if solution.free.any():
            self.tableau = build_tableau(problem, solution)
        elif not problem.fit_intercept:
            # Nobody on the margin, no bias: the tableau is the kernel itself.
            self.rows, self.where = problem.K, np.arange(n, dtype=np.intp)

    @property
    def factors(self) -> tuple[np.ndarray, ...]:
        """What the kernel needs to make columns itself; empty if it is not to."""
        if self.tableau is None or not self.on_demand:
            none = np.empty((0, self.where.size))
            return self.members, none, np.empty(0), none, none
        t = self.tableau
        return self.members, t.V, t.weights, t.Bm, t.A

    def add(self, indices: IntArray) -> None:
        """Make the columns of some samples."""
        indices = indices[self.where[indices] < 0]
        if self.tableau is None or indices.size == 0:
            return
        start, stop = self.n_columns, self.n_columns + indices.size
        self.tableau.write_columns(indices, self.rows[start:stop])
        self.where[indices] = np.arange(start, stop)
        self.n_columns = stop


def _run_round(
    state: _Walks, columns: _Columns, rows: IntArray, capacity: int
) -> _Round:
    """Run the walks of some samples over the threads."""
    problem, solution = state.problem, state.solution
    n, K = problem.n_samples, problem.K
    probe, K_probe = state.probe
    scale = float(K.diagonal().mean()) or 1.0
    value, down, up = np.empty((3, rows.size))
    status = np.empty(rows.size, dtype=np.int8)
    pivots, missing = np.empty((2, rows.size), dtype=np.intp)

    def run(part: slice) -> None:
        run_walks(
            K, problem.y, problem.C,
            solution.beta, solution.decision_values, solution.state,
            problem.fit_intercept, columns.rows, columns.where, *columns.factors,
            probe, K_probe, scale, 1e-13 * scale,
            rows[part], state.labels_only, 8 * capacity,
            np.empty(work_shape(n, capacity)), np.empty(capacity + 2 * n, dtype=np.intp),
            value[part], down[part], up[part], status[part], pivots[part],
            missing[part],
        )  # fmt: skip

    map_chunks(run, rows.size, state.n_threads)
    return _Round(value, down, up, status, pivots, missing)


@cache
def _signs(n: int) -> FloatArray:
    """Random signs for the check at the end of a walk; the same ones every time."""
    return np.random.default_rng(n).choice([-1.0, 1.0], size=n)


def _mend_all(state: _Walks, failed: list[int]) -> None:
    """Solve the left-out problems whose walk did not pass its check."""
    for r in failed:
        left_out = refit_without(state.problem, state.solution, r)
        f, b = left_out.decision_values[[r]], left_out.intercept
        low, high = left_out.intercept_interval
        _store(state, np.array([r]), f, np.array([low - b]), np.array([high - b]))
        state.settled_by[r] = REFIT
        state.certified[r] = left_out.converged
        state.counts["refits"] += 1
