# SPDX-License-Identifier: BSD-3-Clause
"""The artists hold the numbers of the results, and marks are where they belong."""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
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
def curve():
    return lo.loo_curve(lo.SVC(gamma=0.2), *DATA, C_min=0.01, C_max=100)


@pytest.fixture(scope="module")
def path():
    return lo.loo_path(lo.SVC(gamma=0.2), *DATA, Cs=[10, 0.1, 1, 0.011])


@pytest.fixture(scope="module")
def result():
    return lo.leave_one_out(lo.SVC(C=0.06, gamma=0.2), *DATA)


def labels_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_curve(curve, path):
    display = lo.LooCurveDisplay.from_curve(curve, path=path)
    values, edges, _ = display.steps_.get_data()
    assert_array_equal(values, curve.errors)
    assert_array_equal(edges, curve.breakpoints)
    assert display.ax_.get_xlim() == (curve.C_min, curve.C_max)
    span, line = display.best_
    # A Rectangle or, before matplotlib 3.9, a Polygon.
    box = span.get_patch_transform().transform_path(span.get_path()).get_extents()
    assert_allclose([box.x0, box.x1], curve.best_interval)
    assert_array_equal(line.get_data(), [curve.best_interval, [curve.best_error] * 2])
    assert 0 < (curve.n_ambiguous > 0).sum() < curve.errors.size
    heights, edges, _ = display.ambiguous_.get_data()
    assert_array_equal(~np.isnan(heights), curve.n_ambiguous > 0)
    assert_array_equal(edges, curve.breakpoints)
    error = curve.errors[0]
    corners = display.band_.get_paths()[0].vertices
    at_start = corners[corners[:, 0] == curve.C_min, 1]
    assert_allclose(
        [at_start.min(), at_start.max()], wilson_interval(error, curve.n_samples)
    )
    Cs, errors = display.points_.get_data()
    assert_array_equal(curve.error_at(Cs), errors)
    display.figure_.draw_without_rendering()


def test_path(path):
    display = lo.LooCurveDisplay.from_path(path)
    assert_array_equal(display.points_.get_xdata(), [0.011, 0.1, 1, 10])
    assert_array_equal(display.points_.get_ydata(), path.errors[[3, 1, 2, 0]])
    assert display.best_[0].get_xdata() == [path.best_C]
    assert display.steps_ is None
    found = np.sort(display.ambiguous_.get_xdata())
    assert_array_equal(found, np.sort(path.Cs[path.n_ambiguous > 0]))
    _, ax = plt.subplots()
    display.plot(ax, mark_best=False, interval=False, legend=False)
    assert display.ax_ is ax
    assert (display.best_, display.band_, ax.get_legend()) == ([], None, None)
    none = np.zeros(2, dtype=int)
    steps = lo.LooCurve(np.array([0.1, 1, 10]), np.array([0.2, 0.1]), none, 10)
    assert lo.LooCurveDisplay.from_curve(steps).ambiguous_ is None


def cells_of(marks):
    """Columns and rows of the cells that have a mark."""
    return np.floor(marks.get_data()).T.tolist()


def make_grid(errors, **more):
    """A grid of three or fewer C and two gammas."""
    errors = np.array(errors)
    Cs, gammas = np.array([0.01, 1.0, 100.0])[: len(errors)], np.array([0.1, 0.5])
    more = {"best_index": (1, 1), "majority_error": 0.5} | more
    return lo.LooGridDisplay(errors=errors, Cs=Cs, gammas=gammas, **more).plot()


def test_grid():
    errors = np.array([[50, 30], [4, 3], [9, 12]]) / 60
    display = make_grid(errors, n_ambiguous=np.array([[0, 0], [0, 0], [2, 0]]))
    assert_array_equal(np.ravel(display.image_.get_array()), errors.T.ravel())
    assert display.best_.get_xy() == (1.04, 1.04)
    texts = ["83", "50", "6.7", "5.0", "15", "20"]
    assert [text.get_text() for text in display.text_] == texts
    ticks = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert ticks == ["0.01", "1", "100"]
    assert cells_of(display.worse_) == [[0, 0]]  # an error of 0.5 itself is not worse
    assert cells_of(display.ambiguous_) == [[2, 0]]
    assert display.image_.get_clim() == (0.05, 50 / 60)
    assert labels_of(display.ax_) == ["best", "worse than majority", "ambiguous"]
    display.figure_.draw_without_rendering()


@pytest.mark.parametrize(
    ("errors", "scale"),
    [([[0.7, 0.6], [0.9, 0.8]], (0.6, 0.9)), ([[0.2, 0.2]] * 2, (0.2, 0.201))],
)
def test_scale_of_a_grid_ends_above_its_beginning(errors, scale):
    """Also if all cells are worse than the majority, or equal."""
    display = make_grid(errors, anti_learning=np.zeros((2, 2), dtype=bool))
    assert_allclose(display.image_.get_clim(), scale)
    display.figure_.draw_without_rendering()


