# SPDX-License-Identifier: BSD-3-Clause
"""LLWClassifier: attributes, hard margins, bounds, and labels at extremes."""

import numpy as np
import pytest
from oracles.llw import llw_clarabel
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

import leaveout as lo
from leaveout.llw._solve import LlwProblem

X, Y = scale(load_iris().data)[::3], load_iris().target[::3]


def test_attributes():
    clf = lo.LLWClassifier(C=0.2, gamma=0.5).fit(X, Y)
    assert clf.expansion_coef_.shape == (3, 50)
    assert abs(clf.duality_gap_) < 1e-8
    values = clf.decision_function(X)
    np.testing.assert_allclose(values.sum(axis=1), 0, atol=1e-9)
    assert (values.argmax(axis=1) == clf.predict(X)).all()
    expansion = clf.dual_.mean(axis=1) - clf.dual_.T
    np.testing.assert_allclose(clf.expansion_coef_, expansion, atol=1e-12)
    assert set(clf.support_) == set(np.nonzero(clf.dual_)[0])
    assert (clf.dual_[np.arange(50), Y] == 0).all()
    low, high = clf.intercept_interval_.T
    assert np.clip(clf.intercept_, low, high) == pytest.approx(clf.intercept_)
    loss = 0.2 * np.maximum(0, values + 0.5)[Y[:, None] != np.arange(3)].sum()
    norm = (clf.expansion_coef_.T * (values - clf.intercept_)).sum()
    assert clf.objective_ == pytest.approx(0.5 * norm + loss)


def test_two_classes_equal_svc_with_half_of_c():
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


def test_inseparable_classes_have_no_hard_margin():
    hard, line = lo.LLWClassifier(C=np.inf, kernel="linear"), X[:, :1]
    with pytest.raises(lo.NotSeparableError, match="Use a finite C, or another kernel"):
        hard.fit(line, Y)
    with pytest.raises(lo.NotSeparableError, match="hard margin"):
        lo.leave_one_out(hard, line, Y)
    bounds = lo.llw_bounds(hard, line, Y)
    names = ("radius_margin", "lemma_count", "sharp_sum", "sharp_count")
    assert [bounds[name].value for name in names] == [np.inf, 1.0, np.inf, 1.0]
    assert bounds.geometry is None


def test_bounds_and_exact_error():
    for params in ({"C": np.inf}, {"C": 10.0, "loss": "quadratic"}):
        clf = lo.LLWClassifier(gamma=1.0, **params)
        bounds, exact = lo.llw_bounds(clf, X, Y), lo.leave_one_out(clf, X, Y).error
        assert bounds["exact"].value == pytest.approx(exact)
        for name in ("sharp_count", "sharp_sum", "radius_margin"):
            assert bounds[name].kind == "bound"
            assert bounds[name].value >= exact
        assert bounds["sharp_count"].value <= bounds["support-vector count"].value
    hinge = lo.llw_bounds(lo.LLWClassifier(10.0, gamma=1.0), X, Y, exact=False)
    assert hinge["sharp_sum"].value == pytest.approx(bounds["sharp_sum"].value)
    assert "quadratic" in hinge["sharp_sum"].note
    assert hinge["sharp_sum"].kind == "other loss"
    np.testing.assert_allclose(hinge.geometry.margins, bounds.geometry.margins)


def test_bound_of_the_quadratic_loss_does_not_hold_for_the_hinge_loss():
    rng = np.random.default_rng(11)
    codes = np.r_[0, 0, 1, 1, 2, 2, rng.integers(0, 3, 3)]
    points = rng.normal(size=(9, 2))
    found = []
    for loss in ("hinge", "quadratic"):
        clf = lo.LLWClassifier(C=10, loss=loss, kernel="poly", gamma=3.0)
        found.append(lo.llw_bounds(clf, points, codes))
    hinge, quadratic = found
    assert quadratic["sharp_count"].kind == "bound"
    assert quadratic["sharp_count"].value >= quadratic["exact"].value
    assert hinge["sharp_count"].kind == "other loss"
    assert hinge["sharp_count"].value < hinge["exact"].lower


def test_progress(capsys):
    lo.leave_one_out(lo.LLWClassifier(gamma=0.5, verbose=1), X, Y)
    captured = capsys.readouterr()
    assert "left out" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_labels_and_margins_at_extremes(seed):
    """Few points in three classes, some duplicated; C and K over many decades."""
    rng = np.random.default_rng(seed)
    points, y = rng.normal(size=(10, 2)), np.arange(10) % 3
    if seed % 2:
        points = points[rng.integers(0, 5, 10)]
    K = rbf_kernel(points, gamma=10 ** rng.uniform(-2, 1))
    C, exponent = 10.0 ** (3 * seed - 8), [0, 60, -60][seed % 3]
    clf = lo.LLWClassifier(kernel="precomputed", C=np.ldexp(C, -exponent))
    loo = lo.leave_one_out(clf, np.ldexp(K, exponent), y)
    assert not np.isnan(loo.margins).any()
    problem, compared = LlwProblem(K, y, np.full(10, C), 3), 0
    for r in np.flatnonzero(loo.certified & ~loo.ambiguous):
        truth = llw_clarabel(problem.without(r))
        values = K[r] @ truth.W + truth.b
        second, first = np.sort(values)[-2:]
        if truth.gap < 1e-7 and first - second > 1e-4 * max(1.0, abs(first)):
            compared += 1
            assert loo.predictions[r] == np.argmax(values)
            margin = values[y[r]] - np.delete(values, y[r]).max()
            assert loo.lower[r] - 1e-2 <= margin <= loo.upper[r] + 1e-2
    assert compared >= 6
