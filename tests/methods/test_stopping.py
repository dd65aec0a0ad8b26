# SPDX-License-Identifier: BSD-3-Clause
"""Stopping conditions and the standard approach, against the oracle."""

import numpy as np
import pytest
from oracles.agreement import assert_signs, decided, margin_interval
from oracles.binary import loo_intervals, svc_clarabel
from oracles.problems import DEGENERATE, KERNELS, random_case
from solved import loo_refit, loo_stopping, loo_walk

from leaveout.engine._problem import SETTLED_BY, Problem
from leaveout.engine._solve import solve_svc
from leaveout.methods import METHODS, bind_params
from leaveout.methods._stopping import LeftOutSolver, check_left_out, solve_to_eps
from leaveout.methods._stopping_fast import Condition

VARIANTS = [
    {},
    {"condition": "ball"},
    {"n_trial": 0},
    {"eps": 1e-3},
    {"eps": 1.0, "n_trial": 0},
    {"eps": 0.1, "n_trial": 0, "condition": "ball"},
    {"eps": 1e-2, "n_trial": 0, "seed": False},
]


def settled(loo, *names):
    """Mask of the samples settled in one of these ways."""
    return np.isin(loo.settled_by, [SETTLED_BY.index(name) for name in names])


def assert_proofs_hold(loo, y, truth, where):
    """A certified label is that of every optimum; also where there are two of them."""
    low, _, high = margin_interval(loo, y)
    correct, error = decided(truth)
    open_ = (truth.low < -1e-8) & (truth.high > 1e-8)
    wrong = (correct & (low <= 0)) | (error & (high >= 0))
    wrong |= open_ & ((low > 0) | (high < 0))
    assert not (wrong & loo.certified).any(), f"{where}: {np.flatnonzero(wrong)}"


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    case = DEGENERATE[name]
    truth = loo_intervals(*case)
    for variant in VARIANTS:
        loo = loo_stopping(Problem(*case), **variant)
        assert_proofs_hold(loo, case.y, truth, f"{name} {variant}")
        if "eps" not in variant:
            assert loo.certified.all()
            assert_signs(case.y * loo.values, truth, f"{name} {variant}")


@pytest.mark.parametrize("kernel", KERNELS)
def test_random_problems(kernel):
    rng = np.random.default_rng([len(kernel), 21])
    for k in range(3):
        case = random_case(rng, kernel=kernel, max_n=30)
        truth = loo_intervals(*case)
        for variant in VARIANTS:
            loo = loo_stopping(Problem(*case), **variant)
            assert_proofs_hold(loo, case.y, truth, f"problem {k} {variant}")
            if "eps" not in variant:
                assert_signs(case.y * loo.values, truth, f"problem {k} {variant}")


def test_both_conditions_prove_labels_long_before_eps():
    """Most labels are proved, and by fewer columns of the kernel matrix."""
    rng = np.random.default_rng(22)
    proved, solves, columns = {}, 0, {}
    for _ in range(8):
        problem = Problem(*random_case(rng, n=40, kernel="rbf", C=10.0))
        standard = loo_refit(problem, solution=solve_svc(problem), eps=1e-6)
        solves += standard.counts["solves"]
        columns["none"] = columns.get("none", 0) + standard.counts["columns"]
        for name in ("auxiliary", "ball"):
            loo = loo_stopping(problem, eps=1e-6, condition=name, n_trial=0)
            assert loo.counts["solves"] == standard.counts["solves"]
            assert loo.counts["proved"] == settled(loo, "stopping").sum()
            proved[name] = proved.get(name, 0) + loo.counts["proved"]
            columns[name] = columns.get(name, 0) + loo.counts["columns"]
    assert min(proved.values()) > 0.95 * solves
    assert max(columns["auxiliary"], columns["ball"]) < 0.7 * columns["none"]


