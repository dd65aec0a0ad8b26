# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of the SVM of Lee, Lin & Wahba, against clarabel's refits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.llw import certify_llw, llw_clarabel, random_llw
from solved import loo_llw_refit, loo_llw_walk

from leaveout.engine._problem import BOUNDED, MARGIN, OUTSIDE, SETTLED_BY
from leaveout.llw._llw_walk_fast import FadingWalk, Status, padded
from leaveout.llw._solve import LlwProblem, solve_llw
from leaveout.llw._walk import DELTA, FAR, LlwWalker

METHODS = {"walk": loo_llw_walk, "refit": loo_llw_refit}


def random_problem(seed, **given):
    """Return a machine that has an optimum."""
    rng = np.random.default_rng(seed)
    while True:
        K, codes, C, Q, kind = random_llw(rng, **given)
        problem = LlwProblem(K, codes, C, Q)
        problem = problem.as_hard_margin() if kind == "quadratic" else problem
        if np.bincount(codes, minlength=Q).min() >= 2:
            return problem


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_values_of_clarabels_refits(method, seed):
    problem = random_problem(seed, n=18)
    found = METHODS[method](problem)
    Q, shown = problem.n_classes, [1] if problem.n_classes == 2 else slice(None)
    assert found.values.shape == (18, 1 if Q == 2 else Q)
    assert found.certified.all()
    values, lower, upper = (getattr(found, n) for n in ("values", "lower", "upper"))
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


@pytest.mark.parametrize("seed", range(5))
def test_walk_is_refit(seed):
    problem = random_problem(seed, n=16)
    walk, refit = loo_llw_walk(problem), loo_llw_refit(problem)
    for name in ("values", "lower", "upper"):
        np.testing.assert_allclose(
            getattr(walk, name), getattr(refit, name), atol=1e-6, err_msg=name
        )


def test_zero_multipliers_are_not_refitted():
    problem = random_problem(4, Q=3, n=40)
    solution = solve_llw(problem)
    found = loo_llw_walk(problem, solution=solution)
    names = np.array(SETTLED_BY)[found.settled_by]
    zero = ~solution.alpha.any(axis=1)
    assert zero.any()
    assert (names[zero] == "zero_alpha").all()
    assert (names[~zero] == "walk").all()
    assert found.counts["walks"] == (~zero).sum()


def test_lost_walks_are_refitted(monkeypatch):
    problem = random_problem(4, Q=3, n=40)
    walked = loo_llw_walk(problem)
    monkeypatch.setattr(LlwWalker, "_walk", lambda *_: None)
    refitted = loo_llw_walk(problem)
    names = np.array(SETTLED_BY)[refitted.settled_by]
    assert set(names) == {"zero_alpha", "refit"}
    for name in ("values", "lower", "upper"):
        np.testing.assert_allclose(
            getattr(walked, name), getattr(refitted, name), atol=1e-7
        )


def test_threads_and_progress_change_nothing(capsys):
    problem = random_problem(9, Q=4, n=30)
    one = loo_llw_walk(problem)
    assert capsys.readouterr().err == ""
    two = loo_llw_walk(problem, n_threads=2, verbose=True)
    assert "left out: 1 of 1" in capsys.readouterr().err
    for name in ("values", "lower", "upper", "settled_by"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_class_that_vanishes():
    K, codes, _, _, _ = random_llw(np.random.default_rng(0), Q=3, n=20)
    codes = np.where(codes == 2, 0, codes)
    codes[5] = 2
    C = np.full(20, 2.0)
    found = loo_llw_walk(LlwProblem(K, codes, C, 3))
    keep = np.delete(np.arange(20), 5)
    two = llw_clarabel(K[np.ix_(keep, keep)], codes[keep], C[keep], 2)
    expected = K[5, keep] @ two.W + two.b
    assert found.values[5, :2] == pytest.approx(expected, abs=1e-5)
    assert found.values[5, 2] == -np.inf
    assert SETTLED_BY[found.settled_by[5]] == "singleton"


def test_one_of_two_classes_vanishes():
    K, codes, _, _, _ = random_llw(np.random.default_rng(0), Q=2, n=10)
    codes = np.zeros(10, dtype=int)
    codes[3] = 1
    machine = loo_llw_walk(LlwProblem(K, codes, np.full(10, 2.0), 2))
    assert machine.values[3] == [-1.0]
    assert (machine.lower[3, 0], machine.upper[3, 0]) == (-np.inf, -1.0)


def test_absent_samples_get_the_full_machine():
    K, codes, _, Q, _ = random_llw(np.random.default_rng(1), Q=3, n=20)
    C = np.full(20, 2.0)
    C[7] = 0.0
    problem = LlwProblem(K, codes, C, Q)
    found, solution = loo_llw_walk(problem), solve_llw(problem)
    np.testing.assert_allclose(found.values[7], solution.decision_values[7], atol=1e-9)
    assert SETTLED_BY[found.settled_by[7]] == "untouched"


def distort(rng, K, codes, C, how):
    """Return K and C of a degenerate problem with the same classes."""
    n, Q = codes.size, codes.max() + 1
    if how == "repeated":  # with the same or another class
        rows = np.where(rng.random(n) < 0.3, rng.integers(0, n, n), np.arange(n))
        return K[np.ix_(rows, rows)], np.where(np.isinf(C), 5.0, C)
    if how == "linear":
        X = rng.normal(size=(n, 2)) + rng.normal(size=(Q, 2))[codes]
        return X @ X.T, np.where(np.isinf(C), 5.0, C)
    if how == "grid":
        X = rng.integers(0, 4, size=(n, 2))
        K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)
        return K, np.where(np.isinf(C), 5.0, C)
    if how == "small C":
        return K, np.full(n, 10 ** rng.uniform(-4, -1))
    return K, C


