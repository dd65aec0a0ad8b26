# SPDX-License-Identifier: BSD-3-Clause
"""FeatureSVC: the exact optimum and leave-one-out labels, however many rows."""

import warnings
from dataclasses import replace
from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.binary import svc_clarabel
from oracles.rational import leave_out_exactly
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import scale

import leaveout as lo
import leaveout.large._feature_svc as estimator
from leaveout.engine._solve import solve_svc
from leaveout.large._solve import Sizes, WindowProblem

# Labels of values closer to zero than this are left to rounding.
CLOSE_CALL = 1e-6
FeatureSVC = partial(lo.FeatureSVC, random_state=0)
SMALL = Sizes(
    few_rows=4, few_per_component=1, largest_sample=64, smallest_sample=4,
    sample_factor=3, smallest_window=24,
)  # fmt: skip


class SmallSizes(lo.FeatureSVC):
    """Few rows take the way of millions: samples, Newton, windows, walks in windows."""

    _sizes = SMALL


ManyRows = partial(SmallSizes, random_state=0)


@pytest.fixture(params=[FeatureSVC, ManyRows], ids=["few rows", "many rows"])
def make(request):
    """Both ways of the solver."""
    return request.param


def draw(rng, n, p, n_classes=2, noise=0.7, first=0.5):
    """Rows whose classes follow the first column; ``first`` is the share of class 0."""
    X = rng.normal(size=(n, p))
    score = X[:, 0] + noise * rng.normal(size=n)
    shares = first + (1.0 - first) * np.arange(n_classes - 1) / max(n_classes - 1, 1)
    y = np.searchsorted(np.quantile(score, shares), score)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def exact(X, y, C, sample_weight=None, class_weight=None):
    """Fit and leave out by the exact engine, on rows around their mean."""
    svc = lo.SVC(kernel="linear", C=C, class_weight=class_weight)
    centred = X - X.mean(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lo.SingletonClassWarning)
        loo = lo.leave_one_out(
            svc, centred, y, sample_weight=sample_weight,
            score_sample_weight=sample_weight,
        )  # fmt: skip
    return svc.fit(centred, y, sample_weight), loo


def assert_no_proof_is_wrong(clf, y, loo, weights=None):
    """Compare what FeatureSVC proves with a LooResult, which walks every row."""
    weights = np.ones(len(y)) if weights is None else weights
    decided = ~loo.ambiguous & (np.abs(loo.machine_values).min(axis=1) > CLOSE_CALL)
    proved = clf.loo_proved_ & decided
    np.testing.assert_array_equal(clf.loo_labels_[proved], loo.predictions[proved])
    wrong = clf.loo_labels_ != y
    low = np.average(wrong & clf.loo_proved_, weights=weights)
    high = np.average(wrong | ~clf.loo_proved_, weights=weights)
    np.testing.assert_allclose(clf.loo_error_, (low, high), atol=1e-12)
    unclear = np.average(~decided, weights=weights)
    assert low - unclear - 1e-12 <= loo.error <= high + unclear + 1e-12


def refit_values(Z, signs, boxes, rows):
    """Values of some rows without them, by interior points: intervals (low, high)."""
    values = []
    for r in rows:
        kept = np.arange(len(signs)) != r
        optimum = svc_clarabel(Z[kept] @ Z[kept].T, signs[kept], boxes[kept])
        g = Z[r] @ (Z[kept].T @ optimum.beta)
        values.append((g + optimum.b_low, g + optimum.b_high))
    return np.array(values)


def compare_with_exact(make, X, y, C, weights=None, class_weight=None, **parameters):
    clf = make("linear", C=C, class_weight=class_weight, **parameters)
    clf.fit(X, y, sample_weight=weights)
    svc, loo = exact(X, y, C, weights, class_weight)
    centre = X.mean(axis=0)
    np.testing.assert_allclose(clf.coef_, svc.coef_, atol=1e-7)
    intercept = svc.intercept_ - svc.coef_ @ centre
    np.testing.assert_allclose(clf.intercept_, intercept, atol=1e-6)
    np.testing.assert_array_equal(clf.predict(X), svc.predict(X - centre))
    assert clf.duality_gap_.max() < 1e-9
    assert_no_proof_is_wrong(clf, y, loo, weights)
    return clf, loo


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_linear_features_give_the_exact_svm(make, rng, n_classes, C):
    X, y = draw(rng, 150, 3, n_classes)
    compare_with_exact(make, X, y, C)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
