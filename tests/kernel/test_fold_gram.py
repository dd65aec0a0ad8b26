# SPDX-License-Identifier: BSD-3-Clause
"""Kernel values of one fold, in any order of the samples."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import manhattan_distances

from leaveout.kernel._gram import KERNELS, gram_matrix
from leaveout.kernel._gram_fast import FoldGram, nearest_to_mean

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
    gram = FoldGram(KERNELS[kernel].formula, 2, 1.0, scale, origin)
    given = kernel == "laplacian"
    gram.load(manhattan_distances(X) if given else X, 0.1, given)
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


def test_features_that_are_not_finite_are_counted():
    X = np.zeros((5, 2))
    X[4, 1] = np.inf
    gram = FoldGram(KERNELS["rbf"].formula)
    gram.load(X, 1.0)
    gram.arrange(np.arange(5))
    assert gram.square(2)[1] > 0
