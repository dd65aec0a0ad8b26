# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices against scikit-learn and their formulas; equal rows; definiteness."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise
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

PEERS = {
    "linear": pairwise.linear_kernel,
    "rbf": partial(pairwise.rbf_kernel, gamma=0.3),
    "poly": partial(pairwise.polynomial_kernel, gamma=0.3, degree=4, coef0=0.7),
    "sigmoid": partial(pairwise.sigmoid_kernel, gamma=0.3, coef0=0.7),
    "laplacian": partial(pairwise.laplacian_kernel, gamma=0.3),
    "cosine": pairwise.cosine_similarity,
}
PARAMETERS = {"gamma": 0.3, "degree": 4, "coef0": 0.7}
every_kernel = pytest.mark.parametrize("kernel", sorted(KERNELS))
assert_close = partial(np.testing.assert_allclose, rtol=1e-11, atol=1e-13)


def features(rng, n_samples, n_features=5):
    """About half of the entries are zero; one row is all zero."""
    X = rng.standard_normal((n_samples, n_features))
    X[rng.random(X.shape) < 0.5] = 0.0
    X[n_samples // 2] = 0.0
    return X


@every_kernel
def test_equals_scikit_learn_for_dense_and_sparse_samples(kernel, rng):
    gram = partial(gram_matrix, kernel=kernel, **PARAMETERS)
    for n_samples in (1, 128, 300):
        X = features(rng, n_samples)
        X.flags.writeable = False
        K = gram(X)
        assert_close(K, PEERS[kernel](X))
    Y, csr, coo = features(rng, 31), sparse.csr_matrix, sparse.coo_array
    assert_close(gram(coo(X)), K)
    for A, B in [(X, Y), (csr(X), coo(Y)), (csr(X), Y), (X, csr(Y))]:
        K = gram(A, B)
        assert_close(K, PEERS[kernel](X, Y))
        assert K.flags.c_contiguous


@every_kernel
def test_table_says_which_parameters_change_the_kernel(kernel, rng):
    X = rng.standard_normal((5, 3))
    K = gram_matrix(X, kernel=kernel, **PARAMETERS)
    changed = {
        name
        for name, value in {"gamma": 1.0, "degree": 2, "coef0": 1.0}.items()
        if (gram_matrix(X, kernel=kernel, **PARAMETERS | {name: value}) != K).any()
    }
    assert set(kernel_parameters(kernel)) == changed
    assert (KERNELS[kernel].size_of is not None) == ("gamma" in changed)


@every_kernel
@pytest.mark.parametrize("coef0", [-1.0, 0.0, 1.0])
def test_table_says_which_kernels_are_definite(kernel, coef0, rng):
    X = np.repeat(rng.standard_normal((60, 3)), 2, axis=0)
    K = gram_matrix(X, kernel=kernel, gamma=0.3, degree=1, coef0=coef0)
    indefinite = kernel == "sigmoid" or (kernel == "poly" and coef0 < 0)
    assert may_be_indefinite(kernel, coef0) == indefinite
    assert is_psd(K) or indefinite
    for other in ("precomputed", np.dot):
        assert may_be_indefinite(other)
        assert kernel_parameters(other) == ()


@every_kernel
@settings(max_examples=20, deadline=None)
@given(
    X=arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.integers(1, 6)),
        elements=st.floats(-1e3, 1e3),
    ),
    seed=st.integers(0, 2**32 - 1),
)
def test_symmetric_and_equal_for_equal_samples_to_the_last_bit(kernel, X, seed):
    repeats = np.random.default_rng(seed).integers(0, len(X), size=150)
    first = [np.flatnonzero(repeats == i)[0] for i in repeats]
    for container in (np.asarray, sparse.csr_array):
        K = gram_matrix(container(X[repeats]), kernel=kernel, gamma=1e-3)
        assert np.array_equal(K, K.T)
        assert np.array_equal(K, K[np.ix_(first, first)])


def test_rbf_far_from_the_origin_and_of_integers(rng):
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


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
def test_memory_is_the_matrix_plus_little(kernel, rng):
    X = rng.standard_normal((2000, 10))
    gram_matrix(X[:200], kernel=kernel)  # what is imported or cached on first use
    tracemalloc.start()
    K = gram_matrix(X, kernel=kernel)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.15 * K.nbytes


