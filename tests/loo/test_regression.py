# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out of SVR against an interior-point solver, LIBSVM and refits."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from oracles.regression import loo_predictions, random_regression
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneGroupOut, LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import loo_walk, only_of_class

LIBSVM = {"tol": 1e-10, "max_iter": 2_000_000}


def diabetes(n=80):
    X, y = load_diabetes(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    return StandardScaler().fit_transform(X[rows]), y[rows]


def left_out(K, y, C, epsilon, **options):
    """Return lo.leave_one_out with upper bounds C."""
    svr = sklearn.svm.SVR(kernel="precomputed", C=1.0, epsilon=epsilon)
    return lo.leave_one_out(svr, K, y, sample_weight=C, **options)


def ends(result):
    return np.column_stack([result.lower, result.upper])


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.25, 1.0, 4.0])
def test_random_problems_equal_an_interior_point(epsilon):
    rng = np.random.default_rng(int(100 * epsilon))
    for _ in range(12):
        case = random_regression(rng, epsilon=epsilon)
        found = left_out(*case)
        assert_allclose(ends(found), loo_predictions(*case), atol=2e-6)
        assert_allclose(found.predictions, ends(found).mean(axis=1), atol=1e-12)


def assert_walks_equal_refits(rng, count):
    for _ in range(count):
        case = random_regression(rng)
        found, refitted = left_out(*case), left_out(*case, method="refit")
        assert_allclose(ends(found), ends(refitted), rtol=1e-7, atol=1e-7)
        groups = rng.integers(0, 4, len(case[1]))
        if np.unique(groups).size > 1:
            found = left_out(*case, groups=groups)
            refitted = left_out(*case, groups=groups, method="refit")
            assert_allclose(ends(found), ends(refitted), rtol=1e-7, atol=1e-7)


def test_walks_equal_refits():
    assert_walks_equal_refits(np.random.default_rng(1), 60)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_many_walks_equal_refits(seed):
    assert_walks_equal_refits(np.random.default_rng([2, seed]), 100)


@pytest.mark.parametrize("family", [sklearn.svm.SVR, lo.SVR])
@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 30.0, "epsilon": 10.0, "gamma": 0.05},
        {"C": 0.5, "epsilon": 0.0, "kernel": "linear"},
        {"C": 5.0, "epsilon": 80.0, "kernel": "poly", "degree": 2, "gamma": 0.1},
    ],
    ids=["rbf", "linear", "poly"],
)
def test_equal_to_refits_by_libsvm(family, parameters):
    X, y = diabetes()
    found = lo.leave_one_out(family(**parameters), X, y)
    libsvm = sklearn.svm.SVR(**parameters, **LIBSVM)
    wanted = cross_val_predict(libsvm, X, y, cv=LeaveOneOut())
    assert_allclose(found.predictions, wanted, atol=1e-5 * y.std(), rtol=0)
    assert found.certified.all()
    assert found.counts["refits"] == 0


def test_diabetes_agrees_with_cold_refits():
    """Each left-out problem is solved from zero by lo.SVR on the other samples."""
    X, y = diabetes(200)
    svr = lo.SVR(C=50.0, epsilon=5.0, gamma=0.1)
    found = lo.leave_one_out(svr, X, y)
    for r in range(0, len(y), 7):
        kept = np.delete(np.arange(len(y)), r)
        wanted = svr.fit(X[kept], y[kept]).predict(X[r : r + 1])[0]
        assert found.predictions[r] == pytest.approx(wanted, rel=1e-9)


def test_groups_and_weights_equal_libsvm():
    X, y = diabetes()
    rng = np.random.default_rng(3)
    svr = sklearn.svm.SVR(C=20.0, epsilon=5.0, gamma=0.05, **LIBSVM)
    groups = rng.integers(0, 9, len(y))
    found = lo.leave_one_out(svr, X, y, groups=groups)
    wanted = cross_val_predict(svr, X, y, cv=LeaveOneGroupOut(), groups=groups)
    assert_allclose(found.predictions, wanted, atol=1e-5 * y.std(), rtol=0)
    weights = 10 ** rng.uniform(-3, 2, len(y))
    weights[::9] = 0.0
    y = np.where(weights > 0, y, 1e9)  # of absent samples, y does not matter
    found = lo.leave_one_out(svr, X, y, sample_weight=weights)
    wanted = []
    for r in range(len(y)):
        kept = np.flatnonzero((np.arange(len(y)) != r) & (weights > 0))
        fitted = svr.fit(X[kept], y[kept], sample_weight=weights[kept])
        wanted.append(fitted.predict(X[r : r + 1])[0])
    assert_allclose(found.predictions, wanted, atol=1e-2, rtol=0)
    assert (found.settled_by[::9] == "untouched").all()


