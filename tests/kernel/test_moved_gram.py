# SPDX-License-Identifier: BSD-3-Clause
"""Products of kernels that differ a little, against kernels in full."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from leaveout.kernel._gram_fast import FoldGram, Formula
from leaveout.kernel._moved_gram import (
    Expansion,
    LinearRescaling,
    MovedGram,
    Rescaling,
)

GAMMA = 0.3


def make_case(rng, *gammas):
    X = rng.normal(size=(40, 3))
    distances = euclidean_distances(X, squared=True)
    beta = rng.normal(size=40) * (rng.random(40) < 0.6)
    K = rbf_kernel(X, gamma=GAMMA)
    parts = beta * np.stack([beta > 0, beta <= 0])
    factors = rng.uniform(0.5, 1.5, (len(gammas), 2))
    expansion = Expansion(distances, K, GAMMA, np.array(gammas), parts, factors)
    return X, distances, expansion


def load(distances, gamma):
    gram = FoldGram()
    gram.load(distances, Formula.LAPLACIAN, gamma=gamma, given=True)
    return gram


@pytest.mark.parametrize("change", [0.0, 0.002, 0.03, 0.24])
def test_products_with_fixed_coefficients(change, rng):
    gammas = GAMMA * (1 + change), GAMMA / (1 + change)
    X, _, expansion = make_case(rng, *gammas)
    found, errors, distances = expansion.at(np.arange(2))
    for k, gamma in enumerate(gammas):
        K, beta = rbf_kernel(X, gamma=gamma), expansion.factors[k] @ expansion.parts
        size = np.abs(beta).sum()
        np.testing.assert_allclose(found[k], K @ beta, 0, 1e-15 * size)
        assert np.abs(K - rbf_kernel(X, gamma=GAMMA)).max() <= distances[k]
    assert not errors.any()


def test_products_where_some_coefficients_changed(rng):
    gamma = 0.97 * GAMMA
    X, distances, expansion = make_case(rng, gamma)
    kernel = expansion.move(load(distances, gamma), 0)
    assert isinstance(kernel, MovedGram)
    order = rng.permutation(40)
    kernel.arrange(order)
    K = rbf_kernel(X, gamma=gamma)[np.ix_(order, order)]
    np.testing.assert_allclose(kernel.square(15)[0], K[:15, :15], 0, 1e-14)
    beta = (expansion.factors[0] @ expansion.parts)[order]
    pull, errors = kernel.products(0, 15, 15, beta[15:])
    np.testing.assert_allclose(pull, K[:15, 15:] @ beta[15:], 0, 1e-13)
    assert errors is None
    assert not kernel.products(0, 15, 15, beta[:0])[0].any()
    beta[:15] += rng.normal(size=15)
    truth = K[15:, :30] @ beta[:30]
    found, errors = kernel.products(15, 40, 0, beta[:30])
    np.testing.assert_allclose(found, truth, 0, 1e-13)
    assert errors is None


def test_larger_changes_are_computed_directly(rng):
    _, distances, expansion = make_case(rng, GAMMA, 2 * GAMMA)
    gram = load(distances, 2 * GAMMA)
    assert expansion.move(gram, 1) is gram
    assert np.isinf(expansion.at(np.arange(2))[1]).all(axis=1).tolist() == [False, True]


@pytest.mark.parametrize("size", [0.001, 0.05, 0.2, 0.6])
def test_rescaled_features(size, rng):
    X = rng.standard_t(3, size=(40, 5)) + 7.0
    changes = rng.uniform(-size, 2 * size, (6, 5))
    beta = rng.normal(size=40) * (rng.random(40) < 0.6)
    K = rbf_kernel(X, gamma=GAMMA)
    parts = beta * np.stack([beta > 0, beta <= 0])
    factors = rng.uniform(0.5, 1.5, (6, 2))
    rescaling = Rescaling(X, K, GAMMA, changes, parts, factors)
    values, errors, distances = rescaling.at(np.arange(6))
    for k, change in enumerate(changes):
        own = rbf_kernel(X * np.sqrt(1 + change), gamma=GAMMA)
        error = np.abs(values[k] - own @ (factors[k] @ parts))
        assert (error <= errors[k] + 1e-13).all()
        assert np.abs(own - K).max() <= distances[k]
    known = np.isfinite(distances)
    assert (known == (changes.min(axis=1) >= -0.25)).all()
    if size <= 0.05:  # far from trivial
        moves = np.abs(values - factors @ parts @ K)
        assert errors.max() < 0.2 * moves.max() + 40 * size**2


def test_rescaled_features_of_a_linear_kernel(rng):
    X, scales = rng.normal(size=(40, 5)), rng.uniform(0.5, 1.5, (6, 5))
    parts, factors = rng.normal(size=(2, 40)), rng.uniform(0.5, 1.5, (6, 2))
    rescaling = LinearRescaling(X, 0.25, scales, parts, factors)
    found, errors, distances = rescaling.at(np.array([4, 1]))
    for k, values in zip([4, 1], found, strict=True):
        Z = X * scales[k]
        truth = 0.25 * (Z @ Z.T) @ (factors[k] @ parts)
        np.testing.assert_allclose(values, truth, 1e-12, 1e-12)
    assert np.isnan(errors).all()
    assert np.isnan(distances).all()
