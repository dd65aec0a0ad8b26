# SPDX-License-Identifier: BSD-3-Clause
"""Data generators: the error of each Bayes rule."""

import numpy as np
import pytest
from datasets import make_class_blobs, make_ringnorm, make_waveform
from scipy.special import logsumexp
from scipy.stats import ncx2, norm

from leaveout.data import make_banana, make_mixture, make_mixture_centers, make_twonorm

GENERATORS = [
    make_banana, make_class_blobs, make_mixture, make_ringnorm, make_twonorm,
    make_waveform,
]  # fmt: skip
N_MANY = 40_000


def assert_error_rate(wrong, expected):
    """Assert that a rate is within four standard errors of the true one."""
    standard_error = np.sqrt(expected * (1 - expected) / len(wrong))
    assert abs(wrong.mean() - expected) < 4 * standard_error


@pytest.mark.parametrize("make", GENERATORS)
def test_seed_shape_type_and_balance(make):
    X, y = make(31, random_state=0)
    np.testing.assert_array_equal(make(31, random_state=0)[0], X)
    assert not np.array_equal(make(5)[0], make(5)[0])
    assert (X.shape[0], X.dtype, y.dtype.kind) == (31, np.float64, "i")
    assert np.ptp(np.bincount(y)) <= 1
    assert (np.diff(y) < 0).any()


@pytest.mark.parametrize(
    ("make", "params", "message"),
    [
        (make_twonorm, {"n_samples": 0}, "n_samples must be an integer .* 1; got 0"),
        (make_mixture, {"n_features": 2.5}, "n_features must be an integer"),
        (make_banana, {"noise": -1}, "noise must be at least 0; got -1"),
        (make_class_blobs, {"n_classes": 1}, "n_classes must be .* at least 2; got 1"),
        (make_waveform, {"n_classes": 4}, "n_classes must be 3 or 2; got 4"),
    ],
)
def test_wrong_arguments(make, params, message):
    with pytest.raises(ValueError, match=message):
        make(**params)


def test_gaussian_classes_have_their_bayes_errors():
    X, y = make_twonorm(N_MANY, 2, random_state=0)
    assert_error_rate((X.sum(axis=1) < 0) != y, norm.cdf(-2))
    X, y = make_class_blobs(N_MANY, n_classes=4, separation=2.0, random_state=0)
    nearest = np.rint(np.arctan2(X[:, 1], X[:, 0]) / (np.pi / 2)).astype(int) % 4
    assert_error_rate(nearest != y, 1 - norm.cdf(1) ** 2)
    X, y = make_ringnorm(N_MANY, 20, random_state=0)
    squared_radius = 4 / 3 * (20 * np.log(4) + 1 / 3)
    inside = ((X - 4 / 3 / np.sqrt(20)) ** 2).sum(axis=1) < squared_radius
    # |x - 4/3 mean|^2 is noncentral chi-squared in class 1, 4 times such in class 0.
    misses = ncx2.sf(squared_radius, 20, 1 / 9)
    expected = (misses + ncx2.cdf(squared_radius / 4, 20, 4 / 9)) / 2
    assert_error_rate(inside != (y == 1), expected)


def test_waveform_has_about_its_bayes_error():
    X, y = make_waveform(4000, random_state=0)
    t = np.arange(1, 22)
    h = [np.maximum(6.0 - abs(t - peak), 0) for peak in (11, 15, 7)]
    shares = (np.arange(50) + 0.5) / 50
    log_density = []
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        means = np.outer(shares, h[a]) + np.outer(1 - shares, h[b])
        squares = (X**2).sum(1)[:, None] - 2 * X @ means.T + (means**2).sum(1)
        log_density.append(logsumexp(-squares / 2, axis=1))
    assert np.mean(np.argmax(log_density, axis=0) != y) == pytest.approx(0.14, abs=0.02)
    merged = make_waveform(4000, n_classes=2, random_state=0)[1]
    assert np.array_equal(merged, (y > 0).astype(int))


def test_mixture_has_its_centres_and_the_documented_bayes_error():
    halves = make_mixture_centers(400, random_state=0).reshape(2, 10, 2, 200)
    np.testing.assert_allclose(halves.mean(axis=(1, 3)), [[0, 1], [1, 0]], atol=0.1)
    errors = []
    for seed in range(8):
        centers = make_mixture_centers(20, random_state=seed)
        X, y = make_mixture(4000, centers=centers, random_state=seed + 1)
        squares = ((X[:, None, None] - centers) ** 2).sum(axis=-1)
        best = np.argmax(logsumexp(-squares / 18, axis=2), axis=1)
        errors.append(np.mean(best != y))
    assert np.mean(errors) == pytest.approx(0.20, abs=0.02)


def test_banana_without_noise_is_two_arcs():
    X, y = make_banana(400, noise=0.0, random_state=0)
    np.testing.assert_allclose(np.hypot(*X[y == 0].T), 5.0)
    np.testing.assert_allclose(np.hypot(*(X[y == 1] + 3.75).T), 5.0)
