# SPDX-License-Identifier: BSD-3-Clause
"""Extreme input: a finite result, or an error that gives the reason."""

import numpy as np
import pytest

import leaveout as lo

pytestmark = pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")


@pytest.fixture
def samples(rng):
    X = rng.normal(size=(14, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=14) > 0, "a", "b")
    y[:2] = ["a", "b"]
    return X, y


@pytest.mark.parametrize("C", [1e300, 1e-300])
def test_overflowing_or_vanishing_upper_bounds_are_refused(samples, C):
    weights = np.full(14, 1e12 if C > 1 else 1e-30)
    with pytest.raises(ValueError, match=r"row 0, .* is too (large|small) for a doubl"):
        lo.SVC(C=C).fit(*samples, sample_weight=weights)


@pytest.mark.parametrize("model", [lo.SVC, lo.LPMClassifier, lo.LLWClassifier])
def test_too_large_penalty_is_refused(samples, model):
    with pytest.raises(ValueError, match=r"C must be at most 1e\+305; got 1e\+306"):
        lo.leave_one_out(model(C=1e306), *samples)


def test_search_with_overflowing_bounds_has_scores(samples):
    weights = np.where(np.arange(14) % 2, 1e6, 1.0)
    search = lo.LooSearchCV(lo.SVC(kernel="linear"), {"C": [1e-3, 1e304]}, refit=False)
    search.fit(*samples, sample_weight=weights)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("scale", [1e-150, 1e20, 1e150])
def test_invariant_to_feature_scale(samples, scale):
    X, y = samples
    here, there = lo.SVC(kernel="linear"), lo.SVC(kernel="linear", C=1.0 / scale**2)
    np.testing.assert_allclose(
        lo.leave_one_out(there, scale * X, y).margins,
        lo.leave_one_out(here, X, y).margins,
        rtol=1e-6,
    )
    assert there.fit(scale * X, y).fit_status_ == 0
    assert np.isfinite(there.decision_function(scale * X)).all()
    bounds = [lo.loo_bounds(here, X, y), lo.loo_bounds(there, scale * X, y)]
    for name in ("support-vector count", "xi-alpha", "exact"):
        values = [table[name].value for table in bounds]
        assert values[0] == pytest.approx(values[1])


def test_llw_on_identical_samples(rng):
    """A singular system in the solver does not warn."""
    X, y = np.ones((5, 3)), np.arange(5) % 2
    weights = 10.0 ** rng.uniform(-6, 6, 5)
    found = lo.leave_one_out(lo.LLWClassifier(C=1e12), X, y, sample_weight=weights)
    assert np.isfinite(found.margins).all()


def test_warns_if_rounding_may_change_labels():
    """All kernel values are 2^80: f has an error of 1e6, although its gap is 0."""
    weights = [1.79e-6, 7.47e-3, 4.36e-5, 1.28e-4]
    svc = lo.SVC(kernel="precomputed")
    with pytest.warns(lo.CertificateWarning, match="rounding may change predictions"):
        svc.fit(np.full((4, 4), 2.0**80), [1, -1, 1, 1], sample_weight=weights)
