# SPDX-License-Identifier: BSD-3-Clause
"""Methods "consolidated" and "magic": all left-out problems at once, by smoothing.

Wang & Yang (2022), after Wang & Zou (2022): leaving j out is the same as C_j = 0, so
all left-out problems have the same kernel matrix. If ``low_i <= y_i f(x_i) <= high_i``
holds in all of them, high_i < 1 means alpha_i = C_i in all but its own, and low_i > 1
means alpha_i = 0 (docs/method/consolidated).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import (
    weighted_median_interval,
    weighted_median_intervals,
)
from leaveout.engine._problem import (
    CERTIFIED,
    CONSOLIDATED,
    NOT_CONVERGED,
    REFIT,
    Folds,
    LooIntervals,
    Problem,
    Solution,
)
from leaveout.engine._solve import solve_without
from leaveout.engine._walk import settle_from_solution
from leaveout.methods._left_out_interval import distances_from, left_out_radii
from leaveout.methods._smoothing import FoldProblems, Iterate, certify, solve_folds
from leaveout.run._parallel import map_chunks

RULES = ("same_C", "path")
# Left-out problems certified at a time.
BLOCK = 128
# A margin must differ from 1 by more than rounding errors.
SLACK = 1e-9
# Folds screened at a time.
SCREEN_BLOCK = 256


def loo_consolidated(
    problem: Problem,
    solution: Solution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
    rule: str = "same_C",
    memory: PathMemory | None = None,
) -> LooIntervals:
    """Leave every sample out of one binary SVM: screen, then solve all at once.

    Parameters
    ----------
    problem, solution, folds, n_threads
        As in :func:`~leaveout.engine._walk.loo_walk`; single samples only.
    labels_only : bool, default=False
        Do not solve for samples that are wrong even in the full solution.
    rule : {"same_C", "path"}, default="same_C"
        Screening rule. "same_C" uses the full solution at the same C, with balls around
        it. "path" uses all left-out solutions at the previous C, as in the paper; at
        the first C of a path no sample is screened.
    memory : PathMemory, optional
        Results of the call at the previous C; overwritten.

    Returns
    -------
    LooIntervals
        The counts hold "screened" of "screened_of" samples, "folds" that were solved,
        majorise-minimise "steps", and "refits": samples whose optimum smoothing did not
        prove.
    """
    if rule not in RULES:
        raise ValueError(f"rule must be 'same_C' or 'path'; got {rule!r}.")
    return _leave_out(problem, solution, labels_only, n_threads, rule, memory)


def loo_magic(
    problem: Problem,
    solution: Solution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
) -> LooIntervals:
    """Leave every sample out of one binary SVM: solve all at once, no screening.

    This is the algorithm of Wang & Zou (2022): :func:`loo_consolidated` without
    screening.
    """
    return _leave_out(problem, solution, labels_only, n_threads, None, None)


def _leave_out(
    problem: Problem,
    solution: Solution,
    labels_only: bool,
    n_threads: int,
    rule: str | None,
    memory: PathMemory | None,
) -> LooIntervals:
    """Run either method."""
    keep_all = rule == "path"  # the next C needs every left-out solution
    found = LooIntervals.from_solution(solution)
    rows = settle_from_solution(problem, solution, found, labels_only and not keep_all)
    copies = rows if keep_all else problem.first_copies(rows)
    leaders = np.unique(copies)
    screened = Screened.nothing(problem)
    if rule == "same_C" and solution.converged:
        screened = screen_at_same_C(problem, solution, leaders)
    elif keep_all and memory is not None and solution.converged:
        screened = screen_along_path(problem, memory.last)
    folds = _solve_folds(problem, solution, leaders, screened, n_threads)
    folds.store(found)
    found.share_with_copies(rows, copies)
    if keep_all and memory is not None:
        memory.last = Solved.of(problem, solution, leaders, folds.beta, folds.values)
    n = problem.n_samples
    counts = {
        "screened": float(n - screened.kept.size) if rule else 0.0,
        "screened_of": float(n),
        "folds": float(leaders.size),
        "shared": float(rows.size - leaders.size),
        "steps": float(folds.n_steps),
        "refits": float(np.count_nonzero(folds.refitted)),
    }
    return replace(found, counts=counts)


class _Folds:
    """Problems without one sample each, one row per sample, to be proved or refitted.

    ``beta`` holds the signed coefficients, zero at the left-out sample.
    """

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        rows: IntArray,
        beta: FloatArray,
        n_steps: int,
    ) -> None:
        self.problem, self.solution = problem, solution
        self.rows, self.beta, self.n_steps = rows, beta, n_steps
        self.values = np.empty_like(beta)  # K beta
        self.low, self.high = np.empty((2, rows.size))  # interval of b
        self.certified, self.refitted = np.empty((2, rows.size), dtype=bool)

    def prove(self, part: slice) -> None:
        """Check the coefficients on all samples, including the screened ones."""
        problem, rows = self.problem, self.rows[part]
        bounds = np.tile(problem.C, (rows.size, 1))
        bounds[np.arange(rows.size), rows] = 0.0
        none = np.zeros_like(bounds), np.zeros(rows.size)
        full = FoldProblems(problem.K, problem.y, bounds, *none, problem.fit_intercept)
        proof = certify(full, self.beta[part])
        self.values[part], self.low[part], self.high[part], optimal = proof
        self.certified[part], self.refitted[part] = optimal, ~optimal

    def refit(self, which: IntArray) -> None:
        """Solve some problems again."""
        for k in which:
            left_out = solve_without(self.problem, self.solution, self.rows[k : k + 1])
            self.beta[k] = left_out.beta
            self.values[k] = left_out.decision_values - left_out.intercept
            self.low[k], self.high[k] = left_out.intercept_interval
            self.certified[k] = left_out.converged

    def store(self, found: LooIntervals) -> None:
        """Write the values of the left-out samples."""
        own, rows = self.values[np.arange(self.rows.size), self.rows], self.rows
        found.lower[rows], found.upper[rows] = own + self.low, own + self.high
        found.settled_by[rows] = np.where(self.refitted, REFIT, CONSOLIDATED)
        found.uncertified_by[rows] = np.where(self.certified, CERTIFIED, NOT_CONVERGED)


def _solve_folds(
    problem: Problem,
    solution: Solution,
    rows: IntArray,
    screened: Screened,
    n_threads: int,
) -> _Folds:
    """Solve the problem without each of some samples; prove the result or refit."""
    kept, k = screened.kept, rows.size
    family, start = _reduce(problem, solution, rows, screened)
    eta, n_steps = solve_folds(family, problem.C[kept], start, n_threads=n_threads)
    beta = np.tile(np.where(screened.bounded, problem.y * problem.C, 0.0), (k, 1))
    beta[:, kept] = eta
    beta[np.arange(k), rows] = 0.0
    folds = _Folds(problem, solution, rows, beta, n_steps)
    map_chunks(folds.prove, k, n_threads, BLOCK)
    failed = np.flatnonzero(folds.refitted)
    map_chunks(lambda part: folds.refit(failed[part]), failed.size, n_threads, size=1)
    return folds


def _reduce(
    problem: Problem, solution: Solution, rows: IntArray, screened: Screened
) -> tuple[FoldProblems, Iterate]:
    """Return the left-out problems on the kept samples, and their start.

    Eq. (8) of the paper, with ybar on L instead of S. The hinge is linear on L, so the
    remaining problem is n_s x n_s.
    """
    K, y, C, kept = problem.K, problem.y, problem.C, screened.kept
    bounded, k = np.flatnonzero(screened.bounded), rows.size
    known = np.where(screened.bounded, y * C, 0.0)
    sigma = np.ascontiguousarray(K[np.ix_(kept, kept)])
    # The left-out sample is bounded, kept, or neither.
    gone, kernel = known[rows, None], K[np.ix_(rows, kept)]
    offsets = known[bounded] @ K[np.ix_(bounded, kept)] - gone * kernel
    totals = known[rows] - known.sum()
    bounds, eta = np.tile(C[kept], (k, 1)), np.tile(solution.beta[kept], (k, 1))
    own = kept == rows[:, None]
    values = (
        eta[:1] @ sigma
        - np.where(own.any(axis=1), solution.beta[rows], 0.0)[:, None] * kernel
    )
    bounds[own] = eta[own] = 0.0
    family = FoldProblems(
        sigma, y[kept], bounds, offsets, totals, problem.fit_intercept
    )
    return family, Iterate(eta, values, np.full(k, solution.intercept))


@dataclass(frozen=True)
class Screened:
    """Samples with alpha = C (bounded) or 0 (outside) in all folds but their own."""

    bounded: BoolArray
    outside: BoolArray

    @classmethod
    def nothing(cls, problem: Problem) -> Screened:
        """Screen only samples with C = 0."""
        absent = problem.C == 0.0
        return cls(np.zeros_like(absent), absent)

    @classmethod
    def by_bounds(cls, problem: Problem, low: FloatArray, high: FloatArray) -> Screened:
        """Screen samples by bounds of their margins that hold in all folds."""
        present = problem.C > 0.0
        return cls(present & (high < 1.0 - SLACK), ~present | (low > 1.0 + SLACK))

    @property
    def kept(self) -> IntArray:
        """Samples to solve for."""
        return np.flatnonzero(~(self.bounded | self.outside))


@dataclass(frozen=True)
class Solved:
    """The full solution and the solutions without each of ``rows``, at one C.

    Leaving out any other sample does not change the full solution. Margins are
    y * (K beta), without the intercept; norms are ||w||.
    """

    problem: Problem
    margins: FloatArray  # (n,)
    norm: float
    rows: IntArray  # (k,)
    left_out_margins: FloatArray  # (k, n)
    left_out_norms: FloatArray  # (k,)

    @classmethod
    def of(
        cls,
        problem: Problem,
        solution: Solution,
        rows: IntArray,
        beta: FloatArray,
        values: FloatArray,
    ) -> Solved:
        """Store what screening needs from coefficients and values K beta, (k, n)."""
        g = solution.decision_values - solution.intercept
        norm = float(np.sqrt(max(0.0, float(solution.beta @ g))))
        norms = np.sqrt(np.maximum(np.einsum("ki,ki->k", beta, values), 0.0))
        return cls(problem, problem.y * g, norm, rows, problem.y * values, norms)

    def ratio(self, problem: Problem) -> float | None:
        """Factor from this C to that of the problem; None for another problem."""
        if self.problem.K is not problem.K:
            return None
        ratio = float(problem.C.sum() / self.problem.C.sum())
        same = np.allclose(problem.C, ratio * self.problem.C, rtol=1e-12, atol=0.0)
        return ratio if same else None


@dataclass
class PathMemory:
    """Results of the folds at one C, for the next C."""

    last: Solved | None = None


def screen_at_same_C(  # noqa: N802
    problem: Problem, solution: Solution, rows: IntArray
) -> Screened:
    """Screen by bounds on how far leaving out one of ``rows`` moves the full solution.

    No sample may be the only one of its class.
    """
    n = problem.n_samples
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    bound = _move_with_intercept if problem.fit_intercept else _move_without_intercept
    for part in np.split(rows, range(SCREEN_BLOCK, rows.size, SCREEN_BLOCK)):
        down, up = bound(problem, solution, part)
        own = (np.arange(part.size), part)
        down[own], up[own] = np.inf, -np.inf
        low = np.minimum(low, down.min(axis=0, initial=np.inf))
        high = np.maximum(high, up.max(axis=0, initial=-np.inf))
    return Screened.by_bounds(problem, low, high)


def _move_without_intercept(
    problem: Problem, solution: Solution, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Bound all margins without each row: w - w' is in a ball through zero.

    ``||w - w'||^2 <= <w - w', beta_r phi_r>``: the centre is beta_r phi_r / 2.
    """
    y, K, beta = problem.y, problem.K, solution.beta[rows]
    length = np.sqrt(K.diagonal())
    centre = y * (solution.decision_values - 0.5 * beta[:, None] * K[rows])
    radius = 0.5 * np.abs(beta)[:, None] * length[rows, None] * length
    return centre - radius, centre + radius


