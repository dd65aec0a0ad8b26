# SPDX-License-Identifier: BSD-3-Clause
"""Pipelines: frozen steps, refitted steps, and steps that look at y."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.svm
from joblib import hash as content_hash
from joblib import parallel_config
from oracles.refits import honest_refits
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import (
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    LeaveOneGroupOut,
    LeaveOneOut,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KernelCenterer,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.utils import all_estimators

from leaveout import (
    SVC,
    CertificateWarning,
    PreprocessingWarning,
    SingletonClassWarning,
    leave_one_out,
)
from leaveout.adapt import _pipeline as _frozen
from leaveout.adapt._pipeline import take_rows

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
TIGHT = {"tol": 1e-10}


def honest(estimator, X, y):
    """What n refits by scikit-learn say."""
    return cross_val_predict(estimator, X, y, cv=LeaveOneOut())


def frozen(estimator, X, y, **arguments):
    with pytest.warns(PreprocessingWarning, match="fitted once on all rows"):
        return leave_one_out(estimator, X, y, **arguments)


def assert_refit_is_honest(pipeline, X, y, atol=1e-4, **arguments):
    before = content_hash(pipeline)
    result = leave_one_out(pipeline, X, y, preprocessing="refit", **arguments)
    assert content_hash(pipeline) == before
    clear = ~result.ambiguous
    predictions, values = honest_refits(pipeline, X, y)
    np.testing.assert_array_equal(result.predictions[clear], predictions[clear])
    np.testing.assert_allclose(result.decision_values, values, atol=atol)
    assert (result.settled_by == "refit").all()
    assert result.method == "refit"
    assert result.certified.all()
    return result


# Refit: equal to cross_val_predict


@pytest.mark.parametrize("gamma", [0.1, "scale"])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_refit_equals_scikit_learn(load, gamma):
    X, y = load(return_X_y=True)
    X, y = X[::2], y[::2]
    pipeline = make_pipeline(StandardScaler(), sklearn.svm.SVC(gamma=gamma, **TIGHT))
    result = leave_one_out(pipeline, X, y, preprocessing="refit")
    assert result.n_ambiguous == 0
    np.testing.assert_array_equal(result.predictions, honest(pipeline, X, y))


def test_refit_of_two_classes_with_labels_of_text():
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.arange(0, 569, 8)
    svc = sklearn.svm.SVC(class_weight="balanced", **TIGHT)
    pipeline = make_pipeline(StandardScaler(), PCA(5), svc)
    result = assert_refit_is_honest(pipeline, X[rows], np.array(["m", "b"])[y[rows]])
    assert result.decision_values.shape == rows.shape
    assert result.predictions.dtype.kind == "U"


def test_refit_of_a_selection_inside_the_fold():
    # Noise: selected on all rows it seems to predict, inside the fold it does not.
    rng = np.random.default_rng(0)
    noise, labels = rng.normal(size=(40, 500)), np.arange(40) % 2
    selection = SelectKBest(k=10)
    svc = sklearn.svm.SVC(kernel="linear", **TIGHT)
    result = assert_refit_is_honest(make_pipeline(selection, svc), noise, labels)
    outside = leave_one_out(svc, selection.fit_transform(noise, labels), labels)
    assert result.error >= 0.4
    assert outside.error <= 0.15


def test_refit_of_one_vs_rest():
    svc = sklearn.svm.SVC(class_weight="balanced", **TIGHT)
    pipeline = make_pipeline(StandardScaler(), OneVsRestClassifier(svc))
    assert_refit_is_honest(pipeline, X[::4], y[::4])


def test_refit_of_every_kind_of_nesting():
    inner = Pipeline(
        [
            ("union", FeatureUnion([("pca", PCA(2)), ("same", "passthrough")])),
            ("off", None),
            ("svc", sklearn.svm.SVC(**TIGHT)),
        ]
    )
    columns = make_column_transformer((StandardScaler(), [0, 1]), remainder=PCA(1))
    pipeline = make_pipeline(columns, "passthrough", inner)
    assert_refit_is_honest(pipeline, X[::4], y[::4])


def test_refit_without_steps_resolves_gamma_per_fold():
    pipeline = make_pipeline("passthrough", sklearn.svm.SVC(**TIGHT))
    assert_refit_is_honest(pipeline, X[::4], y[::4])


@pytest.mark.parametrize(
    "backend", ["threading", pytest.param("loky", marks=pytest.mark.nightly)]
)
def test_refit_in_parallel_gives_the_same_numbers(backend):
    pipeline = make_pipeline(StandardScaler(), SVC())
    one = leave_one_out(pipeline, X[::5], y[::5], preprocessing="refit")
    with parallel_config(backend=backend):
        two = leave_one_out(pipeline, X[::5], y[::5], preprocessing="refit", n_jobs=2)
    np.testing.assert_array_equal(one.decision_values, two.decision_values)
    np.testing.assert_array_equal(one.lower, two.lower)


@pytest.mark.parametrize("rest", [False, True])
def test_refit_of_groups_equals_leave_one_group_out(rest):
    groups = np.random.default_rng(2).permutation(np.arange(60) % 9)
    few, labels = X[30:][::2], y[30:][::2]
    groups[labels == 0] = 4  # without this group there is one class less
    svc = sklearn.svm.SVC(class_weight="balanced", **TIGHT)
    pipeline = make_pipeline(
        StandardScaler(), OneVsRestClassifier(svc) if rest else svc
    )
    result = leave_one_out(pipeline, few, labels, groups=groups, preprocessing="refit")
    wanted = cross_val_predict(
        pipeline, few, labels, groups=groups, cv=LeaveOneGroupOut()
    )
    clear = ~result.ambiguous
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(result.predictions[clear], wanted[clear])
    assert result.wrong[labels == 0].all()
    assert result.counts["refits"] == 9 * 3


def test_refit_gives_weights_to_the_svc_alone():
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 50)
    weights[::7] = 0.0
    Xs, ys = X[50:][::2], y[50:][::2]
    pipeline = make_pipeline(StandardScaler(), sklearn.svm.SVC(C=5.0, **TIGHT))
    result = leave_one_out(
        pipeline, Xs, ys, sample_weight=weights, preprocessing="refit"
    )
    wanted = []
    for r in range(50):
        kept = np.delete(np.arange(50), r)
        pipeline.fit(Xs[kept], ys[kept], svc__sample_weight=weights[kept])
        wanted.append(pipeline.decision_function(Xs[[r]])[0])
    np.testing.assert_allclose(result.decision_values, wanted, atol=1e-5)


def test_refit_of_a_precomputed_kernel_leaves_out_its_column_too():
    K = rbf_kernel(X[50:][::2], gamma=0.3)
    pipeline = make_pipeline(
        KernelCenterer(), sklearn.svm.SVC(kernel="precomputed", **TIGHT)
    )
    assert_refit_is_honest(pipeline, K, y[50:][::2])
    bare = make_pipeline(sklearn.svm.SVC(kernel="precomputed", **TIGHT))
    assert_refit_is_honest(bare, K, y[50:][::2])


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame,
        lambda X: pl.DataFrame(X, schema=["a", "b", "c", "d"]),
        sparse.csr_array,
        sparse.coo_matrix,
        np.ndarray.tolist,
    ],
    ids=["pandas", "polars", "csr", "triplets", "list"],
)
def test_refit_takes_all_kinds_of_tables(table):
    few = X[::10]
    pipeline = make_pipeline(StandardScaler(with_mean=False), SVC())
    wanted = leave_one_out(pipeline, few, y[::10], preprocessing="refit")
    found = leave_one_out(pipeline, table(few), y[::10], preprocessing="refit")
    np.testing.assert_allclose(
        found.decision_values, wanted.decision_values, atol=1e-12
    )


def test_rows_of_an_arrow_table():
    table = pa.table({"a": [1, 2, 3], "b": [4.0, 5.0, 6.0]})
    assert take_rows(table, np.array([0, 2])).to_pydict() == {"a": [1, 3], "b": [4, 6]}


def test_columns_of_names_and_of_text():
    frame = pd.DataFrame(X[::4], columns=["a", "b", "c", "d"])
    frame["kind"] = np.where(frame["a"] > frame["a"].median(), "long", "short")
    columns = make_column_transformer(
        (OneHotEncoder(), ["kind"]), (StandardScaler(), ["b", "c"])
    )
    pipeline = make_pipeline(columns, sklearn.svm.SVC(**TIGHT))
    assert_refit_is_honest(pipeline, frame, y[::4])
    result = frozen(pipeline, frame, y[::4])
    Z = columns.fit_transform(frame)
    wanted = leave_one_out(sklearn.svm.SVC(), Z, y[::4])
    np.testing.assert_array_equal(result.decision_values, wanted.decision_values)


def test_documents():
    texts = ["red fox", "red hen", "blue sea", "blue sky", "red sun", "blue sea sky"]
    labels = ["r", "r", "b", "b", "r", "b"]
    pipeline = make_pipeline(TfidfVectorizer(), sklearn.svm.SVC(kernel="linear"))
    result = leave_one_out(pipeline, texts, labels, preprocessing="refit")
    np.testing.assert_array_equal(result.predictions, honest(pipeline, texts, labels))
    assert frozen(pipeline, texts, labels).error == 0.0


def test_an_error_in_a_fold_names_the_row():
    frame = pd.DataFrame({"kind": list("aabbabc"), "x": range(7)})
    columns = make_column_transformer((OneHotEncoder(), ["kind"]))
    with pytest.raises(ValueError, match="unknown categories") as caught:
        leave_one_out(
            make_pipeline(columns, SVC()),
            frame,
            [0, 0, 1, 1, 0, 1, 1],
            preprocessing="refit",
        )
    assert "without row 6" in caught.value.__notes__[0]


@pytest.mark.parametrize("rest", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_refit_of_a_class_with_one_member(rest, n_classes):
    rng = np.random.default_rng(3)
    few, labels = rng.normal(size=(20, 2)), np.arange(20) % (n_classes - 1)
    labels[11] = n_classes - 1
    svc = SVC(class_weight="balanced")
    pipeline = make_pipeline(
        StandardScaler(), OneVsRestClassifier(svc) if rest else svc
    )
    with pytest.warns(SingletonClassWarning, match=r"has 1 sample \(row 11\)"):
        result = leave_one_out(pipeline, few, labels, preprocessing="refit")
    assert result.predictions[11] != labels[11]
    if n_classes > 2:  # scikit-learn refuses to fit one class
        clear = ~result.ambiguous
        wanted = honest(pipeline, few, labels)
        np.testing.assert_array_equal(result.predictions[clear], wanted[clear])


def test_refit_of_an_indefinite_kernel_is_not_certified():
    pipeline = make_pipeline(StandardScaler(), SVC(kernel="sigmoid", gamma=1.0))
    with pytest.warns(CertificateWarning, match=r"in 30 of 30 folds"):
        result = leave_one_out(pipeline, X[::5], y[::5], preprocessing="refit")
    assert not result.certified.any()


def test_refit_and_a_walk_exclude_each_other():
    pipeline = make_pipeline(StandardScaler(), SVC())
    with pytest.raises(ValueError, match=r"method='walk' needs one Gram .*'frozen'"):
        leave_one_out(pipeline, X, y, preprocessing="refit", method="walk")
    result = leave_one_out(
        pipeline, X[::5], y[::5], preprocessing="refit", method="refit"
    )
    assert result.method == "refit"


# Frozen: equal to the transformer applied beforehand


@pytest.mark.parametrize("rest", [False, True])
def test_frozen_equals_the_steps_applied_beforehand(rest):
    svc = sklearn.svm.SVC(C=10.0, gamma=0.2, **TIGHT)
    last = OneVsRestClassifier(svc) if rest else svc
    pipeline = Pipeline(
        [
            ("scale", StandardScaler()),
            ("off", "passthrough"),
            ("inner", Pipeline([("pca", PCA(3)), ("last", last)])),
        ]
    )
    before = content_hash(pipeline)
    result = frozen(pipeline, X, NAMES[y])
    assert content_hash(pipeline) == before
    Z = PCA(3).fit_transform(StandardScaler().fit_transform(X))
    np.testing.assert_array_equal(result.predictions, honest(last, Z, NAMES[y]))
    wanted = leave_one_out(last, Z, NAMES[y])
    np.testing.assert_array_equal(result.decision_values, wanted.decision_values)


def test_the_warning_is_one_sentence_and_names_the_users_line():
    pipeline = make_pipeline(StandardScaler(), PCA(2), SVC())
    with pytest.warns(PreprocessingWarning) as caught:
        leave_one_out(pipeline, X, y)
    assert len(caught) == 1
    assert str(caught[0].message) == (
        "The Pipeline's 'standardscaler', 'pca' are fitted once on all rows, also "
        "those left out later; preprocessing='refit', in leave_one_out and "
        "LooSearchCV, fits anew without each sample, which is slower."
    )
    assert caught[0].filename == __file__


def test_no_warning_where_nothing_is_fitted():
    leave_one_out(make_pipeline("passthrough", None, SVC()), X, y)
    leave_one_out(make_pipeline(SVC()), X, y)
    few = slice(None, None, 10)
    pipeline = make_pipeline(StandardScaler(), SVC())
    leave_one_out(pipeline, X[few], y[few], preprocessing="refit")


def test_frozen_gives_weights_to_the_svc_alone():
    weights = np.linspace(0.0, 2.0, 150)
    result = frozen(make_pipeline(StandardScaler(), SVC()), X, y, sample_weight=weights)
    Z = StandardScaler().fit_transform(X)
    wanted = leave_one_out(SVC(), Z, y, sample_weight=weights)
    np.testing.assert_array_equal(result.decision_values, wanted.decision_values)


def test_a_frozen_estimator_is_not_fitted_again():
    scaler = StandardScaler().fit(X[:50])
    mean = scaler.mean_.copy()
    pipeline = make_pipeline(FrozenEstimator(scaler), SVC())
    result = leave_one_out(pipeline, X, y)  # nothing is fitted, no warning
    np.testing.assert_array_equal(scaler.mean_, mean)
    again = leave_one_out(pipeline, X[::5], y[::5], preprocessing="refit")
    np.testing.assert_array_equal(scaler.mean_, mean)
    wanted = leave_one_out(SVC(), scaler.transform(X), y)
    np.testing.assert_array_equal(result.decision_values, wanted.decision_values)
    assert again.certified.all()


def test_preprocessing_must_be_known_and_is_ignored_without_a_pipeline():
    with pytest.raises(ValueError, match=r"'frozen' .* or 'refit' .*; got 'thaw'"):
        leave_one_out(SVC(), X, y, preprocessing="thaw")
    one = leave_one_out(SVC(), X, y, preprocessing="refit")
    two = leave_one_out(SVC(), X, y)
    assert one.method == two.method == "walk"
    np.testing.assert_array_equal(one.decision_values, two.decision_values)


@pytest.mark.filterwarnings("ignore::leaveout.PreprocessingWarning")
def test_bad_labels_are_refused_before_anything_is_fitted():
    pipeline = make_pipeline(StandardScaler(), SVC())
    for preprocessing in ("frozen", "refit"):
        with pytest.raises(ValueError, match="X has 150 rows but y has 149 labels"):
            leave_one_out(pipeline, X, y[1:], preprocessing=preprocessing)
        with pytest.raises(ValueError, match="y has one class, 0, in all 150 rows"):
            leave_one_out(pipeline, X, 0 * y, preprocessing=preprocessing)


# Steps that look at y


class PLSScores(TransformerMixin, BaseEstimator):
    """Scores of partial least squares, as a transformer that Pipeline can use."""

    def fit(self, X, y):
        self.pls_ = PLSRegression(2).fit(X, y)
        return self

    def transform(self, X):
        return self.pls_.transform(X)


class Jitter(TransformerMixin, BaseEstimator):
    """Noise from a generator nobody can seed."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X + np.random.default_rng().normal(size=X.shape)