@pytest.mark.parametrize("how", ["as is", "repeated", "linear", "grid", "small C"])
@pytest.mark.parametrize("seed", range(3))
def test_every_end_is_optimal(how, seed):
    rng = np.random.default_rng(seed)
    K, codes, C, Q, kind = random_llw(rng, n=int(rng.integers(14, 30)))
    K, C = distort(rng, K, codes, C, how)
    problem = LlwProblem(K, codes, C, Q)
    problem = problem.as_hard_margin() if kind == "quadratic" else problem
    solution = solve_llw(problem)
    walker = LlwWalker(problem, solution)
    assert walker.ready
    many = np.bincount(codes)[codes] > 1
    lost = 0
    for r in np.flatnonzero(solution.alpha.any(axis=1) & many):
        left = walker.without(r)
        if left is None:
            lost += 1
            continue
        assert (left.alpha[r] == 0).all()
        assert (left.alpha >= 0).all()
        assert (left.alpha <= problem.without(r).box).all()
        assert np.ptp(left.alpha.sum(axis=0)) <= 1e-9 * left.alpha.sum()
        keep = np.delete(np.arange(codes.size), r)
        own = certify_llw(
            problem.K[np.ix_(keep, keep)], codes[keep], problem.C[keep],
            left.alpha[keep], left.intercept,
        )  # fmt: skip
        assert abs(own.gap) < 1e-8
    assert lost <= (2 if how in {"linear", "repeated", "grid"} else 0)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_classes_with_a_constant_output(C):
    """A slope of exactly 0 at every sample: rounding of it is no event."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2, 3], [40, 40, 6, 6])
    X = rng.normal(size=(codes.size, 3)) + 2.0 * (codes == 0)[:, None]
    problem = LlwProblem(X @ X.T, codes, np.full(codes.size, C), 4)
    solution = solve_llw(problem)
    slope = solution.decision_values + 1 / 3
    assert (np.abs(slope).max(axis=0) < 1e-9).sum() == 2
    walker = LlwWalker(problem, solution)
    rows = np.flatnonzero(solution.alpha.any(axis=1))
    found = [walker.without(r) for r in rows]
    assert sum(left is None for left in found) <= 1
    for r, left in zip(rows, found, strict=True):
        if left is not None:
            assert left.n_iter < 100
            refit = solve_llw(problem.without(r))
            outputs = problem.K @ left.coef, problem.K @ refit.coef  # alpha: not unique
            np.testing.assert_allclose(*outputs, atol=1e-7)


def test_the_start_must_be_an_optimum():
    rng = np.random.default_rng(0)
    K, codes, _, Q, _ = random_llw(rng, Q=3, n=20)
    problem = LlwProblem(K, codes, np.full(20, 2.0), Q)
    solution = solve_llw(problem)
    outside = np.argwhere(problem.open & (solution.state == OUTSIDE))[0]
    state = solution.state.copy()
    state[tuple(outside)] = BOUNDED
    assert LlwWalker(problem, solution).ready
    assert not LlwWalker(problem, replace(solution, state=state)).ready


def test_a_long_walk_is_given_up():
    K, codes, _, Q, _ = random_llw(np.random.default_rng(3), Q=4, n=30)
    problem = LlwProblem(K, codes, np.full(30, 0.5), Q)
    solution = solve_llw(problem)
    rows = np.flatnonzero(solution.alpha.any(axis=1))
    walker = LlwWalker(problem, solution)
    pivots = [walker.without(r).n_iter for r in rows]
    assert max(pivots) > 4
    short = LlwWalker(problem, solution, max_pivots=2)
    assert short.without(rows[int(np.argmax(pivots))]) is None


def slow_first_event(alpha, rate, slope, slope_rate, box, state):
    steps = np.full(alpha.size, np.inf)
    for e in range(alpha.size):
        if box[e] == 0:
            continue
        if state[e] == MARGIN and rate[e]:
            end = box[e] if rate[e] > 0 else 0.0
            steps[e] = (end - alpha[e]) / rate[e]
        towards = {OUTSIDE: 1, BOUNDED: -1}.get(state[e], 0)
        if towards * slope_rate[e] > 0:
            steps[e] = -slope[e] / slope_rate[e]
    return steps.min(), int(steps.argmin()) if steps.min() < 1 else -1


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40))
def test_first_event(seed, n):
    rng = np.random.default_rng(seed)
    box = rng.choice([0.0, 1.0, np.inf], n)
    state = rng.choice([OUTSIDE, MARGIN, BOUNDED], n).astype(np.int8)
    state[np.isinf(box) & (state == BOUNDED)] = OUTSIDE
    on, far = state == MARGIN, FAR
    alpha = np.where(on, 0.5, np.where(state == BOUNDED, box, 0.0))
    slope = np.where(state == OUTSIDE, -1.0, 1.0) * rng.random(n) * ~on
    rate, slope_rate = rng.normal(size=(2, n))
    expected, which = slow_first_event(alpha, rate, slope, slope_rate, box, state)
    x, low, high, c = np.zeros((4, padded(n)))
    x[:n], c[:n] = np.where(on, alpha, slope), np.where(on, rate, slope_rate)
    low[:], high[:] = -far, far
    low[:n][(on | (state == BOUNDED)) & (box > 0)] = 0.0
    high[:n] = np.where(on, np.minimum(box, far), np.where(state == BOUNDED, far, 0.0))
    high[:n][box == 0] = far
    walk = FadingWalk(x, low, high, state, box, 1)
    walk.aim(c, 0.0)
    status = walk.run(np.zeros((1, x.size)), np.full(n, -1))
    assert status == (Status.DONE if which < 0 else Status.NEEDS_COLUMN)
    assert walk.pending == which
    assert 1 - walk.left == pytest.approx(min(expected, 1.0))


def dense_matrix(tableau):
    """Return T over all entries and the coordinates of b."""
    n, Q = tableau.shape
    H = np.kron(tableau.K, np.eye(Q) - 1 / Q)
    EZ = np.tile(tableau.basis, (n, 1))
    proximal = np.concatenate([np.full(n * Q, tableau.eps), np.full(Q - 1, -DELTA)])
    return np.block([[H, EZ], [EZ.T, np.zeros((Q - 1, Q - 1))]]) + np.diag(proximal)


def test_columns_are_those_of_the_definition():
    """More of them than there is memory for at first."""
    K, codes, _, Q, _ = random_llw(np.random.default_rng(3), Q=3, n=140)
    problem = LlwProblem(K, codes, np.full(140, 0.7), Q)
    tableau = LlwWalker(problem, solve_llw(problem)).tableau
    T, S = dense_matrix(tableau), tableau.basic
    R = np.setdiff1d(np.arange(tableau.n_entries), S)
    A = np.linalg.inv(T[np.ix_(S, S)])
    first = tableau.columns
    for entry in R:
        tableau.provide(entry)
        tableau.provide(entry)
    assert tableau.columns.shape[0] > first.shape[0]
    for entry in R:
        column = tableau.columns[tableau.where[entry]]
        np.testing.assert_allclose(column[S], -A @ T[S, entry], atol=1e-7)
        expected = T[np.ix_(R, S)] @ A @ T[S, entry] - T[R, entry]
        np.testing.assert_allclose(column[R], expected, atol=1e-7)
    for entry in S:
        column = tableau.columns[tableau.where[entry]]
        at = np.flatnonzero(S == entry)[0]
        np.testing.assert_allclose(column[S], -A[:, at], atol=1e-7)
        np.testing.assert_allclose(column[R], T[np.ix_(R, S)] @ A[:, at], atol=1e-7)
