# SPDX-License-Identifier: BSD-3-Clause
"""Columns of the tableau against the principal pivot transform by numpy.linalg."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.problems import DEGENERATE, random_case
from solved import loo_walk

from leaveout.engine import _walk
from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import build_tableau


def principal_pivot_transform(M, basis):
    """Exchange the basic variables of q = M z with their q.

    For basis B and the rest N::

        [ M_BB^-1          -M_BB^-1 M_BN         ]
        [ M_NB M_BB^-1      M_NN - M_NB M_BB^-1 M_BN ]
    """
    rest = np.setdiff1d(np.arange(M.shape[0]), basis)
    BB, BN, NB, NN = (
        M[np.ix_(*pair)]
        for pair in ((basis, basis), (basis, rest), (rest, basis), (rest, rest))
    )
    out = np.empty_like(M)
    out[np.ix_(basis, basis)] = np.linalg.inv(BB)
    out[np.ix_(basis, rest)] = -np.linalg.solve(BB, BN)
    out[np.ix_(rest, basis)] = NB @ np.linalg.inv(BB)
    out[np.ix_(rest, rest)] = NN - NB @ np.linalg.solve(BB, BN)
    return out


def expected_columns(problem, solution):
    """Columns as rows, (n, n), without those of the bias."""
    members = np.flatnonzero(solution.free)
    if not problem.fit_intercept:
        return principal_pivot_transform(problem.K, members).T
    n = problem.n_samples
    bordered = np.block(
        [[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), problem.K]]
    )
    basis = np.append(0, members + 1)
    return principal_pivot_transform(bordered, basis)[1:, 1:].T


def solved(case):
    problem = Problem(*case)
    return problem, solve_svc(problem)


def cases_with_margin(n_cases, **parts):
    """Random problems with free support vectors, well conditioned on them."""
    rng = np.random.default_rng(6)
    found = []
    while len(found) < n_cases:
        case = random_case(rng, **parts)
        _, solution = solved(case)
        free = np.flatnonzero(solution.free)
        if free.size and np.linalg.cond(case.K[np.ix_(free, free)] + 1.0) < 1e6:
            found.append(case)
    return found


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_columns_are_the_principal_pivot_transform(fit_intercept):
    for case in cases_with_margin(20, fit_intercept=fit_intercept, max_n=25):
        problem, solution = solved(case)
        tableau = build_tableau(problem, solution)
        wanted = expected_columns(problem, solution)
        found = np.empty(wanted.shape)
        tableau.write_columns(np.arange(problem.n_samples), found)
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8 * scale)


def test_some_columns_in_any_order(rng):
    """Members and others mixed, and others alone, which takes another way."""
    (case,) = cases_with_margin(1, n=20, kernel="rbf", C=5.0, fit_intercept=True)
    problem, solution = solved(case)
    tableau, wanted = (
        build_tableau(problem, solution),
        expected_columns(problem, solution),
    )
    others = np.flatnonzero(~solution.free)
    for indices in (rng.permutation(20)[:9], others, others[:1], tableau.members[::-1]):
        found = np.full((len(indices), 20), np.nan)
        tableau.write_columns(indices, found)
        np.testing.assert_allclose(found, wanted[indices], rtol=1e-7, atol=1e-9)


def test_columns_do_not_depend_on_the_shift():
    """A constant added to K is seen by the inverse on M, not by distances."""
    (case,) = cases_with_margin(1, n=20, kernel="rbf", C=5.0, fit_intercept=True)
    problem, solution = solved(case)
    shifted = Problem(case.K + 3.0, case.y, case.C, True)
    found, again = np.empty((2, 20, 20))
    build_tableau(problem, solution).write_columns(np.arange(20), found)
    build_tableau(shifted, solution).write_columns(np.arange(20), again)
    np.testing.assert_allclose(found, again, rtol=1e-7, atol=1e-9)


def test_singular_margin_is_refused():
    problem = Problem(*DEGENERATE["zero_kernel"])
    solution = solve_svc(problem)
    state = np.ones_like(solution.state)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        build_tableau(problem, replace(solution, state=state))


@pytest.mark.parametrize("on_demand", [0, 10**6])
def test_both_ways_to_make_columns_agree(monkeypatch, on_demand):
    """Inside the kernel, one at a time, or together by one product."""
    rng = np.random.default_rng(8)
    for _ in range(15):
        problem = Problem(*random_case(rng))
        wanted = loo_walk(problem)
        monkeypatch.setattr(_walk, "ON_DEMAND", on_demand)
        found = loo_walk(problem)
        monkeypatch.undo()
        np.testing.assert_allclose(found.values, wanted.values, rtol=1e-7, atol=1e-7)
        assert found.counts["refits"] == 0
