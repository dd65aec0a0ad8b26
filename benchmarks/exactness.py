# SPDX-License-Identifier: BSD-3-Clause
"""Is it exact? Walks against refits by LIBSVM and an interior point, on real data.

    python benchmarks/exactness.py --data DIR [--quick] [--resume] [--only heart sonar]

DIR holds one ``.npz`` a set, with arrays X, y and, where splits are published,
train_idx. Of each set the first published training split is taken (or, where there is
none, a seeded one of the published size), features are standardised, and six linear and
six RBF SVMs run over the grid of Franc, Laskov & Müller (2008): C = 500^(i/7) with
smaller ones added, the width 1 / median squared distance and both ends of 2^(-11 i/7).

For every SVM all samples are left out by walks; then, of the left-out samples, at
least 100 and every ambiguous one are solved again, without any code of ours:

- LIBSVM at tol=1e-8, which keeps kernel values in single precision, then the
  optimality conditions solved on its free support vectors in double, accepted if the
  result satisfies them all to 1e-12 (``libsvm``);
- an interior point (``clarabel``) where LIBSVM stalls or that is not so.

Each row of results.csv is one SVM. ``wrong``: labels that differ although the
sample is not ambiguous. ``flags``: samples called ambiguous that are not, or the
reverse. ``deviation``: largest |margin - reference| / max(1, |reference|).
``residual``: largest violation of the optimality conditions by a reference. ``refits``:
samples whose walk failed its check.
"""

from __future__ import annotations

import argparse
import csv
import platform
import sys
from dataclasses import dataclass, fields
from datetime import date
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.preprocessing import scale

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from oracles.binary import svc_clarabel, svc_libsvm, svc_refit

from leaveout.engine._problem import LooIntervals, Problem
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import loo_walk
from leaveout.run._parallel import limit_blas

SETS = (
    "ida_banana ida_breast_cancer ida_diabetis ida_flare_solar ida_german ida_heart "
    "ida_image ida_ringnorm ida_splice ida_thyroid ida_titanic ida_twonorm "
    "ida_waveform "
    "ccv_sonar ccv_musk1 ccv_heart_statlog ccv_australian bio_colon ccv_leuk"
).split()
QUICK = ("ida_heart", "ida_titanic", "ccv_sonar", "bio_colon")
GRID = [500 ** (i / 7) for i in range(8)]
LINEAR = [1e-3, 1e-1, GRID[0], GRID[2], GRID[4], GRID[7]]
# (C, gamma); None stands for 1 / median squared distance.
RBF = [
    (1e-2, None),
    (GRID[0], None),
    (GRID[4], None),
    (GRID[7], None),
    (GRID[2], 1.0),
    (GRID[7], 2.0**-11),
]
ROUNDING = 1e-8  # an end of an interval nearer to 0 than this has no sign
LIBSVM_ITERATIONS = 1000  # a sample, before it counts as stalled


class Model(NamedTuple):
    """One SVM: set, kernel name, penalty, width, Gram matrix and signs."""

    data: str
    kernel: str
    C: float
    gamma: float
    K: np.ndarray
    y: np.ndarray

    @property
    def key(self) -> tuple[str, ...]:
        """What names the model in results.csv."""
        return self.data, self.kernel, f"{self.C:.4g}", f"{self.gamma:.4g}"


class Reference(NamedTuple):
    """The truth about one left-out sample: interval of y f, who says so, how surely."""

    low: float
    high: float
    source: str
    residual: float


@dataclass
class Row:
    """One row of results.csv."""

    data: str
    kernel: str
    C: str
    gamma: str
    n: int
    error: float
    ambiguous: int
    checked: int
    libsvm: int
    clarabel: int
    wrong: int
    flags: int
    deviation: float
    residual: float
    refits: int
    pivots: float
    fit_seconds: float
    loo_seconds: float
    reference_seconds: float


