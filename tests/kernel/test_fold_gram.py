# SPDX-License-Identifier: BSD-3-Clause
"""Kernel values of one fold, in any order of the samples."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import manhattan_distances

from leaveout.kernel._gram import KERNELS, gram_matrix
from leaveout.kernel._gram_fast import FoldGram, Formula, nearest_to_mean

N, P = 450, 6  # more than two tiles


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_fold_gram_equals_gram_matrix(kernel, scale, rng):
    X, beta = 5.0 + rng.normal(size=(N, P)), rng.normal(size=150)
    X[3] *= 40.0
    order = rng.permutation(N)
    K = scale * gram_matrix(X, kernel=kernel, gamma=0.1, degree=2, coef0=1.0)
    K = K[np.ix_(order, order)]
    origin = nearest_to_mean(X) if kernel == "rbf" else -1
    gram, given = FoldGram(), kernel == "laplacian"
    Z = manhattan_distances(X) if given else X
    formula = KERNELS[kernel].formula
    gram.load(Z, formula, 0.1, 2, 1.0, scale=scale, origin=origin, given=given)
    gram.arrange(order)
    found, n_bad = gram.square(400)
    assert n_bad == 0
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, K[:400, :400], rtol=1e-12, atol=1e-13)
    wanted = K[30:440, 200:350] @ beta
    values, errors = gram.products(30, 440, 200, beta)
    np.testing.assert_allclose(values, wanted, rtol=1e-11, atol=1e-10)
    values, errors = gram.products(30, 440, 200, beta, exact=False)
    bound = 0.0 if errors is None else errors
    assert np.all(np.abs(values - wanted) <= bound + 1e-10)
    if kernel == "rbf":
        assert np.median(errors) < 2e-3  # and not the values in double precision
        assert np.abs(values - wanted).max() > 1e-10


def test_kernel_of_given_distances(rng):
    X, order, squares = rng.normal(size=(N, P)), np.arange(N), np.empty((N, N))
    gram = FoldGram()
    gram.load(X, Formula.SQUARES, origin=7)
    gram.arrange(order)
    assert gram.square(N, squares)[1] == 0
    wanted = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares, wanted, rtol=1e-12, atol=1e-13)
    gram.load(squares, Formula.LAPLACIAN, 0.3, given=True)
    gram.arrange(order)
    K = gram_matrix(X, kernel="rbf", gamma=0.3)
    np.testing.assert_allclose(gram.square(N)[0], K, rtol=1e-12)


def test_features_that_are_not_finite_are_counted():
    X = np.zeros((5, 2))
    X[4, 1] = np.inf
    gram = FoldGram()
    gram.load(X, Formula.RBF)
    gram.arrange(np.arange(5))
    assert gram.square(2)[1] > 0
