# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest
from scipy.optimize import linprog

from leaveout.adapt._fitted import FittedExpansion
from leaveout.assess._loo_features import leave_one_out_features, name_features
from leaveout.lp._highs import solve_sparse_linear


def random_expansion(n_classifiers=1, row_dual=False, seed=0, n=12):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    X[4] = X[7]
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    return FittedExpansion(
        K=np.exp(-0.4 * distances**2) + X @ X.T,  # its diagonal varies
        squares=distances**2,
        codes=np.arange(n) % max(2, n_classifiers),
        coef=random.normal(size=(n_classifiers, n)),
        intercept=random.normal(size=n_classifiers),
        bound=np.full(n, 3.0),
        row_dual=random.random((n_classifiers, n)) if row_dual else None,
        row_bound=np.full(n, 2.0),
    )


def one_by_one(e, variant):
    """The features by their definition, one sample at a time."""
    n = e.codes.size
    rows = []
    spread = max(
        np.sqrt(e.K[i, i] + e.K[j, j] - 2 * e.K[i, j])
        for i in range(n)
        for j in range(n)
    )
    for p in range(n):
        which = e.codes[p] if len(e.coef) > 1 else 0
        a, b = e.coef[which], e.intercept[which]
        sign = 1.0 if len(e.coef) > 1 or e.codes[p] == 1 else -1.0
        norm = np.sqrt(a @ e.K @ a)

        def own(k, which=which, a=a, b=b, sign=sign, norm=norm, p=p):
            f = e.K[k] @ a + b
            if len(e.coef) > 1 and variant != "printed":
                f -= max(
                    e.K[k] @ e.coef[c] + e.intercept[c]
                    for c in range(len(e.coef))
                    if c != e.codes[p]
                )
            out = {
                "natural": [sign * a[k] * spread**2, sign * f],
                "signed": [sign * a[k], sign * f / norm],
                "scaled": [sign * a[k] / e.bound[k], sign * f / norm],
                "printed": [abs(a[k]), f / norm**2],
            }[variant]
            if e.row_dual is not None:
                shared = variant in ("natural", "scaled")
                out.insert(1, e.row_dual[which, k] / (e.row_bound[k] if shared else 1))
            return out

        row = own(p)
        others = sorted((e.squares[p, k], k) for k in range(n) if k != p)[:3]
        for square, k in others:
            mapped = np.sqrt(e.K[p, p] + e.K[k, k] - 2 * e.K[p, k])
            row += [np.sqrt(square / e.squares.max()), mapped / spread, *own(k)]
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("variant", ["natural", "signed", "scaled", "printed"])
@pytest.mark.parametrize("row_dual", [False, True])
@pytest.mark.parametrize("n_classifiers", [1, 3])
def test_features_by_the_book(variant, row_dual, n_classifiers):
    expansion = random_expansion(n_classifiers, row_dual)
    features = leave_one_out_features(expansion, variant)
    np.testing.assert_allclose(features, one_by_one(expansion, variant), atol=1e-12)
    assert features.shape[1] == len(name_features(variant, row_dual=row_dual))
    assert features.shape[1] == (18 if row_dual else 14)


@pytest.mark.parametrize("variant", ["natural", "signed", "scaled", "printed"])
def test_other_names_of_the_classes_change_nothing(variant):
    """f -> -f with y -> -y: not so for the printed value, which is its fault."""
    e = random_expansion()
    turned = FittedExpansion(
        e.K, e.squares, 1 - e.codes, -e.coef, -e.intercept, e.bound
    )
    same = np.allclose(
        leave_one_out_features(e, variant), leave_one_out_features(turned, variant)
    )
    assert same == (variant != "printed")


@pytest.mark.parametrize("variant", ["natural", "signed", "scaled", "printed"])
def test_nothing_to_divide_by(variant):
    """w = 0, and all samples at one place."""
    e = FittedExpansion(
        np.ones((6, 6)), np.zeros((6, 6)), np.arange(6) % 2, np.zeros((1, 6)),
        np.array([0.5]),
    )  # fmt: skip
    assert np.isfinite(leave_one_out_features(e, variant)).all()


@pytest.mark.parametrize("C", [0.01, 0.3, 10.0])
def test_sparse_linear_is_the_primal_optimum(C):
    random = np.random.default_rng(3)
    Z = random.normal(size=(80, 6))
    y = np.where(Z[:, 0] - Z[:, 1] + random.normal(size=80) > 0.3, 1.0, -1.0)
    found = solve_sparse_linear(Z, y, C)
    n, p = Z.shape
    primal = linprog(
        np.r_[np.ones(2 * p), 0.0, np.full(n, C)],
        A_ub=-np.hstack([Z * y[:, None], -Z * y[:, None], y[:, None], np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * n,
        method="highs-ipm",
    )
    assert found.objective == pytest.approx(primal.fun, rel=1e-8)
    assert abs(found.duality_gap) < 1e-9
