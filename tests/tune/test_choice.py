# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest
from scipy import sparse
from scipy.stats import rankdata

from leaveout.kernel._gram import gram_matrix
from leaveout.tune._choice import (
    best_within_one_se,
    default_Cs,
    default_gammas,
    kernel_scale,
    median_heuristic,
    rank_candidates,
    take_best,
)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
def test_median_heuristic_gives_typical_kernel_values(kernel, rng):
    X = 7.0 * rng.standard_normal((80, 5)) * (rng.random((80, 5)) < 0.5)
    gamma = median_heuristic(X, kernel)
    if kernel in ("rbf", "laplacian"):
        K = gram_matrix(X, kernel=kernel, gamma=gamma)[np.triu_indices(80, 1)]
        assert np.median(K[K < 1]) == pytest.approx(np.exp(-1), rel=0.02)
    else:
        norms = (X**2).sum(axis=1)
        assert np.median(gamma * norms[norms > 0]) == pytest.approx(1.0)
    assert median_heuristic(sparse.csr_array(X), kernel) == pytest.approx(gamma)
    assert median_heuristic(np.asfortranarray(X), kernel) == pytest.approx(gamma)
    many = np.repeat(X, 7, axis=0)  # of so many rows, every second one is used
    assert median_heuristic(many, kernel) == pytest.approx(gamma, rel=0.1)
    assert median_heuristic(np.zeros((3, 2)), kernel) == 1.0
    assert default_gammas(X, kernel) == pytest.approx(gamma * 4.0 ** np.arange(-2, 3))


def test_default_penalties_follow_the_kernel_scale(rng):
    X = 5.0 + 3.0 * rng.standard_normal((50, 4))
    spread = np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1))
    assert kernel_scale(X, "linear") == pytest.approx(spread)
    assert kernel_scale(sparse.csr_array(X), "linear") == pytest.approx(spread)
    assert kernel_scale(X @ X.T, "precomputed") == pytest.approx(spread)
    assert kernel_scale(X, "rbf") == kernel_scale(X, np.dot) == 1.0
    assert kernel_scale(np.zeros((3, 2)), "linear") == 1.0
    np.testing.assert_allclose(default_Cs(2e-3), 1e3 * default_Cs())


def test_ranks_equal_scipy_with_avoided_then_nan_last(rng):
    scores = rng.integers(0, 5, 12) / 5
    assert (rank_candidates(scores) == rankdata(-scores, method="min")).all()
    scores = np.array([np.nan, 0.5, 1.0, 0.7, np.nan, -np.inf])
    avoid = np.array([True, False, True, False, False, False])
    assert rank_candidates(scores, avoid).tolist() == [5, 2, 4, 1, 5, 3]
    assert rank_candidates(scores, np.ones(6, bool)).tolist() == [5, 3, 1, 2, 5, 4]


def test_ties_go_to_smaller_c_then_smaller_gamma_then_order():
    ranks = np.array([2, 1, 1, 1, 1])
    assert take_best(ranks, [0.1, 10, 1, 1, 1], [1, 1, 2, 0.5, 0.5]) == 3
    gammas = ["scale", "auto", "scale", 5, "auto"]
    assert take_best(ranks, [0.1, 1, 1, 1, 1], gammas) == 3
    assert take_best(ranks, [1, 1, 1, 1, 1]) == 1


@pytest.mark.parametrize(
    ("scores", "avoid", "chosen"),
    [
        ([0.5, 0.85, 0.9, 0.8], None, 1),
        ([0.79, 0.5, 0.9, 0.5], None, 2),  # 0.79 is more than one standard error below
        ([0.8, 0.5, 0.9, 0.5], None, 0),  # 0.8 is not
        ([0.95, 0.84, 0.9, 0.9], [True, False, False, False], 1),
        ([0.95, 0.9, 0.9, 0.9], [True] * 4, 0),
        ([np.nan] * 4, None, 0),
    ],
)
def test_smallest_C_within_one_standard_error(scores, avoid, chosen):  # noqa: N802
    avoid = None if avoid is None else np.array(avoid)
    Cs, errors = [0.1, 1.0, 10.0, 100.0], np.full(4, 0.1 + 1e-12)
    assert best_within_one_se(np.array(scores), errors, Cs, avoid=avoid) == chosen
