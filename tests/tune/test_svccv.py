# SPDX-License-Identifier: BSD-3-Clause
"""SVCCV against scikit-learn: grid search, refits and calibration by LeaveOneOut."""

import numpy as np
import pytest
import sklearn.svm
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.preprocessing import scale

import leaveout as lo
from leaveout.tune._choice import default_gammas

X2, Y2 = load_breast_cancer(return_X_y=True)
TWO = scale(X2)[::18, [0, 5]], np.array(["malignant", "benign"])[Y2[::18]]
X3, Y3 = load_iris(return_X_y=True)
THREE = scale(X3)[::5, :2], Y3[::5]


@pytest.mark.parametrize(("X", "y"), [TWO, THREE], ids=["two", "three"])
def test_choice_equals_grid_search_by_refits(X, y):
    Cs, gammas = [0.1, 1.0, 10.0, 100.0], default_gammas(X)[1:4]
    clf = lo.SVCCV(Cs=Cs, gammas=gammas).fit(X, y)
    tight = sklearn.svm.SVC(tol=1e-8)
    truth = GridSearchCV(tight, {"C": Cs, "gamma": gammas}, cv=LeaveOneOut()).fit(X, y)
    wanted = truth.cv_results_["mean_test_score"]
    differences = np.abs(clf.cv_results_["mean_test_score"] - wanted) * len(y)
    assert (differences <= clf.cv_results_["n_ambiguous"] + 1e-9).all()
    best = np.flatnonzero(truth.cv_results_["rank_test_score"] == 1)
    cells = [truth.cv_results_["params"][k] for k in best]
    assert (clf.C_, clf.gamma_) == min((p["C"], p["gamma"]) for p in cells)
    p = clf.loo_error_
    assert p == pytest.approx(1 - clf.best_score_) == pytest.approx(1 - wanted.max())
    assert clf.loo_error_std_ == pytest.approx(np.sqrt(p * (1 - p) / len(y)))
    tight.set_params(C=clf.C_, gamma=clf.gamma_)
    how = {"cv": LeaveOneOut(), "method": "decision_function"}
    values = cross_val_predict(tight, X, y, **how)
    np.testing.assert_allclose(clf.loo_decision_values_, values, atol=1e-5)
    values = tight.fit(X, y).decision_function(X)
    np.testing.assert_allclose(clf.decision_function(X), values, atol=1e-4)


def test_default_grid_follows_the_kernel_scale():
    X, y = TWO
    small, large = (lo.SVCCV("linear").fit(s * X, y) for s in (1.0, 100.0))
    assert small.C_ == pytest.approx(large.C_ * 1e4)
    assert small.loo_error_ == large.loo_error_
    gram = lo.SVCCV("precomputed").fit(X @ X.T, y)
    assert (gram.best_params_, gram.gamma_) == (small.best_params_, None)


def test_probabilities_equal_calibration_by_refits(rng):
    """scikit-learn fits the same sigmoid to n refits with another optimiser."""
    X, y = TWO
    weights = rng.uniform(0.5, 2.0, size=len(y))
    clf = lo.SVCCV(Cs=[1.0], gammas=[0.2]).fit(X, y, weights)
    truth = CalibratedClassifierCV(
        sklearn.svm.SVC(C=1.0, gamma=0.2, tol=1e-8),
        cv=list(LeaveOneOut().split(X)),
        ensemble=False,
    ).fit(X, y, weights)
    p = clf.predict_proba(X)
    np.testing.assert_allclose(p, truth.predict_proba(X), atol=2e-4)
    np.testing.assert_allclose(clf.predict_log_proba(X), np.log(p))
    with pytest.raises(AttributeError) as caught:
        clf.set_params(probability=False).fit(X, y).predict_proba(X)
    assert "probability=True" in str(caught.value.__cause__)