@pytest.mark.parametrize("degree", range(8))
def test_poly_of_every_degree(degree, rng):
    X = rng.standard_normal((10, 4))
    K = gram_matrix(X, kernel="poly", degree=degree, coef0=-1.0)  # gamma is 1 / 4
    np.testing.assert_allclose(K, (0.25 * X @ X.T - 1.0) ** degree, rtol=1e-12)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_resolve_gamma_as_scikit_learn(gamma, container, rng):
    X, y = features(rng, 20), np.arange(20) % 2
    model = SVC(gamma=gamma).fit(container(X), y)
    assert resolve_gamma(gamma, container(X)) == pytest.approx(model._gamma, rel=1e-13)
    assert resolve_gamma("scale", np.full((3, 2), 5.0)) == 1.0
    with pytest.raises(ValueError, match=r"gamma must be .* got 'scales'"):
        resolve_gamma("scales", X)


def test_precomputed_matrix_is_repaired_in_a_copy_if_at_all(rng):
    K = gram_matrix(rng.standard_normal((200, 2)), kernel="rbf")
    assert gram_matrix(K, kernel="precomputed") is K
    K[3, 150] += 1e-10
    K.flags.writeable = False
    repaired = check_gram(K)
    assert np.array_equal(repaired, repaired.T)
    assert repaired[3, 150] == (K[3, 150] + K[150, 3]) / 2
    values = np.ones((3, 2))  # of new samples
    assert gram_matrix(values, np.ones((2, 7)), kernel="precomputed") is values


def test_precomputed_copies_get_equal_rows_and_others_are_left_alone(rng):
    X = rng.normal(size=(30, 5))
    K = gram_matrix(np.vstack([X, X[:10]]), kernel="rbf", gamma=0.5)
    noisy = K * (1 + 1e-14 * rng.uniform(-1, 1, K.shape))
    noisy.flags.writeable = False
    repaired = check_gram(noisy)
    np.testing.assert_array_equal(repaired, repaired.T)
    np.testing.assert_array_equal(repaired[:10], repaired[30:])
    np.testing.assert_allclose(repaired, K, rtol=0, atol=1e-13)
    x = np.array([1e6, 1e-3, 1e-3 + 1e-9, 1.0, 1.0 + 1e-9])
    for K in (repaired, np.outer(x, x)):  # near, but not copies
        assert check_gram(K) is K


def test_callable(rng):
    X, Y = rng.standard_normal((9, 2)), rng.standard_normal((4, 2))
    assert np.array_equal(gram_matrix(X, Y, kernel=lambda A, B: A @ B.T), X @ Y.T)
    values = np.array([[1.0, 0.5], [0.5 + 1e-12, 1.0]])
    K = gram_matrix([[0.0], [1.0]], kernel=lambda A, B: values)
    assert K[0, 1] == K[1, 0]
    assert values[0, 1] != values[1, 0]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.ones((2, 3)), r"shape \(2, 3\), but \(2, 2\) is needed"),
        (np.full((2, 2), np.nan), r"not finite: K\[0, 0\] is nan"),
        (np.array([[1.0, 0], [1, 1]]), "not symmetric.*differ by 1"),
        (sparse.csr_array(np.eye(2)), "sparse. Return a dense array"),
    ],
)
def test_wrong_result_names_the_callable(result, message):
    def my_kernel(A, B):
        return result

    message = f"result of the kernel my_kernel.*{message}"
    with pytest.raises((ValueError, TypeError), match=message):
        gram_matrix([[0.0], [1.0]], kernel=my_kernel)


