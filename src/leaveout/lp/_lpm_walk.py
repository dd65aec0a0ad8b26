# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out for the LPM.

Leaving p out removes row p and column p from the linear program. Samples with a_p = 0
and lam_p = 0 change nothing; for all others a few pivots lead from the basis of the
full optimum to an optimum without p (docs/method/lpm). The optimum of a linear program
need not be unique, so the range of f(x_p) over all optima is computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._problem import (
    BOUNDED,
    CERTIFIED,
    NOT_CONVERGED,
    REFIT,
    UNTOUCHED,
    ZERO_ALPHA,
    Folds,
    LooIntervals,
    Problem,
)
from leaveout.engine._walk import invert, settle_singletons
from leaveout.lp._lpm import (
    LpmBasis,
    LpmSolution,
    LpmSolver,
    design_matrix,
    leave_row_out,
    lpm_certificate,
    solve_lpm_basis,
)
from leaveout.lp._lpm_fast import Status, leave_out_rows, work_sizes
from leaveout.run._parallel import map_chunks

# A sample that needs more pivots is refitted.
CAPACITY = 1024
# Samples per part: their certificates are two matrix products.
CHUNK = 64
# Rates and margins have ends at 1: four digits are needed to recognise ties.
UNKNOWN = 1e-4


def loo_lpm_walk(
    problem: Problem,
    solution: LpmSolution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
) -> LooIntervals:
    """Leave every sample out of one LPM, by pivots from the full basis.

    Parameters are those of :func:`~leaveout.engine._walk.loo_walk`; folds are single
    samples, and only their values are valid. ``lower`` and ``upper`` are the ends of f
    over all optima without the sample.
    """
    leaver = _Leaver(problem, solution, folds, n_threads)
    tableau = None
    if solution.converged:
        tableau = build_lpm_tableau(problem, solution.basis)
    if tableau is not None:
        leaver.walk(tableau)
    return leaver.refit()


def loo_lpm_refit(
    problem: Problem,
    solution: LpmSolution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
) -> LooIntervals:
    """Do the same by one warm-started linear program per sample."""
    return _Leaver(problem, solution, folds, n_threads).refit()


LPM_METHODS = {"walk": loo_lpm_walk, "refit": loo_lpm_refit}


class _Leaver:
    """Values found so far, and the samples that are still open."""

    def __init__(
        self,
        problem: Problem,
        solution: LpmSolution,
        folds: Folds | None,
        n_threads: int,
    ) -> None:
        self.problem, self.n_threads = problem, n_threads
        n = problem.n_samples
        self.found = found = LooIntervals.empty(n)
        found.lower[:] = found.upper[:] = np.nan
        found.uncertified_by[:] = NOT_CONVERGED
        idle = (solution.coef == 0.0) & (solution.row_dual == 0.0)
        found.settled_by[idle] = ZERO_ALPHA
        found.settled_by[problem.C == 0.0] = UNTOUCHED
        rows = np.arange(n) if folds is None else folds.members
        self.rows = np.setdiff1d(rows, settle_singletons(problem, found))
        self.counts = {"pivots": 0.0, "refits": 0.0, "walks": 0.0}

    def walk(self, tableau: LpmTableau) -> None:
        """Write the values of the samples whose walks succeed."""
        problem, found, rows = self.problem, self.found, self.rows
        done = np.zeros(rows.size, dtype=bool)
        pivots = np.zeros(rows.size, dtype=np.int64)

        def run(part: slice) -> None:
            own = rows[part]
            walked = _walk(problem, tableau, own)
            good = walked.certified
            found.lower[own[good]] = walked.least[good]
            found.upper[own[good]] = walked.most[good]
            found.uncertified_by[own[good]] = CERTIFIED
            done[part], pivots[part] = good, walked.n_pivots

        map_chunks(run, rows.size, self.n_threads, size=CHUNK)
        self.counts["pivots"] += float(pivots.sum())
        self.counts["walks"] += float(np.count_nonzero(pivots))
        self.rows = rows[~done]

    def refit(self) -> LooIntervals:
        """Solve one linear program per open sample; return all values."""
        if self.rows.size:
            solver = LpmSolver(self.problem)
            solver.solve()

            def run(part: slice) -> None:
                own = LpmSolver(self.problem, solver.start)
                for row in self.rows[part].tolist():
                    self._refit(own, row)

            map_chunks(run, self.rows.size, self.n_threads, size=CHUNK)
        self.counts["refits"] = float(self.rows.size)
        return replace(self.found, counts=self.counts)

    def _refit(self, solver: LpmSolver, row: int) -> None:
        """Write the value of one sample; its range comes from the last basis."""
        found, left_out = self.found, solver.solve_without(row)
        found.lower[row] = found.upper[row] = left_out.decision_values[row]
        if found.settled_by[row] != UNTOUCHED:
            found.settled_by[row] = REFIT
        walked = _prove_again(self.problem, left_out.basis, row)
        if walked is not None and walked.certified[0]:
            found.lower[row], found.upper[row] = walked.least[0], walked.most[0]
            found.uncertified_by[row] = CERTIFIED


