# SPDX-License-Identifier: BSD-3-Clause
"""Which coefficients are the same in all left-out problems: three rules.

If ``low_i <= y_i f(x_i) <= high_i`` holds in all of them, high_i < 1 means
alpha_i = C_i in all but its own, and low_i > 1 means alpha_i = 0. The rules "path" of
Wang & Yang (2022) and "same_C" prove such bounds. The rule "first_order" only predicts
them, so its result must be checked on all samples (docs/method/consolidated).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import (
    weighted_median_interval,
    weighted_median_intervals,
)
from leaveout.engine._problem import Problem, Solution
from leaveout.methods._exchange import Tableau
from leaveout.methods._left_out_interval import distances_from, left_out_radii

# A margin must differ from 1 by more than rounding errors.
SLACK = 1e-9
# How many times the first-order change may bring a sample to the margin. With 1 a few
# folds fail the proof; more than 1.5 keeps more samples than needed.
REACH = 1.5
# With fewer samples, or if more than this share must be kept, none is screened.
FEW, MOST = 64, 0.75
# Folds screened at a time.
SCREEN_BLOCK = 256


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
        values: FloatArray,
        norms: FloatArray,
    ) -> Solved:
        """Store what screening needs from values K beta, (k, n), and norms ||w||."""
        g = solution.decision_values - solution.intercept
        norm = float(np.sqrt(max(0.0, float(solution.beta @ g))))
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


def screen_by_first_order(
    problem: Problem, groups: list[tuple[IntArray, Tableau]]
) -> Screened:
    """Keep samples that the first-order change can bring to the margin.

    Leaving out j changes f by a known amount as long as no sample changes its set. This
    is a strong rule (Tibshirani et al. 2012): sharper than a bound, but not a proof.
    """
    if problem.n_samples < FEW:
        return Screened.nothing(problem)
    keep = np.zeros(problem.n_samples, dtype=bool)
    for rows, tableau in groups:
        change = problem.y * tableau.first_order(rows)
        change[np.arange(rows.size), rows] = 0.0
        most = np.where(tableau.bounded, change.max(axis=0), -change.min(axis=0))
        distance = np.abs(problem.y * tableau.f - 1.0)
        keep |= tableau.margin | (REACH * np.maximum(most, 0.0) >= distance - SLACK)
    keep &= problem.C > 0.0
    if keep.sum() > MOST * keep.size:
        return Screened.nothing(problem)
    bounded = groups[0][1].bounded & ~keep
    return Screened(bounded, ~bounded & ~keep)


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
