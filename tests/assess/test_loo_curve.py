# SPDX-License-Identifier: BSD-3-Clause
"""loo_curve: results, weights and errors."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris

import leaveout as lo
from leaveout.methods import _curve

IRIS = load_iris(return_X_y=True)
X, y = IRIS[0][50:], IRIS[1][50:]


def test_both_families_and_names():
    ours = lo.loo_curve(lo.SVC(C=7.0, gamma=0.1), X, y)
    theirs = lo.loo_curve(sklearn.svm.SVC(gamma=0.1), X, np.array(["", "c", "a"])[y])
    np.testing.assert_allclose(ours.breakpoints, theirs.breakpoints, rtol=1e-9)
    np.testing.assert_array_equal(ours.errors, theirs.errors)
    assert (ours.C_min, ours.C_max) == (1e-2, 1e3)
    low, high = ours.best_interval
    assert ours.error_at((low + high) / 2) == ours.best_error == ours.errors.min()
    assert f"for C         {low:.6g} to {high:.6g}" in str(ours)
    with pytest.raises(ValueError, match=r"C must be between 0.01 and 1000"):
        ours.error_at(2e3)


def test_weights_absent_samples_and_absent_classes(rng):
    weights = rng.integers(0, 3, y.size).astype(float)
    labels = y.copy()
    labels[:5] = 0
    weights[:5] = 0.0
    svc = lo.SVC(gamma=0.1, class_weight="balanced")
    curve = lo.loo_curve(svc, X, labels, sample_weight=weights, C_max=100.0)
    for C in 10 ** rng.uniform(-2, 2, 20):
        svc.set_params(C=C)
        res = lo.leave_one_out(
            svc, X, labels, sample_weight=weights, preprocessing="frozen"
        )
        assert curve.error_at(C) == res.error
        assert curve.n_ambiguous_at(C) == res.n_ambiguous


def test_singleton_class_counts_as_an_error():
    rows = np.r_[0:30, 60]
    with pytest.warns(lo.SingletonClassWarning, match="1 sample"):
        curve = lo.loo_curve(lo.SVC(gamma=0.1), X[rows], y[rows])
    assert curve.errors.min() >= 1 / 31


@pytest.mark.parametrize(
    ("data", "options", "error", "match"),
    [
        (IRIS, {}, ValueError, r"3 classes, .* Use loo_path"),
        ((X, y), {"C_min": 1.0, "C_max": 1.0}, ValueError, "must be below C_max"),
        ((X, y), {"C_min": 0.0}, ValueError, "C_min must be a finite number > 0"),
        ((X, y), {"C_max": 1e306}, ValueError, r"C_max must be at most 1e\+305"),
    ],
)
def test_bad_arguments_are_refused(data, options, error, match):
    with pytest.raises(error, match=match):
        lo.loo_curve(lo.SVC(), *data, **options)
    with pytest.raises(ValueError, match="positive semi-definite"):
        lo.loo_curve(lo.SVC(kernel="precomputed"), -np.eye(y.size), y)


def test_warns_of_uncertified_paths(monkeypatch):
    monkeypatch.setattr(_curve, "_differ", lambda *_: True)
    with pytest.warns(lo.CertificateWarning, match="100 of 100 paths did not pass"):
        lo.loo_curve(lo.SVC(gamma=0.1), X, y, C_min=0.5, C_max=1.0)
