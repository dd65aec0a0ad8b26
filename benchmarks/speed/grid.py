# SPDX-License-Identifier: BSD-3-Clause
"""All leave-one-out values at one C, fit included, against one plain LIBSVM fit.

``easy`` averages over the 50 lambda of Wang & Yang (2022), ``hard`` over 25 C from 0.1
to 1000, on their simulation. The Gram matrix is given to both. Run:
``python benchmarks/speed/one_c.py`` and ``python benchmarks/speed/hard_grid.py``
"""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import (
    Benchmark,
    Row,
    Simulation,
    make_simulation,
    one_thread,
)
from solved import SVC_METHODS

from leaveout.engine._short import solve_and_leave_singles
from leaveout.engine._solve import solve_svc


def time_grid(
    bench: Benchmark, data: Simulation, Cs: np.ndarray, repeats: int
) -> tuple[float, float, list[dict[str, Any]]]:
    """Return peer and ours in seconds per C, and one cell per C."""
    cells = []
    for C in Cs:
        last: dict[str, Any] = {}

        def ours(C: float = C, last: dict[str, Any] = last) -> None:
            # As the library does with each subproblem of a task.
            problem = data.problem(C)
            solution, found = solve_and_leave_singles(problem, problem.C[None])[0]
            if found is None:
                solution = solution or solve_svc(problem)
                found = SVC_METHODS["walk"](problem, solution=solution)
            last["loo"] = found

        def peer(C: float = C) -> None:
            data.fit_libsvm(C)

        if not cells:  # the first call of each loads libraries and touches memory
            peer()
            ours()
        times = bench.seconds({"peer": peer, "ours": ours}, repeats)
        counts = last["loo"].counts
        cells.append(
            {
                "n": data.y.size,
                "C": float(C),
                "peer_seconds": times["peer"],
                "ours_seconds": times["ours"],
                "ratio": times["ours"] / times["peer"],
                **{k: int(counts[k]) for k in ("walks", "pivots", "slots", "refits")},
            }
        )
    peer_mean = float(np.mean([cell["peer_seconds"] for cell in cells]))
    ours_mean = float(np.mean([cell["ours_seconds"] for cell in cells]))
    return peer_mean, ours_mean, cells


def run(name: str, doc: str | None, grid: Any, must: str, goal: str) -> None:
    """Measure one grid for all sizes; grid(n) gives the values of C."""
    bench = Benchmark(name, doc, sizes=(200, 400, 800, 1600))
    with one_thread():
        for n in bench.sizes:
            data = make_simulation(n, bench.args.seed)
            Cs = grid(n)[:: 5 if bench.quick else 1]
            peer, ours, cells = time_grid(bench, data, Cs, 5 if n < 1600 else 3)
            bench.cells += cells
            workload = f"{name.removeprefix('speed_')} n={n}, mean of {Cs.size} C"
            bench.add(Row(workload, peer, ours, ours / peer, must, goal))
    bench.note(
        "ratio of mean times over the grid; medians of repetitions per C in cells.csv"
    )
    bench.close()
