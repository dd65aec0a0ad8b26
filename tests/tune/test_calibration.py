# SPDX-License-Identifier: BSD-3-Clause
"""Platt's sigmoid and pairwise coupling against SciPy's optimisers."""

import numpy as np
import pytest
from scipy.optimize import minimize

from leaveout.tune._calibration import couple_pairs, fit_sigmoid


def smoothed_loss(point, values, positive, weights):
    """Return Platt's objective, as in the paper."""
    n_pos, n_neg = weights[positive].sum(), weights[~positive].sum()
    t = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    z = point[0] * values + point[1]
    return np.sum(weights * (t * np.logaddexp(0, -z) + (1 - t) * np.logaddexp(0, z)))


@pytest.mark.parametrize(("scale", "weighted"), [(1e-6, True), (1, False), (1e6, True)])
def test_sigmoid_is_the_optimum(rng, scale, weighted):
    positive = np.arange(60) % 3 == 0
    values = np.where(positive, 1.0, -1.0) + rng.standard_normal(60)
    weights = rng.uniform(0, 3, size=60) if weighted else np.ones(60)
    sigmoid = fit_sigmoid(scale * values, positive, weights if weighted else None)
    arguments = values, positive, weights
    found = minimize(smoothed_loss, np.zeros(2), arguments, "BFGS", tol=1e-9)
    ours = [sigmoid.slope * scale, sigmoid.offset]
    assert ours == pytest.approx(found.x, rel=1e-4, abs=1e-5)
    assert smoothed_loss(ours, *arguments) <= found.fun + 1e-10


def test_separated_reversed_and_equal_values():
    values = np.array([-3.0, -2.0, 2.0, 3.0])
    p = fit_sigmoid(values, values > 0)(values)
    # Platt's targets for two and two: 1/4 and 3/4.
    assert p.mean() == pytest.approx(0.5)
    assert 0.15 < p[0] < 0.25 < p[1] < 0.35
    # In the wrong order: the class proportion.
    reversed_ = fit_sigmoid(values, values < 2.5)
    assert reversed_.slope == 0.0
    np.testing.assert_allclose(reversed_(values), 0.75)
    positive = np.arange(12) < 4
    for value in (0.0, 2.5):
        p = fit_sigmoid(np.full(12, value), positive)(np.array([value]))
        # Up to Platt's smoothing, (4 * 5/6 + 8 * 1/10) / 12 = 0.3444.
        assert p == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("k", [2, 7])
def test_coupling_is_the_optimum(rng, k):
    r = rng.uniform(0.02, 0.98, size=(4, k, k))
    r = np.triu(r, 1) + np.tril(1 - np.swapaxes(r, 1, 2), -1)

    def objective(q, one):
        terms = one.T * q[:, None] - one * q  # r_ji p_i - r_ij p_j
        return np.sum(terms[~np.eye(k, dtype=bool)] ** 2)

    for one, ours in zip(r, couple_pairs(r), strict=True):
        found = minimize(
            objective, np.full(k, 1 / k), one, "SLSQP", bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        assert objective(ours, one) <= found.fun + 1e-10
        np.testing.assert_allclose(ours, found.x, atol=1e-4)


def test_certain_pairs():
    certain = np.triu(np.ones((1, 3, 3)), 1)
    np.testing.assert_allclose(couple_pairs(certain), [[1.0, 0.0, 0.0]], atol=1e-5)
