# SPDX-License-Identifier: BSD-3-Clause
"""The solver of the SVM of Lee, Lin & Wahba against clarabel and the binary SVM."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.llw import certify_llw, degenerate_problem, llw_clarabel, random_problem
from sklearn.metrics.pairwise import rbf_kernel

from leaveout.llw._solve import LlwProblem, _finish, centre, solve_llw

CASES = {f"random {seed}": random_problem(seed) for seed in range(30)}
CASES |= {
    f"two classes {k}": random_problem(k, Q=2, C=10.0 ** (k - 2)) for k in range(5)
}
CASES |= {f"degenerate {seed}": degenerate_problem(seed) for seed in range(9)}
CONSTANT = LlwProblem(np.ones((6, 6)), np.array([0, 0, 0, 1, 1, 2]), np.ones(6), 3)
CASES["constant"] = CONSTANT


@pytest.mark.parametrize("name", CASES)
def test_optimum_equals_clarabels(name):
    problem = CASES[name]
    solution, truth = solve_llw(problem), llw_clarabel(problem)
    assert solution.converged
    assert abs(solution.duality_gap) < 1e-8
    assert solution.kkt_residual < 1e-9
    assert solution.objective == pytest.approx(truth.dual, rel=1e-7)
    own = certify_llw(problem, solution.alpha, solution.intercept)
    # K W has terms of 1e6 in the hardest of these hard margins: ten digits remain.
    terms = (np.abs(problem.K) @ np.abs(solution.coef)).max()
    digits = max(1e-9, 4 * np.finfo(float).eps * problem.n_classes * terms)
    assert own.primal == pytest.approx(solution.objective, rel=digits)
    assert own.dual == pytest.approx(own.primal, rel=1e-8)
    np.testing.assert_allclose(
        problem.K @ solution.coef, problem.K @ truth.W, atol=1e-4
    )
    alpha, b = solution.alpha, solution.intercept
    assert ((alpha >= 0) & (alpha <= problem.upper)).all()
    assert np.ptp(alpha.sum(axis=0)) < 1e-11 * alpha.sum()
    assert abs(b.sum()) < 1e-15 * max(1.0, np.abs(solution.coef).sum())
    assert (b >= solution.intercept_lower - 1e-9).all()
    assert (b <= solution.intercept_upper + 1e-9).all()


@pytest.mark.parametrize("seed", range(8))
def test_every_intercept_within_bounds_and_sum_zero_is_optimal(seed):
    """A small C leaves columns without a free variable."""
    problem = random_problem(seed, n=12, C=0.02)
    solution = solve_llw(problem)
    low, high = solution.intercept_lower, solution.intercept_upper
    best = certify_llw(problem, solution.alpha, solution.intercept)
    assert best.gap < 1e-8
    for k in range(problem.n_classes):  # b_k at an end, the others as the sum allows
        for end in (low[k], high[k]):
            least, most = low.copy(), high.copy()
            least[k] = most[k] = end
            share = -least.sum() / max((most - least).sum(), 1e-300)
            b = least + np.clip(share, 0, 1) * (most - least)
            assert abs(b.sum()) < 1e-8
            value = certify_llw(problem, solution.alpha, b)
            assert value.primal == pytest.approx(best.primal, rel=1e-8)
    assert np.count_nonzero(high - low > 1e-6) != 1


def test_quadratic_penalty_is_the_hard_margin_with_a_ridge():
    """The primal of the penalty, written out, has the value of the hard margin."""
    problem, C = random_problem(3, Q=4, n=30, C=1.0), np.linspace(0.5, 3.0, 30)
    K, other, Q = problem.K, problem.open, 4
    solution = solve_llw(replace(problem, C=C).as_hard_margin())
    W, b = solution.coef, solution.intercept
    xi = -W / (2 * C[:, None])
    assert (K @ W + b <= -1 / (Q - 1) + xi + 1e-9)[other].all()
    xi = np.where(other, xi, 0)
    penalty = C @ ((xi**2).sum(axis=1) + xi.sum(axis=1) ** 2)
    value = 0.5 * (W * (K @ W)).sum() + penalty
    assert value == pytest.approx(solution.objective, rel=1e-9)


@pytest.mark.parametrize("Q", [2, 3, 5])
def test_without_a_hard_margin(Q):
    """Alternating classes on a line; equal samples of different classes."""
    x, hard = np.arange(4.0 * Q), np.full(4 * Q, np.inf)
    problem = LlwProblem(np.outer(x, x), np.arange(4 * Q) % Q, hard, Q)
    assert not solve_llw(problem).separable
    conflicts = replace(degenerate_problem(2 * Q), C=np.full(30, np.inf))
    assert not solve_llw(conflicts).separable


@pytest.mark.parametrize("C", [1e6, 1e12, 1e150])
def test_a_large_c_that_is_not_reached_is_the_hard_margin(C):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(12, 2)), np.arange(12) % 3
    K = rbf_kernel(X, gamma=0.5)
    hard = solve_llw(LlwProblem(K, codes, np.full(12, np.inf), 3))
    soft = solve_llw(LlwProblem(K, codes, np.full(12, C), 3))
    assert soft.converged
    assert abs(soft.duality_gap) < 1e-10
    assert soft.objective == pytest.approx(hard.objective, rel=1e-10)
    np.testing.assert_allclose(soft.coef, hard.coef, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("kind", "C"), [("wide", 1e5), ("poly", 1e3), ("poly", 1e5)])
def test_ill_conditioned_kernels_with_large_c(kind, C):
    """The active set needs many steps and restarts; rounding decides the last case."""
    rng = np.random.default_rng(3)
    codes = np.arange(75) % 5
    X = rng.normal(size=(75, 3)) + rng.normal(size=(5, 3))[codes]
    K = (X @ X.T + 1) ** 4 if kind == "poly" else rbf_kernel(X, gamma=0.002)
    problem = LlwProblem(K, codes, np.full(75, C), 5)
    solution = solve_llw(problem)
    assert solution.converged or (kind, C) == ("poly", 1e5)
    assert np.isfinite(solution.decision_values).all()
    if solution.converged:
        assert certify_llw(problem, solution.alpha, solution.intercept).gap < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_active_set_alone_from_zero(seed):
    """Without SMO it starts without free entries: tuples, pairs and singles enter."""
    problem = random_problem(seed, Q=3 + seed % 3, n=24)
    centred = centre(problem)
    upper = np.minimum(problem.upper.T * centred.scale, 1e12, order="C")
    alpha, gradient = np.zeros(upper.shape), np.full(upper.shape, 1 / (len(upper) - 1))
    _, _, settled = _finish(centred.K, upper, alpha, gradient, problem.is_hard)
    truth = llw_clarabel(problem)
    assert settled
    own = certify_llw(problem, alpha.T / centred.scale, truth.b)
    assert own.dual == pytest.approx(truth.dual, rel=1e-7)
