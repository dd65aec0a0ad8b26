# SPDX-License-Identifier: BSD-3-Clause
"""n refits: the same answers as the oracle and as the walks."""

import numpy as np
import pytest
from oracles.agreement import assert_intervals, assert_signs
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, KERNELS, random_case
from solved import SVC_METHODS, loo_refit, loo_walk

from leaveout.engine._problem import SETTLED_BY, Problem
from leaveout.engine._solve import seed_without, solve_svc
from leaveout.methods import METHODS


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    case = DEGENERATE[name]
    truth, loo = loo_intervals(*case), loo_refit(Problem(*case))
    assert_intervals(loo, case.y, truth, name)
    assert_signs(case.y * loo.values, truth, name)
    assert loo.certified.all()
    assert loo.counts["refits"] == len(case.y)
    assert (loo.settled_by == SETTLED_BY.index("refit")).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_random_problems(kernel):
    rng = np.random.default_rng([len(kernel), 11])
    for k in range(4):
        case = random_case(rng, kernel=kernel, max_n=30)
        truth = loo_intervals(*case)
        assert_intervals(loo_refit(Problem(*case)), case.y, truth, f"problem {k}")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("labels_only", [False, True])
def test_all_methods_agree(method, labels_only):
    """Each method by its name, in both modes, has the signs of the walk's values."""
    rng = np.random.default_rng(12)
    for k in range(40):
        case = random_case(rng)
        wanted = loo_walk(Problem(*case))
        sure = (wanted.lower > 1e-8) | (wanted.upper < -1e-8)
        found = SVC_METHODS[method](Problem(*case), labels_only=labels_only)
        np.testing.assert_array_equal(
            np.sign(found.values[sure]), np.sign(wanted.values[sure]), f"problem {k}"
        )
        if not labels_only and "values" in METHODS[method].takes:
            for name in ("lower", "values", "upper"):
                np.testing.assert_allclose(
                    getattr(found, name), getattr(wanted, name),
                    rtol=1e-7, atol=1e-7, err_msg=f"problem {k}",
                )  # fmt: skip


def test_threads_give_the_same_bits(rng):
    problem = Problem(*random_case(rng, n=25))
    one, two = (loo_refit(problem, n_threads=k) for k in (1, 2))
    np.testing.assert_array_equal(one.values, two.values)


def test_seed_is_feasible_and_near():
    rng = np.random.default_rng(13)
    for _ in range(60):
        case = random_case(rng)
        problem = Problem(*case)
        solution = solve_svc(problem)
        for r in np.flatnonzero(solution.beta)[:5]:
            others = np.arange(len(case.y)) != r
            if case.fit_intercept and len(np.unique(case.y[others])) == 1:
                continue
            seed = seed_without(problem, solution, r)
            alpha = case.y * seed
            assert seed[r] == 0
            assert ((alpha >= 0) & (alpha <= case.C)).all()
            moved = np.abs(seed - solution.beta)[others].sum()
            if case.fit_intercept:
                total = np.abs(solution.beta).sum()
                assert abs(seed.sum()) <= 1e-12 * total + abs(solution.beta.sum())
            assert moved <= solution.alpha[r] * (1 + 1e-9)
