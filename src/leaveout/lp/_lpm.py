# SPDX-License-Identifier: BSD-3-Clause
"""The LPM (linear programming machine): an SVM with a 1-norm penalty.

For kernel values K, signs y and weights C, with f_i = sum_j a_j K_ij + b::

    primal   min   sum_j |a_j| + sum_i C_i max(0, 1 - y_i f_i)
    dual     max   sum_i lam_i    s.t.   |sum_i lam_i y_i K_ij| <= 1 for all j,
                                         sum_i lam_i y_i = 0,   0 <= lam_i <= C_i

(Tsuda, Rätsch, Mika & Müller 2001, eq. (1)). The kernel need not be definite. HiGHS
solves the dual, which has a third of the primal's columns. The final basis is then
solved again in full precision, and the primal and dual values are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from leaveout._typing import BoolArray, FloatArray, IntArray, StateArray
from leaveout.engine._certificate import weighted_median_interval
from leaveout.engine._problem import BOUNDED, MARGIN, OUTSIDE, Problem, middle
from leaveout.engine._walk import factor_lu, solve_lu
from leaveout.lp._highs import open_highs, run_simplex

# Relative duality gap below which a primal-dual pair counts as optimal.
OPTIMAL = 1e-9
# If rounding alone may cause a larger gap than this, a gap proves nothing.
LARGEST_ROUNDING = 1e-6
# Tried in this order: the others are for the rare program that the first cannot solve.
STRATEGIES: tuple[dict[str, Any], ...] = (
    {"simplex_strategy": 1, "presolve": "off"},
    {"simplex_strategy": 4, "presolve": "off"},
    {"simplex_strategy": 1, "presolve": "on"},
)


@dataclass(frozen=True)
class LpmBasis:
    """Which quantities are at their kinks."""

    rows: StateArray  # (n,), OUTSIDE (lam = 0), MARGIN (y f = 1) or BOUNDED (lam = C)
    # Sign of each coefficient that is not fixed at 0, else 0; the intercept is last.
    columns: StateArray

    @property
    def margin(self) -> IntArray:
        """Rows with y f = 1."""
        return np.flatnonzero(self.rows == MARGIN)

    @property
    def active(self) -> IntArray:
        """Columns that are not fixed at 0; as many as there are rows in ``margin``."""
        return np.flatnonzero(self.columns)


@dataclass(frozen=True)
class LpmSolution:
    """An optimum of the LPM, with its certificate."""

    coef: FloatArray  # (n,), signed coefficients a
    intercept: float  # the middle of the interval that is optimal for this a
    decision_values: FloatArray  # (n,), f = K a + b
    row_dual: FloatArray  # (n,), lam
    objective: float  # primal value
    duality_gap: float  # as in :func:`lpm_certificate`
    n_iter: int  # simplex steps
    converged: bool  # the gap is below 1e-9, or at the level of rounding
    basis: LpmBasis  # the vertex; if several b are optimal, it has one of the ends

    @property
    def alpha(self) -> FloatArray:
        """``row_dual``, by the name it has in an SVM."""
        return self.row_dual


def solve_lpm(problem: Problem) -> LpmSolution:
    """Solve one binary LPM; a sample with C = 0 has neither row nor column."""
    return LpmSolver(problem).solve()


class LpmSolver:
    """Solve one problem, or the problem without a sample, by its dual in HiGHS.

    ``start`` is the final basis of another solver of the same problem.
    """

    def __init__(self, problem: Problem, start: Any = None) -> None:
        self.problem, self.start = problem, start
        self._highs = _load(problem)

    def solve(self) -> LpmSolution:
        """Solve from scratch; keep the basis for warm starts."""
        n_iter = self._run()
        self.start = self._highs.getBasis()
        return self._solution(self.problem, n_iter)

    def solve_without(self, row: int) -> LpmSolution:
        """Solve without a sample, warm-started from the full basis.

        Bounds disable its row and column for the solve.
        """
        highs = self._highs
        highs.setBasis(self.start)
        highs.changeColBounds(row, 0.0, 0.0)
        highs.changeRowBounds(row, -highs.inf, highs.inf)
        try:
            return self._solution(leave_row_out(self.problem, row), self._run())
        finally:
            if self.problem.C[row] > 0.0:
                highs.changeColBounds(row, 0.0, float(self.problem.C[row]))
                highs.changeRowBounds(row, -1.0, 1.0)

    def _run(self) -> int:
        """Run HiGHS; return its number of steps."""
        return run_simplex(self._highs, STRATEGIES, "linear program of the LPM")

    def _solution(self, problem: Problem, n_iter: int) -> LpmSolution:
        """Solve the basis again; keep the result of HiGHS if it is better."""
        basis = _read_basis(self._highs.getBasis(), problem)
        z, row_dual = solve_lpm_basis(problem, basis)
        own = make_lpm_solution(problem, z, row_dual, basis, n_iter)
        if own.converged:
            return own
        found = self._highs.getSolution()
        z, row_dual = -np.asarray(found.row_dual), np.asarray(found.col_value)
        theirs = make_lpm_solution(problem, z, row_dual, basis, n_iter)
        return min(own, theirs, key=lambda solution: solution.duality_gap)


def leave_row_out(problem: Problem, row: int) -> Problem:
    """Return the problem in which a sample has C = 0."""
    C = problem.C.copy()
    C[row] = 0.0
    return replace(problem, C=C)


def make_lpm_solution(
    problem: Problem, z: FloatArray, row_dual: FloatArray, basis: LpmBasis, n_iter: int
) -> LpmSolution:
    """Set b to the middle of its interval, and compute the duality gap.

    ``z`` holds the coefficients and, with an intercept, b.
    """
    y, C, n = problem.y, problem.C, problem.n_samples
    coef = np.where(C > 0.0, z[:n], 0.0)
    g = problem.K @ coef
    b = 0.0
    if problem.fit_intercept:
        ends = weighted_median_interval(y - g, C, float(C[y > 0].sum()))
        b = float(middle(*np.array(ends)))
    f = g + b
    row_dual = np.clip(row_dual, 0.0, C)
    primal, gap, optimal = lpm_certificate(
        problem, coef[None], f[None], (row_dual * y)[None], C[None]
    )
    return LpmSolution(
        coef, b, f, row_dual, float(primal[0]), float(gap[0]), n_iter,
        bool(optimal[0]), basis,
    )  # fmt: skip


def lpm_certificate(
    problem: Problem,
    coefs: FloatArray,
    values: FloatArray,
    slopes: FloatArray,
    bounds: FloatArray,
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Compare k primal points with k dual points; arrays are (k, n).

    ``coefs`` and ``values`` are a and f = K a + b, ``slopes`` lam * y with 0 <= lam <=
    ``bounds``, the C of each (0: neither row nor column). Return primal values, gaps
    (primal - dual) / max(1, primal), and whether a gap is below 1e-9, or below what
    rounding alone may cause, if that is below 1e-6. A dual point is first scaled until
    it is feasible; its violation of sum(lam y) = 0 is added to the gap.
    """
    hinge = np.maximum(0.0, 1.0 - problem.y * values)
    primal = np.abs(coefs).sum(axis=1) + (bounds * hinge).sum(axis=1)
    pull = np.abs(slopes @ problem.K)
    excess = np.where(bounds > 0.0, pull, 0.0).max(axis=1)
    total = np.abs(slopes).sum(axis=1)
    dual = total / np.maximum(1.0, excess)
    lack = np.zeros(primal.size)
    if problem.fit_intercept:
        lack = np.abs(slopes.sum(axis=1))
    gap = (primal - dual + lack) / np.maximum(1.0, primal)
    # The sums lam y K and a K are accurate to a few eps of their terms, and the hinge
    # multiplies the error of f by C.
    size = 4.0 * np.finfo(float).eps * np.abs(problem.K).max()
    norm = np.abs(coefs).sum(axis=1)
    rounding = size * (total + bounds.sum(axis=1) * (norm / np.maximum(1.0, primal)))
    small = gap <= np.maximum(OPTIMAL, rounding)
    return primal, gap, small & (rounding <= LARGEST_ROUNDING)