def test_auxiliary_bound_is_the_best_machine_through_the_sample():
    """H climbs to the optimum under f(x_r) = 0, for which clarabel is the truth.

    The condition f(x_r) = 0 is a machine without intercept on the kernel K'.
    """
    rng = np.random.default_rng(23)
    for fit_intercept in (True, False):
        case = random_case(rng, n=20, kernel="rbf", C=3.0, fit_intercept=fit_intercept)
        problem, r = Problem(*case), 4
        K, K_r, others = case.K, case.K[r], np.arange(20) != r
        constrained = K - np.outer(K_r, K_r) / K_r[r]
        if fit_intercept:
            constrained = K - K_r[:, None] - K_r[None, :] + K_r[r]
        part = constrained[np.ix_(others, others)]
        wanted = svc_clarabel(part, case.y[others], case.C[others], False)
        solver = LeftOutSolver(problem, solve_svc(problem), 1e-12)
        beta, F, _ = solver._start(r)
        aux, Q, value = solver._start_auxiliary(r, beta, F)
        np.testing.assert_allclose(Q[others], (case.y - constrained @ aux)[others])
        dual = np.abs(aux).sum() - 0.5 * aux @ constrained @ aux
        assert value == pytest.approx(dual)
        assert value <= wanted.objective * (1 + 1e-12)
        # The optimum itself proves its own label if and only if it is below the bound.
        truth = loo_intervals(*case, rows=[r])
        out = solver.leave_out(np.array([r]), Condition.AUXILIARY)
        assert not truth.ambiguous[0]
        assert out.certified[0]
        rest = svc_clarabel(
            K[np.ix_(others, others)], case.y[others], case.C[others], fit_intercept
        )
        assert rest.objective < wanted.objective


def test_printed_sign_of_the_auxiliary_kernel_would_be_wrong():
    """With -K_rr, as printed, the "bound" exceeds the optimum it should bound."""
    case = DEGENERATE["identity_three_two_weights"]
    K, r = case.K, 0
    others = np.arange(1, 5)
    y, C = case.y[others], case.C[others]
    printed = (K - K[r][:, None] - K[r][None, :] - K[r, r])[np.ix_(others, others)]
    repaired = printed + 2 * K[r, r]
    best = svc_clarabel(repaired, y, C, False).objective
    aux = y * C
    assert C.sum() - 0.5 * aux @ repaired @ aux <= best
    assert C.sum() - 0.5 * aux @ printed @ aux > best + 1e-3


@pytest.mark.parametrize("name", DEGENERATE)
def test_checks_hold_on_degenerate_problems(name):
    case = DEGENERATE[name]
    truth = loo_intervals(*case)
    problem = Problem(*case)
    checked, open_rows = check_left_out(problem, solve_svc(problem))
    assert_proofs_hold(checked, case.y, truth, name)
    assert not checked.certified[open_rows].any()


def test_checks_of_some_rows(rng):
    problem = Problem(*random_case(rng, n=30, kernel="rbf", C=10.0))
    solution = solve_svc(problem)
    rows = np.arange(0, 30, 3)
    everything, all_open = check_left_out(problem, solution)
    some, some_open = check_left_out(problem, solution, rows)
    np.testing.assert_array_equal(some_open, np.intersect1d(all_open, rows))
    for name in ("lower", "upper", "settled_by"):
        np.testing.assert_array_equal(
            getattr(some, name)[rows], getattr(everything, name)[rows]
        )


def test_printed_checks_fail_where_ours_do_not():
    """Errata F7 and F8: alpha_r = 0, and 2 alpha_r R^2 + xi_r < 1, prove nothing."""
    for name in ("no_free_vector", "identity_three_two_weights"):
        case = DEGENERATE[name]
        problem, truth = Problem(*case), loo_intervals(*case, rows=[0])
        solution = solve_svc(problem)
        h = case.y * solution.decision_values
        printed = 2 * solution.alpha[0] + max(0.0, 1.0 - h[0])
        assert solution.alpha[0] == 0.0 or printed < 1.0
        assert truth.low[0] < 0.0
        checked, open_rows = check_left_out(problem, solution)
        low, _, _ = margin_interval(checked, case.y)
        assert low[0] < 0.0 or 0 in open_rows


@pytest.mark.parametrize("seed", [True, False])
def test_standard_approach(seed):
    """Within eps = 1e-6 the labels are the oracle's; nothing unproved is certified."""
    rng = np.random.default_rng(24)
    for k in range(6):
        case = random_case(rng, max_n=30)
        truth = loo_intervals(*case)
        loo = loo_refit(Problem(*case), eps=1e-6, seed=seed)
        sure = np.minimum(np.abs(truth.low), np.abs(truth.high)) > 1e-3
        sure &= ~truth.ambiguous
        margins = case.y * loo.values
        np.testing.assert_array_equal(
            np.sign(margins[sure]), np.sign(truth.value[sure]), f"problem {k}"
        )
        assert not loo.certified[settled(loo, "eps_kkt")].any()
        assert loo.counts["columns"] >= 2 * loo.counts["steps"]


