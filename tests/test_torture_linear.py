# SPDX-License-Identifier: BSD-3-Clause
"""No certificate of the other machines is wrong, against whole-number arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from oracles.programs import lpm_range
from oracles.rational import range_over_optima, solve_lp
from torture import ALLOWED, draw
from torture_families import draw_family
from torture_linear import MACHINES, lpm_exactly, put_to_machine

# Of LLWClassifier most of these once had a wrong label, or a wrong value, certified.
SEEDS = {
    "LPMClassifier": [5, 6, 28, 59, 60, 264],
    "LOOMClassifier": [2, 6, 16, 34],
    "LLWClassifier": [28, 177, 203, 231, 276, 327, 349, 410, 452, 464, 477, 480, 5535],
}


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize(
    ("name", "seed"), [(name, seed) for name in MACHINES for seed in SEEDS[name]]
)
def test_never_a_wrong_certificate(name, seed):
    kind, case = draw(seed)
    assert set(put_to_machine(name, case)) <= {*ALLOWED, "refused"}, kind


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_near_copies_in_a_leave_one_out_machine():
    """Seed 12 had f = 1.00, certified, where it is 0.40."""
    for seed in (12, 4, 5):
        _, case = draw(seed, "nearly_equal")
        words = put_to_machine("LOOMClassifier", case)
        assert set(words) <= {*ALLOWED, "refused"}, seed


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_slacks_that_tie_nearly_in_a_leave_one_out_machine():
    """A share of 1e-11 apart: f = -1 was certified, which is no optimum by any rule."""
    words = put_to_machine("LOOMClassifier", draw_family("two_scales", 127))
    assert set(words) <= set(ALLOWED)
    assert words[4] == "uncertified"


def test_the_exact_program_equals_another_solver(rng):
    """Ranges over all optima by Lemke's method and by HiGHS."""
    compared = 0
    while compared < 5:
        kind, case = draw(int(rng.integers(10_000)), "whole") or (None, None)
        if kind is None or not 1e-3 < case.K.max() < 1e3 or len(case.y) > 5:
            continue
        case = case._replace(C=np.ones_like(case.C))
        rest = np.arange(1, len(case.y))
        if np.unique(case.y[rest]).size < 2:
            continue
        K, point = case.K[np.ix_(rest, rest)], case.K[0, rest]
        low, high = lpm_range(
            K, case.y[rest], case.C[rest], point, case.fit_intercept, slack=0.0
        )
        exact = lpm_exactly(case, 0)
        ends = sorted([case.y[0] * low, case.y[0] * high])
        assert [float(exact.low), float(exact.high)] == pytest.approx(ends, abs=1e-6)
        compared += 1


def test_programs_without_an_optimum():
    with pytest.raises(ArithmeticError):
        solve_lp([Fraction(-1)], [[Fraction(1)]], [Fraction(0)])  # unbounded
    ends = range_over_optima([1, 0], [[0, 1]], [[1, 1]], [1])
    assert ends == (1, None)
