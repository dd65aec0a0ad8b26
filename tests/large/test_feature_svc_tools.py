# SPDX-License-Identifier: BSD-3-Clause
"""FeatureSVC among scikit-learn's tools: pipelines, searches, files, errors."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
)

import leaveout as lo
from leaveout import FeatureSVC
from leaveout.data import make_mixture


def test_weights_are_repeats_where_no_row_shapes_the_features():
    check_sample_weight_equivalence_on_dense_data("FeatureSVC", FeatureSVC("linear"))
    # Fourier features with a fixed gamma depend on the number of columns alone.
    check_sample_weight_equivalence_on_dense_data(
        "FeatureSVC", FeatureSVC(gamma=0.1, n_components=30)
    )


@pytest.fixture
def data():
    return make_mixture(120, 4, random_state=0)


def test_clone_pickle_and_parameters(data):
    X, y = data
    clf = FeatureSVC(n_components=20, C=[0.1, 1.0], gamma=0.2, random_state=3).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    fresh = clone(clf)
    assert fresh.get_params() == clf.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    np.testing.assert_array_equal(fresh.fit(X, y).coef_, clf.coef_)


def test_in_a_pipeline_and_a_search(data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), FeatureSVC(n_components=20, random_state=0))
    search = GridSearchCV(pipe, {"featuresvc__gamma": [0.01, 0.1]}, cv=3).fit(X, y)
    assert search.best_estimator_[-1].loo_error_.proved
    assert search.score(X, y) > 0.6


@pytest.mark.parametrize(
    "features",
    [
        "fourier",
        "nystroem",
        "linear",
        Nystroem(n_components=9, gamma=0.1, random_state=0),
    ],
)
def test_model_files(tmp_path, data, features):
    X, y = data
    y = np.array(["no", "yes"])[y]
    clf = FeatureSVC(features, n_components=20, C=[0.1, 1.0], random_state=0).fit(X, y)
    path = tmp_path / "model.skops"
    lo.save_model(clf, path)
    again = lo.load_model(path)
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    assert again.loo_error_ == clf.loo_error_
    assert clf.loo_error_.proved
    assert lo.read_model_card(path).loo_error == clf.loo_error_.low
    clf.loo_error_ = lo.ProvedError(0.1, 0.2)
    lo.save_model(clf, path)
    assert lo.read_model_card(path).loo_error is None


def test_leave_one_out_says_where_the_answer_is(data):
    X, y = data
    for estimator in (FeatureSVC(), make_pipeline(StandardScaler(), FeatureSVC())):
        with pytest.raises(TypeError, match=r"FeatureSVC .*loo_error_, loo_labels_"):
            lo.leave_one_out(estimator, X, y)


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"features": "fourrier"}, ValueError, "Did you mean 'fourier'"),
        ({"features": "rbf"}, ValueError, "features must be 'fourier', 'nystroem'"),
        ({"features": 3}, TypeError, "a transformer with fit and transform"),
        ({"C": []}, ValueError, "C is empty"),
        ({"C": 0.0}, ValueError, "C must be"),
        ({"C": [1.0, -1.0]}, ValueError, "C must be"),
        ({"C": np.inf}, ValueError, "C must be finite"),
        ({"gamma": -1.0}, ValueError, "gamma must be a finite number > 0"),
        ({"gamma": "scal"}, (TypeError, ValueError), "gamma must be"),
        ({"n_components": 0}, ValueError, "n_components must be 1 or more"),
        ({"max_walks": -1}, ValueError, "max_walks must be 0 or more"),
        ({"max_walks": 1.5}, TypeError, "max_walks must be a whole number"),
        ({"tol": 0}, ValueError, "tol must be"),
        ({"rows_at_once": 0}, ValueError, "rows_at_once must be 1 or more"),
        ({"class_weight": "balance"}, ValueError, "class_weight must be"),
        ({"class_weight": {7: 1.0}}, ValueError, "class_weight has 7, which is no"),
    ],
)
def test_bad_parameters(data, parameters, error, match):
    with pytest.raises(error, match=match):
        FeatureSVC(**parameters).fit(*data)


def test_bad_data(data):
    X, y = data
    with pytest.raises(ValueError, match=r"one class.*\[0\]"):
        FeatureSVC().fit(X, np.zeros(120, dtype=int))
    with pytest.raises(ValueError, match="two classes or more with weight"):
        FeatureSVC().fit(X, y, sample_weight=(y == 1).astype(float))
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(ValueError, match="X contains NaN in row 7, column 2"):
        FeatureSVC().fit(bad, y)
    with pytest.raises(ValueError, match="y to be passed"):
        FeatureSVC().fit(X)
    clf = FeatureSVC("linear").fit(X, y)
    with pytest.raises(ValueError, match="expecting 4 features"):
        clf.predict(X[:, :2])
