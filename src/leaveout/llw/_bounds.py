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

from leaveout._typing import FloatArray, IntArray
from leaveout.llw._solve import LlwProblem, LlwSolution
from leaveout.methods._bounds import BOUND, Bound, enclosing_radius_squared

# A sample this close below its threshold counts as above it.
ROUNDING = 1e-7


@dataclass(frozen=True)
class LlwGeometry:
    """Margins and distances of a hard-margin LLW-M-SVM, over the present samples.

    For ``loss="quadratic"`` the hard margin is that of the kernel with the ridge
    1/(2 C) on its diagonal.

    Parameters
    ----------
    smallest_gap : float
        d(h): the smallest abs(h_k(x_i) - h_l(x_i)) over all pairs of classes k, l and
        the samples i of either class.
    relative_gaps : ndarray of shape (n_classes, n_classes)
        d_kl(h) >= 0: that smallest difference of one pair, over d(h), minus 1.
    margins : ndarray of shape (n_classes, n_classes)
        The geometrical margins gamma_kl: smallest distance of a sample of class k or l
        to the surface h_k = h_l. The diagonal of both matrices is NaN.
    diameter : float
        D_m: of the smallest ball around the samples; at most 1e-6 too large.
    reach : ndarray of shape (n_samples,)
        Largest distance of each sample from another.
    squared_norm : float
        Sum over classes of the squared norm of w_k.
    alpha : ndarray of shape (n_samples, n_classes)
        Dual variables.

    References
    ----------
    .. [1] Y. Guermeur and E. Monfrini, "Radius-margin bound on the leave-one-out error
       of the LLW-M-SVM", ASMDA 2009: Definition 4 and Lemma 1.
    """

    __module__ = "leaveout"

    smallest_gap: float
    relative_gaps: FloatArray
    margins: FloatArray
    diameter: float
    reach: FloatArray
    squared_norm: float
    alpha: FloatArray

    @property
    def paper_ratio(self) -> FloatArray:
        """Left-hand over right-hand side of Lemma 1, (n,): at least 1 for an error."""
        Q = self.alpha.shape[1]
        return self.alpha.max(axis=1) * Q * (Q - 1) * self.diameter**2

    @property
    def sharp_ratio(self) -> FloatArray:
        """Left-hand over right-hand side of the sharper lemma, (n,)."""
        Q = self.alpha.shape[1]
        size = np.linalg.norm(self.alpha, axis=1)
        return size * self.reach**2 / np.sqrt(Q / (Q - 1) ** 3)

    @property
    def lemma_count(self) -> int:
        """Number of samples that satisfy Lemma 1: at least the number of errors."""
        return int((self.paper_ratio >= 1.0 - ROUNDING).sum())


def llw_geometry(
    problem: LlwProblem, solution: LlwSolution, exponent: int = 0
) -> LlwGeometry:
    """Return margins, distances and the ball for the kernel 2^exponent problem.K."""
    rows = np.flatnonzero(problem.C > 0.0)
    K = np.ldexp(problem.K[np.ix_(rows, rows)], exponent)
    W = np.ldexp(solution.coef[rows], -exponent)
    diagonal = K.diagonal()
    gaps = _gaps(solution.decision_values[rows], problem.codes[rows])
    inner = W.T @ K @ W
    normals = inner.diagonal()[:, None] + inner.diagonal() - 2.0 * inner
    np.fill_diagonal(normals, np.nan)
    smallest = float(np.nanmin(gaps))
    return LlwGeometry(
        smallest_gap=smallest,
        relative_gaps=gaps / smallest - 1.0,
        margins=gaps / np.sqrt(normals),
        diameter=2.0 * float(np.sqrt(enclosing_radius_squared(K))),
        reach=np.sqrt((diagonal[:, None] + diagonal - 2.0 * K).max(axis=1)),
        squared_norm=float(np.ldexp(solution.squared_norm, -exponent)),
        alpha=np.ldexp(solution.alpha[rows], -exponent),
    )


def _gaps(h: FloatArray, codes: IntArray) -> FloatArray:
    """Return the smallest |h_k - h_l| over the samples of classes k and l, (Q, Q)."""
    Q = h.shape[1]
    gaps = np.full((Q, Q), np.nan)
    for k in range(Q):
        for other in range(k):
            either = (codes == k) | (codes == other)
            gap = np.abs(h[either, k] - h[either, other]).min()
            gaps[k, other] = gaps[other, k] = gap
    return gaps


def bound_llw(
    geometry: LlwGeometry | None, kind: str = BOUND, note: str = ""
) -> tuple[Bound, ...]:
    """Return Theorem 2, Lemma 1 and the two sharper bounds, as shares of the samples.

    ``geometry`` is None if no hard margin exists; the sums are infinite then. ``kind``
    is what they are for the classifier in question.
    """
    if geometry is None:
        none = "no hard margin"
        return tuple(
            Bound(name, kind, value, note=none)
            for name, value in (
                ("radius_margin", np.inf), ("lemma_count", 1.0),
                ("sharp_sum", np.inf), ("sharp_count", 1.0),
            )
        )  # fmt: skip
    n, Q = geometry.alpha.shape
    paper = Q * (Q - 1) ** 2 * geometry.diameter**2 * geometry.squared_norm
    reach = float(geometry.reach.max())
    total = (Q - 1) ** 2.5 / np.sqrt(Q) * reach**2 * geometry.squared_norm
    count = float(np.mean(geometry.sharp_ratio >= 1.0 - ROUNDING))
    lemma = geometry.lemma_count / n
    return (
        Bound("radius_margin", kind, paper / n, cost="n² per step", note=note),
        Bound("lemma_count", kind, lemma, cost="n² per step", note=note),
        Bound("sharp_sum", kind, total / n, cost="n²", note=note),
        Bound("sharp_count", kind, count, cost="n²", note=note),
    )
