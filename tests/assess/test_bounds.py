# SPDX-License-Identifier: BSD-3-Clause
"""``loo_bounds``: its rows, its kinds and its errors."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.assess._bounds import exact_row
from leaveout.data import make_twonorm

X, Y = make_twonorm(80, random_state=1)
SVC = lo.SVC(C=2, gamma=0.05)


def assert_same(one, two, **tolerance):
    for a, b in zip(one.rows, two.rows, strict=True):
        assert (a.name, a.kind) == (b.name, b.kind)
        assert [a.value, a.lower] == pytest.approx([b.value, b.lower], **tolerance)


def test_same_in_a_pipeline_and_with_absent_samples():
    scaled = StandardScaler().fit_transform(X)
    pipeline = make_pipeline(StandardScaler(), sklearn.svm.SVC(C=2, gamma=0.05))
    with pytest.warns(lo.PreprocessingWarning):
        piped = lo.loo_bounds(pipeline, X, Y)
    assert_same(piped, lo.loo_bounds(SVC, scaled, Y), rel=0)
    weight = np.arange(80) % 4 > 0
    weighted = lo.loo_bounds(SVC, X, Y, sample_weight=weight)
    assert weighted.n_samples == 60
    assert_same(weighted, lo.loo_bounds(SVC, X[weight], Y[weight]), rel=1e-9)


def test_exact_error_and_count():
    table = lo.loo_bounds(SVC, X, Y)
    row = table["exact"]
    assert table.to_frame().loc["exact", "value"] == row.value
    result = lo.leave_one_out(SVC, X, Y)
    assert result.n_ambiguous == 0
    assert row.value == row.lower == result.error
    clf = sklearn.svm.SVC(C=2, gamma=0.05, tol=1e-8).fit(X, Y)
    row = lo.loo_bounds(clf, X, Y, exact=False)["support-vector count"]
    assert row.value == clf.n_support_.sum() / 80


def test_uncertified_samples_may_be_right_or_wrong():
    result = lo.leave_one_out(SVC, X, Y)
    reasons = np.where(np.arange(80) < 3, "rounding", "")
    row = exact_row(replace(result, uncertified_by=reasons), slice(None), "")
    assert row.lower == result.wrong[3:].sum() / 80
    assert row.value == (3 + result.wrong[3:].sum()) / 80
    assert row.note == "3 not certified"


def test_kinds_depend_on_the_intercept():
    with_b = lo.loo_bounds(SVC, X, Y, exact=False)
    free = lo.SVC(C=2, gamma=0.05, fit_intercept=False)
    without = lo.loo_bounds(free, X, Y, exact=False)
    for name in ("Jaakkola-Haussler", "xi-alpha", "radius-margin L1"):
        assert with_b[name].kind == "estimate"
        assert without[name].kind == "bound"
    assert "with intercept" in str(with_b)
    assert "without intercept" in str(without)


def test_lpm_has_a_support_vector_count():
    table = lo.loo_bounds(lo.LPMClassifier(gamma=0.05), X, Y)
    assert [row.name for row in table.rows] == ["support-vector count", "exact"]
    error = lo.leave_one_out(lo.LPMClassifier(gamma=0.05), X, Y).error
    assert table["exact"].lower <= error <= table["exact"].value
    weight = np.arange(80) % 4 > 0
    weighted = lo.loo_bounds(lo.LPMClassifier(gamma=0.05), X, Y, sample_weight=weight)
    assert weighted.n_samples == 60
    alone = lo.loo_bounds(lo.LPMClassifier(gamma=0.05), X[weight], Y[weight])
    assert_same(weighted, alone, rel=1e-9)


def test_errors():
    with pytest.raises(ValueError, match="y has 3 classes, but the bounds are for two"):
        lo.loo_bounds(lo.SVC(), *load_iris(return_X_y=True))
    with pytest.raises(ValueError, match="loo_bounds needs a positive semi-definite"):
        lo.loo_bounds(lo.SVC(kernel="sigmoid", gamma=1.0, coef0=-1.0), X, Y)
    with pytest.raises(KeyError, match="'spam' is not in the table"):
        lo.loo_bounds(SVC, X, Y, exact=False)["spam"]
