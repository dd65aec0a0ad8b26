# SPDX-License-Identifier: BSD-3-Clause
"""Bad input: each message names the argument, what was found and what to do."""

import string

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

from leaveout import SVC, leave_one_out
from leaveout.exceptions import CertificateWarning

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0], [0.5, 0.5], [2.5, 0.0]])
y = np.array([0, 0, 1, 1, 0, 1])
K = X @ X.T


def changed(array, index, value):
    array = np.array(array, dtype=np.float64)
    array[index] = value
    return array


NAN, INF = changed(X, (2, 1), np.nan), changed(X, (3, 0), -np.inf)
NAN_HERE = r"X contains NaN in row 2, column 1;.*SimpleImputer"
INF_HERE = r"X contains infinity \(inf\) in row 3, column 0;.*rescale"
BROKEN = sparse.csr_array(X)
BROKEN.indices[-1] = 7
NAMED = pd.DataFrame({"width": X[:, 0], "height": changed(X[:, 1], 4, np.nan)})
TEXTS = {"age": X[:, 0], "sex": list("mfmfmf"), "town": list("abcabc")}
TEXT_NAMED = r"X has values that are not numbers in column 'sex', 'town':.*OneHotEnc"
DICTS = np.array([[1.0, {}]] * 6, dtype=object)
SKEW = K + changed(np.zeros((6, 6)), (1, 3), 0.5)
PRECOMPUTED = {"kernel": "precomputed"}
LARGE = changed(X, (slice(None), 0), 1e308)


@pytest.mark.parametrize(
    ("X", "parameters", "error", "match"),
    [
        (NAN, {}, ValueError, NAN_HERE),
        (INF, {}, ValueError, INF_HERE),
        (sparse.csr_array(NAN), {}, ValueError, NAN_HERE),
        (BROKEN, {}, ValueError, "must be < 2"),
        (NAMED, {}, ValueError, "X contains NaN in row 4, column 'height'; values"),
        (pl.DataFrame(TEXTS), {}, ValueError, TEXT_NAMED),
        (DICTS, {}, TypeError, "not numbers in column 1:.*drop them"),
        # Finite values are not called infinite when their sum overflows.
        (LARGE, {"kernel": "linear"}, ValueError, "Gram matrix .* is not finite"),
        (SKEW, PRECOMPUTED, ValueError, r"X\[1, 3\] and X\[3, 1\] differ by 0.5"),
    ],
)
def test_bad_features(X, parameters, error, match):
    with pytest.raises(error, match=match):
        SVC(**parameters).fit(X, y)


ONE_MISSING = r"y is missing .* in 1 of \d+ rows, first in row 3. Drop"


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (["a"] * 6, "y has only one class, 'a', in all 6 rows. .*add samples"),
        (
            y + 0.25 * X[:, 0],
            "Unknown label type: continuous. y must .*6 distinct",
        ),
        ([0, 0, 1, np.inf, 0, 1], ONE_MISSING),
        (pd.Series([0, 0, 1, None, 0, 1], dtype="Int64"), ONE_MISSING),
        (pl.Series(["a", "a", "b", None, "a", "b"]), ONE_MISSING),
        (None, "requires y to be passed, but the target y is None"),
        (y[:5], "X has 6 rows but y has 5 labels. Pass one label"),
    ],
)
def test_bad_labels(y, match):
    with pytest.raises(ValueError, match=match):
        SVC().fit(X, y)


def test_whole_numbers_of_any_type_are_labels():
    expected = leave_one_out(SVC(gamma=0.5), X, y).predictions
    for kind in (np.float64, np.float32, bool):
        found = leave_one_out(SVC(gamma=0.5), X, y.astype(kind)).predictions
        assert np.array_equal(found.astype(int), expected)


