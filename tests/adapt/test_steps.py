# SPDX-License-Identifier: BSD-3-Clause
"""Steps of all folds in closed form, against clones that scikit-learn fits."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.feature_selection import (
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    f_classif,
    f_regression,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from leaveout.adapt._steps import FoldSteps
from leaveout.engine._problem import Folds

CLOSED, STATELESS, FITTED = "closed form", "stateless", "fitted in each fold"


def fold_steps(steps, X, y, folds):
    return FoldSteps.of([(f"s{i}", s) for i, s in enumerate(steps)], X, y, folds)


def reference(steps, X, y, rows):
    """Features of all rows, transformed by clones fitted without some rows."""
    kept = np.setdiff1d(np.arange(len(y)), rows)
    take = X.iloc.__getitem__ if hasattr(X, "iloc") else X.__getitem__
    A, B = take(kept), take(rows)
    for step in steps:
        own = clone(step)
        if isinstance(own, PCA):
            own.set_params(svd_solver="full")
        A = own.fit_transform(A, y[kept])
        B = own.transform(B) if len(rows) else None
    A, B = (Z.toarray() if sparse.issparse(Z) else Z for Z in (A, B))
    Z = np.empty((len(y), A.shape[1]))
    Z[kept] = A
    if len(rows):
        Z[rows] = B
    return Z


def check(steps, X, y, folds, which=None, rtol=1e-12):
    """Compare the features of all folds, and what is derived from them."""
    found = fold_steps(steps, X, y, folds)
    groups = {}
    for k in range(len(folds) + 1) if which is None else which:
        rows = folds[k] if k < len(folds) else np.empty(0, dtype=np.intp)
        Z, wanted = found.features(k), reference(steps, X, y, rows)
        assert Z.shape == wanted.shape
        assert Z.flags.c_contiguous
        assert Z.dtype == np.float64
        kept = np.setdiff1d(np.arange(len(y)), rows)
        if isinstance(steps[-1], PCA):  # signs and rotations are free
            unit = max(1.0, np.abs(wanted).max() ** 2)
            np.testing.assert_allclose(
                Z @ Z.T, wanted @ wanted.T, atol=100 * rtol * unit
            )
        else:
            unit = np.maximum(1e-2, np.abs(wanted).max(axis=0))
            assert (np.abs(Z - wanted) <= rtol * unit).all()
        np.testing.assert_allclose(found.variance(k), wanted[kept].var(), rtol=1e-9)
        if found.factors is not None and k < len(folds):
            scaled = (found.base - found.base[0]) * found.factors[k]
            np.testing.assert_allclose(scaled, Z - Z[0], atol=1e-9)
        first = groups.setdefault(found.group_of(k), k)
        np.testing.assert_array_equal(Z, found.features(first))
    return found


def make_data(seed, n=15, p=6, missing=0.0, digits=None):
    """Data with outliers, different scales and means; integers if digits is 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, (n, p)) * 10.0 ** rng.integers(-2, 3, p) + rng.normal(0, 5, p)
    X = X if digits is None else np.round(X, digits)
    y = rng.permutation(np.arange(n) % 3)
    X[:, 0] += y
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def make_folds(kind, n):
    if kind == 0:
        return Folds.singles(np.arange(n))
    order = np.random.default_rng(kind).permutation(n)
    if kind == 1:  # groups of 1 to 4 rows
        return Folds.of(np.split(order, np.cumsum([1, 4, 2, 3, 1])))
    return Folds.of(np.array_split(order, 3))