class Picky(TransformerMixin, BaseEstimator):
    """Fails unless the labels are sorted."""

    def fit(self, X, y):
        if (np.diff(y) < 0).any():
            raise ValueError("y is not sorted")
        return self

    def transform(self, X):
        return X


USE_LABELS = [
    SelectKBest(k=2),
    SelectPercentile(percentile=50),
    SelectFromModel(sklearn.svm.LinearSVC(C=0.01, penalty="l1")),
    SelectFromModel(ExtraTreesClassifier(20, random_state=0)),
    SelectFromModel(ExtraTreesClassifier(20)),
    PLSRegression(2),
    PLSScores(),
    LinearDiscriminantAnalysis(),
    NeighborhoodComponentsAnalysis(max_iter=5),
    TargetEncoder(),
    make_pipeline(StandardScaler(), SelectKBest(k=2)),
    make_union(PCA(2), SelectKBest(k=1)),
    make_column_transformer((SelectKBest(k=1), [0, 1, 2]), remainder="passthrough"),
    Picky(),
]
IGNORE_LABELS = [
    StandardScaler(),
    StandardScaler().set_output(transform="pandas"),
    PCA(2),
    PCA(2, svd_solver="randomized"),
    TruncatedSVD(2),
    SimpleImputer(),
    KNNImputer(),
    Nystroem(gamma=0.2, n_components=20, random_state=0),
    Nystroem(gamma=0.2, n_components=20, random_state=np.random.RandomState(0)),
    Nystroem(gamma=0.2, n_components=20),
    PolynomialFeatures(2),
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    QuantileTransformer(n_quantiles=20),
    VarianceThreshold(0.3),
    SelectKBest(k="all"),
    FunctionTransformer(np.log1p),
    make_union(PCA(2), StandardScaler()),
    make_pipeline(StandardScaler(), Nystroem(gamma=0.2, n_components=20)),
]


