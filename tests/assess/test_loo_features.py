# SPDX-License-Identifier: BSD-3-Clause
"""The features of Tsuda et al. (2001) against their definition, sample by sample."""

import numpy as np
import pytest

from leaveout.adapt._fitted import FittedExpansion
from leaveout.assess._loo_features import leave_one_out_features, name_features

VARIANTS = pytest.mark.parametrize(
    "variant", ["natural", "relative", "signed", "scaled", "printed"]
)


def random_expansion(n_classifiers=1, row_dual=False, n=12):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    X[4] = X[7]
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    return FittedExpansion(
        K=np.exp(-0.4 * squares) + X @ X.T,  # its diagonal varies
        squares=squares,
        codes=np.arange(n) % max(2, n_classifiers),
        coef=random.normal(size=(n_classifiers, n)),
        intercept=random.normal(size=n_classifiers),
        bound=np.full(n, 3.0),
        row_dual=random.random((n_classifiers, n)) if row_dual else None,
        row_bound=np.full(n, 2.0),
    )


def of_one(e, p, k, variant, spread):
    """Return coefficient, dual variable and value of sample k for sample p."""
    several = len(e.coef) > 1
    which = e.codes[p] if several else 0
    sign = 1.0 if several or e.codes[p] == 1 else -1.0
    values = e.coef @ e.K[k] + e.intercept
    a, f = e.coef[which], values[which]
    norm = np.sqrt(a @ e.K @ a)
    if several and variant != "printed":
        f -= np.delete(values, which).max()
    found = {
        "natural": [sign * a[k] * spread**2, sign * f],
        "signed": [sign * a[k], sign * f / norm],
        "scaled": [sign * a[k] / e.bound[k], sign * f / norm],
        "printed": [abs(a[k]), f / norm**2],
    }[variant]
    if e.row_dual is not None:
        shared = variant in ("natural", "scaled")
        found.insert(1, e.row_dual[which, k] / (e.row_bound[k] if shared else 1))
    return found


def one_by_one(e, variant):
    if variant == "relative":
        return relative_one_by_one(one_by_one(e, "natural"))
    n, diagonal = e.codes.size, e.K.diagonal()
    mapped = np.sqrt(np.add.outer(diagonal, diagonal) - 2 * e.K)
    rows = []
    for p in range(n):
        row = of_one(e, p, p, variant, mapped.max())
        for square, k in sorted((e.squares[p, k], k) for k in range(n) if k != p)[:3]:
            power = 2 if variant == "natural" else 1
            row += [np.sqrt(square / e.squares.max())]
            row += [(mapped[p, k] / mapped.max()) ** power]
            row += of_one(e, p, k, variant, mapped.max())
        rows.append(row)
    return np.array(rows)


def relative_one_by_one(natural):
    step = 5 if natural.shape[1] == 18 else 4  # columns per neighbour
    last = step - 3  # of the own margin, after the coefficient and the row dual
    rows = []
    for row in natural:
        s, new = abs(row[0]) + abs(row[last]), row.copy()
        new[[0, last]] /= s
        for k in range(3):
            start = last + 1 + k * step
            for i in (start + 2, start + step - 1):
                new[i] = row[i] / (s + abs(row[i]))
        rows.append(new)
    return np.array(rows)


@VARIANTS
@pytest.mark.parametrize("row_dual", [False, True])
@pytest.mark.parametrize("n_classifiers", [1, 3])
def test_features_equal_their_definition(variant, row_dual, n_classifiers):
    expansion = random_expansion(n_classifiers, row_dual)
    features = leave_one_out_features(expansion, variant)
    np.testing.assert_allclose(features, one_by_one(expansion, variant), atol=1e-12)
    n_features = len(name_features(variant, row_dual=row_dual))
    assert features.shape[1] == n_features == (18 if row_dual else 14)


@VARIANTS
def test_no_division_by_zero(variant):
    """w = 0, and all samples are identical."""
    e = FittedExpansion(
        np.ones((6, 6)), np.zeros((6, 6)), np.arange(6) % 2, np.zeros((1, 6)),
        np.array([0.5]),
    )  # fmt: skip
    assert np.isfinite(leave_one_out_features(e, variant)).all()