KNOWN = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    MinMaxScaler((-1, 2)),
    MinMaxScaler(clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False, quantile_range=(10.0, 80.0), unit_variance=True),
    VarianceThreshold(0.1),
    SelectKBest(k=3),
    SelectPercentile(percentile=50),
    PCA(1),
    PCA(0.9, whiten=True),
    PolynomialFeatures(2, interaction_only=True),
    make_pipeline(FunctionTransformer(np.arctan), StandardScaler(with_std=False)),
    ColumnTransformer([("a", RobustScaler(), [0])], remainder="passthrough"),
    FeatureUnion([("a", MinMaxScaler()), ("b", SelectKBest(k=1))]),
]
SELECTIONS = {8, 9, 15}
IMPUTERS = [
    SimpleImputer(strategy=strategy, add_indicator=indicator, keep_empty_features=keep)
    for strategy, indicator, keep in [
        ("mean", False, False),
        ("median", True, False),
        ("most_frequent", True, True),
        ("constant", False, True),
        ("mean", True, True),
        ("median", False, True),
        ("most_frequent", False, False),
        ("constant", True, False),
    ]
]


@pytest.mark.parametrize("first", range(len(KNOWN)))
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_all_pairs_of_known_steps(first):
    """Every pair of steps, behind every imputer and in all kinds of folds by turns."""
    for second in range(len(KNOWN)):
        code = first + 3 * second
        steps = [KNOWN[first], KNOWN[second]]
        missing = 0.15 * (code % 2)
        if missing:
            imputer = IMPUTERS[code // 2 % len(IMPUTERS)]
            if {first, second} & SELECTIONS:  # rounding decides between indicators
                imputer = clone(imputer).set_params(add_indicator=False)
            at = int(code % 7 == 0 and 0 in (first, second) and first < 2)
            steps.insert(at, imputer)
        X, y = make_data(code, missing=missing, digits=0 if code % 5 == 0 else None)
        # A step may undo the scale of a column with a large mean: more rounding.
        folds = make_folds(code % 3, len(y))
        check(steps, X, y, folds, which=[0, 1, len(folds)], rtol=1e-10)


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_fitted_attributes(kind, missing):
    X, y = make_data(kind, n=15, p=8, missing=missing)
    folds = make_folds(kind, 15)
    imputers = [SimpleImputer(strategy=s) for s in ("mean", "median", "most_frequent")]
    scalers = [
        (StandardScaler(), lambda s: (s.mean_, s.scale_)),
        (MinMaxScaler(), lambda s: (s.data_min_, s.data_max_ - s.data_min_)),
        (RobustScaler(), lambda s: (s.center_, s.scale_)),
    ]
    for imputer in imputers:
        for scaler, attributes in scalers:
            found = fold_steps([imputer, scaler], X, y, folds)._state
            for k, rows in enumerate(folds):
                kept = np.setdiff1d(np.arange(15), rows)
                filled = clone(imputer).fit(X[kept])
                centre, scale = attributes(clone(scaler).fit(filled.transform(X[kept])))
                unit = np.abs(filled.transform(X[kept])).max(axis=0)
                assert (np.abs(found.shift[k] - centre) <= 1e-13 * unit).all()
                np.testing.assert_allclose(1 / found.factor[k], scale, rtol=1e-13)
                if missing:
                    fill = np.abs(found.source.fill[k] - filled.statistics_)
                    some = np.isnan(X).any(axis=0)
                    assert (fill[some] <= 1e-13 * unit[some]).all()


def test_real_data():
    X, y = load_breast_cancer(return_X_y=True)
    folds = Folds.singles(np.arange(len(y)))
    which = [*range(0, 569, 40), 569]
    steps = [SimpleImputer(), StandardScaler(), SelectKBest(k=12), RobustScaler()]
    check(steps, X, y, folds, which)
    check([PCA(4)], X, y, folds, which, rtol=1e-10)
    check([StandardScaler(), PCA(0.95)], X, y, folds, which, rtol=1e-10)


def test_column_that_is_constant_without_one_row():
    X, y = make_data(0, n=20)
    X[:, 1], X[:, 2], X[:, 3] = 0.1, 1e6, 5.0
    X[7, 1], X[3, 2] = 1e8, 1e6 + 1
    folds = make_folds(0, 20)
    for scaler in (StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler()):
        found = check([scaler], X, y, folds)
        assert found.paths == {"s0": CLOSED}
    with_std = fold_steps([StandardScaler()], X, y, folds)
    assert with_std.features(7)[7, 1] == pytest.approx(1e8 - 0.1, rel=1e-15)
    chain = [VarianceThreshold(), StandardScaler()]
    assert check(chain, X, y, folds).features(7).shape == (20, 4)
    assert check(chain, X, y, folds).features(3).shape == (20, 4)
    assert check(chain, X, y, folds).features(5).shape == (20, 5)


def test_mean_much_larger_than_the_spread():
    X, y = make_data(1, n=25, p=3)
    X = np.column_stack([X, 1e7 + np.random.default_rng(0).normal(size=25)])
    check([StandardScaler()], X, y, make_folds(1, 25), rtol=1e-8)
    X[4, 0] = 1e12  # the variance without this row cancels
    found = fold_steps([StandardScaler()], X, y, make_folds(0, 25))
    kept = np.delete(np.arange(25), 4)
    wanted = StandardScaler().fit(X[kept]).scale_
    np.testing.assert_allclose(1 / found._state.factor[4], wanted, rtol=1e-13)


def test_variance_at_the_threshold():
    X = np.tile([[0.0, 0.0, 1.0], [1.0, 2.0, 3.0]], (5, 1))
    X[0] = [0.0, 5.0, 1.0]
    y = np.arange(10) % 2
    check([VarianceThreshold(0.25)], X, y, make_folds(2, 10))
    check([StandardScaler(), VarianceThreshold(0.999)], X, y, make_folds(0, 10))
    message = "failed in the fold that leaves out row 0: No feature in X meets"
    X = np.zeros((6, 2))
    X[0] = 1.0
    y = np.arange(6) % 2
    found = fold_steps([VarianceThreshold()], X, y, make_folds(0, 6))
    with pytest.raises(ValueError, match=message):
        found.features(0)


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_ties_and_missing_scores_of_a_selection(kind):
    """Equal, complementary, constant and perfect columns, with many ties at the cut."""
    rng = np.random.default_rng(kind)
    X = rng.integers(0, 2, (20, 16)).astype(float)
    y = rng.permutation(np.arange(20) % 2)
    X[:, 3], X[:, 8], X[:, 9] = X[:, 0], X[:, 0], 1 - X[:, 0]
    X[:, 4], X[:, 5], X[:, 6], X[:, 7] = 0.1, 2.0, y, 1000.3 + 1e-7 * X[:, 1]
    folds = make_folds(kind, 20)
    which = [0, 1, len(folds)]
    for k in range(2, 17, 3):
        for steps in (
            [SelectKBest(k=k)],
            [SelectKBest(f_regression, k=k)],
            [SelectPercentile(percentile=6 * k), MaxAbsScaler()],
            [StandardScaler(), SelectKBest(k=k)],
        ):
            # The rounding of the seventh column is that of its large mean.
            found = check(steps, X, y, folds, which, rtol=1e-5)
            assert set(found.paths.values()) == {CLOSED}


def test_selection_that_one_sample_changes():
    X, y = make_data(3, n=30, p=10)
    found = check([SelectKBest(k=3)], X, y, make_folds(0, 30))
    n_groups = len({found.group_of(k) for k in range(30)})
    assert 1 < n_groups < 30
    classes = y.copy()
    classes[5] = 7  # a class of one sample
    check([SelectKBest(k=3), StandardScaler()], X, classes, make_folds(0, 30))


@pytest.mark.parametrize("score", [f_classif, f_regression])
def test_selection_without_a_row_far_away(score, rng):
    """Sums about the mean of all rows are as large as that row, and so is rounding."""
    X = 1e6 + rng.normal(size=(16, 6))
    X[3] *= 1e3
    y = np.arange(16) % 2
    folds = Folds.of([np.array([i]) for i in range(16)])
    check([SelectKBest(score, k=2)], X, y, folds)


@pytest.mark.filterwarnings("ignore:Skipping features:UserWarning")
def test_column_that_is_missing_in_a_fold():
    X, y = make_data(4, n=12)
    X[:, 1] = np.nan
    X[3, 1] = 2.0  # observed in one row
    X[5, 4] = np.nan  # missing in one row: its indicator vanishes
    X[:, 5] = np.nan
    folds = make_folds(0, 12)
    for strategy in ("mean", "median", "most_frequent", "constant"):
        for keep in (False, True):
            imputer = SimpleImputer(
                strategy=strategy, add_indicator=True, keep_empty_features=keep
            )
            found = check([imputer, StandardScaler()], X, y, folds)
            assert found.paths == {"s0": CLOSED, "s1": CLOSED}
            widths = {found.features(k).shape[1] for k in range(12)}
            assert widths == ({8, 9} if keep else {7, 8})


def test_categories():
    rng = np.random.default_rng(0)
    names = rng.choice(["b", "c", "d"], 18).astype(object)
    names[4], names[[9, 10]] = "a", np.nan  # "a" occurs once
    table = pd.DataFrame(
        {
            "name": names,
            "u": np.where(rng.random(18) < 0.2, np.nan, rng.normal(size=18)),
            "code": rng.integers(0, 3, 18),
        }
    )
    y = np.arange(18) % 2
    text = SimpleImputer(strategy="most_frequent")
    words = SimpleImputer(strategy="constant", fill_value="none")
    for imputer in (text, words):
        for drop in (None, "first", "if_binary"):
            encoder = OneHotEncoder(handle_unknown="ignore", drop=drop)
            step = ColumnTransformer(
                [
                    ("text", make_pipeline(imputer, encoder), ["name"]),
                    (
                        "numbers",
                        make_pipeline(SimpleImputer(), StandardScaler()),
                        make_column_selector(dtype_include=float),
                    ),
                ],
                remainder=OneHotEncoder(handle_unknown="ignore"),
            )
            if drop is not None:
                encoder.set_params(handle_unknown="error")
                table.loc[4, "name"] = "b"
            steps = [step, StandardScaler(with_mean=False)]
            found = check(steps, table, y, make_folds(0, 18), which=[0, 4, 9, 18])
            assert found.paths == {"s0": CLOSED, "s1": CLOSED}
        table.loc[4, "name"] = "a"
    encoder = make_pipeline(text, OneHotEncoder())
    message = re.escape(
        "Step 'onehotencoder' (OneHotEncoder) failed in the fold that leaves out "
        "row 4: found unknown category 'a' in column 0"
    )
    with pytest.raises(ValueError, match=message):
        fold_steps([encoder], table[["name"]], y, make_folds(0, 18))


def test_principal_components():
    X, y = make_data(5, n=14, p=30)
    check([PCA(3)], X, y, make_folds(0, 14))
    check(
        [StandardScaler(), PCA(3), MinMaxScaler()], X, y, make_folds(1, 14), rtol=1e-10
    )
    wide, labels = make_data(2, n=50, p=80)  # by the secular equation
    for steps in ([PCA(4)], [PCA(4, whiten=True)], [PCA(3), MinMaxScaler()]):
        which = [0, 7, 50]
        check(steps, wide, labels, make_folds(0, 50), which, rtol=1e-9)
    X = X[:, :3] * [1.0, 1e-2, 1.0] + [0.0, 1e3, 0.0]
    X[3, 0] = 1e6  # nearly all the variance
    check([PCA(2)], X, y, make_folds(0, 14))
    # Equal variances: scikit-learn chooses the components.
    square = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [3.0, 3.0]])
    found = fold_steps([PCA(1)], square, np.arange(5) % 2, make_folds(0, 5))
    wanted = reference([PCA(1)], square, np.arange(5) % 2, np.array([4]))
    np.testing.assert_allclose(np.abs(found.features(4)), np.abs(wanted), atol=1e-12)
    assert found.clones == {"PCA": 1}


