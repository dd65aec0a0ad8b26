# SPDX-License-Identifier: BSD-3-Clause
"""A small report, made by hand."""

import numpy as np

from leaveout.data import Dataset
from leaveout.loo._result import LooResult
from leaveout.report._select_report import SelectReport

DATASET = Dataset(
    "toys", np.ones((8, 2)), np.array(list("aaaaabbb")), ["u", "v"], "kind"
)
SHARES = {  # by C and gamma: scores of 8 samples
    (0.01, 0.015625): 6 / 8,
    (0.01, 0.25): 7 / 8,
    (1000.0, 0.015625): 7 / 8,
    (1000.0, 0.25): 1.0,
}


def make_result(n_wrong):
    """A result whose first samples are wrong, and two others ambiguous."""
    y = DATASET.y
    wrong = np.arange(8) < n_wrong
    predictions = np.where(wrong, "b", y)
    margins = np.where(wrong, -1.0, 1.0)
    return LooResult(
        decision_values=margins,
        predictions=predictions,
        y=y,
        margins=margins,
        lower=margins,
        upper=margins,
        ambiguous=np.arange(8) > 5,
        settled_by=np.full(8, "walk"),
        uncertified_by=np.full(8, ""),
        method="walk",
    )


def make_report(with_gamma=True, best=(1000.0, 0.015625), **more):
    """A report on the cells of SHARES, or on those of the first gamma."""
    cells = {key: s for key, s in SHARES.items() if with_gamma or key[1] == 0.015625}
    params = [{"C": C} | ({"gamma": g} if with_gamma else {}) for C, g in cells]
    grid = {"C": [0.01, 1000.0]}
    if with_gamma:
        grid["gamma"] = [0.015625, 0.25]
    scores = np.array(list(cells.values()))
    return SelectReport(
        dataset=DATASET,
        preparation="Nothing was done.",
        kernel="rbf" if with_gamma else "linear",
        class_weight=None,
        grid=grid,
        errors=1.0 - scores,
        cells={
            "params": params,
            "mean_test_score": scores,
            "std_test_score": np.sqrt(scores * (1 - scores) / 8),
            "n_ambiguous": np.full(len(cells), 2),
            "anti_learning": np.array(
                [C < 1 and s < 0.8 for (C, _), s in cells.items()]
            ),
        },
        best_index=list(cells).index(best),
        result=make_result(1),
        **more,
    )
