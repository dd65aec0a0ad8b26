# SPDX-License-Identifier: BSD-3-Clause
"""Bounds on the leave-one-out errors of a hard-margin SVM of Lee, Lin & Wahba.

With D the diameter of the smallest ball around the samples in feature space, Delta_p
the largest distance from sample p, Delta the largest of all, L the number of errors::

    Guermeur & Monfrini (2009), Lemma 1   error at p => max_k a_pk >= 1 / (Q (Q-1) D^2)
                                Theorem 2 L <= Q (Q-1)^2 D^2 sum_k ||w_k||^2
    sharper, by the same argument         error at p => ||a_p|| >= t / Delta_p^2
                                          L <= #{p : ||a_p|| Delta_p^2 >= t}
                                          L <= c Delta^2 sum_k ||w_k||^2
                                          t^2 = Q / (Q-1)^3,  c^2 = (Q-1)^5 / Q

(docs/method/llw has the proof). Theorem 2 is printed with d(h*) and the geometrical
margins; Proposition 2 turns them into sum ||w_k||^2 = sum(a) / (Q-1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import FloatArray
from leaveout.llw._solve import LlwProblem, LlwSolution
from leaveout.methods._bounds import BOUND, Bound, enclosing_radius_squared

# A sample this close below its threshold counts as above it.
ROUNDING = 1e-7


@dataclass(frozen=True)
class LlwKeyNumbers:
    """Quantities used by the bounds, over the present samples."""

    squared_norm: float  # sum of ||w_k||^2
    diameter_squared: float  # D^2, of a ball around all samples; at most 1e-6 too large
    reach_squared: FloatArray  # (n,), Delta_p^2
    largest: FloatArray  # (n,), max_k alpha_pk
    norm: FloatArray  # (n,), ||alpha_p||
    n_classes: int

    @property
    def paper_ratio(self) -> FloatArray:
        """Left-hand over right-hand side of Lemma 1, (n,): at least 1 for an error."""
        Q = self.n_classes
        return self.largest * Q * (Q - 1) * self.diameter_squared

    @property
    def sharp_ratio(self) -> FloatArray:
        """Left-hand over right-hand side of the sharper lemma, (n,)."""
        Q = self.n_classes
        return self.norm * self.reach_squared / np.sqrt(Q / (Q - 1) ** 3)


def llw_key_numbers(problem: LlwProblem, solution: LlwSolution) -> LlwKeyNumbers:
    """Return norms, distances and the ball of a hard-margin problem."""
    rows = np.flatnonzero(problem.C > 0.0)
    K = problem.K[np.ix_(rows, rows)]
    diagonal = K.diagonal()
    distances = diagonal[:, None] + diagonal - 2.0 * K
    alpha = solution.alpha[rows]
    return LlwKeyNumbers(
        squared_norm=solution.squared_norm,
        diameter_squared=4.0 * enclosing_radius_squared(K),
        reach_squared=distances.max(axis=1),
        largest=alpha.max(axis=1),
        norm=np.linalg.norm(alpha, axis=1),
        n_classes=problem.n_classes,
    )


def bound_llw(
    problem: LlwProblem, solution: LlwSolution, note: str = ""
) -> tuple[Bound, ...]:
    """Return Theorem 2 and the two sharper bounds, as shares of the samples.

    The problem must have a hard margin (:meth:`LlwProblem.as_hard_margin` converts a
    soft problem). The first two are infinite if no hard margin exists.
    """
    if not solution.separable:
        none = "no hard margin"
        return tuple(
            Bound(name, BOUND, value, note=none)
            for name, value in (
                ("radius_margin", np.inf), ("sharp_sum", np.inf), ("sharp_count", 1.0)
            )
        )  # fmt: skip
    numbers = llw_key_numbers(problem, solution)
    Q, n = numbers.n_classes, numbers.norm.size
    paper = Q * (Q - 1) ** 2 * numbers.diameter_squared * numbers.squared_norm
    reach = float(numbers.reach_squared.max())
    total = (Q - 1) ** 2.5 / np.sqrt(Q) * reach * numbers.squared_norm
    count = float(np.mean(numbers.sharp_ratio >= 1.0 - ROUNDING))
    return (
        Bound("radius_margin", BOUND, paper / n, cost="n² per step", note=note),
        Bound("sharp_sum", BOUND, total / n, cost="n²", note=note),
        Bound("sharp_count", BOUND, count, cost="n²", note=note),
    )