class Doubled(StandardScaler):
    """A subclass with another transform."""

    def transform(self, X):
        return 2 * super().transform(X)


class TwoTransforms(TransformerMixin, BaseEstimator):
    """A transformer that transforms the rows it is fitted on in another way."""

    def fit(self, X, y):
        return self

    def fit_transform(self, X, y):
        return X + y.mean()

    def transform(self, X):
        return X


class Fails(TransformerMixin, BaseEstimator):
    """A transformer that needs a row above 100."""

    def fit(self, X, y=None):
        if X[:, 0].max() < 100:
            raise TypeError("no large row")
        return self

    def transform(self, X):
        return X


def test_other_steps_are_fitted_in_each_fold():
    X, y = make_data(6, missing=0.1)
    centre = FunctionTransformer(lambda X: X - X.mean(axis=0))
    chain = [SimpleImputer(), QuantileTransformer(n_quantiles=5), StandardScaler()]
    found = check(chain, X, y, make_folds(1, 15))
    assert set(found.paths.values()) == {FITTED}
    assert found.clones["QuantileTransformer"] >= 6
    joined = FeatureUnion([("a", QuantileTransformer(n_quantiles=5)), ("b", PCA(1))])
    found = check([joined, StandardScaler()], np.nan_to_num(X), y, make_folds(1, 15))
    assert set(found.clones) == {"QuantileTransformer"}
    for step in (Doubled(), centre, TwoTransforms()):
        found = check([SimpleImputer(), step], X, y > 0, make_folds(0, 15))
        assert found.paths["s1"] == FITTED
    X = X.astype(np.float32)
    found = check([SimpleImputer(), StandardScaler()], X, y, make_folds(1, 15))
    assert found.paths == {"s0": FITTED, "s1": FITTED}
    named = ColumnTransformer([("a", "passthrough", ["u"])])
    imputer = SimpleImputer().set_output(transform="pandas")
    table = pd.DataFrame(X, columns=list("uvwxyz"))
    check([imputer, named, StandardScaler()], table, y, make_folds(1, 15))


