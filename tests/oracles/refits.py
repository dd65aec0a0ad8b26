# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of any classifier by n refits."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from leaveout.adapt._pipeline import take_rows


def honest_refits(estimator, X, y, weights=None, name="sample_weight"):
    """Return predictions and decision values of clones fitted without each sample.

    The same as two runs of ``cross_val_predict(..., cv=LeaveOneOut())``.
    """
    n = len(y)
    predictions, values = [], []
    for r in range(n):
        kept = np.delete(np.arange(n), r)
        rest, left_out = take_rows(X, kept), take_rows(X, np.array([r]))
        if get_tags(estimator).input_tags.pairwise:
            rest, left_out = rest[:, kept], left_out[:, kept]
        weighted = {} if weights is None else {name: weights[kept]}
        fitted = clone(estimator).fit(rest, y[kept], **weighted)
        predictions.append(fitted.predict(left_out)[0])
        values.append(fitted.decision_function(left_out)[0])
    return np.array(predictions), np.array(values)