def test_weights_of_rows_and_classes(make, rng, class_weight):
    X, y = draw(rng, 120, 2, first=0.8)
    weights = rng.integers(0, 3, 120) * 10 ** rng.uniform(-1, 1, 120)
    compare_with_exact(make, X, y, 0.1, weights, class_weight)


def test_few_rows_are_all_proved_to_1e_6(rng):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    clf, loo = compare_with_exact(FeatureSVC, X, y, 0.5)
    assert clf.loo_error_.proved
    assert clf.loo_error_.low == pytest.approx(loo.error, abs=1e-12)
    np.testing.assert_array_equal(clf.loo_labels_, loo.predictions)


def test_linear_features_agree_with_libsvm(rng):
    X, y = draw(rng, 200, 3)
    clf = ManyRows("linear", C=0.3).fit(X, y)
    svc = sklearn.svm.SVC(kernel="linear", C=0.3, tol=1e-10).fit(X, y)
    new = rng.normal(size=(50, 3))
    np.testing.assert_allclose(
        clf.decision_function(new), svc.decision_function(new), atol=1e-6
    )
    assert clf.objective_[0] == pytest.approx(
        0.5 * (svc.coef_**2).sum()
        + 0.3 * np.maximum(0, 1 - (2 * y - 1) * svc.decision_function(X)).sum(),
        rel=1e-7,  # LIBSVM's kernel values have seven digits
    )


def test_full_rank_nystroem_is_the_rbf_machine(make, rng):
    X, y = load_iris(return_X_y=True)
    X, first = np.unique(scale(X), axis=0, return_index=True)
    y = np.array(["setosa", "versicolor", "virginica"])[y[first]]
    n = len(y)
    clf = make("nystroem", n_components=n, gamma=0.5, C=2.0, random_state=0)
    # Let the sample hold all rows, so that there are landmarks enough.
    clf._sizes = replace(clf._sizes, largest_sample=3 * n)
    clf.fit(X, y)
    svc = lo.SVC(gamma=0.5, C=2.0)
    loo = lo.leave_one_out(svc, X, y)
    svc.fit(X, y)
    np.testing.assert_allclose(
        clf.decision_function(X), svc.decision_function(X), atol=1e-6
    )
    np.testing.assert_array_equal(clf.predict(X), svc.predict(X))
    assert_no_proof_is_wrong(clf, y, loo)


def test_left_out_labels_by_refits_with_interior_points(rng):
    X, y = draw(rng, 80, 2, noise=1.0)
    clf = ManyRows("linear", C=0.2).fit(X, y)
    Z, signs = X - X.mean(axis=0), 2.0 * y - 1.0
    values = refit_values(Z, signs, np.full(80, 0.2), range(80))
    sure = clf.loo_proved_ & (
        (values > CLOSE_CALL).all(axis=1) | (values < -CLOSE_CALL).all(axis=1)
    )
    np.testing.assert_array_equal(
        clf.loo_labels_[sure], (values.mean(axis=1) > 0)[sure]
    )
    assert sure.sum() > 60
    optimum = svc_clarabel(Z @ Z.T, signs, np.full(80, 0.2))
    np.testing.assert_allclose(clf.decision_function(X), optimum.f, atol=1e-7)


