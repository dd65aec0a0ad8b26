# SPDX-License-Identifier: BSD-3-Clause
"""Methods "consolidated" and "magic" against the oracle, and their screening rules.

Screened coefficients are those of an interior point in every fold.
"""

from functools import partial

import numpy as np
import pytest
from datasets import penalty_from_lambda
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.agreement import assert_intervals, assert_signs, deviation, margin_interval
from oracles.binary import loo_intervals, svc_clarabel
from oracles.problems import DEGENERATE, KERNELS, random_case
from solved import loo_consolidated, loo_magic, loo_walk

import leaveout as lo
from leaveout.data import make_mixture
from leaveout.engine._problem import SETTLED_BY, Problem
from leaveout.engine._solve import solve_svc
from leaveout.kernel._gram import gram_matrix
from leaveout.loo._leave_out import FAMILIES, solve_path
from leaveout.methods import _smoothing
from leaveout.methods._consolidated import (
    PathMemory,
    Solved,
    _common_intercept,
    screen_along_path,
    screen_at_same_C,
)

METHODS = {"consolidated": loo_consolidated, "magic": loo_magic}
REFIT = SETTLED_BY.index("refit")


@pytest.fixture(scope="module")
def truths():
    return {name: loo_intervals(*case) for name, case in DEGENERATE.items()}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name, method, truths):
    case = DEGENERATE[name]
    loo = METHODS[method](Problem(*case))
    assert_intervals(loo, case.y, truths[name], name)
    assert_signs(case.y * loo.values, truths[name], name)
    assert loo.certified.all()
    assert loo.counts["refits"] + loo.counts["shared"] >= np.sum(
        loo.settled_by == REFIT
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_random_problems(kernel):
    rng = np.random.default_rng([len(kernel), 31])
    for k in range(2):
        case = random_case(rng, kernel=kernel, max_n=30)
        truth = loo_intervals(*case)
        for name, method in METHODS.items():
            loo = method(Problem(*case))
            assert_intervals(loo, case.y, truth, f"{name}, problem {k}")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e4]))
def test_intervals_of_the_walk_at_any_scale(seed, scale):
    """Also K -> s K with C -> C / s, which changes nothing."""
    case = random_case(np.random.default_rng([seed, 6]))
    wanted = np.array(margin_interval(loo_walk(Problem(*case)), case.y))
    scaled = Problem(scale * case.K, case.y, case.C / scale, case.fit_intercept)
    for name, method in METHODS.items():
        loo = method(scaled)
        found = np.array(margin_interval(loo, case.y))
        assert deviation(found, wanted).max() <= 1e-7, name


def mixture(n, p=20, seed=0):
    X, labels = make_mixture(n, p, random_state=seed)
    return X, 2.0 * labels - 1.0


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("p", [20, 200])
def test_simulation_of_the_paper_without_a_refit(p, bias):
    """Every tenth of the 50 lambda: values of the walk, all proved, none refitted."""
    X, y = mixture(120, p)
    K = gram_matrix(X, kernel="rbf", gamma=0.5 / p / 9)
    Cs = penalty_from_lambda(np.exp(np.linspace(6, -6, 50)), 120)
    ways = {
        "magic": loo_magic,
        "same_C": loo_consolidated,
        "path": partial(loo_consolidated, memory=PathMemory()),
    }
    shares = {name: [] for name in ways}
    for problem, solution in solve_path(
        FAMILIES["svc"], Problem(K, y, np.ones(120), bias), Cs[::10]
    ):
        walk = loo_walk(problem, solution=solution)
        for name, loo in ways.items():
            params = {"rule": "path"} if name == "path" else {}
            found = loo(problem, solution=solution, **params)
            np.testing.assert_allclose(found.values, walk.values, atol=1e-9)
            np.testing.assert_allclose(found.lower, walk.lower, atol=1e-9)
            np.testing.assert_allclose(found.upper, walk.upper, atol=1e-9)
            assert found.certified.all()
            assert found.counts["refits"] == 0
            shares[name].append(found.counts["screened"] / 120)
    assert max(shares["magic"]) == shares["path"][0] == 0.0
    assert shares["same_C"][0] > 0.0
    if not bias:
        # Small C: every coefficient is known. Large C: fewer and fewer.
        assert shares["same_C"][0] == shares["path"][1] == 1.0
        assert (np.diff(shares["same_C"]) <= 0).all()


