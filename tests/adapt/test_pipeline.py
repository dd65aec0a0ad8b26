# SPDX-License-Identifier: BSD-3-Clause
"""Pipelines: frozen steps, refitted steps, and steps that use y."""

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
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KernelCenterer,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.utils import all_estimators

from leaveout import (
    SVC,
    CertificateWarning,
    SingletonClassWarning,
    leave_one_out,
)
from leaveout.adapt import _pipeline
from leaveout.adapt._pipeline import take_rows

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
TIGHT = sklearn.svm.SVC(tol=1e-10)
BALANCED = sklearn.svm.SVC(tol=1e-10, class_weight="balanced")
PRECOMPUTED = sklearn.svm.SVC(kernel="precomputed", tol=1e-10)


def frozen(estimator, X, y, **arguments):
    return leave_one_out(estimator, X, y, preprocessing="frozen", **arguments)


# In the fold: equal to cross_val_predict

CANCER, BENIGN = load_breast_cancer(return_X_y=True)
FRAME = pd.DataFrame(X[::4], columns=["a", "b", "c", "d"])
FRAME["kind"] = np.where(FRAME["a"] > FRAME["a"].median(), "long", "short")
COLUMNS = make_column_transformer(
    (OneHotEncoder(), ["kind"]), (StandardScaler(), ["b", "c"])
)
NESTED = make_pipeline(StandardScaler(), None, make_pipeline(PCA(2), TIGHT))
SCALED = sklearn.svm.SVC(kernel="linear", C=2.0**-24, tol=1e-10)
NOISE = np.random.default_rng(0).normal(size=(40, 500))
TEXTS = ["red fox", "red hen", "blue sea", "blue sky", "red sun", "blue sea sky"]
GRAM = rbf_kernel(X[50:][::2], gamma=0.3)


@pytest.mark.parametrize(
    ("pipeline", "X", "y"),
    [
        (make_pipeline(StandardScaler(), PCA(5), BALANCED), CANCER[::8], BENIGN[::8]),
        (make_pipeline(PCA(3), OneVsRestClassifier(BALANCED)), X[::4], y[::4]),
        (NESTED, X[::4], y[::4]),
        (make_pipeline("passthrough", TIGHT), X[::4], y[::4]),  # gamma per fold
        (make_pipeline("passthrough", SCALED), 4096 * X[::4], y[::4]),
        (make_pipeline(SelectKBest(k=10), TIGHT), NOISE, np.arange(40) % 2),
        (make_pipeline(TfidfVectorizer(), TIGHT), TEXTS, np.array(list("rrbbrb"))),
        (make_pipeline(KernelCenterer(), PRECOMPUTED), GRAM, y[50:][::2]),
        (make_pipeline(COLUMNS, TIGHT), FRAME, y[::4]),
    ],
)
def test_refit_equals_scikit_learn(pipeline, X, y):
    before = content_hash(pipeline)
    result = leave_one_out(pipeline, X, y)
    assert content_hash(pipeline) == before
    clear = ~result.ambiguous
    predictions, values = honest_refits(pipeline, X, y)
    np.testing.assert_array_equal(result.predictions[clear], predictions[clear])
    np.testing.assert_allclose(result.decision_values, values, atol=1e-4)
    how = "refit" if pipeline[-1] is PRECOMPUTED else "walk"
    one_kernel = pipeline[-1] is SCALED  # no step, and no gamma: plain walks
    assert one_kernel or (result.settled_by == how).all()
    assert result.method == how
    assert result.certified.all()


@pytest.mark.parametrize("svc", [BALANCED, OneVsRestClassifier(BALANCED)])
def test_refit_of_groups_equals_leave_one_group_out(svc):
    groups = np.random.default_rng(2).permutation(np.arange(60) % 9)
    few, labels = X[30:][::2], y[30:][::2]
    groups[labels == 0] = 4  # class 0 is in this group only
    data = make_pipeline(StandardScaler(), svc), few, labels
    with parallel_config(backend="threading"):
        result = leave_one_out(*data, groups=groups, n_jobs=2)
    wanted = cross_val_predict(*data, groups=groups, cv=LeaveOneGroupOut())
    clear = ~result.ambiguous
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(result.predictions[clear], wanted[clear])
    assert result.wrong[labels == 0].all()
    assert result.counts["refits"] == 0


def test_refit_passes_weights_to_the_svc_only():
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 50)
    weights[::7] = 0.0
    Xs, ys = X[50:][::2], y[50:][::2]
    pipeline = make_pipeline(StandardScaler(), TIGHT)
    result = leave_one_out(pipeline, Xs, ys, sample_weight=weights)
    _, wanted = honest_refits(pipeline, Xs, ys, weights, "svc__sample_weight")
    np.testing.assert_allclose(result.decision_values, wanted, atol=1e-5)


