# SPDX-License-Identifier: BSD-3-Clause
"""Check the PredictorWarning: where is the default predictor wrong.

20 SVMs on each of 21 real sets, standardised, at most 300 samples. The limits, half of
the samples beyond the training range and a disagreement of 9 %, were set on ten other
sets. Nothing here was used to train the predictor, which saw generated data only.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
from common import print_table, write_rows
from sklearn.preprocessing import scale
from tsuda2001_common import NAME

import leaveout as lo
from leaveout.adapt._fitted import read_expansion
from leaveout.assess._loo_predictor import MOST_BEYOND, MOST_DISAGREE, _disagreement

SETS = (
    "ida_banana ida_breast_cancer ida_flare_solar ida_german ida_heart ida_image "
    "ida_ringnorm ida_splice ida_thyroid ida_titanic ida_twonorm ida_waveform "
    "ccv_arrhythmia ccv_australian ccv_chess ccv_hill_valley ccv_musk1 "
    "bio_breast_wisconsin bio_parkinsons chem_dhfr bin_spam"
).split()
PENALTIES = (0.1, 1.0, 10.0, 100.0)
WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)  # gamma times features
MOST_SAMPLES = 300
NOTES = [
    f"warning.csv: {len(SETS)} sets, C {PENALTIES}, gamma times features {WIDTHS}; "
    f"{MOST_SAMPLES} samples of larger sets, drawn with seed 0"
]


@dataclass
class Row:
    """One SVM; shares in per cent, ``off`` in points."""

    data: str
    n: int
    C: float
    width: float
    exact_error: float
    predicted_error: float
    off: float
    right: float
    beyond: float
    disagree: float
    not_unanimous: float

    @property
    def reason(self) -> str:
        """What the warning would say."""
        if self.beyond > 100 * MOST_BEYOND:
            return "beyond the range"
        disagree = self.disagree > 100 * MOST_DISAGREE
        return "members disagree" if disagree else "no warning"


def measure(name: str, X: np.ndarray, y: np.ndarray, C: float, width: float) -> Row:
    """Predict the left-out errors of one SVM and compare."""
    svc = lo.SVC(C=C, gamma=width / X.shape[1])
    predictor = lo.LooPredictor.load_default("svm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lo.LeaveoutWarning)
        wrong = lo.leave_one_out(svc, X, y).wrong
        svc.fit(X, y)
        votes = predictor.decision_values(svc, X, y) < 0
    features = predictor._features(read_expansion(svc, X, y))
    members = predictor.estimators_
    beyond = np.mean([m.is_beyond(features[m.variant]) for m in members])
    share = votes.mean(axis=0)
    rates = wrong.mean(), share.mean(), abs(wrong.mean() - share.mean())
    shares = (
        np.mean((share > 0.5) == wrong), beyond, _disagreement(votes),
        np.mean((share > 0) & (share < 1)),
    )  # fmt: skip
    numbers = [100 * float(value) for value in (*rates, *shares)]
    return Row(name, len(y), C, width, *numbers)


def load_set(args: argparse.Namespace, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised features and labels."""
    with np.load(args.data / f"{name}.npz") as file:
        X, y = file["X"].astype(np.float64), np.where(file["y"] > 0, 1, -1)
    rows = np.random.default_rng(args.seed).permutation(len(y))[:MOST_SAMPLES]
    X, y = X[rows], y[rows]
    return scale(X[:, X.std(axis=0) > 0]), y


def summarise(rows: list[Row]) -> list[str]:
    """Return what the predictions of some SVMs are worth."""
    off = np.array([row.off for row in rows])
    right = np.mean([row.right for row in rows])
    return [
        str(len(rows)), f"{right:.1f}", f"{np.median(off):.1f}",
        f"{100 * np.mean(off > 5):.0f}",
    ]  # fmt: skip


def run(args: argparse.Namespace) -> None:
    """Measure, print, store."""
    rows: list[Row] = []
    for name in SETS[:2] if args.quick else SETS:
        X, y = load_set(args, name)
        rows += [measure(name, X, y, C, width) for C in PENALTIES for width in WIDTHS]
    if not args.quick:
        write_rows(NAME, rows, "warning.csv")
    print("\nDefault predictor, by what the PredictorWarning says")
    header = ["", "SVMs", "right, %", "rate off, median", "off > 5 points, %"]
    table = []
    for reason in ("no warning", "members disagree", "beyond the range"):
        part = [row for row in rows if row.reason == reason]
        if part:
            table.append([reason, *summarise(part)])
    split = [row for row in rows if row.not_unanimous > 18]
    for label, part in (("votes split on > 18 %", split), ("all", rows)):
        if part:
            table.append([label, *summarise(part)])
    for name in dict.fromkeys(row.data for row in rows):
        table.append([name, *summarise([row for row in rows if row.data == name])])
    print_table(header, table)
