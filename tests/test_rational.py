# SPDX-License-Identifier: BSD-3-Clause
"""The oracle without rounding against the one by an interior point."""

from fractions import Fraction

import numpy as np
import pytest
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, random_case
from oracles.rational import (
    exact_intercepts,
    is_exactly_psd,
    leave_out_exactly,
    solve_lcp,
)

SMALL = {
    name: case
    for name, case in DEGENERATE.items()
    if len(case.y) <= 12 and is_exactly_psd(case.K)
}


def assert_same(case, where):
    truth = loo_intervals(*case)
    for r, exact in enumerate(leave_out_exactly(*case)):
        for found, wanted in ((exact.low, truth.low[r]), (exact.high, truth.high[r])):
            if found is None:
                assert np.isinf(wanted), where
            else:
                assert float(found) == pytest.approx(wanted, rel=1e-7, abs=1e-7), where


@pytest.mark.parametrize("name", SMALL)
def test_degenerate(name):
    assert_same(SMALL[name], name)


def test_random(rng):
    compared = 0
    while compared < 15:
        case = random_case(rng, max_n=8)
        if is_exactly_psd(case.K):
            assert_same(case, compared)
            compared += 1


def test_semi_definite_to_the_last_bit():
    x = np.array([[1.0], [2.0], [3.0]])
    assert is_exactly_psd(x @ x.T)
    assert not is_exactly_psd(x @ x.T - np.diag([0.0, 2.0**-50, 0.0]))
    assert not is_exactly_psd([[0.0, 1.0], [1.0, 5.0]])


def test_a_problem_without_solution_is_an_error():
    # w = -z - 1 has no z >= 0
    with pytest.raises(ArithmeticError, match="not semi-definite"):
        solve_lcp([[Fraction(-1)]], [Fraction(-1)])


def test_intercepts_of_one_class_and_of_a_tie():
    one = [Fraction(1), Fraction(1)]
    zero = [Fraction(0), Fraction(0)]
    assert exact_intercepts(zero, one, one) == (1, None)
    assert exact_intercepts(zero, [Fraction(1), Fraction(-1)], one) == (-1, 1)