def test_refit_takes_all_table_types():
    pipeline = make_pipeline(StandardScaler(with_mean=False), SVC())
    wanted = leave_one_out(pipeline, X[::10], y[::10])
    polars = pl.DataFrame(X[::10], schema=["a", "b", "c", "d"])
    for table in (polars, sparse.coo_matrix(X[::10]), X[::10].tolist()):
        found = leave_one_out(pipeline, table, y[::10])
        np.testing.assert_allclose(
            found.decision_values, wanted.decision_values, atol=1e-12
        )
    table = pa.table({"a": [1, 2, 3], "b": [4.0, 5.0, 6.0]})
    assert take_rows(table, np.array([0, 2])).to_pydict() == {"a": [1, 3], "b": [4, 6]}


def test_an_error_in_a_fold_names_the_row():
    frame = pd.DataFrame({"kind": list("aabbabc"), "x": range(7)})
    columns = make_column_transformer((OneHotEncoder(), ["kind"]))
    labels = [0, 0, 1, 1, 0, 1, 1]
    steps = make_pipeline(columns, SVC())
    with pytest.raises(ValueError, match=r"leaves out row 6: found unknown category"):
        leave_one_out(steps, frame, labels)
    with pytest.raises(ValueError, match="unknown categories") as caught:
        leave_one_out(steps, frame, labels, method="refit")
    assert "left out row 6" in caught.value.__notes__[0]


def test_features_that_are_not_finite_in_a_fold_name_the_row():
    few, labels = np.arange(24.0).reshape(12, 2), np.arange(12) % 2
    few[:, 1] = np.where(np.arange(12) == 3, 1.0, 0.0)

    class Whiten(TransformerMixin, BaseEstimator):
        def fit(self, X, y):
            self.spread_ = X.std(axis=0)
            return self

        def transform(self, X):
            with np.errstate(all="ignore"):
                return X / self.spread_

    pipeline = make_pipeline(Whiten(), SVC(gamma=1.0))
    with pytest.raises(ValueError, match="NaN") as caught:
        leave_one_out(pipeline, few, labels)
    assert "left out row 3" in caught.value.__notes__[0]


@pytest.mark.parametrize("svc", [BALANCED, OneVsRestClassifier(BALANCED)])
def test_refit_of_a_singleton_class(svc, rng):
    few, labels = rng.normal(size=(20, 2)), np.arange(20) == 11
    pipeline = make_pipeline(StandardScaler(), svc)
    with pytest.warns(SingletonClassWarning, match=r"has only 1 sample \(row 11\)"):
        result = leave_one_out(pipeline, few, labels)
    assert not result.predictions[11]


def test_refit_of_an_indefinite_kernel_is_not_certified():
    pipeline = make_pipeline(StandardScaler(), SVC(kernel="sigmoid", gamma=1.0))
    with pytest.warns(CertificateWarning, match=r"in 30 of 30 folds") as caught:
        result = leave_one_out(pipeline, X[::5], y[::5])
    assert not result.certified.any()
    assert caught[0].filename == __file__


# Frozen: equal to the transformer applied beforehand


@pytest.mark.parametrize("rest", [False, True])
def test_frozen_equals_the_steps_applied_beforehand(rest, tmp_path):
    svc = SVC(C=10.0, gamma=0.2)
    last = OneVsRestClassifier(svc) if rest else svc
    inner = make_pipeline(PCA(3), last)
    steps = [("scale", StandardScaler()), ("off", "passthrough"), ("inner", inner)]
    pipeline = Pipeline(steps, memory=str(tmp_path))
    before = content_hash(pipeline)
    weights = np.linspace(0.0, 2.0, 150)
    result = frozen(pipeline, X, NAMES[y], sample_weight=weights)
    assert content_hash(pipeline) == before
    assert list(tmp_path.iterdir()) == []
    Z = PCA(3).fit_transform(StandardScaler().fit_transform(X))
    wanted = leave_one_out(last, Z, NAMES[y], sample_weight=weights)
    np.testing.assert_array_equal(result.decision_values, wanted.decision_values)


def test_frozen_steps_are_not_fitted():
    scaler = StandardScaler().fit(X[:50])
    mean = scaler.mean_.copy()
    pipeline = make_pipeline(FrozenEstimator(scaler), SVC())
    for how in ("fold", "frozen"):
        result = leave_one_out(pipeline, X, y, preprocessing=how)
        np.testing.assert_array_equal(scaler.mean_, mean)
        wanted = leave_one_out(SVC(), scaler.transform(X), y, preprocessing=how)
        np.testing.assert_allclose(
            result.decision_values, wanted.decision_values, atol=1e-9
        )


