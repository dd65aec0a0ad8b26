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
    Timings,
    best_lambda,
    libsvm_at,
    objective,
    show,
    time_kernlab,
    time_libsvm,
    time_torchkm,
    walk_path,
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
N_RUNS = {200: 10, 400: 10, 800: 10, 1600: 5}
# Draws for the ratio of magic and consolidated, whose median is stored.
N_DRAWS = {200: 3, 400: 3, 800: 1, 1600: 1}
METHODS_SHOWN = {
    "p": "p", "n": "n", "walk": "walk", "cons.": "consolidated", "same C": "same_C",
    "path": "path_rule", "magic": "magic", "| theirs": "paper_ccvsvm",
    "magic ": "paper_magicsvm", "| ratio": "ratio", "paper": "paper_ratio",
    "refits": "refits",
}  # fmt: skip
OTHERS_SHOWN = {
    "p": "p", "n": "n", "consolidated": "consolidated", "TorchKM": "torchkm",
    "its labels unlike": "torchkm_unlike", "LIBSVM": "libsvm", "kernlab": "kernlab",
    "| paper: LIBSVM": "paper_libsvm", "kernlab ": "paper_kernlab",
}  # fmt: skip
ACCURACY_SHOWN = {
    "p": "p", "n": "n", "objective": "objective", "paper": "paper_objective",
    "| test error": "test_error", "paper ": "paper_test_error",
    "| Bayes error": "bayes_error",
}  # fmt: skip


@dataclass
class Times:
    """CPU seconds for 50 lambda and n folds."""

    p: int
    n: int
    walk: float
    consolidated: float
    same_C: float  # noqa: N815
    path_rule: float
    magic: float
    ratio: float  # magic / consolidated
    paper_ratio: float
    refits: int
    torchkm: float
    torchkm_unlike: int  # labels, of 50 n, that differ from the walk's
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


def measure_times(
    p: int, n: int, timings: Timings, before: Times | None, python: str | None
) -> Times:
    """Combine the seconds per lambda, and time the other programs once."""
    draws = [draw(p, n, run)[0] for run in range(N_DRAWS[n])]
    draws = [data._replace(name=f"p={p} draw {k}") for k, data in enumerate(draws)]
    for data in draws:
        timings.measure(data)
    data = draws[0]
    ratios = [timings.ratio(data) for data in draws]
    few = n > 800
    if before is None:
        libsvm = time_libsvm(data, n_folds=2 if few else 4)
        kernlab = time_kernlab(data, n_folds=1 if few else 3)
    else:
        libsvm, kernlab = before.libsvm, before.kernlab
    if before is None or (python and np.isnan(before.torchkm)):
        torchkm, unlike = compare_torchkm(data, python)
    else:
        torchkm, unlike = before.torchkm, before.torchkm_unlike
    ccvsvm, magicsvm, paper_kernlab, paper_libsvm, *_ = PAPER[p, n]
    return Times(
        p,
        n,
        timings.total(data, "walk"),
        timings.total(data, "first_order"),
        timings.total(data, "same_C"),
        timings.total(data, "path"),
        timings.total(data, "magic"),
        float(np.median(ratios)),
        magicsvm / ccvsvm,
        sum(map(timings.refits, draws)),
        torchkm,
        unlike,
        libsvm,
        kernlab,
        ccvsvm,
        magicsvm,
        paper_libsvm,
        paper_kernlab,
    )


def compare_torchkm(data: Data, python: str | None) -> tuple[float, int]:
    """Seconds of TorchKM, and how many of its labels differ from the walk's."""
    seconds, values = time_torchkm(data, python)
    unlike = 0
    for found, own in zip(
        values.T, walk_path(data) if values.size else [], strict=True
    ):
        sure = (own.lower > 1e-8) | (own.upper < -1e-8)
        unlike += int(np.sum(sure & (np.sign(found) != np.sign(own.values))))
    return seconds, unlike


def measure_accuracy(p: int, n: int, n_runs: int) -> Accuracy:
    rows = []
    for run in range(n_runs):
        data, fresh, y, bayes = draw(p, n, run)
        C = data.Cs[best_lambda(walk_path(data), data.y)]
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
    stored = read_rows("wang2022_table1", Times) if args.resume else []
    times = {(row.p, row.n): row for row in stored}
    stored = read_rows("wang2022_accuracy", Accuracy) if args.resume else []
    accuracies = {(row.p, row.n): row for row in stored}
    timings = Timings("wang2022_table1", args)
    cells = sorted(QUICK if args.quick else PAPER, key=lambda cell: cell[1])

    def store() -> None:
        if not args.quick:
            write_rows("wang2022_table1", [times[c] for c in PAPER if c in times])
            rows = [accuracies[c] for c in PAPER if c in accuracies]
            write_rows("wang2022_accuracy", rows)

    for p, n in cells:
        if (p, n) not in accuracies:
            n_runs = 2 if args.quick else N_RUNS[n]
            accuracies[p, n] = measure_accuracy(p, n, n_runs)
        before = times.get((p, n))
        times[p, n] = measure_times(p, n, timings, before, args.torchkm)
        print(f"Table 1: p = {p}, n = {n} done", flush=True)
        store()
    rows = list(times.values())
    show(
        "Table 1: CPU seconds (theirs: consolidated); ratio: magic / cons.",
        rows,
        METHODS_SHOWN,
    )
    show("Table 1: other programs, CPU seconds", rows, OTHERS_SHOWN)
    show("Table 1: accuracy", list(accuracies.values()), ACCURACY_SHOWN)
    return [
        "Table 1: seconds of one draw (paper: mean of 50 on another machine), per "
        "lambda in lambdas.csv; ratio: median of three draws at n = 200 and 400; "
        "LIBSVM on 40 (n = 1600: 20) and kernlab on 15 (5) left-out problems, scaled "
        "up",
        "TorchKM 4.3.2 on one CPU thread",
        "Accuracy: 10 runs, 5 at n = 1600 (paper: 50), at the lambda with the smallest "
        "leave-one-out error",
    ]