def test_what_smoothing_does_not_solve_is_refitted_and_counted(monkeypatch, rng):
    case = random_case(rng, n=30, kernel="rbf", C=1.0, fit_intercept=True)
    monkeypatch.setattr(_smoothing, "TAUS", ())
    loo = loo_magic(Problem(*case))
    walk = loo_walk(Problem(*case))
    np.testing.assert_allclose(loo.values, walk.values, atol=1e-9)
    refitted = loo.settled_by == REFIT
    assert loo.counts["refits"] == refitted.sum() > 0
    assert loo.counts["steps"] == 0
    assert loo.certified.all()


def test_wrong_screening_is_caught_by_the_certificate(monkeypatch, rng):
    """A rule that lies costs refits, not labels."""
    from leaveout.methods import _consolidated

    case = random_case(rng, n=30, kernel="rbf", C=1.0, fit_intercept=True)
    problem = Problem(*case)
    solution = solve_svc(problem)
    true_rule = _consolidated.screen_at_same_C

    def lie(problem, solution, rows):
        screened = true_rule(problem, solution, rows)
        screened.bounded[solution.free] = True
        return screened

    monkeypatch.setattr(_consolidated, "screen_at_same_C", lie)
    loo = loo_consolidated(problem, solution=solution)
    walk = loo_walk(problem, solution=solution)
    np.testing.assert_allclose(loo.values, walk.values, atol=1e-9)
    assert loo.counts["refits"] > 0


def test_path_shares_work_and_reports_what_was_screened():
    X, y = mixture(80)
    svc = lo.SVC(gamma=0.005, fit_intercept=False)
    Cs = [1e-3, 1.5e-3, 0.3, 1.0]
    wanted = lo.loo_path(svc, X, y, Cs=Cs)
    for rule, first in (("same_C", 1.0), ("path", 0.0)):
        path = lo.loo_path(
            svc, X, y, Cs=Cs, method="consolidated", method_params={"rule": rule}
        )
        np.testing.assert_allclose(
            path.decision_values, wanted.decision_values, atol=1e-9
        )
        assert path.screened[0] == first
        assert path.screened[1] == 1.0
        assert path[1].screened == path.screened[1]
        assert "screened      100.0%" in str(path[1])
    assert np.isnan(wanted.screened).all()
    magic = lo.loo_path(svc, X, y, Cs=Cs, method="magic")
    np.testing.assert_allclose(magic.decision_values, wanted.decision_values, atol=1e-9)
    assert (magic.screened == 0).all()


