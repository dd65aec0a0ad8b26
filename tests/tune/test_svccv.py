# SPDX-License-Identifier: BSD-3-Clause
"""SVCCV against scikit-learn: grid search, refits and calibration by LeaveOneOut."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from oracles.refits import honest_refits
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.metrics import f1_score, log_loss
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.preprocessing import scale

import leaveout as lo
from leaveout.tune._choice import default_gammas, kernel_scale


@pytest.fixture(scope="module")
def two():
    """Two classes that overlap: every fifth row of breast cancer, two features."""
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[::7, [0, 5]], np.array(["malignant", "benign"])[y[::7]]


@pytest.fixture(scope="module")
def three():
    """Every third row of iris, two features."""
    X, y = load_iris(return_X_y=True)
    return scale(X)[::3, :2], y[::3]


@pytest.mark.parametrize("data", ["two", "three"])
def test_chooses_what_grid_search_by_refits_chooses(data, request):
    X, y = request.getfixturevalue(data)
    clf = lo.SVCCV().fit(X, y)
    truth = GridSearchCV(
        sklearn.svm.SVC(tol=1e-6),
        {"C": sorted(set(clf.cv_results_["param_C"])), "gamma": default_gammas(X)},
        cv=LeaveOneOut(),
    ).fit(X, y)
    ours = {(p["C"], p["gamma"]): k for k, p in enumerate(clf.cv_results_["params"])}
    for params, score in zip(
        truth.cv_results_["params"], truth.cv_results_["mean_test_score"], strict=True
    ):
        k = ours[params["C"], params["gamma"]]
        ambiguous = clf.cv_results_["n_ambiguous"][k]
        mine = clf.cv_results_["mean_test_score"][k]
        assert abs(mine - score) * len(y) <= ambiguous + 1e-9
    assert len(ours) == 30
    assert clf.best_score_ == pytest.approx(truth.best_score_)
    assert clf.loo_error_ == pytest.approx(1 - truth.best_score_)
    best = np.flatnonzero(truth.cv_results_["rank_test_score"] == 1)
    cells = [truth.cv_results_["params"][k] for k in best]
    assert (clf.C_, clf.gamma_) == min((p["C"], p["gamma"]) for p in cells)


@pytest.mark.parametrize("data", ["two", "three"])
def test_left_out_values_are_those_of_refits(data, request):
    X, y = request.getfixturevalue(data)
    clf = lo.SVCCV(Cs=[0.5, 5.0], gammas=[0.2]).fit(X, y)
    svc = sklearn.svm.SVC(C=clf.C_, gamma=clf.gamma_, tol=1e-8)
    predictions, values = honest_refits(svc, X, y)
    np.testing.assert_allclose(clf.loo_decision_values_, values, atol=1e-5)
    assert clf.loo_error_ == np.mean(predictions != y)
    n = len(y)
    expected = np.sqrt(clf.loo_error_ * (1 - clf.loo_error_) / n)
    assert clf.loo_error_std_ == pytest.approx(expected)


@pytest.mark.parametrize("data", ["two", "three"])
def test_predicts_as_an_svc_with_the_chosen_parameters(data, request):
    X, y = request.getfixturevalue(data)
    clf = lo.SVCCV().fit(X, y)
    plain = sklearn.svm.SVC(C=clf.C_, gamma=clf.gamma_, tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), plain.predict(X))
    np.testing.assert_allclose(
        clf.decision_function(X), plain.decision_function(X), atol=1e-4
    )
    assert clf.score(X, y) == plain.score(X, y)
    np.testing.assert_array_equal(clf.classes_, plain.classes_)


@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_are_those_of_calibration_by_refits(two, weighted, rng):
    """scikit-learn fits the same sigmoid, by another optimiser, to n refits."""
    X, y = two
    weights = rng.uniform(0.5, 2.0, size=len(y)) if weighted else None
    clf = lo.SVCCV(Cs=[1.0], gammas=[0.2]).fit(X, y, weights)
    truth = CalibratedClassifierCV(
        sklearn.svm.SVC(C=1.0, gamma=0.2, tol=1e-8),
        cv=list(LeaveOneOut().split(X)),
        ensemble=False,
    ).fit(X, y, weights)
    p = clf.predict_proba(X)
    np.testing.assert_allclose(p, truth.predict_proba(X), atol=2e-4)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(clf.predict_log_proba(X), np.log(p))


def test_pairs_of_three_classes_are_calibrated_on_their_own_samples(three):
    X, y = three
    clf = lo.SVCCV(Cs=[1.0], gammas=[0.5]).fit(X, y)
    for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        inside = (y == i) | (y == j)
        pair = lo.SVCCV(Cs=[1.0], gammas=[0.5]).fit(X[inside], y[inside])
        # Two classes: positive means j; three classes: positive means i.
        assert clf.platt_slope_[k] == pytest.approx(pair.platt_slope_[0], rel=1e-6)
        assert clf.platt_offset_[k] == pytest.approx(-pair.platt_offset_[0], rel=1e-6)
    p = clf.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(clf.classes_[p.argmax(axis=1)] == clf.predict(X)) > 0.9
    assert log_loss(y, p) < 0.7 * np.log(3)


def test_one_standard_error(two):
    X, y = two
    plain, smooth = lo.SVCCV().fit(X, y), lo.SVCCV(one_se=True).fit(X, y)
    table = smooth.cv_results_
    near = table["mean_test_score"] >= plain.best_score_ - plain.loo_error_std_
    near &= ~np.asarray(table["anti_learning"])
    cells = [p for p, ok in zip(table["params"], near, strict=True) if ok]
    chosen = min((p["C"], p["gamma"]) for p in cells)
    assert (smooth.C_, smooth.gamma_) == chosen
    assert smooth.C_ < plain.C_ or smooth.gamma_ < plain.gamma_
    assert smooth.best_score_ == table["mean_test_score"][smooth.best_index_]


def test_other_score_decides(two):
    X, y = two
    clf = lo.SVCCV(
        scoring="f1_macro", Cs=np.logspace(-1, 2, 4), gammas=np.logspace(-2, 1, 4)
    ).fit(X, y)
    for params, score in zip(
        clf.cv_results_["params"], clf.cv_results_["mean_test_score"], strict=True
    ):
        res = lo.leave_one_out(lo.SVC(**params), X, y)
        assert score == pytest.approx(f1_score(y, res.predictions, average="macro"))
        assert score <= clf.best_score_


def test_anti_learning_cells_are_passed_over():
    X, y = make_blobs([30, 10], centers=[[0, 0], [1.5, 1.5]], random_state=0)
    clf = lo.SVCCV(Cs=[1e-4, 1e-3, 100.0], gammas=[0.1]).fit(X, y)
    np.testing.assert_array_equal(clf.cv_results_["anti_learning"], [True, True, False])
    np.testing.assert_array_equal(clf.cv_results_["rank_test_score"], [2, 2, 1])
    assert clf.C_ == 100.0
    smooth = lo.SVCCV(Cs=[1e-4, 1e-3, 100.0], gammas=[0.1], one_se=True).fit(X, y)
    assert smooth.C_ == 100.0


@pytest.mark.filterwarnings("ignore::leaveout.CalibrationWarning")
def test_anti_learning_is_never_chosen_silently():
    X, y = make_blobs([20, 20], centers=[[0, 0], [3, 3]], random_state=0)
    for one_se in (False, True):
        clf = lo.SVCCV(Cs=[1e-4, 1e-3], gammas=[0.1], one_se=one_se)
        with pytest.warns(lo.AntiLearningWarning, match="Take a larger C"):
            clf.fit(X, y)
        assert clf.loo_error_ == 1.0
        # Left-out values are the wrong way round: no probability is built on them.
        np.testing.assert_allclose(clf.predict_proba(X), 0.5)


@pytest.mark.filterwarnings("ignore::leaveout.CalibrationWarning")
def test_passing_over_a_better_score_is_said(rng):
    """Noise with a rare class: always the frequent one would be best, and says it."""
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 5 == 0
    with pytest.warns(lo.AntiLearningWarning, match="passed over for one with"):
        clf = lo.SVCCV(Cs=[1e-4, 1e3], gammas=[1.0]).fit(X, y)
    assert clf.C_ == 1e3


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_is_never_anti_calibrated(n_classes):
    """Over seeds: probabilities never fall with f, and are near the shares."""
    fallbacks = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((45, 4)), rng.permutation(np.arange(45) % n_classes)
        clf = lo.SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.05, 0.25]).fit(X, y)
        assert (clf.platt_slope_ >= 0).all()
        fallbacks += int((clf.platt_slope_ == 0).sum())
        new = rng.standard_normal((200, 4))
        p = clf.predict_proba(new)
        if n_classes == 2:
            order = np.argsort(clf.decision_function(new))
            assert (np.diff(p[order, 1]) >= -1e-12).all()
        # In expectation over the labels, which have nothing to do with X.
        expected_loss = -np.log(p).mean()
        assert expected_loss < 1.35 * np.log(n_classes)
    assert fallbacks > 0


def test_fallback_is_said():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 20)), np.arange(40) % 4 == 0
    with pytest.warns(lo.CalibrationWarning, match="shares of the classes"):
        clf = lo.SVCCV(Cs=[100.0], gammas=[0.05]).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), np.tile([0.75, 0.25], (40, 1)))


def test_rows_without_weight_take_no_part(two):
    X, y = two
    kept = np.arange(len(y)) % 4 > 0
    weighted = lo.SVCCV().fit(X, y, kept.astype(float))
    alone = lo.SVCCV().fit(X[kept], y[kept])
    assert weighted.best_params_ == alone.best_params_
    assert weighted.loo_error_ == pytest.approx(alone.loo_error_)
    np.testing.assert_allclose(weighted.predict_proba(X), alone.predict_proba(X))


def test_weights_with_metadata_routing(two):
    X, y = two
    weights = np.linspace(0.5, 2.0, len(y))
    plain = lo.SVCCV(Cs=[1.0, 10.0]).fit(X, y, weights)
    with config_context(enable_metadata_routing=True):
        routed = lo.SVCCV(Cs=[1.0, 10.0]).fit(X, y, sample_weight=weights)
    assert routed.best_params_ == plain.best_params_
    np.testing.assert_array_equal(routed.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_sparse_is_dense(two, kernel):
    X, y = two
    dense = lo.SVCCV(kernel, Cs=[0.1, 1.0], degree=2, coef0=1.0).fit(X, y)
    thin = lo.SVCCV(kernel, Cs=[0.1, 1.0], degree=2, coef0=1.0).fit(
        sparse.csr_array(X), y
    )
    assert thin.best_params_ == pytest.approx(dense.best_params_)
    np.testing.assert_allclose(
        thin.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-8
    )


def test_precomputed_is_its_kernel(two):
    X, y = two
    linear = lo.SVCCV("linear").fit(X, y)
    gram = lo.SVCCV("precomputed").fit(X @ X.T, y)
    assert gram.best_params_ == linear.best_params_
    assert gram.gamma_ is linear.gamma_ is None
    np.testing.assert_allclose(gram.predict_proba(X @ X.T), linear.predict_proba(X))


def test_grid_follows_the_scale_of_linear_features(two):
    X, y = two
    small, large = (lo.SVCCV("linear").fit(s * X, y) for s in (1.0, 100.0))
    assert small.C_ == pytest.approx(large.C_ * 1e4)
    assert small.loo_error_ == large.loo_error_
    assert kernel_scale(X, "linear") == pytest.approx(X.var(axis=0).sum())


def test_jobs_and_checkpoint_change_nothing(two, tmp_path):
    X, y = two
    plain = lo.SVCCV().fit(X, y)
    for clf in (
        lo.SVCCV(n_jobs=2),
        lo.SVCCV(checkpoint=tmp_path / "run.db"),
        lo.SVCCV(checkpoint=tmp_path / "run.db"),  # all cells are there
    ):
        clf.fit(X, y)
        assert clf.best_params_ == plain.best_params_
        np.testing.assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))
        np.testing.assert_array_equal(
            clf.cv_results_["anti_learning"], plain.cv_results_["anti_learning"]
        )


def test_checkpoint_keeps_what_anti_learning_needs(tmp_path):
    X, y = make_blobs([30, 10], centers=[[0, 0], [1.5, 1.5]], random_state=0)
    for _ in range(2):
        clf = lo.SVCCV(Cs=[1e-4, 100.0], gammas=[0.1], checkpoint=tmp_path / "run.db")
        clf.fit(X, y)
        assert clf.cv_results_["anti_learning"].tolist() == [True, False]
        assert clf.C_ == 100.0


def test_names_of_columns(two):
    X, y = two
    frame = pd.DataFrame(X, columns=["radius", "compactness"])
    clf = lo.SVCCV(Cs=[1.0]).fit(frame, y)
    assert clf.feature_names_in_.tolist() == ["radius", "compactness"]
    assert clf.n_features_in_ == 2
    clf.predict_proba(frame)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame.rename(columns={"radius": "r"}))


def test_clone_and_pickle(two):
    X, y = two
    clf = lo.SVCCV(Cs=[1.0, 10.0], one_se=True).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    fresh = clone(clf)
    assert fresh.get_params() == clf.get_params()
    assert not hasattr(fresh, "best_params_")


def test_without_probabilities(two):
    X, y = two
    clf = lo.SVCCV(Cs=[1.0], probability=False).fit(X, y)
    assert not hasattr(clf, "predict_proba")
    assert not hasattr(clf, "platt_slope_")
    with pytest.raises(AttributeError) as caught:
        clf.predict_proba(X)
    assert "probability=True" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"Cs": "all"}, ValueError, "Cs must be 'auto' or numbers; got 'all'"),
        ({"Cs": []}, ValueError, "Cs is empty"),
        ({"Cs": [1.0, -1.0]}, ValueError, "C must be a finite number > 0; got -1.0"),
        ({"gammas": "scale"}, ValueError, "gammas must be 'auto' or numbers"),
        ({"gammas": [0.1, 0.0]}, ValueError, "gamma must be a finite number > 0"),
        ({"gammas": []}, ValueError, "gammas is empty"),
        ({"one_se": 1}, TypeError, "one_se must be True or False; got 1"),
        ({"probability": "yes"}, TypeError, "probability must be True or False"),
        ({"scoring": ["f1", "accuracy"]}, ValueError, "scoring must be one score"),
        ({"class_weight": "even"}, ValueError, "class_weight must be None"),
        ({"kernel": "cubic"}, ValueError, "cubic"),
    ],
)
def test_wrong_parameters_are_named(two, params, error, message):
    with pytest.raises(error, match=message):
        lo.SVCCV(**params).fit(*two)


def test_one_score_decides(two):
    with pytest.raises(ValueError, match="scoring must return one number"):
        lo.SVCCV(scoring=lambda clf, X, y: {"a": 1.0, "b": 2.0}).fit(*two)


def test_every_warning_names_the_line_of_the_user():
    y = np.arange(20) % 2
    with pytest.warns(lo.LeaveoutWarning) as caught:
        lo.SVCCV().fit(np.ones((20, 2)), y)
    assert {warning.filename for warning in caught} == {__file__}
    assert any(w.category is lo.exceptions.CalibrationWarning for w in caught)
