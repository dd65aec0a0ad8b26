# SPDX-License-Identifier: BSD-3-Clause
"""Products of RBF kernels with another gamma, against scikit-learn's kernel."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from leaveout.kernel._gram_fast import FoldGram, Formula
from leaveout.kernel._moved_gram import Expansion, MovedGram

GAMMA = 0.3


def make_case(rng, change):
    X = rng.normal(size=(40, 3))
    distances = euclidean_distances(X, squared=True)
    beta = rng.normal(size=40) * (rng.random(40) < 0.6)
    K = rbf_kernel(X, gamma=GAMMA)
    return X, distances, Expansion(distances, K, GAMMA, change, beta)


def load(distances, gamma):
    gram = FoldGram()
    gram.load(distances, Formula.LAPLACIAN, gamma=gamma, given=True)
    return gram


@pytest.mark.parametrize("change", [0.0, 0.002, 0.03, 0.25])
def test_products_with_fixed_coefficients(rng, change):
    X, _, expansion = make_case(rng, change)
    for gamma in (GAMMA * (1 + change), GAMMA / (1 + change)):
        truth = rbf_kernel(X, gamma=gamma) @ expansion.beta
        size = np.abs(expansion.beta).sum()
        np.testing.assert_allclose(expansion.at(gamma), truth, 0, 1e-15 * size)


def test_products_where_some_coefficients_changed(rng):
    X, distances, expansion = make_case(rng, 0.05)
    gamma = 0.97 * GAMMA
    kernel = expansion.move(load(distances, gamma), gamma)
    assert isinstance(kernel, MovedGram)
    order = rng.permutation(40)
    kernel.arrange(order)
    K = rbf_kernel(X, gamma=gamma)[np.ix_(order, order)]
    np.testing.assert_allclose(kernel.square(15)[0], K[:15, :15], 0, 1e-14)
    beta = expansion.beta[order]
    pull, errors = kernel.products(0, 15, 15, beta[15:])
    np.testing.assert_allclose(pull, K[:15, 15:] @ beta[15:], 0, 1e-13)
    assert errors is None
    assert not kernel.products(0, 15, 15, beta[:0])[0].any()
    beta[:15] += rng.normal(size=15)
    truth = K[15:, :30] @ beta[:30]
    found, errors = kernel.products(15, 40, 0, beta[:30])
    np.testing.assert_allclose(found, truth, 0, 1e-13)
    found, errors = kernel.products(15, 40, 0, beta, exact=False)
    truth = K[15:] @ beta
    assert (np.abs(found - truth) <= errors).all()
    assert 0.0 < errors.max() < 0.5


def test_larger_changes_are_computed_directly(rng):
    _, distances, expansion = make_case(rng, 0.05)
    gram = load(distances, 2 * GAMMA)
    assert expansion.move(gram, 2 * GAMMA) is gram
