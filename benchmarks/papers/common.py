# SPDX-License-Identifier: BSD-3-Clause
"""Data, grids and files of the scripts about papers."""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from leaveout.engine._problem import Problem, Solution
from leaveout.engine._solve import solve_svc
from leaveout.kernel._gram import gram_matrix
from leaveout.loo._leave_out import scale_bounds

RESULTS = Path(__file__).resolve().parents[1] / "results"
NAME = "franc2008"

SETS = (
    "banana breast_cancer diabetis flare_solar german heart image ringnorm splice "
    "thyroid titanic twonorm waveform"
).split()
QUICK = ["heart", "thyroid", "titanic"]

LINEAR_C = [10.0**i for i in range(-2, 3)]
# The paper prints 10^((i/7) log 500): log is log10, or C would reach 10^6.2.
RBF_C = [500.0 ** (i / 7) for i in range(8)]
EXPONENTS = [11 * i / 7 for i in range(8)]
READINGS = {"rbf 2^+": 1.0, "rbf 2^-": -1.0}


class Split(NamedTuple):
    """Rows to train and to test on."""

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Data:
    """A set, its splits, and how many of them, the first ones, are published."""

    name: str
    X: np.ndarray
    y: np.ndarray
    splits: list[Split]
    n_original: int


def load(folder: Path, name: str, seed: int) -> Data:
    """Return a set with ten splits; where fewer are known, seeded ones of that size."""
    with np.load(folder / f"ida_{name}.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.float64)
        y = np.where(y > 0, 1.0, -1.0)
        size, splits = int(file["n_train_published"]), []
        if "train_idx" in file:
            pairs = zip(file["train_idx"], file["test_idx"], strict=True)
            splits = [Split(*pair) for pair in pairs]
    rng = np.random.default_rng(seed)
    n_original = len(splits)
    for _ in range(10 - n_original):
        order = rng.permutation(len(y))
        splits.append(Split(order[:size], order[size:]))
    return Data(name, X, y, splits, n_original)


def gram(X: np.ndarray, gamma: float | None, Y: np.ndarray | None = None) -> np.ndarray:
    """Linear kernel if gamma is None, else RBF."""
    return gram_matrix(X, Y, kernel="linear" if gamma is None else "rbf", gamma=gamma)


def solve_each(
    problem: Problem, Cs: Sequence[float] | np.ndarray
) -> Iterator[tuple[Problem, Solution]]:
    """Solve a problem with C = 1 at each of some C, smallest first."""
    before = None
    for C in Cs:
        scaled, start = scale_bounds(problem, float(C), before)
        before = scaled, solve_svc(scaled, start=start)
        yield before


def kernels(
    indices: Sequence[int] = range(8),
) -> Iterator[tuple[str, list[float], list[float | None]]]:
    """(name, values of C, values of gamma) of the three grids."""
    yield "linear", LINEAR_C, [None]
    for name, sign in READINGS.items():
        yield name, RBF_C, [2.0 ** (sign * EXPONENTS[i]) for i in indices]


def read_rows(name: str, kind: type, file: str = "results.csv") -> list[Any]:
    """Return the rows of an earlier run, none if there was none."""
    path = RESULTS / name / file
    if not path.exists():
        return []
    types = {"int": int, "float": float, "str": str, "bool": lambda t: t == "True"}
    with path.open() as lines:
        return [
            kind(**{f.name: types[f.type](line[f.name]) for f in fields(kind)})
            for line in csv.DictReader(lines)
        ]


def write_rows(name: str, rows: Sequence[Any], file: str = "results.csv") -> None:
    """Write dataclasses of one kind."""
    path = RESULTS / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        names = [f.name for f in fields(rows[0])]
        writer.writerow(names)
        for row in rows:
            values = [getattr(row, n) for n in names]
            writer.writerow(f"{v:.6g}" if isinstance(v, float) else v for v in values)


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1
) -> None:
    """Print aligned columns, the first ``n_left`` of them to the left."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in [header, *rows]:
        cells = [
            text.ljust(width) if k < n_left else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip(), flush=True)


def print_notes(notes: Sequence[str]) -> None:
    """Print what differs from the paper."""
    for note in notes:
        text = f"note: {note}"
        print(textwrap.fill(text, width=88, subsequent_indent=" " * 6))


def write_config(
    name: str, script: str, args: argparse.Namespace, notes: Sequence[str] = ()
) -> None:
    """Date, versions and arguments; no paths."""
    packages = ("leaveout", "numpy", "scipy", "scikit-learn")
    given = {
        k: v for k, v in vars(args).items() if k not in ("data", "resume", "torchkm")
    }
    notes = [*notes, "seconds are CPU seconds, on a machine with other work"]
    lines = [
        f"command: python benchmarks/papers/{Path(script).name} --data DIR",
        f"date: {date.today().isoformat()}",
        *(f"{key}: {value}" for key, value in given.items()),
        f"python: {platform.python_version()}",
        *(f"{package}: {version(package)}" for package in packages),
        f"cores: {os.cpu_count()}",
        "notes:",
        *(f"- {json.dumps(note)}" for note in notes),
    ]
    (RESULTS / name / "config.yaml").write_text("\n".join(lines) + "\n")
