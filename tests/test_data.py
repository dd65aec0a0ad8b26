# SPDX-License-Identifier: BSD-3-Clause
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
    """The observed rate is within four standard errors of the true one."""
    standard_error = np.sqrt(expected * (1 - expected) / len(wrong))
    assert abs(wrong.mean() - expected) < 4 * standard_error


@pytest.mark.parametrize("make", GENERATORS)
def test_seed_shape_type_and_balance(make):
    X, y = make(31, random_state=0)
    np.testing.assert_array_equal(make(31, random_state=0)[0], X)
    assert not np.array_equal(make(5)[0], make(5)[0])
    for wrong in (0, 2.5):
        with pytest.raises(ValueError, match=r"n_samples must be a whole number"):
            make(wrong)
    assert X.shape[0] == 31
    assert X.dtype == np.float64
    assert np.issubdtype(y.dtype, np.integer)
    counts = np.bincount(y)
    assert counts.max() - counts.min() <= 1
    assert (np.diff(y) < 0).any()


@pytest.mark.parametrize("n_features", [2, 20])
def test_twonorm_has_its_bayes_error(n_features):
    X, y = make_twonorm(N_MANY, n_features, random_state=0)
    assert_error_rate((X.sum(axis=1) < 0) != y, norm.cdf(-2))


def test_ringnorm_has_its_bayes_error():
    n_features = 20
    X, y = make_ringnorm(N_MANY, n_features, random_state=0)
    mean = np.full(n_features, 1 / np.sqrt(n_features))
    squared_radius = 4 / 3 * (n_features * np.log(4) + 1 / 3)
    inside = ((X - 4 / 3 * mean) ** 2).sum(axis=1) < squared_radius
    # |x - 4/3 mean|^2 is noncentral chi-squared in class 1, 4 times such in class 0.
    misses = ncx2.sf(squared_radius, n_features, 1 / 9)
    intrusions = ncx2.cdf(squared_radius / 4, n_features, 4 / 9)
    expected = (misses + intrusions) / 2
    assert expected == pytest.approx(0.0150, abs=5e-5)
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


def test_two_class_waveform_merges_the_last_two():
    X3, y3 = make_waveform(60, random_state=0)
    X2, y2 = make_waveform(60, n_classes=2, random_state=0)
    assert np.array_equal(X2, X3)
    assert np.array_equal(y2, (y3 > 0).astype(int))
    with pytest.raises(ValueError, match="n_classes must be 3 or 2; got 4"):
        make_waveform(60, n_classes=4)


def mixture_bayes_error(seed):
    centers = make_mixture_centers(20, random_state=seed)
    X, y = make_mixture(4000, centers=centers, random_state=seed + 1)
    squares = ((X[:, None, None] - centers) ** 2).sum(axis=-1)
    return np.mean(np.argmax(logsumexp(-squares / 18, axis=2), axis=1) != y)


def test_mixture_as_printed():
    centers = make_mixture_centers(400, random_state=0)
    assert centers.shape == (2, 10, 400)
    halves = centers.reshape(2, 10, 2, 200).mean(axis=(1, 3))
    np.testing.assert_allclose(halves, [[0, 1], [1, 0]], atol=0.1)
    assert centers[1, :, :200].std() == pytest.approx(1, abs=0.05)
    X, _ = make_mixture(500, centers=np.zeros((2, 10, 400)), random_state=0)
    assert X.std() == pytest.approx(3, rel=0.01)


def test_mixture_bayes_error_is_the_documented_one():
    errors = [mixture_bayes_error(seed) for seed in range(8)]
    assert np.mean(errors) == pytest.approx(0.20, abs=0.02)


def test_mixture_uses_the_given_centers():
    centers = 100.0 * np.arange(20).reshape(2, 10, 1)
    X, y = make_mixture(400, centers=centers, random_state=0)
    nearest = np.rint(X[:, 0] / 100).astype(int)
    assert np.array_equal(nearest // 10, y)
    assert set(nearest) == set(range(20))


def test_banana_without_noise_is_two_arcs():
    X, y = make_banana(400, noise=0.0, random_state=0)
    np.testing.assert_allclose(np.hypot(*X[y == 0].T), 5.0)
    np.testing.assert_allclose(np.hypot(*(X[y == 1] + 3.75).T), 5.0)
    with pytest.raises(ValueError, match="noise must be at least 0; got -1"):
        make_banana(10, noise=-1)


def test_blobs_have_their_bayes_error():
    with pytest.raises(ValueError, match=r"n_classes must be .* at least 2; got 1"):
        make_class_blobs(n_classes=1)
    X, y = make_class_blobs(N_MANY, 3, n_classes=2, separation=2.0, random_state=0)
    assert_error_rate((X[:, 0] < 0) != y, norm.cdf(-1))
    X, y = make_class_blobs(N_MANY, n_classes=4, separation=2.0, random_state=0)
    angle = np.arctan2(X[:, 1], X[:, 0])
    nearest = np.rint(angle / (np.pi / 2)).astype(int) % 4
    assert_error_rate(nearest != y, 1 - norm.cdf(1) ** 2)
