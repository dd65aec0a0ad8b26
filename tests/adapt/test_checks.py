# SPDX-License-Identifier: BSD-3-Clause
"""Bad input: each message names the argument, what was found and what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

from leaveout import SVC
from leaveout.exceptions import CertificateWarning

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0], [0.5, 0.5], [2.5, 0.0]])
y = np.array([0, 0, 1, 1, 0, 1])
K = X @ X.T


def changed(array, index, value):
    array = np.array(array, dtype=np.float64)
    array[index] = value
    return array


def refused(error, match, X=X, y=y, sample_weight=None, **parameters):
    with pytest.raises(error, match=match):
        SVC(**parameters).fit(X, y, sample_weight)


@pytest.mark.parametrize("container", [np.array, sparse.csr_array, sparse.csr_matrix])
def test_nan_and_infinity_in_features(container):
    nan = container(changed(X, (2, 1), np.nan))
    refused(ValueError, r"X contains NaN in row 2, column 1;.*SimpleImputer", X=nan)
    inf = container(changed(X, (3, 0), -np.inf))
    refused(
        ValueError, r"X contains infinity \(inf\) in row 3, column 0;.*rescale", X=inf
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_nan_in_a_named_column(frame):
    table = frame({"width": X[:, 0], "height": changed(X[:, 1], 4, np.nan)})
    refused(ValueError, r"X contains NaN in row 4, column 'height'; 1 value", X=table)


def test_large_finite_values_are_not_called_infinite():
    values = SVC(kernel="linear", C=1e-300)
    with pytest.raises(ValueError, match=r"Gram matrix .* is not finite"):
        values.fit(changed(X, (slice(None), 0), 1e308), y)


def test_bad_values_in_predict():
    clf = SVC().fit(X, y)
    with pytest.raises(ValueError, match="X contains NaN in row 1, column 0"):
        clf.predict(changed(X, (1, 0), np.nan))
    with pytest.raises(ValueError, match="X has 3 features, but SVC is expecting 2"):
        clf.decision_function(np.ones((2, 3)))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        SVC().predict(X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_columns_are_named(frame):
    table = frame({"age": X[:, 0], "sex": list("mfmfmf"), "town": list("abcabc")})
    match = r"X has values that are not numbers in column 'sex', 'town':.*OneHotEncoder"
    refused(ValueError, match, X=table)


def test_text_columns_of_an_array_are_numbered():
    table = np.array([["a", 1.0]] * 6, dtype=object)
    refused(ValueError, r"not numbers in column 0: could not convert", X=table)
    table = np.array([[1.0, {}]] * 6, dtype=object)
    refused(TypeError, r"not numbers in column 1:.*drop them", X=table)


def test_one_class():
    refused(
        ValueError, "y has one class, .*, in all 6 rows. .*add samples", y=["a"] * 6
    )
    refused(
        ValueError,
        "y has one class, .*1.*, in all 3 rows with sample_weight > 0",
        sample_weight=y,
    )


def test_continuous_y():
    match = r"Unknown label type: continuous. y must hold class labels; .*regressor"
    refused(ValueError, match, y=y + 0.25 * X[:, 0])


def test_y_as_a_column_warns():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        SVC().fit(X, y[:, None])


@pytest.mark.parametrize(
    "missing",
    [
        [0, 0, 1, np.nan, 0, 1],
        [0, 0, 1, np.inf, 0, 1],
        np.array(["a", "a", "b", None, "a", "b"], dtype=object),
        pd.Series([0, 0, 1, None, 0, 1], dtype="Int64"),
        pl.Series(["a", "a", "b", None, "a", "b"]),
    ],
)
def test_missing_labels(missing):
    refused(ValueError, r"y has 1 missing label\(s\).* row 3. Drop", y=missing)


def test_y_missing_altogether():
    refused(ValueError, "requires y to be passed, but the target y is None", y=None)


def test_shapes_that_differ():
    refused(ValueError, "X has 6 rows but y has 5 labels. Pass one label", y=y[:5])


@pytest.mark.parametrize("C", [0, -1.0, np.nan, -np.inf])
def test_penalty_not_positive(C):
    refused(ValueError, r"C must be a finite number > 0; got ", C=C)


def test_penalty_infinite_or_no_number():
    refused(
        ValueError, "C must be finite; got inf. For a hard margin .*C=1e6", C=np.inf
    )
    for C in ("1", None, True, [1.0]):
        refused(TypeError, "C must be a number; got ", C=C)


def test_precomputed_not_square():
    match = r"precomputed Gram matrix X must be square.*got \(6, 2\).*another kernel"
    refused(ValueError, match, kernel="precomputed")


def test_precomputed_not_symmetric():
    refused(
        ValueError,
        r"not symmetric: X\[1, 3\] and X\[3, 1\] differ by 0.5",
        X=K + changed(np.zeros((6, 6)), (1, 3), 0.5),
        kernel="precomputed",
    )


def test_precomputed_sparse_or_not_finite():
    refused(TypeError, "sparse", X=sparse.csr_array(K), kernel="precomputed")
    refused(ValueError, "X contains NaN in row 0", X=K * np.nan, kernel="precomputed")


def test_precomputed_columns_in_predict():
    clf = SVC(kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match="X has 4 features, but SVC is expecting 6"):
        clf.predict(K[:, :4])


def test_negative_weights():
    refused(
        ValueError,
        r"sample_weight must be finite and >= 0; got -1 in row 2 \(1 such.*Use 0",
        sample_weight=[1, 1, -1, 1, 1, 1],
    )
    refused(ValueError, "got nan in row 0", sample_weight=[np.nan, 1, 1, 1, 1, 1])
    refused(ValueError, "got inf in row 5", sample_weight=[1, 1, 1, 1, 1, np.inf])


def test_weights_all_zero():
    refused(ValueError, "sample_weight is zero in all rows", sample_weight=np.zeros(6))


def test_weights_of_wrong_shape_or_kind():
    match = r"sample_weight has shape \(5,\), but X has 6 rows. Pass one weight per row"
    refused(ValueError, match, sample_weight=np.ones(5))
    refused(ValueError, r"shape \(6, 1\)", sample_weight=np.ones((6, 1)))
    refused(ValueError, "sample_weight must hold numbers", sample_weight=list("abcdef"))


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"kernel": "rbff"}, ValueError, "kernel must be one of 'linear'.*got 'rbff'"),
        ({"kernel": 3}, ValueError, "kernel must be one of .* or a callable; got 3"),
        ({"gamma": "auto_"}, ValueError, "gamma must be 'scale', 'auto' or a number"),
        ({"gamma": -0.1}, ValueError, "gamma must be a finite number >= 0; got -0.1"),
        ({"degree": 1.5}, ValueError, "degree must be a whole number >= 0; got 1.5"),
        ({"coef0": np.nan}, ValueError, "coef0 must be a finite number; got nan"),
        ({"tol": 0}, ValueError, "tol must be a finite number > 0; got 0"),
        ({"tol": "a"}, TypeError, "tol must be a number; got 'a'"),
        ({"max_iter": -2}, ValueError, "max_iter must be -1 or more; got -2"),
        ({"max_iter": 1.0}, TypeError, "max_iter must be a whole number; got 1.0"),
        ({"fit_intercept": "no"}, TypeError, "fit_intercept must be True or False"),
        ({"break_ties": 1}, TypeError, "break_ties must be True or False; got 1"),
        (
            {"decision_function_shape": "ova"},
            ValueError,
            "decision_function_shape must be 'ovr' or 'ovo'; got 'ova'",
        ),
        (
            {"decision_function_shape": "ovo", "break_ties": True},
            ValueError,
            "break_ties=True needs decision_function_shape='ovr'",
        ),
        (
            {"class_weight": "balance"},
            ValueError,
            "class_weight must be None, 'balanced' or a dict .*got 'balance'",
        ),
        (
            {"class_weight": {0: 1.0, 1: -2.0}},
            ValueError,
            r"class_weight\[1\] must be a finite number > 0; got -2.0",
        ),
        ({"class_weight": {0: 1.0, 7: 2.0}}, ValueError, "not in class_weight"),
    ],
)
def test_bad_parameters(parameters, error, match):
    refused(error, match, **parameters)


def test_callable_kernel_of_wrong_shape():
    refused(ValueError, r"has shape \(6,\), but \(6, 6\)", kernel=lambda a, b: a @ b[0])


def test_indefinite_kernel_warns_with_the_eigenvalue():
    with pytest.warns(CertificateWarning, match=r"'precomputed' is not .* is -1\b"):
        SVC(kernel="precomputed").fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.warns(CertificateWarning, match="'sigmoid' is not positive semi-def"):
        SVC(kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X, y)


def test_missed_tolerance_warns_with_the_residual_and_the_remedy():
    match = (
        r"1 of 1 machine\(s\) did not converge: KKT residual .*tol=1e-30.*max_iter=-1"
    )
    with pytest.warns(ConvergenceWarning, match=match) as caught:
        clf = SVC(tol=1e-30).fit(X, y)  # below what rounding allows
    assert caught[0].filename == __file__
    assert clf.fit_status_ == 1


@pytest.mark.parametrize("max_iter", [0, 1, 2, 5, 20])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_more_steps_than_max_iter(max_iter, fit_intercept):
    rng = np.random.default_rng(max_iter)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    clf = SVC(C=100, max_iter=max_iter, fit_intercept=fit_intercept)
    with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter}"):
        clf.fit(X, y)
    assert clf.n_iter_[0] <= max_iter


def test_inputs_are_not_changed():
    copies = X.copy(), y.copy(), np.linspace(0.5, 2, 6)
    SVC(C=3).fit(X, y, copies[2])
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(y, copies[1])
    np.testing.assert_array_equal(copies[2], np.linspace(0.5, 2, 6))
    gram = K.copy()
    SVC(kernel="precomputed").fit(gram, y)
    np.testing.assert_array_equal(gram, K)