@st.composite
def hard_problems(draw_):
    """Draw what is not smooth: grids, copies, conflicts, weights, lonely rows."""
    rng = np.random.default_rng(draw_(st.integers(0, 2**32 - 1)))
    n, p = draw_(st.integers(12, 90)), draw_(st.integers(1, 4))
    n_classes = draw_(st.sampled_from([2, 2, 3]))
    X, y = draw(
        rng,
        n,
        p,
        n_classes,
        draw_(st.sampled_from([0.0, 0.5, 2.0])),
        draw_(st.sampled_from([0.1, 0.5])),
    )
    kind = draw_(
        st.sampled_from(["plain", "grid", "copies", "constant", "alone", "conflict"])
    )
    if kind == "grid":
        X = np.round(X)
    elif kind == "copies":
        rows = rng.integers(0, 6, n)
        X, y = X[rows], y[rows]
        y[:n_classes] = np.arange(n_classes)
    elif kind == "constant":
        X[:, -1] = 1.0
    elif kind == "alone":
        y[y == 0] = 1
        y[0] = 0
    elif kind == "conflict":
        X[n // 2 :] = X[: n - n // 2]
    weights = None
    if draw_(st.booleans()):
        weights = rng.choice([0.0, 0.5, 1.0, 30.0], n)
        weights[:n_classes] = 1.0
    C = 10.0 ** draw_(st.integers(-6, 3))
    return X, y, C, weights


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=40)
@given(problem=hard_problems(), max_walks=st.sampled_from([0, 3, 2000]))
def test_no_proof_is_wrong_on_hard_problems(problem, max_walks):
    X, y, C, weights = problem
    clf = ManyRows("linear", C=C, max_walks=max_walks, rows_at_once=17)
    clf.fit(X, y, sample_weight=weights)
    _, loo = exact(X, y, C, weights)
    assert_no_proof_is_wrong(clf, y, loo, weights)
    signs = 2.0 * y - 1.0
    if clf.coef_.shape[0] == 1:
        boxes = C * (np.ones(len(y)) if weights is None else weights)
        hinge = np.maximum(0.0, 1.0 - signs * clf.decision_function(X))
        primal = 0.5 * (clf.coef_**2).sum() + boxes @ hinge
        best = exact_primal(X, signs, boxes)
        assert primal - best <= (clf.duality_gap_[0] + 1e-7) * primal


def exact_primal(X, signs, boxes):
    """Smallest primal value, by an interior point."""
    kept = boxes > 0
    Z = X[kept] - X[kept].mean(axis=0)
    optimum = svc_clarabel(Z @ Z.T, signs[kept], boxes[kept])
    # The dual is below the optimum, whatever the oracle's accuracy.
    return optimum.objective - abs(optimum.gap) * max(1.0, optimum.objective)


def test_without_free_support_vector_b_is_the_middle(make, rng):
    X, y = draw(rng, 60, 2, noise=0.2)
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)  # as many of each
    clf, loo = compare_with_exact(make, X, y, 1e-5)
    assert np.abs(clf.coef_).max() < 1e-2
    # Without a row of one class the other is the majority, and takes everything.
    assert loo.error == 1.0


def test_equal_rows_throughout_are_the_weighted_majority():
    y = np.repeat([0, 1], [30, 50])
    clf = ManyRows("linear", C=2.0).fit(np.ones((80, 2)), y)
    assert (clf.predict(np.ones((1, 2))) == 1).all()
    assert clf.objective_[0] == pytest.approx(2.0 * 30 * 2.0)  # hinge 2 for class 0
    assert clf.duality_gap_[0] < 1e-12


def test_a_row_alone_in_its_class_is_wrong_without_it(make, rng):
    X, y = draw(rng, 90, 2)
    y[:] = y % 2 + 1
    y[5] = 0
    clf = make("linear", C=1.0).fit(X, y)
    assert clf.loo_proved_[5]
    assert clf.loo_labels_[5] != 0


def test_others_of_a_class_may_be_outside_the_window(rng):
    # One heavy positive row among the negative ones; the other positive rows are far
    # beyond the margin, outside of the window: it is not alone.
    X = np.vstack([rng.normal(size=(200, 1)), [[2.5]], rng.uniform(60, 90, (40, 1))])
    y = np.repeat([0, 1], [200, 41])
    weights = np.ones(241)
    weights[200] = 300.0
    compare_with_exact(ManyRows, X, y, 1e-2, weights)


@pytest.mark.parametrize("C", [1e-5, 1.0])
def test_rows_without_weight_keep_the_label_of_the_machine(make, rng, C):
    X, y = draw(rng, 100, 2)
    weights = np.ones(100)
    weights[10:40] = 0.0
    y = np.where(weights > 0, (X[:, 0] > np.median(X[weights > 0, 0])), y).astype(int)
    clf = make("linear", C=C).fit(X, y, sample_weight=weights)
    idle = weights == 0
    # As many of each class: if C is small, any b between -1 and 1 is optimal.
    assert (clf.loo_proved_[idle] == (C == 1.0)).all()
    np.testing.assert_array_equal(clf.loo_labels_[idle], clf.predict(X)[idle])