def test_stateless_steps():
    X, y = make_data(7)
    doubled = FunctionTransformer(lambda X: 2 * X)
    steps = [doubled, Normalizer(), PolynomialFeatures(2)]
    found = check(steps, X, y, make_folds(0, 15))
    assert set(found.paths.values()) == {STATELESS}
    assert found.group_of(0) == found.group_of(14)
    found = check([StandardScaler(), Normalizer()], X, y, make_folds(0, 15))
    assert found.paths == {"s0": CLOSED, "s1": STATELESS}


def test_sparse_features():
    X, y = make_data(8, digits=0)
    folds, rows = make_folds(1, 15), sparse.csr_array(np.abs(X))
    steps = [MaxAbsScaler(), StandardScaler(with_mean=False)]
    found = fold_steps(steps, rows, y, folds)
    for k, left in enumerate(folds):
        wanted = reference(steps, np.abs(X), y, left)
        np.testing.assert_allclose(found.features(k).toarray(), wanted, atol=1e-12)
        kept = np.setdiff1d(np.arange(15), left)
        assert found.variance(k) == pytest.approx(wanted[kept].var())


def test_errors_name_fold_step_and_reason():
    X, y = make_data(9, n=10)
    X[4, 0] = 200.0
    message = (
        r"Step 's0' \(Fails\) failed in the fold that leaves out row 4: no large row"
    )
    found = fold_steps([Fails()], X, y, make_folds(0, 10))
    with pytest.raises(ValueError, match=message) as caught:
        found.features(4)
    assert isinstance(caught.value.__cause__, TypeError)
    folds = Folds.of([np.arange(7), np.array([8, 9])])
    found = fold_steps([StandardScaler(), Fails()], X * 1e6, y, folds)
    with pytest.raises(
        ValueError, match="leaves out rows 0, 1, 2, 3, 4 …: no large row"
    ):
        found.features(0)
    found = fold_steps([PCA(20)], X, y, folds)
    with pytest.raises(ValueError, match="must be between 0 and"):
        found.features(1)
    with pytest.raises(
        ValueError, match=r"Step 's0' \(Normalizer\) failed on all rows"
    ):
        fold_steps([Normalizer(norm="l3")], X, y, folds)


