# SPDX-License-Identifier: BSD-3-Clause
"""The artists hold the numbers of the results, and marks are where they belong."""

import builtins

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import leaveout as lo
from leaveout.data import make_twonorm


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    X, y = make_twonorm(41, 3, random_state=1)
    return X, y


@pytest.fixture(scope="module")
def curve(data):
    return lo.loo_curve(lo.SVC(gamma=0.2), *data, C_min=0.01, C_max=100)


@pytest.fixture(scope="module")
def path(data):
    return lo.loo_path(lo.SVC(gamma=0.2), *data, Cs=[10, 0.1, 1, 0.011])


@pytest.fixture(scope="module")
def result(data):
    return lo.leave_one_out(lo.SVC(C=0.06, gamma=0.2), *data)


def drawn(figure):
    """Draw, so that what fails only then fails here; return the figure."""
    figure.canvas.draw()
    return figure


def labels_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


class TestCurve:
    def test_steps_are_the_curve(self, curve):
        display = lo.LooCurveDisplay.from_curve(curve)
        values, edges, _ = display.steps_.get_data()
        assert_array_equal(values, curve.errors)
        assert_array_equal(edges, curve.breakpoints)
        assert display.ax_.get_xlim() == (curve.C_min, curve.C_max)
        assert drawn(display.figure_) is display.ax_.figure

    def test_best_interval_is_shaded(self, curve):
        span, line = lo.LooCurveDisplay.from_curve(curve).best_
        low, high = curve.best_interval
        # A Rectangle or, before matplotlib 3.9, a Polygon.
        box = span.get_patch_transform().transform_path(span.get_path()).get_extents()
        assert_allclose([box.x0, box.x1], [low, high])
        assert_array_equal(line.get_xdata(), [low, high])
        assert_array_equal(line.get_ydata(), [curve.best_error] * 2)

    def test_strip_covers_the_ambiguous_c(self, curve):
        assert 0 < (curve.n_ambiguous > 0).sum() < curve.errors.size
        strip = lo.LooCurveDisplay.from_curve(curve).ambiguous_
        middles = np.sqrt(curve.breakpoints[:-1] * curve.breakpoints[1:])
        bars = strip.get_paths()
        for C, n_ambiguous in zip(middles, curve.n_ambiguous, strict=True):
            inside = any(bar.contains_point((C, 1e-3)) for bar in bars)
            assert inside == (n_ambiguous > 0)

    def test_no_strip_without_ambiguity(self):
        steps = lo.LooCurve(
            np.array([0.1, 1, 10]), np.array([0.2, 0.1]), np.zeros(2, dtype=int), 10
        )
        display = lo.LooCurveDisplay.from_curve(steps)
        assert display.ambiguous_ is None
        assert not any("ambiguous" in text for text in labels_of(display.ax_))

    def test_band_is_one_standard_error(self, curve):
        band = lo.LooCurveDisplay.from_curve(curve).band_
        error = curve.errors[-1]
        width = np.sqrt(error * (1 - error) / curve.n_samples)
        top = band.get_paths()[0].vertices
        at_end = top[top[:, 0] == curve.C_max, 1]
        assert_allclose([at_end.min(), at_end.max()], [error - width, error + width])

    def test_points_are_the_path_in_order(self, path):
        display = lo.LooCurveDisplay.from_path(path)
        assert_array_equal(display.points_.get_xdata(), [0.011, 0.1, 1, 10])
        assert_array_equal(display.points_.get_ydata(), path.errors[[3, 1, 2, 0]])
        (ring,) = display.best_
        assert ring.get_xdata() == [path.best_C]
        assert display.steps_ is None

    def test_ambiguous_points_are_crossed(self, path):
        crosses = lo.LooCurveDisplay.from_path(path).ambiguous_
        assert_array_equal(
            np.sort(crosses.get_xdata()), np.sort(path.Cs[path.n_ambiguous > 0])
        )

    def test_points_lie_on_the_steps(self, curve, path):
        display = lo.LooCurveDisplay.from_curve(curve, path=path)
        Cs, errors = display.points_.get_data()
        assert_array_equal(curve.error_at(Cs), errors)
        drawn(display.figure_)

    def test_axes_of_the_caller(self, path):
        _, ax = plt.subplots()
        display = lo.LooCurveDisplay.from_path(
            path, ax=ax, mark_best=False, standard_error=False, legend=False
        )
        assert display.ax_ is ax
        assert display.best_ == []
        assert display.band_ is None
        assert ax.get_legend() is None

    def test_needs_something(self):
        with pytest.raises(ValueError, match="needs a curve, a path, or both"):
            lo.LooCurveDisplay()


GRID = {
    "errors": np.array([[50, 30], [4, 3], [9, 12]]) / 60,
    "Cs": np.array([0.01, 1.0, 100.0]),
    "gammas": np.array([0.1, 0.5]),
    "best_index": (1, 1),
    "n_ambiguous": np.array([[0, 0], [0, 0], [2, 0]]),
}


