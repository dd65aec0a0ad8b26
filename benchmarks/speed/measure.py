# SPDX-License-Identifier: BSD-3-Clause
"""What the speed benchmarks share: data, interleaved timing, the table, its files."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn
import yaml
from scipy.spatial.distance import pdist
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import leaveout
from leaveout.data import make_mixture
from leaveout.engine._problem import Problem
from leaveout.kernel._gram import gram_matrix

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
from datasets import penalty_from_lambda

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"

# The 50 values of Wang & Yang (2022), from much to little regularisation.
LAMBDAS = np.exp(np.linspace(6.0, -6.0, 50))
# Every fifth of them, with the same mean of log(lambda) as all.
FIFTH = slice(2, None, 5)
# Beyond their grid: many free support vectors, SMO slow.
HARD_C = np.logspace(-1.0, 3.0, 25)


@dataclass(frozen=True)
class Simulation:
    """The simulation of Wang & Yang (2022): X (n, 20), K (n, n), signs y (n,)."""

    X: np.ndarray
    gamma: float
    K: np.ndarray
    y: np.ndarray

    def problem(self, C: float) -> Problem:
        """Return the SVM with one C for all samples."""
        return Problem(self.K, self.y, np.full(self.y.size, float(C)))

    def fit_libsvm(self, C: float) -> SVC:
        """Fit LIBSVM as scikit-learn users do, at its default tolerance."""
        return libsvm(C).fit(self.K, self.y)


def libsvm(C: float) -> SVC:
    """Return the peer: LIBSVM behind scikit-learn, Gram matrix given, tol 1e-3."""
    return SVC(C=C, kernel="precomputed", tol=1e-3)


def make_simulation(n: int, seed: int) -> Simulation:
    """Twenty features, RBF kernel with kernlab's default width."""
    X, labels = make_mixture(n, 20, random_state=seed)
    sigma = kernlab_width(X)
    K = gram_matrix(X, kernel="rbf", gamma=sigma)
    return Simulation(X, sigma, K, 2.0 * labels - 1.0)


def kernlab_width(X: np.ndarray) -> float:
    """Mean of 1/q over the 0.1 and 0.9 quantiles q of the squared distances."""
    return float(np.mean(1.0 / np.quantile(pdist(X, "sqeuclidean"), [0.1, 0.9])))


def easy_grid(n: int) -> np.ndarray:
    """C = 1 / (2 n lambda) for the 50 lambda."""
    return penalty_from_lambda(LAMBDAS, n)


@dataclass(frozen=True)
class Row:
    """One line of the table. Seconds, unless the unit says otherwise."""

    workload: str
    peer: float
    ours: float
    ratio: float
    must: str = ""
    goal: str = ""
    unit: str = "ms"


class Benchmark:
    """Arguments, rows and cells of one benchmark; prints and stores them."""

    def __init__(
        self,
        name: str,
        doc: str | None,
        *,
        sizes: Iterable[int] = (),
        with_data: bool = False,
    ) -> None:
        parser = argparse.ArgumentParser(description=doc)
        if with_data:
            parser.add_argument(
                "--data", type=Path, required=True, help="folder with the data files"
            )
        parser.add_argument(
            "--quick", action="store_true", help="a part of it, not stored"
        )
        parser.add_argument("--repeats", type=int, default=None, help="repetitions")
        parser.add_argument(
            "--cpu", action="store_true", help="CPU time of the process, if others run"
        )
        parser.add_argument("--seed", type=int, default=0, help="seed of the data")
        parser.add_argument(
            "--sizes", type=int, nargs="+", default=None, help="numbers of samples"
        )
        self.args = parser.parse_args()
        self.data: Path = self.args.__dict__.pop("data", Path())
        self.name = name
        self.clock = process_time if self.args.cpu else perf_counter
        everything = list(sizes)
        self.sizes = self.args.sizes or (everything[:2] if self.quick else everything)
        self.rows: list[Row] = []
        self.cells: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.load = os.getloadavg()[0]
        print("workload | peer | ours | ratio | must | goal")

    @property
    def quick(self) -> bool:
        """Whether only a small part is asked for."""
        return bool(self.args.quick)

    def repeats(self, default: int) -> int:
        """Repetitions asked for, else the default (2 if quick)."""
        return self.args.repeats or (min(2, default) if self.quick else default)

    def seconds(
        self, functions: dict[str, Callable[[], Any]], repeats: int
    ) -> dict[str, float]:
        """Median time of each function; one after the other in every repetition."""
        times: dict[str, list[float]] = {name: [] for name in functions}
        for _ in range(self.repeats(repeats)):
            for name, function in functions.items():
                started = self.clock()
                function()
                times[name].append(self.clock() - started)
        return {name: statistics.median(values) for name, values in times.items()}

    def add(self, row: Row) -> None:
        """Print a line of the table and keep it."""
        self.rows.append(row)
        scale, unit = (1e3, " ms") if row.unit == "ms" else (1.0, row.unit)
        values = " | ".join(f"{scale * x:.4g}{unit}" for x in (row.peer, row.ours))
        print(
            f"{row.workload} | {values} | {row.ratio:.3g} | {row.must} | {row.goal}",
            flush=True,
        )

    def note(self, text: str) -> None:
        """Print a remark and keep it with the results."""
        self.notes.append(text)
        print(f"note: {text}", flush=True)

    def close(self) -> Path | None:
        """Store table, cells and configuration; return the folder, None if quick."""
        if self.quick:
            return None
        folder = RESULTS / self.name
        folder.mkdir(parents=True, exist_ok=True)
        _write_csv(folder / "results.csv", [asdict(row) for row in self.rows])
        if self.cells:
            _write_csv(folder / "cells.csv", self.cells)
        config = {
            "date": date.today().isoformat(),
            "arguments": {**vars(self.args), "sizes": [int(n) for n in self.sizes]},
            "notes": self.notes,
            "versions": {
                "leaveout": leaveout.__version__,
                "leaveout commit": _commit(),
                "python": platform.python_version(),
                "numpy": np.__version__,
                "scipy": scipy.__version__,
                "scikit-learn": sklearn.__version__,
                "joblib": joblib.__version__,
            },
            "cpu": cpu_model(),
            "cores": os.cpu_count(),
            "load average before, after": [
                round(x, 2) for x in (self.load, os.getloadavg()[0])
            ],
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        print(f"stored in {folder.relative_to(ROOT)}")
        return folder


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS on one thread, for peers and ours alike."""
    with threadpool_limits(1, user_api="blas"):
        yield


@contextmanager
def plain_install() -> Iterator[list[str]]:
    """Install the package into a temporary folder; yield the path to import it by.

    An editable install looks for changed sources at import. Its kernels are used again.
    """
    how = ["--quiet", "--no-deps", "--no-build-isolation"]
    how.append(f"--config-settings=build-dir={ROOT / 'build' / 'editable'}")
    with tempfile.TemporaryDirectory() as target:
        command = [sys.executable, "-m", "pip", "install", *how, "--target", target]
        subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
        yield [target, *{sysconfig.get_path(k) for k in ("purelib", "platlib")}]


def cpu_model() -> str:
    """Name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """Commit of the code under test, with + if the tree has changes."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write dictionaries with the same keys; six digits are plenty for a time."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
            )
