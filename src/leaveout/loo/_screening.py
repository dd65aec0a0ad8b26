# SPDX-License-Identifier: BSD-3-Clause
"""Samples whose coefficient is known in every left-out machine, before any is solved.

A bound ``low_i <= y_i f(x_i) <= high_i`` that holds for all left-out machines at once
settles a sample: high_i < 1 means alpha_i = C_i in all of them but its own, low_i > 1
means alpha_i = 0. Derivations: docs/method/consolidated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.solve import (
    Solution,
    left_out_radii,
    weighted_median_interval,
    weighted_median_intervals,
)

# A margin must be on its side of 1 by more than rounding.
SLACK = 1e-9
# Left-out machines worked on at a time.
BLOCK = 256


@dataclass(frozen=True)
class Screened:
    """Samples with known coefficients.

    Parameters
    ----------
    bounded, outside : ndarray of bool, shape (n,)
        alpha_i = C_i, and alpha_i = 0, in every left-out machine but that of i.
    """

    bounded: BoolArray
    outside: BoolArray

    @classmethod
    def nobody(cls, problem: Problem) -> Screened:
        """Only samples that are absent anyway."""
        absent = problem.C == 0.0
        return cls(np.zeros_like(absent), absent)

    @classmethod
    def by_bounds(cls, problem: Problem, low: FloatArray, high: FloatArray) -> Screened:
        """Settle samples by bounds of their margins."""
        present = problem.C > 0.0
        return cls(present & (high < 1.0 - SLACK), ~present | (low > 1.0 + SLACK))

    @property
    def kept(self) -> IntArray:
        """Samples to solve for."""
        return np.flatnonzero(~(self.bounded | self.outside))


@dataclass(frozen=True)
class Solved:
    """The machine and all left-out machines at one C.

    Parameters
    ----------
    problem : Problem
        The machine.
    margins : ndarray of shape (n,)
        ``y * (K beta)`` of the full solution, without the bias.
    norm : float
        ||w|| of the full solution.
    rows : ndarray of shape (k,)
        Left-out samples; without any other the machine is that of the full solution.
    left_out_margins : ndarray of shape (k, n)
        ``y * (K beta)`` without each of the rows.
    left_out_norms : ndarray of shape (k,)
        ||w|| without each of the rows.
    """

    problem: Problem
    margins: FloatArray
    norm: float
    rows: IntArray
    left_out_margins: FloatArray
    left_out_norms: FloatArray

    @classmethod
    def of(
        cls,
        problem: Problem,
        solution: Solution,
        rows: IntArray,
        beta: FloatArray,
        values: FloatArray,
    ) -> Solved:
        """Keep what screening needs of coefficients and values K beta, (k, n)."""
        g = solution.decision_values - solution.intercept
        squared = np.einsum("ki,ki->k", beta, values)
        return cls(
            problem,
            problem.y * g,
            float(np.sqrt(max(0.0, float(solution.beta @ g)))),
            rows,
            problem.y * values,
            np.sqrt(np.maximum(squared, 0.0)),
        )

    def ratio(self, problem: Problem) -> float | None:
        """Factor from these boxes to those of a problem that is else the same."""
        if self.problem.K is not problem.K:
            return None
        ratio = float(problem.C.sum() / self.problem.C.sum())
        same = np.allclose(problem.C, ratio * self.problem.C, rtol=1e-12, atol=0.0)
        return ratio if same else None


@dataclass
class PathMemory:
    """What the left-out machines at the last C leave for the next one."""

    last: Solved | None = None


def screen_at_same_C(  # noqa: N802
    problem: Problem, solution: Solution, rows: IntArray
) -> Screened:
    """Screen by how little the full solution moves when one sample leaves.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum.
    rows : ndarray of int
        Samples to be left out, none of them alone in its class.
    """
    n = problem.n_samples
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    bound = _move_with_intercept if problem.fit_intercept else _move_without_intercept
    for first in range(0, rows.size, BLOCK):
        part = rows[first : first + BLOCK]
        down, up = bound(problem, solution, part)
        own = (np.arange(part.size), part)
        down[own], up[own] = np.inf, -np.inf
        np.minimum(low, down.min(axis=0), out=low)
        np.maximum(high, up.max(axis=0), out=high)
    return Screened.by_bounds(problem, low, high)


def _move_without_intercept(
    problem: Problem, solution: Solution, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of all margins without each row: w - w' is in a ball through zero.

    ``||w - w'||^2 <= <w - w', beta_r phi_r>``, of centre beta_r phi_r / 2.
    """
    y, K, beta = problem.y, problem.K, solution.beta[rows]
    length = np.sqrt(K.diagonal())
    centre = y * (solution.decision_values - 0.5 * beta[:, None] * K[rows])
    radius = 0.5 * np.abs(beta)[:, None] * length[rows, None] * length
    return centre - radius, centre + radius


def _move_with_intercept(
    problem: Problem, solution: Solution, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of all margins without each row: a ball, and order statistics for b.

    f' at x_i is f' at a point of reference plus <w', phi_i - reference>. Two points are
    taken, the left-out sample and the mean of all, and the better bound of each i.
    """
    y, C, K = problem.y, problem.C, problem.K
    g = solution.decision_values - solution.intercept
    radius, worst, best = left_out_radii(problem, solution, rows)
    sign, diagonal = y[rows], K.diagonal()
    # From the left-out sample.
    squared = diagonal + diagonal[rows, None] - 2.0 * K[rows]
    reach = radius[:, None] * np.sqrt(np.maximum(squared, 0.0))
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
    """Screen by the machines at the C before, as Wang & Yang (2022) do.

    Theorem 2.2 without an intercept, Theorem 3.5 with one. Nobody is screened at the
    first C, or if the boxes have not all changed by the same factor.
    """
    ratio = None if before is None else before.ratio(problem)
    if before is None or ratio is None:
        return Screened.nobody(problem)
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
    # Lemma 3.1. The full machine stands for those that leave out alpha = 0.
    low = stay * before.margins - stretch * length * before.norm
    high = stay * before.margins + stretch * length * before.norm
    centre = stay * before.left_out_margins
    reach = stretch * before.left_out_norms[:, None] * length
    own = (np.arange(before.rows.size), before.rows)
    down, up = centre - reach, centre + reach
    down[own], up[own] = np.inf, -np.inf
    first_low = np.minimum(low, down.min(axis=0, initial=np.inf))
    first_high = np.maximum(high, up.max(axis=0, initial=-np.inf))
    bias = _common_bias(y, C, first_low, first_high)
    # Lemma 3.4: rho^2 <= C (rho sqrt(B) + width) bounds how far leaving out moves w.
    width, box, size = bias[1] - bias[0], float(C.max()), float(length.max())
    if np.isfinite(width):
        half = 0.5 * box * size
        radius = half + np.sqrt(half**2 + box * max(0.0, width))
        low, high = low - radius * length, high + radius * length
        low, high = np.maximum(low, first_low), np.minimum(high, first_high)
    else:
        low, high = first_low, first_high
    bias = _common_bias(y, C, low, high)
    return Screened.by_bounds(
        problem,
        low + np.where(y > 0, bias[0], -bias[1]),
        high + np.where(y > 0, bias[1], -bias[0]),
    )


def _common_bias(
    y: FloatArray, C: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[float, float]:
    """Bound b of all left-out machines from bounds of y K beta (Lemmas 3.2, 3.3).

    The bisection of Algorithm 2 finds order statistics: a sort gives them. Leaving one
    sample out can change the weight of its class by its C, hence the two levels.
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