class TestGrid:
    def test_cells_are_the_errors(self):
        display = lo.LooGridDisplay(**GRID).plot()
        assert_array_equal(display.image_.get_array(), GRID["errors"].T)
        assert display.best_.get_xy() == (1 - 0.46, 1 - 0.46)
        assert [text.get_text() for text in display.text_] == [
            "83", "50", "6.7", "5.0", "15", "20",
        ]  # fmt: skip
        ticks = [text.get_text() for text in display.ax_.get_xticklabels()]
        assert ticks == ["0.01", "1", "100"]
        drawn(display.figure_)

    def test_worse_than_the_majority_is_hatched_and_ends_the_scale(self):
        display = lo.LooGridDisplay(**GRID, majority_error=0.5).plot()
        (cell,) = display.worse_  # 0.5 itself is not worse
        assert cell.get_xy() == (-0.5, -0.5)
        assert display.image_.get_clim() == (0.05, 0.5)
        assert "worse than majority" in labels_of(display.ax_)

    def test_all_worse_than_the_majority(self):
        """Noise does that; the scale once ended before it began."""
        errors = np.array([[0.7, 0.6], [0.9, 0.8]])
        display = lo.LooGridDisplay(
            errors=errors, Cs=np.array([1.0, 10.0]), gammas=np.array([0.1, 1.0]),
            best_index=(0, 1), majority_error=0.5,
            anti_learning=np.zeros((2, 2), dtype=bool),
        ).plot()  # fmt: skip
        assert display.image_.get_clim() == (0.6, 0.9)
        drawn(display.figure_)

    def test_ambiguous_cells_have_a_dot(self):
        display = lo.LooGridDisplay(**GRID).plot()
        x, y = display.ambiguous_.get_data()
        assert_array_equal(np.round(x), [2])
        assert_array_equal(np.round(y), [0])

    def test_large_grids_have_no_text_and_few_ticks(self):
        errors = np.linspace(0, 0.5, 90).reshape(30, 3)
        display = lo.LooGridDisplay(
            errors=errors,
            Cs=np.logspace(-2, 3, 30),
            gammas=[0.1, 0.2, "scale"],
            best_index=(0, 0),
        ).plot()
        assert display.text_ == []
        assert len(display.ax_.get_xticks()) == 10
        assert [t.get_text() for t in display.ax_.get_yticklabels()][-1] == "scale"

    def test_search_over_a_pipeline(self, data):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), SVC()),
            {"svc__C": [10, 0.1], "svc__gamma": [0.5, 0.05, "scale"]},
            cv=LeaveOneOut(),
        ).fit(*data)
        display = lo.LooGridDisplay.from_estimator(search)
        scores = np.reshape(search.cv_results_["mean_test_score"], (2, 3))
        assert_allclose(display.errors, 1 - scores[::-1][:, [1, 0, 2]])
        assert display.Cs == [0.1, 10]
        assert display.gammas == [0.05, 0.5, "scale"]
        i, j = display.best_index
        assert display.errors[i, j] == pytest.approx(1 - search.best_score_)
        assert display.Cs[i] == search.best_params_["svc__C"]

    def test_other_parameters_give_their_best(self, data):
        search = GridSearchCV(
            SVC(),
            [
                {"kernel": ["linear"], "C": [0.1, 1]},
                {"kernel": ["rbf", "poly"], "C": [0.1, 1], "gamma": [0.2]},
            ],
            cv=LeaveOneOut(),
        ).fit(*data)
        display = lo.LooGridDisplay.from_estimator(search)
        assert display.gammas == [0.2, "none"]
        scores = search.cv_results_["mean_test_score"]
        assert_allclose(display.errors[:, 1], 1 - scores[:2])
        # Candidates 2 to 5: rbf and poly, C within each by the order of the keys.
        Cs = np.ma.getdata(search.cv_results_["param_C"]).astype(float)
        for row, C in enumerate([0.1, 1]):
            best = max(scores[2:][Cs[2:] == C])
            assert display.errors[row, 0] == pytest.approx(1 - best)

    def test_exact_search_knows_more(self):
        X, y = make_twonorm(40, 3, random_state=1)
        search = lo.LooSearchCV(SVC(), {"C": [1e-3, 1, 1e3], "gamma": [0.1, 1]})
        display = lo.LooGridDisplay.from_estimator(search.fit(X, y))
        assert_array_equal(
            display.anti_learning, [[True, True], [False, False], [False, False]]
        )
        assert len(display.worse_) == 2
        assert "anti-learning" in labels_of(display.ax_)
        assert display.image_.get_clim()[1] == display.errors[1:].max() < 1
        assert_array_equal(display.errors[0], [1, 1])

    def test_failed_candidates_stay_empty(self, data):
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

    def test_without_gamma(self, data):
        search = GridSearchCV(SVC(kernel="linear"), {"C": [0.1, 1]}).fit(*data)
        display = lo.LooGridDisplay.from_estimator(search)
        assert display.errors.shape == (2, 1)
        assert list(display.ax_.get_yticks()) == []
        drawn(display.figure_)

    def test_mistakes_have_a_way_out(self, data):
        with pytest.raises(ValueError, match="SVC has no cv_results_"):
            lo.LooGridDisplay.from_estimator(SVC())
        search = GridSearchCV(SVC(), {"C": [1]}, scoring="f1").fit(*data)
        with pytest.raises(ValueError, match="scoring='f1'"):
            lo.LooGridDisplay.from_estimator(search)
        search = GridSearchCV(SVC(), {"gamma": [1]}).fit(*data)
        with pytest.raises(ValueError, match="does not vary C"):
            lo.LooGridDisplay.from_estimator(search)


