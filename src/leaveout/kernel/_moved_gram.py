# SPDX-License-Identifier: BSD-3-Clause
"""Products of kernels that differ a little from one whose product K beta is known.

If gamma changes, with the relative change e = (gamma' - gamma) / gamma and the squared
distances D::

    K' beta = sum_m (-e)^m T_m,    T_m = (K * (gamma D)^m / m!) beta

The T_m, (n,) each, are computed once. With x = |gamma' - gamma| / min(gamma, gamma')
what is left out after k terms is at most sum |beta| x^k max_t t^k exp(-t) / k!, and
thus sum |beta| x^k / sqrt(2 pi k) (Stirling). So many terms are used that this is a
rounding error. Values of K change by at most x max_t t exp(-t) = x / e.

If feature k has the weight 1 + e_k, with the differences d of two samples::

    K' = K exp(-t),    t = gamma sum_k e_k d_k^2 >= -x gamma D,    x = -min_k e_k
    |exp(-t) - 1 + t| <= t^2 / 2 max(1, exp(-t))
    t^2 <= gamma^2 (sum_k |e_k|) (sum_k |e_k| d_k^4)    (Cauchy and Schwarz)

so the terms of first order, which are linear in e, and a bound of the others take two
tables with one entry per sample and feature. Values of K change by at most
max_k |e_k| max_t t exp(-(1 - x) t) = max_k |e_k| / ((1 - x) e), for x >= 0.
"""

from __future__ import annotations

from math import e, factorial, pi, sqrt

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel._gram_fast import FoldGram

# Larger changes would need more terms than they save.
LARGEST_CHANGE = 0.25
ROUNDING = 2.0**-53


