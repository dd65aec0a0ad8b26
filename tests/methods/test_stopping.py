# SPDX-License-Identifier: BSD-3-Clause
"""Intervals and labels of left-out samples without a refit, against the oracle."""

import numpy as np
import pytest
from oracles.agreement import assert_signs, decided, margin_interval
from oracles.binary import loo_intervals, svc_clarabel
from oracles.problems import DEGENERATE, KERNELS, random_case
from solved import loo_refit, loo_stopping

import leaveout as lo
from leaveout.engine._problem import EPS_KKT, STOPPING, Problem
from leaveout.engine._solve import solve_svc
from leaveout.methods._left_out_interval import left_out_intervals
from leaveout.methods._stopping import (
    LeftOutSolver,
    _auxiliary_gradient,
    check_left_out,
)
from leaveout.methods._stopping_fast import Condition

VARIANTS = [
    {},
    {"condition": "ball"},
    {"n_trial": 0},
    {"eps": 1e-3, "n_threads": 2},
    {"eps": 0.1, "n_trial": 0, "condition": "ball"},
    {"eps": 1e-2, "n_trial": 0, "seed": False},
]


def assert_intervals_contain(case, truth, where):
    """Each interval contains the oracle's, if its class has other samples."""
    problem = Problem(*case)
    solution, y = solve_svc(problem), case.y
    n_own = np.where(y > 0, (y > 0).sum(), (y < 0).sum())
    rows = np.flatnonzero((n_own > 1) | (not case.fit_intercept))
    ends = np.array(left_out_intervals(problem, solution, rows))
    low, high = np.sort(y[rows] * ends, axis=0)
    lowest, highest = truth.low[rows], truth.high[rows]
    slack = 1e-7 * np.maximum(1.0, np.abs(truth.value[rows]))
    assert (low <= lowest + slack).all(), where
    # If b is not unique, h' <= h holds only for the smallest h.
    unique = highest - lowest < 1e-9
    assert (high >= np.where(unique, highest, lowest) - slack).all(), where
    if not case.fit_intercept:  # the bound of Jaakkola & Haussler
        h = y * solution.decision_values
        np.testing.assert_allclose(low, h - solution.alpha * case.K.diagonal())
        np.testing.assert_allclose(high, h)


def assert_proofs_hold(loo, y, truth, where):
    """A certified label is that of every optimum."""
    low, _, high = margin_interval(loo, y)
    correct, error = decided(truth)
    open_ = (truth.low < -1e-8) & (truth.high > 1e-8)
    wrong = (correct & (low <= 0)) | (error & (high >= 0))
    wrong |= open_ & ((low > 0) | (high < 0))
    assert not (wrong & loo.certified).any(), f"{where}: {np.flatnonzero(wrong)}"


def check_case(case, where):
    truth, problem = loo_intervals(*case), Problem(*case)
    assert_intervals_contain(case, truth, where)
    checked, open_rows = check_left_out(problem, solve_svc(problem))
    assert_proofs_hold(checked, case.y, truth, where)
    assert not checked.certified[open_rows].any()
    for variant in VARIANTS:
        loo = loo_stopping(problem, **variant)
        assert_proofs_hold(loo, case.y, truth, f"{where} {variant}")
        if "eps" not in variant:
            assert loo.certified.all()
            assert_signs(case.y * loo.values, truth, f"{where} {variant}")
    for seed in (True, False):  # the standard approach
        loo = loo_refit(problem, eps=1e-6, seed=seed)
        sure = np.minimum(np.abs(truth.low), np.abs(truth.high)) > 1e-3
        same = np.sign(case.y * loo.values) == np.sign(truth.value)
        assert same[sure & ~truth.ambiguous].all(), where
        assert not loo.certified[loo.settled_by == EPS_KKT].any()
        assert loo.counts["columns"] >= 2 * loo.counts["steps"]


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    check_case(DEGENERATE[name], name)


@pytest.mark.parametrize("kernel", KERNELS)
def test_random_problems(kernel):
    rng = np.random.default_rng([len(kernel), 21])
    for k in range(5):
        case = random_case(rng, kernel=kernel, max_n=30)
        for array in case[:3]:
            array.flags.writeable = False
        check_case(case, f"problem {k}")


