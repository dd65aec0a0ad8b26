# SPDX-License-Identifier: BSD-3-Clause
"""Input at the edge of what doubles hold: an answer, or a refusal that says why."""

import numpy as np
import pytest

import leaveout as lo
from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.lp._lpm import LpmBasis, lpm_certificate, solve_lpm_basis

ignore_leaveout_warnings = pytest.mark.filterwarnings(
    "ignore::leaveout.LeaveoutWarning"
)


@pytest.fixture
def samples(rng):
    X = rng.normal(size=(14, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=14) > 0, "a", "b")
    y[:2] = ["a", "b"]
    return X, y


@ignore_leaveout_warnings
@pytest.mark.parametrize("method", ["fit", "leave_one_out"])
def test_an_indefinite_kernel_that_overflows_is_refused(method):
    """The solver once searched beyond the end of its arrays for the largest F."""
    K = np.zeros((14, 14))
    K[0, 1:] = K[1:, 0] = 1e305
    y = np.arange(14) % 2
    svc = lo.SVC(kernel="precomputed", C=1e12)
    with pytest.raises(ValueError, match="not positive semi-definite needs kernel"):
        svc.fit(K, y) if method == "fit" else lo.leave_one_out(svc, K, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
def test_the_solver_ends_whatever_the_kernel_holds(value, fit_intercept):
    K = np.eye(6)
    K[0, 1:] = K[1:, 0] = value
    y = np.array([1.0, -1.0] * 3)
    solution = solve_svc(Problem(K, y, np.full(6, 1e12), fit_intercept))
    assert not solution.converged


@pytest.mark.parametrize("C", [1e300, 1e-300])
def test_boxes_that_are_no_numbers_are_refused(samples, C):
    X, y = samples
    weights = np.full(14, 1e12 if C > 1 else 1e-30)
    with pytest.raises(ValueError, match=r"row 0, .* is too (large|small) for a doubl"):
        lo.SVC(C=C).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("machine", [lo.SVC, lo.LPMClassifier, lo.LLWClassifier])
def test_a_penalty_whose_sums_overflow_is_refused(samples, machine):
    X, y = samples
    with pytest.raises(ValueError, match=r"C must be at most 1e\+305; got 1e\+306"):
        lo.leave_one_out(machine(C=1e306), X, y)
    with pytest.raises(ValueError, match=r"C_max must be at most 1e\+305"):
        lo.loo_curve(lo.SVC(), X, y, C_max=1e306)


@ignore_leaveout_warnings
def test_a_search_with_boxes_that_overflow_has_scores(samples):
    X, y = samples
    weights = np.where(np.arange(14) % 2, 1e6, 1.0)
    search = lo.LooSearchCV(lo.SVC(kernel="linear"), {"C": [1e-3, 1e304]}, refit=False)
    search.fit(X, y, sample_weight=weights)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@ignore_leaveout_warnings
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_features_at_the_ends_of_the_range(samples, scale):
    X, y = samples
    here = lo.leave_one_out(lo.SVC(kernel="linear", C=2.0), X, y)
    there = lo.leave_one_out(lo.SVC(kernel="linear", C=2.0 / scale**2), scale * X, y)
    np.testing.assert_allclose(there.margins, here.margins, rtol=1e-6)
    clf = lo.SVC(kernel="linear", C=2.0 / scale**2).fit(scale * X, y)
    assert clf.fit_status_ == 0
    assert np.isfinite(clf.decision_function(scale * X)).all()


@ignore_leaveout_warnings
@pytest.mark.parametrize("scale", [1e-10, 1e10, 1e20])
def test_bounds_do_not_depend_on_the_scale(samples, scale):
    """The inverse of the bordered kernel once warned of its condition."""
    X, y = samples
    here = lo.loo_bounds(lo.SVC(kernel="linear", C=1.0), X, y)
    there = lo.loo_bounds(lo.SVC(kernel="linear", C=1.0 / scale**2), scale * X, y)
    for name in ("support-vector count", "xi-alpha", "exact"):
        assert there[name].value == pytest.approx(here[name].value)


@ignore_leaveout_warnings
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_svccv_names_what_overflows(samples, kernel):
    """Its grid comes first, from variances that overflow: no warning of those."""
    X, y = samples
    with pytest.raises(ValueError, match=r"Gram matrix of kernel=.* is not finite"):
        lo.SVCCV(kernel=kernel).fit(1e200 * X, y)


def test_no_pair_can_be_left_out_of_two_samples():
    with pytest.raises(ValueError, match="pair of 2 samples leaves none to train on"):
        lo.leave_pair_out_auc(lo.SVC(), [[0.0], [1.0]], [0, 1])


@ignore_leaveout_warnings
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_llw_on_samples_that_coincide(kernel, rng):
    """A singular system inside is not the user's warning."""
    X, y = np.ones((5, 3)), np.arange(5) % 2
    weights = 10.0 ** rng.uniform(-6, 6, 5)
    found = lo.leave_one_out(
        lo.LLWClassifier(C=1e12, kernel=kernel), X, y, sample_weight=weights
    )
    assert np.isfinite(found.margins).all()


def test_a_singular_basis_of_the_linear_program_is_none(rng):
    """Two equal rows on the margin: zeros, and no warning."""
    problem = Problem(np.ones((2, 2)), np.array([1.0, -1.0]), np.ones(2), False)
    basis = LpmBasis(np.array([1, 1], dtype=np.int8), np.array([1, 1], dtype=np.int8))
    z, lam = solve_lpm_basis(problem, basis)
    assert not z.any()
    assert np.isfinite(lam).all()


def test_certificate_of_coefficients_and_boxes_whose_product_overflows():
    problem = Problem(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]), np.full(4, 1e6))
    point, boxes = np.full((1, 4), 1e304), np.full((1, 4), 1e6)
    primal, gap, _ = lpm_certificate(problem, point, 0 * point, 0 * point, boxes)
    assert np.isfinite([primal, gap]).all()


def test_a_fit_that_rounding_decides_is_told():
    """All kernel values 2^80: f is off by 1e6, the gap computed from it was 0."""
    weights = [1.79e-6, 7.47e-3, 4.36e-5, 1.28e-4]
    svc = lo.SVC(kernel="precomputed")
    with pytest.warns(lo.CertificateWarning, match="rounding may decide labels"):
        svc.fit(np.full((4, 4), 2.0**80), [1, -1, 1, 1], sample_weight=weights)
