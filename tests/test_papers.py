# SPDX-License-Identifier: BSD-3-Clause
"""The papers' methods as users call them, against brute force that is written here.

An SMO of a few lines refits SVMs, linprog (HiGHS) refits the linear programs. The tests
of the packages go further, on matrices; here are the public functions.
"""

import numpy as np
import pytest
from oracles.programs import loo_ranges, loom_range, lpm_range
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import leaveout as lo

METHODS = ("walk", "refit", "stopping", "magic", "consolidated")
pytestmark = pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")


def random_data(seed, n=24, n_classes=2):
    """Return overlapping classes, at least three samples each, and gamma."""
    rng = np.random.default_rng([77, seed])
    y = np.append(np.tile(np.arange(n_classes), 3), rng.integers(0, n_classes, n))
    y = y[:n]
    X = rng.normal(size=(n, 2)) + rng.uniform(0, 2) * rng.normal(size=(n_classes, 2))[y]
    return X, y, float(rng.uniform(0.2, 2.0))


def smo(K, y, C, tol=1e-10):
    """Return beta and b of an SVM by steps along the most violating pair."""
    beta, F = np.zeros(len(y)), y.astype(float)
    low, high = np.where(y > 0, 0, -C), np.where(y > 0, C, 0)
    for _ in range(200_000):
        up, down = beta < high, beta > low
        i = np.argmax(np.where(up, F, -np.inf))
        j = np.argmin(np.where(down, F, np.inf))
        if not up.any() or not down.any() or F[i] - F[j] < tol:
            break
        step = (F[i] - F[j]) / (K[i, i] + K[j, j] - 2 * K[i, j])
        step = min(step, high[i] - beta[i], beta[j] - low[j])
        beta[i] += step
        beta[j] -= step
        F -= step * (K[i] - K[j])
    return beta, (F[up].max() + F[down].min()) / 2


def smo_margins(X, y, C, gamma):
    """Return y_r f(x_r) of the SVM without r."""
    K, sign, margins = rbf_kernel(X, gamma=gamma), 2 * y - 1, []
    for r in range(len(y)):
        rest = np.delete(np.arange(len(y)), r)
        beta, b = smo(K[np.ix_(rest, rest)], sign[rest], C)
        margins.append(sign[r] * (K[r, rest] @ beta + b))
    return np.array(margins)