def _move_with_intercept(
    problem: Problem, solution: Solution, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Bound all margins without each row: a ball, and order statistics for b.

    f' at x_i is f' at a reference point plus <w', phi_i - reference>. Two reference
    points are tried, the left-out sample and the mean, and the better bound is used.
    """
    y, C, K = problem.y, problem.C, problem.K
    g = solution.decision_values - solution.intercept
    radius, worst, best = left_out_radii(problem, solution, rows)
    sign, diagonal = y[rows], K.diagonal()
    # From the left-out sample.
    reach = radius[:, None] * distances_from(K, rows)
    at = np.where(sign > 0, worst, -best), np.where(sign > 0, best, -worst)
    moved = g - g[rows, None]
    low, high = at[0][:, None] + moved - reach, at[1][:, None] + moved + reach
    # From the mean of all samples.
    to_mean = diagonal - 2.0 * K.mean(axis=0) + K.mean()
    reach = radius[:, None] * np.sqrt(np.maximum(to_mean, 0.0))
    moved = g - g.mean()
    weights = np.tile(C, (rows.size, 1))
    weights[np.arange(rows.size), rows] = 0.0
    level = (weights * (y > 0)).sum(axis=1)
    lower = weighted_median_intervals(y - moved - reach, weights, level)[0]
    upper = weighted_median_intervals(y - moved + reach, weights, level)[1]
    low = np.maximum(low, lower[:, None] + moved - reach)
    high = np.minimum(high, upper[:, None] + moved + reach)
    return np.where(y > 0, low, -high), np.where(y > 0, high, -low)


def screen_along_path(problem: Problem, before: Solved | None) -> Screened:
    """Screen by the folds at the previous C, as Wang & Yang (2022) do.

    Theorem 2.2 without an intercept, Theorem 3.5 with one. No sample is screened at the
    first C, or if the C_i have not all changed by the same factor.
    """
    ratio = None if before is None else before.ratio(problem)
    if before is None or ratio is None:
        return Screened.nothing(problem)
    if problem.fit_intercept:
        return _two_stages(problem, before, ratio)
    stay, stretch = 0.5 * (1.0 + ratio), 0.5 * abs(ratio - 1.0)
    length = np.sqrt(problem.K.diagonal())
    # Theorem 2.2 with sqrt(K_ii) for sqrt(B), and C_j (|K_ij| + sqrt(K_ii K_jj)) / 2
    # over j != i for C B.
    leaving = problem.C * (np.abs(problem.K) + length * length[:, None])
    np.fill_diagonal(leaving, 0.0)
    reach = stretch * length * before.norm + 0.5 * leaving.max(axis=1)
    centre = stay * before.margins
    return Screened.by_bounds(problem, centre - reach, centre + reach)


def _two_stages(problem: Problem, before: Solved, ratio: float) -> Screened:
    """Theorem 3.5: Lemmas 3.1 and 3.2, then 3.4 and 3.2 again."""
    y, C = problem.y, problem.C
    stay, stretch = 0.5 * (1.0 + ratio), 0.5 * abs(ratio - 1.0)
    length = np.sqrt(problem.K.diagonal())
    # Lemma 3.1. If alpha = 0 for the left-out sample, the fold has the full solution.
    low = stay * before.margins - stretch * length * before.norm
    high = stay * before.margins + stretch * length * before.norm
    centre = stay * before.left_out_margins
    reach = stretch * before.left_out_norms[:, None] * length
    own = (np.arange(before.rows.size), before.rows)
    down, up = centre - reach, centre + reach
    down[own], up[own] = np.inf, -np.inf
    first_low = np.minimum(low, down.min(axis=0, initial=np.inf))
    first_high = np.maximum(high, up.max(axis=0, initial=-np.inf))
    b = _common_intercept(y, C, first_low, first_high)
    # Lemma 3.4: rho^2 <= C (rho sqrt(B) + width) bounds how far leaving out moves w.
    width, bound, size = b[1] - b[0], float(C.max()), float(length.max())
    if np.isfinite(width):
        half = 0.5 * bound * size
        radius = half + np.sqrt(half**2 + bound * max(0.0, width))
        low, high = low - radius * length, high + radius * length
        low, high = np.maximum(low, first_low), np.minimum(high, first_high)
    else:
        low, high = first_low, first_high
    b = _common_intercept(y, C, low, high)
    return Screened.by_bounds(
        problem, low + np.where(y > 0, b[0], -b[1]), high + np.where(y > 0, b[1], -b[0])
    )


def _common_intercept(
    y: FloatArray, C: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[float, float]:
    """Bound b of all folds from bounds of y K beta (Lemmas 3.2, 3.3).

    Algorithm 2 finds the order statistics by bisection; here they come from a sort.
    Leaving one sample out can change the total weight of its class by its C, hence two
    levels.
    """
    positive = y > 0
    level = float(C[positive].sum())
    at_low = np.where(positive, 1.0 - high, low - 1.0)
    at_high = np.where(positive, 1.0 - low, high - 1.0)
    least = level - float(C[positive].max(initial=0.0))
    most = level + float(C[~positive].max(initial=0.0))
    return (
        weighted_median_interval(at_low, C, least)[0],
        weighted_median_interval(at_high, C, most)[1],
    )
