# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of walks, paths, stopping and linear programs, fed with what has overflowed.

They stay inside their arrays and come to an end; what they call done is finite.
"""

from dataclasses import replace

import numpy as np
import pytest
from oracles.problems import random_case

from leaveout.engine._problem import Folds, LooIntervals, Problem
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import Walker
from leaveout.lp._lpm import solve_lpm
from leaveout.lp._lpm_walk import _walk, build_lpm_tableau
from leaveout.methods._curve import _share, _Workspace
from leaveout.methods._curve_fast import trace_path
from leaveout.methods._stopping_fast import solve_left_out

SPOILT = [np.nan, np.inf, -np.inf, 1e308, -1e308]


def spoil(array, rng):
    """Put up to three values that overflow, or have, at random places."""
    for _ in range(rng.integers(1, 4)):
        array[tuple(rng.integers(array.shape))] = rng.choice(SPOILT)


def make_problem(rng):
    problem = Problem(*random_case(rng, max_n=20))
    return problem, solve_svc(problem)


def spoil_some(problem, solution, rng):
    """Spoil kernel values, decision values or coefficients."""
    K, beta = problem.K.copy(), solution.beta.copy()
    f = solution.decision_values.copy()
    which = rng.integers(4)
    if which in (0, 3):
        spoil(K, rng)
        K = np.triu(K) + np.triu(K, 1).T
    if which in (1, 3):
        spoil(f, rng)
    if which == 2:
        spoil(beta, rng)
    return (
        Problem(K, problem.y, problem.C, problem.fit_intercept),
        replace(solution, beta=beta, decision_values=f),
    )


def draw_groups(n, rng):
    if rng.random() < 0.5:
        return Folds.singles(np.arange(n))
    return Folds.of([rng.permutation(n)[: rng.integers(1, 4)] for _ in range(8)])


@pytest.mark.parametrize("seed", range(40))
def test_walks(seed):
    """Where b had no end some once wrote before the beginning of the work space."""
    rng = np.random.default_rng(seed)
    problem, solution = spoil_some(*make_problem(rng), rng)
    groups = draw_groups(problem.n_samples, rng)
    n = len(groups)
    found = LooIntervals.empty(groups.members.size)
    with np.errstate(all="ignore"):
        failed = Walker(problem, solution)._walk_all(groups, found)
    done = np.setdiff1d(np.arange(n), failed)
    entries = groups.entries(done)
    assert not np.isnan(found.lower[entries] + found.upper[entries]).any()


@pytest.mark.parametrize("seed", range(20))
def test_paths(seed):
    rng = np.random.default_rng(seed)
    problem, solution = make_problem(rng)
    curve = _share(problem, 0.1, 100.0)
    spoilt, _ = spoil_some(problem, solution, rng)
    K_probe = curve.K_probe.copy()
    if rng.random() < 0.3:
        spoil(K_probe, rng)
    room, scale = _Workspace(problem.n_samples), float(rng.choice([1.0, 1e308, 1e-308]))
    for r in range(problem.n_samples):
        start = solve_svc(curve.at(0.1, r))
        b = start.intercept if rng.random() < 0.8 else float(rng.choice(SPOILT))
        *_, n_pieces = trace_path(
            spoilt.K, problem.y, problem.C, problem.fit_intercept, curve.probe,
            K_probe, scale, r, 0.1, 100.0, b, start.state,
            room.work, room.sides, room.members, room.pieces,
        )  # fmt: skip
        assert n_pieces <= room.pieces.shape[0]


@pytest.mark.parametrize("condition", [0, 1, 2])
@pytest.mark.parametrize("seed", range(15))
def test_stopping(seed, condition):
    rng = np.random.default_rng(seed)
    K, y, C, intercept = random_case(rng, max_n=20)
    n, r = y.size, int(rng.integers(y.size))
    C = C.copy()
    C[r] = 0.0
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    curvature = np.stack([K.diagonal(), 1.0 / np.maximum(K.diagonal(), 1e-12)])
    distance, F, Q = rng.random(n), y.copy(), y.copy()
    for array in (K, curvature, distance, F, Q):
        if rng.random() < 0.4:
            spoil(array, rng)
    _, steps, other = solve_left_out(
        K, y, C, lower, upper, curvature, curvature, distance, r, intercept, condition,
        1e-3, 500, 0.0, float(rng.choice([0.0, *SPOILT])), np.zeros(n), F, np.zeros(n),
        Q, np.empty((3, n)),
    )  # fmt: skip
    assert steps <= 500
    assert other <= 501


@pytest.mark.parametrize("seed", range(20))
def test_pivots_of_a_linear_program(seed):
    rng = np.random.default_rng(seed)
    problem, _ = make_problem(rng)
    tableau = build_lpm_tableau(problem, solve_lpm(problem).basis)
    if tableau is None:
        pytest.skip("a singular basis")
    T, D = tableau.T.copy(), tableau.D.copy()
    spoil(T, rng)
    if D.size and rng.random() < 0.3:
        spoil(D, rng)
    with np.errstate(all="ignore"):
        tableau = replace(tableau, T=T, transposed=np.ascontiguousarray(T.T), D=D)
        walked = _walk(problem, tableau, np.arange(problem.n_samples), 128)
    assert np.isfinite(walked.least[walked.certified]).all()
    assert np.isfinite(walked.most[walked.certified]).all()