@dataclass(frozen=True)
class _Walked:
    """Ends of k walks."""

    least: FloatArray  # (k,), range of f
    most: FloatArray  # (k,)
    certified: BoolArray  # (k,), whether the range is proved
    n_pivots: np.ndarray  # (k,)


def _walk(
    problem: Problem,
    tableau: LpmTableau,
    rows: IntArray,
    proved: bool = True,
) -> _Walked:
    """Leave some samples out, one at a time, and prove the results.

    ``proved`` says whether the optimum of the tableau is proved.
    """
    n, m = tableau.T.shape
    n_floats, n_integers = work_sizes(n, m, CAPACITY)
    z_least, z_most = np.zeros((rows.size, m)), np.zeros((rows.size, m))
    slopes = np.zeros((rows.size, n))
    pivots = np.zeros(rows.size, dtype=np.int64)
    status = np.zeros(rows.size, dtype=np.int8)
    leave_out_rows(
        tableau.T, tableau.transposed, tableau.basic, tableau.nonbasic, tableau.x,
        tableau.side, tableau.D, tableau.kink, tableau.has_kink, tableau.low,
        tableau.high, problem.y, tableau.rate_slack, tableau.value_slack, proved, rows,
        np.empty(n_floats), np.empty(n_integers, dtype=np.intp), CAPACITY,
        z_least, z_most, slopes, pivots, status,
    )  # fmt: skip
    # Without a pivot the full optimum is also optimal without the sample.
    least, certified = tableau.values[rows], status == Status.DONE
    most = least.copy()
    moved = certified & (pivots > 0) if proved else certified.copy()
    least[moved], optimal = _certify(
        problem, rows[moved], z_least[moved], slopes[moved]
    )
    most[moved] = least[moved]
    certified[moved] = optimal
    several = moved & (z_least != z_most).any(axis=1)
    most[several], optimal = _certify(
        problem, rows[several], z_most[several], slopes[several]
    )
    certified[several] &= optimal
    least, most = np.minimum(least, most), np.maximum(least, most)
    return _Walked(least, most, certified, pivots)


def _prove_again(problem: Problem, basis: LpmBasis, row: int) -> _Walked | None:
    """Find the range of one sample from a basis without it."""
    without = leave_row_out(problem, row)
    tableau = build_lpm_tableau(without, basis)
    if tableau is None:
        return None
    return _walk(without, tableau, np.array([row]), proved=False)


