# SPDX-License-Identifier: BSD-3-Clause
"""Table 1 of Weston (1999): test errors on six of the IDA sets."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from time import process_time

import numpy as np
from common import Data, load, print_table, read_rows, write_rows
from sklearn.model_selection import StratifiedKFold

import leaveout as lo

# In the paper: AdaBoost, regularised AdaBoost, SVM, LOOM.
PAPER = {
    "banana": (12.3, 10.9, 11.5, 10.6),
    "breast_cancer": (30.4, 26.5, 26.0, 26.3),
    "diabetis": (26.5, 23.9, 23.5, 23.4),
    "heart": (20.3, 16.6, 16.0, 16.6),
    "thyroid": (4.4, 4.4, 4.8, 5.0),
    "titanic": (22.6, 22.6, 22.4, 22.7),
}
WIDTHS = 2.0 ** np.arange(-9.0, 4.0)
PENALTIES = 10.0 ** np.arange(-1.0, 3.5, 0.5)
# Training sets to choose on; by the exact leave-one-out error, which costs most, fewer,
# and only up to this size.
N_CHOOSE, N_EXACT, FOLDS = 5, 2, 5
EXACT_UP_TO = 400
WAYS = ("cv", "exact", "bound", "slack")


@dataclass
class Row:
    """One set; errors in per cent, the mean over the realisations and its spread."""

    data: str
    n_train: int
    original_splits: int
    paper_ab: float
    paper_ab_r: float
    paper_svm: float
    paper_loom: float
    loom: float
    loom_sd: float
    difference: float
    loom_exact: float
    loom_bound: float
    loom_slack: float
    svm: float
    svm_sd: float
    svccv: float
    svccv_sd: float
    width_cv: float
    width_exact: float
    width_bound: float
    width_slack: float
    svm_penalty: float
    svm_width: float
    share_sv: float
    mean_bound: float
    mean_slack: float
    exact_loo: float
    seconds: float


def run(args: argparse.Namespace) -> list[str]:
    """Print and store the table; return what is smaller than in the paper."""
    names = ["heart", "thyroid"] if args.quick else list(PAPER)
    kept = read_rows("weston1999", Row) if args.resume and not args.quick else []
    rows = {row.data: row for row in kept}
    for name in names:
        if name not in rows:
            rows[name] = measure(load(args.data, name, args.seed), args)
        if not args.quick:
            write_rows("weston1999", [rows[name] for name in names if name in rows])
    show(list(rows.values()))
    return [
        "Table 1: 10 realisations (paper 100); thyroid has no published splits here "
        "and diabetis one: the others are our own of the same size",
        f"Table 1: width by {FOLDS}-fold cross-validation, by bound and by slacks on "
        f"the first {N_CHOOSE} training sets (paper 5, folds not told), by exact "
        f"leave-one-out on the first {N_EXACT} if they have up to {EXACT_UP_TO} rows; "
        "median; widths 2^-9 ... 2^3",
    ]


def measure(data: Data, args: argparse.Namespace) -> Row:
    """Choose widths, then test on all realisations."""
    started = process_time()
    n_choose, widths = (1, WIDTHS[::3]) if args.quick else (N_CHOOSE, WIDTHS)
    chosen = choose_width(data, widths, n_choose)
    tests = {
        way: [test_loom(data, split, chosen[way]) for split in data.splits]
        for way in WAYS
        if way in chosen
    }
    C, svm_width = choose_svm(data, widths, n_choose)
    svm = [test(data, split, lo.SVC(C=C, gamma=svm_width)) for split in data.splits]
    tuned = [test(data, s, lo.SVCCV(probability=False)) for s in data.splits]
    errors = {way: np.array([t[0] for t in found]) for way, found in tests.items()}
    means = {way: errors[way].mean() if way in errors else np.nan for way in WAYS}
    share, bound, slack = np.mean([t[1:] for t in tests["cv"]], axis=0)
    split = data.splits[0]
    exact_loo = np.nan
    if "exact" in chosen:
        machine = lo.LOOMClassifier(gamma=chosen["cv"])
        exact_loo = lo.leave_one_out(
            machine, data.X[split.train], data.y[split.train]
        ).error
    paper = PAPER[data.name]
    return Row(
        data.name, len(split.train), data.n_original, *paper,
        errors["cv"].mean(), errors["cv"].std(ddof=1), errors["cv"].mean() - paper[3],
        means["exact"], errors["bound"].mean(), errors["slack"].mean(),
        float(np.mean(svm)), float(np.std(svm, ddof=1)),
        float(np.mean(tuned)), float(np.std(tuned, ddof=1)),
        *(chosen.get(way, np.nan) for way in WAYS), C, svm_width, 100 * share,
        100 * bound, 100 * slack, 100 * exact_loo, process_time() - started,
    )  # fmt: skip


def choose_width(data: Data, widths: np.ndarray, n_choose: int) -> dict[str, float]:
    """Return the median of the best widths over the first training sets, by way."""
    best: dict[str, list[float]] = {way: [] for way in WAYS}
    for k, split in enumerate(data.splits[:n_choose]):
        X, y = data.X[split.train], data.y[split.train]
        fits = [lo.LOOMClassifier(gamma=width).fit(X, y) for width in widths]
        scores = {
            "cv": [cross_validate(width, X, y) for width in widths],
            "bound": [fit.loo_bound_[0] for fit in fits],
            "slack": [fit.objective_[0] for fit in fits],
        }
        if k < N_EXACT and len(y) <= EXACT_UP_TO:
            scores["exact"] = [lo.leave_one_out(fit, X, y).error for fit in fits]
        for way, values in scores.items():
            best[way].append(widths[int(np.argmin(values))])  # of equals, the widest
    return {way: float(np.median(found)) for way, found in best.items() if found}


def cross_validate(width: float, X: np.ndarray, y: np.ndarray, seed: int = 0) -> float:
    """Return the cross-validation error, the same folds for all widths."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y)
    wrong = 0
    for train, test_rows in folds:
        fit = lo.LOOMClassifier(gamma=width).fit(X[train], y[train])
        wrong += int((fit.predict(X[test_rows]) != y[test_rows]).sum())
    return wrong / len(y)


