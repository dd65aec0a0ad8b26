# SPDX-License-Identifier: BSD-3-Clause
"""Artificial data that only benchmarks and tests need, and Wang & Yang's lambda.

We minimise ``1/2 ||w||^2 + C sum_i hinge_i``, Wang & Yang (2022) ``(1/n) sum_i hinge_i
+ lambda ||f||^2``: the same minimiser for C = 1 / (2 n lambda). Their left-out problems
keep the factor 1/n, so leaving out keeps C.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.utils import check_random_state

FloatArray = IntArray = np.ndarray
# Any seed that scikit-learn takes: None, an int or a RandomState.
Seed = int | RandomState | None


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


def penalty_from_lambda(lambdas: Any, n_samples: int) -> FloatArray:
    """Return C = 1 / (2 n lambda).

    Examples
    --------
    >>> penalty_from_lambda([0.01, 0.001], 50)
    array([ 1., 10.])
    """
    return 1.0 / (2.0 * n_samples * np.asarray(lambdas, dtype=np.float64))


def lambda_from_penalty(penalties: Any, n_samples: int) -> FloatArray:
    """Return lambda = 1 / (2 n C).

    Examples
    --------
    >>> lambda_from_penalty([1.0, 10.0], 50)
    array([0.01 , 0.001])
    """
    return 1.0 / (2.0 * n_samples * np.asarray(penalties, dtype=np.float64))


def _balanced_classes(n_samples: int, n_classes: int, rng: RandomState) -> IntArray:
    """Return the classes 0, 1, ... in equal numbers and random order."""
    return rng.permutation(np.arange(n_samples) % n_classes)


def _check_count(name: str, value: Any, minimum: int = 1) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(
            f"{name} must be a whole number of at least {minimum}; got {value!r}."
        )
