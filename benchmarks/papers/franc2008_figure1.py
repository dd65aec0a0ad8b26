# SPDX-License-Identifier: BSD-3-Clause
"""Figure 1 of Franc, Laskov & Müller (2008): model selection at a loose eps."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from common import (
    EXPONENTS,
    NAME,
    RBF_C,
    gram,
    load,
    read_rows,
    solve_each,
    write_rows,
)

from leaveout.engine._problem import Problem, Solution
from leaveout.engine._solve import make_solution, solve_svc
from leaveout.engine._walk import loo_walk
from leaveout.methods._stopping import LeftOutSolver, check_left_out, loo_stopping
from leaveout.methods._stopping_fast import Condition, End, solve_left_out

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
# Every so many training samples are left out, of all or of 4 x 4 models.
SETS = {"banana": 1, "german": 4, "image": 10}
ALL_MODELS = ("banana",)
EPSILONS = [1e-3, 1e-2, 0.03, 0.1, 0.3, 0.6, 0.9, 0.99, 1.0]


@dataclass
class Row:
    """One set and eps; errors in per cent over the left-out samples."""

    data: str
    eps: float
    C: float
    gamma: float
    selected_error: float
    its_exact_error: float
    best_model_error: float
    best_exact_error: float
    seconds: float
    certified: float
    certified_wrong: int
    certified_low: float
    certified_high: float


def solve_to_eps(problem: Problem, eps: float) -> Solution:
    """Solve a problem by Improved SMO until it is optimal within eps."""
    y, C, n = problem.y, problem.C, problem.n_samples
    beta, F, none = np.zeros(n), y.copy(), np.zeros(n)
    squares = np.maximum(problem.K.diagonal(), 1e-290)
    curvature = np.stack([squares, 1.0 / squares])
    end, steps, _ = solve_left_out(
        problem.K, y, C, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0),
        curvature, curvature, none, 0, problem.fit_intercept, Condition.NONE, eps,
        1000 * n, 0.0, 0.0, beta, F, beta, F, np.empty((3, n)),
    )  # fmt: skip
    if end == End.TOO_LONG:
        return solve_svc(problem, start=beta)
    free = np.flatnonzero((beta != 0.0) & (np.abs(beta) < C))
    return make_solution(problem, beta, F, free, steps, 1e-9)


def standard_error(problem: Problem, eps: float, rows: np.ndarray) -> float:
    """Leave-one-out error by the paper's Algorithm 1, every solve within eps."""
    solution = solve_to_eps(problem, eps)
    found, open_rows = check_left_out(problem, solution)
    open_rows = np.intersect1d(open_rows, rows)
    solver = LeftOutSolver(problem, solution, eps, steps_per_sample=100)
    found.write(open_rows, solver.leave_out(open_rows))
    values = found.values[rows]
    return float(np.mean(problem.y[rows] * values < 0))


def proofs(
    problem: Problem, solution: Solution, eps: float, rows: np.ndarray
) -> tuple[float, int, float, float]:
    """Of "stopping" within eps: share proved, proved wrongly, range of the error."""
    exact = loo_walk(problem, solution)
    sure = (exact.lower > 1e-8) | (exact.upper < -1e-8)
    loo = loo_stopping(problem, solution, eps=eps, n_trial=0)
    wrong = loo.certified & sure & (np.sign(loo.values) != np.sign(exact.values))
    known, error = loo.certified[rows], problem.y[rows] * loo.values[rows] < 0
    low = float(np.mean(known & error))
    return float(known.mean()), int(wrong.sum()), low, low + float(np.mean(~known))


def grid(name: str, quick: bool) -> tuple[list[float], list[float]]:
    """Values of gamma and of C."""
    gammas = [2.0**-exponent for exponent in EXPONENTS]
    if quick:
        return gammas[2:6:2], RBF_C[1::2]
    return (gammas, RBF_C) if name in ALL_MODELS else (gammas[::2], RBF_C[1::2])