def test_temporary_arrays_are_bounded(monkeypatch):
    from leaveout.adapt import _columns

    X, y = make_data(10, n=15, missing=0.1)
    steps = [SimpleImputer(strategy="median"), RobustScaler(), SelectKBest(k=2)]
    whole = fold_steps(steps, X, y, make_folds(1, 15))
    monkeypatch.setattr(_columns, "BLOCK", 1)  # one column at a time
    parts = fold_steps(steps, X, y, make_folds(1, 15))
    for k in range(7):
        np.testing.assert_allclose(whole.features(k), parts.features(k), rtol=1e-14)


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler(), Binarizer()],
        [StandardScaler(), FunctionTransformer(np.sign)],
        [MinMaxScaler((-1, 1)), FunctionTransformer(np.floor)],
        [StandardScaler(), KBinsDiscretizer(4, encode="ordinal", strategy="uniform")],
        [SimpleImputer(), VarianceThreshold()],
        [SimpleImputer(), MinMaxScaler(), StandardScaler()],
        [SimpleImputer(), StandardScaler(), MaxAbsScaler()],
        [SimpleImputer(), StandardScaler(), RobustScaler()],
        [SimpleImputer(), StandardScaler(), StandardScaler()],
        [SimpleImputer(), StandardScaler(), VarianceThreshold(1 - 1e-15)],
        [SimpleImputer(), RobustScaler(), SelectKBest(k=3)],
        [SimpleImputer(), MinMaxScaler(), SelectPercentile(percentile=50)],
        [SimpleImputer(), StandardScaler(), PCA(2, svd_solver="full"), Binarizer()],
        [SimpleImputer(), StandardScaler(), Normalizer()],
        [PCA(svd_solver="full"), SelectPercentile(percentile=70)],
        [PCA(5, svd_solver="full"), MaxAbsScaler()],
        [PCA(2, whiten=True, svd_solver="full"), PCA(1, svd_solver="full")],
        [PCA(1, svd_solver="full"), OneHotEncoder(handle_unknown="ignore")],
    ],
)
@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_rounding_decides_as_in_scikit_learn(steps, kind):
    """Values at a mean or an edge, equal scores and variances, constant columns."""
    rng = np.random.default_rng(kind)
    n = 15
    X = rng.integers(-1, 2, (n, 8)).astype(float)
    X[:, 1] = 1 - X[:, 0]  # the same score and variance
    X[:, 2] = rng.permutation(X[:, 0])
    X[:, 3], X[:, 4], X[:, 5] = 0.1, 1e6 + 0.1, 1e5 + 0.3
    X[3, 5] += 1.0  # constant without this row
    X[:, 6] = 1e8 + 3e-7 * rng.integers(0, 3, n)  # a spread of a few units of rounding
    X[5] = 0.0
    if isinstance(steps[0], SimpleImputer):
        X[rng.random(X.shape) < 0.2] = np.nan
        X[5, :7] = np.nan  # the mean of the others
    y = rng.permutation(np.arange(n) % 2)
    folds = make_folds(kind, n)
    found = fold_steps(steps, X, y, folds)
    for k in range(len(folds) + 1):
        rows = folds[k] if k < len(folds) else np.empty(0, dtype=np.intp)
        Z, wanted = found.features(k), reference(steps, X, y, rows)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        assert Z.shape == wanted.shape
        np.testing.assert_allclose(Z, wanted, rtol=1e-9, atol=1e-9)