@pytest.mark.parametrize(
    ("kernel", "arguments", "message"),
    [
        ("rfb", {}, "kernel must be one of 'linear'.*got 'rfb'"),
        ("rbf", {"gamma": -1.0}, "gamma must be.*>= 0; got -1.0"),
        ("rbf", {"gamma": "scale"}, "gamma=resolve_gamma"),
        ("poly", {"degree": 1.5}, "degree must be.*got 1.5"),
        ("poly", {"coef0": np.inf}, "coef0 must be.*got inf"),
        ("rbf", {"Y": [[1.0]]}, "X has 2 features but Y has 1"),
        ("rbf", {"Y": [[np.nan, 1]]}, "Y contains NaN"),
        ("linear", {"X": [[1e200]]}, r"'linear' is not finite"),
        ("precomputed", {"Y": np.eye(4)}, r"2 columns, but there are 4 training"),
        ("precomputed", {"X": np.ones((3, 2))}, r"X must be square.*got \(3, 2\)"),
        ("precomputed", {"X": [[1, 0.2], [0.3, 1]]}, r"X\[1, 0\] differ by 0.1"),
        ("precomputed", {"X": sparse.csr_array(np.eye(3))}, "Pass X.toarray"),
    ],
)
def test_wrong_argument(kernel, arguments, message):
    X = np.array([[0.0, 1.0], [2.0, 3.0]])
    with pytest.raises((ValueError, TypeError), match=message):
        gram_matrix(**{"X": X, **arguments}, kernel=kernel)


@pytest.mark.parametrize("block_values", [1, 20])
@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_expansion_equals_the_formula(rng, monkeypatch, block_values, container):
    monkeypatch.setattr("leaveout.kernel._gram.BLOCK_VALUES", block_values)
    X, centres = rng.normal(size=(13, 3)), rng.normal(size=(7, 3))
    c, b = rng.normal(size=(7, 2)), rng.normal(size=2)
    K = pairwise.rbf_kernel(X, centres, gamma=0.7)
    X, centres, wanted = container(X), container(centres), K @ c + b
    assert_close(evaluate_expansion(X, centres, c, b, kernel="rbf", gamma=0.7), wanted)
    assert_close(evaluate_expansion(K, None, c, b, kernel="precomputed"), wanted)
    nothing = evaluate_expansion(X, centres[:0], c[:0], b, kernel="rbf")
    np.testing.assert_array_equal(nothing, np.tile(b, (13, 1)))


def test_equal_rows_of_dense_and_sparse_matrices(rng):
    for _ in range(20):
        X = rng.integers(-1, 2, size=(rng.integers(1, 40), 3)).astype(float)
        X[X == 0] *= rng.choice([-1.0, 1.0])  # -0.0 equals 0.0
        rows = X.tolist()
        wanted = [rows.index(row) for row in rows]
        np.testing.assert_array_equal(first_equal_rows(X), wanted)
        np.testing.assert_array_equal(first_equal_rows(sparse.csr_array(X)), wanted)


def test_near_copies_are_not_copies():
    X = np.array([[0.0], [1e-5], [1.0], [0.0]])
    gram = make_gram(X, kernel="laplacian", gamma=0.5)
    assert gram.first_equal.tolist() == [0, 1, 2, 0]
    assert make_gram(X[:3], kernel="laplacian", gamma=0.5).first_equal is None


def matrix_with_spectrum(eigenvalues, rng):
    basis, _ = np.linalg.qr(rng.standard_normal((len(eigenvalues),) * 2))
    K = (basis * eigenvalues) @ basis.T
    return (K + K.T) / 2


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize(("smallest", "expected"), [(0.0, True), (-1e-8, False)])
def test_is_psd_whatever_the_scale(smallest, expected, scale, rng):
    eigenvalues = np.append(smallest, np.linspace(0.1, 2.0, 59))
    assert is_psd(scale * matrix_with_spectrum(eigenvalues, rng)) is expected


def test_is_psd_of_small_matrices():
    for K in (np.zeros((4, 4)), np.ones((4, 4)), np.diag([0.0, 1.0])):
        K.flags.writeable = False
        assert is_psd(K)
    for K in (-np.eye(2), np.eye(2)[::-1], np.diag([1.0, -1e-9])):
        assert not is_psd(K)


@pytest.mark.parametrize("n_samples", [30, 1100])
def test_smallest_eigenvalue(n_samples, rng):
    eigenvalues = np.append(-0.5, np.linspace(0.0, 2.0, n_samples - 1))
    K = matrix_with_spectrum(eigenvalues, rng)
    assert smallest_eigenvalue(K) == pytest.approx(-0.5, rel=5e-3)
