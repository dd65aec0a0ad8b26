# SPDX-License-Identifier: BSD-3-Clause
"""Problems for the tests: random ones, and named degenerate ones.

A problem is ``Case(K, y, C, fit_intercept)``, the arguments of :mod:`oracles.binary`
and ``leaveout.engine._problem.Problem`` in this order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.metrics.pairwise import (
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)

KERNELS = {
    "rbf": lambda X: rbf_kernel(X, gamma=0.5),
    "laplacian": lambda X: laplacian_kernel(X, gamma=0.5),
    "poly": lambda X: polynomial_kernel(X, degree=3, gamma=0.5, coef0=1.0),
    "linear": linear_kernel,
}


class Case(NamedTuple):
    """One binary SVM: Gram matrix, signs, upper bounds, intercept or not."""

    K: np.ndarray
    y: np.ndarray
    C: np.ndarray
    fit_intercept: bool


def gram(X, kernel):
    """Return the Gram matrix of a kernel of KERNELS, exactly symmetric."""
    K = KERNELS[kernel](np.asarray(X, dtype=np.float64))
    return 0.5 * (K + K.T)


def random_case(rng, n=None, kernel=None, C=None, fit_intercept=None, max_n=40):
    """Draw a noisy problem; omitted arguments are drawn, too.

    n is 2 to max_n, C is 1e-3 to 1e4 on a log scale. A third of the problems have
    weights (a spread of 100), a third lie on a grid of integers, where points
    coincide with equal and with opposite labels, and p is 1 to 4, so linear kernels are
    singular.
    """
    n = int(rng.integers(2, max_n + 1)) if n is None else n
    X = rng.normal(size=(n, int(rng.integers(1, 5))))
    if rng.random() < 1 / 3:
        X = np.round(X)
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[rng.permutation(n)[:2]] = [1.0, -1.0]
    C = 10 ** rng.uniform(-3, 4) if C is None else C
    weights = 10 ** rng.uniform(-1, 1, n) if rng.random() < 1 / 3 else np.ones(n)
    kernel = str(rng.choice(list(KERNELS))) if kernel is None else kernel
    fit_intercept = bool(rng.random() < 0.7) if fit_intercept is None else fit_intercept
    return Case(gram(X, kernel), y, C * weights, fit_intercept)


def _case(K, y, C, fit_intercept=True):
    y = np.asarray(y, dtype=np.float64)
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape).copy()
    return Case(np.asarray(K, dtype=np.float64), y, C, fit_intercept)


def _spread(n, p, seed):
    """Return n points in p dimensions, with labels from the first one plus noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y


def _without_free_vector():
    """alpha_0 = 0, but the left-out label of row 0 depends on the choice of b."""
    K = np.eye(5)
    K[0, 1:3] = K[1:3, 0] = 0.6
    return _case(K, [1, 1, 1, -1, -1], 0.1)


def _balanced_tiny_box():
    X, _ = _spread(12, 2, 1)
    return _case(gram(X, "rbf"), [1, -1] * 6, 1e-3)


def _majority_by_one_tiny_box():
    X, _ = _spread(13, 2, 2)
    return _case(gram(X, "rbf"), [1, -1] * 6 + [1], 1e-3)


def _singleton_class(fit_intercept=True):
    X, _ = _spread(10, 2, 3)
    return _case(gram(X, "rbf"), [1] + [-1] * 9, 1.0, fit_intercept)


def _zero_kernel_row(fit_intercept=True):
    X, y = _spread(11, 2, 4)
    X[4] = 0.0
    return _case(gram(X, "linear"), y, 1.0, fit_intercept)


def _duplicates(labels, C=1.0, kernel="rbf"):
    """Six locations, each with len(labels) points with these signs relative to y."""
    X, y = _spread(6, 2, 5)
    place = np.repeat(np.arange(6), len(labels))
    K = gram(X, kernel)[np.ix_(place, place)]  # copies are exactly equal
    return _case(K, y[place] * np.tile(labels, 6), C)


def _line(C, fit_intercept=True):
    X, y = _spread(15, 1, 6)
    return _case(gram(X, "linear"), y, C, fit_intercept)


def _integer_grid(C, kernel):
    rng = np.random.default_rng(7)
    X = rng.integers(0, 3, size=(30, 2)).astype(float)
    return _case(gram(X, kernel), np.where(rng.random(30) < 0.5, 1, -1), C)


def _spread_weights():
    X, y = _spread(20, 2, 8)
    return _case(gram(X, "rbf"), y, 10 ** np.linspace(-1.5, 1.5, 20))


def _hard_margin(kernel):
    X, _ = _spread(16, 2, 9)
    X[:, 0] += np.sign(X[:, 0])
    return _case(gram(X, kernel), np.sign(X[:, 0]), 1e6)


DEGENERATE: dict[str, Case] = {
    "no_free_vector": _without_free_vector(),
    "identity_three_two": _case(np.eye(5), [1, 1, 1, -1, -1], 0.1),
    "identity_three_two_weights": _case(
        np.eye(5), [1, 1, 1, -1, -1], [0.1, 0.1, 0.1, 0.14, 0.14]
    ),
    "identity_two_two": _case(np.eye(4), [1, 1, -1, -1], 0.1),
    "balanced_tiny_C": _balanced_tiny_box(),
    "majority_by_one_tiny_C": _majority_by_one_tiny_box(),
    "singleton_class": _singleton_class(),
    "singleton_class_no_bias": _singleton_class(False),
    "zero_kernel_row": _zero_kernel_row(),
    "zero_kernel_row_no_bias": _zero_kernel_row(False),
    "zero_kernel": _case(np.zeros((4, 4)), [1, 1, 1, -1], 1.0),
    "zero_kernel_no_bias": _case(np.zeros((3, 3)), [1, 1, -1], 1.0, False),
    "constant_kernel": _case(np.ones((5, 5)), [1, 1, -1, -1, -1], 2.0),
    "two_points": _case([[1.0, 0.2], [0.2, 1.0]], [1, -1], 10.0),
    "two_points_small_C": _case([[1.0, 0.2], [0.2, 1.0]], [1, -1], 0.1),
    "two_equal_points": _case(np.ones((2, 2)), [1, -1], 1.0),
    "two_equal_points_unequal_boxes": _case(np.ones((2, 2)), [1, -1], [2833.2, 760.9]),
    "zero_kernel_unequal_boxes": _case(np.zeros((2, 2)), [1, -1], [2833.2, 760.9]),
    "two_points_one_class_no_bias": _case(np.eye(2), [1, 1], 1.0, False),
    "duplicates_equal_labels": _duplicates([1, 1]),
    "duplicates_opposite_labels": _duplicates([1, -1]),
    "duplicates_majority": _duplicates([1, 1, -1]),
    "duplicates_unequal_boxes": _duplicates([1, 1], C=np.tile([0.5, 2.0], 6)),
    "duplicates_linear": _duplicates([1, 1], C=100.0, kernel="linear"),
    "line_small_C": _line(1e-2),
    "line": _line(1.0),
    "line_large_C": _line(1e4),
    "line_no_bias": _line(1.0, False),
    "integer_grid_linear": _integer_grid(1.0, "linear"),
    "integer_grid_rbf": _integer_grid(10.0, "rbf"),
    "integer_grid_large_C": _integer_grid(1e4, "poly"),
    "spread_weights": _spread_weights(),
    "hard_margin_rbf": _hard_margin("rbf"),
    "hard_margin_linear": _hard_margin("linear"),
}