def test_pairs_of_three_classes_are_calibrated_on_their_own_samples():
    X, y = THREE
    clf = lo.SVCCV(Cs=[1.0], gammas=[0.5]).fit(X, y)
    for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        inside = (y == i) | (y == j)
        pair = lo.SVCCV(Cs=[1.0], gammas=[0.5]).fit(X[inside], y[inside])
        # Two classes: positive means j; three classes: positive means i.
        assert clf.platt_slope_[k] == pytest.approx(pair.platt_slope_[0], rel=1e-6)
        assert clf.platt_offset_[k] == pytest.approx(-pair.platt_offset_[0], rel=1e-6)
    assert log_loss(y, clf.predict_proba(X)) < 0.8 * np.log(3)


@pytest.mark.filterwarnings("ignore::leaveout.CalibrationWarning")
@pytest.mark.parametrize("one_se", [False, True])
def test_anti_learning_is_passed_over_and_never_chosen_silently(rng, one_se):
    X, y = make_blobs([30, 10], centers=[[0, 0], [1.5, 1.5]], random_state=0)
    clf = lo.SVCCV(Cs=[1e-4, 1e-3, 100.0], gammas=[0.1], one_se=one_se).fit(X, y)
    assert clf.cv_results_["anti_learning"].tolist() == [True, True, False]
    assert clf.C_ == 100.0
    X, y = make_blobs([20, 20], centers=[[0, 0], [3, 3]], random_state=0)
    with pytest.warns(lo.AntiLearningWarning, match="Use a larger C"):
        clf = lo.SVCCV(Cs=[1e-4, 1e-3], gammas=[0.1], one_se=one_se).fit(X, y)
    assert clf.loo_error_ == 1.0
    # Left-out values have the wrong order, so they are not used for probabilities.
    np.testing.assert_allclose(clf.predict_proba(X), 0.5)
    # Noise with a rare class: always predicting the other class scores best.
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 5 == 0
    with pytest.warns(lo.AntiLearningWarning, match="passed over for one with"):
        clf = lo.SVCCV(Cs=[1e-4, 1e3], gammas=[1.0], one_se=one_se).fit(X, y)
    assert clf.C_ == 1e3


def test_values_in_the_wrong_order_give_class_proportions():
    X, y = np.random.default_rng(0).standard_normal((40, 20)), np.arange(40) % 4 == 0
    with pytest.warns(lo.CalibrationWarning, match="the class proportions") as w:
        clf = lo.SVCCV(Cs=[100.0], gammas=[0.05]).fit(X, y)
    assert {warning.filename for warning in w} == {__file__}
    np.testing.assert_allclose(clf.predict_proba(X), np.tile([0.75, 0.25], (40, 1)))


def test_rows_without_weight_are_ignored():
    X, y = TWO
    kept = np.arange(len(y)) % 4 > 0
    with config_context(enable_metadata_routing=True):
        weighted = lo.SVCCV(Cs=[1.0, 10.0]).fit(X, y, kept.astype(float))
    alone = lo.SVCCV(Cs=[1.0, 10.0]).fit(X[kept], y[kept])
    assert weighted.best_params_ == alone.best_params_
    assert weighted.loo_error_ == pytest.approx(alone.loo_error_)
    np.testing.assert_allclose(weighted.predict_proba(X), alone.predict_proba(X))


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"Cs": "all"}, ValueError, "Cs must be 'auto' or numbers; got 'all'"),
        ({"Cs": []}, ValueError, "Cs is empty"),
        ({"Cs": [1.0, -1.0]}, ValueError, "C must be a finite number > 0; got -1.0"),
        ({"gammas": [0.1, 0.0]}, ValueError, "gamma must be a finite number > 0"),
        ({"gammas": []}, ValueError, "gammas is empty"),
        ({"one_se": 1}, TypeError, "one_se must be True or False; got 1"),
        ({"scoring": ["f1", "accuracy"]}, ValueError, "scoring must be a single score"),
        (
            {"scoring": lambda *_: {"a": 1.0, "b": 2.0}},
            ValueError,
            "return a single number",
        ),
    ],
)
def test_wrong_parameters_are_named(params, error, message):
    with pytest.raises(error, match=message):
        lo.SVCCV(**params).fit(*TWO)