def test_both_conditions_prove_labels_long_before_eps():
    """Most labels are proved, with fewer columns of the kernel matrix."""
    rng = np.random.default_rng(22)
    for _ in range(4):
        problem = Problem(*random_case(rng, n=40, kernel="rbf", C=10.0))
        standard = loo_refit(problem, eps=1e-6).counts
        for condition in ("auxiliary", "ball"):
            loo = loo_stopping(problem, eps=1e-6, condition=condition, n_trial=0)
            assert loo.counts["solves"] == standard["solves"]
            assert loo.counts["proved"] == np.sum(loo.settled_by == STOPPING)
            assert loo.counts["proved"] > 0.9 * standard["solves"]
            assert loo.counts["columns"] < 0.8 * standard["columns"]
        small = Problem(problem.K, problem.y, 0.01 * problem.C)
        assert check_left_out(small, solve_svc(small))[1].size < 0.2 * 40


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_auxiliary_bound_is_below_the_best_solution_through_the_sample(fit_intercept):
    """With f(x_r) = 0 the problem has no intercept and the kernel K'."""
    rng, r = np.random.default_rng(23), 4
    case = random_case(rng, n=20, kernel="rbf", C=3.0, fit_intercept=fit_intercept)
    problem, K, K_r, rest = Problem(*case), case.K, case.K[r], np.arange(20) != r
    constrained = K - np.outer(K_r, K_r) / K_r[r]
    if fit_intercept:
        constrained = K - K_r[:, None] - K_r[None, :] + K_r[r]

    def objective(kernel, intercept):
        part = kernel[np.ix_(rest, rest)]
        return svc_clarabel(part, case.y[rest], case.C[rest], intercept).objective

    best = objective(constrained, False)
    solver = LeftOutSolver(problem, solve_svc(problem), 1e-12)
    beta, F, _ = solver._start(r)
    Q = _auxiliary_gradient(problem, r, F)
    np.testing.assert_allclose(Q[rest], (case.y - constrained @ beta)[rest])
    dual = np.abs(beta).sum() - 0.5 * beta @ constrained @ beta
    assert dual <= best * (1 + 1e-12)
    # The optimum proves its label if and only if its value is below the bound.
    assert objective(K, fit_intercept) < best
    assert solver.leave_out(np.array([r]), Condition.AUXILIARY).certified[0]


def test_condition_is_switched_off_if_it_proves_little():
    """With a kernel near the identity it proves nothing: off after three samples."""
    case = random_case(np.random.default_rng(27), n=40, kernel="rbf", C=100.0)
    problem = Problem(np.eye(40) + 1e-3 * case.K, case.y, np.full(40, 100.0))
    always = loo_stopping(problem, eps=1e-3, n_trial=0).counts
    switched = loo_stopping(problem, eps=1e-3).counts
    assert always["proved"] < 0.5 * always["solves"]
    assert loo_refit(problem, eps=1e-3).counts["columns"] < switched["columns"]
    assert switched["columns"] < always["columns"]
    # The overhead of the condition is one column per step, on three samples only.
    solver = LeftOutSolver(problem, solve_svc(problem), 1e-3)
    _, rows = check_left_out(problem, solve_svc(problem))
    parts = [
        solver.leave_out(rows[:3], Condition.AUXILIARY),
        solver.leave_out(rows[3:]),
    ]
    assert switched["columns"] == sum(part.counts["columns"] for part in parts)
    threads = loo_stopping(problem, eps=1e-3, n_threads=2).counts
    assert threads["columns"] == switched["columns"]
    exact = loo_stopping(problem).counts
    assert exact["proved"] + exact["refits"] == exact["solves"]


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("refit", {"eps": 0}, r"eps must be > 0.*got 0"),
        ("refit", {"seed": False}, "seed=False needs eps"),
        ("refit", {"epsilon": 1}, r"'epsilon'.*'refit' does not.*eps, seed"),
        ("stopping", {"condition": "x"}, r"condition must be .* got 'x'"),
        ("stopping", {"n_trial": -1}, "n_trial must be 0 or more; got -1"),
        (
            "consolidated",
            {"rule": "x"},
            r"rule must be one of 'first_order', .*got 'x'",
        ),
        ("consolidated", {"memory": None}, r"'memory'.*does not take"),
    ],
)
def test_wrong_method_params(method, params, message, rng):
    X, y, svc = rng.normal(size=(20, 2)), np.arange(20) % 2, lo.SVC(gamma=0.5)
    with pytest.raises(ValueError, match=message):
        lo.leave_one_out(svc, X, y, method=method, method_params=params)
