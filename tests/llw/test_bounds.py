# SPDX-License-Identifier: BSD-3-Clause
"""Bounds for the hard-margin SVM of Lee, Lin & Wahba against the exact error."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.llw import random_problem
from scipy import optimize
from solved import loo_llw_walk

from leaveout.llw._bounds import bound_llw, llw_geometry
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
        numbers = llw_geometry(problem, solution)
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
        paper, lemma, total, count = bound_llw(numbers)
        assert wrong.mean() <= count.value <= lemma.value <= 1.0
        assert lemma.value == np.mean(numbers.paper_ratio >= 1.0)
        assert wrong.mean() <= total.value <= paper.value


@pytest.mark.parametrize("exponent", [0, 6])
def test_geometry(exponent):
    """Definition 4 and Proposition 2 of Guermeur & Monfrini (2009), sample by sample.

    With 2^exponent K the functions h and all gaps stay, distances grow.
    """
    problem = random_problem([5, 4], Q=3, n=14)
    problem = replace(problem, C=np.full(14, np.inf))
    solution = solve_llw(problem)
    found = llw_geometry(problem, solution, exponent)
    K, W = np.ldexp(problem.K, exponent), np.ldexp(solution.coef, -exponent)
    h = K @ W + solution.intercept
    assert (h.argmax(axis=1) == problem.codes).all()
    for k, other in ((0, 1), (0, 2), (1, 2)):
        rows = np.isin(problem.codes, (k, other))
        gap = np.abs(h[rows, k] - h[rows, other]).min()
        normal = W[:, k] - W[:, other]
        margin = gap / np.sqrt(normal @ K @ normal)
        assert found.margins[k, other] == pytest.approx(margin)
        assert found.margins[other, k] == pytest.approx(margin)
        relative = found.smallest_gap * (1.0 + found.relative_gaps[k, other])
        assert relative == pytest.approx(gap)
    assert np.nanmin(found.relative_gaps) == 0.0
    pairs = np.triu_indices(3, 1)
    terms = ((1.0 + found.relative_gaps) / found.margins)[pairs] ** 2
    left = found.smallest_gap**2 / 3 * terms.sum()
    assert left == pytest.approx(found.squared_norm, rel=1e-8)
    assert found.diameter == pytest.approx(2.0 * smallest_radius(K), rel=1e-5)


def smallest_radius(K):
    """Return the radius of the smallest ball, from its dual, by SciPy's SLSQP."""
    scale = K.diagonal().max()
    ball = optimize.minimize(
        lambda b: (b @ K @ b - b @ K.diagonal()) / scale,
        np.full(len(K), 1 / len(K)),
        jac=lambda b: (2 * K @ b - K.diagonal()) / scale,
        bounds=[(0, 1)] * len(K),
        constraints={"type": "eq", "fun": lambda b: b.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.sqrt(-ball.fun * scale)
