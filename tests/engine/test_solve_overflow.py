# SPDX-License-Identifier: BSD-3-Clause
"""Kernels stay inside their arrays whatever the numbers in them; nothing hangs."""

import numpy as np
import pytest
from oracles.problems import random_case

import leaveout as lo
from leaveout.engine._problem import Problem
from leaveout.engine._smo_fast import smo_with_intercept, smo_without_intercept
from leaveout.engine._solve import solve_svc
from leaveout.llw._solve import descend

SPOILT = [np.nan, np.inf, -np.inf, 1e308, -1e308]


def spoil(array, rng):
    """Put up to three values that overflow, or have, at random places."""
    for _ in range(rng.integers(1, 4)):
        array[tuple(rng.integers(array.shape))] = rng.choice(SPOILT)


@pytest.mark.parametrize("smo", [smo_with_intercept, smo_without_intercept])
@pytest.mark.parametrize("seed", range(30))
def test_smo_stops_where_its_gradient_overflows(smo, seed):
    rng = np.random.default_rng(seed)
    K, y, C, _ = random_case(rng, max_n=20)
    C = C * 10.0 ** rng.integers(0, 300)
    beta, F = np.zeros_like(y), y.copy()
    spoil(K, rng)
    if rng.random() < 0.3:
        spoil(F, rng)
    diag = K.diagonal().copy()
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    steps, _ = smo(K, diag, lower, upper, beta, F, 1e-3, 500)
    assert steps <= 500


@pytest.mark.parametrize("seed", range(20))
def test_solver_ends_without_a_certificate(seed):
    rng = np.random.default_rng(seed)
    K, y, C, fit_intercept = random_case(rng, max_n=20)
    for _ in range(3):
        i, j = rng.integers(y.size, size=2)
        K[i, j] = K[j, i] = rng.choice(SPOILT)
    with np.errstate(all="ignore"):
        solution = solve_svc(Problem(K, y, C, fit_intercept), max_iter=2000)
    assert not solution.converged or np.isfinite(solution.decision_values).all()


@pytest.mark.parametrize(("size", "C"), [(1e200, 1e10), (1e300, 1.0), (1e300, 1e10)])
def test_huge_indefinite_kernel_is_refused(size, C, rng):
    K = size * rng.normal(size=(12, 12))
    K = K + K.T
    np.fill_diagonal(K, 1.0)
    svc = lo.SVC(kernel="precomputed", C=C)
    with pytest.raises(ValueError, match="not positive semi-definite needs kernel val"):
        lo.leave_one_out(svc, K, np.arange(12) % 2)


@pytest.mark.parametrize("seed", range(12))
def test_several_classes(seed):
    """The first five were settled at NaN."""
    rng = np.random.default_rng(seed)
    Q = int(rng.integers(3, 6))
    n = int(rng.integers(Q, 12))
    X = rng.normal(size=(n, 3))
    K = X @ X.T
    strange = [*SPOILT, 1e200, 5e-324, 0.0, -1.0]
    for _ in range(rng.integers(1, 4)):
        i, j = rng.integers(0, n, 2)
        K[i, j] = strange[rng.integers(len(strange))]
        if rng.random() < 0.7:
            K[j, i] = K[i, j]
    if rng.random() < 0.2:
        K[:] = strange[rng.integers(len(strange))]
    C = np.full((n, Q), float(rng.choice([1e-300, 1.0, 1e300, np.inf, 5e-324])))
    C[np.arange(n), rng.integers(0, Q, n)] = 0.0
    with np.errstate(all="ignore"):
        found = descend(K, C)
    if found.settled:
        assert np.all((found.alpha >= 0.0) & (found.alpha <= C))
