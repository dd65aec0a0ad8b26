# SPDX-License-Identifier: BSD-3-Clause
"""FeatureSVC: the exact optimum and leave-one-out labels for any number of rows."""

from dataclasses import replace
from functools import partial

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from many_rows import CLOSE_CALL, ManyRows, assert_no_proof_is_wrong, draw, exact
from oracles.binary import svc_clarabel
from oracles.rational import leave_out_exactly
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, scale

import leaveout as lo
from leaveout.engine._solve import solve_svc
from leaveout.large._window import WindowProblem

pytestmark = [
    pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning"),
    pytest.mark.filterwarnings("ignore::leaveout.AntiLearningWarning"),
]
FeatureSVC = partial(lo.FeatureSVC, random_state=0)


@pytest.fixture(params=[FeatureSVC, ManyRows], ids=["few rows", "many rows"])
def make(request):
    return request.param


def compare_with_exact(make, X, y, C, weights=None, class_weight=None):
    clf = make("linear", C=C, class_weight=class_weight).fit(X, y, weights)
    svc, loo = exact(X, y, C, weights, class_weight)
    centre = X.mean(axis=0)
    atol = 1e-7 * np.abs(svc.coef_).max()
    np.testing.assert_allclose(clf.coef_, svc.coef_, rtol=1e-5, atol=atol)
    intercept = svc.intercept_ - svc.coef_ @ centre
    np.testing.assert_allclose(clf.intercept_, intercept, atol=1e-6)
    np.testing.assert_array_equal(clf.predict(X), svc.predict(X - centre))
    assert clf.duality_gap_.max() < (1e-6 if C == 1e6 else 1e-9)
    assert_no_proof_is_wrong(clf, y, loo, weights)
    return clf, loo


def problems(rng):
    """Yield X, y, C, sample_weight and class_weight."""
    # A heavy row, alone of its class in the window; without it, others enter.
    X = np.vstack([0.3 * rng.normal(size=(200, 1)), [[3]], rng.uniform(4, 5, (40, 1))])
    weights = np.where(np.arange(241) == 200, 300.0, 1.0)
    yield X, np.repeat([0, 1], [200, 41]), 1e-2, weights
    for n_classes in (2, 4):
        for C in (1e-10, 1e-3, 1.0, 1e6):
            yield *draw(rng, 150, 3, n_classes, noise=0.5), C
    for class_weight in (None, "balanced", {1: 3.0}):
        weights = rng.integers(0, 3, 120) * 10 ** rng.uniform(-1, 1, 120)
        yield *draw(rng, 120, 2, first=0.8), 0.1, weights, class_weight
    X, y = draw(rng, 120, 3)
    for factor in (1e-6, 1e6):
        yield factor * X, y, 0.3 / factor**2
    # Balanced classes, no free support vector: b is the middle of an interval.
    yield X, (X[:, 0] > np.median(X[:, 0])).astype(int), 1e-5


@pytest.mark.parametrize("number", range(15))
def test_linear_features_give_the_exact_svm(make, rng, number):
    compare_with_exact(make, *list(problems(rng))[number])


def test_few_rows_are_all_proved():
    X, y = load_breast_cancer(return_X_y=True)
    clf, loo = compare_with_exact(FeatureSVC, scale(X), y, 0.5)
    assert clf.loo_error_.proved
    np.testing.assert_array_equal(clf.loo_labels_, loo.predictions)


