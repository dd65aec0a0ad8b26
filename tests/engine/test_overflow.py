# SPDX-License-Identifier: BSD-3-Clause
"""Kernels stay inside their arrays and stop; finished results have not overflowed."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.problems import random_case

from leaveout.engine._problem import Folds, LooIntervals, Problem
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import Walker
from leaveout.llw._solve import descend
from leaveout.lp._lpm import solve_lpm
from leaveout.lp._lpm_walk import _walk, build_lpm_tableau
from leaveout.methods._curve import _follow, _share
from leaveout.methods._stopping import loo_stopping

SPOILT = [np.nan, np.inf, -np.inf, 1e308, -1e308]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def spoil(array, rng):
    """Write up to three values that overflow, or are not finite, at random places."""
    for _ in range(rng.integers(1, 4)):
        array[tuple(rng.integers(array.shape))] = rng.choice(SPOILT)
    return array


def spoil_kernel(K, rng):
    K = spoil(K.copy(), rng)
    return np.triu(K) + np.triu(K, 1).T


@pytest.mark.parametrize("seed", range(50))
def test_solver(seed):
    rng = np.random.default_rng(seed)
    K, y, C, fit_intercept = random_case(rng, max_n=20)
    C = C * 10.0 ** rng.choice([0, 100, 300])
    problem = Problem(spoil_kernel(K, rng), y, C, fit_intercept)
    solution = solve_svc(problem, max_iter=2000)
    assert not solution.converged or np.isfinite(solution.decision_values).all()


@pytest.mark.parametrize("seed", range(40))
def test_walks(seed):
    """An unbounded b must not lead to a write before the start of the workspace."""
    rng = np.random.default_rng(seed)
    problem = Problem(*random_case(rng, max_n=20))
    solution, n = solve_svc(problem), problem.n_samples
    which = rng.integers(3)
    if which == 0:
        problem = replace(problem, K=spoil_kernel(problem.K, rng))
    else:
        name = ("beta", "decision_values")[which - 1]
        spoilt = spoil(getattr(solution, name).copy(), rng)
        solution = replace(solution, **{name: spoilt})
    groups = Folds.singles(np.arange(n))
    if rng.random() < 0.5:
        groups = Folds.of([rng.permutation(n)[: rng.integers(1, 4)] for _ in range(8)])
    found = LooIntervals.empty(groups.members.size)
    failed = Walker(problem, solution)._walk_all(groups, found)
    done = groups.entries(np.setdiff1d(np.arange(len(groups)), failed))
    assert not np.isnan(found.lower[done] + found.upper[done]).any()


@pytest.mark.parametrize("seed", range(12))
def test_stopping_and_paths(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(*random_case(rng, max_n=20))
    solution, n = solve_svc(problem), problem.n_samples
    spoilt = replace(problem, K=spoil_kernel(problem.K, rng))
    for condition in ("auxiliary", "ball"):
        loo = loo_stopping(spoilt, solution, eps=1e-3, condition=condition, n_trial=0)
        assert not np.isnan(loo.values[loo.certified]).any()
    scale = float(rng.choice([1.0, 1e308, 1e-308]))
    curve = replace(_share(problem, 0.1, 100.0), problem=spoilt, scale=scale)
    for r in rng.permutation(n)[:5]:
        assert _follow(curve, r).pieces[-1, 1] == 100.0


@pytest.mark.parametrize("seed", range(20))
def test_pivots_of_a_linear_program(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(*random_case(rng, max_n=20))
    tableau = build_lpm_tableau(problem, solve_lpm(problem).basis)
    if tableau is None:
        pytest.skip("a singular basis")
    T = spoil(tableau.T.copy(), rng)
    tableau = replace(tableau, T=T, transposed=np.ascontiguousarray(T.T))
    walked = _walk(problem, tableau, np.arange(problem.n_samples), 128)
    assert np.isfinite(walked.least[walked.certified]).all()
    assert np.isfinite(walked.most[walked.certified]).all()


@pytest.mark.parametrize("seed", range(12))
def test_several_classes(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 3))
    C = np.full((10, 4), rng.choice([1e-300, 1.0, 1e300, np.inf, 5e-324]))
    C[np.arange(10), np.resize(np.arange(4), 10)] = 0.0
    found = descend(spoil_kernel(X @ X.T, rng), C)
    if found.settled:
        assert np.all((found.alpha >= 0.0) & (found.alpha <= C))
