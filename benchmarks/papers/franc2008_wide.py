# SPDX-License-Identifier: BSD-3-Clause
"""Where the condition of Franc et al. (2008) loses: wide data, p >> n, and others.

Kernel columns of the standard approach over those of "stopping" within eps = 1e-3, on
standardised features, K / p for the linear kernel: with the trial that ends early (as
shipped), with the paper's trial of ten samples, and without a trial. Nothing here was
used in the paper. LOST was chosen on these sets.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from common import NAME, gram, solve_each, write_rows

from leaveout.engine._problem import STOPPING, Problem, Solution
from leaveout.methods._stopping import LeftOutSolver, check_left_out, loo_stopping
from leaveout.methods._stopping_fast import Condition

EPS, TRIAL = 1e-3, 10
WIDE = "bio_colon bio_golub ccv_leuk bio_prostate bio_breast_u133a".split()
NARROW = (
    "ccv_sonar chem_dhfr bio_parkinsons ccv_heart_statlog ccv_australian ccv_musk1 "
    "bio_breast_wisconsin ccv_arrhythmia"
).split()
LARGEST = 330  # samples
PENALTIES = [0.1, 1.0, 10.0, 100.0]
GAMMAS = [None, 0.1, 1.0, 4.0]  # times 1 / p; None: linear


@dataclass
class Row:
    """One set: columns summed over its models."""

    data: str
    n: int
    p: int
    models: int
    open: int
    proved: float
    columns: int
    ratio: float
    paper_trial_ratio: float
    no_trial_ratio: float
    smallest_ratio: float


def measure(problem: Problem, solution: Solution) -> tuple[np.ndarray, int, int]:
    """Columns (standard, shipped, paper's trial, no trial), open samples, proved."""
    _, rows = check_left_out(problem, solution)
    solver = LeftOutSolver(problem, solution, EPS)
    columns, proved = np.zeros((2, rows.size)), np.zeros(rows.size, dtype=bool)
    for k, r in enumerate(rows):
        for way, condition in enumerate((Condition.NONE, Condition.AUXILIARY)):
            out = solver.leave_out(np.array([r]), condition)
            columns[way, k] = out.counts["columns"]
            proved[k] = out.settled_by[0] == STOPPING
    standard, always = columns.sum(axis=1)
    lost = proved[:TRIAL].sum() < 0.5 * proved[:TRIAL].size
    paper = columns[1, :TRIAL].sum() + columns[0 if lost else 1, TRIAL:].sum()
    shipped = loo_stopping(problem, solution, eps=EPS).counts["columns"]
    return np.array([standard, shipped, paper, always]), rows.size, proved.sum()


def measure_set(args: argparse.Namespace, name: str) -> Row:
    """Return the row of one set."""
    with np.load(args.data / f"{name}.npz") as file:
        X, y = file["X"].astype(np.float64), np.where(file["y"] > 0, 1.0, -1.0)
    scale = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    rows = np.random.default_rng(args.seed).permutation(len(y))[:LARGEST]
    X, y = X[np.sort(rows)], y[np.sort(rows)]
    n, p = X.shape
    found = []
    for factor in GAMMAS:
        K = gram(X, None) / p if factor is None else gram(X, factor / p)
        # At C = 100 SMO is slow on narrow data with a linear kernel: left out.
        Cs = PENALTIES[:3] if factor is None and p < n else PENALTIES
        for model in solve_each(Problem(K, y, np.ones(n)), Cs):
            found.append(measure(*model))
    columns = np.array([own for own, n_open, _ in found if n_open])
    total, n_open = columns.sum(axis=0), sum(k for _, k, _ in found)
    return Row(
        name, n, p, len(columns), n_open, 100 * sum(k for *_, k in found) / n_open,
        int(total[0]), *(total[0] / total[1:]), (columns[:, 0] / columns[:, 1]).min(),
    )  # fmt: skip


def run(args: argparse.Namespace) -> list[str]:
    """Print and store the ratios."""
    print("\nColumn ratio standard / stopping, trial of 10:")
    print(
        "set                        n      p   shipped  paper's trial  no trial  worst"
    )
    rows = []
    for name in WIDE[:1] if args.quick else WIDE + NARROW:
        rows.append(measure_set(args, name))
        r = rows[-1]
        print(
            f"{name:<22}{r.n:>6}{r.p:>7}{r.ratio:10.3f}{r.paper_trial_ratio:15.3f}"
            f"{r.no_trial_ratio:10.3f}{r.smallest_ratio:7.2f}",
            flush=True,
        )
        if not args.quick:
            write_rows(NAME, rows, "wide.csv")
    return [
        f"Wide and narrow sets: {len(GAMMAS)} kernels, C = 0.1 to 100; {LARGEST} "
        "samples of larger sets; no C = 100 for linear kernels with p < n"
    ]
