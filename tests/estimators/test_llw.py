# SPDX-License-Identifier: BSD-3-Clause
"""LLWClassifier: what it stores, how it is left out of, its bounds, its errors."""

import numpy as np
import pytest
from oracles.llw import llw_clarabel
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import leaveout as lo
from leaveout.exceptions import (
    CertificateWarning,
    NotSeparableError,
    PreprocessingWarning,
    SingletonClassWarning,
)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:150:3]
    return scale(X)[rows], np.array(["a", "b", "c"])[y[rows]]


SETTINGS = [
    {"C": 1.0, "gamma": 0.5},
    {"C": 5.0, "gamma": 0.5, "loss": "quadratic"},
    {"C": np.inf, "gamma": 2.0},
    {"C": 1.0, "kernel": "linear"},
    {"C": 1.0, "gamma": 0.5, "class_weight": {"a": 1.0, "b": 2.0, "c": 0.5}},
]


@pytest.mark.parametrize("params", SETTINGS)
def test_what_is_stored(iris, params):
    X, y = iris
    clf = lo.LLWClassifier(**params).fit(X, y)
    assert clf.expansion_coef_.shape == (3, 50)
    assert clf.intercept_.shape == (3,)
    assert abs(clf.duality_gap_) < 1e-8
    values = clf.decision_function(X)
    assert values.shape == (50, 3)
    np.testing.assert_allclose(values.sum(axis=1), 0, atol=1e-9)
    assert (clf.classes_[values.argmax(axis=1)] == clf.predict(X)).all()
    assert clf.score(X, y) > 0.8
    outside = np.setdiff1d(np.arange(50), clf.support_)
    assert (clf.dual_[outside] == 0).all()
    assert (clf.dual_[np.arange(50), np.searchsorted(clf.classes_, y)] == 0).all()
    assert (clf.intercept_interval_[:, 0] <= clf.intercept_ + 1e-9).all()


@pytest.mark.parametrize("params", SETTINGS)
def test_leave_one_out_is_the_loop(iris, params):
    X, y = iris
    clf = lo.LLWClassifier(**params)
    result = lo.leave_one_out(clf, X, y)
    loop = np.empty((50, 3))
    for r in range(50):
        keep = np.delete(np.arange(50), r)
        loop[r] = clone(clf).fit(X[keep], y[keep]).decision_function(X[[r]])[0]
    sure = ~result.ambiguous
    assert sure.any()
    assert result.certified.all()
    np.testing.assert_allclose(result.decision_values[sure], loop[sure], atol=1e-6)
    assert (result.predictions[sure] == clf_labels(y, loop)[sure]).all()


def clf_labels(y, values):
    return np.unique(y)[values.argmax(axis=1)]


def test_two_classes_are_our_svc_with_half_of_c(iris):
    X, y = iris
    X, y = X[y != "a"], y[y != "a"]
    llw = lo.LLWClassifier(C=2.0, gamma=0.5).fit(X, y)
    svc = lo.SVC(C=1.0, gamma=0.5).fit(X, y)
    assert llw.decision_function(X).shape == (len(y),)
    np.testing.assert_allclose(
        llw.decision_function(X), svc.decision_function(X), atol=1e-8
    )
    ours = lo.leave_one_out(llw, X, y)
    theirs = lo.leave_one_out(svc, X, y)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-6)
    np.testing.assert_allclose(ours.upper, theirs.upper, atol=1e-6)
    assert (ours.predictions == theirs.predictions)[~theirs.ambiguous].all()


def test_precomputed_and_sparse_are_the_same(iris):
    X, y = iris
    clf = lo.LLWClassifier(C=1.0, gamma=0.5).fit(X, y)
    K = rbf_kernel(X, gamma=0.5)
    gram = lo.LLWClassifier(C=1.0, kernel="precomputed").fit(K, y)
    rows = lo.LLWClassifier(C=1.0, gamma=0.5).fit(sparse.csr_matrix(X), y)
    expected = clf.decision_function(X)
    np.testing.assert_allclose(gram.decision_function(K), expected, atol=1e-7)
    np.testing.assert_allclose(
        rows.decision_function(sparse.csr_matrix(X)), expected, atol=1e-7
    )