def test_regression_targets_and_ids_are_not_classes(rng):
    numbers = load_diabetes().target  # whole numbers, as floats
    for labels in (numbers, [f"p{k}" for k in range(30)]):
        n, X = len(set(labels)), rng.normal(size=(len(labels), 2))
        found = f"y has {n} distinct values in {len(X)} rows.* bin it into classes, or"
        with pytest.raises(ValueError, match=found):
            leave_one_out(SVC(), X, labels)
    for letters in (list(string.ascii_lowercase) * 3, list(range(26)) * 2):
        assert (
            len(SVC().fit(rng.normal(size=(len(letters), 2)), letters).classes_) == 26
        )


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1, 1, -1, 1, 1, 1], r"finite and >= 0; got -1 in row 2 \(such values: 1\)"),
        (np.zeros(6), "sample_weight is zero in all rows"),
        (np.ones(5), r"has shape \(5,\), but X has 6 rows. Pass one weight per row"),
        (list("abcdef"), "sample_weight must hold numbers"),
        (y, "y has only one class, 1, in all 3 rows with sample_weight > 0"),
    ],
)
def test_bad_weights(weights, match):
    with pytest.raises(ValueError, match=match):
        SVC().fit(X, y, weights)


OVO = {"decision_function_shape": "ovo", "break_ties": True}


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"C": 0}, ValueError, "C must be a finite number > 0; got 0"),
        ({"C": np.inf}, ValueError, "C must be finite; got inf. .* hard .*C=1e6"),
        ({"C": "1"}, TypeError, "C must be a number; got '1'"),
        ({"kernel": 3}, ValueError, "kernel must be one of .* or a callable; got 3"),
        ({"kernel": lambda a, b: a @ b[0]}, ValueError, r"shape \(6,\), but \(6, 6\)"),
        ({"gamma": -0.1}, ValueError, "gamma must be a finite number >= 0; got -0.1"),
        ({"gamma": "wide"}, ValueError, "'scale', 'auto' or a number >= 0; got 'wide'"),
        ({"degree": 1.5}, ValueError, "degree must be a whole number >= 0; got 1.5"),
        ({"coef0": np.nan}, ValueError, "coef0 must be a finite number; got nan"),
        (PRECOMPUTED, ValueError, r"must be square, .*; got \(6, "),
        ({"tol": 0}, ValueError, "tol must be a finite number > 0; got 0"),
        ({"max_iter": -2}, ValueError, "max_iter must be at least -1; got -2"),
        ({"max_iter": 1.0}, TypeError, "max_iter must be an integer; got 1.0"),
        ({"break_ties": 1}, TypeError, "break_ties must be True or False; got 1"),
        ({"decision_function_shape": "a"}, ValueError, "'ovr' or 'ovo'; got 'a'"),
        (OVO, ValueError, "break_ties=True needs decision_function_shape='ovr'"),
        ({"class_weight": "balance"}, ValueError, "None, 'balanced' or .*'balance'"),
        ({"class_weight": {1: -2.0}}, ValueError, r"class_weight\[1\] .*> 0; got -2"),
        ({"class_weight": {7: 2.0}}, ValueError, "not in class_weight"),
    ],
)
def test_bad_parameters(parameters, error, match):
    with pytest.raises(error, match=match):
        SVC(**parameters).fit(X, y)


def test_bad_values_in_predict():
    with pytest.raises(ValueError, match="X contains NaN in row 2, column 1"):
        SVC().fit(X, y).predict(NAN)
    with pytest.raises(ValueError, match="X has 4 features, but SVC is expecting 6"):
        SVC(kernel="precomputed").fit(K, y).predict(K[:, :4])


NOT_PSD = [[0.0, 1.0], [1.0, 0.0]]
TOO_TIGHT = SVC(tol=1e-30)  # below what rounding allows
ROUNDED = np.random.default_rng(0).normal(size=(60, 3))
SIGNS = (ROUNDED[:, 0] > 0.3).astype(int)


@pytest.mark.parametrize(
    ("svc", "X", "y", "kind", "match"),
    [
        (SVC(**PRECOMPUTED), NOT_PSD, [0, 1], CertificateWarning, r"d' is not .* -1\b"),
        (
            TOO_TIGHT,
            ROUNDED,
            SIGNS,
            ConvergenceWarning,
            r"1 of 1 .*: KKT .*tol=1e-30.*iter=-1",
        ),
    ],
)
def test_fits_that_warn(svc, X, y, kind, match):
    with pytest.warns(kind, match=match) as caught:
        svc.fit(X, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_more_steps_than_max_iter(fit_intercept, rng):
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    clf = SVC(C=100, max_iter=20, fit_intercept=fit_intercept)
    with pytest.warns(ConvergenceWarning, match="max_iter=20"):
        clf.fit(X, y)
    assert clf.n_iter_[0] <= 20
    assert clf.fit_status_ == 1
