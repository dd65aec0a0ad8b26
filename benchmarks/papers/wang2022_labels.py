# SPDX-License-Identifier: BSD-3-Clause
"""Labels, objectives and screened coefficients, checked. Run by wang2022.py.

Methods "consolidated" (all rules) and "magic" against "walk" at all 50 lambda, with
and without bias; every screened coefficient and the objective of some folds against an
interior-point method that is none of our code.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import read_rows, solve_each, write_rows
from wang2022_common import Data, load, show

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from oracles.binary import svc_clarabel

from leaveout.data import make_mixture
from leaveout.engine._problem import Problem

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from datasets import lambda_from_penalty

from leaveout.engine._problem import LooIntervals, Solution
from leaveout.engine._walk import loo_walk
from leaveout.methods._consolidated import _Reduced, loo_consolidated, loo_magic
from leaveout.methods._exchange import tableaus
from leaveout.methods._screening import PathMemory, Screened, screen_at_same_C

SETS = ["sonar", "heart_statlog", "musk1", "australian"]
SIMULATIONS = [(20, 200), (200, 200), (20, 400)]
ROUNDING = 1e-8
# The path rule, too, and more folds for the referee, up to here.
N_ALL = 300
CHECK_AT = [5, 20, 35, 42, 49]
SCREENING = "screening.csv"
SHOWN = {
    "set": "data", "n": "n", "bias": "bias", "compared": "compared",
    "differ: cons.": "consolidated_differ", "same C": "same_C_differ",
    "path": "path_differ", "magic": "magic_differ", "refits": "refits",
    "deviation": "deviation",
}  # fmt: skip


@dataclass
class Row:
    """One set, with or without bias, all lambda."""

    data: str
    n: int
    bias: bool
    compared: int
    ambiguous: int
    consolidated_differ: int
    same_C_differ: int  # noqa: N815
    path_compared: int
    path_differ: int
    magic_compared: int
    magic_differ: int
    refits: int
    deviation: float
    checked: int
    objective_deviation: float
    screened_checked: int
    screened_deviation: float
    referee_residual: float


@dataclass
class Share:
    """Screened share at one lambda."""

    data: str
    n: int
    bias: bool
    lambda_: float
    C: float
    first_order: float
    same_C: float  # noqa: N815
    path: float


@dataclass
class Tally:
    """Labels that differ among the samples that have one."""

    compared: int = 0
    differ: int = 0
    deviation: float = 0.0
    refits: int = 0

    def add(self, found: LooIntervals, walk: LooIntervals) -> None:
        """Count the labels of one machine."""
        sure = (walk.lower > ROUNDING) | (walk.upper < -ROUNDING)
        unlike = np.sign(found.values) != np.sign(walk.values)
        self.compared += int(sure.sum())
        self.differ += int(np.sum(sure & unlike))
        apart = np.abs(found.values - walk.values)
        apart /= np.maximum(1.0, np.abs(walk.values))
        self.deviation = max(self.deviation, float(apart.max()))
        self.refits += int(found.counts["refits"])


class Checker:
    """Compares folds with an interior point: objective, screened coefficients."""

    def __init__(self) -> None:
        self.checked = self.screened = 0
        self.objective = self.coefficient = self.residual = 0.0

    def add(self, problem: Problem, solution: Solution, n_folds: int) -> None:
        """Check some folds of one machine."""
        rng = np.random.default_rng(0)
        every = np.flatnonzero(solution.beta)
        known = screen_at_same_C(problem, solution, every)
        rows = np.sort(rng.choice(every, min(n_folds, every.size), replace=False))
        reduced = _Reduced(problem, solution, known)
        reduced.smooth()
        for members, tableau in tableaus(problem, solution, rows):
            small = tableau.take(reduced.kept)
            eta, _ = reduced.solve(members, small, tableau)
            beta = np.tile(reduced.known, (members.size, 1))
            beta[:, reduced.kept] = eta
            beta[np.arange(members.size), members] = 0.0
            for r, own in zip(members, beta, strict=True):
                self._compare(problem, int(r), own, known)

    def _compare(
        self, problem: Problem, r: int, beta: np.ndarray, known: Screened
    ) -> None:
        rest = np.delete(np.arange(problem.n_samples), r)
        K, y, C = problem.K[np.ix_(rest, rest)], problem.y[rest], problem.C[rest]
        truth = svc_clarabel(K, y, C, problem.fit_intercept)
        dual = np.abs(beta).sum() - 0.5 * beta @ problem.K @ beta
        apart = abs(dual - truth.objective) / max(1e-300, abs(truth.objective))
        self.objective = max(self.objective, float(apart))
        self.residual = max(self.residual, truth.kkt)
        bound = np.where(known.bounded, problem.C, 0.0)[rest]
        is_known = (known.bounded | known.outside)[rest]
        wrong = np.abs(truth.alpha - bound)[is_known] / C[is_known]
        self.coefficient = max(self.coefficient, float(wrong.max(initial=0.0)))
        self.screened += int(is_known.sum())
        self.checked += 1


def compare(data: Data, bias: bool, n_folds: int) -> tuple[Row, list[Share]]:
    n, ambiguous, shares = len(data.y), 0, []
    tallies = {name: Tally() for name in ("consolidated", "same_C", "path", "magic")}
    checker, memory = Checker(), PathMemory()
    base = data.problem(1.0, bias)
    for k, (problem, solution) in enumerate(solve_each(base, data.Cs)):
        walk = loo_walk(problem, solution)
        ambiguous += int(np.sum((walk.lower <= ROUNDING) & (walk.upper >= -ROUNDING)))
        first = loo_consolidated(problem, solution)
        same = loo_consolidated(problem, solution, rule="same_C")
        tallies["consolidated"].add(first, walk)
        tallies["same_C"].add(same, walk)
        share = Share(
            data.name, n, bias, float(lambda_from_penalty(data.Cs[k], n)),
            float(data.Cs[k]), first.counts["screened"] / n,
            same.counts["screened"] / n, float("nan"),
        )  # fmt: skip
        if n <= N_ALL:
            path = loo_consolidated(problem, solution, rule="path", memory=memory)
            share.path = path.counts["screened"] / n
            tallies["path"].add(path, walk)
        tallies["magic"].add(loo_magic(problem, solution), walk)
        shares.append(share)
        if k in CHECK_AT:
            checker.add(problem, solution, n_folds)
    row = Row(
        data.name,
        n,
        bias,
        tallies["consolidated"].compared,
        ambiguous,
        tallies["consolidated"].differ,
        tallies["same_C"].differ,
        tallies["path"].compared,
        tallies["path"].differ,
        tallies["magic"].compared,
        tallies["magic"].differ,
        sum(tally.refits for tally in tallies.values()),
        max(tally.deviation for tally in tallies.values()),
        checker.checked,
        checker.objective,
        checker.screened,
        checker.coefficient,
        checker.residual,
    )
    return row, shares


def cases(args: argparse.Namespace):
    """Return the data sets and the simulations, small ones first."""
    for p, n in SIMULATIONS[: 1 if args.quick else None]:
        X, labels = make_mixture(n, p, random_state=args.seed)
        yield Data.of(f"simulation p={p}", X, 2.0 * labels - 1.0)
    for name in SETS[: 1 if args.quick else None]:
        yield Data.of(name, *load(args.data, name))


def run(args: argparse.Namespace) -> list[str]:
    rows = read_rows("wang2022_labels", Row) if args.resume else []
    shares = read_rows("wang2022_labels", Share, SCREENING) if args.resume else []
    done = {(row.data, row.n, row.bias) for row in rows}
    for data in cases(args):
        for bias in (True, False):
            if (data.name, len(data.y), bias) in done:
                continue
            row, own = compare(
                data, bias, 1 if args.quick or len(data.y) > N_ALL else 3
            )
            rows.append(row)
            shares += own
            print(
                f"Labels: {data.name}, n = {len(data.y)}, bias {bias} done", flush=True
            )
            if not args.quick:
                write_rows("wang2022_labels", rows)
                write_rows("wang2022_labels", shares, SCREENING)
    show("Labels unlike the walk's, all 50 lambda", rows, SHOWN)
    return [
        "Labels: all 50 lambda and all folds; for n > 300 no path rule; objective and "
        "screened coefficients of 3 folds (n > 300: 1) "
        f"at {len(CHECK_AT)} lambda against clarabel, polished",
    ]