def trace(args: argparse.Namespace, name: str, epsilons: list[float]) -> list[Row]:
    """Return the curves of one set on its first realisation."""
    data = load(args.data, name, args.seed)
    rows = data.splits[0].train
    X, y = data.X[rows], data.y[rows]
    left_out = np.arange(0, len(y), 8 if args.quick else SETS[name])
    models: list[tuple[Problem, Solution, float]] = []
    gammas, penalties = grid(name, args.quick)
    for gamma in gammas:
        unit = Problem(gram(X, gamma), y, np.ones(len(y)))
        models += [(p, s, gamma) for p, s in solve_each(unit, penalties)]
    exact = np.empty(len(models))
    for k, (problem, solution, _) in enumerate(models):
        loo = loo_walk(problem, solution, labels_only=True)
        exact[k] = np.mean((y * loo.values)[left_out] < 0)
    best = int(np.argmin(exact))
    found = []
    for eps in epsilons:
        started = process_time()
        errors = np.array([standard_error(p, eps, left_out) for p, _, _ in models])
        seconds = process_time() - started
        chosen = int(np.argmin(errors))
        problem, solution, gamma = models[chosen]
        share, wrong, low, high = proofs(problem, solution, eps, left_out)
        found.append(
            Row(
                name,
                eps,
                float(problem.C[0]),
                gamma,
                100 * errors[chosen],
                100 * exact[chosen],
                100 * errors[best],
                100 * exact[best],
                seconds,
                100 * share,
                wrong,
                100 * low,
                100 * high,
            )
        )
        show(found[-1])
    return found


HEADER = """\
                            chosen at eps     best at 1e-4
set     eps         C  gamma  error  truly   error  truly  proved, %  wrongly"""


def show(r: Row) -> None:
    """Print one point of the curves."""
    print(
        f"{r.data:<8}{r.eps:<7g}{r.C:>6.3g}{r.gamma:>7.3g}{r.selected_error:7.1f}"
        f"{r.its_exact_error:7.1f}{r.best_model_error:8.1f}{r.best_exact_error:7.1f}"
        f"{r.certified:11.0f}{r.certified_wrong:9}",
        flush=True,
    )


def plot(rows: list[Row]) -> None:
    """Draw the errors over eps, one panel a set."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row.data for row in rows))
    figure, axes = plt.subplots(1, len(names), figsize=(4 * len(names), 3.4))
    for ax, name in zip(np.atleast_1d(axes), names, strict=True):
        own = [row for row in rows if row.data == name]
        eps = [row.eps for row in own]
        ax.fill_between(
            eps, [r.certified_low for r in own], [r.certified_high for r in own],
            color="0.88", label="error range by proved labels",
        )  # fmt: skip
        ax.plot(eps, [r.selected_error for r in own], "o-", label="model chosen at eps")
        ax.plot(eps, [r.best_model_error for r in own], "s--", label="best model, eps")
        ax.plot(eps, [r.its_exact_error for r in own], "^:", label="chosen, exact")
        ax.axhline(own[0].best_exact_error, color="k", lw=0.8, label="best, exact")
        ax.set(xscale="log", xlabel="eps", title=name, ylim=(0, None))
    np.atleast_1d(axes)[0].set_ylabel("leave-one-out error, %")
    np.atleast_1d(axes)[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(IMAGES / "franc2008_figure1.png", dpi=80)


def run(args: argparse.Namespace) -> list[str]:
    """Print the curves, store and draw them."""
    print(
        "\nFigure 1: leave-one-out error in per cent, standard approach, over eps.\n"
        "Paper: from eps = 0.001 to 0.1 on, the error at eps falls below the true one"
    )
    print(HEADER)
    resume = args.resume and not args.quick
    rows: list[Row] = read_rows(NAME, Row, "figure1.csv") if resume else []
    for row in rows:
        show(row)
    for name in ["banana"] if args.quick else SETS:
        done = [row.eps for row in rows if row.data == name]
        missing = [eps for eps in EPSILONS if eps not in done]
        if missing:
            rows += trace(args, name, missing)
        if not args.quick:
            rows.sort(key=lambda row: (list(SETS).index(row.data), row.eps))
            write_rows(NAME, rows, "figure1.csv")
    if not args.quick:
        plot(rows)
    if args.quick:
        return ["Figure 1: 8 of 64 RBF models, banana, 1/8 of the samples left out"]
    parts = ", ".join(f"{name} 1/{step}" for name, step in SETS.items())
    return [
        "Figure 1: 1 realisation (paper 5), RBF models (gamma 2^-): all 64 of "
        f"{', '.join(ALL_MODELS)}, 16 of the others; share of the samples left out: "
        f"{parts}; the truth is eps = 0 (walk), the paper's eps = 1e-4"
    ]