def test_pipelines_frozen_and_in_the_fold():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60], y[:60]
    svr = sklearn.svm.SVR(C=30.0, epsilon=5.0, gamma=0.1, **LIBSVM)
    pipeline = make_pipeline(StandardScaler(), svr)
    frozen = lo.leave_one_out(pipeline, X, y, preprocessing="frozen")
    scaled = StandardScaler().fit_transform(X)
    assert_allclose(frozen.predictions, lo.leave_one_out(svr, scaled, y).predictions)
    selecting = make_pipeline(StandardScaler(), SelectKBest(f_regression, k=3), svr)
    with pytest.raises(ValueError, match="uses y"):
        lo.leave_one_out(selecting, X, y, preprocessing="frozen")
    for estimator in (pipeline, selecting):
        found = lo.leave_one_out(estimator, X, y)
        wanted = cross_val_predict(estimator, X, y, cv=LeaveOneOut())
        assert_allclose(found.predictions, wanted, atol=1e-5 * y.std(), rtol=0)
        assert found.certified.all()


def test_input_kinds():
    X, y = diabetes(50)
    svr = lo.SVR(C=30.0, epsilon=5.0, gamma=0.1)
    wanted = lo.leave_one_out(svr, X, y).predictions
    given = lo.SVR(C=30.0, epsilon=5.0, kernel="precomputed")
    K = rbf_kernel(X, gamma=0.1)
    for estimator, samples, numbers in (
        (given, K, y),
        (svr, sparse.csr_array(X), y.tolist()),
        (svr, X, y.astype(int)),
        (svr, X, y.astype(object)),
    ):
        found = lo.leave_one_out(estimator, samples, numbers)
        assert_allclose(found.predictions, wanted, rtol=1e-10)


@pytest.mark.parametrize(("a", "b"), [(1e6, 0.0), (-3e-7, 5.0), (2.0, -1e5)])
def test_predictions_follow_shift_and_scale(a, b):
    """y -> a y + b, C -> |a| C and epsilon -> |a| epsilon: predictions a f + b."""
    X, y = diabetes(60)
    svr = lo.SVR(C=30.0, epsilon=5.0, gamma=0.1)
    wanted = lo.leave_one_out(svr, X, y)
    svr.set_params(C=30.0 * abs(a), epsilon=5.0 * abs(a))
    found = lo.leave_one_out(svr, X, a * y + b)
    assert_allclose(found.predictions, a * wanted.predictions + b, rtol=1e-8)
    assert found.q2 == pytest.approx(wanted.q2, rel=1e-7)
    assert found.certified.all()


@pytest.mark.parametrize("epsilon", [0.0, 5.0, 40.0])
def test_left_out_residuals_are_larger_and_leave_the_tube_at_support_vectors(epsilon):
    """|y_r - f_r| can only grow without r; it exceeds epsilon for support vectors."""
    X, y = diabetes(120)
    svr = lo.SVR(C=20.0, epsilon=epsilon, gamma=0.05).fit(X, y)
    found = lo.leave_one_out(svr, X, y)
    inside = np.abs(y - svr.predict(X))
    assert (np.abs(found.residuals) >= inside - 1e-8).all()
    others = np.setdiff1d(np.arange(len(y)), svr.support_)
    assert_allclose(np.abs(found.residuals[others]), inside[others], atol=1e-8)
    outside = np.abs(found.residuals) > epsilon + 1e-8
    assert_array_equal(np.flatnonzero(outside), svr.support_)
    assert found.q2 < svr.score(X, y)


