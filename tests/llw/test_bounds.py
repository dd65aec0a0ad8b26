# SPDX-License-Identifier: BSD-3-Clause
"""Bounds for the hard-margin SVM of Lee, Lin & Wahba against the exact error."""

import numpy as np
import pytest
from oracles.llw import random_problem
from solved import loo_llw_walk

from leaveout.llw._bounds import bound_llw, llw_key_numbers
from leaveout.llw._solve import solve_llw


def left_out_errors(problem, solution):
    """Return which left-out samples are wrong or ambiguous: own class not largest."""
    found = loo_llw_walk(problem, solution=solution)
    lower, upper = found.lower, found.upper
    if problem.n_classes == 2:
        lower, upper = np.hstack([-upper, lower]), np.hstack([-lower, upper])
    rows = np.arange(len(problem.codes))
    own = lower[rows, problem.codes].copy()
    upper[rows, problem.codes] = -np.inf
    assert found.certified.all()
    return own <= upper.max(axis=1) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold(seed):
    """20 problems each; ``benchmarks/papers/guermeur2009.py`` has a thousand more."""
    problems = [random_problem([seed, k], n=12 + seed) for k in range(50)]
    solved = [(problem, solve_llw(problem)) for problem in problems if problem.is_hard]
    separable = [pair for pair in solved if pair[1].separable]
    assert len(separable) >= 20
    for problem, solution in separable[:20]:
        wrong = left_out_errors(problem, solution)
        numbers = llw_key_numbers(problem, solution)
        K, Q = problem.K, problem.n_classes
        reach = [(K[p, p] + np.diag(K) - 2 * K[p]).max() for p in range(len(K))]
        size = np.sqrt((solution.alpha**2).sum(axis=1) * (Q - 1) ** 3 / Q)
        assert numbers.sharp_ratio == pytest.approx(size * reach)
        # Proposition 2 of Guermeur & Monfrini (2009)
        norm = np.trace(solution.coef.T @ K @ solution.coef)
        assert solution.squared_norm == pytest.approx(norm, rel=1e-9)
        assert solution.alpha.sum() / (Q - 1) == pytest.approx(norm, rel=1e-9)
        assert (numbers.paper_ratio[wrong] >= 1 - 1e-9).all()
        assert (numbers.sharp_ratio[wrong] >= 1 - 1e-9).all()
        paper, total, count = bound_llw(problem, solution)
        assert wrong.mean() <= count.value <= 1.0
        assert wrong.mean() <= total.value <= paper.value
