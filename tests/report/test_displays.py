# SPDX-License-Identifier: BSD-3-Clause
"""The artists hold the numbers of the results, and marks are where they belong."""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import leaveout as lo
from leaveout.data import make_twonorm
from leaveout.loo._result import wilson_interval

DATA = make_twonorm(41, 3, random_state=1)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def path():
    return lo.loo_path(lo.SVC(gamma=0.2), *DATA, Cs=[10, 0.1, 1, 0.011])


def labels_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_curve(path):
    curve = lo.loo_curve(lo.SVC(gamma=0.2), *DATA, C_min=0.01, C_max=100)
    display = lo.LooCurveDisplay.from_curve(curve, path=path)
    values, edges, _ = display.steps_.get_data()
    assert_array_equal(values, curve.errors)
    assert_array_equal(edges, curve.breakpoints)
    assert display.ax_.get_xlim() == (curve.C_min, curve.C_max)
    _, line = display.best_
    assert_array_equal(line.get_data(), [curve.best_interval, [curve.best_error] * 2])
    assert 0 < (curve.n_ambiguous > 0).sum() < curve.errors.size
    heights, _, _ = display.ambiguous_.get_data()
    assert_array_equal(~np.isnan(heights), curve.n_ambiguous > 0)
    error = curve.errors[0]
    corners = display.band_.get_paths()[0].vertices
    at_start = corners[corners[:, 0] == curve.C_min, 1]
    assert_allclose(
        [at_start.min(), at_start.max()], wilson_interval(error, curve.n_samples)
    )
    Cs, errors = display.points_.get_data()
    assert_array_equal(curve.error_at(Cs), errors)


def test_path(path):
    display = lo.LooCurveDisplay.from_path(path)
    points = display.points_.get_data()
    assert_array_equal(points, [[0.011, 0.1, 1, 10], path.errors[[3, 1, 2, 0]]])
    assert display.best_[0].get_xdata() == [path.best_C]
    found = np.sort(display.ambiguous_.get_xdata())
    assert_array_equal(found, np.sort(path.Cs[path.n_ambiguous > 0]))
    _, ax = plt.subplots()
    display.plot(ax, mark_best=False, interval=False, legend=False)
    assert display.ax_ is ax
    assert (display.best_, display.band_, ax.get_legend()) == ([], None, None)


def cells_of(marks):
    """Columns and rows of the cells that have a mark."""
    return np.floor(marks.get_data()).T.tolist()


def test_grid():
    errors = np.array([[50, 30], [4, 3], [9, 12]]) / 60
    ambiguous = np.array([[0, 0], [0, 0], [2, 0]])
    how = {"Cs": [0.01, 1.0, 100.0], "gammas": [0.1, 0.5], "n_ambiguous": ambiguous}
    how |= {"best_index": (1, 1), "majority_error": 0.5}
    display = lo.LooGridDisplay(errors=errors, **how).plot()
    assert_array_equal(np.ravel(display.image_.get_array()), errors.T.ravel())
    assert display.best_.get_xy() == (1.04, 1.04)
    texts = ["83", "50", "6.7", "5.0", "15", "20"]
    assert [text.get_text() for text in display.text_] == texts
    assert cells_of(display.worse_) == [[0, 0]]  # an error of 0.5 itself is not worse
    assert cells_of(display.ambiguous_) == [[2, 0]]
    assert display.image_.get_clim() == (0.05, 50 / 60)
    assert labels_of(display.ax_) == ["best", "worse than majority", "ambiguous"]


