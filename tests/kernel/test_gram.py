# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices against scikit-learn and their formulas; expansions."""

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
    may_be_indefinite,
    resolve_gamma,
)
from leaveout.kernel._symmetric import is_psd

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


def features(rng, n_samples, n_features=5):
    """About half of the entries are zero; one row is all zero."""
    X = rng.standard_normal((n_samples, n_features))
    X[rng.random(X.shape) < 0.5] = 0.0
    X[n_samples // 2] = 0.0
    return X


@every_kernel
@pytest.mark.parametrize("n_samples", [1, 128, 300])
def test_equals_scikit_learn(kernel, n_samples, rng):
    X = features(rng, n_samples)
    K = gram_matrix(X, kernel=kernel, **PARAMETERS)
    np.testing.assert_allclose(K, PEERS[kernel](X), rtol=1e-11, atol=1e-13)
    assert K.dtype == np.float64
    assert K.flags.c_contiguous


@every_kernel
def test_equals_scikit_learn_between_two_sets(kernel, rng):
    X, Y = features(rng, 200), features(rng, 31)
    K = gram_matrix(X, Y, kernel=kernel, **PARAMETERS)
    np.testing.assert_allclose(K, PEERS[kernel](X, Y), rtol=1e-11, atol=1e-13)
    assert K.flags.c_contiguous


@every_kernel
def test_sparse_equals_dense(kernel, rng):
    X, Y = features(rng, 150), features(rng, 20)
    csr, coo = sparse.csr_matrix, sparse.coo_array
    for A, B in [(csr(X), None), (csr(X), coo(Y)), (csr(X), Y), (X, csr(Y))]:
        dense = gram_matrix(X, None if B is None else Y, kernel=kernel, **PARAMETERS)
        K = gram_matrix(A, B, kernel=kernel, **PARAMETERS)
        np.testing.assert_allclose(K, dense, rtol=1e-11, atol=1e-13)


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
    assert may_be_indefinite(kernel, coef0) or is_psd(K)
    if (kernel, coef0) in [("poly", -1.0), ("sigmoid", -1.0)]:
        assert may_be_indefinite(kernel, coef0)
        assert not is_psd(K)


def test_other_kernels_may_be_indefinite_and_have_no_parameters():
    for kernel in ("precomputed", np.dot):
        assert may_be_indefinite(kernel)
        assert kernel_parameters(kernel) == ()


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
    X = X[repeats]
    K = gram_matrix(X, kernel=kernel, gamma=1e-3)
    assert np.array_equal(K, K.T)
    first = {i: np.flatnonzero(repeats == i)[0] for i in repeats}
    representative = [first[i] for i in repeats]
    assert np.array_equal(K, K[np.ix_(representative, representative)])
    if kernel in ("rbf", "laplacian"):
        assert (np.diagonal(K) == 1).all()


@every_kernel
def test_equal_sparse_samples_share_their_row(kernel, rng):
    X = np.tile(features(rng, 70), (3, 1))
    K = gram_matrix(sparse.csr_array(X), kernel=kernel, gamma=0.1)
    assert np.array_equal(K, np.tile(K[:70, :70], (3, 3)))


def test_negative_zero_is_zero():
    K = gram_matrix([[0.0, 1.0], [-0.0, 1.0]], kernel="rbf", gamma=1.0)
    assert (K == 1).all()


def test_rbf_survives_data_far_from_the_origin(rng):
    X = rng.standard_normal((50, 4))
    X_far = X + 1e6
    exact = np.exp(-0.1 * cdist(X_far, X_far, "sqeuclidean"))
    K = gram_matrix(X_far, kernel="rbf", gamma=0.1)
    np.testing.assert_allclose(K, exact, rtol=1e-12)
    np.testing.assert_allclose(
        gram_matrix(X_far, X_far[:9], kernel="rbf", gamma=0.1), exact[:, :9], rtol=1e-12
    )
    assert np.abs(pairwise.rbf_kernel(X_far, gamma=0.1) - exact).max() > 1e-6


def test_rbf_of_whole_numbers_depends_on_the_distance_alone(rng):
    X = rng.integers(-3, 4, size=(300, 6)).astype(float)
    distances = cdist(X, X, "sqeuclidean")
    K = gram_matrix(X, kernel="rbf", gamma=0.1)
    for distance in np.unique(distances):
        assert np.unique(K[distances == distance]).size == 1


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
def test_memory_is_the_matrix_plus_little(kernel, rng):
    X = rng.standard_normal((2000, 10))
    gram_matrix(X[:200], kernel=kernel)  # what is imported or cached on first use
    tracemalloc.start()
    K = gram_matrix(X, kernel=kernel)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.15 * K.nbytes


def test_gamma_none_is_one_over_the_number_of_features(rng):
    X = rng.standard_normal((6, 4))
    assert np.array_equal(
        gram_matrix(X, kernel="rbf"), gram_matrix(X, kernel="rbf", gamma=0.25)
    )


def test_poly_of_every_degree(rng):
    X = rng.standard_normal((10, 3))
    for degree in range(8):
        K = gram_matrix(X, kernel="poly", gamma=0.5, degree=degree, coef0=-1.0)
        np.testing.assert_allclose(K, (0.5 * X @ X.T - 1.0) ** degree, rtol=1e-12)


def test_input_is_left_alone(rng):
    X = rng.standard_normal((20, 3))
    before = X.copy()
    X.flags.writeable = False
    for kernel in KERNELS:
        gram_matrix(X, kernel=kernel)
    assert np.array_equal(X, before)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_resolve_gamma_as_scikit_learn(gamma, container, rng):
    X, y = features(rng, 20), np.arange(20) % 2
    model = SVC(gamma=gamma).fit(container(X), y)
    assert resolve_gamma(gamma, container(X)) == pytest.approx(model._gamma, rel=1e-13)


def test_resolve_gamma_of_constant_data_is_one():
    assert resolve_gamma("scale", np.full((3, 2), 5.0)) == 1.0


class TestPrecomputed:
    def test_symmetric_matrix_is_not_copied(self, rng):
        K = gram_matrix(rng.standard_normal((9, 2)), kernel="rbf")
        assert gram_matrix(K, kernel="precomputed") is K

    def test_nearly_symmetric_matrix_is_repaired_in_a_copy(self, rng):
        K = gram_matrix(rng.standard_normal((200, 2)), kernel="rbf")
        K[3, 150] += 1e-10
        before = K.copy()
        repaired = check_gram(K)
        assert np.array_equal(repaired, repaired.T)
        assert repaired[3, 150] == (before[3, 150] + before[150, 3]) / 2
        assert np.array_equal(K, before)

    def test_other_layouts_are_converted(self):
        K = check_gram(np.asfortranarray([[2, 1], [1, 2]], dtype=np.float32))
        assert K.dtype == np.float64
        assert K.flags.c_contiguous

    def test_rectangle_for_new_samples(self):
        values = np.ones((3, 2))
        assert gram_matrix(values, np.ones((2, 7)), kernel="precomputed") is values
        with pytest.raises(
            ValueError, match=r"has 2 columns, but there are 4 training"
        ):
            gram_matrix(values, np.ones((4, 7)), kernel="precomputed")

    @pytest.mark.parametrize(
        ("K", "message"),
        [
            (np.ones((3, 2)), r"X must be square.*got \(3, 2\)"),
            (
                np.array([[1.0, 0.2], [0.3, 1.0]]),
                r"X\[0, 1\] and X\[1, 0\] differ by 0.1",
            ),
            (np.array([[1.0, np.nan], [np.nan, 1.0]]), "X contains NaN"),
            (np.array([[np.inf, 0.0], [0.0, 1.0]]), "X contains infinity"),
            (np.empty((0, 0)), "0 sample"),
        ],
    )
    def test_wrong_matrix(self, K, message):
        with pytest.raises(ValueError, match=message):
            gram_matrix(K, kernel="precomputed")

    def test_sparse_matrix(self):
        with pytest.raises(TypeError, match=r"X is sparse. Pass X.toarray\(\)"):
            gram_matrix(sparse.csr_array(np.eye(3)), kernel="precomputed")


class TestCallable:
    def test_linear(self, rng):
        X, Y = rng.standard_normal((9, 2)), rng.standard_normal((4, 2))
        assert np.array_equal(gram_matrix(X, Y, kernel=lambda A, B: A @ B.T), X @ Y.T)
        K = gram_matrix(X, kernel=lambda A, B: A @ B.T)
        assert np.array_equal(K, K.T)

    def test_small_asymmetry_is_repaired_without_touching_the_result(self):
        values = np.array([[1.0, 0.5], [0.5 + 1e-12, 1.0]])
        K = gram_matrix([[0.0], [1.0]], kernel=lambda A, B: values)
        assert K[0, 1] == K[1, 0]
        assert values[0, 1] != values[1, 0]

    @pytest.mark.parametrize(
        ("result", "error", "message"),
        [
            (np.ones(2), ValueError, r"shape \(2,\), but \(2, 2\) is needed"),
            (np.ones((2, 3)), ValueError, r"shape \(2, 3\), but \(2, 2\) is needed"),
            (np.full((2, 2), np.nan), ValueError, r"not finite: K\[0, 0\] is nan"),
            (np.array([[1.0, 0], [1, 1]]), ValueError, "not symmetric.*differ by 1"),
            (sparse.csr_array(np.eye(2)), TypeError, "sparse. Return a dense array"),
        ],
    )
    def test_wrong_result_names_the_callable(self, result, error, message):
        def my_kernel(A, B):
            return result

        with pytest.raises(error, match=f"result of the kernel my_kernel.*{message}"):
            gram_matrix([[0.0], [1.0]], kernel=my_kernel)


X_SMALL = np.array([[0.0, 1.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kernel": "rfb"}, ValueError, "kernel must be one of 'linear'.*got 'rfb'"),
        ({"kernel": None}, ValueError, "kernel must be one of.*got None"),
        ({"kernel": "rbf", "gamma": -1.0}, ValueError, "gamma must be.*>= 0; got -1.0"),
        ({"kernel": "rbf", "gamma": np.nan}, ValueError, "gamma must be.*got nan"),
        ({"kernel": "rbf", "gamma": np.inf}, ValueError, "gamma must be.*got inf"),
        ({"kernel": "rbf", "gamma": True}, ValueError, "gamma must be.*got True"),
        ({"kernel": "rbf", "gamma": "scale"}, TypeError, "gamma=resolve_gamma"),
        ({"kernel": "poly", "degree": 1.5}, ValueError, "degree must be.*got 1.5"),
        ({"kernel": "poly", "degree": -1}, ValueError, "degree must be.*got -1"),
        ({"kernel": "poly", "coef0": np.inf}, ValueError, "coef0 must be.*got inf"),
        ({"kernel": "rbf", "Y": [[1.0]]}, ValueError, "X has 2 features but Y has 1"),
        ({"kernel": "rbf", "Y": [[np.nan, 1]]}, ValueError, "Y contains NaN"),
        ({"kernel": "rbf", "X": [[np.inf, 1]]}, ValueError, "X contains infinity"),
        ({"kernel": "rbf", "X": [1.0, 2.0]}, ValueError, "Expected 2D array"),
        ({"kernel": "linear", "X": [[1e200]]}, ValueError, r"'linear' is not finite"),
        ({"kernel": "rbf", "X": [[1e200], [0]]}, ValueError, r"'rbf' is not finite"),
    ],
)
def test_wrong_argument(arguments, error, message):
    with pytest.raises(error, match=message):
        gram_matrix(**{"X": X_SMALL, **arguments})


@pytest.mark.parametrize("gamma", ["scales", -1.0, np.nan])
def test_resolve_gamma_refuses(gamma):
    with pytest.raises(ValueError, match=f"gamma must be.*got {gamma!r}"):
        resolve_gamma(gamma, X_SMALL)


def test_precomputed_copies_get_equal_rows_and_others_are_left_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    K = pairwise.rbf_kernel(np.vstack([X, X[:10]]), gamma=0.5)
    K = 0.5 * (K + K.T)
    noisy = K * (1 + 1e-14 * rng.uniform(-1, 1, K.shape))
    before = noisy.copy()
    repaired = check_gram(noisy)
    np.testing.assert_array_equal(noisy, before)
    np.testing.assert_array_equal(repaired, repaired.T)
    np.testing.assert_array_equal(repaired[:10], repaired[30:])
    np.testing.assert_allclose(repaired, K, rtol=0, atol=1e-13)
    assert check_gram(repaired) is repaired


def test_nearby_samples_are_not_copies():
    X = np.array([[1e6], [1e-3], [1e-3 + 1e-9], [1.0], [1.0 + 1e-9]])
    K = X @ X.T
    assert check_gram(K) is K


@pytest.mark.parametrize("block_values", [1, 20, 2**22])
@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_expansion_equals_the_formula(rng, monkeypatch, block_values, container):
    monkeypatch.setattr("leaveout.kernel._gram.BLOCK_VALUES", block_values)
    X, centres = rng.normal(size=(13, 3)), rng.normal(size=(7, 3))
    coefficients, intercepts = rng.normal(size=(7, 2)), rng.normal(size=2)
    K = pairwise.rbf_kernel(X, centres, gamma=0.7)
    wanted = K @ coefficients + intercepts
    arguments = (coefficients, intercepts)
    values = evaluate_expansion(
        container(X), container(centres), *arguments, kernel="rbf", gamma=0.7
    )
    np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-13)
    values = evaluate_expansion(K, None, *arguments, kernel="precomputed")
    np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-13)


def test_expansion_without_centres_is_the_intercept():
    values = evaluate_expansion(
        np.ones((3, 2)), np.empty((0, 2)), np.empty((0, 1)), np.ones(1), kernel="rbf"
    )
    np.testing.assert_array_equal(values, np.ones((3, 1)))