def test_a_tube_wider_than_the_data_gives_an_interval():
    """All beta are 0; b is between max(y) - epsilon and min(y) + epsilon."""
    X, y = np.arange(5.0)[:, None], np.array([1.0, 2.0, 4.0, 7.0, 3.0])
    found = lo.leave_one_out(sklearn.svm.SVR(epsilon=10.0), X, y)
    assert_allclose(found.lower, [-3.0, -3.0, -3.0, -6.0, -3.0])
    assert_allclose(found.upper, [12.0, 11.0, 11.0, 11.0, 11.0])
    assert_allclose(found.predictions, [4.5, 4.0, 4.0, 2.5, 4.0])
    assert found.n_ambiguous == 5
    wanted = cross_val_predict(sklearn.svm.SVR(epsilon=10.0), X, y, cv=LeaveOneOut())
    assert_allclose(found.predictions, wanted)


def test_the_median_is_left_out_although_its_beta_is_0():
    """K = 0 and epsilon = 0: f is the median, between two values without it."""
    found = left_out(np.zeros((3, 3)), np.array([0.0, 1.0, 5.0]), np.ones(3), 0.0)
    assert_allclose(ends(found), [[1.0, 5.0], [0.0, 5.0], [0.0, 1.0]], atol=1e-14)


def test_duplicates_with_different_y():
    K = rbf_kernel(np.repeat(np.arange(4.0), 3)[:, None])
    y = np.tile([0.0, 0.5, 3.0], 4) + np.repeat(np.arange(4.0), 3)
    case = K, y, np.full(12, 2.0), 0.1
    assert_allclose(ends(left_out(*case)), loo_predictions(*case), atol=1e-6)


def test_numbers_are_not_classes():
    """A y of -1 or 1 is not the only member of a class; labels_only has no effect."""
    problem = Problem(
        np.eye(4), np.array([-1.0, 0.2, 0.4, 1.0]), np.ones(4), epsilon=0.1
    )
    assert only_of_class(problem).size == 0
    solution = solve_svc(problem)
    wanted = loo_walk(problem, solution)
    found = loo_walk(problem, solution, labels_only=True)
    assert_array_equal(found.lower, wanted.lower)
    X, y = diabetes(40)
    svr = lo.SVR(C=30.0, epsilon=5.0)
    public = lo.leave_one_out(svr, X, y, labels_only=True)
    assert_array_equal(public.predictions, lo.leave_one_out(svr, X, y).predictions)


def test_constant_y_and_two_samples():
    X = np.arange(4.0)[:, None]
    found = lo.leave_one_out(lo.SVR(), X, np.full(4, 0.1))
    assert_allclose(found.predictions, 0.1, rtol=1e-14)
    assert found.certified.all()
    two = lo.leave_one_out(lo.SVR(epsilon=0.5), X[:2], [1.0, 3.0])
    assert_allclose(two.predictions, [3.0, 1.0])
    assert_allclose(ends(two), [[2.5, 3.5], [0.5, 1.5]])
    with pytest.raises(ValueError, match="more than 1 sample"):
        lo.leave_one_out(lo.SVR(), X[:1], [1.0])


def test_path_equals_single_results():
    X, y = diabetes(60)
    Cs = [100.0, 0.1, 5.0]
    path = lo.loo_path(sklearn.svm.SVR(epsilon=5.0, gamma=0.05), X, y, Cs=Cs)
    for k, C in enumerate(Cs):
        svr = sklearn.svm.SVR(C=C, epsilon=5.0, gamma=0.05)
        single = lo.leave_one_out(svr, X, y)
        assert_allclose(path.predictions[k], single.predictions, rtol=1e-9)
        assert path.q2[k] == pytest.approx(single.q2)
        assert path[k].rmse == path.rmse[k] == pytest.approx(single.rmse)
        assert path.mae[k] == pytest.approx(single.mae)
    assert path.best_index == np.argmax(path.q2)
    assert path.best_C == Cs[path.best_index]
    assert repr(path).startswith("<LooRegressionPath: largest of 3 Q2 0.")
    assert str(path).splitlines()[0].split() == ["C", "Q2", "RMSE", "MAE"]
    assert str(path).count("best") == 1


