# SPDX-License-Identifier: BSD-3-Clause
"""The solver of Lee, Lin & Wahba's machine against clarabel and the binary SVM."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.llw import certify_llw, llw_clarabel, random_llw

from leaveout.engine._problem import MARGIN, Problem
from leaveout.engine._solve import solve_svc
from leaveout.llw import _solve as _llw
from leaveout.llw import _solve as _llw_descent
from leaveout.llw._interior import InteriorPoint
from leaveout.llw._pivot import LlwPoint
from leaveout.llw._solve import LlwProblem, solve_llw


def make(seed, **given):
    K, codes, C, Q, kind = random_llw(np.random.default_rng(seed), **given)
    problem = LlwProblem(K, codes, C, Q)
    return problem.as_hard_margin() if kind == "quadratic" else problem


@pytest.mark.parametrize("seed", range(60))
def test_objective_of_clarabel(seed):
    problem = make(seed)
    solution = solve_llw(problem)
    truth = llw_clarabel(problem.K, problem.codes, problem.C, problem.n_classes)
    assert solution.converged
    assert abs(solution.duality_gap) < 1e-8
    assert solution.kkt_residual < 1e-9
    assert solution.objective == pytest.approx(truth.dual, rel=1e-7)
    own = certify_llw(
        problem.K, problem.codes, problem.C, solution.alpha, solution.intercept
    )
    # K W has terms of 1e6 in the worst of these hard margins: ten digits are left.
    terms = (np.abs(problem.K) @ np.abs(solution.coef)).max()
    digits = max(1e-9, 4 * np.finfo(float).eps * problem.n_classes * terms)
    assert own.primal == pytest.approx(solution.objective, rel=digits)
    assert own.dual == pytest.approx(own.primal, rel=1e-8)
    np.testing.assert_allclose(
        problem.K @ solution.coef, problem.K @ truth.W, atol=1e-4
    )


@pytest.mark.parametrize("seed", range(20))
def test_sums_and_boxes(seed):
    problem = make(seed)
    solution = solve_llw(problem)
    alpha, scale = solution.alpha, solution.alpha.max()
    assert (alpha >= 0).all()
    assert (alpha <= problem.box).all()
    assert np.ptp(alpha.sum(axis=0)) < 1e-11 * alpha.sum()
    assert np.abs(solution.coef.sum(axis=1)).max() < 1e-12 * scale
    terms = max(1.0, np.abs(solution.coef).sum())
    assert abs(solution.intercept.sum()) < 1e-15 * terms
    assert (solution.intercept >= solution.intercept_lower - 1e-9).all()
    assert (solution.intercept <= solution.intercept_upper + 1e-9).all()


@pytest.mark.parametrize("seed", range(20))
def test_two_classes_are_the_svm_with_half_of_c(seed):
    K, codes, C, _, _ = random_llw(np.random.default_rng(seed), Q=2)
    C = np.where(np.isinf(C), 50.0, C)
    solution = solve_llw(LlwProblem(K, codes, C, 2))
    svm = solve_svc(Problem(K, np.where(codes == 1, 1.0, -1.0), C / 2))
    # f = h_1 = -h_0 and 1/2 sum ||w_k||^2 = ||w||^2
    np.testing.assert_allclose(
        K @ solution.coef[:, 1], svm.decision_values - svm.intercept, atol=1e-8
    )
    assert solution.objective == pytest.approx(2 * svm.objective, rel=1e-9)
    assert solution.intercept_lower[1] == pytest.approx(
        svm.intercept_interval[0], abs=1e-7
    )
    assert solution.intercept_upper[1] == pytest.approx(
        svm.intercept_interval[1], abs=1e-7
    )


@pytest.mark.parametrize("seed", range(25))
def test_every_intercept_of_the_box_with_sum_zero_is_optimal(seed):
    """Small boxes leave columns without a free variable."""
    rng = np.random.default_rng(seed)
    K, codes, _, Q, _ = random_llw(rng, n=12)
    C = np.full(12, 0.02)
    solution = solve_llw(LlwProblem(K, codes, C, Q))
    low, high = solution.intercept_lower, solution.intercept_upper
    best = certify_llw(K, codes, C, solution.alpha, solution.intercept)
    assert best.gap < 1e-8
    for k in range(Q):  # b_k at either end, the others where the sum allows
        for end in (low[k], high[k]):
            others = np.arange(Q) != k
            width = (high - low)[others]
            share = (-end - low[others].sum()) / max(width.sum(), 1e-300)
            b = np.empty(Q)
            b[k], b[others] = end, low[others] + np.clip(share, 0, 1) * width
            assert abs(b.sum()) < 1e-8
            value = certify_llw(K, codes, C, solution.alpha, b)
            assert value.primal == pytest.approx(best.primal, rel=1e-8)
    wide = high - low > 1e-6
    assert not wide.any() or wide.sum() >= 2


def test_quadratic_penalty_is_the_hard_margin_with_a_ridge():
    """The primal of the penalty, written out, has the value of the hard margin."""
    K, codes, _, Q, _ = random_llw(np.random.default_rng(3), Q=4, n=30)
    C = np.random.default_rng(0).uniform(0.5, 3.0, 30)
    soft = LlwProblem(K, codes, C, Q)
    solution = solve_llw(soft.as_hard_margin())
    W, b = solution.coef, solution.intercept
    xi = -W / (2 * C[:, None])
    other = codes[:, None] != np.arange(Q)
    assert (K @ W + b <= -1 / (Q - 1) + xi + 1e-9)[other].all()
    xi = np.where(other, xi, 0)
    penalty = C @ ((xi**2).sum(axis=1) + xi.sum(axis=1) ** 2)
    value = 0.5 * (W * (K @ W)).sum() + penalty
    assert value == pytest.approx(solution.objective, rel=1e-9)


def test_not_separable():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    machine = LlwProblem(np.outer(x, x), np.array([0, 1, 0, 1]), np.full(4, np.inf), 2)
    assert not solve_llw(machine).separable


@pytest.mark.parametrize("C", [1e6, 1e9, 1e12, 1e20, 1e150])
def test_a_large_c_that_nobody_reaches_is_the_hard_margin(C):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(12, 2)), np.arange(12) % 3
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    hard = solve_llw(LlwProblem(K, codes, np.full(12, np.inf), 3))
    soft = solve_llw(LlwProblem(K, codes, np.full(12, C), 3))
    assert soft.converged
    assert abs(soft.duality_gap) < 1e-10
    assert soft.objective == pytest.approx(hard.objective, rel=1e-10)
    np.testing.assert_allclose(soft.coef, hard.coef, rtol=1e-7, atol=1e-7)


def test_conflicting_duplicates_are_not_separable():
    K, codes, _, Q, _ = random_llw(np.random.default_rng(1), Q=3, n=20)
    K[1], K[:, 1] = K[0], K[:, 0]
    K[1, 1] = K[0, 0]
    assert codes[0] != codes[1]
    assert not solve_llw(LlwProblem(K, codes, np.full(20, np.inf), Q)).separable
    soft = LlwProblem(K, codes, np.full(20, 5.0), Q)
    solution = solve_llw(soft)
    truth = llw_clarabel(K, codes, soft.C, Q)
    assert solution.objective == pytest.approx(truth.dual, rel=1e-7)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e3, 1e6])
def test_singular_kernels(C):
    """Linear kernel in one dimension, with repeated samples."""
    rng = np.random.default_rng(5)
    x = np.repeat(rng.normal(size=15), 2) + 100.0
    codes = np.arange(30) % 3
    K = np.outer(x, x)
    solution = solve_llw(LlwProblem(K, codes, np.full(30, C), 3))
    assert solution.converged
    centred = np.outer(x - x.mean(), x - x.mean())
    truth = llw_clarabel(centred, codes, np.full(30, C), 3)
    # The rounding of K, 1e4 beside distances of 1, moves the optimum by 1e-7 for
    # C = 1e6: our alpha is judged with the kernel that clarabel has.
    own = certify_llw(centred, codes, np.full(30, C), solution.alpha, truth.b)
    assert own.dual == pytest.approx(truth.dual, rel=1e-8)
    assert solution.objective == pytest.approx(truth.dual, rel=2e-7)


def test_constant_kernel():
    codes = np.array([0, 0, 0, 1, 1, 2])
    solution = solve_llw(LlwProblem(np.ones((6, 6)), codes, np.full(6, 1.0), 3))
    assert solution.converged
    assert np.abs(np.ones((6, 6)) @ solution.coef).max() < 1e-9
    assert solution.intercept.argmax() == 0


@pytest.mark.parametrize("seed", range(10))
def test_absent_samples(seed):
    problem = make(seed, n=24)
    gone = np.array([1, 7, 20])
    C = problem.C.copy()
    keep = np.setdiff1d(np.arange(24), gone)
    if len(set(problem.codes[keep])) < problem.n_classes:
        pytest.skip("a class has gone")
    C[gone] = 0.0
    whole = solve_llw(replace(problem, C=C))
    part = solve_llw(
        LlwProblem(
            problem.K[np.ix_(keep, keep)],
            problem.codes[keep],
            problem.C[keep],
            problem.n_classes,
        )
    )
    assert (whole.coef[gone] == 0).all()
    assert whole.objective == pytest.approx(part.objective, rel=1e-8)
    np.testing.assert_allclose(whole.coef[keep], part.coef, atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_warm_start_over_c_ends_at_the_same_optimum(seed):
    K, codes, _, Q, _ = random_llw(np.random.default_rng(seed), n=30)
    last = None
    for C in [0.1, 0.15, 0.3, 1.0, 2.0]:
        problem = LlwProblem(K, codes, np.full(30, C), Q)
        last = solve_llw(problem, start=last)
        cold = solve_llw(problem)
        assert last.objective == pytest.approx(cold.objective, rel=1e-9)
        np.testing.assert_allclose(K @ last.coef, K @ cold.coef, atol=1e-7)


@pytest.mark.parametrize("Q", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("kind", ["hinge", "weighted", "quadratic", "hard"])
def test_active_set_and_interior_point_agree_with_clarabel(Q, kind, monkeypatch):
    """Each alone, on the same machine; no silent change from one to the other."""
    rng = np.random.default_rng([Q, len(kind)])
    codes = np.arange(36) % Q
    X = rng.normal(size=(36, 3)) + 2 * rng.normal(size=(Q, 3))[codes]
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    C = np.full(36, {"hard": np.inf, "hinge": 0.7}.get(kind, 3.0))
    if kind == "weighted":
        C = C * rng.uniform(0.1, 3.0, 36) * (np.arange(36) != 5)
    problem = LlwProblem(K, codes, C, Q)
    problem = problem.as_hard_margin() if kind == "quadratic" else problem
    truth = llw_clarabel(problem.K, problem.codes, problem.C, Q)
    direct = solve_llw(problem)
    two_soft = Q == 2 and not problem.is_hard
    assert direct.found_by == ("binary SVM" if two_soft else "active set")

    def lost(*_):
        return LlwPoint(direct.alpha, np.zeros(Q), direct.state, False, 0, "nobody")

    monkeypatch.setattr(_llw, "descend", lost)
    monkeypatch.setattr(
        _llw, "_solve_as_binary", lambda _: replace(direct, converged=False)
    )
    interior = solve_llw(problem)
    assert interior.found_by == "interior point"
    for solution in (direct, interior):
        assert solution.converged
        assert solution.objective == pytest.approx(truth.dual, rel=1e-7)
    np.testing.assert_allclose(K @ direct.coef, K @ interior.coef, atol=1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_active_set_on_degenerate_machines(seed):
    """Repeated samples, conflicting labels, low rank, columns without a free entry."""
    rng = np.random.default_rng(seed)
    Q = 3 + seed % 4
    X = np.repeat(rng.integers(0, 3, size=(15, 2)).astype(float), 2, axis=0)
    codes = np.arange(30) % Q
    C = np.full(30, [0.01, 1.0, 30.0][seed % 3])
    K = X @ X.T if seed % 2 else np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    solution = solve_llw(LlwProblem(K, codes, C, Q))
    truth = llw_clarabel(K, codes, C, Q)
    assert solution.found_by == "active set"
    assert solution.converged
    assert solution.objective == pytest.approx(truth.dual, rel=1e-7)
    assert np.ptp(solution.alpha.sum(axis=0)) <= 1e-12 * solution.alpha.sum()


def test_active_set_beyond_its_capacity_says_so(monkeypatch):
    monkeypatch.setattr(_llw_descent, "MAX_FREE", 10)
    problem = make(4, Q=4, n=30)
    solution = solve_llw(problem)
    assert solution.found_by == "interior point"
    assert solution.converged


def test_active_set_out_of_work_says_so(monkeypatch):
    """Neither SMO nor the active set may go on: the interior point does."""
    monkeypatch.setattr(_llw_descent, "SMO_STEPS_PER_VARIABLE", 0)
    monkeypatch.setattr(_llw_descent, "ACTIVE_SET_WORK", 0)
    problem = make(4, Q=4, n=30)
    assert solve_llw(problem).found_by == "interior point"


def test_interior_point_leaves_no_dependent_free_entries(monkeypatch):
    """Samples in a plane: more than three free ones a column are too many."""
    rng = np.random.default_rng(1)
    codes = np.arange(40) % 3
    X = rng.normal(size=(40, 2)) + (codes == 0)[:, None]
    problem = LlwProblem(X @ X.T, codes, np.full(40, 5.0), 3)
    direct = solve_llw(problem)
    lost = LlwPoint(direct.alpha, np.zeros(3), direct.state, False, 0, "nobody")
    monkeypatch.setattr(_llw, "descend", lambda *_: lost)
    solution = solve_llw(problem)
    assert solution.found_by == "interior point"
    assert solution.objective == pytest.approx(direct.objective, rel=1e-10)
    assert ((solution.state == MARGIN).sum(axis=0) <= 3).all()
    monkeypatch.setattr(_llw, "purify", lambda K, C, found: found)
    assert ((solve_llw(problem).state == MARGIN).sum(axis=0) > 3).any()


@pytest.mark.parametrize("seed", range(8))
def test_active_set_alone_from_zero(seed, monkeypatch):
    """Without SMO it starts with no free entry: tuples, pairs and singles come in."""
    monkeypatch.setattr(_llw_descent, "SMO_STEPS_PER_VARIABLE", 0)
    monkeypatch.setattr(_llw_descent, "ACTIVE_SET_WORK", 1000)
    problem = make(seed, Q=3 + seed % 3, n=24)
    solution = solve_llw(problem)
    truth = llw_clarabel(problem.K, problem.codes, problem.C, problem.n_classes)
    assert solution.found_by == "active set"
    assert solution.objective == pytest.approx(truth.dual, rel=1e-7)


def test_warm_start_that_leads_nowhere_is_followed_by_a_cold_one():
    K, codes, _, Q, _ = random_llw(np.random.default_rng(2), Q=5, n=40)
    start = solve_llw(LlwProblem(K, codes, np.full(40, 1e-3), Q))
    problem = LlwProblem(K, codes, np.full(40, 100.0), Q)
    warm, cold = solve_llw(problem, start=start), solve_llw(problem)
    assert warm.found_by in ("pivots", "active set")
    assert warm.objective == pytest.approx(cold.objective, rel=1e-9)


def test_interior_point_alone_is_close():
    problem = make(7, Q=5, n=40)
    K = problem.K - problem.K.mean(axis=0)
    K = K - K.mean(axis=1, keepdims=True)
    interior = InteriorPoint(K, problem.open, np.full((40, 5), 2.0))
    interior.run(1e-10)
    assert not interior.unbounded
    assert interior.best.gap < 1e-10


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.floats(0.1, 10.0))
def test_scaling_permutation_and_relabelling(seed, factor):
    rng = np.random.default_rng(seed)
    K, codes, C, Q, _ = random_llw(rng, n=20)
    one = solve_llw(LlwProblem(K, codes, C, Q))
    order, names = rng.permutation(20), rng.permutation(Q)
    other = solve_llw(
        LlwProblem(factor * K[np.ix_(order, order)], names[codes[order]],
                   C[order] / factor, Q)
    )  # fmt: skip
    if not one.separable:
        assert not other.separable
        return
    assert other.objective * factor == pytest.approx(one.objective, rel=1e-7)
    values = factor * K @ other.coef[np.argsort(order)]
    np.testing.assert_allclose(values[:, names], K @ one.coef, atol=1e-5)


def test_inputs_are_not_changed():
    problem = make(2)
    K, C = problem.K.copy(), problem.C.copy()
    problem.K.flags.writeable = problem.C.flags.writeable = False
    solve_llw(problem)
    assert (problem.K == K).all()
    assert (problem.C == C).all()
