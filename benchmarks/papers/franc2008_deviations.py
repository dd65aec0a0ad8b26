# SPDX-License-Identifier: BSD-3-Clause
"""What the two LOO errors of Table 2 that we do not meet can not be.

Franc, Laskov & Müller (2008) print 15.47 for titanic and 1.10 for ringnorm, RBF, over
realisations 1 to 5: 116 errors of 750, and 22 of 2000. Counted here, as in the paper's
other rows the smallest number of each realisation: what other readings would give,
and what one of them, the printed k', would make of two rows that we do meet.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from common import (
    EXPONENTS,
    LINEAR_C,
    NAME,
    RBF_C,
    Data,
    gram,
    load,
    read_rows,
    solve_each,
    write_rows,
)
from franc2008_figure1 import standard_error
from franc2008_table2 import PAPER
from franc2008_table3 import open_by_printed_checks

from leaveout.engine._certificate import weighted_median_interval
from leaveout.engine._problem import Problem, Solution
from leaveout.engine._solve import seed_without
from leaveout.engine._walk import loo_walk

GAMMAS = [2.0**-e for e in EXPONENTS]
# Nine widths around the chosen one, four to an octave, at three penalties.
BETWEEN = [2.0 ** -(2 + k / 4) for k in range(9)]
FINE_C = [0.5, 1.0, 2.43]
# Realisations drawn anew from the whole set.
N_DRAWN = 200
# Sets whose errors we meet: what the printed k' would make of them.
MET = ("heart", "banana")


@dataclass
class Row:
    """One reading: errors over five realisations beside the paper's."""

    data: str
    reading: str
    errors: float
    of: int
    percent: float
    paper: float


def count(
    X: np.ndarray, y: np.ndarray, Cs: list[float], gammas: list[float | None]
) -> np.ndarray:
    """Smallest errors of a realisation: exact, printed checks, best b.

    With the printed checks a sample that they settle gets its label from them; with the
    best b every ambiguous sample counts as correct.
    """
    found = []
    for gamma in gammas:
        unit = Problem(gram(X, gamma), y, np.ones(len(y)))
        for problem, solution in solve_each(unit, Cs):
            loo = loo_walk(problem, solution)
            wrong = y * loo.values < 0
            printed = y * solution.decision_values < 0
            left = open_by_printed_checks(problem, solution)
            printed[left] = wrong[left]
            best = np.maximum(y * loo.lower, y * loo.upper) < 0
            found.append((wrong.sum(), printed.sum(), best.sum()))
    return np.min(found, axis=0)


def count_within_eps(X: np.ndarray, y: np.ndarray, eps: float) -> int:
    """Smallest number of errors by the standard approach within eps.

    Of the three widths that have the fewest exact errors.
    """
    rows = np.arange(len(y))
    shares = [
        standard_error(Problem(gram(X, gamma), y, np.full(len(y), C)), eps, rows)
        for gamma, C in product(GAMMAS[2:5], RBF_C)
    ]
    return round(min(shares) * len(y))


def fewest_errors(X: np.ndarray, y: np.ndarray) -> int:
    """Training errors of the best function: identical samples get one label.

    A training error is a leave-one-out error (check 2), so no machine has fewer.
    """
    _, cell = np.unique(X, axis=0, return_inverse=True)
    positive, negative = (np.bincount(cell.ravel(), y == sign) for sign in (1, -1))
    return int(np.minimum(positive, negative).sum())