def test_full_rank_nystroem_is_the_rbf_svm(make):
    X, y = load_iris(return_X_y=True)
    X, first = np.unique(scale(X), axis=0, return_index=True)
    y = np.array(["setosa", "versicolor", "virginica"])[y[first]]
    clf = make("nystroem", n_components=len(y), gamma=0.5, C=2.0)
    # Let the sample hold all rows, so that there are enough landmarks.
    clf._sizes = replace(clf._sizes, largest_sample=3 * len(y))
    clf.fit(X, y)
    svc = lo.SVC(gamma=0.5, C=2.0).fit(X, y)
    np.testing.assert_allclose(
        clf.decision_function(X), svc.decision_function(X), atol=1e-6
    )
    np.testing.assert_array_equal(clf.predict(X), svc.predict(X))
    assert_no_proof_is_wrong(clf, y, lo.leave_one_out(svc, X, y))


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0])
def test_few_distinct_rows_repeated_many_times(rng, C):
    # 14 rows, 500 times each: only a window of distinct rows holds all rows on the
    # margin.
    places, times = rng.normal(size=(14, 3)), 500
    labels = np.arange(14) % 2
    order = rng.permutation(np.repeat(np.arange(14), times))
    clf = FeatureSVC("linear", C=C, rows_at_once=512).fit(places[order], labels[order])
    Z, signs, bounds = places - places.mean(axis=0), 2.0 * labels - 1.0, np.full(14, C)
    optimum = svc_clarabel(Z @ Z.T, signs, times * bounds)
    np.testing.assert_allclose(clf.decision_function(places), optimum.f, atol=1e-6)
    assert clf.duality_gap_[0] < 1e-9
    for place in range(14):
        without = svc_clarabel(Z @ Z.T, signs, times * bounds - C * np.eye(14)[place])
        ends = without.g[place] + np.array([without.b_low, without.b_high])
        if (ends > CLOSE_CALL).all() or (ends < -CLOSE_CALL).all():
            copies = (order == place) & clf.loo_proved_
            assert (clf.loo_labels_[copies] == (ends[0] > 0)).all()
    assert clf.loo_error_.proved or C > 1e-4


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_walks_on_one_hot_columns_of_all_scales_are_proofs(seed, C):
    """No bound on distances holds for them, but all rows outside keep their sides."""
    rng, n = np.random.default_rng(seed), 400
    X = np.eye(5)[rng.integers(0, 5, (n, 6))].reshape(n, 30)
    X *= np.exp(rng.normal(size=30))
    score = X @ rng.normal(size=30)
    noisy = score + score.std() * rng.normal(size=n)
    y = (noisy > np.quantile(score, 0.7)).astype(int)
    clf = ManyRows("linear", C=C).fit(X, y)
    assert_no_proof_is_wrong(clf, y, exact(X, y, C)[1])
    assert clf.loo_proved_.mean() > 0.85
    assert clf.duality_gap_[0] < 1e-11