def _certify(
    problem: Problem, rows: IntArray, z: FloatArray, slopes: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return f at the left-out sample, and whether the point without it is optimal.

    Both are computed from z and the row duals only, not from values the walk updated.
    """
    n, each = problem.n_samples, np.arange(rows.size)
    coefs = z[:, :n]
    values = coefs @ problem.K.T
    if problem.fit_intercept:
        values += z[:, n:]
    bounds = np.tile(problem.C, (rows.size, 1))
    bounds[each, rows] = 0.0
    row_dual = np.clip(slopes * problem.y, 0.0, bounds)
    _, _, optimal = lpm_certificate(
        problem, coefs, values, row_dual * problem.y, bounds
    )
    return values[each, rows], optimal & (coefs[each, rows] == 0.0)


@dataclass(frozen=True)
class LpmTableau:
    """The optimum as a function of the quantities at their kinks.

    Quantities are f_1 … f_n, then z_1 … z_m: coefficients and intercept
    (``_lpm_fast.pyx``).
    """

    T: FloatArray  # (n, m), basic quantities per unit of the nonbasic ones
    transposed: FloatArray  # (m, n)
    basic: IntArray  # (n,), quantity of each row
    nonbasic: IntArray  # (m,), quantity of each column
    x: FloatArray  # (n,), values of the basic quantities
    side: FloatArray  # (n,), their sides of the kinks
    D: FloatArray  # (m,), rates of the cost
    kink: FloatArray  # (n + m,), of each quantity, like the next three
    has_kink: np.ndarray
    low: FloatArray
    high: FloatArray
    rate_slack: float  # rounding error of D
    value_slack: float  # rounding error of x

    @property
    def values(self) -> FloatArray:
        """Decision values of the full optimum on all samples, (n,)."""
        n = self.x.size
        values = self.kink[:n].copy()
        values[self.basic[self.basic < n]] = self.x[self.basic < n]
        return values


def build_lpm_tableau(problem: Problem, basis: LpmBasis) -> LpmTableau | None:
    """Return the tableau of a basis; None if its matrix is numerically singular."""
    y, C, n = problem.y, problem.C, problem.n_samples
    G = design_matrix(problem)
    m, margin, active = G.shape[1], basis.margin, basis.active
    if margin.size != active.size:
        return None
    T = G.copy()
    if margin.size:
        inverse = invert(G[np.ix_(margin, active)])
        if inverse is None:
            return None
        # Exchange f_M and z_A, all at once.
        left, top = G[:, active] @ inverse, inverse @ G[margin]
        T -= left @ G[margin]
        T[margin], T[:, active] = -top, left
        T[np.ix_(margin, active)] = inverse
    basic, nonbasic = np.arange(n), np.arange(n, n + m)
    basic[margin], nonbasic[active] = n + active, margin
    kink = np.concatenate([y, np.zeros(m)])
    present = C > 0.0
    has_kink = np.concatenate([present, present, np.zeros(m - n, dtype=bool)])
    cost, reach = np.where(y > 0, C, 0.0), np.where(present, 1.0, np.inf)
    free = np.zeros(m - n)
    low, high = np.r_[cost - C, -reach, free], np.r_[cost, reach, free]
    side = np.where(basis.rows == BOUNDED, -y, y)
    side[margin] = basis.columns[active]
    side[~present] = 1.0
    # From the factors, not from T, whose large inverse would cost digits here.
    z, row_dual = solve_lpm_basis(problem, basis)
    slopes = row_dual * y
    x, D = G @ z, -(slopes @ G)
    x[margin], D[active] = z[active], slopes[margin]
    size = np.abs(G)
    rates, values = np.abs(slopes) @ size, size @ np.abs(z)
    # The residuals of the basis equations move the rest by its columns and rows.
    rate_slack = _slack(rates + rates[active] @ np.abs(T[margin]))
    value_slack = _slack(values + np.abs(T[:, active]) @ values[margin])
    if max(rate_slack, value_slack) > UNKNOWN:
        return None
    return LpmTableau(
        T, np.ascontiguousarray(T.T), basic, nonbasic, x, side, D, kink,
        has_kink.astype(np.uint8), low, high, rate_slack, value_slack,
    )  # fmt: skip


def _slack(terms: FloatArray) -> float:
    """Return the rounding error of sums, given the sums of the sizes of their terms."""
    return max(1e-11, 16 * np.finfo(float).eps * float(terms.max()))