def test_large_grids_have_no_text_and_few_ticks():
    display = lo.LooGridDisplay(
        errors=np.linspace(0, 0.5, 90).reshape(30, 3),
        Cs=np.logspace(-2, 3, 30),
        gammas=[0.1, 0.2, "scale"],
        best_index=(0, 0),
    ).plot()
    assert display.text_ == []
    assert len(display.ax_.get_xticks()) == 10
    assert display.ax_.get_yticklabels()[-1].get_text() == "scale"


def test_cells_are_the_best_over_other_parameters():
    grid = {"svc__kernel": ["rbf", "poly"], "svc__C": [10, 0.1]}
    linear = {"svc__kernel": ["linear"], "svc__C": [10, 0.1]}
    grids = [linear, grid | {"svc__gamma": [0.5, 0.05, "scale"]}]
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grids).fit(*DATA)
    display = lo.LooGridDisplay.from_estimator(search)
    assert display.Cs == [0.1, 10]
    assert display.gammas == [0.05, 0.5, "none", "scale"]
    best = np.zeros((2, 4))
    table = search.cv_results_
    for params, score in zip(table["params"], table["mean_test_score"], strict=True):
        i = display.Cs.index(params["svc__C"])
        j = display.gammas.index(params.get("svc__gamma", "none"))
        best[i, j] = max(best[i, j], score)
    assert_allclose(display.errors, 1 - best)
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
    assert display.majority_error == 0.5


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


def test_margins_are_sorted_and_counted(result):
    wrong, ambiguous = result.wrong, result.ambiguous
    display = lo.LooMarginDisplay.from_result(result)
    assert_array_equal(np.sort(result.margins), result.margins[display.order_])
    masks = [~wrong & ~ambiguous, wrong & ~ambiguous, ambiguous]
    points = [display.right_, display.wrong_, display.ambiguous_]
    for mask, drawn in zip(masks, points, strict=True):
        places, margins = drawn.get_data()
        assert_array_equal(np.sort(display.order_[places]), np.flatnonzero(mask))
        assert_array_equal(result.margins[display.order_[places]], margins)
    counts = [mask.sum() for mask in masks]
    assert labels_of(display.ax_)[1:] == [
        f"right: {counts[0]}",
        f"wrong: {counts[1]}",
        f"ambiguous: {counts[2]} ({(wrong & ambiguous).sum()} counted wrong)",
    ]
    fewer = lo.LooMarginDisplay.from_result(result, n_smallest=5)
    assert fewer.order_.size == 5
    assert f"wrong: {counts[1]}" in labels_of(fewer.ax_)


def test_suspects_are_ringed_and_named(result):
    names = np.array([f"$\\frac {k}$" for k in range(result.y.size)], dtype=object)
    worst = np.argsort(result.margins)[:2]
    names[worst[0]] = "a very long name of a sample"
    display = lo.LooMarginDisplay.from_result(result, suspects=worst, names=names)
    assert_array_equal(display.suspects_.get_data(), [[0, 1], result.margins[worst]])
    display.figure_.draw_without_rendering()  # names are not read as formulas
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["a very long name …", names[worst[1]]]


def test_neither_names_nor_the_legend_overlap():
    """If many samples are wrong, names are far to the right."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + 2.0 * rng.normal(size=40) > 0
    noise = lo.leave_one_out(lo.SVC(C=10), X, y)
    suspects = np.argsort(noise.margins)[:8]
    _, ax = plt.subplots(figsize=(4.2, 3.1), layout="constrained")  # as on a page
    lo.LooMarginDisplay.from_result(noise, suspects=suspects, ax=ax)
    ax.figure.canvas.draw()
    assert {text.get_text() for text in ax.texts} == {f"row {k}" for k in suspects}
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


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (SVC(), "SVC has no cv_results_"),
        (GridSearchCV(SVC(), {"C": [1]}, scoring="f1").fit(*DATA), "scoring='f1'"),
        (GridSearchCV(SVC(), {"gamma": [1]}).fit(*DATA), "does not vary C"),
    ],
)
def test_searches_that_cannot_be_drawn(search, message):
    with pytest.raises(ValueError, match=message):
        lo.LooGridDisplay.from_estimator(search)


def test_other_mistakes(monkeypatch, path, result):
    with pytest.raises(ValueError, match="needs a curve, a path, or both"):
        lo.LooCurveDisplay()
    with pytest.raises(ValueError, match="n_smallest must be 1 or more, got 0"):
        lo.LooMarginDisplay.from_result(result, n_smallest=0)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"leaveout\[plot\]"):
        lo.LooCurveDisplay.from_path(path)