def name_of(step):
    return type(step).__name__


@pytest.mark.parametrize("step", USE_LABELS, ids=name_of)
def test_steps_that_use_y_are_refused(step):
    pipeline = Pipeline([("scale", StandardScaler()), ("mine", step), ("svc", SVC())])
    before = content_hash(pipeline)
    message = (
        rf"Step 'mine' \({name_of(step)}\) uses y: .* the error comes out too small. "
        r"Use leave_one_out\(..., preprocessing='refit'\)"
    )
    with pytest.raises(ValueError, match=message):
        leave_one_out(pipeline, X, y)
    assert content_hash(pipeline) == before


@pytest.mark.parametrize("step", IGNORE_LABELS, ids=name_of)
def test_steps_that_ignore_y_are_not_refused(step):
    holes = X.copy()
    if "Imputer" in name_of(step):
        holes[::7, 1] = np.nan
    result = frozen(make_pipeline(step, SVC()), holes, y)
    assert result.error < 0.1


@pytest.mark.parametrize("name", sorted(_frozen.IGNORE_LABELS - {"FrozenEstimator"}))
def test_steps_that_are_spared_the_trial_would_pass_it(name):
    step = dict(all_estimators(type_filter="transformer"))[name]()
    assert _frozen._known_to_ignore_labels(step)
    holes = X.copy()
    if name in ("MissingIndicator", "SimpleImputer"):
        holes[::7, 1] = np.nan
    _frozen._check_ignores_labels(name, step, holes, NAMES[y])


