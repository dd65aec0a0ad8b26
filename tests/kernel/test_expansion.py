# SPDX-License-Identifier: BSD-3-Clause
"""Values of expansions: the plain formula, in any number of blocks."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from leaveout.kernel._gram import evaluate_expansion


@pytest.mark.parametrize("block_values", [1, 20, 2**22])
@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_equals_the_formula(rng, monkeypatch, block_values, container):
    monkeypatch.setattr("leaveout.kernel._gram.BLOCK_VALUES", block_values)
    X, centres = rng.normal(size=(13, 3)), rng.normal(size=(7, 3))
    coefficients, intercepts = rng.normal(size=(7, 2)), rng.normal(size=2)
    wanted = rbf_kernel(X, centres, gamma=0.7) @ coefficients + intercepts
    values = evaluate_expansion(
        container(X),
        container(centres),
        coefficients,
        intercepts,
        kernel="rbf",
        gamma=0.7,
    )
    np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-13)
    K = rbf_kernel(X, centres, gamma=0.7)
    values = evaluate_expansion(K, None, coefficients, intercepts, kernel="precomputed")
    np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-13)


def test_without_centres_only_the_intercept_is_left():
    values = evaluate_expansion(
        np.ones((3, 2)), np.empty((0, 2)), np.empty((0, 1)), np.ones(1), kernel="rbf"
    )
    np.testing.assert_array_equal(values, np.ones((3, 1)))
