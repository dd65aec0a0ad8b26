# SPDX-License-Identifier: BSD-3-Clause
"""Is a difference from Table 1 of Weston (1999) more than chance? Split by split.

``splits``: the test error of every realisation with the parameters that Table 1 chose
(``results.csv``), and a t-test of the mean against the paper's number.

``folds``: breast-cancer. Which width do other cross-validation folds choose, and what
is its test error?
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache

import numpy as np
from common import load, print_table, read_rows, write_rows
from scipy import stats
from weston1999_table1 import (
    N_CHOOSE,
    WIDTHS,
    Row,
    cross_validate,
    test,
)

import leaveout as lo

SEEDS = 10


@dataclass
class SplitRow:
    """One classifier on one realisation; error in per cent."""

    data: str
    split: int
    original: bool
    classifier: str
    C: float
    width: float
    error: float


@dataclass
class FoldRow:
    """One division into folds: the median of the best widths and its test error."""

    data: str
    seed: int
    width: float
    error: float
    standard_error: float


def run_splits(args: argparse.Namespace) -> list[str]:
    """Test on every realisation; print means, standard errors and t-tests."""
    rows: list[SplitRow] = []
    chosen = {row.data: row for row in read_rows("weston1999", Row)}
    for name in ["heart"] if args.quick else chosen:
        choice = chosen[name]
        classifiers = {
            "LOOM": (np.nan, choice.width_cv),
            "LOOM, exact width": (np.nan, choice.width_exact),
            "SVM": (choice.svm_penalty, choice.svm_width),
        }
        data = load(args.data, name, args.seed)
        for label, (C, width) in classifiers.items():
            if np.isnan(width):
                continue
            for k, split in enumerate(data.splits):
                loom = lo.LOOMClassifier(gamma=width)
                model = loom if np.isnan(C) else lo.SVC(C=C, gamma=width)
                error = test(data, split, model)
                original = k < data.n_original
                rows.append(SplitRow(name, k + 1, original, label, C, width, error))
    if not args.quick:
        write_rows("weston1999", rows, "splits.csv")
    show_splits(rows, chosen)
    return [
        "Splits: p is that of a two-sided t-test of the mean over the realisations "
        "against the paper's mean over 100; the paper gives no deviation"
    ]


def show_splits(rows: list[SplitRow], chosen: dict[str, Row]) -> None:
    """Print each classifier beside the paper's."""
    table = []
    for name, label in dict.fromkeys((row.data, row.classifier) for row in rows):
        errors = [r.error for r in rows if (r.data, r.classifier) == (name, label)]
        row = chosen[name]
        paper = row.paper_svm if label == "SVM" else row.paper_loom
        mean, error = np.mean(errors), stats.sem(errors)
        p = stats.ttest_1samp(errors, paper).pvalue
        table.append(
            [name, label, f"{paper:.1f}", f"{mean:.1f}", f"{error:.1f}",
             f"{mean - paper:+.1f}", f"{p:.2f}"]
        )  # fmt: skip
    print("\nTest errors over the realisations, in per cent")
    header = ["set", "classifier", "paper", "ours", "std. error", "diff.", "p"]
    print_table(header, table, n_left=2)


def run_folds(args: argparse.Namespace) -> list[str]:
    """Choose the width for breast-cancer by other folds."""
    name = "breast_cancer"
    data = load(args.data, name, args.seed)
    widths = WIDTHS[3:8] if args.quick else WIDTHS

    @cache
    def errors(width: float) -> list[float]:
        model = lo.LOOMClassifier(gamma=width)
        return [test(data, split, model) for split in data.splits]

    rows = []
    for seed in range(1 if args.quick else SEEDS):
        best = []
        for split in data.splits[: 1 if args.quick else N_CHOOSE]:
            X, y = data.X[split.train], data.y[split.train]
            scores = [cross_validate(width, X, y, seed) for width in widths]
            best.append(widths[int(np.argmin(scores))])
        width = float(np.median(best))
        found = errors(width)
        mean, error = float(np.mean(found)), float(stats.sem(found))
        rows.append(FoldRow(name, seed, width, mean, error))
    print("\nBreast-cancer (paper 26.3): width by other folds, test error in per cent")
    print_table(
        ["folds", "width", "error", "std. error"],
        [
            [str(r.seed), f"{r.width:.4g}", f"{r.error:.1f}", f"{r.standard_error:.1f}"]
            for r in rows
        ],
    )
    by_width = {width: np.mean(errors(float(width))) for width in widths}
    print_table(
        ["width", "test error"], [[f"{w:.4g}", f"{e:.1f}"] for w, e in by_width.items()]
    )
    if not args.quick:
        write_rows("weston1999", rows, "folds.csv")
    return [f"Folds: {len(rows)} divisions of the first {N_CHOOSE} training sets"]