def label_by_printed_condition(problem: Problem, solution: Solution, r: int) -> float:
    """Return f(x_r) where Algorithm 3 stops if k' has the printed sign of k(x_r, x_r).

    That kernel is indefinite and H no bound: P < H holds long before the label is
    settled. The end by eps-KKT is left out, as H always comes first.
    """
    K, y, C = problem.K, problem.y, problem.C.copy()
    C[r] = 0.0
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    beta = seed_without(problem, solution, np.array([r]))
    F = y - K @ beta
    aux, value = beta.copy(), 0.5 * beta @ (y + F)
    pull = F + (y[r] - F[r])  # y - K' aux, as beta sums to zero
    bend = K.diagonal() - 2 * K[r] - K[r, r]  # K'_ii as printed
    here = C > 0
    while True:
        up, down = np.where(beta < upper, F, -np.inf), np.where(beta > lower, F, np.inf)
        i, j = int(np.argmax(up)), int(np.argmin(down))
        step = (F[i] - F[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        step = max(0.0, min(step, upper[i] - beta[i], beta[j] - lower[j]))
        beta[i], beta[j] = beta[i] + step, beta[j] - step
        F -= step * (K[i] - K[j])
        b = weighted_median_interval(F[here], C[here], float(C[y > 0].sum()))[0]
        primal = 0.5 * beta @ (y - F) + C @ np.maximum(0.0, y * (F - b))
        # The best move of each coefficient of H is to an end of its box, or free.
        free = np.clip(
            pull / np.where(bend > 0, bend, 1e-300), lower - aux, upper - aux
        )
        moves = np.stack([lower - aux, upper - aux, np.where(bend > 0, free, 0.0)])
        gains = moves * (pull - 0.5 * moves * bend)
        way, k = np.unravel_index(np.argmax(gains), gains.shape)
        aux[k] += moves[way, k]
        value += gains[way, k]
        pull -= moves[way, k] * (K[k] - K[r] - K[r, k] - K[r, r])
        if primal < value or gains[way, k] <= 0.0:
            return float(y[r] - F[r] + b)


def count_by_printed_condition(X: np.ndarray, y: np.ndarray) -> int:
    """Smallest number of errors of Algorithm 3 with k' as printed."""
    found = []
    for gamma in GAMMAS:
        unit = Problem(gram(X, gamma), y, np.ones(len(y)))
        for problem, solution in solve_each(unit, RBF_C):
            wrong = y * solution.decision_values < 0
            for r in open_by_printed_checks(problem, solution):
                f_r = label_by_printed_condition(problem, solution, int(r))
                wrong[r] = y[r] * f_r < 0
            found.append(wrong.sum())
    return int(min(found))


def drawn_anew(data: Data) -> dict[str, float]:
    """Errors of five realisations drawn from the whole set: mean and deviation."""
    rng, size = np.random.default_rng(0), data.splits[0].train.size
    draws = [rng.permutation(data.y.size)[:size] for _ in range(N_DRAWN)]
    errors = [count(data.X[d], data.y[d], RBF_C, GAMMAS)[0] for d in draws]
    name = f"five of {N_DRAWN} realisations drawn anew"
    return {
        f"{name}, mean": 5 * float(np.mean(errors)),
        f"{name}, standard deviation": float(np.sqrt(5 * np.var(errors, ddof=1))),
    }


def train_parts(data: Data) -> list[tuple[np.ndarray, np.ndarray]]:
    """(X, y) of all known realisations."""
    known = data.splits[: data.n_original]
    return [(data.X[s.train], data.y[s.train]) for s in known]


def read_titanic(data: Data) -> dict[str, float]:
    parts = train_parts(data)
    exact, printed, best = np.sum([count(*p, RBF_C, GAMMAS) for p in parts[:5]], axis=0)
    floors = sorted(fewest_errors(*part) for part in parts)
    return {
        "exact": exact,
        "printed checks": printed,
        "ambiguous samples correct": best,
        "fewest that any function makes": sum(fewest_errors(*p) for p in parts[:5]),
        "the same, best 5 of 10 realisations": sum(floors[:5]),
        **printed_condition(data),
        **drawn_anew(data),
    }


def read_ringnorm(data: Data) -> dict[str, float]:
    parts = train_parts(data)
    each = np.array([count(*part, RBF_C, GAMMAS) for part in parts])
    exact, printed, best = each[:5].sum(axis=0)
    fine = [count(*part, FINE_C, BETWEEN)[0] for part in parts[:5]]
    linear = np.array([count(*part, LINEAR_C, [None])[0] for part in parts])
    fives = [list(five) for five in combinations(range(len(parts)), 5)]
    # The linear error of Table 2 is met on realisations 1 to 5: which others meet it?
    alike = [each[f, 0].sum() for f in fives if linear[f].sum() == linear[:5].sum()]
    paper = PAPER["ringnorm"][1][0] / 100 * 5 * parts[0][1].size
    within = {
        f"eps = {eps:g}": sum(count_within_eps(*part, eps) for part in parts[:5])
        for eps in (1e-3, 1e-1)
    }
    return {
        "exact": exact,
        "printed checks": printed,
        "ambiguous samples correct": best,
        "widths between those of the grid": sum(fine),
        f"nearest of {len(alike)} fives with the same linear error": min(
            alike, key=lambda errors: abs(errors - paper)
        ),
        **within,
        **printed_condition(data),
        **drawn_anew(data),
    }


def printed_condition(data: Data) -> dict[str, float]:
    """Errors over realisations 1 to 5 if k' was used as printed."""
    parts = train_parts(data)[:5]
    return {"k' as printed": sum(count_by_printed_condition(*part) for part in parts)}


READINGS = {
    "titanic": read_titanic,
    "ringnorm": read_ringnorm,
    **dict.fromkeys(MET, printed_condition),
}


def run(args: argparse.Namespace) -> list[str]:
    """Print and store all readings."""
    rows: list[Row] = read_rows(NAME, Row, "deviations.csv") if args.resume else []
    if args.quick or rows:
        return []
    for name, read in READINGS.items():
        data = load(args.data, name, args.seed)
        of = 5 * data.splits[0].train.size
        for reading, errors in read(data).items():
            paper = PAPER[name][1][0]
            rows.append(Row(name, reading, float(errors), of, 100 * errors / of, paper))
            print(rows[-1], flush=True)
    write_rows(NAME, rows, "deviations.csv")
    return []