@pytest.mark.parametrize("C", [2.0, np.inf])
def test_rows_without_weight_are_absent(iris, C):
    X, y = iris
    weights = np.ones(50)
    weights[::7] = 0.0
    clf = lo.LLWClassifier(C=C, gamma=2.0).fit(X, y, sample_weight=weights)
    part = lo.LLWClassifier(C=C, gamma=2.0).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_allclose(
        clf.decision_function(X), part.decision_function(X), atol=1e-7
    )


def test_hard_margin_that_is_not_there(iris):
    X, y = iris
    with pytest.raises(NotSeparableError, match="Use a finite C, or another kernel"):
        lo.LLWClassifier(C=np.inf, kernel="linear").fit(X[:, :1], y)
    with pytest.raises(NotSeparableError, match="hard margin"):
        lo.leave_one_out(lo.LLWClassifier(C=np.inf, kernel="linear"), X[:, :1], y)
    bounds = lo.llw_bounds(lo.LLWClassifier(C=np.inf, kernel="linear"), X[:, :1], y)
    assert bounds["radius_margin"].value == bounds["sharp_sum"].value == np.inf
    assert bounds["sharp_count"].value == 1.0


def test_bounds_beside_the_exact_error(iris):
    X, y = iris
    for params in ({"C": 10.0, "loss": "quadratic"}, {"C": np.inf}):
        bounds = lo.llw_bounds(lo.LLWClassifier(gamma=1.0, **params), X, y)
        exact = lo.leave_one_out(lo.LLWClassifier(gamma=1.0, **params), X, y)
        assert bounds["exact"].value == pytest.approx(exact.error)
        names = ("sharp_count", "sharp_sum", "radius_margin", "support-vector count")
        for name in names:
            assert bounds[name].kind == "bound"
            assert bounds[name].value >= bounds["exact"].value
        assert bounds["sharp_count"].value <= bounds["support-vector count"].value
    hinge = lo.llw_bounds(lo.LLWClassifier(gamma=1.0, C=10.0), X, y, exact=False)
    quadratic = lo.llw_bounds(
        lo.LLWClassifier(gamma=1.0, C=10.0, loss="quadratic"), X, y, exact=False
    )
    assert hinge["sharp_sum"].value == pytest.approx(quadratic["sharp_sum"].value)
    assert "quadratic" in hinge["sharp_sum"].note
    with pytest.raises(KeyError):
        hinge["exact"]


def test_search_pipeline_and_predictor(iris):
    X, y = iris
    search = lo.LooSearchCV(
        lo.LLWClassifier(), {"C": [0.5, 5.0], "gamma": [0.1, 1.0]}
    ).fit(X, y)
    errors = [
        lo.leave_one_out(lo.LLWClassifier(**params), X, y).error
        for params in search.cv_results_["params"]
    ]
    np.testing.assert_allclose(1 - search.cv_results_["mean_test_score"], errors)
    pipeline = make_pipeline(StandardScaler(), lo.LLWClassifier(C=1.0, gamma=0.5))
    with pytest.warns(PreprocessingWarning):
        piped = lo.leave_one_out(pipeline, X, y)
    direct = lo.leave_one_out(
        lo.LLWClassifier(C=1.0, gamma=0.5), StandardScaler().fit_transform(X), y
    )
    assert piped.error == direct.error
    clf = lo.LLWClassifier(C=1.0, gamma=0.5).fit(X, y)
    tasks = [(lo.LLWClassifier(C=C, gamma=0.5), X, y) for C in (0.5, 1.0, 5.0)]
    predictor = lo.LooPredictor().fit(tasks)
    assert predictor.predict_errors(clf, X, y).shape == (50,)


