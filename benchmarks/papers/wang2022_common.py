# SPDX-License-Identifier: BSD-3-Clause
"""Data, competitors and timing of the scripts about Wang & Yang (2022)."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import scale
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))
from common import print_table, read_rows, solve_each, write_rows
from datasets import penalty_from_lambda
from measure import LAMBDAS, kernlab_width
from solved import SVC_METHODS

from leaveout.engine._problem import LooIntervals, Problem, Solution
from leaveout.kernel._gram import gram_matrix
from leaveout.methods._consolidated import RULES
from leaveout.methods._screening import PathMemory

METHODS = ["walk", "magic", "first_order", "same_C", "path"]
# An order of the 50 lambda of which every beginning covers the range evenly.
ORDER = [(47 + 31 * k) % 50 for k in range(50)]
PER_LAMBDA = "lambdas.csv"
R_SCRIPT = """
suppressMessages(library(kernlab))
given <- commandArgs(TRUE)
data <- as.matrix(read.csv(given[1], header = FALSE))
y <- factor(data[, 1]); x <- data[, -1, drop = FALSE]
jobs <- as.matrix(read.csv(given[2], header = FALSE)); sigma <- as.numeric(given[3])
ksvm(x[1:20, ], factor(rep(1:2, 10)), scaled = FALSE, kpar = list(sigma = 1))
started <- proc.time()[["user.self"]]
for (k in seq_len(nrow(jobs)))
  ksvm(x[-jobs[k, 2], ], y[-jobs[k, 2]], type = "C-svc", kernel = "rbfdot",
       kpar = list(sigma = sigma), C = jobs[k, 1], scaled = FALSE, fit = FALSE)
cat(proc.time()[["user.self"]] - started, "\\n")
"""


class Data(NamedTuple):
    """A training set with the kernel of kernlab's default width."""

    name: str
    X: np.ndarray
    y: np.ndarray
    gamma: float
    K: np.ndarray

    @classmethod
    def of(cls, name: str, X: np.ndarray, y: np.ndarray) -> Data:
        """Compute width and Gram matrix."""
        gamma = kernlab_width(X)
        return cls(name, X, y, gamma, gram_matrix(X, kernel="rbf", gamma=gamma))

    @property
    def Cs(self) -> np.ndarray:  # noqa: N802
        """C of the 50 lambda, ascending."""
        return penalty_from_lambda(LAMBDAS, len(self.y))

    def problem(self, C: float, bias: bool = True) -> Problem:
        """Return the machine with one C for all samples."""
        return Problem(self.K, self.y, np.full(len(self.y), float(C)), bias)


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a set with its features standardised; constant ones are dropped."""
    with np.load(folder / f"ccv_{name}.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.float64)
    return scale(X[:, np.ptp(X, axis=0) > 0]), np.where(y > 0, 1.0, -1.0)


@dataclass
class LambdaTime:
    """CPU seconds of one method at one lambda, fit included."""

    data: str
    n: int
    method: str
    at: int  # position of the lambda, in ascending C
    seconds: float
    refits: int


class Timings:
    """CPU seconds per data set, method and lambda, stored set by set."""

    def __init__(self, name: str, args: argparse.Namespace) -> None:
        self.name, self.args = name, args
        self.rows: list[LambdaTime] = []
        if args.resume:
            self.rows = read_rows(name, LambdaTime, PER_LAMBDA)

    def of(self, data: Data, method: str) -> list[LambdaTime]:
        """Return what was measured."""
        key = (data.name, len(data.y), method)
        return [r for r in self.rows if (r.data, r.n, r.method) == key]

    def measure(self, data: Data) -> None:
        """Time all methods in turn at each lambda."""
        if self.of(data, METHODS[0]):
            return
        fits, memory = Fits(data), PathMemory()
        for at in range(len(LAMBDAS)):
            for method in METHODS:
                options: dict[str, Any] = {"rule": method} if method in RULES else {}
                if method == "path":
                    options["memory"] = memory
                self._time(data, fits, method, at, **options)
        if not self.args.quick:
            write_rows(self.name, self.rows, PER_LAMBDA)

    def _time(
        self, data: Data, fits: Fits, method: str, at: int, **options: Any
    ) -> None:
        name = "consolidated" if method in RULES else method
        problem, solution = fits.problems[at]
        started = process_time()
        found = SVC_METHODS[name](problem, solution=solution, **options)
        seconds = process_time() - started + fits.seconds[at]
        refits = int(found.counts["refits"])
        row = LambdaTime(data.name, len(data.y), method, at, seconds, refits)
        self.rows.append(row)

    def total(self, data: Data, method: str) -> float:
        """Seconds for all lambda."""
        return sum(row.seconds for row in self.of(data, method))

    def ratio(self, data: Data) -> float:
        """How many times as long as consolidated magic takes."""
        return self.total(data, "magic") / self.total(data, "first_order")

    def refits(self, data: Data) -> int:
        """Folds that were refitted, over all methods."""
        return sum(row.refits for m in METHODS for row in self.of(data, m))


class Fits:
    """The full solutions at all 50 lambda, each started from the one before."""

    def __init__(self, data: Data) -> None:
        self.problems: list[tuple[Problem, Solution]] = []
        self.seconds: list[float] = []
        started = process_time()
        for problem, solution in solve_each(data.problem(1.0), data.Cs):
            self.problems.append((problem, solution))
            self.seconds.append(process_time() - started)
            started = process_time()


def walk_path(data: Data) -> list[LooIntervals]:
    """Leave out every sample at all 50 lambda, by walks."""
    fits = Fits(data)
    return [SVC_METHODS["walk"](p, solution=s) for p, s in fits.problems]


def sample_jobs(data: Data, n_lambdas: int, n_folds: int) -> list[tuple[float, int]]:
    """(C, left-out row) of some folds for some lambda."""
    rng = np.random.default_rng(0)
    return [
        (float(data.Cs[k]), int(r))
        for k in ORDER[:n_lambdas]
        for r in rng.choice(len(data.y), n_folds, replace=False)
    ]


def time_libsvm(data: Data, n_lambdas: int = 10, n_folds: int = 4) -> float:
    """Seconds of n refits for 50 lambda by LIBSVM (scikit-learn), from a sample."""
    jobs = sample_jobs(data, n_lambdas, n_folds)
    rows = np.arange(len(data.y))
    spent = 0.0
    for C, r in jobs:
        X, y = data.X[rows != r], data.y[rows != r]
        started = process_time()
        SVC(C=C, gamma=data.gamma).fit(X, y).decision_function(data.X[r : r + 1])
        spent += process_time() - started
    return spent / len(jobs) * 50 * len(data.y)


def time_kernlab(data: Data, n_lambdas: int = 5, n_folds: int = 3) -> float:
    """Do the same with kernlab's ksvm; not a number if R or kernlab is missing."""
    if shutil.which("Rscript") is None:
        return float("nan")
    jobs = sample_jobs(data, n_lambdas, n_folds)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("data.csv", "jobs.csv", "run.R")]
        np.savetxt(paths[0], np.column_stack([data.y, data.X]), delimiter=",")
        np.savetxt(paths[1], [(C, r + 1) for C, r in jobs], delimiter=",")
        paths[2].write_text(R_SCRIPT)
        run = subprocess.run(
            ["Rscript", paths[2], *paths[:2], str(data.gamma)],
            capture_output=True,
            text=True,
        )
    if run.returncode:
        print("kernlab failed:", run.stderr.strip()[-200:])
        return float("nan")
    return float(run.stdout.split()[-1]) / len(jobs) * 50 * len(data.y)