def load(folder: Path, name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training split of a set, features standardised."""
    with np.load(folder / f"{name}.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.float64)
        if "train_idx" in file:
            rows = file["train_idx"][0]
        else:
            size = int(file.get("n_train_published", len(y)))
            rows = np.sort(np.random.default_rng(seed).permutation(len(y))[:size])
    X, y = X[rows], y[rows]
    return scale(X), np.where(y > 0, 1.0, -1.0)


def models(name: str, X: np.ndarray, y: np.ndarray, quick: bool) -> list[Model]:
    """Return the SVMs of a set; every second one if quick."""
    every = 2 if quick else 1
    K = X @ X.T
    K = 0.5 * (K + K.T)
    found = [Model(name, "linear", C, np.nan, K, y) for C in LINEAR[::every]]
    distances = pdist(X, "sqeuclidean")
    for C, gamma in RBF[::every]:
        gamma = 1 / np.median(distances) if gamma is None else gamma
        K = np.exp(-gamma * squareform(distances))
        found.append(Model(name, "rbf", C, gamma, K, y))
    return found


def sample(loo: LooIntervals, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Rows to check: every ambiguous one, those nearest to 0, and others at random."""
    ambiguous = (loo.lower <= ROUNDING) & (loo.upper >= -ROUNDING)
    nearest = np.argsort(np.abs(loo.values), kind="stable")[: n_samples // 3]
    chosen = set(nearest.tolist()) | set(np.flatnonzero(ambiguous).tolist())
    for r in rng.permutation(len(loo.values)):
        if len(chosen) >= n_samples + ambiguous.sum():
            break
        chosen.add(int(r))
    return np.array(sorted(chosen))


class Referee:
    """Solves left-out problems of one model without our code."""

    def __init__(self, model: Model) -> None:
        self.K, self.y = model.K, model.y
        self.C = np.full(len(model.y), model.C)
        cap = LIBSVM_ITERATIONS * len(model.y)
        *_, converged = svc_libsvm(self.K, self.y, self.C, tol=1e-8, max_iter=cap)
        self.stalled = not converged

    def leave_out(self, r: int) -> Reference:
        """Return the interval of y_r f(x_r) without r."""
        others = np.delete(np.arange(len(self.y)), r)
        if abs(self.y[others].sum()) == others.size:
            return Reference(-np.inf, -1.0, "libsvm", 0.0)
        rest = self.K[np.ix_(others, others)], self.y[others], self.C[others]
        source = "libsvm"
        fit = None if self.stalled else svc_refit(*rest, LIBSVM_ITERATIONS)
        if fit is None:
            source, fit = "clarabel", svc_clarabel(*rest)
        g = self.K[r, others] @ fit.beta
        low, high = sorted(self.y[r] * (g + b) for b in (fit.b_low, fit.b_high))
        return Reference(low, high, source, fit.kkt)


def compare(low: float, high: float, truth: Reference) -> tuple[bool, bool, float]:
    """(wrong label, wrong flag, deviation) of our interval of y f."""
    value, wanted = 0.5 * (low + high), 0.5 * (truth.low + truth.high)
    open_ = low <= ROUNDING and high >= -ROUNDING
    truly_open = truth.low <= ROUNDING and truth.high >= -ROUNDING
    wrong = not open_ and not truly_open and (value > 0) != (wanted > 0)
    deviation = 0.0
    if np.isfinite(wanted):
        pairs = ((low, truth.low), (high, truth.high))
        deviation = max(abs(a - b) / max(1.0, abs(b)) for a, b in pairs)
    return wrong, open_ != truly_open, deviation


def check(model: Model, n_samples: int, seed: int) -> Row:
    """Leave every sample out by walks, and some by refits."""
    y = model.y
    began = perf_counter()
    problem = Problem(model.K, y, np.full(len(y), model.C))
    solution = solve_svc(problem)
    fitted = perf_counter()
    loo = loo_walk(problem, solution)
    left_out = perf_counter()
    low = np.where(y > 0, loo.lower, -loo.upper)
    high = np.where(y > 0, loo.upper, -loo.lower)
    rows = sample(loo, n_samples, np.random.default_rng(seed))
    started = perf_counter()
    referee = Referee(model)
    truths = [referee.leave_out(r) for r in rows]
    seconds = perf_counter() - started
    verdicts = [compare(low[r], high[r], t) for r, t in zip(rows, truths, strict=True)]
    wrong, flags, deviations = (np.array(v) for v in zip(*verdicts, strict=True))
    sources = [t.source for t in truths]
    walks = max(loo.counts["walks"], 1)
    return Row(
        *model.key,
        n=len(y),
        error=round(float(np.mean(y * loo.values < 0)), 4),
        ambiguous=int(np.sum((low <= ROUNDING) & (high >= -ROUNDING))),
        checked=len(rows),
        **{name: sources.count(name) for name in ("libsvm", "clarabel")},
        wrong=int(wrong.sum()),
        flags=int(flags.sum()),
        deviation=float(f"{deviations.max():.1e}"),
        residual=float(f"{max(t.residual for t in truths):.1e}"),
        refits=int(loo.counts["refits"]),
        pivots=round(loo.counts["pivots"] / walks, 1),
        fit_seconds=round(fitted - began, 3),
        loo_seconds=round(left_out - fitted, 3),
        reference_seconds=round(seconds, 1),
    )


def read_rows(path: Path) -> list[Row]:
    """Return the rows of an earlier run, none if there was none."""
    if not path.exists():
        return []
    types = {"int": int, "float": float, "str": str}
    with path.open() as file:
        return [
            Row(**{f.name: types[f.type](line[f.name]) for f in fields(Row)})
            for line in csv.DictReader(file)
        ]


def write_rows(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(f.name for f in fields(Row))
        writer.writerows([getattr(row, f.name) for f in fields(Row)] for row in rows)


def write_config(path: Path, args: argparse.Namespace) -> None:
    """Date, versions and arguments; no paths."""
    packages = ("leaveout", "numpy", "scipy", "scikit-learn", "clarabel")
    lines = [
        "command: python benchmarks/exactness.py --data DIR" + " --quick" * args.quick,
        f"date: {date.today().isoformat()}",
        f"samples: {args.samples}",
        f"seed: {args.seed}",
        "libsvm_tol: 1.0e-8",
        f"python: {platform.python_version()}",
        *(f"{name}: {version(name)}" for name in packages),
    ]
    path.write_text("\n".join(lines) + "\n")


def show(row: Row | None) -> None:
    """Print one row of the table, or its head."""
    widths = [max(len(f.name), 18 if f.name == "data" else 7) for f in fields(Row)]
    cells = [f.name if row is None else getattr(row, f.name) for f in fields(Row)]
    print("  ".join(str(c).rjust(w) for c, w in zip(cells, widths, strict=True)))


def summarise(rows: list[Row]) -> None:
    total = sum(row.n for row in rows)
    refits = sum(row.refits for row in rows)
    print(
        f"\n{len(rows)} SVMs, {total} left-out samples, "
        f"{sum(row.checked for row in rows)} of them solved again "
        f"({sum(row.ambiguous for row in rows)} ambiguous): "
        f"{sum(row.wrong for row in rows)} wrong labels, "
        f"{sum(row.flags for row in rows)} wrong flags, "
        f"largest deviation {max(row.deviation for row in rows):.1e}, "
        f"{refits} refits ({100 * refits / total:.3f} %)"
    )


def parse_arguments() -> argparse.Namespace:
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz sets")
    parser.add_argument("--quick", action="store_true", help="4 sets, 3 + 3 SVMs")
    parser.add_argument("--only", nargs="+", help="parts of set names")
    parser.add_argument("--samples", type=int, default=100, help="checked per SVM")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--resume", action="store_true", help="keep rows that are there"
    )
    parser.add_argument("--out", type=Path, default=here / "results" / "exactness")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    names = list(QUICK if args.quick else SETS)
    if args.only:
        names = [name for name in names if any(part in name for part in args.only)]
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "results.csv"
    rows = read_rows(path) if args.resume else []
    done = {(row.data, row.kernel, row.C, row.gamma) for row in rows}
    show(None)
    for row in rows:
        show(row)
    for name in names:
        X, y = load(args.data, name, args.seed)
        for model in models(name, X, y, args.quick):
            if model.key in done:
                continue
            rows.append(check(model, args.samples, args.seed))
            show(rows[-1])
            sys.stdout.flush()
            write_rows(path, rows)
    write_config(args.out / "config.yaml", args)
    summarise(rows)


if __name__ == "__main__":
    with limit_blas(1):
        main()
