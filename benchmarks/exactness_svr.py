# SPDX-License-Identifier: BSD-3-Clause
"""Is leave-one-out of epsilon-SVR exact? Walks against an interior point.

Random problems with 2 to 24 samples, among them epsilon = 0 or wider than the data,
duplicates, conflicting targets, singular kernels and weights over three decades; and a
few left-out samples of nine regression sets (up to 200 rows) in five settings each.
Every reference is clarabel's solution of the left-out problem. Its support vectors, or
else LIBSVM's, give linear equations for the optimum; a solution that satisfies the
optimality conditions to 1e-11 replaces clarabel's digits (``polished``). Nothing of a
reference is our code.

``deviation`` is the largest difference of a prediction's interval from the reference's,
relative to max(1, |reference|), y in standard deviations; ``beyond`` counts certified
samples with more than 1e-7 (1e-5 if the reference could not be polished). Run:
``python benchmarks/exactness_svr.py --data DIR [--samples 20000]``, DIR with reg_*.npz
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import SVR

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from oracles.regression import optimal_intercepts, random_regression, svr_clarabel

import leaveout as lo
from leaveout.kernel._gram import gram_matrix
from leaveout.run._parallel import limit_blas

RESULTS = Path(__file__).parent / "results" / "exactness_svr"
SETTINGS = [(1.0, 0.1), (10.0, 0.1), (100.0, 0.1), (10.0, 0.0), (10.0, 0.5)]
# Samples of a real set, and how many of them are left out per model.
LARGEST, PER_MODEL = 200, 4
SAME, SAME_COARSE = 1e-7, 1e-5
# How far from its bounds, relative to the largest, a coefficient of clarabel is free.
FREE = [1e-7, 1e-5, 1e-9, 1e-4]


class Case(NamedTuple):
    """Gram matrix, standardised y, upper bounds and epsilon."""

    K: np.ndarray
    y: np.ndarray
    C: np.ndarray
    epsilon: float


def violation(case: Case, beta: np.ndarray, b: float) -> float:
    """Return how far residuals are from where beta wants them, or beta from bounds."""
    rest = case.y - case.K @ beta - b
    eps, near = case.epsilon, 1e-12 * case.C
    # beta may rise unless the residual is at most its kink below, and fall likewise.
    rises = np.where(beta < -near, rest + eps, rest - eps)
    falls = np.where(beta > near, rest - eps, rest + eps)
    up = np.where(beta < case.C - near, rises, -np.inf).max(initial=0.0)
    down = np.where(beta > near - case.C, -falls, -np.inf).max(initial=0.0)
    outside = (np.abs(beta) - case.C).max()
    return float(max(up, down, outside, abs(beta.sum()) / case.C.max()))


def polish(case: Case, beta: np.ndarray) -> np.ndarray | None:
    """Solve the optimality conditions on the free ones of some coefficients."""
    size = min(np.abs(beta).max(), case.C.max())
    for share in FREE:
        near = share * size
        bounded = np.abs(beta) > case.C - near
        zero = (np.abs(beta) < near) & (case.epsilon > 0.0)
        free = np.flatnonzero(~bounded & ~zero)
        exact = np.where(bounded, np.sign(beta) * case.C, 0.0)
        ones = np.ones((free.size, 1))
        A = np.block([[case.K[np.ix_(free, free)], ones], [ones.T, np.zeros((1, 1))]])
        sign, C = np.sign(beta[free]), case.C[free]
        kinks = case.y[free] - sign * case.epsilon
        right = np.append(kinks - case.K[free] @ exact, -exact.sum())
        exact[free] = np.linalg.lstsq(A, right, rcond=1e-14)[0][:-1]
        if is_optimal(case, exact):
            return exact
        # Duplicates: of many solutions, one within the bounds.
        low = np.where((sign > 0) & (case.epsilon > 0), 0.0, -C)
        high = np.where((sign < 0) & (case.epsilon > 0), 0.0, C)
        ends = np.append(low, -np.inf), np.append(high, np.inf)
        exact[free] = lsq_linear(A, right, ends, method="bvls", tol=1e-15).x[:-1]
        if is_optimal(case, exact):
            return exact
    return None


def is_optimal(case: Case, beta: np.ndarray) -> bool:
    """Whether some b satisfies the optimality conditions, up to rounding."""
    ends = optimal_intercepts(case.y - case.K @ beta, case.C, case.epsilon)
    return violation(case, beta, float(np.mean(ends))) < 1e-11


def reference(case: Case, r: int) -> tuple[np.ndarray, bool]:
    """Return the ends of the prediction of r without r, and whether it is polished."""
    others = np.delete(np.arange(case.y.size), r)
    rest = Case(
        case.K[np.ix_(others, others)], case.y[others], case.C[others], case.epsilon
    )
    beta, *ends = svr_clarabel(*rest)
    exact = polish(rest, beta)
    if exact is None:
        exact = polish(rest, solve_by_libsvm(rest))
    if exact is not None:
        beta = exact
        ends = optimal_intercepts(rest.y - rest.K @ beta, rest.C, rest.epsilon)
    return case.K[r, others] @ beta + np.array(ends), exact is not None


def solve_by_libsvm(case: Case) -> np.ndarray:
    """Return LIBSVM's coefficients; it keeps kernel values in single precision."""
    svr = SVR(
        kernel="precomputed", C=1.0, epsilon=case.epsilon, tol=1e-9, max_iter=1_000_000
    )
    beta = np.zeros(case.y.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svr.fit(case.K, case.y, sample_weight=case.C)
    beta[svr.support_] = svr.dual_coef_[0]
    return beta


def check(name: str, case: Case, rows: np.ndarray, total: dict[str, Any]) -> None:
    """Compare some left-out predictions, and add to the counts."""
    svr = SVR(kernel="precomputed", C=1.0, epsilon=case.epsilon)
    result = lo.leave_one_out(svr, case.K, case.y, sample_weight=case.C)
    total["problems"] += 1
    total["walks"] += int(result.counts["walks"])
    total["refits"] += int(result.counts["refits"])
    for r in rows:
        wanted, polished = reference(case, r)
        found = np.array([result.lower[r], result.upper[r]])
        apart = float((np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted))).max())
        total["samples"] += 1
        total["polished"] += polished
        total["intervals"] += bool(wanted[1] - wanted[0] > SAME)
        if not result.certified[r]:
            total["uncertified"] += 1
            continue
        kind = "deviation" if polished else "deviation_coarse"
        total[kind] = max(total[kind], apart)
        if apart > (SAME if polished else SAME_COARSE):
            total["beyond"] += 1
            print(f"{name}: sample {r}, {found} for {wanted}, {apart:.1e}", flush=True)