def test_loose_eps_accepts_anything():
    """At eps = 1 zero is optimal: the standard approach sees no errors."""
    case = random_case(np.random.default_rng(25), n=40, kernel="rbf", C=1.0)
    problem = Problem(case.K, case.y, np.ones(40))
    start, _ = solve_to_eps(problem, 1.0 + 1e-9)
    loose = loo_refit(problem, solution=start, eps=1.0 + 1e-9)
    exact = loo_walk(problem)
    assert np.mean(case.y * exact.values < 0) > 0.1
    assert settled(loose, "zero_alpha").all()
    assert not loose.certified.any()
    # The stopping rule proves what it can from there, and proves nothing false.
    proved = loo_stopping(problem, eps=1.0)
    np.testing.assert_array_equal(
        np.sign(proved.values[proved.certified]),
        np.sign(exact.values[proved.certified]),
    )


def test_solution_within_eps():
    rng = np.random.default_rng(26)
    for _ in range(10):
        problem = Problem(*random_case(rng, C=1.0))
        solution, columns = solve_to_eps(problem, 1e-4)
        f = solution.decision_values
        short = np.where(problem.C > 0, 1 - problem.y * f, 0.0)
        alpha = solution.alpha
        assert np.max(np.where(alpha < problem.C, short, 0.0), initial=0.0) <= 4e-4
        assert np.max(np.where(alpha > 0, -short, 0.0), initial=0.0) <= 4e-4
        assert columns == 2 * solution.n_iter or solution.converged


def test_efficiency_switch():
    """A kernel near the identity proves nothing early: after ten samples it is off."""
    case = random_case(np.random.default_rng(27), n=40, kernel="rbf", C=100.0)
    K = np.eye(40) + 1e-3 * case.K
    problem = Problem(K, case.y, np.full(40, 100.0))
    with_switch = loo_stopping(problem, eps=1e-3)
    always = loo_stopping(problem, eps=1e-3, n_trial=0)
    standard = loo_refit(problem, solution=solve_svc(problem), eps=1e-3)
    assert always.counts["proved"] < 0.5 * always.counts["solves"]
    assert standard.counts["columns"] < with_switch.counts["columns"]
    assert with_switch.counts["columns"] < always.counts["columns"]
    exact = loo_stopping(problem)
    assert exact.certified.all()
    assert exact.counts["proved"] + exact.counts["refits"] == exact.counts["solves"]


def test_threads_and_inputs():
    """Same bits by two threads; nothing of the caller's is changed."""
    case = random_case(np.random.default_rng(28), n=30, kernel="rbf", C=5.0)
    problem = Problem(*case)
    for array in (problem.K, problem.y, problem.C):
        array.flags.writeable = False
    solution = solve_svc(problem)
    before = solution.beta.copy()
    one, two = (
        loo_stopping(problem, solution=solution, n_threads=k, eps=1e-3) for k in (1, 2)
    )
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(solution.beta, before)


def test_wrong_parameters():
    problem = Problem(*DEGENERATE["line"])
    with pytest.raises(ValueError, match=r"eps must be > 0.*got 0"):
        loo_refit(problem, eps=0)
    with pytest.raises(ValueError, match="seed=False needs eps"):
        loo_refit(problem, seed=False)
    with pytest.raises(ValueError, match=r"condition must be .* got 'box'"):
        loo_stopping(problem, condition="box")
    with pytest.raises(ValueError, match="n_trial must be 0 or more; got -1"):
        loo_stopping(problem, n_trial=-1)
    with pytest.raises(ValueError, match=r"'epsilon'.*'refit' does not.*eps, seed"):
        bind_params("refit", METHODS["refit"], {"epsilon": 1e-3})
    with pytest.raises(ValueError, match=r"'eps'.*'walk' does not.*none"):
        bind_params("walk", METHODS["walk"], {"eps": 1e-3})
