# SPDX-License-Identifier: BSD-3-Clause
"""The cost model of docs/method/walk against the clock, leave-one-out without the fit.

The tableau is flops at the speed of a matrix product, the walks are bytes at the speed
of x += y on vectors of length n; both speeds are measured in the same run. Run:
``python benchmarks/speed/cost_model.py [--quick]``
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from measure import (
    FIFTH,
    HARD_C,
    Benchmark,
    Row,
    easy_grid,
    make_simulation,
    one_thread,
)

from leaveout.loo import find_method
from leaveout.loo._tableau import build_tableau
from leaveout.loo._walk import ON_DEMAND
from leaveout.solve import Solution, solve_svc

_, loo_walk = find_method("walk")


def tableau_flops(n: int, m: int, n_columns: int) -> float:
    """Cholesky and inverse (m^3), two triangular solves, columns outside M."""
    if m == 0:
        return 0.0
    outside = max(0, n_columns - m)
    return m**3 + 2.0 * n * m**2 + 2.0 * n * (m + 2) * outside


def walk_bytes(n: int, m: int, n_walks: int, n_pivots: int) -> float:
    """Bytes read and written by all walks, with the mean number of pivots in each.

    Reset and first column 32 n; a segment 56 n (ratio test, step); a pivot 40 n (column,
    direction) and 24 n for each pivot before it; the check 40 n; with an empty margin
    48 n more; columns made in the walk 8 n (m + 2) each.
    """
    if n_walks == 0:
        return 0.0
    p = n_pivots / n_walks
    per_walk = 32 + 56 * (p + 1) + 40 * p + 12 * p * max(0.0, p - 1) + 40
    if m == 0:
        per_walk += 48
    elif m <= ON_DEMAND:
        per_walk += 8 * (m + 2) * (p + 1)
    return n_walks * n * per_walk


def product_rate(n: int, m: int) -> float:
    """Flops per second of (n, m) times (m, n), the shape of the tableau's columns."""
    A, B = np.random.default_rng(0).standard_normal((2, m, n))
    out = np.empty((n, n))
    times = []
    for _ in range(5):
        started = perf_counter()
        np.matmul(A.T, B, out=out)
        times.append(perf_counter() - started)
    return 2.0 * n * n * m / float(np.median(times))


def stream_rate(n: int) -> float:
    """Bytes per second of x += y on a dozen vectors of length n, as the walks do it."""
    X = np.zeros((12, n))
    row = np.full(n, 1e-9)
    times = []
    for _ in range(200):
        started = perf_counter()
        np.add(X, row, out=X)
        times.append(perf_counter() - started)
    return 24.0 * X.size / float(np.median(times))


def time_tableau(bench: Benchmark, problem, solution: Solution) -> float:
    """Seconds for the factors and the columns of all support vectors."""
    if not solution.free.any():
        return 0.0
    rows = np.flatnonzero(solution.beta)
    out = np.empty((rows.size, problem.n_samples))

    def run() -> None:
        build_tableau(problem, solution).write_columns(rows, out)

    return bench.seconds({"tableau": run}, 3)["tableau"]


def main() -> None:
    bench = Benchmark("speed_cost_model", __doc__, sizes=(400, 800, 1600))
    for n in bench.sizes:
        data = make_simulation(n, bench.args.seed)
        flops, stream = product_rate(n, max(32, n // 4)), stream_rate(n)
        bench.note(f"n={n}: {flops / 1e9:.3g} Gflop/s, {stream / 1e9:.3g} GB/s")
        for name, Cs in (("easy", easy_grid(n)[FIFTH]), ("hard", HARD_C[FIFTH])):
            here = []
            for C in Cs:
                problem = data.problem(C)
                solution = solve_svc(problem)
                m = int(solution.free.sum())
                counts = loo_walk(problem, solution=solution).counts
                walks, pivots, columns = (
                    int(counts[key]) for key in ("walks", "pivots", "columns")
                )
                seconds = bench.seconds(
                    {"loo": lambda: loo_walk(problem, solution=solution)},  # noqa: B023
                    3,
                )["loo"]
                tableau = time_tableau(bench, problem, solution) if columns else 0.0
                cell = {
                    "n": n,
                    "grid": name,
                    "C": float(C),
                    "free": m,
                    "walks": walks,
                    "pivots": pivots,
                    "columns": columns,
                    "tableau_predicted": tableau_flops(n, m, columns) / flops,
                    "tableau": tableau,
                    "walks_predicted": walk_bytes(n, m, walks, pivots) / stream,
                    "walks_measured": seconds - tableau,
                }
                here.append(cell)
            bench.cells += here
            for part, measured in (("tableau", "tableau"), ("walks", "walks_measured")):
                predicted = float(np.mean([c[f"{part}_predicted"] for c in here]))
                found = float(np.mean([c[measured] for c in here]))
                workload = f"{name} n={n}, {part} (predicted | measured)"
                ratio = found / predicted if predicted else np.nan
                bench.add(Row(workload, predicted, found, ratio))
    bench.close()


if __name__ == "__main__":
    with one_thread():
        main()
