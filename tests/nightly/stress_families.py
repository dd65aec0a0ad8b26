# SPDX-License-Identifier: BSD-3-Clause
"""More families of problems made to break floating point, for the judge of stress.

Each takes (rng, n) and returns a Gram matrix of doubles; labels and bounds are drawn
separately, among them bounds that balance to the last bit, or all but the last.
"""

from __future__ import annotations

import numpy as np
from oracles.problems import Case
from oracles.rational import is_exactly_psd


def _whole(rng, n, width, most=3):
    return rng.integers(-most, most + 1, size=(n, width)).astype(float)


def _products(X):
    return X @ X.T


def _squares(X):
    return ((X[:, None] - X) ** 2).sum(axis=2)


def _power(rng, least, most):
    """Return a power of two, exponents drawn evenly."""
    return 2.0 ** int(rng.integers(least, most))


def hilbert(rng, n):
    """1 / (i + j + s): each eigenvalue a fraction of the one before."""
    i = np.arange(n)
    return 1.0 / (i[:, None] + i + int(rng.integers(1, 4)))


def vandermonde(rng, n):
    x = rng.integers(-4, 5, n).astype(float)
    return _products(x[:, None] ** np.arange(int(rng.integers(3, 8))))


def polynomial(rng, n):
    """High powers of products of points on a line."""
    x = rng.integers(-4, 5, n).astype(float)
    K = (np.outer(x, x) + float(rng.integers(0, 3))) ** int(rng.integers(3, 13))
    return np.ldexp(K, -int(np.log2(max(K.max(), 1.0))))


def laplacian(rng, n):
    X = rng.normal(size=(n, int(rng.integers(1, 4))))
    gamma = 10.0 ** rng.uniform(-3, 3)
    return np.exp(-gamma * np.abs(X[:, None] - X).sum(axis=2))


def ridge(rng, n):
    """Rank one or two, and hardly more."""
    X = _whole(rng, n, int(rng.integers(1, 3)))
    return _products(X) + _power(rng, -47, -4) * np.eye(n)


def two_scales(rng, n):
    X = _whole(rng, n, int(rng.integers(1, 3)))
    return _products(X) + _power(rng, -39, -4) * _products(_whole(rng, n, 2))


def clusters(rng, n):
    width, k = int(rng.integers(1, 4)), max(1, n // 3)
    centres = _whole(rng, k, width) * 2.0 ** rng.integers(-8, 9, size=(k, 1))
    own = rng.integers(0, k, n)
    steps = 2.0 ** -rng.integers(3, 14, size=k)[own][:, None]
    return _products(centres[own] + _whole(rng, n, width, 2) * steps)


def mixed_sizes(rng, n):
    X = _whole(rng, n, int(rng.integers(1, 4)))
    return _products(X * 2.0 ** rng.integers(-14, 10, size=(n, 1)))


def giants(rng, n):
    """A few points a million times as long as the others."""
    sizes = np.full(n, _power(rng, -23, -7))
    sizes[rng.permutation(n)[: int(rng.integers(1, max(2, n // 2)))]] = _power(
        rng, -2, 6
    )
    return _products(_whole(rng, n, int(rng.integers(1, 4))) * sizes[:, None])


def few_places(rng, n):
    return _products(_whole(rng, n, int(rng.integers(1, 3)), 2))


def corners(rng, n):
    X = rng.choice([-1.0, 1.0], size=(n, int(rng.integers(2, 5))))
    return (_products(X) + 1.0) ** int(rng.integers(1, 4))


def single_precision(rng, n):
    X = rng.normal(size=(n, 2))
    K = np.exp(-(10.0 ** rng.uniform(-2, 1)) * _squares(X)).astype(np.float32)
    return K.astype(float) + _power(rng, -23, -9) * np.eye(n)


def near_copies(rng, n):
    width = int(rng.integers(1, 4))
    places = _whole(rng, max(2, n // 2), width, 4)
    steps = rng.integers(-2, 3, size=(n, width)) * _power(rng, -24, -17)
    return _products(places[rng.integers(0, len(places), n)] * (1.0 + steps))


def nearly_dependent(rng, n):
    """Points next to the middle of two others; pairs are far apart."""
    X = _whole(rng, n, 3, 4)
    for i in range(2, n):
        if rng.random() < 0.7:
            a, b = rng.integers(0, i, 2)
            X[i] = 0.5 * (X[a] + X[b]) + _whole(rng, 1, 3, 1)[0] * _power(rng, -22, -7)
    return _products(X)


def diagonal(rng, n):
    return np.diag(2.0 ** rng.integers(-10, 11, n))


def offset(rng, n):
    X = _whole(rng, n, int(rng.integers(1, 3))) * _power(rng, -11, 1)
    return _products(X) + float(rng.integers(1, 2 ** int(rng.integers(1, 14))))


def conflicting(rng, n):
    """Every point twice, whatever the labels."""
    X = np.tile(_whole(rng, (n + 1) // 2, 2, 2), (2, 1))[:n]
    return _products(X) if rng.random() < 0.5 else np.exp(-0.5 * _squares(X))


def wide(rng, n):
    """RBF much wider than the data: all kernel values near 1."""
    X = rng.integers(-4, 5, size=(n, 1)).astype(float)
    return np.exp(-(10.0 ** rng.uniform(-6, -1)) * _squares(X))


FAMILIES = {
    family.__name__: family
    for family in (
        hilbert, vandermonde, polynomial, laplacian, ridge, two_scales, clusters,
        mixed_sizes, giants, few_places, corners, single_precision, near_copies,
        nearly_dependent, diagonal, offset, conflicting, wide,
    )
}  # fmt: skip


def _labels(rng, K):
    n = len(K)
    how = int(rng.integers(0, 4))
    if how == 0:
        y = rng.choice([-1.0, 1.0], n)
    elif how == 1:
        y = np.where(rng.permutation(n) < n // 2, 1.0, -1.0)
    elif how == 2:  # along an eigenvector
        y = np.where(np.linalg.eigh(K)[1][:, int(rng.integers(n))] > 0, 1.0, -1.0)
    else:
        y = np.where(np.arange(n) == int(rng.integers(n)), 1.0, -1.0)
    if abs(y.sum()) == n:
        y[0] = -y[0]
    return y


def _boxes(rng, y, K):
    n, base = len(y), _power(rng, -6, 7)
    how = int(rng.integers(0, 6))
    if how == 0:
        return np.full(n, base)
    if how == 1:
        return np.full(n, 10.0 ** rng.uniform(-4, 6) / max(K.max(), 1e-300))
    if how == 2:
        return base * rng.integers(1, 4, n)
    if how == 3:  # equal but for some of the last bits
        return base * (1.0 + rng.integers(-2, 3, n) * _power(rng, -52, -7))
    if how == 4:
        return base * 10.0 ** rng.uniform(-6, 6, n)
    # both classes weigh the same
    return base * np.where(y > 0, np.sum(y < 0), np.sum(y > 0))


def draw_family(family, seed):
    """Return a Case, or None if rounding made K indefinite."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    n = int(rng.integers(2, 9))
    K = np.ascontiguousarray(FAMILIES[family](rng, n))
    y = _labels(rng, K)
    case = Case(K, y, _boxes(rng, y, K), bool(rng.random() < 0.75))
    return case if is_exactly_psd(case.K) else None
