# SPDX-License-Identifier: BSD-3-Clause
"""Certificates hold at every scale, checked in exact arithmetic."""

import numpy as np
import pytest
from nightly.stress import ALLOWED, METHODS, judge, truth_of
from oracles.problems import Case
from solved import SVC_METHODS

import leaveout as lo
from leaveout.engine._certificate import NEAR, nearly_coincide, rounding_bound
from leaveout.engine._problem import LooIntervals, Problem
from leaveout.engine._solve import solve_svc
from leaveout.kernel._gram import gram_matrix


def _case(K, y, C, fit_intercept=True):
    y = np.array(y, dtype=float)
    C = np.broadcast_to(np.asarray(C, dtype=float), y.shape)
    return Case(np.array(K, dtype=float), y, C, fit_intercept)


def _line(x, y, C, offset=0.0, scale=1.0, fit_intercept=True):
    x = np.array(x, dtype=float)
    return _case(scale * (np.outer(x, x) + offset), y, C, fit_intercept)


# Two points in one place and their neighbours 2^-4 away, some with C = 1e12.
_NEAR = np.array(
    [
        [83.53125, -17.484375, 29.8359375, 83.7265625, 84.25, -19.15625],
        [-17.484375, 66.5234375, -13.10546875, -17.02734375, -17.5, 67.6328125],
        [29.8359375, -13.10546875, 53.0234375, 27.72265625, 29.0625, -13.66796875],
        [83.7265625, -17.02734375, 27.72265625, 84.03515625, 84.5, -18.703125],
        [84.25, -17.5, 29.0625, 84.5, 85.0, -19.1875],
        [-19.15625, 67.6328125, -13.66796875, -18.703125, -19.1875, 68.78515625],
    ]
)
CASES = {
    # The differences of f, 1e-9, are within the tolerance: b looks unique.
    "tiny_C": _case(
        [[122, -18, 53], [-18, 24, 10], [53, 10, 38]], [1, -1, 1], 3.347097996301657e-11
    ),
    # Relative to C every coefficient is "near 0".
    "C_out_of_reach": _case(
        _NEAR,
        [1, -1, 1, -1, -1, 1],
        [7.5e10, 2.7e8, 2.0e4, 1.5e12, 4.0e10, 3.6e11],
    ),
    # Features of 1e76: thresholds on kernel values must be relative.
    "huge_features": _line(
        [3, -1, 4, -2, 5, 7, -6, 2], [1, -1, 1, 1, -1, 1, -1, 1], 3.5e3, scale=2.0**500
    ),
    "tiny_features": _line(
        [3, -1, 4, -2, 5, 7], [1, -1, 1, 1, -1, -1], 1e-3, scale=2.0**-900
    ),
    # f is the difference of terms of 1e17: rounding decides its sign.
    "terms_cancel": _line(
        [3, -1, 4, -2, 5, 7, -6, 2], [1, -1, 1, 1, -1, 1, -1, 1], 1.2e8, 2.0**30
    ),
    "terms_cancel_without_intercept": _line(
        [3, -1, 4, -2, 5, 7], [1, -1, 1, 1, -1, -1], 5e-30, 2.0**39, 2.0**100, False
    ),
}


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_no_certificate_is_wrong(name, method):
    case = CASES[name]
    svc = lo.SVC(kernel="precomputed", fit_intercept=case.fit_intercept)
    found = lo.leave_one_out(svc, case.K, case.y, sample_weight=case.C, method=method)
    verdicts = set(judge(found, truth_of(case)))
    assert verdicts <= set(ALLOWED)
    if method == "walk" and name == "C_out_of_reach":
        assert verdicts <= {"exact", "ambiguous"}
    if method == "walk" and name in ("tiny_C", "tiny_features"):
        assert (found.uncertified_by == "rounding").all()
        assert "(rounding)" in str(found)


def test_rounding_drops_certificates_of_small_values_only():
    x = np.array([3.0, -1, 4, -2, 5, 7, -6, 2, 6, -3])
    y = np.array([1.0, -1, 1, 1, -1, 1, -1, 1, 1, -1])
    found = lo.leave_one_out(
        lo.SVC(kernel="precomputed", C=1e6), np.outer(x, x) + 1.0, y
    )
    rounding = found.counts["rounding"]
    assert 1e-10 < rounding < 1e-2
    assert found.certified.any()
    assert np.abs(found.margins[found.certified]).min() > rounding


@pytest.mark.parametrize("exponent", [-900, 900])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_fit_is_the_same_at_every_scale(exponent, fit_intercept, rng):
    """K -> s K, C -> C / s with s a power of two: the same values, beta / s."""
    x = rng.integers(-9, 10, size=(12, 2)).astype(float)
    y = np.where(np.arange(12) % 3 == 0, 1, -1)
    K = x @ x.T / 256
    svc = lo.SVC(C=0.5, kernel="precomputed", fit_intercept=fit_intercept)
    here = svc.fit(K, y).dual_coef_, svc.decision_function(K)
    large = np.ldexp(K, exponent)
    svc.set_params(C=np.ldexp(0.5, -exponent)).fit(large, y)
    assert svc.fit_status_ == 0
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(np.ldexp(svc.dual_coef_, exponent), here[0], **close)
    np.testing.assert_allclose(svc.decision_function(large), here[1], **close)


@pytest.mark.parametrize("method", ["walk", "refit"])
def test_no_certificate_without_an_optimum(method, rng):
    X = rng.normal(size=(30, 3))
    y = np.where(X[:, 0] + rng.normal(size=30) > 0, 1.0, -1.0)
    problem = Problem(X @ X.T, y, np.full(30, 10.0))
    stopped = solve_svc(problem, max_iter=2)
    assert not stopped.converged
    assert not SVC_METHODS[method](problem, solution=stopped).certified.any()
    assert not LooIntervals.empty(3).certified.any()


@pytest.mark.parametrize("gamma", [1e-6, 0.1, 100.0])
@pytest.mark.parametrize("step", [0.0, 1e-12, 1e-5, 1e-3])
def test_near_duplicates_equal_those_from_all_pairs(gamma, step):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    X[40:50] = X[:10] + step * rng.normal(size=(10, 3))
    K = gram_matrix(X, kernel="rbf", gamma=gamma)
    for rows in (np.arange(60), np.arange(5, 45), np.arange(10, 40), np.array([7])):
        own = K[np.ix_(rows, rows)]
        apart = (1.0 - own) + (1.0 - own)
        by_hand = np.any((apart > 4 * 2.0**-52) & (apart < NEAR))
        assert nearly_coincide(K, rows) == by_hand
    problem = Problem(K, np.resize([1.0, -1.0], 60), np.ones(60))
    rounding = rounding_bound(problem, solve_svc(problem))
    assert (rounding >= 1e-5) == nearly_coincide(K, np.arange(60))
