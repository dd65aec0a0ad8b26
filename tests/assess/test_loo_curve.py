# SPDX-License-Identifier: BSD-3-Clause
"""loo_curve as users call it."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris

import leaveout as lo
from leaveout.methods import _curve

X, y = load_iris(return_X_y=True)
X, y = X[50:], y[50:]
NAMES = np.array(["versicolor", "virginica"])[y - 1]


def test_both_families_and_names():
    ours = lo.loo_curve(lo.SVC(C=7.0, gamma=0.1), X, y)
    theirs = lo.loo_curve(sklearn.svm.SVC(gamma=0.1), X, NAMES)
    np.testing.assert_allclose(ours.breakpoints, theirs.breakpoints, rtol=1e-9)
    np.testing.assert_array_equal(ours.errors, theirs.errors)
    assert ours.C_min == 1e-2
    assert ours.C_max == 1e3


def test_weights_and_absent_samples(rng):
    weights = rng.integers(0, 3, y.size).astype(float)
    svc = lo.SVC(gamma=0.1, class_weight="balanced")
    curve = lo.loo_curve(svc, X, y, sample_weight=weights, C_max=100.0)
    for C in 10 ** rng.uniform(-2, 2, 20):
        svc.set_params(C=C)
        res = lo.leave_one_out(svc, X, y, sample_weight=weights)
        assert curve.error_at(C) == res.error
        assert curve.n_ambiguous_at(C) == res.n_ambiguous


def test_samples_of_an_absent_class_are_wrong():
    labels = y.copy()
    labels[:5] = 0
    weights = np.where(labels == 0, 0.0, 1.0)
    svc = lo.SVC(gamma=0.1)
    curve = lo.loo_curve(svc, X, labels, sample_weight=weights, C_max=10.0)
    res = lo.leave_one_out(svc, X, labels, sample_weight=weights)
    assert curve.error_at(1.0) == res.error


def test_a_class_of_one_is_an_error_with_a_warning():
    rows = np.r_[0:30, 60]
    with pytest.warns(lo.SingletonClassWarning, match="1 sample"):
        curve = lo.loo_curve(lo.SVC(gamma=0.1), X[rows], y[rows])
    assert curve.errors.min() >= 1 / 31


def test_more_classes_are_refused():
    X3, y3 = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"3 classes; .* Use loo_path"):
        lo.loo_curve(lo.SVC(), X3, y3)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="C_min must be below C_max"):
        lo.loo_curve(lo.SVC(), X, y, C_min=1.0, C_max=1.0)
    with pytest.raises(ValueError, match="C_min must be a finite number > 0"):
        lo.loo_curve(lo.SVC(), X, y, C_min=0.0)
    with pytest.raises(TypeError, match="C_max must be a number"):
        lo.loo_curve(lo.SVC(), X, y, C_max="large")
    with pytest.raises(TypeError, match="LinearSVC"):
        lo.loo_curve(sklearn.svm.LinearSVC(), X, y)
    indefinite = -np.eye(y.size)
    with pytest.raises(ValueError, match="positive semi-definite"):
        lo.loo_curve(lo.SVC(kernel="precomputed"), indefinite, y)


def test_uncertified_paths_are_said(monkeypatch):
    monkeypatch.setattr(_curve, "_differ", lambda *_: True)
    with pytest.warns(lo.CertificateWarning, match="100 of 100 paths did not pass"):
        lo.loo_curve(lo.SVC(gamma=0.1), X, y, C_min=0.5, C_max=1.0)
