# SPDX-License-Identifier: BSD-3-Clause
"""Artificial data of the papers, seeded, with their sources.

Classes are numbered from 0 and as equal in size as n_samples allows; the order of the
samples is random.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.utils import check_random_state

from leaveout._typing import FloatArray, IntArray

# Any seed that scikit-learn takes: None, an int or a RandomState.
Seed = int | RandomState | None


def make_twonorm(
    n_samples: int = 100, n_features: int = 20, *, random_state: Seed = None
) -> tuple[FloatArray, IntArray]:
    """Draw two Gaussian classes with unit covariance, on either side of the origin.

    The means are (a, ..., a) for class 0 and (-a, ..., -a) for class 1 with
    a = 2 / sqrt(n_features). The means are 4 apart whatever the dimension, so the Bayes
    error is Phi(-2) = 0.0228; the best rule is the sign of the sum of the features.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_features : int, default=20
        Dimension.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    y : ndarray of int, shape (n_samples,)
        Classes 0 and 1.

    References
    ----------
    L. Breiman, "Bias, variance, and arcing classifiers", Technical Report 460,
    Statistics Department, University of California, Berkeley, 1996.

    Examples
    --------
    >>> from leaveout.data import make_twonorm
    >>> X, y = make_twonorm(1000, random_state=0)
    >>> float(((X.sum(axis=1) < 0) != y).mean())
    0.023
    """
    _check_count("n_samples", n_samples)
    _check_count("n_features", n_features)
    rng = check_random_state(random_state)
    y = _balanced_classes(n_samples, 2, rng)
    means = np.array([2.0, -2.0]) / np.sqrt(n_features)
    return rng.standard_normal((n_samples, n_features)) + means[y, None], y


def make_ringnorm(
    n_samples: int = 100, n_features: int = 20, *, random_state: Seed = None
) -> tuple[FloatArray, IntArray]:
    """Draw a narrow Gaussian class inside a wide one.

    Class 0 has mean 0 and covariance 4 I; class 1 has mean (a, ..., a) with
    a = 1 / sqrt(n_features) and covariance I. The best rule is a sphere. With 20
    features the Bayes error is 0.0150.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_features : int, default=20
        Dimension.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    y : ndarray of int, shape (n_samples,)
        Classes 0 and 1.

    References
    ----------
    L. Breiman, "Bias, variance, and arcing classifiers", Technical Report 460,
    Statistics Department, University of California, Berkeley, 1996.

    Examples
    --------
    >>> from leaveout.data import make_ringnorm
    >>> X, y = make_ringnorm(1000, random_state=0)
    >>> X[y == 0].std().round(1), X[y == 1].std().round(1)
    (np.float64(2.0), np.float64(1.0))
    """
    _check_count("n_samples", n_samples)
    _check_count("n_features", n_features)
    rng = check_random_state(random_state)
    y = _balanced_classes(n_samples, 2, rng)
    X = rng.standard_normal((n_samples, n_features))
    X[y == 0] *= 2.0
    X[y == 1] += 1.0 / np.sqrt(n_features)
    return X, y


def make_waveform(
    n_samples: int = 100, *, n_classes: int = 3, random_state: Seed = None
) -> tuple[FloatArray, IntArray]:
    """Draw noisy mixtures of two of three triangular waves, 21 features.

    With the waves h1(t) = max(6 - abs(t - 11), 0), h2(t) = h1(t - 4) and
    h3(t) = h1(t + 4), t = 1..21, a sample is u * h + (1 - u) * h' + noise, where u is
    uniform on [0, 1], the noise is standard normal, and (h, h') is (h1, h2), (h1, h3)
    or (h2, h3) for the three classes. The Bayes error is about 0.14.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_classes : {3, 2}, default=3
        With 2, the last two classes are merged: one third against two thirds.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 21)
        Samples.
    y : ndarray of int, shape (n_samples,)
        Classes, from 0.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen and C. Stone, "Classification and Regression
    Trees", Wadsworth, 1984, section 2.6.2.

    Examples
    --------
    >>> from leaveout.data import make_waveform
    >>> X, y = make_waveform(9, random_state=0)
    >>> X.shape, sorted(y.tolist())
    ((9, 21), [0, 0, 0, 1, 1, 1, 2, 2, 2])
    """
    _check_count("n_samples", n_samples)
    if n_classes not in (2, 3):
        raise ValueError(f"n_classes must be 3 or 2; got {n_classes!r}.")
    rng = check_random_state(random_state)
    t = np.arange(1, 22)
    waves = np.maximum(6.0 - np.abs(t - np.array([[11], [15], [7]])), 0.0)
    first, second = np.array([[0, 0, 1], [1, 2, 2]])
    y = _balanced_classes(n_samples, 3, rng)
    share = rng.uniform(size=(n_samples, 1))
    X = share * waves[first[y]] + (1.0 - share) * waves[second[y]]
    X += rng.standard_normal(X.shape)
    return X, np.minimum(y, n_classes - 1)


def make_mixture_centers(
    n_features: int = 20, *, random_state: Seed = None
) -> FloatArray:
    """Draw the twenty centres of :func:`make_mixture`, ten of each class.

    Parameters
    ----------
    n_features : int, default=20
        Dimension.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    centers : ndarray of shape (2, 10, n_features)
        ``centers[c]`` are the centres of class c.

    Examples
    --------
    >>> from leaveout.data import make_mixture_centers
    >>> make_mixture_centers(4, random_state=0).shape
    (2, 10, 4)
    """
    _check_count("n_features", n_features)
    rng = check_random_state(random_state)
    means = np.zeros((2, 1, n_features))
    means[1, :, : n_features // 2] = 1.0
    means[0, :, n_features // 2 :] = 1.0
    return means + rng.standard_normal((2, 10, n_features))


def make_mixture(
    n_samples: int = 100,
    n_features: int = 20,
    *,
    centers: FloatArray | None = None,
    random_state: Seed = None,
) -> tuple[FloatArray, IntArray]:
    """Draw two classes, each a mixture of ten Gaussians with standard deviation 3.

    The centres of class 1 come from N((1, ..., 1, 0, ..., 0), I), half of the
    coordinates being zero, those of class 0 from N((0, ..., 0, 1, ..., 1), I). A sample
    takes one of the ten centres of its class at random and adds N(0, 9 I).

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_features : int, default=20
        Dimension; 20 and 200 in the paper. Ignored if centers is given.
    centers : ndarray of shape (2, 10, n_features), default=None
        Centres of :func:`make_mixture_centers`, for training and test samples of the
        same distribution; None draws them anew.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    y : ndarray of int, shape (n_samples,)
        Classes 0 (negative in the paper) and 1 (positive).

    Notes
    -----
    This is the design as printed in section 4.1 of the paper, which goes back to
    Hastie, Tibshirani and Friedman (2009, section 2.3.3). With 20 features its Bayes
    error is about 0.20 (average over the centres), lower than the 0.260 that section 5
    of the paper gives: the authors' code may differ from the text.

    References
    ----------
    B. Wang and A. Y. Yang, "A consolidated cross-validation algorithm for support
    vector machines via data reduction", 2022.

    Examples
    --------
    >>> from leaveout.data import make_mixture, make_mixture_centers
    >>> centers = make_mixture_centers(20, random_state=0)
    >>> X, y = make_mixture(200, centers=centers, random_state=1)
    >>> X_test, y_test = make_mixture(10_000, centers=centers, random_state=2)
    >>> X.shape, X_test.shape
    ((200, 20), (10000, 20))
    """
    _check_count("n_samples", n_samples)
    rng = check_random_state(random_state)
    if centers is None:
        centers = make_mixture_centers(n_features, random_state=rng)
    y = _balanced_classes(n_samples, 2, rng)
    center = rng.randint(centers.shape[1], size=n_samples)
    noise = rng.standard_normal((n_samples, centers.shape[2]))
    return centers[y, center] + 3.0 * noise, y


def make_banana(
    n_samples: int = 100, *, noise: float = 1.0, random_state: Seed = None
) -> tuple[FloatArray, IntArray]:
    """Draw two interlocking banana-shaped classes in the plane.

    Each class is an arc of 225 degrees of a circle of radius 5, with Gaussian noise;
    the second is turned around and moved into the opening of the first.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    noise : float, default=1.0
        Standard deviation of the noise, at least 0.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Samples.
    y : ndarray of int, shape (n_samples,)
        Classes 0 and 1.

    References
    ----------
    R. Duin et al., "PRTools, a Matlab toolbox for pattern recognition", function
    ``gendatb``; its angles, radius and offset.

    Examples
    --------
    >>> from leaveout.data import make_banana
    >>> X, y = make_banana(50, random_state=0)
    >>> X.shape, y.sum()
    ((50, 2), np.int64(25))
    """
    _check_count("n_samples", n_samples)
    if not noise >= 0:
        raise ValueError(f"noise must be at least 0; got {noise!r}.")
    rng = check_random_state(random_state)
    radius = 5.0
    y = _balanced_classes(n_samples, 2, rng)
    turn = 1.25 * np.pi * rng.uniform(size=n_samples)
    angle = np.where(y == 0, 0.125 * np.pi + turn, 0.375 * np.pi - turn)
    X = radius * np.column_stack([np.sin(angle), np.cos(angle)])
    X[y == 1] -= 0.75 * radius
    return X + noise * rng.standard_normal(X.shape), y


def make_class_blobs(
    n_samples: int = 100,
    n_features: int = 2,
    *,
    n_classes: int = 3,
    separation: float = 4.0,
    random_state: Seed = None,
) -> tuple[FloatArray, IntArray]:
    """Draw Gaussian classes with unit covariance, centred evenly on a circle.

    Neighbouring centres are `separation` apart, in the plane of the first two features;
    the other features are noise. The best rule is the nearest centre: the Bayes error
    is Phi(-separation / 2) for two classes and 1 - Phi(separation / 2)^2 for four.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_features : int, default=2
        Dimension, at least 2.
    n_classes : int, default=3
        Number of classes, at least 2.
    separation : float, default=4.0
        Distance of neighbouring centres, in standard deviations.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    y : ndarray of int, shape (n_samples,)
        Classes 0 to n_classes - 1.

    Examples
    --------
    >>> from leaveout.data import make_class_blobs
    >>> X, y = make_class_blobs(8, n_classes=4, random_state=0)
    >>> sorted(y.tolist())
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    _check_count("n_samples", n_samples)
    _check_count("n_features", n_features, minimum=2)
    _check_count("n_classes", n_classes, minimum=2)
    rng = check_random_state(random_state)
    y = _balanced_classes(n_samples, n_classes, rng)
    angle = 2.0 * np.pi * np.arange(n_classes) / n_classes
    radius = separation / (2.0 * np.sin(np.pi / n_classes))
    X = rng.standard_normal((n_samples, n_features))
    X[:, 0] += radius * np.cos(angle)[y]
    X[:, 1] += radius * np.sin(angle)[y]
    return X, y


def _balanced_classes(n_samples: int, n_classes: int, rng: RandomState) -> IntArray:
    """Return the classes 0, 1, ... in equal numbers and random order."""
    return rng.permutation(np.arange(n_samples) % n_classes)


def _check_count(name: str, value: Any, minimum: int = 1) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(
            f"{name} must be a whole number of at least {minimum}; got {value!r}."
        )