class TestMargins:
    def test_margins_are_sorted_and_split(self, result):
        wrong, ambiguous = result.wrong, result.ambiguous
        assert (wrong & ~ambiguous).any()
        assert ambiguous.any()
        display = lo.LooMarginDisplay.from_result(result)
        assert_array_equal(np.sort(result.margins), result.margins[display.order_])
        masks = [~wrong & ~ambiguous, wrong & ~ambiguous, ambiguous]
        points = [display.right_, display.wrong_, display.ambiguous_]
        for mask, drawn_points in zip(masks, points, strict=True):
            places, margins = drawn_points.get_data()
            assert_array_equal(np.sort(display.order_[places]), np.flatnonzero(mask))
            assert_array_equal(result.margins[display.order_[places]], margins)
        drawn(display.figure_)

    def test_legend_counts_every_sample_once(self, result):
        display = lo.LooMarginDisplay.from_result(result)
        wrong, ambiguous = result.wrong, result.ambiguous
        both = (wrong & ambiguous).sum()
        assert labels_of(display.ax_)[1:] == [
            f"right: {(~wrong & ~ambiguous).sum()}",
            f"wrong: {wrong.sum() - both}",
            f"ambiguous: {ambiguous.sum()} ({both} counted wrong)",
        ]

    def test_suspects_are_ringed_and_numbered(self, result):
        worst = np.argsort(result.margins)[:2]
        display = lo.LooMarginDisplay.from_result(result, suspects=worst)
        assert_array_equal(
            display.suspects_.get_data(), [[0, 1], result.margins[worst]]
        )
        texts = display.ax_.texts
        assert [text.get_text() for text in texts] == [f"row {row}" for row in worst]
        first, second = (
            text.get_window_extent() for text in drawn(display.figure_) and texts
        )
        assert not first.overlaps(second)

    def test_no_name_of_a_suspect_is_behind_the_legend(self):
        """Where many are wrong, names stand far to the right."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 2))
        y = X[:, 0] + 2.0 * rng.normal(size=40) > 0
        noise = lo.leave_one_out(lo.SVC(C=10), X, y)
        suspects = np.argsort(noise.margins)[:8]
        _, ax = plt.subplots(figsize=(4.2, 3.1), layout="constrained")  # as on a page
        display = lo.LooMarginDisplay.from_result(noise, suspects=suspects, ax=ax)
        drawn(display.figure_)
        legend = display.ax_.get_legend().get_window_extent()
        names = [text.get_window_extent() for text in display.ax_.texts]
        assert len(names) == 8
        assert not any(legend.overlaps(name) for name in names)

    def test_suspects_are_called_by_name(self, result):
        names = np.array([f"$\\frac {k}$" for k in range(result.y.size)], dtype=object)
        worst = np.argsort(result.margins)[:2]
        names[worst[0]] = "a very long name of a sample"
        display = lo.LooMarginDisplay.from_result(result, suspects=worst, names=names)
        display.figure_.draw_without_rendering()  # no formula is looked for in them
        texts = [text.get_text() for text in display.ax_.texts]
        assert texts == ["a very long name …", names[worst[1]]]

    def test_intervals_and_infinite_ends(self):
        display = lo.LooMarginDisplay(
            margins=np.array([2.0, 0.25, -1.0]),
            lower=np.array([2.0, -0.5, -np.inf]),
            upper=np.array([2.0, 1.0, -1.0]),
            wrong=np.array([False, False, True]),
            ambiguous=np.array([False, True, False]),
        ).plot()
        bars = display.intervals_.get_segments()
        assert_allclose(bars[0], [[0, -2.3], [0, -1.0]])  # to the edge
        assert_allclose(bars[1], [[1, -0.5], [1, 1.0]])
        assert len(bars) == 2
        assert_array_equal(display.ambiguous_.get_data(), [[1], [0.25]])
        drawn(display.figure_)

    def test_the_smallest_only(self, result):
        display = lo.LooMarginDisplay.from_result(result, n_smallest=5)
        assert display.order_.size == 5
        n_wrong = (result.wrong & ~result.ambiguous).sum()
        assert f"wrong: {n_wrong}" in labels_of(display.ax_)
        with pytest.raises(ValueError, match="n_smallest must be 1 or more, got 0"):
            display.plot(n_smallest=0)


def test_missing_matplotlib_names_the_extra(monkeypatch, path):
    real_import = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"leaveout\[plot\]"):
        lo.LooCurveDisplay.from_path(path)
