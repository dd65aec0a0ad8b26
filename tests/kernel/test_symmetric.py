# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest

from leaveout.kernel._gram import gram_matrix, may_be_indefinite
from leaveout.kernel._symmetric import is_psd, smallest_eigenvalue


def matrix_with_spectrum(eigenvalues, rng):
    basis, _ = np.linalg.qr(rng.standard_normal((len(eigenvalues),) * 2))
    K = (basis * eigenvalues) @ basis.T
    return (K + K.T) / 2


@pytest.mark.parametrize(
    ("kernel", "coef0", "expected"),
    [
        ("linear", 0.0, False),
        ("rbf", 0.0, False),
        ("laplacian", 0.0, False),
        ("cosine", 0.0, False),
        ("poly", 1.0, False),
        ("poly", -1.0, True),
        ("sigmoid", 0.0, True),
        ("precomputed", 0.0, True),
        (np.dot, 0.0, True),
    ],
)
def test_may_be_indefinite(kernel, coef0, expected):
    assert may_be_indefinite(kernel, coef0) is expected


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


def test_poly_with_negative_constant_is_indefinite():
    K = gram_matrix([[0.0], [1.0], [2.0]], kernel="poly", degree=1, coef0=-1.0)
    assert not is_psd(K)


def test_rank_deficient_kernels_are_psd(rng):
    X = np.repeat(rng.standard_normal((100, 3)), 4, axis=0)
    for kernel in ("linear", "rbf", "cosine", "laplacian", "poly"):
        assert is_psd(gram_matrix(X, kernel=kernel, gamma=1e-3))


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