def test_what_no_intercept_turns_is_proved_among_three_classes():
    # Classes 1 and 2 are on one place, as many of each: any b between is optimal, and
    # decides their labels, but none of class 0.
    X = np.repeat([[0.0], [9.0], [9.0]], 6, axis=0)
    y = np.repeat([0, 1, 2], 6)
    clf = FeatureSVC("linear", C=1.0).fit(X, y)
    _, loo = exact(X, y, 1.0)
    np.testing.assert_array_equal(clf.loo_proved_, ~loo.ambiguous)
    np.testing.assert_array_equal(clf.loo_labels_[:6], 0)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_any_scale_of_the_columns(make, rng, factor):
    X, y = draw(rng, 120, 3)
    C = 0.3 / factor**2  # the same machine
    clf = make("linear", C=C).fit(factor * X, y)
    same = make("linear", C=0.3).fit(X, y)
    np.testing.assert_allclose(factor * clf.coef_, same.coef_, atol=1e-7)
    np.testing.assert_allclose(clf.intercept_, same.intercept_, atol=1e-7)
    both = clf.loo_proved_ & same.loo_proved_
    np.testing.assert_array_equal(clf.loo_labels_[both], same.loo_labels_[both])
    assert both.sum() > 60


@pytest.mark.parametrize("C", [1e-10, 1.0, 1e6])
def test_any_penalty(make, rng, C):
    X, y = draw(rng, 150, 2, noise=0.3)
    clf = make("linear", C=C).fit(X, y)
    assert clf.duality_gap_.max() <= 1e-6
    assert np.isfinite(clf.coef_).all()
    svc, loo = exact(X, y, C)
    np.testing.assert_allclose(clf.coef_, svc.coef_, rtol=1e-5, atol=1e-9)
    assert_no_proof_is_wrong(clf, y, loo)


def test_several_penalties_are_as_one_at_a_time(rng):
    X, y = draw(rng, 200, 3, 3, noise=1.0)
    Cs = [1.0, 1e-4, 0.01]
    clf = ManyRows("linear", C=Cs, random_state=1).fit(X, y)
    single = [ManyRows("linear", C=C, random_state=1).fit(X, y) for C in Cs]
    np.testing.assert_array_equal(clf.path_["C"], Cs)
    for k, other in enumerate(single):
        # Windows grow with the hardest of the problems: proofs may be fewer alone.
        assert clf.path_["loo_low"][k] <= other.loo_error_.high + 1e-12
        assert clf.path_["loo_high"][k] >= other.loo_error_.low - 1e-12
        assert clf.path_["objective"][k] == pytest.approx(
            other.objective_.sum(), rel=1e-10
        )
    errors = [np.mean(other.loo_labels_ != y) for other in single]
    best = single[int(np.argmin(errors))]
    assert clf.C_ == best.C_
    np.testing.assert_allclose(clf.coef_, best.coef_, atol=1e-9)
    both = clf.loo_proved_ & best.loo_proved_
    np.testing.assert_array_equal(clf.loo_labels_[both], best.loo_labels_[both])


def test_a_penalty_that_was_not_solved_is_not_the_best(monkeypatch, rng):
    X, y = draw(rng, 300, 3, noise=0.5)
    solve = estimator.solve_linear

    def half(rows, machines, **options):
        optima = solve(rows, machines, **options)
        return [
            optimum
            if C < 1.0
            else type(optimum)(optimum.window, optimum.solution, False, optimum.radius)
            for optimum, C in zip(optima, machines.C, strict=True)
        ]

    monkeypatch.setattr(estimator, "solve_linear", half)
    clf = ManyRows("linear", C=[0.1, 1e3], random_state=0).fit(X, y)
    assert clf.path_["n_open"][1] == 300
    assert clf.path_["loo_low"][1] == 0.0
    estimates = []
    for C in (0.1, 1e3):
        alone = ManyRows("linear", C=C, random_state=0).fit(X, y)
        estimates.append(np.mean(alone.loo_labels_ != y))
    assert clf.C_ == (0.1, 1e3)[int(np.argmin(estimates))]


