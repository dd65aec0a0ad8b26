# SPDX-License-Identifier: BSD-3-Clause
"""The leave-one-out error for every C in an interval: n paths, summed to one curve.

With C_i = C c_i the optimum without r is piecewise affine in C, and so is its value at
x_r (Hastie et al. 2004; docs/method/curve). Where that value changes sign, the
error changes by 1/n. Each path is checked against walks at a few C.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._problem import TIE, Problem, Solution
from leaveout.engine._solve import solve_svc, solve_without
from leaveout.engine._walk import loo_walk
from leaveout.methods._curve_fast import trace_path
from leaveout.run._parallel import map_chunks

# Breakpoints closer than this, relatively, are merged.
SAME = 1e-12
# A path that fails without progress is restarted from a solve at C (1 + NUDGE), then at
# ten times that distance, and so on up to WIDEST_GAP. Within the gap, f is that of the
# solve; the path counts as certified if the gap is below GAP.
NUDGE, GAP, WIDEST_GAP = 1e-12, 1e-9, 0.03
MANY_RESTARTS = 50
# Paths are checked against walks at these fractions of the range of log(C).
CHECKS = (0.241, 0.493, 0.747, 0.9999)
# Paths between two checks for Python's signals.
PATHS_PER_CALL = 8


@dataclass
class _Path:
    """The interval of f at x_r as a function of C, and the cost of computing it.

    Rows of ``pieces``: C at both ends, lower end of f at both, upper end at both.
    """

    pieces: FloatArray
    events: int = 0
    factors: int = 0
    restarts: int = 0
    certified: bool = True

    def interval_at(self, C: float) -> tuple[float, float]:
        """Return the ends of the interval of f at C."""
        k = int(np.searchsorted(self.pieces[:, 1], C))
        start, stop, low, low_end, high, high_end = self.pieces[k]
        share = (C - start) / (stop - start)
        return low + share * (low_end - low), high + share * (high_end - high)


@dataclass(frozen=True)
class _Curve:
    """Data shared by all paths of one problem."""

    problem: Problem
    full: Solution  # of all samples, at C_min
    C_min: float
    C_max: float
    probe: FloatArray
    K_probe: FloatArray
    scale: float

    def at(self, C: float, r: int | None = None) -> Problem:
        """Return the problem at C, without r if it is given."""
        bounds = C * self.problem.C
        if r is not None:
            bounds[r] = 0.0
        return replace(self.problem, C=bounds, first_equal=None)


class Curve(NamedTuple):
    """Number of wrong and of ambiguous samples between neighbouring breakpoints."""

    breakpoints: FloatArray  # (k + 1,)
    n_wrong: IntArray  # (k,)
    n_ambiguous: IntArray  # (k,)
    n_uncertified: int
    counts: dict[str, float]


def trace_curve(
    problem: Problem,
    C_min: float,
    C_max: float,
    *,
    truth: FloatArray | None = None,
    n_threads: int = 1,
) -> Curve:
    """Follow all n left-out optima from C_min to C_max.

    ``problem`` is the one at C = 1, so its C are the weights c_i; a sample with c_i = 0
    gets the value of the full solution. ``truth`` is the correct sign of each sample, y
    by default; a sample with 0 is always wrong.
    """
    started = perf_counter()
    n = problem.n_samples
    truth = problem.y if truth is None else truth
    curve = _share(problem, C_min, C_max)
    leaders = replace(problem, y=truth).first_copies(np.arange(n))
    rows = np.unique(leaders)
    checks = _walks_at_some(curve, n_threads)
    steps: dict[int, tuple[FloatArray, IntArray]] = {}
    paths: dict[int, _Path] = {}

    def run(part: slice) -> None:
        for r in rows[part].tolist():
            path = _checked_path(curve, r, checks)
            steps[r] = _steps(path.pieces, float(truth[r]))
            path.pieces = path.pieces[:0]
            paths[r] = path

    map_chunks(run, rows.size, n_threads, size=PATHS_PER_CALL)
    n_uncertified = sum(not paths[leader].certified for leader in leaders.tolist())
    swept = _sweep([steps[leader] for leader in leaders.tolist()], C_min, C_max)
    counts = {
        "paths": float(rows.size),
        "shared": float(n - rows.size),
        "events": float(sum(path.events for path in paths.values())),
        "factorisations": float(sum(path.factors for path in paths.values())),
        "restarts": float(sum(path.restarts for path in paths.values())),
        "seconds": perf_counter() - started,
    }
    return Curve(*swept, n_uncertified, counts)


def _share(problem: Problem, C_min: float, C_max: float) -> _Curve:
    """Solve the full problem at C_min and draw the random direction of the checks."""
    n, K = problem.n_samples, problem.K
    probe = np.random.default_rng(n).choice([-1.0, 1.0], size=n)
    full = solve_svc(replace(problem, C=C_min * problem.C))
    scale = float(K.diagonal().mean()) or 1.0
    return _Curve(problem, full, C_min, C_max, probe, K @ probe, scale)


def _walks_at_some(
    curve: _Curve, n_threads: int
) -> list[tuple[float, FloatArray, FloatArray]]:
    """Leave each sample out by walks at a few C: (C, lower, upper), NaN if absent.

    Walks share no code with the paths except the solver.
    """
    present = np.flatnonzero(curve.problem.C > 0.0)
    checks = []
    for share in CHECKS:
        C = curve.C_min ** (1.0 - share) * curve.C_max**share
        problem = curve.at(C)
        if present.size < problem.n_samples:
            problem = problem.subset(present)
        loo = loo_walk(problem, solve_svc(problem), n_threads=n_threads)
        lower, upper = np.full((2, curve.problem.n_samples), np.nan)
        lower[present], upper[present] = loo.lower, loo.upper
        checks.append((C, lower, upper))
    return checks


def _checked_path(
    curve: _Curve,
    r: int,
    checks: list[tuple[float, FloatArray, FloatArray]],
) -> _Path:
    """Follow one path and compare it with walks; where they differ, a solve decides."""
    present = curve.problem.C > 0.0
    present[r] = False
    left = np.unique(curve.problem.y[present])
    if curve.problem.fit_intercept and left.size == 1:  # f is the label of that class
        return _Path(np.array([[curve.C_min, curve.C_max, *4 * [left[0]]]]))
    path = _follow(curve, r)
    for C, lower, upper in checks:
        if _differ(path.interval_at(C), (lower[r], upper[r])):
            wanted = _interval(solve_svc(curve.at(C, r)), r)
            path.certified &= not _differ(path.interval_at(C), wanted)
    return path


def _differ(found: tuple[float, float], wanted: tuple[float, float]) -> bool:
    """Whether two intervals differ by more than rounding; NaN does not."""
    apart = np.abs(np.subtract(found, wanted))
    return bool(np.any(apart > 1e-7 * (1.0 + np.abs(wanted))))


def _interval(solution: Solution, r: int) -> tuple[float, float]:
    """Interval of f at x_r over all optimal b."""
    without_b = solution.decision_values[r] - solution.intercept
    low, high = solution.intercept_interval
    return float(without_b + low), float(without_b + high)


def _follow(curve: _Curve, r: int) -> _Path:
    """Follow the optimum without r.

    A path that fails is restarted by a solve where it last seemed right, or slightly
    above if it makes no progress.
    """
    problem = curve.problem
    C = curve.C_min
    solution = solve_without(curve.at(C), curve.full, np.array([r]))
    path = _Path(np.empty((0, 6)), certified=solution.converged)
    parts = []
    nudge = 0.0
    while curve.C_max > C:
        before = C
        arrived, events, factors, C, pieces = trace_path(
            problem.K, problem.y, problem.C, problem.fit_intercept,
            curve.probe, curve.K_probe, curve.scale, r, C, curve.C_max,
            solution.intercept, solution.state,
        )  # fmt: skip
        path.events += events
        path.factors += factors
        parts.append(pieces)
        if arrived:
            break
        path.restarts += 1
        further = before < C and path.restarts < MANY_RESTARTS
        nudge = 0.0 if further else min(max(10.0 * nudge, NUDGE), WIDEST_GAP)
        before, C = C, min(C * (1.0 + nudge), curve.C_max)
        solution = solve_svc(curve.at(C, r))
        path.certified &= solution.converged and nudge <= GAP
        low, high = _interval(solution, r)
        if before < C:
            parts.append(np.array([[before, C, low, low, high, high]]))
        elif pieces.size:  # the end of the last piece, solved again
            end = float(pieces[-1, 3]), float(pieces[-1, 5])
            path.certified &= not _differ(end, (low, high))
    path.pieces = np.concatenate(parts)
    return path


def _steps(pieces: FloatArray, truth: float) -> tuple[FloatArray, IntArray]:
    """Return the states of one sample and where each begins, in order.

    The state is 1 if wrong plus 2 if ambiguous. On a piece, both ends of the interval
    and its middle are affine: at most three zeros cut it into parts of one state.
    """
    C = pieces[:, :2]
    ends = np.stack([pieces[:, 2:4], pieces[:, 4:6]])
    values = np.concatenate([ends, ends.mean(axis=0, keepdims=True)])  # (3, pieces, 2)
    tie = TIE * (1.0 + np.abs(values[2]).max())
    values[(np.abs(values) <= tie).all(axis=2)] = 0.0
    first, last = values[..., 0], values[..., 1]
    crosses = np.sign(first) * np.sign(last) < 0.0
    zeros = np.where(crosses, first / np.where(crosses, first - last, 1.0), 0.0)
    cuts = np.sort(np.vstack([np.zeros(len(C)), zeros, np.ones(len(C))]), axis=0)
    inside = 0.5 * (cuts[1:] + cuts[:-1])  # (4, pieces)
    low, high, middle = first[:, None] + (last - first)[:, None] * inside
    wrong = np.where(middle >= 0.0, 1.0, -1.0) != truth
    state = (wrong + 2 * ((low <= 0.0) & (high >= 0.0))).T.ravel()
    begins = (C[:, 0] + (C[:, 1] - C[:, 0]) * cuts[:-1]).T.ravel()
    kept = (np.diff(cuts, axis=0) > 0.0).T.ravel()
    begins, state = begins[kept], state[kept]
    changes = np.append(True, state[1:] != state[:-1])
    return begins[changes], state[changes]


def _sweep(
    steps: list[tuple[FloatArray, IntArray]], C_min: float, C_max: float
) -> tuple[FloatArray, IntArray, IntArray]:
    """Sum over samples: breakpoints, counts of wrong and ambiguous between them."""
    begins = np.concatenate([begin[1:] for begin, _ in steps])
    changes = np.concatenate(
        [np.diff(np.column_stack([s & 1, s >> 1]), axis=0) for _, s in steps]
    )
    state = np.array([s[0] for _, s in steps])
    start = np.array([(state & 1).sum(), (state >> 1).sum()])
    order = np.argsort(begins, kind="stable")
    begins, changes = begins[order], changes[order]
    begins = np.concatenate([[C_min], begins, [C_max]])
    totals = start + np.concatenate([[[0, 0]], np.cumsum(changes, axis=0)])
    # If breakpoints coincide, the last has the sum of all.
    apart = np.diff(begins) > SAME * begins[1:]
    begins, totals = begins[:-1][apart], totals[apart]
    new = np.append(True, np.any(np.diff(totals, axis=0), axis=1))
    breakpoints = np.append(begins[new], C_max)
    breakpoints[0] = C_min
    return breakpoints, totals[new, 0], totals[new, 1]
