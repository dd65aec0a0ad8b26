# SPDX-License-Identifier: BSD-3-Clause
"""Exact copies are found by their kernel rows, and only they."""

import numpy as np
import pytest
from oracles.problems import KERNELS, gram

from leaveout.kernel._symmetric import first_copies


def brute_force(X, y, C, rows):
    """The first of the rows with the same x, y and C."""
    key = [(*X[i], y[i], C[i]) for i in rows]
    return np.array([rows[key.index(k)] for k in key])


@pytest.mark.parametrize("kernel", KERNELS)
def test_copies_are_those_of_the_inputs(kernel):
    rng = np.random.default_rng(len(kernel))
    for _ in range(20):
        n = int(rng.integers(3, 40))
        X = rng.integers(0, 3, size=(n, 2)).astype(float)
        if kernel == "linear":
            X += 1.0  # 0 and its multiples aside, <x, .> knows x
        y, C = rng.choice([-1.0, 1.0], n), rng.choice([1.0, 2.0], n)
        rows = np.sort(rng.permutation(n)[: n // 2 + 1])
        found = first_copies(gram(X, kernel), y, C, rows)
        np.testing.assert_array_equal(found, brute_force(X, y, C, rows))


def test_near_copies_are_no_copies():
    X = np.array([[0.0], [1e-5], [1.0], [0.0]])
    found = first_copies(gram(X, "laplacian"), np.ones(4), np.ones(4), np.arange(4))
    np.testing.assert_array_equal(found, [0, 1, 2, 0])


def test_no_rows():
    empty = np.arange(0)
    assert first_copies(np.eye(3), np.ones(3), np.ones(3), empty).size == 0