def choose_svm(data: Data, widths: np.ndarray, n_choose: int) -> tuple[float, float]:
    """Return the medians of C and width by exact leave-one-out."""
    grid = {"C": list(PENALTIES), "gamma": list(widths)}
    found = []
    for split in data.splits[:n_choose]:
        search = lo.LooSearchCV(lo.SVC(), grid, refit=False)
        search.fit(data.X[split.train], data.y[split.train])
        found.append([search.best_params_["C"], search.best_params_["gamma"]])
    C, width = np.median(found, axis=0)
    return float(C), float(width)


def test(data: Data, split, classifier) -> float:
    """Return the test error in per cent."""
    classifier.fit(data.X[split.train], data.y[split.train])
    return 100 * float(
        np.mean(classifier.predict(data.X[split.test]) != data.y[split.test])
    )


def test_loom(data: Data, split, width: float) -> tuple[float, float, float, float]:
    """Return test error, share of support vectors, bound and mean slack."""
    fit = lo.LOOMClassifier(gamma=width)
    error = test(data, split, fit)
    n = len(split.train)
    return error, fit.support_.size / n, fit.loo_bound_[0], fit.objective_[0] / n


def show(rows: list[Row]) -> None:
    """Print the paper's four columns beside ours."""
    print("\nTable 1: test errors in per cent")
    print(" " * 22 + "paper" + " " * 14 + "ours, width by")
    header = "set AB AB_R SVM LOOM cv ± diff. exact bound slacks SVM SVCCV".split()
    table = []
    for r in rows:
        ours = [r.loom, r.loom_sd, r.difference, r.loom_exact, r.loom_bound,
                r.loom_slack, r.svm, r.svccv]  # fmt: skip
        paper = [r.paper_ab, r.paper_ab_r, r.paper_svm, r.paper_loom]
        numbers = [f"{value:.1f}" for value in paper + ours]
        numbers[6] = f"{r.difference:+.1f}"
        table.append([r.data, *numbers])
    print_table(header, table)
    print("cv: as in the paper; ±: deviation over the realisations; diff.: from LOOM")