@st.composite
def hard_problems(draw_):
    """Draw degenerate data: grids, duplicates, conflicts, weights, singletons."""
    rng = np.random.default_rng(draw_(st.integers(0, 2**32 - 1)))
    n, p = draw_(st.integers(12, 90)), draw_(st.integers(1, 4))
    n_classes = draw_(st.sampled_from([2, 2, 3]))
    noise, first = rng.choice([0.0, 0.5, 2.0]), rng.choice([0.1, 0.5])
    X, y = draw(rng, n, p, n_classes, noise, first)
    kind = draw_(st.sampled_from(["plain", "grid", "copies", "alone", "conflict"]))
    if kind == "grid":
        X = np.round(X)
    elif kind == "copies":
        rows = rng.integers(0, 6, n)
        X, y = X[rows], y[rows]
        y[:n_classes] = np.arange(n_classes)
    elif kind == "alone":
        y[y == 0] = 1
        y[0] = 0
    elif kind == "conflict":
        X[n // 2 :] = X[: n - n // 2]
    weights = rng.choice(draw_(st.sampled_from([[1.0], [0.0, 0.5, 1.0, 30.0]])), n)
    weights[:n_classes] = 1.0
    return X, y, 10.0 ** draw_(st.integers(-6, 3)), weights


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=40)
@given(problem=hard_problems(), max_walks=st.sampled_from([0, 3, 2000]))
def test_no_proof_is_wrong_on_hard_problems(problem, max_walks):
    X, y, C, weights = problem
    clf = ManyRows("linear", C=C, max_walks=max_walks, rows_at_once=17)
    clf.fit(X, y, sample_weight=weights)
    assert_no_proof_is_wrong(clf, y, exact(X, y, C, weights)[1], weights)
    if clf.coef_.shape[0] == 1:
        X, signs, bounds = (a[weights > 0] for a in (X, 2.0 * y - 1.0, C * weights))
        Z = X - X.mean(axis=0)
        hinge = np.maximum(0.0, 1.0 - signs * clf.decision_function(X))
        primal = 0.5 * (clf.coef_**2).sum() + bounds @ hinge
        best = svc_clarabel(Z @ Z.T, signs, bounds)
        # The dual is below the optimum, whatever the oracle's accuracy.
        least = best.objective - abs(best.gap) * max(1.0, best.objective)
        assert primal - least <= (clf.duality_gap_[0] + 1e-7) * primal


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("C", [1e-9, 1e-2, 1.0, 1e6])
@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_proved_labels_are_those_of_exact_arithmetic(seed, C):
    """Few points on integers, half of the time several in one place."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, (rng.integers(3, 8), rng.integers(1, 3))).astype(float)
    if seed % 2:
        X = X[rng.integers(0, max(1, len(X) // 2), len(X))]
    y = np.where(rng.random(len(X)) < 0.5, -1, 1)
    y[:2] = -1, 1
    weights = np.ones(len(y))
    if seed % 3:
        weights[2::2] = 0.0
    clf = FeatureSVC("linear", C=C).fit(X, y, sample_weight=weights)
    truths = leave_out_exactly(X @ X.T, y.astype(float), C * weights)
    for r in np.flatnonzero(clf.loo_proved_):
        assert truths[r].sign == (1 if clf.loo_labels_[r] == y[r] else -1)


@pytest.mark.parametrize("C", [1e-5, 1.0])
def test_rows_with_weight_0_keep_the_label_of_the_classifier(make, rng, C):
    X, y = draw(rng, 100, 2)
    idle = (np.arange(100) >= 10) & (np.arange(100) < 40)
    y = np.where(idle, y, (X[:, 0] > np.median(X[~idle, 0]))).astype(int)
    y[39] = 2  # a class without weight does not count
    clf = make("linear", C=C).fit(X, y, sample_weight=~idle)
    assert clf.classes_.tolist() == [0, 1]
    # Balanced classes: if C is small, any b between -1 and 1 is optimal.
    assert (clf.loo_proved_[idle] == (C == 1.0)).all()
    np.testing.assert_array_equal(clf.loo_labels_[idle], clf.predict(X)[idle])


def test_labels_that_no_intercept_changes_are_proved_with_three_classes():
    # Classes 1 and 2 are balanced and in one place: any b between is optimal, and
    # decides their labels, but not those of class 0.
    X, y = np.repeat([[0.0], [9.0], [9.0]], 6, axis=0), np.repeat([0, 1, 2], 6)
    clf = FeatureSVC("linear", C=1.0).fit(X, y)
    np.testing.assert_array_equal(clf.loo_proved_, ~exact(X, y, 1.0)[1].ambiguous)
    np.testing.assert_array_equal(clf.loo_labels_[:6], 0)


def test_several_c_give_the_same_as_one_at_a_time(rng):
    X, y = draw(rng, 200, 3, 3, noise=1.0)
    Cs = [1.0, 1e-4, 0.01]
    clf = ManyRows("linear", C=Cs).fit(X, y)
    single = [ManyRows("linear", C=C).fit(X, y) for C in Cs]
    np.testing.assert_array_equal(clf.path_["C"], Cs)
    objectives = [other.objective_.sum() for other in single]
    np.testing.assert_allclose(clf.path_["objective"], objectives, rtol=1e-10)
    best = min(single, key=lambda other: np.mean(other.loo_labels_ != y))
    assert clf.C_ == best.C_
    assert_same_model(clf, best)


def assert_same_model(one, other):
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(other.intercept_, one.intercept_, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(other.classes_, one.classes_)
    both = one.loo_proved_ & other.loo_proved_
    assert both.mean() > 0.7
    np.testing.assert_array_equal(other.loo_labels_[both], one.loo_labels_[both])


def test_unsolved_c_is_not_chosen(monkeypatch, rng):
    X, y = draw(rng, 300, 3, noise=0.5)
    best = [ManyRows("linear", C=C).fit(X, y).objective_[0] for C in (0.1, 10.0)]
    solve = WindowProblem.solve

    def cut_short(self, start=None):
        if self.C < 1.0:
            return solve(self, start)
        return solve_svc(self.problem, start=None, max_iter=3)

    monkeypatch.setattr(WindowProblem, "solve", cut_short)
    match = "not proved at C=10: the duality gap is .*, above tol"
    with pytest.warns(ConvergenceWarning, match=match):
        clf = ManyRows("linear", C=[0.1, 10.0]).fit(X, y)
    assert clf.C_ == 0.1  # although no row is proved wrong at the other C
    assert clf.path_["n_open"][1] == 300
    away = 1.0 - np.array(best) / clf.path_["objective"]
    assert away[1] > 1e-3
    assert (clf.path_["duality_gap"] >= away - 1e-12).all()


def test_sources_threads_blocks_and_memory_change_nothing(rng, tmp_path):
    X, y = draw(rng, 200, 3, 3)
    y = np.array(["no", "yes", "perhaps"])[y]
    weights = rng.uniform(0.5, 2.0, 200)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, w=weights)
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    sources = [
        (X, y, weights),
        (tmp_path / "rows.parquet", "y", "w"),
        ([(X[:41], y[:41], weights[:41]), (X[41:], y[41:], weights[41:])], None, None),
        (sparse.csr_array(X), y.astype(object), weights),
        (dd.from_pandas(table, npartitions=3), "y", "w"),
    ]
    how = {"C": [0.01, 0.5], "n_components": 12, "gamma": 0.3, "rows_at_once": 32}
    one = ManyRows(**how).fit(*sources[0])
    threads = ManyRows(n_jobs=3, **how).fit(*sources[0])
    np.testing.assert_array_equal(threads.coef_, one.coef_)
    np.testing.assert_array_equal(threads.loo_labels_, one.loo_labels_)
    for source in sources:
        for kept in (1, 200):
            clf = ManyRows(rows_in_memory=kept, **how).fit(*source)
            assert_same_model(one, clf)
            if source is not sources[-1]:  # its blocks end elsewhere
                np.testing.assert_array_equal(clf.loo_proved_, one.loo_proved_)
            assert hasattr(clf, "feature_names_in_") == isinstance(source[1], str)
    np.save(tmp_path / "X.npy", X)
    mapped = one.decision_function(np.load(tmp_path / "X.npy", mmap_mode="r"))
    np.testing.assert_allclose(mapped, one.decision_function(X), atol=1e-13)


@pytest.mark.parametrize("share", [0.5, 0.52, 0.9])
def test_arrays_streams_and_partitions_have_the_same_bits(share):
    X, y = draw(np.random.default_rng(0), 240, 3, noise=2.0, first=share)
    X[:40] = X[40]  # equal rows, of both classes
    how = {"C": [1e-4, 0.01, 0.5], "n_components": 12, "rows_at_once": 40}
    one = ManyRows(**how).fit(X, y)
    parts = da.from_array(X, chunks=(40, 3)), da.from_array(y, chunks=40)
    blocks = [(X[i : i + 30], y[i : i + 30]) for i in range(0, 240, 30)]
    for source in ((X, y), (blocks, None), parts):
        for kept in (1, 240):
            clf = ManyRows(rows_in_memory=kept, **how).fit(*source)
            np.testing.assert_array_equal(clf.coef_, one.coef_)
            np.testing.assert_array_equal(clf.intercept_, one.intercept_)
            np.testing.assert_array_equal(clf.loo_labels_, one.loo_labels_)
            np.testing.assert_array_equal(clf.loo_proved_, one.loo_proved_)
            for name, values in one.path_.items():
                np.testing.assert_array_equal(clf.path_[name], values)


OWN = [FunctionTransformer(), Nystroem(n_components=9, random_state=0)]


@pytest.mark.parametrize("features", ["fourier", "nystroem", "linear", *OWN])
def test_features_and_model_files(tmp_path, rng, features):
    """A transformer is cloned and may return its input, which is not changed."""
    X, y = draw(rng, 100, 3)
    before, path = X.copy(), tmp_path / "model.skops"
    clf = FeatureSVC(features, n_components=20, C=[0.1, 1.0]).fit(X, y)
    np.testing.assert_array_equal(X, before)
    assert not hasattr(features, "n_features_in_")
    Z = X if clf.transformer_ is None else clf.transformer_.transform(X)
    f = Z @ clf.coef_[0] + clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(X), f)
    if isinstance(features, FunctionTransformer):
        return  # model files do not hold transformers
    lo.save_model(clf, path)
    again = lo.load_model(path)
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    assert again.loo_error_ == clf.loo_error_
    assert lo.read_model_card(path).loo_error == clf.loo_error_.low
    clf.loo_error_ = lo.ProvedError(0.1, 0.2)
    lo.save_model(clf, path)
    assert lo.read_model_card(path).loo_error is None


X, Y = draw(np.random.default_rng(0), 120, 4)
LARGE = np.where(np.arange(40)[:, None] < 20, 1e200 * X[:40], X[:40])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("parameters", "data", "match"),
    [
        ({"features": "fourrier"}, (X, Y), "be 'fourier', .* mean 'fourier'"),
        ({"features": 3}, (X, Y), "a transformer with fit and transform"),
        ({"C": []}, (X, Y), "C is empty"),
        ({"gamma": -1.0}, (X, Y), "gamma must be a finite number > 0"),
        ({"max_walks": -1}, (X, Y), "max_walks must be at least 0"),
        ({"tol": 0}, (X, Y), "tol must be"),
        ({"class_weight": {7: 1.0}}, (X, Y), "class_weight has 7, which is not"),
        ({"C": 3e300}, (X, Y), r"C=3e\+300 is too large for rows with a total weight"),
        # Rounding errors would dominate.
        ({"features": "linear", "C": 1e12}, (X, Y), "C=.* for features .* lower C"),
        ({}, (X, np.zeros(120, dtype=int)), r"one class.*\[0\]"),
        ({}, (X, Y, (Y == 1).astype(float)), "two classes with positive weight"),
        ({}, (X, np.arange(120)), "y has 120 distinct values in 120 rows, 120 of"),
        ({}, (LARGE, Y[:40]), "gamma='scale' needs the variance of X"),
    ],
)
def test_invalid_arguments_are_refused(parameters, data, match):
    with pytest.raises((TypeError, ValueError), match=match):
        FeatureSVC(**parameters, rows_at_once=10).fit(*data)


@pytest.mark.parametrize(
    ("target", "match"),
    [
        (np.arange(120.0), "y has 120 distinct values in 120 rows"),
        (X[:, 0], r"y has numbers such as -?\d.* It looks like a regression target"),
    ],
)
def test_numeric_targets_of_files_are_refused(tmp_path, target, match):
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"a": X[:, 0], "b": X[:, 1], "y": target}
    parquet.write_table(pytest.importorskip("pyarrow").table(columns), tmp_path / "t")
    with pytest.raises(ValueError, match=match):
        FeatureSVC(rows_at_once=10).fit(tmp_path / "t", "y")


def test_leave_one_out_points_to_the_attributes():
    for estimator in (FeatureSVC(), make_pipeline(StandardScaler(), FeatureSVC())):
        with pytest.raises(TypeError, match=r"FeatureSVC .*loo_error_, loo_labels_"):
            lo.leave_one_out(estimator, X, Y)