def test_progress(iris, capsys):
    X, y = iris
    lo.leave_one_out(lo.LLWClassifier(gamma=0.5, verbose=1), X, y)
    captured = capsys.readouterr()
    assert "left out" in captured.err
    assert captured.out == ""


def test_singleton_class(iris):
    X, y = iris
    y = y.copy()
    y[0] = "z"
    with pytest.warns(SingletonClassWarning, match="'z'"):
        result = lo.leave_one_out(lo.LLWClassifier(gamma=0.5), X, y)
    assert result.predictions[0] != "z"
    assert result.decision_values[0, 3] == -np.inf


def test_refusals(iris):
    X, y = iris
    with pytest.raises(ValueError, match="loss must be 'hinge' or 'quadratic'"):
        lo.LLWClassifier(loss="huber").fit(X, y)
    with pytest.raises(ValueError, match="C must be"):
        lo.LLWClassifier(C=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="'auto', 'walk', 'refit'"):
        lo.leave_one_out(lo.LLWClassifier(), X, y, method="stopping")
    with pytest.raises(TypeError, match=r"must be an LLWClassifier, or .*; SVC will"):
        lo.llw_bounds(lo.SVC(), X, y)
    with pytest.warns(CertificateWarning, match="not positive semi-definite"):
        lo.LLWClassifier(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)


def test_model_file(iris, tmp_path):
    X, y = iris
    clf = lo.LLWClassifier(gamma=0.5).fit(X, y)
    lo.save_model(clf, tmp_path / "llw.skops")
    loaded = lo.load_model(tmp_path / "llw.skops")
    np.testing.assert_array_equal(loaded.decision_function(X), clf.decision_function(X))


def _extreme(seed):
    """Few points in several classes, some twice; C and the scale of K over decades."""
    rng = np.random.default_rng(seed)
    Q = int(rng.integers(3, 5))
    n = int(rng.integers(2 * Q, 12))
    X = rng.normal(size=(n, 2))
    if seed % 3 == 1:
        X = X[rng.integers(0, n // 2 + 1, n)]
    y = np.concatenate([np.tile(np.arange(Q), 2), rng.integers(0, Q, n - 2 * Q)])
    K = np.exp(-(10 ** rng.uniform(-2, 1)) * ((X[:, None] - X) ** 2).sum(axis=-1))
    return K, y, Q, 10 ** rng.uniform(-8, 8), int(rng.choice([0, 0, 60, -60]))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_certified_labels_of_several_classes_at_extremes(seed):
    K, y, Q, C, exponent = _extreme(seed)
    clf = lo.LLWClassifier(kernel="precomputed", C=np.ldexp(C, -exponent))
    loo = lo.leave_one_out(clf, np.ldexp(K, exponent), y)
    assert not np.isnan(loo.margins).any()
    for r in np.flatnonzero(loo.certified & ~loo.ambiguous):
        rest = np.arange(len(y)) != r
        boxes = np.full(len(y) - 1, C)
        truth = llw_clarabel(K[np.ix_(rest, rest)], y[rest], boxes, Q)
        values = truth.W.T @ K[rest, r] + truth.b
        second, first = np.sort(values)[-2:]
        if truth.gap < 1e-7 and first - second > 1e-4 * max(1.0, abs(first)):
            assert loo.predictions[r] == np.argmax(values)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_bounds_at_extremes(seed):
    K, y, _, C, exponent = _extreme(seed)
    K, C = np.ldexp(K, exponent), np.ldexp(C, -exponent)
    clf = lo.LLWClassifier(kernel="precomputed", C=C, loss="quadratic")
    bounds, loo = lo.llw_bounds(clf, K, y), lo.leave_one_out(clf, K, y)
    sure = loo.certified & ~loo.ambiguous
    least = np.mean(sure & (loo.predictions != y))
    for name in ("radius_margin", "sharp_sum", "sharp_count"):
        assert bounds[name].value >= least - 1e-9
