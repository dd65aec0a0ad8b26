# SPDX-License-Identifier: BSD-3-Clause
"""LooSearchCV over SVR against GridSearchCV, and scores of pooled predictions."""

import numpy as np
import pytest
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_regressor
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo

GRID = {"C": [1.0, 30.0], "epsilon": [0.0, 20.0], "gamma": [0.02, 0.2]}
LOSSES = (
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
)


def diabetes(n=50):
    X, y = load_diabetes(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    return StandardScaler().fit_transform(X[rows]), y[rows]


@pytest.mark.parametrize("family", [sklearn.svm.SVR, lo.SVR])
def test_mean_squared_error_equals_that_of_grid_search(family):
    """Scores of one sample can be averaged for the squared error, not for r2."""
    X, y = diabetes()
    score = "neg_mean_squared_error"
    found = lo.LooSearchCV(family(), GRID, scoring=score).fit(X, y)
    svr = sklearn.svm.SVR(tol=1e-8)
    wanted = GridSearchCV(svr, GRID, cv=LeaveOneOut(), scoring=score).fit(X, y)
    scores = found.cv_results_["mean_test_score"]
    assert_allclose(scores, wanted.cv_results_["mean_test_score"], rtol=1e-5)
    assert found.best_params_ == wanted.best_params_
    assert_allclose(found.predict(X), wanted.predict(X), rtol=1e-4)
    assert (found.cv_results_["std_test_score"] > 0).all()
    assert "anti_learning" not in found.cv_results_


def test_default_is_pooled_r2():
    X, y = diabetes()
    search = lo.LooSearchCV(lo.SVR(gamma=0.05), {"C": [1.0, 50.0]}).fit(X, y)
    result = search.best_loo_result_
    assert isinstance(result, lo.LooRegressionResult)
    assert search.best_score_ == pytest.approx(r2_score(y, result.predictions))
    assert search.best_score_ == pytest.approx(result.q2)
    assert is_regressor(search)
    named = lo.LooSearchCV(lo.SVR(gamma=0.05), {"C": [1.0, 50.0]}, scoring="r2")
    assert named.fit(X, y).best_score_ == search.best_score_
    assert search.score(X, y) == pytest.approx(r2_score(y, search.predict(X)))
    # The refit uses the coefficients of the search.
    assert search.best_estimator_.n_iter_ == 0
    fresh = lo.SVR(gamma=0.05, **search.best_params_).fit(X, y)
    assert_allclose(search.predict(X), fresh.predict(X), rtol=1e-10)


def test_several_scores():
    X, y = diabetes()
    grid = {"svr__C": [1.0, 50.0]}
    pipeline = make_pipeline(StandardScaler(), sklearn.svm.SVR())
    search = lo.LooSearchCV(
        pipeline, grid, scoring=LOSSES, refit=LOSSES[0], preprocessing="fold"
    ).fit(X, y)
    best, table = search.best_loo_result_, search.cv_results_
    k = search.best_index_
    assert table[f"mean_test_{LOSSES[0]}"][k] == pytest.approx(-(best.rmse**2))
    assert table[f"mean_test_{LOSSES[1]}"][k] == pytest.approx(-best.rmse)
    assert table[f"mean_test_{LOSSES[2]}"][k] == pytest.approx(-best.mae)


def test_weights_and_groups():
    X, y = diabetes()
    rng = np.random.default_rng(0)
    weights, groups = rng.uniform(0.1, 2.0, 50), rng.integers(0, 10, 50)
    svr = lo.SVR(gamma=0.05, epsilon=5.0)
    score = "neg_mean_squared_error"
    search = lo.LooSearchCV(svr, {"C": [20.0]}, scoring=score)
    search.fit(X, y, sample_weight=weights, groups=groups)
    svr.set_params(C=20.0)
    wanted = lo.leave_one_out(svr, X, y, sample_weight=weights, groups=groups)
    loss = mean_squared_error(y, wanted.predictions, sample_weight=weights)
    assert search.best_score_ == pytest.approx(-loss)
    assert search.best_loo_result_.rmse == pytest.approx(np.sqrt(loss))


def test_checkpoint(tmp_path):
    X, y = diabetes()
    grid = {"C": [1.0, 30.0], "gamma": [0.02, 0.2]}
    options = {"checkpoint": tmp_path / "search.ckpt"}
    first = lo.LooSearchCV(lo.SVR(), grid, **options).fit(X, y)
    again = lo.LooSearchCV(lo.SVR(), grid, **options).fit(X, y)
    for name in ("predictions", "lower", "upper", "settled_by", "uncertified_by"):
        results = first.best_loo_result_, again.best_loo_result_
        assert_array_equal(*(getattr(result, name) for result in results))
    assert again.best_params_ == first.best_params_


def test_progress_shows_the_rmse(capsys):
    X, y = diabetes(30)
    lo.LooSearchCV(lo.SVR(), {"C": [1.0, 10.0]}, verbose=2).fit(X, y)
    assert "2 C, lowest RMSE " in capsys.readouterr().err


def test_classifiers_only():
    X, y = diabetes(30)
    search = lo.LooSearchCV(sklearn.svm.SVR(), {"C": [1.0]})
    with pytest.raises(TypeError, match=r"honest_loo .* classifiers only"):
        lo.honest_loo(search, X, y)
    with pytest.raises(ValueError, match=r"regression target.*leaveout.SVR"):
        lo.SVCCV().fit(X, y + 0.5)
    with pytest.raises(ValueError, match="looks like a regression target"):
        lo.SVCCV().fit(X, y)
