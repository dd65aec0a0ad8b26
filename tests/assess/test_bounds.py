# SPDX-License-Identifier: BSD-3-Clause
"""``loo_bounds`` as users meet it."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.data import make_twonorm

NAMES = [
    "support-vector count",
    "Jaakkola-Haussler",
    "xi-alpha",
    "radius-margin L1",
    "radius-margin L2",
    "GACV",
    "span",
    "certificate",
    "exact",
]


@pytest.fixture(scope="module")
def data():
    return make_twonorm(80, random_state=1)


def test_scikit_learns_svc_and_ours_agree(data):
    X, y = data
    theirs = lo.loo_bounds(sklearn.svm.SVC(C=2, gamma=0.05), X, y)
    ours = lo.loo_bounds(lo.SVC(C=2, gamma=0.05), X, y)
    assert [row.name for row in ours.rows] == NAMES
    for a, b in zip(theirs.rows, ours.rows, strict=True):
        assert (a.name, a.kind, a.value, a.lower) == (b.name, b.kind, b.value, b.lower)


def test_exact_is_that_of_leave_one_out(data):
    X, y = data
    row = lo.loo_bounds(lo.SVC(C=2, gamma=0.05), X, y)["exact"]
    result = lo.leave_one_out(lo.SVC(C=2, gamma=0.05), X, y)
    assert result.n_ambiguous == 0
    assert row.value == row.lower == result.error


def test_count_is_that_of_scikit_learn(data):
    X, y = data
    clf = sklearn.svm.SVC(C=2, gamma=0.05, tol=1e-8).fit(X, y)
    row = lo.loo_bounds(clf, X, y, exact=False)["support-vector count"]
    assert row.value == clf.n_support_.sum() / 80


def test_intercept_decides_what_is_a_bound(data):
    X, y = data
    with_b = lo.loo_bounds(lo.SVC(gamma=0.05), X, y, exact=False)
    without = lo.loo_bounds(lo.SVC(gamma=0.05, fit_intercept=False), X, y, exact=False)
    for name in ("Jaakkola-Haussler", "xi-alpha", "radius-margin L1"):
        assert with_b[name].kind == "estimate"
        assert without[name].kind == "bound"
    assert "with intercept" in str(with_b)
    assert "without intercept" in str(without)


def test_weights_of_zero_are_not_counted(data):
    X, y = data
    weight = np.arange(80) % 4 > 0
    weighted = lo.loo_bounds(lo.SVC(gamma=0.05), X, y, sample_weight=weight)
    less = lo.loo_bounds(lo.SVC(gamma=0.05), X[weight], y[weight])
    assert weighted.n_samples == 60
    for a, b in zip(weighted.rows, less.rows, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-9)


def test_pipeline_is_frozen(data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), lo.SVC(gamma=0.05))
    with pytest.warns(lo.PreprocessingWarning):
        piped = lo.loo_bounds(pipe, X, y)
    scaled = lo.loo_bounds(lo.SVC(gamma=0.05), StandardScaler().fit_transform(X), y)
    assert piped["span"].value == scaled["span"].value


def test_linear_programming_machine_has_its_count(data):
    X, y = data
    table = lo.loo_bounds(lo.LPMClassifier(gamma=0.05), X, y)
    assert [row.name for row in table.rows] == ["support-vector count", "exact"]
    error = lo.leave_one_out(lo.LPMClassifier(gamma=0.05), X, y).error
    assert table["exact"].lower <= error <= table["exact"].value


def test_frame_and_text(data):
    table = lo.loo_bounds(lo.SVC(gamma=0.05), *data)
    frame = table.to_frame()
    assert list(frame.index) == NAMES
    assert frame.loc["span", "kind"] == "estimate"
    for name in NAMES:
        assert name in str(table)
    with pytest.raises(KeyError, match="'spam' is not in the table"):
        table["spam"]


def test_three_classes_are_refused():
    with pytest.raises(ValueError, match="y has 3 classes; the bounds are those of"):
        lo.loo_bounds(lo.SVC(), *load_iris(return_X_y=True))


def test_an_indefinite_kernel_is_refused(data):
    clf = lo.SVC(kernel="sigmoid", gamma=1.0, coef0=-1.0)
    with pytest.raises(ValueError, match="positive semi-definite"):
        lo.loo_bounds(clf, *data)
