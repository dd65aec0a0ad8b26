# SPDX-License-Identifier: BSD-3-Clause
"""The cost model of docs/method/walk against the clock, leave-one-out without the fit.

The tableau is flops at the speed of a triangular solve (factors) and of a product
(columns), and bytes at the speed of copying rows of a large matrix. The walks are
bytes: their own vectors at the speed of x += y, shared columns at that of copying
rows. The four speeds are measured in the same run. Run:
``python benchmarks/speed/cost_model.py [--quick]``
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from unittest import mock

import numpy as np
from measure import (
    FIFTH,
    HARD_C,
    Benchmark,
    Row,
    Simulation,
    easy_grid,
    make_simulation,
    one_thread,
)
from scipy.linalg import blas

from leaveout.engine import _walk
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import Tableau


@dataclass(frozen=True)
class Speeds:
    """Flops a second, full product and triangle; bytes a second, near and far."""

    product: float
    triangle: float
    near: float
    far: float


def measure_speeds(n: int) -> Speeds:
    """Measure what the model is built of."""
    rng = np.random.default_rng(0)
    m = max(32, n // 4)
    A, B = rng.standard_normal((2, m, n))
    product = np.empty((n, n))
    upper, right = np.asfortranarray(np.eye(m)), np.ones((96, m))
    vectors, row = np.zeros((12, n)), np.full(n, 1e-9)
    shared, order = np.zeros((8_000_000 // n, n)), rng.permutation(8_000_000 // n)

    def copy_rows() -> None:
        for i in order[:400]:
            row[:] = shared[i]

    def multiply() -> None:
        blas.dtrmm(1.0, upper, right.T, overwrite_b=1)

    return Speeds(
        2.0 * n * n * m / _median(lambda: np.matmul(A.T, B, out=product), 5),
        96.0 * m * m / _median(multiply, 50),
        24.0 * vectors.size / _median(lambda: np.add(vectors, row, out=vectors), 200),
        8.0 * n * 400 / _median(copy_rows, 5),
    )


def _median(function: Callable[[], Any], repeats: int) -> float:
    """Median time of a call."""
    times = []
    for _ in range(repeats):
        started = perf_counter()
        function()
        times.append(perf_counter() - started)
    return float(np.median(times))


class Observed:
    """What happens inside one call: seconds in tableau and walks, pivots, columns."""

    def __init__(self, data: Simulation, C: float) -> None:
        problem = data.problem(C)
        solution = solve_svc(problem)
        self.n, self.m = data.y.size, int(solution.free.sum())
        self.tableau = self.walks = 0.0
        self.pivots: list[np.ndarray] = []
        self.n_outside = 0  # columns of S made by products
        _walk.loo_walk(problem, solution)
        run_walks, build, write = (
            _walk.run_walks,
            _walk.build_tableau,
            Tableau.write_columns,
        )

        def timed_walks(*args: Any) -> None:
            started = perf_counter()
            run_walks(*args)
            self.walks += perf_counter() - started
            self.pivots.append(args[-2].copy())

        def timed_build(*args: Any) -> Tableau:
            started = perf_counter()
            tableau = build(*args)
            self.tableau += perf_counter() - started
            return tableau

        def timed_write(tableau: Tableau, indices: np.ndarray, *rest: Any) -> None:
            started = perf_counter()
            write(tableau, indices, *rest)
            self.tableau += perf_counter() - started
            self.n_outside += int((~solution.free[indices]).sum())

        with (
            mock.patch.object(_walk, "run_walks", timed_walks),
            mock.patch.object(_walk, "build_tableau", timed_build),
            mock.patch.object(Tableau, "write_columns", timed_write),
        ):
            started = perf_counter()
            loo = _walk.loo_walk(problem, solution)
            self.total = perf_counter() - started
        self.counts = {k: int(loo.counts[k]) for k in ("walks", "pivots", "columns")}

    def predict(self, speeds: Speeds) -> tuple[float, float]:
        """Seconds of tableau and walks by the formulas of docs/method/walk."""
        n, m = self.n, self.m
        tableau = (m**3 + 2.0 * (n - m) * m**2) / speeds.triangle
        tableau += 2.0 * n * (m + 2) * self.n_outside / speeds.product
        tableau += (
            48.0 * (n - m) * m + n * (16 * m + 32 * self.n_outside)
        ) / speeds.far
        p = np.concatenate([np.zeros(0), *self.pivots])
        # reset and sign, segments, pivots, pivots over pivots, check
        near = 40 + 56 * (p + 1) + 32 * p + 6 * p * np.maximum(0, p - 1) + 40
        # a sample that starts on the margin takes one pivot to leave it
        near += (40 + 12 * p) * min(1.0, m / max(1, self.counts["walks"]))
        far = 8 * (p + 1)
        if m == 0:
            near, far = near + 40, far + 8
        elif m <= _walk.ON_DEMAND:
            near += 8 * (m + 2) * (p + 1)
        seconds = near.sum() / speeds.near + far.sum() / speeds.far
        return tableau if m else 0.0, n * float(seconds)


def main() -> None:
    bench = Benchmark("speed_cost_model", __doc__, sizes=(400, 800, 1600))
    for n in bench.sizes:
        data = make_simulation(n, bench.args.seed)
        speeds = measure_speeds(n)
        bench.note(
            f"n={n}: product {speeds.product / 1e9:.3g} Gflop/s, "
            f"triangle {speeds.triangle / 1e9:.3g} Gflop/s, "
            f"near {speeds.near / 1e9:.3g} GB/s, far {speeds.far / 1e9:.3g} GB/s"
        )
        for grid, Cs in (("easy", easy_grid(n)[FIFTH]), ("hard", HARD_C[FIFTH])):
            here = [one_cell(bench, data, grid, float(C), speeds) for C in Cs]
            bench.cells += here
            for part in ("tableau", "walks"):
                model, clock = (
                    float(np.mean([cell[f"{part}_{kind}"] for cell in here]))
                    for kind in ("model", "clock")
                )
                workload = f"{grid} n={n}, {part} (model | clock)"
                bench.add(Row(workload, model, clock, clock / model if model else 0.0))
    bench.close()


def one_cell(
    bench: Benchmark, data: Simulation, grid: str, C: float, speeds: Speeds
) -> dict[str, Any]:
    """Model and clock at one C; the run with the median total time."""
    runs = [Observed(data, C) for _ in range(bench.repeats(5))]
    run = sorted(runs, key=lambda run: run.total)[len(runs) // 2]
    tableau, walks = run.predict(speeds)
    return {
        "n": run.n,
        "grid": grid,
        "C": C,
        "free": run.m,
        **run.counts,
        "pivots_run": int(sum(p.sum() for p in run.pivots)),
        "tableau_model": tableau,
        "tableau_clock": run.tableau,
        "walks_model": walks,
        "walks_clock": run.walks,
        "total_clock": run.total,
    }


if __name__ == "__main__":
    with one_thread():
        main()
