# SPDX-License-Identifier: BSD-3-Clause
"""Leaving samples out of Lee, Lin & Wahba's machine, against clarabel's refits."""

import numpy as np
import pytest
from oracles.llw import llw_clarabel, random_llw

from leaveout.engine._problem import SETTLED_BY
from leaveout.llw._bounds import bound_llw, llw_key_numbers
from leaveout.llw._solve import LlwProblem, solve_llw
from leaveout.llw._walk import LLW_METHODS, LlwWalker, loo_llw_refit, loo_llw_walk


def random_problem(seed, **given):
    """Return a machine that has an optimum."""
    rng = np.random.default_rng(seed)
    while True:
        K, codes, C, Q, kind = random_llw(rng, **given)
        problem = LlwProblem(K, codes, C, Q)
        problem = problem.as_hard_margin() if kind == "quadratic" else problem
        if np.bincount(codes, minlength=Q).min() >= 2:
            return problem


def columns(machines, name):
    return np.column_stack([getattr(machine, name) for machine in machines])


def hard_loo(problem, solution):
    """Return who is wrong or ambiguous when left out: own class not the largest."""
    machines = loo_llw_walk(problem, solution=solution)
    lower, upper = columns(machines, "lower"), columns(machines, "upper")
    if problem.n_classes == 2:
        lower, upper = np.hstack([-upper, lower]), np.hstack([-lower, upper])
    rows = np.arange(len(problem.codes))
    own = lower[rows, problem.codes].copy()
    upper[rows, problem.codes] = -np.inf
    assert machines[0].certified.all()
    return own <= upper.max(axis=1) + 1e-9