PIPELINE = make_pipeline(StandardScaler(), SVC())


@pytest.mark.parametrize(
    ("estimator", "labels", "options", "match"),
    [
        (
            PIPELINE,
            y,
            {"method": "magic"},
            r"'magic' needs one Gram .* steps .*'frozen'",
        ),
        (SVC(), y, {"method": "magic"}, r"'magic' needs one Gram .* number for gamma"),
        (PIPELINE, y[1:], {}, "X has 150 rows but y has 149 labels"),
        (PIPELINE, 0 * y, {}, "y has only one class, 0, in all 150 rows"),
        (SVC(), y, {"preprocessing": "thaw"}, r"'fold' .* or 'frozen' .*; got 'thaw'"),
    ],
)
def test_bad_arguments(estimator, labels, options, match):
    with pytest.raises(ValueError, match=match):
        leave_one_out(estimator, X, labels, **options)


# Steps that use y


class Picky(TransformerMixin, BaseEstimator):
    """Raise unless the labels are sorted."""

    def fit(self, X, y):
        if (np.diff(y) < 0).any():
            raise ValueError("y is not sorted")
        return self

    def transform(self, X):
        return X


class Impostor(StandardScaler):
    """A StandardScaler that uses y, not scikit-learn's own."""

    def fit(self, X, y=None):
        return super().fit(X[y == y[0]])


Impostor.__name__ = "StandardScaler"


@pytest.mark.parametrize(
    "step",
    [
        SelectKBest(k=2),
        SelectFromModel(ExtraTreesClassifier(20)),
        PLSRegression(2),
        Picky(),
        Impostor(),
        make_column_transformer((Impostor(), [0, 1]), remainder=StandardScaler()),
    ],
)
def test_steps_that_use_y_are_refused(step):
    pipeline = Pipeline([("scale", StandardScaler()), ("mine", step), ("svc", SVC())])
    what = rf"Step 'mine' \({type(step).__name__}\) uses y: .* error is underest"
    with pytest.raises(ValueError, match=what):
        frozen(pipeline, X, y)


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler().set_output(transform="pandas"),
        PCA(2, svd_solver="randomized"),
        Nystroem(gamma=0.2, n_components=20),
        make_pipeline(
            OneHotEncoder(handle_unknown="ignore")
        ),  # sparse, and tried on permuted labels
        SelectKBest(k="all"),
    ],
)
def test_steps_that_ignore_y_are_not_refused(step):
    np.random.seed(5)  # noqa: NPY002
    state = content_hash(np.random.get_state())  # noqa: NPY002
    assert frozen(make_pipeline(step, SVC()), X, y).error < 0.1
    if not isinstance(step, PCA | Nystroem):  # their own fit draws random numbers
        assert content_hash(np.random.get_state()) == state  # noqa: NPY002


@pytest.mark.parametrize("name", sorted(_pipeline.IGNORE_LABELS - {"FrozenEstimator"}))
def test_listed_steps_ignore_labels(name):
    step = dict(all_estimators(type_filter="transformer"))[name]()
    assert _pipeline._known_to_ignore_labels(step)
    holes = X.copy()
    if name in ("MissingIndicator", "SimpleImputer"):
        holes[::7, 1] = np.nan
    _pipeline._check_ignores_labels(name, step, holes, NAMES[y])


def test_text_and_missing_values_between_steps():
    kinds = np.array([["a", "b"], ["a", None], ["b", "b"], ["a", "a"]] * 5, object)
    labels = np.array([0, 0, 1, 0] * 5)
    imputer = SimpleImputer(strategy="most_frequent", missing_values=None)
    same = FunctionTransformer()  # not in the list, so it is tried on permuted labels
    steps = make_pipeline(imputer, same, OneHotEncoder(), SVC(C=10))
    assert frozen(steps, kinds, labels).error == 0.0
    holes = np.where(np.arange(600).reshape(150, 4) % 7 == 0, np.nan, X)
    assert frozen(make_pipeline(same, SimpleImputer(), SVC()), holes, y).error < 0.2


def test_random_step_is_refused_as_random():
    jitter = FunctionTransformer(lambda X: X + np.random.default_rng().random(X.shape))
    with pytest.raises(
        ValueError, match=r"Step 'func.* a different output at every fit"
    ):
        frozen(make_pipeline(jitter, SVC()), X, y)