def design_matrix(problem: Problem) -> FloatArray:
    """Return G with f = G z: the kernel values and, with an intercept, ones."""
    if not problem.fit_intercept:
        return problem.K
    return np.column_stack([problem.K, np.ones(problem.n_samples)])


def _load(problem: Problem) -> Any:
    """Return HiGHS with the dual: n columns lam, one row per coefficient, one for b."""
    y, C, n = problem.y, problem.C, problem.n_samples
    present = C > 0.0
    n_rows = n + int(problem.fit_intercept)
    reach = np.where(present, 1.0, np.inf)
    level = np.zeros(n_rows - n)
    value = (y[:, None] * design_matrix(problem)).ravel()
    matrix = np.arange(n + 1) * n_rows, np.tile(np.arange(n_rows), n), value
    rows = np.concatenate([-reach, level]), np.concatenate([reach, level])
    cost = np.where(present, -1.0, 0.0)
    return open_highs(cost, matrix, (np.zeros(n), C), rows, tolerance=1e-9)


def _read_basis(found: Any, problem: Problem) -> LpmBasis:
    """Convert the basis of the dual: its basic columns are the rows at y f = 1."""
    from highspy import HighsBasisStatus as Status

    n = problem.n_samples
    rows = np.full(n, OUTSIDE, dtype=np.int8)
    columns = np.zeros(len(found.row_status), dtype=np.int8)
    for i, status in enumerate(found.col_status):
        if status == Status.kBasic:
            rows[i] = MARGIN
        elif status == Status.kUpper and problem.C[i] > 0.0:
            rows[i] = BOUNDED
    for j, status in enumerate(found.row_status):
        if status != Status.kBasic:
            columns[j] = -1 if status == Status.kLower else 1
    return LpmBasis(rows, columns)


def solve_lpm_basis(problem: Problem, basis: LpmBasis) -> tuple[FloatArray, FloatArray]:
    """Return z and lam of a vertex; zeros if its matrix is singular."""
    margin, active = basis.margin, basis.active
    y, n = problem.y, problem.n_samples
    z = np.zeros(basis.columns.size)
    lam = np.where(basis.rows == BOUNDED, problem.C, 0.0)
    if margin.size == 0 or margin.size != active.size:
        return z, lam
    G = design_matrix(problem)
    try:
        lu = factor_lu(G[np.ix_(margin, active)])
        z[active] = solve_lu(lu, y[margin])
        # Stationarity of the active columns: sum_i lam_i y_i G_ij = sign of z_j, or 0.
        wanted = np.where(active < n, basis.columns[active], 0.0)
        wanted = wanted - (lam * y) @ G[:, active]
        lam[margin] = y[margin] * solve_lu(lu, wanted, transposed=True)
    except linalg.LinAlgError:
        return np.zeros_like(z), lam
    return np.nan_to_num(z), np.nan_to_num(lam)
