# SPDX-License-Identifier: BSD-3-Clause
"""Table 1 of Wang & Yang (2022): the simulation. Run by wang2022.py."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from common import read_rows, write_rows
from scipy.special import logsumexp
from wang2022_common import (
    Data,
    best_lambda,
    libsvm_at,
    objective,
    time_kernlab,
    time_libsvm,
    time_path,
    time_sample,
)

from leaveout.data import make_mixture, make_mixture_centers
from leaveout.engine._solve import solve_svc
from leaveout.kernel._gram import gram_matrix

# (p, n): seconds of ccvsvm, magicsvm, kernlab, LIBSVM; objective; test error.
PAPER = {
    (20, 200): (5.1, 7.7, 73.4, 144.4, 0.814, 0.351),
    (20, 400): (44.2, 87.8, 334.3, 879.7, 0.827, 0.332),
    (20, 800): (446.8, 847.3, 2220.2, 6519.7, 0.846, 0.309),
    (20, 1600): (3829.5, 7024.1, 25530.5, 63886.1, 0.853, 0.297),
    (200, 200): (6.8, 12.9, 337.6, 932.5, 0.780, 0.337),
    (200, 400): (66.0, 150.1, 2304.1, 6641.9, 0.794, 0.366),
    (200, 800): (530.4, 996.1, 36771.4, 109365.5, 0.811, 0.346),
    (200, 1600): (5489.2, 10803.9, 461245.7, 1436416.1, 0.821, 0.322),
}
QUICK = [(20, 200), (200, 200)]
BUDGET = 8.0
N_RUNS = {200: 10, 400: 10, 800: 10, 1600: 5}


@dataclass
class Times:
    """CPU seconds for 50 lambda and n folds; ``*_lambdas``: how many were timed."""

    p: int
    n: int
    walk: float
    consolidated: float
    consolidated_lambdas: int
    path_rule: float
    magic: float
    magic_lambdas: int
    refits: int
    libsvm: float
    kernlab: float
    paper_ccvsvm: float
    paper_magicsvm: float
    paper_libsvm: float
    paper_kernlab: float


@dataclass
class Accuracy:
    """Means over the runs, at the lambda with the smallest leave-one-out error."""

    p: int
    n: int
    runs: int
    objective: float
    libsvm_objective: float
    paper_objective: float
    test_error: float
    libsvm_test_error: float
    unlike_libsvm: int
    paper_test_error: float
    bayes_error: float


def draw(p: int, n: int, run: int) -> tuple[Data, np.ndarray, np.ndarray, float]:
    """Training data, 10,000 test samples, and the Bayes error on them."""
    centers = make_mixture_centers(p, random_state=run)
    X, labels = make_mixture(n, centers=centers, random_state=1000 + run)
    fresh, truth = make_mixture(10_000, centers=centers, random_state=2000 + run)
    y = 2.0 * truth - 1.0
    squared = -2.0 * fresh @ centers.transpose(0, 2, 1)  # less |x|^2, (2, 10000, 10)
    squared += (centers**2).sum(axis=2)[:, None]
    scores = logsumexp(-squared / 18.0, axis=2)
    bayes = float(np.mean(np.sign(scores[1] - scores[0]) != y))
    return Data.of(f"p={p}", X, 2.0 * labels - 1.0), fresh, y, bayes


def measure_times(p: int, n: int) -> Times:
    data = draw(p, n, 0)[0]
    walk, _ = time_path(data, "walk")
    consolidated = time_sample(data, "consolidated", BUDGET)
    magic = time_sample(data, "magic", BUDGET)
    rule = float("nan")
    if n <= 400:
        rule = time_path(data, "consolidated", rule="path")[0].seconds
    ccvsvm, magicsvm, kernlab, libsvm, *_ = PAPER[p, n]
    few = n > 800
    return Times(
        p,
        n,
        walk.seconds,
        consolidated.seconds,
        consolidated.n_lambdas,
        rule,
        magic.seconds,
        magic.n_lambdas,
        walk.refits + consolidated.refits + magic.refits,
        time_libsvm(data, n_folds=2 if few else 4),
        time_kernlab(data, n_folds=1 if few else 3),
        ccvsvm,
        magicsvm,
        libsvm,
        kernlab,
    )


def measure_accuracy(p: int, n: int, n_runs: int) -> Accuracy:
    rows = []
    for run in range(n_runs):
        data, fresh, y, bayes = draw(p, n, run)
        C = data.Cs[best_lambda(time_path(data, "walk")[1], data.y)]
        solution = solve_svc(data.problem(C))
        cross = gram_matrix(fresh, data.X, kernel="rbf", gamma=data.gamma)
        ours = cross @ solution.beta + solution.intercept
        decision, value = libsvm_at(data, C)
        theirs = decision(fresh)
        rows.append(
            [
                objective(data, C, solution.beta, solution.intercept),
                value,
                np.mean(np.sign(ours) != y),
                np.mean(np.sign(theirs) != y),
                np.sum(np.sign(ours) != np.sign(theirs)),
                bayes,
            ]
        )
    mean = np.mean(rows, axis=0)
    paper = PAPER[p, n]
    return Accuracy(
        p, n, n_runs, mean[0], mean[1], paper[4], mean[2], mean[3],
        int(np.sum(rows, axis=0)[4]), paper[5], mean[5],
    )  # fmt: skip


def run(args: argparse.Namespace) -> list[str]:
    times = read_rows("wang2022_table1", Times) if args.resume else []
    accuracies = read_rows("wang2022_accuracy", Accuracy) if args.resume else []
    for p, n in QUICK if args.quick else PAPER:
        if (p, n) not in {(row.p, row.n) for row in accuracies}:
            accuracies.append(measure_accuracy(p, n, 2 if args.quick else N_RUNS[n]))
            print(accuracies[-1], flush=True)
        if (p, n) not in {(row.p, row.n) for row in times}:
            times.append(measure_times(p, n))
            print(times[-1], flush=True)
        if not args.quick:
            write_rows("wang2022_table1", sorted(times, key=lambda r: (r.p, r.n)))
            write_rows(
                "wang2022_accuracy", sorted(accuracies, key=lambda r: (r.p, r.n))
            )
    return [
        "Table 1: seconds of one run (paper: mean of 50 on another machine); "
        "consolidated and magic on as many of the 50 lambda as fit into "
        f"{BUDGET:.0f} CPU seconds, spread over the range, scaled up; LIBSVM on 40 "
        "(n = 1600: 20) and kernlab on 15 (5) left-out problems, scaled up",
        "Accuracy: 10 runs, 5 at n = 1600 (paper: 50), at the lambda with the smallest "
        "leave-one-out error",
    ]