def test_weights_and_classes():
    """Sample weights, class weights, three classes: as the walk."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(3).uniform(0, 2, len(y))
    weights[::9] = 0.0
    svc = lo.SVC(C=2.0, gamma=0.1, class_weight={0: 1, 1: 3, 2: 0.5})
    wanted = lo.leave_one_out(svc, X, y, sample_weight=weights)
    for method in METHODS:
        found = lo.leave_one_out(svc, X, y, sample_weight=weights, method=method)
        np.testing.assert_allclose(found.margins, wanted.margins, atol=1e-8)
        np.testing.assert_array_equal(found.predictions, wanted.predictions)
        assert found.certified.all()


def test_bad_arguments():
    X, y = mixture(20)
    svc = lo.SVC(gamma=0.01)
    with pytest.raises(ValueError, match=r"rule must be 'same_C' or 'path'; got 'x'"):
        lo.leave_one_out(svc, X, y, method="consolidated", method_params={"rule": "x"})
    with pytest.raises(ValueError, match=r"'memory'.*does not take"):
        lo.leave_one_out(
            svc, X, y, method="consolidated", method_params={"memory": None}
        )
    with pytest.raises(ValueError, match=r"'magic' leaves out single samples.*'walk'"):
        lo.leave_one_out(svc, X, y, method="magic", groups=np.arange(20) // 2)


def left_out_optima(problem):
    """(row, rest, optimum) of every fold with two classes."""
    for r in range(problem.n_samples):
        rest = np.delete(np.arange(problem.n_samples), r)
        if problem.fit_intercept and np.unique(problem.y[rest]).size < 2:
            continue
        K = problem.K[np.ix_(rest, rest)]
        yield (
            r,
            rest,
            svc_clarabel(K, problem.y[rest], problem.C[rest], problem.fit_intercept),
        )


def solve_all(problem, solution):
    """The folds by clarabel, as the path rule remembers them."""
    rows, betas = [], []
    for r, rest, truth in left_out_optima(problem):
        rows.append(r)
        betas.append(np.zeros(problem.n_samples))
        betas[-1][rest] = truth.beta
    beta = np.array(betas).reshape(-1, problem.n_samples)
    rows = np.array(rows, dtype=np.intp)
    return Solved.of(problem, solution, rows, beta, beta @ problem.K)


def assert_exact(problem, screened, where):
    """Return how many coefficients were known; each is right in every fold."""
    for r, rest, truth in left_out_optima(problem):
        alpha, C = truth.alpha, problem.C[rest]
        bounded, outside = screened.bounded[rest], screened.outside[rest]
        np.testing.assert_allclose(
            alpha[bounded], C[bounded], rtol=1e-6, err_msg=f"{where}, without {r}"
        )
        assert (alpha[outside] <= 1e-6 * C[outside]).all(), f"{where}, without {r}"
    return int((screened.bounded | screened.outside).sum())


def not_alone(problem, rows):
    """Samples whose class does not vanish with them."""
    counts = {sign: np.sum(problem.y == sign) for sign in (-1.0, 1.0)}
    if not problem.fit_intercept:
        return rows
    return rows[[counts[problem.y[r]] > 1 for r in rows]]


@pytest.mark.parametrize("bias", [True, False])
def test_same_C_is_exact(bias):  # noqa: N802
    rng = np.random.default_rng(21)
    known = 0
    for k in range(10):
        case = random_case(
            rng, max_n=20, C=10 ** rng.uniform(-3, 1), fit_intercept=bias
        )
        problem = Problem(*case)
        solution = solve_svc(problem)
        rows = not_alone(problem, np.flatnonzero(solution.beta))
        screened = screen_at_same_C(problem, solution, rows)
        known += assert_exact(problem, screened, f"problem {k}")
    assert known > 20


@pytest.mark.parametrize("bias", [True, False])
def test_path_is_exact(bias):
    rng = np.random.default_rng(22)
    known = 0
    for k in range(12):
        case = random_case(rng, max_n=16, C=1.0, fit_intercept=bias)
        ratio = 10 ** rng.uniform(0.05, 0.4)
        first = 10 ** rng.uniform(-3, 0)
        before = None
        steps = solve_path(
            FAMILIES["svc"], Problem(*case), first * np.array([1, ratio])
        )
        for problem, solution in steps:
            screened = screen_along_path(problem, before)
            if before is None:
                assert not (screened.bounded | screened.outside).any()
            else:
                known += assert_exact(problem, screened, f"problem {k}")
            before = solve_all(problem, solution)
    assert known > 8


def test_path_needs_boxes_that_grew_by_one_factor(rng):
    case = random_case(rng, n=12, kernel="rbf", C=1e-3, fit_intercept=False)
    problem = Problem(*case)
    before = solve_all(problem, solve_svc(problem))
    larger = Problem(problem.K, problem.y, problem.C * 1.1, False)
    assert screen_along_path(larger, before).bounded.any()
    uneven = problem.C * np.where(np.arange(12) < 6, 1.1, 1.2)
    other = Problem(problem.K, problem.y, uneven, False)
    assert not screen_along_path(other, before).bounded.any()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_common_intercept_is_what_the_bisection_finds(seed):
    """Lemma 3.2: psi+(b) < 0 above the one end, psi-(b) > 0 below the other."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    low = rng.normal(size=n)
    high = low + rng.uniform(0, 1, n)

    def psi(b, sign):
        first = y * b + high < 1
        rest = ~(first | (y * b + low > 1))
        return y[first].sum() + sign * (1 + np.sum(rest & (y == sign)))

    ends = _common_intercept(y, np.ones(n), low, high)
    for end, sign in zip(ends, (-1.0, 1.0), strict=True):
        if np.isfinite(end):
            assert sign * psi(end + sign * 1e-9, sign) < 0
            assert sign * psi(end - sign * 1e-9, sign) >= 0
        else:
            assert np.sum(y == -sign) < 2
            assert sign * psi(sign * 1e6, sign) >= 0
