# SPDX-License-Identifier: BSD-3-Clause
"""The error for every C ÷ 50 times leave_one_out on a grid over the same range.

The simulation of Wang & Yang (2022), C from 0.01 to 1000, Gram matrix given to both.
The errors of both are compared at the 50 C. Run:
``python benchmarks/speed/curve.py [--quick]``
"""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import Benchmark, Row, make_simulation, one_thread

import leaveout as lo

C_MIN, C_MAX = 1e-2, 1e3
GRID = np.geomspace(C_MIN, C_MAX, 50)


def run() -> None:
    bench = Benchmark("curve", __doc__, sizes=(100, 200, 400))
    with one_thread():
        for n in bench.sizes:
            data = make_simulation(n, bench.args.seed)
            last: dict[str, Any] = {}

            def grid(data: Any = data, last: dict[str, Any] = last) -> None:
                last["errors"] = [
                    lo.leave_one_out(
                        lo.SVC(C=C, kernel="precomputed"), data.K, data.y
                    ).error
                    for C in GRID
                ]

            def curve(data: Any = data, last: dict[str, Any] = last) -> None:
                svc = lo.SVC(kernel="precomputed")
                last["curve"] = lo.loo_curve(
                    svc, data.K, data.y, C_min=C_MIN, C_max=C_MAX
                )

            times = bench.seconds({"grid": grid, "curve": curve}, 3)
            found = last["curve"]
            counts = found.counts
            bench.cells.append(
                {
                    "n": n,
                    "grid_seconds": times["grid"],
                    "curve_seconds": times["curve"],
                    "ratio": times["curve"] / times["grid"],
                    "steps": found.errors.size,
                    "events": int(counts["events"]),
                    "restarts": int(counts["restarts"]),
                    "unequal_errors": int(
                        np.sum(found.error_at(GRID) != last["errors"])
                    ),
                    "best_error_curve": found.best_error,
                    "best_error_grid": float(min(last["errors"])),
                }
            )
            bench.add(
                Row(
                    f"curve n={n}, C = 0.01 to 1000, against 50 C",
                    times["grid"],
                    times["curve"],
                    times["curve"] / times["grid"],
                    goal="n=200 in seconds" if n == 200 else "",
                )
            )
            print(f"   {bench.cells[-1]}")
    bench.note("ratio: seconds of the curve ÷ seconds of leave_one_out at 50 C")
    bench.close()


if __name__ == "__main__":
    run()
