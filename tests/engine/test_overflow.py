# SPDX-License-Identifier: BSD-3-Clause
"""Kernels stay inside their arrays and end; what they call done has not overflowed."""

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
from leaveout.methods._curve import _share, _Workspace
from leaveout.methods._curve_fast import trace_path
from leaveout.methods._stopping import LeftOutSolver
from leaveout.methods._stopping_fast import Condition

SPOILT = [np.nan, np.inf, -np.inf, 1e308, -1e308]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def spoil(array, rng):
    """Put up to three values that overflow, or have, at random places."""
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
    """Where b had no end some once wrote before the beginning of the work space."""
    rng = np.random.default_rng(seed)
    problem = Problem(*random_case(rng, max_n=20))
    solution, n = solve_svc(problem), problem.n_samples
    which = rng.integers(4)
    if which in (0, 3):
        problem = replace(problem, K=spoil_kernel(problem.K, rng))
    if which in (1, 3):
        f = spoil(solution.decision_values.copy(), rng)
        solution = replace(solution, decision_values=f)
    if which == 2:
        solution = replace(solution, beta=spoil(solution.beta.copy(), rng))
    groups = Folds.singles(np.arange(n))
    if rng.random() < 0.5:
        groups = Folds.of([rng.permutation(n)[: rng.integers(1, 4)] for _ in range(8)])
    found = LooIntervals.empty(groups.members.size)
    failed = Walker(problem, solution)._walk_all(groups, found)
    done = groups.entries(np.setdiff1d(np.arange(len(groups)), failed))
    assert not np.isnan(found.lower[done] + found.upper[done]).any()


@pytest.mark.parametrize("seed", range(20))
def test_paths(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(*random_case(rng, max_n=20))
    curve, space = _share(problem, 0.1, 100.0), _Workspace(problem.n_samples)
    K, K_probe = spoil_kernel(problem.K, rng), curve.K_probe.copy()
    if rng.random() < 0.3:
        spoil(K_probe, rng)
    scale = float(rng.choice([1.0, 1e308, 1e-308]))
    for r in range(problem.n_samples):
        start = solve_svc(curve.at(0.1, r))
        b = start.intercept if rng.random() < 0.8 else float(rng.choice(SPOILT))
        *_, n_pieces = trace_path(
            K, problem.y, problem.C, problem.fit_intercept, curve.probe,
            K_probe, scale, r, 0.1, 100.0, b, start.state,
            space.work, space.sides, space.members, space.pieces,
        )  # fmt: skip
        assert n_pieces <= space.pieces.shape[0]


@pytest.mark.parametrize("condition", list(Condition))
@pytest.mark.parametrize("seed", range(15))
def test_stopping(seed, condition):
    rng = np.random.default_rng(seed)
    problem = Problem(*random_case(rng, max_n=20))
    solver = LeftOutSolver(problem, solve_svc(problem), 1e-3, steps_per_sample=25)
    solver.problem = replace(problem, K=spoil_kernel(problem.K, rng))
    if rng.random() < 0.5:
        spoil(solver.F, rng)
        spoil(solver.curvature, rng)
    found = solver.leave_out(np.arange(problem.n_samples), condition)
    assert found.counts["steps"] <= 25 * problem.n_samples**2


@pytest.mark.parametrize("seed", range(20))
def test_pivots_of_a_linear_program(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(*random_case(rng, max_n=20))
    tableau = build_lpm_tableau(problem, solve_lpm(problem).basis)
    if tableau is None:
        pytest.skip("a singular basis")
    T, D = spoil(tableau.T.copy(), rng), tableau.D.copy()
    if D.size and rng.random() < 0.3:
        spoil(D, rng)
    tableau = replace(tableau, T=T, transposed=np.ascontiguousarray(T.T), D=D)
    walked = _walk(problem, tableau, np.arange(problem.n_samples), 128)
    assert np.isfinite(walked.least[walked.certified]).all()
    assert np.isfinite(walked.most[walked.certified]).all()


@pytest.mark.parametrize("seed", range(12))
def test_several_classes(seed):
    rng = np.random.default_rng(seed)
    Q = int(rng.integers(3, 6))
    n = int(rng.integers(Q, 12))
    X = rng.normal(size=(n, 3))
    K = spoil(X @ X.T, rng)
    if rng.random() < 0.7:
        K = spoil_kernel(X @ X.T, rng)
    C = np.full((n, Q), rng.choice([1e-300, 1.0, 1e300, np.inf, 5e-324]))
    C[np.arange(n), rng.integers(0, Q, n)] = 0.0
    found = descend(K, C)
    if found.settled:
        assert np.all((found.alpha >= 0.0) & (found.alpha <= C))
