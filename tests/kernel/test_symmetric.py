# SPDX-License-Identifier: BSD-3-Clause
"""Equal rows, definiteness, smallest eigenvalue."""

import numpy as np
import pytest
from scipy import sparse

from leaveout.engine._problem import Problem
from leaveout.kernel._gram import KERNELS, gram_matrix, make_gram
from leaveout.kernel._symmetric import (
    first_equal_rows,
    is_psd,
    smallest_eigenvalue,
)


def first_of_equal(keys):
    """Position of the first key equal to each."""
    return [keys.index(key) for key in keys]


def test_equal_rows_of_dense_and_sparse_matrices(rng):
    for _ in range(20):
        X = rng.integers(-1, 2, size=(rng.integers(1, 40), 3)).astype(float)
        X[X == 0] *= rng.choice([-1.0, 1.0])  # -0.0 equals 0.0
        wanted = first_of_equal(X.tolist())
        np.testing.assert_array_equal(first_equal_rows(X), wanted)
        np.testing.assert_array_equal(first_equal_rows(sparse.csr_array(X)), wanted)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_copies_have_equal_features_label_and_weight(kernel):
    rng = np.random.default_rng(len(kernel))
    for _ in range(10):
        n = int(rng.integers(3, 40))
        X = rng.integers(1, 4, size=(n, 2)).astype(float)
        if kernel == "cosine":
            X[:, 1] = 1.0  # no row is a multiple of another
        y, C = rng.choice([-1.0, 1.0], n), rng.choice([1.0, 2.0], n)
        rows = np.sort(rng.permutation(n)[: n // 2 + 1])
        gram = make_gram(X, kernel=kernel, gamma=0.1)
        problem = Problem(gram.K, y, C, first_equal=gram.first_equal)
        found = problem.first_copies(rows)
        keys = [(*X[i], y[i], C[i]) for i in rows]
        np.testing.assert_array_equal(found, rows[first_of_equal(keys)])


def test_near_copies_are_not_copies():
    X = np.array([[0.0], [1e-5], [1.0], [0.0]])
    gram = make_gram(X, kernel="laplacian", gamma=0.5)
    np.testing.assert_array_equal(gram.first_equal, [0, 1, 2, 0])
    assert make_gram(X[:3], kernel="laplacian", gamma=0.5).first_equal is None


def matrix_with_spectrum(eigenvalues, rng):
    basis, _ = np.linalg.qr(rng.standard_normal((len(eigenvalues),) * 2))
    K = (basis * eigenvalues) @ basis.T
    return (K + K.T) / 2


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(("smallest", "expected"), [(0.0, True), (-1e-8, False)])
def test_is_psd_whatever_the_scale(smallest, expected, scale, rng):
    eigenvalues = np.linspace(0.1, 2.0, 60)
    eigenvalues[0] = smallest
    assert is_psd(scale * matrix_with_spectrum(eigenvalues, rng)) is expected


@pytest.mark.parametrize(
    "K", [np.zeros((4, 4)), np.ones((4, 4)), np.array([[0.0]]), np.diag([0.0, 1.0])]
)
def test_singular_is_psd(K):
    assert is_psd(K)


@pytest.mark.parametrize(
    "K", [-np.eye(2), [[0.0, 1.0], [1.0, 0.0]], np.diag([1, -1e-9])]
)
def test_indefinite_is_not_psd(K):
    assert not is_psd(np.array(K, dtype=float))


def test_is_psd_leaves_its_argument_alone(rng):
    K = gram_matrix(rng.standard_normal((20, 3)), kernel="rbf")
    before = K.copy()
    is_psd(K)
    assert np.array_equal(K, before)


@pytest.mark.parametrize("n_samples", [30, 1100])
def test_smallest_eigenvalue(n_samples, rng):
    eigenvalues = np.linspace(0.0, 2.0, n_samples)
    eigenvalues[0] = -0.5
    K = matrix_with_spectrum(eigenvalues, rng)
    assert smallest_eigenvalue(K) == pytest.approx(-0.5, rel=5e-3)