def test_cells_are_the_best_over_other_parameters():
    grid = {"svc__kernel": ["rbf", "poly"], "svc__C": [10, 0.1]}
    linear = {"svc__kernel": ["linear"], "svc__C": [10, 0.1]}
    grids = [linear, grid | {"svc__gamma": [0.5, 0.05, "scale"]}]
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grids).fit(*DATA)
    display = lo.LooGridDisplay.from_estimator(search)
    assert display.Cs == [0.1, 10]
    assert display.gammas == [0.05, 0.5, "none", "scale"]
    table = pd.DataFrame(search.cv_results_["params"]).fillna("none")
    table["score"] = search.cv_results_["mean_test_score"]
    best = table.groupby(["svc__C", "svc__gamma"])["score"].max()
    errors = [[1 - best[C, gamma] for gamma in display.gammas] for C in display.Cs]
    assert_allclose(display.errors, errors)
    i, j = display.best_index
    assert display.errors[i, j] == pytest.approx(1 - search.best_score_)
    assert display.Cs[i] == search.best_params_["svc__C"]


def test_searches_by_leave_one_out():
    X, y = make_twonorm(40, 3, random_state=1)
    search = lo.LooSearchCV(SVC(), {"C": [1e-3, 1, 1e3], "gamma": [0.1, 1]})
    display = lo.LooGridDisplay.from_estimator(search.fit(X, y))
    assert cells_of(display.worse_) == [[0, 0], [0, 1]]
    assert "anti-learning" in labels_of(display.ax_)
    assert display.image_.get_clim()[1] == 1
    assert_array_equal(display.errors[0], [1, 1])
    search = lo.LooSearchCV(SVC(gamma=0.2), {"C": [10, 1]}).fit(*DATA)
    assert search.cv_results_["rank_test_score"].tolist() == [1, 1]
    display = lo.LooGridDisplay.from_estimator(search, majority_error=0.5)
    assert display.Cs[display.best_index[0]] == search.best_params_["C"] == 1


def test_failed_candidates_stay_empty():
    table = {
        "param_C": [1, 10],
        "mean_test_score": np.array([np.nan, 0.9]),
        "rank_test_score": np.array([2, 1]),
        "n_ambiguous": np.ma.array([0, 3], mask=[True, False]),
    }
    display = lo.LooGridDisplay.from_cv_results(table)
    assert_allclose(display.errors, [[np.nan], [0.1]])
    assert [text.get_text() for text in display.text_] == ["10"]
    assert_array_equal(display.n_ambiguous, [[0], [3]])
    assert list(display.ax_.get_yticks()) == []  # no gamma
    display.figure_.draw_without_rendering()


def test_margins_are_sorted_and_counted():
    result = lo.leave_one_out(lo.SVC(C=0.06, gamma=0.2), *DATA)
    wrong, ambiguous = result.wrong, result.ambiguous
    display = lo.LooMarginDisplay.from_result(result)
    masks = [~wrong & ~ambiguous, wrong & ~ambiguous, ambiguous]
    points = [display.right_, display.wrong_, display.ambiguous_]
    for mask, drawn in zip(masks, points, strict=True):
        places, margins = drawn.get_data()
        assert_array_equal(np.sort(display.order_[places]), np.flatnonzero(mask))
        assert_array_equal(np.sort(result.margins)[places], margins)
    right, clear, unclear = (mask.sum() for mask in masks)
    both = (wrong & ambiguous).sum()
    told = f"ambiguous: {unclear} ({both} counted wrong)"
    assert labels_of(display.ax_)[1:] == [f"right: {right}", f"wrong: {clear}", told]
    fewer = lo.LooMarginDisplay.from_result(result, n_smallest=5)
    assert fewer.order_.size == 5
    assert f"wrong: {clear}" in labels_of(fewer.ax_)
    with pytest.raises(ValueError, match="n_smallest must be 1 or more, got 0"):
        lo.LooMarginDisplay.from_result(result, n_smallest=0)