def time_torchkm(data: Data, python: str | None) -> tuple[float, np.ndarray]:
    """CPU seconds of TorchKM on all 50 lambda, and its left-out values, (n, 50)."""
    nothing = float("nan"), np.empty((len(data.y), 0))
    if python is None:
        return nothing
    script = Path(__file__).with_name("wang2022_torchkm.py")
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, K=data.K, y=data.y, lambdas=LAMBDAS)
        run = subprocess.run(
            [python, script, given, out], capture_output=True, text=True
        )
        if run.returncode:
            print("TorchKM failed:", run.stderr.strip()[-300:])
            return nothing
        with np.load(out) as file:
            return float(json.loads(run.stdout.splitlines()[-1])), file["values"]


def show(
    title: str, rows: Sequence[Any], columns: dict[str, str] | None = None
) -> None:
    """Print a table; ``columns`` maps headers to attributes, by default all."""
    columns = columns or {name: name for name in vars(rows[0])}
    cells = []
    for row in rows:
        values = [getattr(row, name) for name in columns.values()]
        cells.append([_text(value) for value in values])
    print(f"\n{title}")
    print_table(list(columns), cells, n_left=isinstance(values[0], str))


def _text(value: Any) -> str:
    """Three digits, or more if they are before the point."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if 1000 <= value < np.inf else f"{value:.3g}"


def best_lambda(machines: list[LooIntervals], y: np.ndarray) -> int:
    """Position, in ascending C, of the smallest error; of the smallest C if equal."""
    return int(np.argmin([np.mean(y * machine.values < 0) for machine in machines]))


def objective(data: Data, C: float, beta: np.ndarray, b: float) -> float:
    """Value of eq. (12) of the paper: (1/n) sum hinge + lambda ||f||^2."""
    g = data.K @ beta
    hinge = np.maximum(0.0, 1.0 - data.y * (g + b))
    return float(hinge.mean() + (beta @ g) / (2 * len(g) * C))


def libsvm_at(data: Data, C: float) -> tuple[Callable[..., np.ndarray], float]:
    """LIBSVM's decision function and objective at one C, default tolerance."""
    svc = SVC(C=C, gamma=data.gamma).fit(data.X, data.y)
    beta = np.zeros(len(data.y))
    beta[svc.support_] = svc.dual_coef_[0]
    return svc.decision_function, objective(data, C, beta, float(svc.intercept_[0]))
