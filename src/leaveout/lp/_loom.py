# SPDX-License-Identifier: BSD-3-Clause
"""The leave-one-out machine (LOOM, Weston 1999): solver and left-out values.

For kernel values K, signs y and weights w, with M_ij = y_i y_j K_ij off the diagonal
and M_ii = (1 - nu) K_ii::

    primal   min   sum_i w_i xi_i
                   s.t.   M a + y b + xi >= 1,   0 <= a <= A,   xi >= 0
    dual     max   sum_i u_i - A sum_j s_j
                   s.t.   M' u <= s,   sum_i u_i y_i = 0,   0 <= u <= w,   s >= 0

(Weston 1999, eq. (12)-(14) with nu = 1 and b = 0). Among all optima the one with the
smallest sum of a is chosen: the paper's program has many, and an unbounded set of them
if every sample can be classified without its own term. The bound A is not in the paper.
It is about 1e6 / max |K|, and keeps the program well-posed if kernel values are near 0.

HiGHS solves the dual in two stages, the two leading orders of M' u <= eps as eps goes
to 0: first eps = 0; then, around that u, its direction v = du / deps, which is the dual
of "smallest sum of a on the optimal face". The final bases are solved again in full
precision, and the primal and dual values are compared (docs/method/loom).

The objective evaluates each sample without its own term, but with the other
coefficients chosen in its presence (eq. (11)), so it is not the leave-one-out error.
For that error, the row and column of the sample are removed from both stages, which are
solved again from a warm start.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from leaveout._typing import BoolArray, FloatArray
from leaveout.engine._certificate import nearly_coincide, weighted_median_interval
from leaveout.engine._problem import (
    BOUND_ONLY,
    BY_ROUNDING,
    CERTIFIED,
    NOT_CONVERGED,
    REFIT,
    UNTOUCHED,
    ZERO_ALPHA,
    Folds,
    LooIntervals,
    Problem,
    middle,
)
from leaveout.engine._walk import factor_lu, settle_singletons, solve_lu
from leaveout.exceptions import LeaveoutError
from leaveout.lp._highs import Bounds, open_highs, run_simplex
from leaveout.run._parallel import map_chunks

# Largest coefficient if the largest kernel value is 1: kernel values below its inverse
# cannot classify a sample.
CAP = 1e6
# Relative duality gap below which a primal-dual pair counts as optimal; the rounding
# errors of n dual constraints, times CAP, are smaller.
OPTIMAL = 1e-6
# Samples with a smaller weight than this, relative to the largest, are nearly absent:
# bounds of u as small as that are hard to distinguish.
LIGHTEST = 1e-8
# Above this gap the dual point is refined, magnified by LENS.
FINE, LENS = 1e-8, 2.0**20
# Dual variables this close to a bound, and dual constraints this close to equality,
# count as being there: slacks that differ by less are a tie.
FACE = 1e-11
# Differences below this are rounding errors. Between the two, a stricter rule would see
# no tie.
ROUNDING = 1e-13
# The same for the direction of the second stage, which has fewer digits.
STILL = 1e-8
# Tried in this order. HiGHS's scaling of the matrix is off: kernel values have one
# scale, and scaling up the tiny ones made HiGHS fail.
STRATEGIES: tuple[dict[str, Any], ...] = (
    {"simplex_strategy": 1, "presolve": "off", "simplex_scale_strategy": 0},
    {"simplex_strategy": 4, "presolve": "off", "simplex_scale_strategy": 0},
    {"simplex_strategy": 1, "presolve": "off", "simplex_scale_strategy": 2},
    {"simplex_strategy": 1, "presolve": "on", "simplex_scale_strategy": 0},
)
# Values this close to 0 count as 0, relative to the margin 1; predictions use the same
# rule.
ZERO = 1e-10
# Values this close, relative to max(1, |f|), count as equal: the program is solved to
# 1e-6.
SAME = 1e-6
# Samples per part: each part loads the program once.
CHUNK = 64


@dataclass(frozen=True)
class LoomFace:
    """All optima with the smallest sum of coefficients, scaled.

    The polyhedron ``low <= M a + y b <= high``, ``least <= a <= most``.
    """

    M: FloatArray  # (n, n), margins by coefficients
    y: FloatArray | None  # signs; None without an intercept
    w: FloatArray  # (n,), weights; a sample with weight 0 has no constraint
    least: FloatArray  # (n,), bounds of a
    most: FloatArray
    low: FloatArray  # (n,), bounds of the margins
    high: FloatArray
    scale: float  # divisor of K; the coefficients are a / scale
    unique: bool  # strict complementarity proves that the face is one point

    def range_of(self, slope: FloatArray) -> tuple[float, float]:
        """Return the ends of ``slope @ a + b`` on the face; NaN if HiGHS fails."""
        fixed = self.least == self.most
        columns, rows = np.flatnonzero(~fixed), np.flatnonzero(self.w > 0.0)
        base = float(slope[fixed] @ self.least[fixed])
        G = self.M[np.ix_(rows, columns)]
        cost, least, most = slope[columns], self.least[columns], self.most[columns]
        if self.y is not None:
            G = np.column_stack([G, self.y[rows]])
            cost, least = np.append(cost, 1.0), np.append(least, -np.inf)
            most = np.append(most, np.inf)
        done = self.M[rows] @ np.where(fixed, self.least, 0.0)
        bounds = (least, most), (self.low[rows] - done, self.high[rows] - done)
        return base + _smallest(cost, G, *bounds), base - _smallest(-cost, G, *bounds)


def _smallest(cost: FloatArray, G: FloatArray, columns: Bounds, rows: Bounds) -> float:
    """Return the smallest cost; -inf if unbounded, NaN if HiGHS fails."""
    n_rows, n_columns = G.shape
    if n_columns == 0:
        return 0.0
    start = np.arange(n_columns + 1) * n_rows
    index = np.tile(np.arange(n_rows), n_columns)
    matrix = start, index, np.ascontiguousarray(G.T).ravel()
    highs = open_highs(cost, matrix, columns, rows, tolerance=1e-8)
    highs.setOptionValue("presolve", "off")
    highs.run()
    status = highs.modelStatusToString(highs.getModelStatus())
    if status == "Optimal":
        return float(highs.getInfo().objective_function_value)
    return -np.inf if status == "Unbounded" else np.nan


@dataclass(frozen=True)
class LoomSolution:
    """An optimum of the LOOM, with its certificate."""

    coef: FloatArray  # (n,), signed a_j y_j, with the smallest sum of a
    intercept: float  # the middle of the interval that is optimal for these
    decision_values: FloatArray  # (n,), f = K coef + b
    left_out_values: FloatArray  # (n,), f without the own term coef_i K_ii
    slack: FloatArray  # (n,), max(0, 1 - y_i (f_i - nu coef_i K_ii)); 0 without weight
    row_dual: FloatArray  # (n,), u
    objective: float  # sum_i w_i xi_i
    duality_gap: float  # (primal - dual) / max(1, primal), largest weight 1
    n_capped: int  # coefficients at their largest value
    n_iter: int  # simplex steps
    converged: bool  # the gap is below 1e-6 and the sum of coefficients the smallest
    labels_proved: bool  # the gap is small relative to the lightest sample's loss, too
    # Samples with a nonzero coefficient, or nonzero in one of the two dual points: any
    # other sample can be left out, and this point stays optimal.
    tight: BoolArray
    face: LoomFace | None  # None if HiGHS did not find it
    # If slacks differ by more than rounding but less than a tie, the optimum by the
    # rule that sees no tie there. Where the two disagree, the result depends on the
    # last digits.
    rival: LoomSolution | None = None


@dataclass(frozen=True)
class LoomProblem(Problem):
    """Kernel values, signs and weights (as ``C``) of one binary LOOM.

    A sample with weight 0 has neither row nor column. The kernel may be indefinite.
    ``nu`` >= 0 is the share of a sample's own term that is removed from its margin.
    """

    nu: float = 1.0


def solve_loom(problem: LoomProblem) -> LoomSolution:
    """Solve one binary LOOM."""
    return LoomSolver(problem).solve()


class LoomSolver:
    """Solve one problem, or the problem without a sample, by its dual in HiGHS.

    ``start`` is the final basis of another solver of the same problem.
    """

    def __init__(self, problem: LoomProblem, start: Any = None) -> None:
        self.problem, self.start = problem, start
        largest = float(np.abs(problem.K).max())
        # A power of 2, so that scaling K changes no digit.
        self.scale = 2.0 ** np.ceil(np.log2(largest)) if largest > 0.0 else 1.0
        self.M = loom_matrix(problem) / self.scale
        self._highs = _load(self.M, problem)

    def solve(self) -> LoomSolution:
        """Solve from scratch; keep the basis for warm starts."""
        return self._solve(self.problem.C)

    def solve_without(self, row: int) -> LoomSolution:
        """Solve without a sample, warm-started from the full basis."""
        weights = self.problem.C.copy()
        weights[row] = 0.0
        return self._solve(weights)

    def _solve(self, weights: FloatArray) -> LoomSolution:
        """Run both stages; if there are near ties, run the second also without them."""
        w = weights / weights.max()
        n_iter = self._run_first(w)
        first = _Point(self.M, self.problem, w)
        first.read_dual(self._highs, np.asarray(self._highs.getSolution().col_value))
        first.read_primal(self._highs)
        if first.gap > FINE:
            # If HiGHS fails here, the gap stays as it is.
            with suppress(LeaveoutError):
                n_iter += self._refine(first)
        rules = (FACE, ROUNDING) if first.has_near_ties else (FACE,)
        found = [self._settle(first, weights, n_iter, tie) for tie in rules]
        found.sort(key=lambda solution: solution.face is None)
        return replace(found[0], rival=found[1]) if len(found) > 1 else found[0]

    def _settle(
        self, first: _Point, weights: FloatArray, n_iter: int, tie: float
    ) -> LoomSolution:
        """Run the second stage; keep the point of the first if digits were lost."""
        try:
            n_iter += self._run_second(first, tie)
        except LeaveoutError:  # the slacks are still minimal
            return self._solution(first, weights, n_iter, None)
        second = _Point(self.M, self.problem, first.w)
        second.u, second.s, second.low = first.u, first.s, first.low
        second.read_primal(self._highs)
        face = self._face(first, tie)
        if second.gap > OPTIMAL and second.gap > 2.0 * first.gap:
            second = first
        return self._solution(second, weights, n_iter, face)

    def _run_first(self, w: FloatArray) -> int:
        """Minimise the slacks."""
        highs, n = self._highs, w.size
        infinity = highs.inf
        upper = np.concatenate([w, np.where(w > 0.0, infinity, 0.0)])
        _set_columns(highs, np.zeros(2 * n), upper)
        _set_rows(highs, np.where(w > 0.0, 0.0, infinity))
        if self.start is not None:
            highs.setBasis(self.start)
        n_iter = _run(highs)
        if self.start is None:
            self.start = highs.getBasis()
        return n_iter

    def _refine(self, first: _Point) -> int:
        """Solve for the error of u, magnified, because HiGHS solves only to 1e-10.

        The bounds of u, s and M' u <= s are shifted to the point that was found and
        scaled; costs and basis stay (iterative refinement of a linear program).
        """
        highs, w = self._highs, first.w
        at = np.append(first.u, np.maximum(0.0, self.M.T @ first.u))
        at[w.size :][w == 0.0] = 0.0
        top = np.append(w, np.where(w > 0.0, highs.inf, 0.0))
        _set_columns(highs, -LENS * at, np.minimum(LENS * (top - at), highs.inf))
        spare = at[w.size :] - self.M.T @ first.u
        lack = -LENS * float(first.u @ self.problem.y)
        _set_rows(highs, np.where(w > 0.0, LENS * spare, highs.inf), lack)
        n_iter = _run(highs)
        first.read_dual(highs, at + np.asarray(highs.getSolution().col_value) / LENS)
        first.read_primal(highs)
        return n_iter

    def _run_second(self, first: _Point, tie: float) -> int:
        """Minimise the sum of a on the optimal face of the first stage."""
        highs, infinity, w = self._highs, self._highs.inf, first.w
        # u at 0 can only rise, u at w only fall; if s > 0, a is at its upper bound.
        lower = np.where(first.u > tie, -infinity, 0.0)
        upper = np.where(first.u < w - tie, infinity, 0.0)
        absent = w == 0.0
        lower[absent] = upper[absent] = 0.0
        lower_s = np.where(first.s > tie, -infinity, 0.0)
        upper_s = np.where(absent, 0.0, infinity)
        _set_columns(highs, np.append(lower, lower_s), np.append(upper, upper_s))
        # Columns of M whose dual constraint is slack have a = 0 on the complete face.
        inside = (self.M.T @ first.u - first.s < -tie) | absent
        _set_rows(highs, np.where(inside, infinity, 1.0))
        return _run(highs)

    def _face(self, first: _Point, tie: float) -> LoomFace:
        """Describe the set of optima of both stages, by complementary slackness."""
        n, w = first.w.size, first.w
        solution = self._highs.getSolution()
        v, t = np.split(np.asarray(solution.col_value), 2)
        spare = np.asarray(solution.row_value)[:n] < 1.0 - STILL
        spare |= (self.M.T @ first.u - first.s < -tie) | (w == 0.0)
        full = (first.s > tie) | (t > STILL)
        at_0, at_w = first.u <= tie, first.u >= w - tie
        still = np.abs(v) <= STILL * max(1.0, np.abs(v).max())
        return LoomFace(
            self.M, self.problem.y if self.problem.fit_intercept else None, w,
            np.where(full, CAP, 0.0), np.where(spare, 0.0, CAP),
            low=np.where(at_w & still & (w > 0.0), -np.inf, 1.0),
            high=np.where(at_0 & still, np.inf, 1.0),
            scale=self.scale,
            unique=_Basis(self._highs, self.problem.fit_intercept).is_inside(
                (at_0 | at_w) & still, ~spare & ~full, full
            ),
        )  # fmt: skip

    def _solution(
        self, point: _Point, weights: FloatArray, n_iter: int, face: LoomFace | None
    ) -> LoomSolution:
        """Undo the scaling of kernel and weights."""
        problem = self.problem
        coef = problem.y * point.a / self.scale
        own = coef * problem.K.diagonal()
        f = problem.K @ coef + point.b
        slack = np.maximum(0.0, 1.0 - problem.y * (f - problem.nu * own))
        slack[weights == 0.0] = 0.0
        return LoomSolution(
            coef, point.b, f, f - own, slack,
            np.minimum(point.u * weights.max(), weights), float(weights @ slack),
            point.gap, int((point.a >= CAP * (1 - 1e-9)).sum()), n_iter,
            face is not None and bool(point.gap <= OPTIMAL),
            face is not None and point.proves_labels, point.tight, face,
        )  # fmt: skip


class _Point:
    """Primal and dual point of the scaled problem, from the bases of HiGHS."""

    def __init__(self, M: FloatArray, problem: Problem, w: FloatArray) -> None:
        self.M, self.w, self.y = M, w, problem.y
        self.fit_intercept = problem.fit_intercept
        n = w.size
        self.u, self.s, self.low = np.zeros(n), np.zeros(n), 0.0
        self.a, self.b = np.zeros(n), 0.0
        self.primal, self.tight = float(w.sum()), np.zeros(n, dtype=bool)

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return (self.primal - self.low) / max(1.0, self.primal)

    @property
    def has_near_ties(self) -> bool:
        """Whether a dual quantity is larger than rounding but not clearly nonzero."""
        u, s, w = self.u, self.s, self.w
        parts = np.concatenate([u, w - u, s, s - self.M.T @ u])
        near = (parts > ROUNDING) & (parts <= FACE)
        return bool(near[np.tile(w > 0.0, 4)].any())

    @property
    def proves_labels(self) -> bool:
        """Whether the gap is small relative to the loss of the lightest sample, too."""
        lightest = float(self.w[self.w > 0.0].min(initial=1.0))
        return lightest >= LIGHTEST and self.gap <= OPTIMAL * lightest

    def read_dual(self, highs: Any, read: FloatArray) -> None:
        """Take u from the basis or from HiGHS, whichever gives the better bound."""
        read = read[: self.w.size]
        candidates = [self.u, np.clip(read, 0.0, self.w)]
        basis = _Basis(highs, self.fit_intercept)
        at_upper = np.where(read > 0.5 * self.w, self.w, 0.0)
        at_upper[basis.rows] = 0.0
        pull = at_upper @ self.M[:, basis.columns]
        if basis.has_intercept:
            pull = np.append(pull, at_upper @ self.y)
        solved = basis.solve(self.M, self.y, -pull, transposed=True)
        if solved is not None:
            at_upper[basis.rows] = solved
            candidates.append(np.clip(at_upper, 0.0, self.w))
        self.low, self.u = max(
            ((self._lower_bound(u), u) for u in candidates), key=lambda pair: pair[0]
        )
        self.s = np.maximum(0.0, self.M.T @ self.u)
        self.s[self.w == 0.0] = 0.0
        # Only if s is in the basis; otherwise it is rounding error.
        self.s[~basis.capped] = 0.0

    def read_primal(self, highs: Any) -> None:
        """Take a from the basis or from HiGHS, whichever has the smaller cost."""
        n, solution = self.w.size, highs.getSolution()
        candidates = [-np.asarray(solution.row_dual)[:n]]
        basis = _Basis(highs, self.fit_intercept)
        a = np.where(basis.capped, CAP, 0.0)
        rest = 1.0 - self.M[basis.rows] @ a
        solved = basis.solve(self.M, self.y, rest, transposed=False)
        if solved is not None:
            a[basis.columns] = solved[: basis.columns.size]
            candidates.append(a)
        for a in candidates:
            a = np.clip(a, 0.0, CAP)
            a[self.w == 0.0] = 0.0
            primal, b = self._cost(a)
            if primal <= self.primal + 1e-9 * max(1.0, self.primal):
                self.primal, self.a, self.b = primal, a, b
        moved = np.asarray(solution.col_value)[:n] != 0.0
        self.tight = (self.a > 0.0) | (self.u > FACE) | moved

    def _cost(self, a: FloatArray) -> tuple[float, float]:
        """Return sum w xi at the best b, and b."""
        m, b = self.M @ a, 0.0
        if self.fit_intercept:
            ends = weighted_median_interval(
                self.y * (1.0 - m), self.w, float(self.w[self.y > 0].sum())
            )
            b = float(middle(*np.array(ends)))
        return float(self.w @ np.maximum(0.0, 1.0 - m - self.y * b)), b

    def _lower_bound(self, u: FloatArray) -> float:
        """Return a lower bound by weak duality; violations of sum u y = 0 reduce it."""
        excess = np.maximum(0.0, self.M.T @ u)[self.w > 0.0]
        lack = abs(float(u @ self.y)) if self.fit_intercept else 0.0
        return max(0.0, float(u.sum() - CAP * (excess.sum() + lack)))


class _Basis:
    """Samples with a tight constraint, and as many free coefficients."""

    def __init__(self, highs: Any, fit_intercept: bool) -> None:
        basic = np.asarray(highs.getBasicVariables()[1])
        n = highs.getNumCol() // 2
        slack = -1 - basic[basic < 0]
        in_basis = np.zeros(2 * n, dtype=bool)
        in_basis[basic[basic >= 0]] = True
        outside = np.zeros(n + int(fit_intercept), dtype=bool)
        outside[slack] = True
        self.rows = np.flatnonzero(in_basis[:n])
        self.capped = in_basis[n:] & ~outside[:n]
        self.columns = np.flatnonzero(~outside[:n] & ~in_basis[n:])
        self.has_intercept = fit_intercept and not outside[n]
        self.intercept_settled = self.has_intercept or not fit_intercept
        self.slack = np.flatnonzero(outside[:n])
        self.square = self.rows.size == self.columns.size + int(self.has_intercept)

    def is_inside(
        self, at_bound: BoolArray, open_columns: BoolArray, full: BoolArray
    ) -> bool:
        """Whether no basic variable of the dual is at a bound: the primal is unique.

        ``at_bound`` marks the v at a bound, ``open_columns`` the dual constraints that
        hold with equality and do not fix their coefficient, ``full`` where s is not 0.
        """
        return bool(
            self.square
            and full[self.capped].all()
            and not at_bound[self.rows].any()
            and not open_columns[self.slack].any()
            and self.intercept_settled
        )

    def solve(
        self, M: FloatArray, y: FloatArray, right: FloatArray, *, transposed: bool
    ) -> FloatArray | None:
        """Solve with the square matrix of the basis; return None if it is singular."""
        if not self.square or self.rows.size == 0:
            return np.zeros(0) if self.square else None
        G = M[np.ix_(self.rows, self.columns)]
        if self.has_intercept:
            G = np.column_stack([G, y[self.rows]])
        try:
            solved = solve_lu(factor_lu(G), right, transposed=transposed)
        except LinAlgError:
            return None
        return solved if np.isfinite(solved).all() else None


def loom_matrix(problem: LoomProblem) -> FloatArray:
    """Return M: rows are margins, columns coefficients, (n, n)."""
    M = problem.K * np.multiply.outer(problem.y, problem.y)
    np.fill_diagonal(M, (1.0 - problem.nu) * problem.K.diagonal())
    return M


def _load(M: FloatArray, problem: Problem) -> Any:
    """Return HiGHS with the dual: columns u and s, one row per coefficient, one for b.

    The stages set the bounds.
    """
    n, extra = problem.n_samples, int(problem.fit_intercept)
    G = np.column_stack([M, problem.y]) if extra else M
    n_rows = n + extra
    value = np.concatenate([G.ravel(), np.full(n, -1.0)])
    index = np.concatenate([np.tile(np.arange(n_rows), n), np.arange(n)])
    start = np.append(np.arange(n) * n_rows, n * n_rows + np.arange(n + 1))
    cost = np.concatenate([np.full(n, -1.0), np.full(n, CAP)])
    unset = np.zeros(2 * n), np.zeros(2 * n)
    level = np.zeros(n_rows), np.zeros(n_rows)
    return open_highs(cost, (start, index, value), unset, level, tolerance=1e-10)


def _set_columns(highs: Any, lower: FloatArray, upper: FloatArray) -> None:
    """Set the bounds of u and s."""
    each = np.arange(lower.size, dtype=np.int32)
    highs.changeColsBounds(lower.size, each, lower, upper)


def _run(highs: Any) -> int:
    """Run HiGHS; return its number of steps."""
    return run_simplex(highs, STRATEGIES, "linear program of the LOOM")


def _set_rows(highs: Any, upper: FloatArray, intercept: float = 0.0) -> None:
    """Set the right-hand sides of M' u - s <= 0, and that of the intercept."""
    for row, level in enumerate(upper.tolist()):  # HiGHS 1.13 can set all at once
        highs.changeRowBounds(row, -highs.inf, level)
    for row in range(upper.size, highs.getNumRow()):
        highs.changeRowBounds(row, intercept, intercept)


