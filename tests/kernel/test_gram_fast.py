# SPDX-License-Identifier: BSD-3-Clause
"""Tiles of Gram matrices at their edges and limits; accuracy of exp and tanh."""

from decimal import Decimal, localcontext
from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import pairwise_kernels
from threadpoolctl import threadpool_info, threadpool_limits

from leaveout.kernel import _gram
from leaveout.kernel._gram import KERNELS, gram_matrix, make_gram
from leaveout.kernel._gram_fast import TILE_ROWS

PARAMETERS = {"gamma": 0.1, "degree": 3, "coef0": 0.5}
EDGES = [1, 2, 7, 8, 9, TILE_ROWS - 1, TILE_ROWS, TILE_ROWS + 1, 2 * TILE_ROWS + 1]
rbf = partial(gram_matrix, kernel="rbf")


@pytest.mark.parametrize("n_features", [1, 4, 300])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_tiles_of_every_size_equal_scikit_learn(kernel, n_features, rng):
    peer = partial(pairwise_kernels, metric=kernel, filter_params=True, **PARAMETERS)
    gram = partial(gram_matrix, kernel=kernel, **PARAMETERS)
    for n in EDGES if n_features < 300 else EDGES[::4]:
        X = rng.standard_normal((n, n_features)) / np.sqrt(n_features)
        Y = rng.standard_normal((n % 200 + 1, n_features)) / np.sqrt(n_features)
        K, wanted = gram(X), peer(X)
        assert np.array_equal(K, K.T)
        for ours, theirs in [(K, wanted), (gram(X, Y), peer(X, Y))]:
            scale = np.abs(theirs).max()
            np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e-14 * scale)


def test_equal_rows_in_different_tiles_have_equal_bits(rng):
    X = rng.standard_normal((TILE_ROWS, 7))
    X = np.vstack([X, X[:5], rng.standard_normal((TILE_ROWS, 7)), X[::40]])
    for kernel in KERNELS:
        gram = make_gram(X, kernel=kernel, gamma=0.2)
        first = gram.first_equal
        assert np.flatnonzero(first != np.arange(len(X))).size == 10
        assert np.array_equal(gram.K, gram.K[np.ix_(first, first)])
        assert np.array_equal(gram.K, gram.K.T)


def ulps_off(values, arguments, function):
    """Return the largest error, in units in the last place of the exact values."""
    with localcontext(prec=40):
        exact = [function(Decimal(x)) for x in arguments]
        units = np.spacing(np.abs(np.array(exact, dtype=float))).tolist()
        errors = [
            abs(Decimal(value) - wanted) / Decimal(unit)
            for value, wanted, unit in zip(values.tolist(), exact, units, strict=True)
        ]
    return float(max(errors))


def test_exp_is_exact_to_one_unit_in_the_last_place(rng):
    """Squared distances of integers and their products with gamma are exact."""
    X = np.append(0.0, rng.integers(1, 2**20, size=1500))[:, None]
    for largest in (1e-3, 1.0, 30.0, 700.0):
        gamma = 2.0 ** np.floor(np.log2(largest / X.max() ** 2))
        K = rbf(X, gamma=gamma)[0, 1:]
        arguments = (-gamma * X[1:, 0] ** 2).tolist()
        assert ulps_off(K, arguments, Decimal.exp) <= 1.0
        order = np.argsort(X[1:, 0])
        assert (np.diff(K[order]) <= np.spacing(K[order][1:])).all()
        assert K.max() <= 1.0


def test_tanh_is_exact_to_three_units_in_the_last_place(rng):
    def tanh(u):
        e = (2 * u).exp()
        return (e - 1) / (e + 1)

    for scale in (1e-9, 0.3, 3.0, 30.0, 1e3):
        X = scale * rng.uniform(-1.0, 1.0, size=(500, 1))
        K = gram_matrix(X, np.ones((1, 1)), kernel="sigmoid", gamma=1.0)
        assert ulps_off(K[:, 0], X[:, 0].tolist(), tanh) <= 3.0


def test_very_large_and_very_small_gamma(rng):
    X = rng.standard_normal((200, 3))
    for gamma in (0.0, 5e-324, 1e-300):
        assert (rbf(X, gamma=gamma) == 1.0).all()
    for gamma in (1e12, 1e300):
        assert np.array_equal(rbf(X, gamma=gamma), np.eye(200))
    x = np.sqrt([0.0, 707.9, 708.1, 745.0, 1e5])[:, None]
    K = rbf(x, gamma=1.0)[0]
    assert K[0] == 1.0
    assert K[1] == pytest.approx(np.exp(-707.9), rel=1e-12)
    assert not K[2:].any()  # below the smallest normal number, about


def test_rbf_is_accurate_with_offsets_and_outliers(rng):
    X = rng.standard_normal((TILE_ROWS + 9, 4))
    far = np.vstack([X, X[:1] + 1e9])
    for samples in (X + 1e8, X * [1e8, 1.0, 1e-8, 1.0], far[::-1].copy()):
        gamma = 0.1 / np.median(cdist(samples, samples, "sqeuclidean"))
        exact = np.exp(-gamma * cdist(samples, samples, "sqeuclidean"))
        np.testing.assert_allclose(rbf(samples, gamma=gamma), exact, rtol=1e-12)
    X = rng.integers(-3, 4, size=(TILE_ROWS + 9, 3)) + 2.0**30
    exact = np.exp(-0.125 * cdist(X, X, "sqeuclidean"))
    np.testing.assert_allclose(rbf(X, gamma=0.125), exact, rtol=5e-16)


@pytest.mark.parametrize("row", [0, TILE_ROWS + 3])
def test_values_that_are_not_finite_are_reported_where_they_are(row):
    X = np.ones((TILE_ROWS + 5, 2))
    X[row], X[row + 1] = 1e155, 2e155
    for kernel in ("linear", "rbf", "poly"):
        message = rf"{kernel}' is not finite: K\[\d+, \d+\]"
        with pytest.raises(ValueError, match=message):
            gram_matrix(X, kernel=kernel)
    linear = gram_matrix(X, X[:1] / X[:1], kernel="linear")
    assert linear[row, 0] == 2e155


def test_blas_uses_one_thread(monkeypatch, rng):
    used = set()

    def fill_rows(*arguments):
        used.update(
            (library["filepath"], library["num_threads"])
            for library in threadpool_info()
            if library["user_api"] == "blas"
        )
        return 0

    monkeypatch.setattr(_gram, "fill_rows", fill_rows)
    with threadpool_limits(2, user_api="blas"):
        gram_matrix(rng.standard_normal((5, 2)), kernel="linear")
    assert {threads for _, threads in used} == {1}
