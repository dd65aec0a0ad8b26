# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest
from scipy import sparse

from leaveout.kernel._gram import KERNELS, gram_matrix
from leaveout.tune._choice import (
    default_Cs,
    default_gammas,
    kernel_scale,
    median_heuristic,
    needs_gamma,
)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_median_kernel_value_is_one_over_e(kernel, rng):
    X = 7.0 * rng.standard_normal((80, 5))
    K = gram_matrix(X, kernel=kernel, gamma=median_heuristic(X, kernel))
    assert np.median(K[np.triu_indices(80, 1)]) == pytest.approx(np.exp(-1), rel=0.02)


def test_median_of_many_rows_is_nearly_that_of_all(rng):
    X = rng.standard_normal((2001, 5))
    few = median_heuristic(X)
    assert few == pytest.approx(median_heuristic(X[:500]), rel=0.1)


@pytest.mark.parametrize("X", [np.zeros((3, 2)), np.ones((1, 2))])
def test_median_without_distances(X):
    assert median_heuristic(X) == 1.0


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_needs_gamma_is_true_of_the_kernels(kernel, rng):
    X = rng.standard_normal((5, 3))
    same = np.array_equal(
        gram_matrix(X, kernel=kernel, gamma=0.1), gram_matrix(X, kernel=kernel, gamma=1)
    )
    assert needs_gamma(kernel) is not same


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
def test_median_of_sparse_rows_is_that_of_dense(kernel, rng):
    X = rng.standard_normal((40, 6)) * (rng.random((40, 6)) < 0.5)
    thin = median_heuristic(sparse.csr_array(X), kernel)
    assert thin == pytest.approx(median_heuristic(X, kernel))


@pytest.mark.parametrize("kernel", ["poly", "sigmoid"])
def test_median_inner_product_of_a_sample_with_itself_is_one(kernel, rng):
    X = 3.0 * rng.standard_normal((80, 5))
    gamma = median_heuristic(X, kernel)
    assert np.median(gamma * (X**2).sum(axis=1)) == pytest.approx(1.0)


def test_scale_of_the_kernel(rng):
    X = 5.0 + 3.0 * rng.standard_normal((50, 4))
    spread = np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1))
    assert kernel_scale(X, "linear") == pytest.approx(spread)
    assert kernel_scale(sparse.csr_array(X), "linear") == pytest.approx(spread)
    assert kernel_scale(X @ X.T, "precomputed") == pytest.approx(spread)
    assert kernel_scale(X, "rbf") == kernel_scale(X, np.dot) == 1.0
    assert kernel_scale(np.zeros((3, 2)), "linear") == 1.0


def test_penalties_in_units_of_the_kernel():
    np.testing.assert_array_equal(default_Cs(1.0), default_Cs())
    np.testing.assert_allclose(1e4 * default_Cs(1e4), default_Cs())
    np.testing.assert_allclose(default_Cs(2e-3), 1e3 * default_Cs())


def test_default_grid(rng):
    X = rng.standard_normal((20, 3))
    gammas = default_gammas(X)
    assert gammas[2] == median_heuristic(X)
    assert (np.diff(gammas) > 0).all()
    assert (np.diff(default_Cs()) > 0).all()
    assert default_gammas(X, "linear").shape == (1,)