def loo_loom_refit(
    problem: LoomProblem,
    solution: LoomSolution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
) -> LooIntervals:
    """Leave every sample out of one LOOM, by warm-started linear programs.

    Parameters are those of :func:`~leaveout.engine._walk.loo_walk`; folds are single
    samples, and only their values are valid. ``lower`` and ``upper`` are the ends of f
    over all optima without the sample that have the smallest sum of coefficients.
    """
    solver = LoomSolver(problem)
    full = solver.solve()
    ranges = _Ranges(problem, full)
    rows = np.flatnonzero(ranges.found.settled_by == REFIT)
    if folds is not None:
        rows = np.intersect1d(rows, folds.members)

    def run(part: slice) -> None:
        own = solver if n_threads == 1 else LoomSolver(problem, solver.start)
        for row in rows[part].tolist():
            try:
                ranges.put(row, own.solve_without(row))
            except LeaveoutError:
                ranges.give_up(row, full)

    map_chunks(run, rows.size, n_threads, size=CHUNK)
    counts = {"refits": float(rows.size), "pivots": float(ranges.n_iter.sum())}
    return replace(ranges.found, counts=counts)


def loo_loom_bound(
    problem: LoomProblem,
    solution: LoomSolution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
) -> LooIntervals:
    """Evaluate every sample by the full solution, without the sample's own term.

    The share of wrong samples is the bound of Weston 1999, eq. (11), where a value of 0
    counts as wrong. Nothing is refitted or certified: for this classifier it does not
    bound the leave-one-out error (docs/method/loom).
    """
    values = solution.left_out_values
    # A value of 0 gets the sign that makes it wrong.
    values = np.where(
        loom_errors(problem, solution) & (problem.y * values >= 0.0),
        -problem.y * np.finfo(float).tiny,
        values,
    )
    settled_by = np.where(problem.C > 0.0, ZERO_ALPHA, UNTOUCHED).astype(np.int8)
    reasons = np.full(values.shape, BOUND_ONLY, dtype=np.int8)
    return LooIntervals(values, values, settled_by, reasons, {"refits": 0.0})


