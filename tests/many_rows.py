# SPDX-License-Identifier: BSD-3-Clause
"""FeatureSVCs that solve few rows like millions, and what their labels must equal."""

from functools import partial

import numpy as np

import leaveout as lo
from leaveout.large._solve import Sizes

# For values closer to zero than this, rounding decides the label.
CLOSE_CALL = 1e-6


class SmallSizes(lo.FeatureSVC):
    """Solves few rows like millions: samples, Newton, windows, walks in windows."""

    _sizes = Sizes(
        few_rows=4, few_per_component=1, largest_sample=64, smallest_sample=4,
        sample_factor=3, smallest_window=24,
    )  # fmt: skip


ManyRows = partial(SmallSizes, random_state=0)


def draw(rng, n, p, n_classes=2, noise=0.7, first=0.5):
    """Rows whose classes follow the first column; ``first`` is the share of class 0."""
    X = rng.normal(size=(n, p))
    score = X[:, 0] + noise * rng.normal(size=n)
    shares = first + (1.0 - first) * np.arange(n_classes - 1) / max(n_classes - 1, 1)
    y = np.searchsorted(np.quantile(score, shares), score)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def exact(X, y, C, weights=None, class_weight=None):
    """Fit and leave out by the exact engine, on rows around their mean."""
    svc = lo.SVC(kernel="linear", C=C, class_weight=class_weight)
    how = {"sample_weight": weights, "score_sample_weight": weights}
    loo = lo.leave_one_out(svc, X - X.mean(axis=0), y, **how)
    return svc.fit(X - X.mean(axis=0), y, weights), loo


def assert_no_proof_is_wrong(clf, y, loo, weights=None):
    """Compare what FeatureSVC proves with a LooResult, which walks every row."""
    weights = np.ones(len(y)) if weights is None else weights
    decided = ~loo.ambiguous & (np.abs(loo.binary_values).min(axis=1) > CLOSE_CALL)
    proved = clf.loo_proved_ & decided
    np.testing.assert_array_equal(clf.loo_labels_[proved], loo.predictions[proved])
    wrong = clf.loo_labels_ != y
    low = np.average(wrong & clf.loo_proved_, weights=weights)
    high = np.average(wrong | ~clf.loo_proved_, weights=weights)
    np.testing.assert_allclose(clf.loo_error_, (low, high), atol=1e-12)
    assert clf.path_["n_open"][0] == np.sum(~clf.loo_proved_)
    unclear = np.average(~decided, weights=weights)
    assert low - unclear - 1e-12 <= loo.error <= high + unclear + 1e-12
