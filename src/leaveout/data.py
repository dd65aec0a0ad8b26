# SPDX-License-Identifier: BSD-3-Clause
"""Tables as a Dataset, an example data set, and generators of simulated data.

The generators draw classes 0 and 1 of equal size, up to one sample.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.utils import check_random_state

from leaveout._typing import FloatArray, IntArray
from leaveout.tables._columns import read_dataset
from leaveout.tables._dataset import Dataset, load_example

__all__ = [
    "Dataset",
    "load_example",
    "make_banana",
    "make_mixture",
    "make_mixture_centers",
    "make_twonorm",
    "read_dataset",
]

Seed = int | RandomState | None


def make_twonorm(
    n_samples: int = 100, n_features: int = 20, *, random_state: Seed = None
) -> tuple[FloatArray, IntArray]:
    """Generate two Gaussian classes with unit covariance (twonorm).

    The means are (a, ..., a) for class 0 and (-a, ..., -a) for class 1 with
    a = 2 / sqrt(n_features). Their distance is 4, so the Bayes error is
    Phi(-2) = 0.0228; the Bayes rule is the sign of the sum of the features.

    Parameters
    ----------
    n_samples, n_features : int, default=100 and 20
        Number of samples and of features.
    random_state : int, RandomState instance or None, default=None
        Seed, for reproducible output across multiple calls.

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
    >>> X, y = make_twonorm(1000, random_state=0)
    >>> float(((X.sum(axis=1) < 0) != y).mean())
    0.023
    """
    _check_count("n_samples", n_samples)
    _check_count("n_features", n_features)
    rng = check_random_state(random_state)
    y = _draw_classes(n_samples, rng)
    means = np.array([2.0, -2.0]) / np.sqrt(n_features)
    return rng.standard_normal((n_samples, n_features)) + means[y, None], y


def make_mixture_centers(
    n_features: int = 20, *, random_state: Seed = None
) -> FloatArray:
    """Generate the centres for :func:`make_mixture`, ten per class.

    Parameters
    ----------
    n_features : int, default=20
        Number of features.
    random_state : int, RandomState instance or None, default=None
        Seed, for reproducible output across multiple calls.

    Returns
    -------
    centers : ndarray of shape (2, 10, n_features)
        ``centers[c]`` are the centres of class c.

    Examples
    --------
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
    """Generate two classes, each a mixture of ten Gaussians with standard deviation 3.

    The centres of class 1 are drawn from N((1, ..., 1, 0, ..., 0), I), those of class 0
    from N((0, ..., 0, 1, ..., 1), I). A sample is a random centre of its class plus
    noise from N(0, 9 I).

    Parameters
    ----------
    n_samples, n_features : int, default=100 and 20
        Number of samples and of features; the paper uses 20 and 200 features.
        ``n_features`` is ignored if ``centers`` is given.
    centers : ndarray of shape (2, 10, n_features), default=None
        Centres from :func:`make_mixture_centers`, so that training and test samples
        have the same distribution; None draws new centres.
    random_state : int, RandomState instance or None, default=None
        Seed, for reproducible output across multiple calls.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    y : ndarray of int, shape (n_samples,)
        Classes 0 (negative in the paper) and 1 (positive).

    Notes
    -----
    The design follows section 4.1 of the paper. With 20 features its Bayes error is
    about 0.20 (average over the centres), not 0.260 as stated in section 5; the
    authors' code may differ from the text.

    References
    ----------
    B. Wang and A. Y. Yang, "A consolidated cross-validation algorithm for support
    vector machines via data reduction", 2022.

    Examples
    --------
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
    y = _draw_classes(n_samples, rng)
    center = rng.randint(centers.shape[1], size=n_samples)
    noise = rng.standard_normal((n_samples, centers.shape[2]))
    return centers[y, center] + 3.0 * noise, y


def make_banana(
    n_samples: int = 100, *, noise: float = 1.0, random_state: Seed = None
) -> tuple[FloatArray, IntArray]:
    """Generate two interlocking banana-shaped classes in the plane.

    Each is an arc of 225 degrees of a circle of radius 5, with Gaussian noise.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    noise : float, default=1.0
        Standard deviation of the noise, at least 0.
    random_state : int, RandomState instance or None, default=None
        Seed, for reproducible output across multiple calls.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Samples.
    y : ndarray of int, shape (n_samples,)
        Classes 0 and 1.

    References
    ----------
    R. Duin et al., "PRTools, a Matlab toolbox for pattern recognition", function
    ``gendatb``, with the same angles, radius and offset.

    Examples
    --------
    >>> X, y = make_banana(50, random_state=0)
    >>> X.shape, y.sum()
    ((50, 2), np.int64(25))
    """
    _check_count("n_samples", n_samples)
    if not noise >= 0:
        raise ValueError(f"noise must be at least 0; got {noise!r}.")
    rng = check_random_state(random_state)
    y = _draw_classes(n_samples, rng)
    turn = 1.25 * np.pi * rng.uniform(size=n_samples)
    angle = np.where(y == 0, 0.125 * np.pi + turn, 0.375 * np.pi - turn)
    X = 5.0 * np.column_stack([np.sin(angle), np.cos(angle)])
    X[y == 1] -= 3.75  # into the opening of the other arc
    return X + noise * rng.standard_normal(X.shape), y


def _draw_classes(n_samples: int, rng: RandomState) -> IntArray:
    """Return the classes 0 and 1 in equal numbers and random order."""
    return rng.permutation(np.arange(n_samples) % 2)


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