def loom_errors(problem: Problem, solution: LoomSolution) -> BoolArray:
    """Return which samples are wrong without their own term, (n,); 0 is wrong."""
    margins = problem.y * solution.left_out_values
    terms = np.abs(problem.K) @ np.abs(solution.coef) + abs(solution.intercept)
    return margins <= np.maximum(ZERO, 1e-13 * terms)


def loom_bound(problem: Problem, solution: LoomSolution) -> float:
    """Return the share of such samples, by weight (Weston 1999, eq. (11))."""
    wrong: FloatArray = loom_errors(problem, solution).astype(np.float64)
    return float(np.average(wrong, weights=problem.C))


LOOM_METHODS = {"refit": loo_loom_refit, "bound": loo_loom_bound}


class _Ranges:
    """Ranges of f over the optimal faces, per sample."""

    def __init__(self, problem: Problem, full: LoomSolution) -> None:
        n = problem.n_samples
        self.problem = problem
        self.found = LooIntervals.empty(n, REFIT)
        self.found.lower[:] = self.found.upper[:] = full.decision_values
        # The program is solved to 1e-6 of the kernel values: it cannot separate samples
        # that are closer than that.
        near = nearly_coincide(problem.K, np.flatnonzero(problem.C > 0.0))
        self.trusted = not near
        self._certify(slice(None), full.labels_proved)
        self.n_iter = np.zeros(n, dtype=np.int64)
        # If a sample has no part in the full optimum, the optimum stays without it; if
        # it is unique, it stays unique.
        unique = full.rival is None and full.face is not None and full.face.unique
        idle = ~full.tight & unique
        self.found.settled_by[idle] = ZERO_ALPHA
        absent = np.flatnonzero(problem.C == 0.0)
        self.found.settled_by[absent] = UNTOUCHED
        for row in absent.tolist():
            self._put_range(row, full)
        settle_singletons(problem, self.found)

    def _certify(self, row: Any, proved: bool) -> None:
        """Record whether a value is certified."""
        reason = CERTIFIED if proved else NOT_CONVERGED
        self.found.uncertified_by[row] = reason if self.trusted else BY_ROUNDING

    def put(self, row: int, left_out: LoomSolution) -> None:
        """Store the range of one sample from the solution without it."""
        self.n_iter[row] = left_out.n_iter
        self._certify(row, left_out.labels_proved)
        self._put_range(row, left_out)

    def give_up(self, row: int, full: LoomSolution) -> None:
        """If HiGHS fails, keep the value without the sample's own term, uncertified."""
        value = full.left_out_values[row]
        self.found.lower[row] = self.found.upper[row] = value
        self._certify(row, False)

    def _put_range(self, row: int, solution: LoomSolution) -> None:
        """Store the range of f over the optimal face, and whether near ties move it."""
        ends = self._range(row, solution)
        if np.isnan(ends).any():
            ends = (solution.decision_values[row],) * 2
            self._certify(row, False)
        self.found.lower[row], self.found.upper[row] = ends
        if solution.rival is not None:
            other = self._range(row, solution.rival)
            if not np.allclose(ends, other, rtol=SAME, atol=SAME):
                self._certify(row, False)

    def _range(self, row: int, solution: LoomSolution) -> tuple[float, float]:
        """Return both ends of f at a sample that was left out, NaN if not found."""
        face = solution.face
        if face is None:
            return np.nan, np.nan
        if face.unique:
            return (solution.decision_values[row],) * 2
        # The face is in terms of a y, with a kernel whose largest value is about 1.
        return face.range_of(self.problem.K[row] * self.problem.y / face.scale)
