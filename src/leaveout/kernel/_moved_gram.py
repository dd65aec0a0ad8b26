# SPDX-License-Identifier: BSD-3-Clause
"""RBF kernels whose gamma differs a little from that of a known product K beta.

With the relative change e = (gamma' - gamma) / gamma and the squared distances D::

    K' beta = sum_m (-e)^m T_m,    T_m = (K * (gamma D)^m / m!) beta

The T_m, (n,) each, are computed once. With x = |gamma' - gamma| / min(gamma, gamma')
what is left out after k terms is at most sum |beta| x^k max_t t^k exp(-t) / k!, and
thus sum |beta| x^k / sqrt(2 pi k) (Stirling). So many terms are used that this is a
rounding error. Only other coefficients then need values of K', or those of K, which
differ by at most x max_t t exp(-t) = x / e.
"""

from __future__ import annotations

from math import e, factorial, pi, sqrt
from typing import Any

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel._gram_fast import FoldGram, combine_rows

# Larger changes would need more terms than they save.
LARGEST_CHANGE = 0.25
ROUNDING = 2.0**-53


def relative_change(gamma: float, to: Any) -> Any:
    """Return x, relative to the smaller of both."""
    return abs(to - gamma) / np.minimum(gamma, to)


class Expansion:
    """Products of the kernel with fixed coefficients, for every gamma in a range.

    Parameters
    ----------
    distances, K : ndarray of shape (n, n)
        Squared distances, and the kernel at the gamma where the series starts.
    gamma : float
        Where the series starts.
    change : float
        Largest :func:`relative_change`, at most LARGEST_CHANGE.
    beta : ndarray of shape (n,)
        The coefficients.
    """

    def __init__(
        self,
        distances: FloatArray,
        K: FloatArray,
        gamma: float,
        change: float,
        beta: FloatArray,
    ) -> None:
        self.K, self.gamma, self.change, self.beta = K, gamma, change, beta
        n_terms = 1
        while change**n_terms > ROUNDING * sqrt(2.0 * pi * n_terms):
            n_terms += 1
        some = np.flatnonzero(beta)
        t = gamma * distances[:, some]
        factors, left = K[:, some], beta[some]
        self.terms = np.empty((n_terms, beta.size))
        for m in range(n_terms):
            self.terms[m] = factors @ left / factorial(m)
            factors *= t
        self.powers = np.arange(n_terms)

    def move(self, gram: FoldGram, gamma: float) -> FoldGram | MovedGram:
        """Return a kernel of that gamma, faster if the terms suffice."""
        change = abs(gamma - self.gamma) / min(gamma, self.gamma)
        if change > self.change:
            return gram
        return MovedGram(gram, self, self.at(gamma), change / e)

    def at(self, gamma: float) -> FloatArray:
        """Return the product at another gamma, (n,)."""
        change = (gamma - self.gamma) / self.gamma
        return (-change) ** self.powers @ self.terms


class MovedGram:
    """The kernel of one fold, as :class:`FoldGram`; products start from an expansion.

    Parameters
    ----------
    gram : FoldGram
        The kernel, as a function of the distances between all samples.
    expansion : Expansion
        Products of the kernel with coefficients that most samples have.
    known : ndarray of shape (n,)
        These products at the gamma of the kernel.
    distance : float
        Largest change of a kernel value.
    """

    def __init__(
        self, gram: FoldGram, expansion: Expansion, known: FloatArray, distance: float
    ) -> None:
        self.gram, self.expansion = gram, expansion
        self.known, self.distance = known, distance

    def arrange(self, order: IntArray) -> None:
        """Set the order of the samples."""
        self.order = order
        self.gram.arrange(order)

    def square(self, k: int) -> tuple[FloatArray, int]:
        """Return the values between the first k, and how many are not finite."""
        self.K, n_bad = self.gram.square(k)
        return self.K, n_bad

    def products(
        self, first: int, stop: int, start: int, beta: FloatArray, exact: bool = True
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return K[first:stop, start : start + len(beta)] @ beta and error bounds."""
        rows, k = self.order[first:stop], self.K.shape[0]
        if not beta.size:
            return np.zeros(rows.size), None
        change = -self.expansion.beta[self.order]
        change[start : start + beta.size] += beta
        moved = change.nonzero()[0]
        values = self.known[rows]
        if not moved.size:
            return values, None
        if stop <= k and moved[-1] < k:
            return values + self.K[first:stop] @ change[:k], None
        if not exact:
            known = np.zeros(change.size)
            known[self.order] = change
            values += combine_rows(self.expansion.K, known)[rows]
            return values, np.full(rows.size, self.distance * np.abs(change).sum())
        self.gram.arrange(np.concatenate([rows, self.order[moved]]))
        more, _ = self.gram.products(0, rows.size, rows.size, change[moved])
        self.gram.arrange(self.order)
        return values + more, None
