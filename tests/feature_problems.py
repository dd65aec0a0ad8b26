# SPDX-License-Identifier: BSD-3-Clause
"""Small problems for the engine of very many rows, and what must come out.

The engine takes few rows whole. With its sizes set down it goes, on few rows, the way
it goes on millions: samples, Newton, windows, certificates, walks in windows. There
every row can be refitted.
"""

from __future__ import annotations

import warnings

import numpy as np
from oracles.binary import svc_clarabel

import leaveout as lo
import leaveout.large._fit as feature_svc
import leaveout.large._solve as linear_svc
import leaveout.large._window as window

# Labels of values closer to zero than this are left to rounding.
CLOSE_CALL = 1e-6


def pretend_many_rows(monkeypatch, smallest_window=24):
    """Set all sizes down."""
    monkeypatch.setattr(linear_svc, "FEW_ROWS", 4)
    monkeypatch.setattr(linear_svc, "FEW_PER_COMPONENT", 1)
    monkeypatch.setattr(window, "SMALLEST_WINDOW", smallest_window)
    monkeypatch.setattr(window, "WINDOW_PER_COMPONENT", 3)
    monkeypatch.setattr(feature_svc, "LARGEST_SAMPLE", 64)
    monkeypatch.setattr(
        feature_svc,
        "sample_sizes",
        lambda n, D, most: [s for s in (n // 8, n // 3) if s > 4],
    )


def draw(rng, n, p, n_classes=2, noise=0.7, first=0.5):
    """Rows whose classes follow the first column; ``first`` is the share of class 0."""
    X = rng.normal(size=(n, p))
    score = X[:, 0] + noise * rng.normal(size=n)
    shares = first + (1.0 - first) * np.arange(n_classes - 1) / max(n_classes - 1, 1)
    y = np.searchsorted(np.quantile(score, shares), score)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def exact(X, y, C, sample_weight=None, class_weight=None):
    """Fit and leave out by the exact engine, on rows around their mean."""
    svc = lo.SVC(kernel="linear", C=C, class_weight=class_weight)
    centred = X - X.mean(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lo.SingletonClassWarning)
        loo = lo.leave_one_out(
            svc, centred, y, sample_weight=sample_weight,
            score_sample_weight=sample_weight,
        )  # fmt: skip
    return svc.fit(centred, y, sample_weight), loo


def assert_no_proof_is_wrong(clf, y, loo, weights=None):
    """Compare what FeatureSVC proves with a LooResult, which walks every row."""
    weights = np.ones(len(y)) if weights is None else weights
    decided = ~loo.ambiguous & (np.abs(loo.machine_values).min(axis=1) > CLOSE_CALL)
    proved = clf.loo_proved_ & decided
    np.testing.assert_array_equal(clf.loo_labels_[proved], loo.predictions[proved])
    wrong = clf.loo_labels_ != y
    low = np.average(wrong & clf.loo_proved_, weights=weights)
    high = np.average(wrong | ~clf.loo_proved_, weights=weights)
    np.testing.assert_allclose(clf.loo_error_, (low, high), atol=1e-12)
    unclear = np.average(~decided, weights=weights)
    assert low - unclear - 1e-12 <= loo.error <= high + unclear + 1e-12


def refit_values(Z, signs, boxes, rows):
    """Values of some rows without them, by interior points: intervals (low, high)."""
    values = []
    for r in rows:
        kept = np.arange(len(signs)) != r
        optimum = svc_clarabel(Z[kept] @ Z[kept].T, signs[kept], boxes[kept])
        g = Z[r] @ (Z[kept].T @ optimum.beta)
        values.append((g + optimum.b_low, g + optimum.b_high))
    return np.array(values)