def test_suspects_are_ringed_and_named_without_overlap():
    """If many samples are wrong, names are far to the right."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + 2.0 * rng.normal(size=40) > 0
    noise = lo.leave_one_out(lo.SVC(C=10), X, y)
    suspects = np.argsort(noise.margins)[:8]
    names = np.array([f"$\\frac {k}$" for k in range(40)], dtype=object)
    names[suspects[0]] = "a very long name of a sample"
    _, ax = plt.subplots(figsize=(4.2, 3.1), layout="constrained")  # as on a page
    display = lo.LooMarginDisplay.from_result(
        noise, suspects=suspects, names=names, ax=ax
    )
    rings = [np.arange(8), noise.margins[suspects]]
    assert_array_equal(display.suspects_.get_data(), rings)
    ax.figure.canvas.draw()  # names are not read as formulas
    texts = {text.get_text() for text in ax.texts}
    assert texts == {"a very long name …", *names[suspects[1:]]}
    legend = ax.get_legend().get_window_extent()
    assert not any(legend.overlaps(text.get_window_extent()) for text in ax.texts)
    heights = np.sort([text.xyann[1] for text in ax.texts])
    assert np.diff(heights).min() > 0.04 * np.ptp(ax.get_ylim())


def test_intervals_and_infinite_ends():
    display = lo.LooMarginDisplay(
        margins=np.array([2.0, 0.25, -1.0]),
        lower=np.array([2.0, -0.5, -np.inf]),
        upper=np.array([2.0, 1.0, -1.0]),
        wrong=np.array([False, False, True]),
        ambiguous=np.array([False, True, False]),
    ).plot()
    bars = display.intervals_.get_segments()
    assert_allclose(bars, [[[0, -2.3], [0, -1.0]], [[1, -0.5], [1, 1.0]]])
    assert_array_equal(display.ambiguous_.get_data(), [[1], [0.25]])


def test_mistakes(monkeypatch, path):
    for search, message in [
        (SVC(), "SVC has no cv_results_"),
        (GridSearchCV(SVC(), {"C": [1]}, scoring="f1").fit(*DATA), "scoring='f1'"),
        (GridSearchCV(SVC(), {"gamma": [1]}).fit(*DATA), "does not vary C"),
    ]:
        with pytest.raises(ValueError, match=message):
            lo.LooGridDisplay.from_estimator(search)
    with pytest.raises(ValueError, match="needs a curve, a path, or both"):
        lo.LooCurveDisplay()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"leaveout\[plot\]"):
        lo.LooCurveDisplay.from_path(path)


def test_predictions():
    X, y = DATA[0], DATA[0] @ [1.0, -2.0, 0.5]
    result = lo.leave_one_out(lo.SVR(epsilon=0.5, gamma=0.1), X, y)
    display = lo.LooPredictionDisplay.from_result(result)
    assert_array_equal(display.points_.get_data(), [y, result.predictions])
    ax = display.ax_
    assert ax.get_xlim() == ax.get_ylim()
    assert ax.get_xlim()[0] < min(y.min(), result.predictions.min())
    assert_array_equal(display.diagonal_.get_xdata(), display.diagonal_.get_ydata())
    assert display.intervals_ is None
    assert labels_of(ax) == ["predicted = observed", "samples: 41"]
    assert f"RMSE {result.rmse:.4g}" in ax.get_legend().get_title().get_text()


def test_intervals_of_predictions_stay_inside_the_axes():
    X, y = DATA[0][:6], np.arange(6.0)
    result = lo.leave_one_out(lo.SVR(epsilon=10.0), X, y)
    _, ax = plt.subplots()
    display = lo.LooPredictionDisplay.from_result(result, ax=ax, legend=False)
    assert display.ax_ is ax
    assert ax.get_legend() is None
    segments = np.array(display.intervals_.get_segments())
    assert_allclose(segments[:, :, 1], [ax.get_ylim()] * 6)


def test_displays_of_classifiers_refuse_a_regressor():
    X, y = DATA[0], DATA[0] @ [1.0, -2.0, 0.5]
    path = lo.loo_path(lo.SVR(), X, y, Cs=[1.0])
    with pytest.raises(TypeError, match=r"LooCurveDisplay .* got a LooRegressionPath"):
        lo.LooCurveDisplay.from_path(path)
    with pytest.raises(TypeError, match=r"LooMarginDisplay .* LooPredictionDisplay"):
        lo.LooMarginDisplay.from_result(path[0])
    search = lo.LooSearchCV(lo.SVR(), {"C": [1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="scoring='r2'"):
        lo.LooGridDisplay.from_estimator(search)