def test_the_gap_of_a_window_that_was_not_solved_counts(monkeypatch, rng):
    X, y = draw(rng, 120, 3)
    best = ManyRows("linear", C=1.0).fit(X, y).objective_[0]

    def cut_short(self, start=None):
        return solve_svc(self.problem, start=None, max_iter=3)

    monkeypatch.setattr(WindowProblem, "solve", cut_short)
    with pytest.warns(ConvergenceWarning, match="duality gap is"):
        clf = ManyRows("linear", C=1.0).fit(X, y)
    away = (clf.objective_[0] - best) / clf.objective_[0]
    assert away > 1e-3
    assert clf.duality_gap_[0] >= away
    assert not clf.loo_proved_.any()


@pytest.mark.parametrize("max_walks", [0, 7])
def test_few_walks_leave_a_wider_interval(rng, max_walks):
    X, y = draw(rng, 200, 2, noise=1.0)
    clf, _ = compare_with_exact(ManyRows, X, y, 0.05, max_walks=max_walks)
    full = ManyRows("linear", C=0.05).fit(X, y)
    assert (
        clf.loo_error_.low
        <= full.loo_error_.low
        <= full.loo_error_.high
        <= clf.loo_error_.high
    )
    assert clf.path_["n_open"][0] == np.sum(~clf.loo_proved_)


def test_threads_blocks_and_memory_change_nothing(rng):
    X, y = draw(rng, 300, 3, 3)
    settings_ = {"C": [0.01, 0.5], "n_components": 12, "gamma": 0.3}
    one = ManyRows(rows_at_once=32, **settings_).fit(X, y)
    threads = ManyRows(rows_at_once=32, n_jobs=3, **settings_).fit(X, y)
    np.testing.assert_array_equal(threads.coef_, one.coef_)
    np.testing.assert_array_equal(threads.intercept_, one.intercept_)
    np.testing.assert_array_equal(threads.loo_labels_, one.loo_labels_)
    for other in ({"rows_at_once": 7}, {"rows_at_once": 32, "rows_in_memory": 1}):
        clf = ManyRows(**other, **settings_).fit(X, y)
        np.testing.assert_allclose(clf.coef_, one.coef_, atol=1e-10)
        np.testing.assert_allclose(clf.intercept_, one.intercept_, atol=1e-10)
        both = clf.loo_proved_ & one.loo_proved_
        np.testing.assert_array_equal(clf.loo_labels_[both], one.loo_labels_[both])
        np.testing.assert_allclose(clf.path_["objective"], one.path_["objective"])


def test_every_source_gives_the_same(rng, tmp_path):
    X, y = draw(rng, 200, 3)
    y = np.array(["no", "yes"])[y]
    weights = rng.uniform(0.5, 2.0, 200)
    one = ManyRows("linear", C=0.1).fit(X, y, sample_weight=weights)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, w=weights)
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    frame = dd.from_pandas(table, npartitions=3)
    cuts = [slice(i, i + 41) for i in range(0, len(y), 41)]
    sources = [
        (tmp_path / "rows.parquet", "y", "w"),
        (lambda: ((X[c], y[c], weights[c]) for c in cuts), None, None),
        (sparse.csr_array(X), y.astype(object), weights),
        (frame, "y", "w"),
    ]
    for source, labels, weight in sources:
        for kept in (1, 200):
            clf = ManyRows("linear", C=0.1, rows_in_memory=kept)
            clf.fit(source, labels, sample_weight=weight)
            np.testing.assert_allclose(clf.coef_, one.coef_, atol=1e-10)
            np.testing.assert_array_equal(clf.classes_, one.classes_)
            same = clf.loo_proved_ & one.loo_proved_
            assert same.sum() > 140
            if source is not frame:  # whose blocks end elsewhere: windows may differ
                np.testing.assert_array_equal(clf.loo_proved_, one.loo_proved_)
            np.testing.assert_array_equal(clf.loo_labels_[same], one.loo_labels_[same])
            assert clf.n_features_in_ == 3
            assert hasattr(clf, "feature_names_in_") == isinstance(labels, str)


def test_predict_from_a_memory_map(rng, tmp_path):
    X, y = draw(rng, 60, 2)
    clf = FeatureSVC("linear", rows_at_once=7).fit(X, y)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        clf.decision_function(mapped), clf.decision_function(X)
    )


