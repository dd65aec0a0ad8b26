# SPDX-License-Identifier: BSD-3-Clause
"""LLWClassifier: what it stores, how it is left out of, its bounds, its errors."""

import numpy as np
import pytest
from oracles.llw import llw_clarabel
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

import leaveout as lo

X, Y = scale(load_iris().data)[::3], load_iris().target[::3]


def test_attributes():
    clf = lo.LLWClassifier(C=0.2, gamma=0.5).fit(X, Y)
    assert clf.expansion_coef_.shape == (3, 50)
    assert abs(clf.duality_gap_) < 1e-8
    values = clf.decision_function(X)
    np.testing.assert_allclose(values.sum(axis=1), 0, atol=1e-9)
    assert (values.argmax(axis=1) == clf.predict(X)).all()
    assert clf.score(X, Y) > 0.8
    outside = np.setdiff1d(np.arange(50), clf.support_)
    assert outside.size > 0
    assert (clf.dual_[outside] == 0).all()
    assert (clf.dual_[np.arange(50), Y] == 0).all()
    low, high = clf.intercept_interval_.T
    assert (low - 1e-9 <= clf.intercept_).all()
    assert (clf.intercept_ <= high + 1e-9).all()
    loss = 0.2 * np.maximum(0, values + 0.5)[Y[:, None] != np.arange(3)].sum()
    norm = (clf.expansion_coef_.T * (values - clf.intercept_)).sum()
    assert clf.objective_ == pytest.approx(0.5 * norm + loss)


def test_two_classes_are_our_svc_with_half_of_c():
    two = X[Y > 0], Y[Y > 0]
    llw = lo.LLWClassifier(C=2.0, gamma=0.5).fit(*two)
    svc = lo.SVC(C=1.0, gamma=0.5).fit(*two)
    np.testing.assert_allclose(
        llw.decision_function(X), svc.decision_function(X), atol=1e-8
    )
    ours, theirs = lo.leave_one_out(llw, *two), lo.leave_one_out(svc, *two)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-6)
    np.testing.assert_allclose(ours.upper, theirs.upper, atol=1e-6)
    assert (ours.predictions == theirs.predictions)[~theirs.ambiguous].all()


def test_hard_margin_that_is_not_there():
    hard, line = lo.LLWClassifier(C=np.inf, kernel="linear"), X[:, :1]
    with pytest.raises(lo.NotSeparableError, match="Use a finite C, or another kernel"):
        hard.fit(line, Y)
    with pytest.raises(lo.NotSeparableError, match="hard margin"):
        lo.leave_one_out(hard, line, Y)
    bounds = lo.llw_bounds(hard, line, Y)
    names = ("radius_margin", "sharp_sum", "sharp_count")
    assert [bounds[name].value for name in names] == [np.inf, np.inf, 1.0]


def test_bounds_beside_the_exact_error():
    for params in ({"C": 10.0, "loss": "quadratic"}, {"C": np.inf}):
        clf = lo.LLWClassifier(gamma=1.0, **params)
        bounds, exact = lo.llw_bounds(clf, X, Y), lo.leave_one_out(clf, X, Y).error
        assert bounds["exact"].value == pytest.approx(exact)
        names = ("sharp_count", "sharp_sum", "radius_margin", "support-vector count")
        for name in names:
            assert bounds[name].kind == "bound"
            assert bounds[name].value >= exact
        assert bounds["sharp_count"].value <= bounds["support-vector count"].value
    hinge, quadratic = (
        lo.llw_bounds(lo.LLWClassifier(10.0, gamma=1.0, loss=loss), X, Y, exact=False)
        for loss in ("hinge", "quadratic")
    )
    assert hinge["sharp_sum"].value == pytest.approx(quadratic["sharp_sum"].value)
    assert "quadratic" in hinge["sharp_sum"].note
    with pytest.raises(KeyError):
        hinge["exact"]


def test_progress(capsys):
    lo.leave_one_out(lo.LLWClassifier(gamma=0.5, verbose=1), X, Y)
    captured = capsys.readouterr()
    assert "left out" in captured.err
    assert captured.out == ""


def test_indefinite_kernel_warns():
    with pytest.warns(lo.CertificateWarning, match="not positive semi-definite"):
        lo.LLWClassifier(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, Y)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_labels_and_bounds_at_extremes(seed):
    """Few points in several classes, some twice; C and the scale of K over decades."""
    rng = np.random.default_rng(seed)
    Q = int(rng.integers(3, 5))
    n = int(rng.integers(2 * Q, 12))
    points = rng.normal(size=(n, 2))
    if seed % 3 == 1:
        points = points[rng.integers(0, n // 2 + 1, n)]
    y = np.concatenate([np.tile(np.arange(Q), 2), rng.integers(0, Q, n - 2 * Q)])
    K = rbf_kernel(points, gamma=10 ** rng.uniform(-2, 1))
    C, exponent = 10 ** rng.uniform(-8, 8), int(rng.choice([0, 0, 60, -60]))
    clf = lo.LLWClassifier(kernel="precomputed", C=np.ldexp(C, -exponent))
    loo = lo.leave_one_out(clf, np.ldexp(K, exponent), y)
    assert not np.isnan(loo.margins).any()
    for r in np.flatnonzero(loo.certified & ~loo.ambiguous):
        rest = np.delete(np.arange(n), r)
        truth = llw_clarabel(K[np.ix_(rest, rest)], y[rest], np.full(n - 1, C), Q)
        values = truth.W.T @ K[rest, r] + truth.b
        second, first = np.sort(values)[-2:]
        if truth.gap < 1e-7 and first - second > 1e-4 * max(1.0, abs(first)):
            assert loo.predictions[r] == np.argmax(values)
    clf.set_params(loss="quadratic")
    bounds = lo.llw_bounds(clf, np.ldexp(K, exponent), y)
    loo = lo.leave_one_out(clf, np.ldexp(K, exponent), y)
    least = np.mean(loo.certified & ~loo.ambiguous & (loo.predictions != y))
    for name in ("radius_margin", "sharp_sum", "sharp_count"):
        assert bounds[name].value >= least - 1e-9
