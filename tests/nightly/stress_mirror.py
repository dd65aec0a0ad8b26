# SPDX-License-Identifier: BSD-3-Clause
"""Mirror images: problems of any size whose left-out value is known to be zero.

Every sample has a mirror image with the other label and the same weight. A sample in
the mirror itself, left out, or never trained on, is then predicted by a model whose
optima come in pairs f and -f there: f is 0, or an interval around 0, whatever kernel,
C and conditioning. So no answer without a flag is right.
"""

from __future__ import annotations

import numpy as np
from oracles.problems import Case

import leaveout as lo

MIRRORED = {
    "walk": (lo.SVC, "walk"),
    "refit": (lo.SVC, "refit"),
    "stopping": (lo.SVC, "stopping"),
    "consolidated": (lo.SVC, "consolidated"),
    "magic": (lo.SVC, "magic"),
    "LPMClassifier": (lo.LPMClassifier, "auto"),
    "LOOMClassifier": (lo.LOOMClassifier, "auto"),
}


def _products(X):
    """X X' with the same bits for a pair and its image."""
    return sum(np.outer(x, x) for x in X.T)


def _rbf(rng, X):
    gamma = 10.0 ** rng.uniform(-5, 1)
    return np.exp(-gamma * sum(np.subtract.outer(x, x) ** 2 for x in X.T))


def _laplacian(rng, X):
    gamma = 10.0 ** rng.uniform(-5, 1)
    return np.exp(-gamma * sum(np.abs(np.subtract.outer(x, x)) for x in X.T))


def _polynomial(rng, X):
    return (10.0 ** rng.uniform(-5, 1) * _products(X) + 1.0) ** int(rng.integers(2, 9))


def _linear(rng, X):
    return _products(X) + float(rng.choice([0.0, 1.0, 1e3]))


KERNELS = (_rbf, _laplacian, _polynomial, _linear)


def draw_mirror(seed, most=40):
    """Return a Case, and the samples in the mirror that are left out or absent."""
    rng = np.random.default_rng([seed, 2])
    k, n_inside = int(rng.integers(1, most // 2)), int(rng.integers(1, 4))
    whole = rng.random(2) < 0.5
    width = int(rng.integers(1, 4))
    along = rng.normal(size=(k, width))
    inside = 2.0 * rng.normal(size=(n_inside, width))
    if whole[0]:
        along, inside = np.round(2.0 * along), np.round(inside)
    away = np.round(1 + 3 * rng.random(k)) if whole[1] else rng.normal(size=k)
    away *= 10.0 ** -int(rng.choice([0, 0, 0, 3, 6]))
    X = np.vstack([
        np.column_stack([away, along]),
        np.column_stack([-away, along]),
        np.column_stack([np.zeros(n_inside), inside]),
    ])  # fmt: skip
    signs = np.where(rng.random(k) < rng.choice([0.0, 0.3]), -1.0, 1.0)
    y = np.concatenate([signs, -signs, rng.choice([-1.0, 1.0], n_inside)])
    weights = 10.0 ** rng.uniform(-5, 5, k) if rng.random() < 0.3 else np.ones(k)
    K = KERNELS[int(rng.integers(len(KERNELS)))](rng, X)
    C = 10.0 ** rng.uniform(-4, 8)
    if rng.random() < 0.5:
        C /= K.max()
    # One sample in the mirror is trained on, and left out; or none is.
    own = np.zeros(n_inside)
    own[0] = float(rng.choice([0.0, 1.0, 1.0]))
    asked = np.arange(2 * k, 2 * k + (1 if own[0] else n_inside))
    bounds = C * np.concatenate([weights, weights, own])
    return Case(K, y, bounds, bool(rng.random() < 0.75)), asked


def judge_mirror(name, case, asked):
    """One word per sample, as in `nightly.stress`; no answer can be exact."""
    model, method = MIRRORED[name]
    model = model(kernel="precomputed", fit_intercept=case.fit_intercept)
    try:
        found = lo.leave_one_out(
            model, case.K, case.y, sample_weight=case.C, method=method
        )
    except (ValueError, lo.LeaveoutError):
        return ["refused"]
    return [
        "nan" if np.isnan([found.lower[r], found.margins[r], found.upper[r]]).any()
        else "uncertified" if not found.certified[r]
        else "ambiguous" if found.ambiguous[r] else "wrong"
        for r in asked
    ]  # fmt: skip