class Expansion:
    """Products of the kernel with fixed coefficients, for every gamma in a range.

    Parameters
    ----------
    distances, K : ndarray of shape (n, n)
        Squared distances, and the kernel at the gamma where the series starts.
    gamma : float
        Where the series starts.
    gammas : ndarray of shape (g,)
        That of each fold. Those that change by more than LARGEST_CHANGE have no series.
    parts : ndarray of shape (c, n)
        Coefficients.
    factors : ndarray of shape (g, c)
        What the parts are multiplied by in each fold before they are added.
    """

    def __init__(
        self,
        distances: FloatArray,
        K: FloatArray,
        gamma: float,
        gammas: FloatArray,
        parts: FloatArray,
        factors: FloatArray,
    ) -> None:
        self.gamma, self.gammas, self.parts = gamma, gammas, parts
        self.factors = factors
        self.changes = np.abs(gammas - gamma) / np.minimum(gamma, gammas)
        close = self.changes <= LARGEST_CHANGE
        change = float(self.changes.max(where=close, initial=0.0))
        self.distances = np.where(close, self.changes / e, np.inf)
        n_terms = 1
        while change**n_terms > ROUNDING * sqrt(2.0 * pi * n_terms):
            n_terms += 1
        some = np.flatnonzero(parts.any(axis=0))
        t, values = gamma * distances[:, some], K[:, some]
        self.terms = np.empty((n_terms, *parts.shape))
        for m in range(n_terms):
            self.terms[m] = parts[:, some] @ values.T / factorial(m)
            values *= t
        self.powers = np.arange(n_terms)

    def move(self, gram: FoldGram, k: int) -> FoldGram | MovedGram:
        """Return the kernel of a fold, faster if the terms suffice."""
        if np.isinf(self.distances[k]):
            return gram
        beta = self.factors[k] @ self.parts
        return MovedGram(gram, beta, self.at(np.array([k]))[0][0])

    def at(self, which: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the products of some folds, (g, n), their errors, and the distances.

        The distance is the largest change of a kernel value, infinite if not known.
        """
        change = (self.gammas[which, None] - self.gamma) / self.gamma
        weights = ((-change) ** self.powers)[:, :, None] * self.factors[which, None]
        n = self.parts.shape[1]
        values = weights.reshape(which.size, -1) @ self.terms.reshape(-1, n)
        errors = np.where(np.isinf(self.distances[which]), np.inf, 0.0)
        return values, errors[:, None] + np.zeros_like(values), self.distances[which]


class Rescaling:
    """Products with fixed coefficients of the kernels of rescaled features.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        The features.
    K : ndarray of shape (n, n)
        Their kernel.
    gamma : float
        Its gamma.
    changes : ndarray of shape (g, p)
        What is added to the weight 1 of each squared feature in each fold. A gamma of
        the fold is part of the weights.
    parts, factors : ndarray of shape (c, n) and (g, c)
        Coefficients, as in :class:`Expansion`.
    """

    def __init__(
        self,
        Z: FloatArray,
        K: FloatArray,
        gamma: float,
        changes: FloatArray,
        parts: FloatArray,
        factors: FloatArray,
    ) -> None:
        self.gamma, self.changes, self.factors = gamma, changes, factors
        least = changes.min(axis=1)
        known = least >= -LARGEST_CHANGE
        x = max(0.0, -float(least.min(where=known, initial=0.0)))
        self.distances = np.abs(changes).max(axis=1) / (e * (1.0 - x))
        self.distances[~known] = np.inf
        some = np.flatnonzero(parts.any(axis=0))
        Z = Z - Z.mean(axis=0)
        S, Z2 = Z[some], Z * Z
        S2, values = S * S, K[:, some]
        self.known = parts[:, some] @ values.T
        self.first = np.empty((len(parts), *Z.shape))
        for out, beta, known in zip(
            self.first, parts[:, some], self.known, strict=True
        ):
            weights = values * beta
            out[:] = Z2 * known[:, None] - 2.0 * Z * (weights @ S) + weights @ S2
        weights = values ** (1.0 - x) * np.abs(parts[:, some]).sum(axis=0)
        fourth = Z2 * (Z2 * weights.sum(axis=1, keepdims=True) + 6.0 * (weights @ S2))
        fourth -= 4.0 * Z * (Z2 * (weights @ S) + weights @ (S * S2))
        self.fourth = np.maximum(fourth + weights @ (S2 * S2), 0.0)

    def move(self, gram: FoldGram, k: int) -> FoldGram:
        """Return the kernel of a fold."""
        return gram

    def at(self, which: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the same as :meth:`Expansion.at`."""
        changes, factors = self.changes[which], self.factors[which]
        sizes = np.abs(changes)
        values = factors @ self.known
        for factor, first in zip(factors.T, self.first, strict=True):
            values -= self.gamma * factor[:, None] * (changes @ first.T)
        errors = sizes @ self.fourth.T
        errors *= 0.5 * self.gamma**2 * sizes.sum(axis=1, keepdims=True)
        errors *= factors.max(axis=1, keepdims=True)
        distances = self.distances[which]
        errors[np.isinf(distances)] = np.inf
        return values, errors, distances


class LinearRescaling:
    """Products of the linear kernels of rescaled features, up to a shift.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        The features. K is ``scale * Z @ Z.T`` up to a shift of the origin.
    scale : float
        See Z.
    scales : ndarray of shape (g, p)
        What the features are multiplied by in each fold.
    parts, factors : ndarray of shape (c, n) and (g, c)
        Coefficients, as in :class:`Expansion`.
    """

    def __init__(
        self,
        Z: FloatArray,
        scale: float,
        scales: FloatArray,
        parts: FloatArray,
        factors: FloatArray,
    ) -> None:
        self.Z, self.scale, self.scales = Z, scale, scales
        self.parts, self.factors = parts, factors

    def move(self, gram: FoldGram, k: int) -> FoldGram:
        """Return the kernel of a fold."""
        return gram

    def at(self, which: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the same as :meth:`Expansion.at`, NaN for errors and distances.

        Products of a linear kernel take less time than bounds of the shift.
        """
        sums = (self.factors[which] @ self.parts) @ self.Z
        values = self.scale * ((self.scales[which] ** 2 * sums) @ self.Z.T)
        unknown = np.full(which.size, np.nan)
        return values, np.full_like(values, np.nan), unknown


class MovedGram:
    """The kernel of one fold, as :class:`FoldGram`; products start from an expansion.

    Parameters
    ----------
    gram : FoldGram
        The kernel, as a function of the distances between all samples.
    beta : ndarray of shape (n,)
        Coefficients that most samples have.
    known : ndarray of shape (n,)
        Products of the kernel with these.
    """

    def __init__(self, gram: FoldGram, beta: FloatArray, known: FloatArray) -> None:
        self.gram, self.beta, self.known = gram, beta, known

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
        change = -self.beta[self.order]
        change[start : start + beta.size] += beta
        moved = change.nonzero()[0]
        values = self.known[rows]
        if not moved.size:
            return values, None
        if stop <= k and moved[-1] < k:
            return values + self.K[first:stop] @ change[:k], None
        self.gram.arrange(np.concatenate([rows, self.order[moved]]))
        more, _ = self.gram.products(0, rows.size, rows.size, change[moved])
        self.gram.arrange(self.order)
        return values + more, None