@pytest.mark.parametrize("method", LLW_METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_values_of_clarabels_refits(method, seed):
    problem = random_problem(seed, n=18)
    machines = LLW_METHODS[method](problem)
    Q, shown = problem.n_classes, [1] if problem.n_classes == 2 else slice(None)
    assert len(machines) == (1 if Q == 2 else Q)
    assert all(machine.certified.all() for machine in machines)
    values, lower, upper = (columns(machines, n) for n in ("values", "lower", "upper"))
    for r in range(18):
        keep = np.delete(np.arange(18), r)
        truth = llw_clarabel(
            problem.K[np.ix_(keep, keep)], problem.codes[keep], problem.C[keep], Q
        )
        h = (problem.K[r, keep] @ truth.W + truth.b)[shown]
        assert (h >= lower[r] - 1e-4).all()
        assert (h <= upper[r] + 1e-4).all()
        if (upper[r] - lower[r]).max() < 1e-6:
            np.testing.assert_allclose(values[r], h, atol=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_walk_is_refit(seed):
    problem = random_problem(seed, n=16)
    walk, refit = loo_llw_walk(problem), loo_llw_refit(problem)
    for name in ("values", "lower", "upper"):
        np.testing.assert_allclose(
            columns(walk, name), columns(refit, name), atol=1e-6, err_msg=name
        )


def test_zero_multipliers_are_not_refitted():
    problem = random_problem(4, Q=3, n=40)
    solution = solve_llw(problem)
    machines = loo_llw_walk(problem, solution=solution)
    names = np.array(SETTLED_BY)[machines[0].settled_by]
    zero = ~solution.alpha.any(axis=1)
    assert zero.any()
    assert (names[zero] == "zero_alpha").all()
    assert (names[~zero] == "walk").all()
    assert machines[0].counts["walks"] == (~zero).sum()


def test_lost_walks_are_refitted(monkeypatch):
    problem = random_problem(4, Q=3, n=40)
    walked = loo_llw_walk(problem)
    monkeypatch.setattr(LlwWalker, "_walk", lambda *_: None)
    refitted = loo_llw_walk(problem)
    names = np.array(SETTLED_BY)[refitted[0].settled_by]
    assert set(names) == {"zero_alpha", "refit"}
    for name in ("values", "lower", "upper"):
        np.testing.assert_allclose(
            columns(walked, name), columns(refitted, name), atol=1e-7
        )


def test_threads_and_progress_change_nothing(capsys):
    problem = random_problem(9, Q=4, n=30)
    one = loo_llw_walk(problem)
    assert capsys.readouterr().err == ""
    two = loo_llw_walk(problem, n_threads=2, verbose=True)
    assert "left out: 1 of 1" in capsys.readouterr().err
    for name in ("values", "lower", "upper", "settled_by"):
        np.testing.assert_array_equal(columns(one, name), columns(two, name))


def test_class_that_vanishes():
    K, codes, _, _, _ = random_llw(np.random.default_rng(0), Q=3, n=20)
    codes = np.where(codes == 2, 0, codes)
    codes[5] = 2
    C = np.full(20, 2.0)
    machines = loo_llw_walk(LlwProblem(K, codes, C, 3))
    keep = np.delete(np.arange(20), 5)
    two = llw_clarabel(K[np.ix_(keep, keep)], codes[keep], C[keep], 2)
    expected = K[5, keep] @ two.W + two.b
    assert columns(machines, "values")[5, :2] == pytest.approx(expected, abs=1e-5)
    assert machines[2].values[5] == -np.inf
    assert SETTLED_BY[machines[0].settled_by[5]] == "singleton"


def test_one_of_two_classes_vanishes():
    K, codes, _, _, _ = random_llw(np.random.default_rng(0), Q=2, n=10)
    codes = np.zeros(10, dtype=int)
    codes[3] = 1
    [machine] = loo_llw_walk(LlwProblem(K, codes, np.full(10, 2.0), 2))
    assert machine.values[3] == -1.0
    assert (machine.lower[3], machine.upper[3]) == (-np.inf, -1.0)


def test_absent_samples_get_the_full_machine():
    K, codes, _, Q, _ = random_llw(np.random.default_rng(1), Q=3, n=20)
    C = np.full(20, 2.0)
    C[7] = 0.0
    problem = LlwProblem(K, codes, C, Q)
    machines, solution = loo_llw_walk(problem), solve_llw(problem)
    np.testing.assert_allclose(
        columns(machines, "values")[7], solution.decision_values[7], atol=1e-9
    )
    assert SETTLED_BY[machines[0].settled_by[7]] == "untouched"


def random_hard(rng):
    """Return a hard-margin machine, some made of a quadratic loss, and its optimum."""
    while True:
        K, codes, _, Q, _ = random_llw(rng, n=int(rng.integers(8, 17)))
        if np.bincount(codes, minlength=Q).min() < 2:
            continue
        C = np.full(codes.size, 10 ** rng.uniform(-1, 2))
        problem = LlwProblem(K, codes, C, Q).as_hard_margin()
        if rng.random() < 0.5:
            problem = LlwProblem(K, codes, np.full(codes.size, np.inf), Q)
        solution = solve_llw(problem)
        if solution.separable:
            return problem, solution


@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold(seed):
    """20 machines each; ``benchmarks/papers/guermeur2009.py`` has a thousand more."""
    rng = np.random.default_rng(100 + seed)
    for _ in range(20):
        problem, solution = random_hard(rng)
        wrong = hard_loo(problem, solution)
        numbers, n = llw_key_numbers(problem, solution), wrong.size
        assert (numbers.paper_ratio[wrong] >= 1 - 1e-9).all()
        assert (numbers.sharp_ratio[wrong] >= 1 - 1e-9).all()
        paper, total, count = bound_llw(problem, solution)
        assert wrong.mean() <= count.value <= 1.0
        assert wrong.mean() <= total.value <= paper.value
        assert n == problem.K.shape[0]


@pytest.mark.parametrize("seed", range(20))
def test_proposition_2(seed):
    """Geometrical margins as printed, sum ||w_k||^2, a'Ha and sum(a)/(Q-1) agree."""
    problem, solution = random_hard(np.random.default_rng(seed))
    Q, alpha, W = problem.n_classes, solution.alpha, solution.coef
    gram = W.T @ problem.K @ W  # <w_k, w_l>
    h = solution.decision_values
    gaps = {
        (k, m): np.abs(h[:, k] - h[:, m])[np.isin(problem.codes, (k, m))].min()
        for k in range(Q)
        for m in range(k)
    }
    d = min(gaps.values())
    total = 0.0
    for (k, m), gap in gaps.items():
        d_kl = gap / d - 1
        gamma = d * (1 + d_kl) / np.sqrt(gram[k, k] + gram[m, m] - 2 * gram[k, m])
        total += ((1 + d_kl) / gamma) ** 2
    curve = problem.K @ (alpha - alpha.mean(axis=1, keepdims=True))
    quadratic = (alpha * curve).sum()
    expected = solution.squared_norm
    assert d**2 / Q * total == pytest.approx(expected, rel=1e-9)
    assert np.trace(gram) == pytest.approx(expected, rel=1e-9)
    assert quadratic == pytest.approx(expected, rel=1e-9)
    assert alpha.sum() / (Q - 1) == pytest.approx(expected, rel=1e-9)


def test_no_margin_no_bound():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    problem = LlwProblem(np.outer(x, x), np.array([0, 1, 0, 1]), np.full(4, np.inf), 2)
    values = [bound.value for bound in bound_llw(problem, solve_llw(problem))]
    assert values == [np.inf, np.inf, 1.0]
