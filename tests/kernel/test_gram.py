# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices against scikit-learn and their formulas; equal rows; definiteness."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.svm import SVC

from leaveout.kernel._gram import (
    KERNELS,
    check_gram,
    evaluate_expansion,
    gram_matrix,
    kernel_parameters,
    make_gram,
    may_be_indefinite,
    resolve_gamma,
)
from leaveout.kernel._symmetric import first_equal_rows, is_psd, smallest_eigenvalue

PARAMETERS = {"gamma": 0.3, "degree": 4, "coef0": 0.7}
every_kernel = pytest.mark.parametrize("kernel", sorted(KERNELS))
assert_close = partial(np.testing.assert_allclose, rtol=1e-11, atol=1e-13)


def features(rng, n_samples):
    """About half of the entries are zero; one row is all zero."""
    X = rng.standard_normal((n_samples, 5))
    X[rng.random(X.shape) < 0.5] = 0.0
    X[n_samples // 2] = 0.0
    X.flags.writeable = False
    return X


@every_kernel
def test_equals_scikit_learn_for_dense_and_sparse_samples(kernel, rng):
    gram = partial(gram_matrix, kernel=kernel, **PARAMETERS)
    peer = partial(pairwise_kernels, metric=kernel, filter_params=True, **PARAMETERS)
    for n_samples in (1, 128, 300):
        X = features(rng, n_samples)
        assert_close(gram(X), peer(X))
    Y, csr, coo = features(rng, 31), sparse.csr_matrix, sparse.coo_array
    assert_close(gram(coo(X)), peer(X))
    for A, B in [(X, Y), (csr(X), coo(Y)), (csr(X), Y), (X, csr(Y))]:
        K = gram(A, B)
        assert_close(K, peer(X, Y))
        assert K.flags.c_contiguous


@every_kernel
def test_kernel_table_is_correct(kernel, rng):
    """Which parameters change a kernel, and whether it is definite."""
    X = np.repeat(rng.standard_normal((60, 3)), 2, axis=0)
    K = gram_matrix(X, kernel=kernel, **PARAMETERS)
    changed = {
        name
        for name, value in {"gamma": 1.0, "degree": 2, "coef0": 1.0}.items()
        if (gram_matrix(X, kernel=kernel, **PARAMETERS | {name: value}) != K).any()
    }
    assert set(kernel_parameters(kernel)) == changed
    assert (KERNELS[kernel].size_of is not None) == ("gamma" in changed)
    for coef0 in (-1.0, 0.0, 1.0):
        K = gram_matrix(X, kernel=kernel, gamma=0.3, degree=1, coef0=coef0)
        indefinite = kernel == "sigmoid" or (kernel == "poly" and coef0 < 0)
        assert may_be_indefinite(kernel, coef0) == indefinite
        assert is_psd(K) or indefinite
    assert may_be_indefinite("precomputed")
    assert kernel_parameters(np.dot) == ()


@every_kernel
def test_symmetric_and_equal_for_equal_samples_to_the_last_bit(kernel, rng):
    for n_features in (1, 2, 6, 50):
        X = 10 ** rng.uniform(-3, 3) * rng.standard_normal((40, n_features))
        repeats = rng.integers(0, 40, size=150)
        first = [np.flatnonzero(repeats == i)[0] for i in repeats]
        for container in (np.asarray, sparse.csr_array):
            K = gram_matrix(container(X[repeats]), kernel=kernel, gamma=1e-3)
            assert np.array_equal(K, K.T)
            assert np.array_equal(K, K[np.ix_(first, first)])


def test_rbf_is_accurate_far_from_the_origin_and_for_integers(rng):
    X = rng.standard_normal((50, 4)) + 1e6
    exact = np.exp(-0.1 * cdist(X, X, "sqeuclidean"))
    gram = partial(gram_matrix, kernel="rbf", gamma=0.1)
    np.testing.assert_allclose(gram(X), exact, rtol=1e-12)
    np.testing.assert_allclose(gram(X, X[:9]), exact[:, :9], rtol=1e-12)
    assert (np.diagonal(gram(1e3 * rng.standard_normal((50, 40)))) == 1).all()
    X = rng.integers(-3, 4, size=(300, 6)).astype(float)
    distances = cdist(X, X, "sqeuclidean")
    K = gram(X)
    for distance in np.unique(distances):
        assert np.unique(K[distances == distance]).size == 1


def test_memory_is_little_more_than_the_matrix(rng):
    X = rng.standard_normal((2000, 10))
    for kernel in ("rbf", "poly", "cosine"):
        gram_matrix(X[:200], kernel=kernel)  # imports and caches on first use
        tracemalloc.start()
        K = gram_matrix(X, kernel=kernel)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1.15 * K.nbytes


def test_poly_of_every_degree(rng):
    X = rng.standard_normal((10, 4))
    for degree in range(8):
        K = gram_matrix(X, kernel="poly", degree=degree, coef0=-1.0)  # gamma is 1 / 4
        np.testing.assert_allclose(K, (0.25 * X @ X.T - 1.0) ** degree, rtol=1e-12)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
def test_resolve_gamma_equals_scikit_learn(gamma, rng):
    X = features(rng, 20)
    wanted = SVC(gamma=gamma).fit(X, np.arange(20) % 2)._gamma
    for samples in (X, sparse.csr_matrix(X)):
        assert resolve_gamma(gamma, samples) == pytest.approx(wanted, rel=1e-13)
    assert resolve_gamma("scale", np.full((3, 2), 5.0)) == 1.0


def test_precomputed_matrix_is_symmetrised_in_a_copy(rng):
    """Duplicates get equal rows; samples that are only close do not."""
    X = rng.normal(size=(130, 5))
    K = gram_matrix(np.vstack([X, X[:10]]), kernel="rbf", gamma=0.5)
    assert gram_matrix(K, kernel="precomputed") is K
    noisy = K * (1 + 1e-14 * rng.uniform(-1, 1, K.shape))
    noisy.flags.writeable = False
    repaired = check_gram(noisy)
    np.testing.assert_array_equal(repaired, repaired.T)
    np.testing.assert_array_equal(repaired[:10], repaired[130:])
    assert repaired[50, 60] == (noisy[50, 60] + noisy[60, 50]) / 2
    np.testing.assert_allclose(repaired, K, rtol=0, atol=1e-13)
    x = np.array([1e6, 1e-3, 1e-3 + 1e-9, 1.0, 1.0 + 1e-9])
    for K in (repaired, np.outer(x, x)):
        assert check_gram(K) is K
    values = np.ones((3, 2))  # of new samples
    assert gram_matrix(values, np.ones((2, 7)), kernel="precomputed") is values


@pytest.mark.parametrize(
    ("kernel", "arguments", "message"),
    [
        ("rbf", {"gamma": "scale"}, "gamma=resolve_gamma"),
        ("rbf", {"Y": [[1.0]]}, "X has 2 features but Y has 1"),
        ("rbf", {"Y": [[np.nan, 1]]}, "Y contains NaN"),
        ("linear", {"X": [[1e200]]}, r"'linear' is not finite"),
        ("precomputed", {"Y": np.eye(4)}, r"2 columns, but there are 4 training"),
        ("precomputed", {"X": sparse.csr_array(np.eye(3))}, "Pass X.toarray"),
        (lambda A, B: A[:1], {}, r"kernel <lambda>.*\(1, 2\), but \(2, 2\) is needed"),
        (lambda A, B: A + np.nan, {}, r"kernel <lambda>.*K\[0, 0\] is nan"),
        (lambda A, B: A, {}, "kernel <lambda>.*differ by 1"),
        (lambda A, B: sparse.csr_array(A), {}, "<lambda>.*Return a dense array"),
    ],
)
def test_invalid_arguments(kernel, arguments, message):
    X = np.array([[0.0, 1.0], [2.0, 3.0]])
    with pytest.raises((ValueError, TypeError), match=message):
        gram_matrix(**{"X": X, **arguments}, kernel=kernel)


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_expansion_equals_the_formula_in_blocks(rng, monkeypatch, container):
    monkeypatch.setattr("leaveout.kernel._gram.BLOCK_VALUES", 20)
    X, centres = rng.normal(size=(13, 3)), rng.normal(size=(7, 3))
    c, b = rng.normal(size=(7, 2)), rng.normal(size=2)
    K = rbf_kernel(X, centres, gamma=0.7)
    X, centres, wanted = container(X), container(centres), K @ c + b
    assert_close(evaluate_expansion(X, centres, c, b, kernel="rbf", gamma=0.7), wanted)
    assert_close(evaluate_expansion(K, None, c, b, kernel="precomputed"), wanted)
    nothing = evaluate_expansion(X, centres[:0], c[:0], b, kernel="rbf")
    np.testing.assert_array_equal(nothing, np.tile(b, (13, 1)))


def test_equal_rows_of_dense_and_sparse_matrices(rng):
    for _ in range(20):
        X = rng.integers(-1, 2, size=(rng.integers(1, 40), 3)).astype(float)
        X *= rng.choice([-1.0, 1.0], size=X.shape)  # -0.0 equals 0.0
        with_zeros = sparse.csr_array(X + 2.0)
        with_zeros.data -= 2.0
        rows = X.tolist()
        wanted = [rows.index(row) for row in rows]
        both = sparse.vstack([sparse.csr_array(X), with_zeros])
        distinct = wanted == list(range(len(rows)))
        for container in (np.array, sparse.csr_array):
            first = first_equal_rows(container(X))
            assert (first is None) if distinct else first.tolist() == wanted
        np.testing.assert_array_equal(first_equal_rows(both), wanted + wanted)
    X = np.array([[0.0], [1e-5], [1.0], [0.0]])
    gram = make_gram(X, kernel="laplacian", gamma=0.5)
    assert gram.first_equal.tolist() == [0, 1, 2, 0]  # close samples are not duplicates
    assert make_gram(X[:3], kernel="laplacian", gamma=0.5).first_equal is None


@pytest.mark.parametrize(("n", "scale"), [(60, 1e-8), (60, 1e8), (1100, 1.0)])
def test_definiteness_and_smallest_eigenvalue(n, scale, rng):
    basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
    for smallest in (0.0, -1e-8, -0.5):
        K = (basis * np.append(smallest, np.linspace(0.1, 2.0, n - 1))) @ basis.T
        K = scale * (K + K.T) / 2
        for _ in range(2):  # a similar matrix is remembered
            assert is_psd(K) == (smallest == 0.0)
    assert smallest_eigenvalue(K) == pytest.approx(-0.5 * scale, rel=5e-3)
    assert is_psd(np.zeros((4, 4)))
    assert not is_psd(np.eye(2)[::-1])