def test_a_transformer_of_ones_own_is_cloned(rng):
    X, y = draw(rng, 100, 3)
    given_ = Nystroem(gamma=0.2, n_components=20, random_state=0)
    clf = FeatureSVC(given_).fit(X, y)
    assert not hasattr(given_, "components_")
    np.testing.assert_allclose(
        clf.decision_function(X),
        clf.transformer_.transform(X) @ clf.coef_[0] + clf.intercept_[0],
    )


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0])
def test_few_rows_that_come_again_and_again(rng, C):
    # 14 rows, 500 times each: no window of rows, only one of different rows, holds all
    # that are on the margin.
    places, times = rng.normal(size=(14, 3)), 500
    labels = np.arange(14) % 2
    order = rng.permutation(np.repeat(np.arange(14), times))
    clf = FeatureSVC("linear", C=C, rows_at_once=512).fit(places[order], labels[order])
    signs, boxes = 2.0 * labels - 1.0, np.full(14, C * times)
    Z = places - places.mean(axis=0)
    optimum = svc_clarabel(Z @ Z.T, signs, boxes)
    np.testing.assert_allclose(clf.decision_function(places), optimum.f, atol=1e-6)
    assert clf.duality_gap_[0] < 1e-9
    for place in range(14):
        left = boxes.copy()
        left[place] -= C
        without = svc_clarabel(Z @ Z.T, signs, left)
        ends = without.g[place] + np.array([without.b_low, without.b_high])
        if (ends > CLOSE_CALL).all() or (ends < -CLOSE_CALL).all():
            copies = (order == place) & clf.loo_proved_
            assert (clf.loo_labels_[copies] == (ends[0] > 0)).all()
    if C == 1e-4:
        assert clf.loo_error_.proved


def _conflicts(seed):
    """Few points on whole numbers, half of the time several on one place."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, (rng.integers(3, 8), rng.integers(1, 3))).astype(float)
    if seed % 2:
        X = X[rng.integers(0, max(1, len(X) // 2), len(X))]
    y = np.where(rng.random(len(X)) < 0.5, -1, 1)
    y[:2] = -1, 1
    return X, y


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [1e-9, 1e-2, 1e6])
@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_proved_labels_are_those_of_exact_arithmetic(seed, C):
    X, y = _conflicts(seed)
    clf = FeatureSVC("linear", C=C).fit(X, y)
    truths = leave_out_exactly(X @ X.T, y.astype(float), np.full(len(y), C))
    for r in np.flatnonzero(clf.loo_proved_):
        assert truths[r].sign == (1 if clf.loo_labels_[r] == y[r] else -1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [1e-3, 1.0])
@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
def test_no_optimal_intercept_turns_proved_labels_of_rows_not_trained_on(seed, C):
    X, y = _conflicts(seed)
    weights = np.ones(len(y))
    weights[2::2] = 0.0
    clf = FeatureSVC("linear", C=C).fit(X, y, sample_weight=weights)
    truths = leave_out_exactly(X @ X.T, y.astype(float), C * weights)
    for r in np.flatnonzero(clf.loo_proved_):
        assert truths[r].sign == (1 if clf.loo_labels_[r] == y[r] else -1)


@pytest.mark.parametrize(("C", "scale"), [(1e12, 1.0), (1.0, 1e40), (1e-2, 1e135)])
def test_what_rounding_would_decide_is_refused(C, scale):
    X, y = _conflicts(3)
    with pytest.raises(ValueError, match=r"C=.* too large for features .* lower C"):
        FeatureSVC("linear", C=C).fit(scale * X, y)


@pytest.mark.parametrize("n", [6, 3000])
def test_losses_that_overflow_are_refused(n):
    """Rows that are all zero have no length that C would be too large for."""
    with pytest.raises(ValueError, match=r"C=3e\+300 is too large for rows of weight"):
        FeatureSVC("linear", C=3e300).fit(np.zeros((n, 1)), np.arange(n) % 2)
    clf = FeatureSVC("linear", C=1e150).fit(np.zeros((n, 1)), np.arange(n) % 2)
    assert np.isfinite([*clf.coef_[0], *clf.intercept_, *clf.duality_gap_]).all()