def real_cases(folder: Path) -> Iterator[tuple[str, Case]]:
    """Yield the models of diabetes and of the sets in a folder."""
    sets = {"diabetes": load_diabetes(return_X_y=True)}
    for path in sorted(folder.glob("reg_*.npz")):
        file = np.load(path)
        sets[path.stem.removeprefix("reg_")] = file["X"], file["y"]
    for name, (X, y) in sets.items():
        rows = np.random.default_rng(0).permutation(y.size)[:LARGEST]
        X, y = X[rows], y[rows]
        K = gram_matrix(scale(X.astype(float)), kernel="rbf")
        for C, epsilon in SETTINGS:
            yield name, Case(K, scale(y.astype(float)), np.full(y.size, C), epsilon)


def empty_row(name: str) -> dict[str, Any]:
    """Return one line of the table before anything is counted."""
    counts = ("problems", "samples", "polished", "intervals", "uncertified", "beyond")
    zeros = dict.fromkeys((*counts, "walks", "refits"), 0)
    return {"data": name, **zeros, "deviation": 0.0, "deviation_coarse": 0.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    rows = {"random": empty_row("random")}
    while rows["random"]["samples"] < args.samples:
        case = Case(*random_regression(rng))
        check("random", case, np.arange(case.y.size), rows["random"])
    print(rows["random"], flush=True)
    for name, case in real_cases(args.data):
        total = rows.setdefault(name, empty_row(name))
        count = min(PER_MODEL, case.y.size)
        check(name, case, rng.choice(case.y.size, count, replace=False), total)
        print(total, flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows["random"]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows.values())
    config = f"date: {date.today().isoformat()}\nsamples: {args.samples}\n"
    config += f"seed: {args.seed}\nleaveout: {lo.__version__}\n"
    (RESULTS / "config.yaml").write_text(config)


if __name__ == "__main__":
    with limit_blas(1):
        main()