def test_scores_of_the_result():
    X, y = diabetes(60)
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 60)
    svr = lo.SVR(C=30.0, epsilon=5.0, gamma=0.1)
    found = lo.leave_one_out(svr, X, y, score_sample_weight=weights)
    pooled = y, found.predictions
    assert found.q2 == pytest.approx(r2_score(*pooled, sample_weight=weights))
    rmse = root_mean_squared_error(*pooled, sample_weight=weights)
    assert found.rmse == pytest.approx(rmse)
    assert found.mae == pytest.approx(
        mean_absolute_error(*pooled, sample_weight=weights)
    )
    assert_array_equal(found.residuals, y - found.predictions)
    plain = replace(found, weights=None)
    means = (y.sum() - y) / (len(y) - 1)
    other = 1 - (plain.residuals**2).sum() / ((y - means) ** 2).sum()
    assert other == pytest.approx(1 - (1 - plain.q2) * (1 - 1 / len(y)) ** 2)
    same = replace(plain, y=np.ones(60), predictions=np.ones(60))
    assert same.q2 == 1.0
    assert replace(same, predictions=np.zeros(60)).q2 == 0.0


def test_result_as_text_and_table():
    X, y = diabetes(40)
    found = lo.leave_one_out(lo.SVR(C=30.0, epsilon=5.0, gamma=0.1), X, y)
    assert repr(found) == (
        f"<LooRegressionResult: leave-one-out Q2 {found.q2:.3f}, RMSE "
        f"{found.rmse:.4g}, MAE {found.mae:.4g}, 40 samples>"
    )
    names = [line.split("  ")[1].strip() for line in str(found).splitlines()[1:]]
    assert names[:4] == ["samples", "Q2", "RMSE", "MAE"]
    assert "<td>RMSE</td>" in found._repr_html_()
    frame = found.to_frame()
    assert_array_equal(frame["residual"], found.residuals)
    assert len(frame) == 40


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "stopping"}, "'stopping' does not apply to SVR. Use one of 'auto'"),
        (
            {"method": "refit", "method_params": {"eps": 0.1}},
            "'eps', which .* not take",
        ),
        ({"y": ["a"] * 20}, "real numbers for a regressor.*labels use an SVC"),
        ({"y": [1.0] * 19 + [np.nan]}, "y is missing.*row 19"),
        ({"y": [1.0] * 19}, "20 rows but y has 19 numbers"),
        ({"y": [1e200] * 20}, "at most 1e.150"),
        ({"y": None}, "regressor requires y"),
        ({"epsilon": -0.1}, "epsilon must be a finite number >= 0"),
        ({"C": 0.0}, "C must be a finite number > 0"),
    ],
)
def test_errors(change, message):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), change.pop("y", rng.normal(size=20))
    names = {"C", "epsilon"} & set(change)
    svr = sklearn.svm.SVR(**{name: change.pop(name) for name in names})
    with pytest.raises(ValueError, match=message):
        lo.leave_one_out(svr, X, y, **change)


def test_indefinite_kernels_are_refitted_and_not_certified():
    X, y = diabetes(30)
    svr = lo.SVR(kernel="sigmoid", gamma=1.0, coef0=1.0, epsilon=5.0)
    with pytest.warns(lo.CertificateWarning, match="not positive semi-definite"):
        found = lo.leave_one_out(svr, X, y)
    assert (found.uncertified_by == "indefinite_kernel").all()
    assert found.method == "refit"


@pytest.mark.parametrize(
    "function",
    [
        lo.suspects,
        lo.loo_permutation_test,
        lo.leave_pair_out_auc,
        lo.loo_bounds,
        lo.loo_curve,
    ],
)
def test_functions_for_classifiers_say_so(function):
    X, y = diabetes(30)
    with pytest.raises(TypeError, match="SVR is not supported: it is a regressor, and"):
        function(sklearn.svm.SVR(), X, y)


def test_refits_whose_beta_are_all_0_converge():
    """A warm start leaves rounding errors in beta; they must not count as free."""
    y = np.array([1.5, 0.0, -1.5])
    for C in np.geomspace(0.01, 0.5, 40):
        case = rbf_kernel(y[:, None], gamma=0.3), y, np.full(3, C), 1.0
        refitted = left_out(*case, method="refit")
        assert refitted.certified.all()
        assert_allclose(ends(refitted), ends(left_out(*case)), atol=1e-12)
        assert refitted.n_ambiguous == 3