def test_a_spared_step_of_another_make_is_tried():
    class Mine(StandardScaler):
        def fit(self, X, y=None):
            return super().fit(X[y == y[0]])

    Mine.__name__ = "StandardScaler"
    with pytest.raises(ValueError, match="uses y"):
        leave_one_out(make_pipeline(Mine(), SVC()), X, y)
    hidden = make_column_transformer((Mine(), [0, 1]), remainder=StandardScaler())
    with pytest.raises(ValueError, match="uses y"):
        leave_one_out(make_pipeline(hidden, SVC()), X, y)


def test_text_may_go_from_step_to_step():
    kinds = np.array([["a", "b"], ["a", None], ["b", "b"], ["a", "a"]] * 5, object)
    labels = np.array([0, 0, 1, 0] * 5)
    imputer = SimpleImputer(strategy="most_frequent", missing_values=None)
    result = frozen(make_pipeline(imputer, OneHotEncoder(), SVC(C=10)), kinds, labels)
    assert result.error == 0.0


def test_a_step_without_a_seed_is_not_accused_of_using_y():
    with pytest.raises(ValueError, match=r"Step 'jitter' .* another output at every"):
        leave_one_out(make_pipeline(Jitter(), SVC()), X, y)


def test_the_global_random_state_is_not_touched():
    np.random.seed(5)  # noqa: NPY002
    wanted = np.random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    frozen(make_pipeline(StandardScaler(), SVC()), X, y)
    assert np.random.random() == wanted  # noqa: NPY002


def test_the_cache_of_a_pipeline_is_not_used(tmp_path):
    pipeline = make_pipeline(StandardScaler(), SVC(), memory=str(tmp_path))
    frozen(pipeline, X, y)
    assert list(tmp_path.iterdir()) == []


def test_missing_values_may_go_from_step_to_step():
    holes = X.copy()
    holes[::7, 1] = np.nan
    result = frozen(
        make_pipeline(StandardScaler(), SimpleImputer(), SVC()), holes, y == 1
    )
    assert result.error < 0.1


def test_one_rare_label_is_enough_to_see_it():
    labels = np.zeros(150, dtype=int)
    labels[:2] = 1
    with pytest.raises(ValueError, match="uses y"):
        leave_one_out(make_pipeline(SelectKBest(k=2), SVC()), X, labels)


def test_warnings_of_refitted_folds_name_the_callers_line():
    pipeline = make_pipeline(StandardScaler(), SVC(kernel="sigmoid", gamma=2.0))
    with pytest.warns(CertificateWarning, match="not positive semi-def") as caught:
        leave_one_out(pipeline, X[:20], np.arange(20) % 2, preprocessing="refit")
    assert caught[0].filename == __file__