@pytest.mark.parametrize("seed", range(4))
def test_svm_labels_and_bounds(seed):
    """Every method has the labels of refits; every row called a bound is one."""
    X, y, gamma = random_data(seed)
    C = 10.0 ** (seed - 1)
    margins = smo_margins(X, y, C, gamma)
    svc = lo.SVC(C=C, gamma=gamma)
    walk = lo.leave_one_out(svc, X, y)
    sure = ~walk.ambiguous & (np.abs(margins) > 1e-6)
    assert sure.mean() > 0.8
    calls = [(method, {}) for method in METHODS]
    calls += [("stopping", {"eps": eps, "n_trial": 0}) for eps in (1e-3, 0.1)]
    calls += [("stopping", {"eps": 1e-3, "n_trial": 0, "condition": "ball"})]
    for method, params in calls:
        found = lo.leave_one_out(svc, X, y, method=method, method_params=params)
        assert found.certified.all() or "eps" in params
        proved = sure & found.certified
        assert (found.wrong == (margins < 0))[proved].all(), (method, params)
    unique = sure & (walk.upper - walk.lower < 1e-9)
    np.testing.assert_allclose(walk.margins[unique], margins[unique], atol=1e-6)
    table = lo.loo_bounds(svc, X, y)
    assert table["radius-margin L2"].kind == "other loss"
    for row in table.rows:
        if row.kind in ("bound", "weak bound", "exact"):
            assert row.value >= np.mean((margins < 0) & sure), row


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("classifier", "range_of", "constants"),
    [
        (lo.LPMClassifier(C=2.0), lpm_range, ()),
        (lo.LOOMClassifier(), loom_range, (1.0,)),
        (lo.LOOMClassifier(nu=1.5, fit_intercept=True), loom_range, (1.5,)),
    ],
)
def test_linear_programs(classifier, range_of, constants, seed):
    """Left-out margins are those of linprog, from the smallest to the largest."""
    X, y, gamma = random_data(40 + seed, n=16)
    clf = clone(classifier).set_params(gamma=gamma)
    price = np.full(16, clf.get_params().get("C", 1.0))
    K, sign, bias = rbf_kernel(X, gamma=gamma), 2.0 * y - 1.0, clf.fit_intercept
    ranges = loo_ranges(range_of, K, sign, price, bias, *constants)
    low, high = np.sort(sign[:, None] * ranges, axis=1).T
    found = lo.leave_one_out(clf, X, y)
    known = found.certified & np.isfinite(low) & np.isfinite(high)
    assert known.mean() > 0.8
    np.testing.assert_allclose(found.lower[known], low[known], 1e-4, 1e-4)
    np.testing.assert_allclose(found.upper[known], high[known], 1e-4, 1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_the_multi_class_svm(seed):
    """Rows called a bound hold; for the hinge loss only the count is one."""
    X, y, gamma = random_data(20 + seed, n=15, n_classes=3)
    C = 10.0 ** (seed % 3)
    quadratic = lo.llw_bounds(lo.LLWClassifier(C, loss="quadratic", gamma=gamma), X, y)
    hinge = lo.llw_bounds(lo.LLWClassifier(C, gamma=gamma), X, y)
    for table in (quadratic, hinge):
        for row in table.rows:
            assert row.kind != "bound" or row.value >= table["exact"].lower, row
    names = ("radius_margin", "lemma_count", "sharp_sum", "sharp_count")
    assert {quadratic[name].kind for name in names} == {"bound"}
    assert {hinge[name].kind for name in names} == {"other loss"}


def test_quadratic_loss_has_the_penalty_of_the_m_svm2():
    """C ||M xi||^2 of Guermeur & Monfrini (2011): primal and dual value are equal."""
    X, y, gamma = random_data(30, n=18, n_classes=3)
    Q, C = 3, 2.0
    clf = lo.LLWClassifier(C, loss="quadratic", gamma=gamma).fit(X, y)
    K, alpha, W = rbf_kernel(X, gamma=gamma), clf.dual_, clf.expansion_coef_.T
    others = y[:, None] != np.arange(Q)
    slack = np.where(others, -W / (2 * C), 0.0)
    below = clf.decision_function(X) + 1 / (Q - 1) - slack
    assert below[others].max() < 1e-7  # feasible
    M = np.eye(Q - 1) + (np.sqrt(Q) - 1) / (Q - 1)
    penalty = C * ((slack[others].reshape(-1, Q - 1) @ M) ** 2).sum()
    primal = 0.5 * np.trace(W.T @ K @ W) + penalty
    ridge = K + np.eye(len(y)) / (2 * C)
    dual = alpha.sum() / (Q - 1) - 0.5 * np.trace(W.T @ ridge @ W)
    assert primal == pytest.approx(dual, rel=1e-8)


def test_geometry_of_the_multi_class_svm():
    """d(h) and d_kl from decision values, D_m between two bounds."""
    X, y, gamma = random_data(31, n=18, n_classes=3)
    clf = lo.LLWClassifier(np.inf, gamma=8 * gamma).fit(X, y)
    found = lo.llw_bounds(clf, X, y).geometry
    h, gaps = clf.decision_function(X), np.full((3, 3), np.nan)
    for k, m in ((0, 1), (0, 2), (1, 2)):
        rows = np.isin(y, (k, m))
        gaps[k, m] = gaps[m, k] = np.abs(h[rows, k] - h[rows, m]).min()
    assert found.smallest_gap == pytest.approx(np.nanmin(gaps))
    np.testing.assert_allclose(
        found.relative_gaps, gaps / np.nanmin(gaps) - 1, atol=1e-7
    )
    farthest = np.sqrt(2 - 2 * rbf_kernel(X, gamma=clf.gamma).min())
    assert farthest <= found.diameter <= np.sqrt(2) * farthest
    np.testing.assert_allclose(found.reach.max(), farthest)
