# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of Pipelines from the solution on all samples equals refits."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn.svm
from exactness_fold import leave_rows_out
from oracles.refits import honest_refits
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import (
    SelectFwe,
    SelectKBest,
    VarianceThreshold,
    f_regression,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    Normalizer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from leaveout import SVC, leave_one_out
from leaveout.adapt import _folds
from leaveout.adapt._prepare import prepare
from leaveout.adapt._unwrap import ALL_FAMILIES
from leaveout.engine import _fold_targets, _fold_walk
from leaveout.loo._leave_out import leave_out_grid

RBF = sklearn.svm.SVC(C=3.0, tol=1e-10)
LINEAR = sklearn.svm.SVC(C=0.3, kernel="linear", tol=1e-10)
POLY = sklearn.svm.SVC(kernel="poly", degree=2, coef0=1.0, tol=1e-10)
BALANCED = sklearn.svm.SVC(C=20.0, class_weight="balanced", tol=1e-10)


def assert_equal_to_refits(pipeline, X, y, **options):
    """Values of all subproblems, and the labels where they are unique."""
    found, wanted = (
        leave_one_out(pipeline, X, y, preprocessing="fold", method=how, **options)
        for how in ("auto", "refit")
    )
    if hasattr(found, "q2"):
        np.testing.assert_allclose(found.predictions, wanted.predictions, atol=1e-9)
        return found
    values, truth = found.binary_values, wanted.binary_values
    np.testing.assert_allclose(values, truth, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(found.ambiguous, wanted.ambiguous)
    clear = ~found.ambiguous
    np.testing.assert_array_equal(found.predictions[clear], wanted.predictions[clear])
    return found


def draw(rng, n, p, n_classes):
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, p)) * rng.uniform(0.3, 3.0, p) + 0.8 * y[:, None], y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("steps", "svm"),
    [
        ([StandardScaler()], RBF),
        ([RobustScaler()], LINEAR),
        ([MinMaxScaler()], POLY),
        ([SelectKBest(k=3), StandardScaler()], BALANCED),
        ([StandardScaler(), PCA(3, svd_solver="full")], RBF),
        ([SelectKBest(k=2)], OneVsRestClassifier(BALANCED)),
        ([StandardScaler()], SVC(kernel="laplacian", fit_intercept=False)),
        ([StandardScaler()], SVC(C=5.0, kernel="cosine")),
    ],
)
def test_folds_equal_refits(steps, svm, n_classes, rng):
    X, y = draw(rng, 36, 7, n_classes)
    weights, groups = (
        rng.choice([0.0, 0.5, 2.0], 36, p=[0.1, 0.4, 0.5]),
        np.arange(36) // 3,
    )
    pipeline = make_pipeline(*steps, svm)
    found = assert_equal_to_refits(pipeline, X, y)
    assert found.counts["refits"] == 0
    assert_equal_to_refits(pipeline, X, y, sample_weight=weights, groups=groups)
    if not isinstance(svm, SVC):
        predictions, _ = honest_refits(pipeline, X, y)
        np.testing.assert_array_equal(found.predictions, predictions)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_stateless_steps_have_one_kernel(n_classes, rng, monkeypatch):
    X, y = draw(rng, 30, 4, n_classes)
    pipeline = make_pipeline(Normalizer(), SVC(C=3.0, gamma=0.5))
    monkeypatch.setattr(_folds, "FoldSolver", None)  # not needed
    for groups in (None, np.arange(30) // 3):
        found = assert_equal_to_refits(pipeline, X, y, groups=groups)
        assert found.preprocessing == {"normalizer": "stateless"}
    monkeypatch.undo()
    pipeline = make_pipeline(Normalizer(), SVC(C=3.0, gamma="scale"))
    assert_equal_to_refits(pipeline, X, y)


@pytest.mark.parametrize("most_changes", [2**23, 0])
@pytest.mark.parametrize(
    "svm",
    [
        RBF,
        SVC(C=0.02),
        SVC(C=1e3),
        SVC(C=20.0, fit_intercept=False),
        OneVsRestClassifier(RBF),
        sklearn.svm.SVR(C=10.0, epsilon=0.2),
        sklearn.svm.SVR(C=1.0, epsilon=0.0),
    ],
)
def test_gamma_of_each_fold(svm, most_changes, rng, monkeypatch):
    monkeypatch.setattr(_fold_walk, "MOST_CHANGES", most_changes)
    X, y = draw(rng, 90, 4, 3 if svm is RBF else 2)
    X[7] *= 20.0  # without it gamma is much larger
    y = X[:, 0] + rng.normal(size=90) if isinstance(svm, sklearn.svm.SVR) else y
    weights = rng.choice([0.0, 0.5, 2.0], 90, p=[0.1, 0.4, 0.5])
    found = assert_equal_to_refits(svm, X, y)
    assert found.counts["refits"] == 0
    groups = np.arange(90) // 3
    assert_equal_to_refits(svm, X, y, sample_weight=weights, groups=groups)
    if svm is RBF:
        predictions, _ = honest_refits(svm, X, y)
        np.testing.assert_array_equal(found.predictions, predictions)


def test_result_says_how_steps_were_fitted(rng):
    X, y = draw(rng, 20, 4, 2)
    steps = [StandardScaler(), QuantileTransformer(n_quantiles=5), PCA(2)]
    found = leave_one_out(make_pipeline(*steps, RBF), X, y, preprocessing="fold")
    assert set(found.preprocessing.values()) == {"fitted in each fold"}
    steps = [Normalizer(), StandardScaler(), PCA(2)]
    found = leave_one_out(make_pipeline(*steps, RBF), X, y, preprocessing="fold")
    assert found.preprocessing == {
        "normalizer": "stateless",
        "standardscaler": "closed form",
        "pca": "fitted in each fold",
    }
    assert leave_one_out(RBF, X, y).preprocessing == {}


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_degenerate_samples(C, kernel, rng):
    pipeline = make_pipeline(StandardScaler(), SVC(C=C, kernel=kernel))
    X = rng.integers(0, 3, (40, 3)).astype(float)
    X[:, 2] = np.arange(40) == 5  # constant without row 5
    y = rng.integers(0, 2, 40)  # equal rows with different labels
    assert_equal_to_refits(pipeline, X, y)
    y[:] = np.arange(40) == 7
    with pytest.warns(UserWarning, match="has only 1 sample"):
        assert_equal_to_refits(pipeline, X, y)
    assert_equal_to_refits(pipeline, X, np.arange(40) % 2)  # any b of an interval


@pytest.mark.parametrize(
    "svm",
    [
        sklearn.svm.SVR(C=10.0, epsilon=0.2),
        sklearn.svm.SVR(C=100.0, epsilon=0.0, gamma=0.1),
        sklearn.svm.SVR(kernel="linear"),
    ],
)
def test_regression(svm, rng):
    X, _ = draw(rng, 40, 5, 2)
    y = X[:, 0] + rng.normal(size=40)
    pipeline = make_pipeline(SelectKBest(f_regression, k=3), StandardScaler(), svm)
    assert_equal_to_refits(pipeline, X, y)
    assert_equal_to_refits(pipeline, X, y, groups=np.arange(40) % 13)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_samples_far_from_the_margin_are_checked(kernel, rng, monkeypatch):
    monkeypatch.setattr(_fold_walk, "KERNEL_MOVES", 0.0)
    X, y = draw(rng, 320, 4, 2)
    if kernel != "poly":
        X[137] *= 300.0  # without it the scale of all others is another one
    svm = SVC(C=2.0, kernel=kernel, gamma=0.1)
    found = assert_equal_to_refits(make_pipeline(StandardScaler(), svm), X, y)
    assert kernel == "poly" or found.counts["repeated"] > 0  # far samples moved
    threads = leave_one_out(
        make_pipeline(StandardScaler(), svm), X, y, preprocessing="fold", n_jobs=2
    )
    np.testing.assert_array_equal(found.decision_values, threads.decision_values)


@pytest.mark.parametrize(("rounds", "close"), [(30, 1e-4), (2, 1e9)])
@pytest.mark.parametrize(
    "svm",
    [
        LINEAR,
        SVC(C=1e-4, kernel="linear"),
        SVC(C=1e4, kernel="linear"),
        sklearn.svm.SVC(kernel="linear", class_weight="balanced", tol=1e-10),
        sklearn.svm.SVR(kernel="linear", C=0.1, epsilon=0.2),
        RBF,
    ],
)
def test_many_features(svm, rounds, close, rng, monkeypatch):
    monkeypatch.setattr(_fold_targets, "ROUNDS", rounds)  # 2: others are left
    monkeypatch.setattr(_folds, "CLOSE", close)  # 1e9: all in double precision
    X, y = draw(rng, 30, 90, 2)
    X[3, :7] *= 30.0  # the other rows have other scales
    X[:, 8] = np.arange(30) == 5  # constant without row 5
    if isinstance(svm, sklearn.svm.SVR):
        y = X[:, 10] + rng.normal(size=30)
    pipeline = make_pipeline(StandardScaler(), svm)
    assert assert_equal_to_refits(pipeline, X, y).counts["refits"] == 0
    assert_equal_to_refits(pipeline, X, y, groups=np.arange(30) // 2, n_jobs=2)
    if not isinstance(svm, sklearn.svm.SVR):
        with pytest.warns(UserWarning, match="has only 1 sample"):
            assert_equal_to_refits(pipeline, X, np.arange(30) == 7)


@pytest.mark.parametrize("method", ["auto", "refit"])
@pytest.mark.parametrize(
    ("steps", "svm", "grid"),
    [
        ([StandardScaler()], SVC(), [{"gamma": "scale"}, {"gamma": 0.05}]),
        ([SelectKBest(k=3)], SVC(kernel="linear"), [{}]),
        ([Normalizer()], BALANCED, [{"gamma": "scale"}, {"gamma": 2.0}]),
        (
            [MinMaxScaler()],
            OneVsRestClassifier(SVC(kernel="laplacian")),
            [{}, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0, "degree": 2}],
        ),
        ([StandardScaler()], sklearn.svm.SVR(tol=1e-10), [{}, {"gamma": 0.01}]),
    ],
)
def test_grid_equals_single_models(steps, svm, grid, method, rng):
    X, y = draw(rng, 30, 7, 3)
    Cs = np.array([1.0, 0.01, 30.0])
    pipeline, how = make_pipeline(*steps, svm), {"preprocessing": "fold"}
    families = ALL_FAMILIES
    task, plan = prepare(pipeline, X, y, C=1.0, method=method, families=families, **how)
    tasks = [replace(task, params=replace(task.params, **own)) for own in grid]
    prefix = f"{pipeline.steps[-1][0]}__" + "estimator__" * hasattr(svm, "estimator")
    for params, runs in zip(grid, leave_out_grid(tasks, plan, Cs), strict=True):
        for C, run in zip(Cs, runs, strict=True):
            own = {f"{prefix}{name}": value for name, value in params.items()}
            own = clone(pipeline).set_params(**{f"{prefix}C": C}, **own)
            wanted = leave_one_out(own, X, y, method=method, **how)
            np.testing.assert_allclose(
                getattr(run.result, "binary_values", run.result.predictions),
                getattr(wanted, "binary_values", wanted.predictions),
                atol=1e-9,
            )
            if method == "auto":
                model = own.fit(X, y)[-1]
                models = getattr(model, "estimators_", [model])
                counts = [np.unique(m.support_).size for m in models]
                assert np.count_nonzero(run.betas.any(axis=0)) >= max(counts)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("outlier", [1e2, 1e3, 1e4])
def test_row_far_from_all_others(kernel, outlier, rng):
    """Features fitted without it have another scale, and its K_rr is the largest."""
    X, y = draw(rng, 20, 4, 2)
    X[3] *= outlier
    svm = sklearn.svm.SVC(C=1.0, kernel=kernel, gamma=0.1, coef0=1.0, tol=1e-10)
    for scaler in (StandardScaler(), RobustScaler(), MinMaxScaler()):
        pipeline = make_pipeline(scaler, svm)
        found = leave_one_out(pipeline, X, y)
        atol = max(1e-7, found.counts["rounding"])
        for row in np.flatnonzero(found.certified)[:5]:
            wanted = leave_rows_out(pipeline, X, y, np.array([row]))
            value, (low, high) = found.binary_values[row], (wanted.low, wanted.high)
            assert low[0] - atol - 1e-7 * abs(low[0]) <= value
            assert value <= high[0] + atol + 1e-7 * abs(high[0])


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("gamma", [0.1, "scale"])
def test_left_out_row_does_not_set_the_tolerances(C, gamma, rng):
    """Without row 1 the others vary by 1, and its K_rr is 1e20 times theirs."""
    X, y = rng.integers(0, 2, (20, 5)).astype(float), rng.integers(0, 2, 20)
    X[1] = 1e5 * np.array([1, -1, 0, 1, 1])
    svm = sklearn.svm.SVC(C=C, kernel="poly", gamma=gamma, coef0=1.0)
    pipeline = make_pipeline(StandardScaler(), svm)
    wanted = leave_rows_out(pipeline, X, y, np.array([1]))
    found = leave_one_out(pipeline, X, y).binary_values[1]
    np.testing.assert_allclose(found, wanted.low[0], rtol=1e-7)
    np.testing.assert_allclose(found, wanted.high[0], rtol=1e-7)


class SmallestColumn(TransformerMixin, BaseEstimator):
    """Selects the column whose largest absolute value is smallest."""

    def fit(self, X, y=None):
        self.column_ = np.abs(X).max(axis=0).argmin()
        return self

    def transform(self, X):
        return X[:, [self.column_]]


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_left_out_row_does_not_set_the_origin(kernel, rng):
    """Row 0 is the mean of the column of all others, and far away without itself."""
    X, y = rng.normal(size=(20, 2)) * [1.0, 10.0], np.arange(20) % 2
    X[0] = 1e9, X[1:, 1].mean()
    svm = sklearn.svm.SVC(C=1.0, kernel=kernel, gamma=0.3)
    pipeline = make_pipeline(SmallestColumn(), svm)
    wanted = leave_rows_out(pipeline, X, y, np.array([0]))
    found = leave_one_out(pipeline, X, y).binary_values[0]
    np.testing.assert_allclose(found, wanted.low[0], rtol=1e-7)


@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
def test_fold_without_features(rng):
    X = np.zeros((12, 2))
    X[5] = 1.0
    y = np.arange(12) % 2
    pipeline = make_pipeline(VarianceThreshold(), SVC())
    with pytest.raises(ValueError, match="in the fold that leaves out row 5"):
        leave_one_out(pipeline, X, y)
    X = rng.normal(size=(30, 1))
    X[4], y = 1e3, np.arange(30) == 4  # without row 4 one class is left
    y[9] = True
    pipeline = make_pipeline(SelectFwe(alpha=0.05), SVC())
    with pytest.raises(ValueError, match="leave no features in the fold that leaves"):
        leave_one_out(pipeline, X, y)
