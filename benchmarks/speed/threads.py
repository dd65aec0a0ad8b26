# SPDX-License-Identifier: BSD-3-Clause
"""Two threads ÷ one thread, leave-one-out without the fits.

BLAS gets as many threads as the walks. Run:
``python benchmarks/speed/threads.py [--quick]``
"""

from __future__ import annotations

from collections.abc import Callable

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
from threadpoolctl import threadpool_limits

from leaveout.loo import find_method
from leaveout.solve import solve_svc

_, loo_walk = find_method("walk")


def walks(data: Simulation, C: float, n_threads: int) -> Callable[[], None]:
    """Return a call of the leave-one-out phase alone, the fit done beforehand."""
    problem = data.problem(C)
    with one_thread():
        solution = solve_svc(problem)

    def run() -> None:
        with threadpool_limits(n_threads, user_api="blas"):
            loo_walk(problem, solution=solution, n_threads=n_threads)

    return run


def main() -> None:
    bench = Benchmark("speed_threads", __doc__, sizes=(1600,))
    for n in bench.sizes:
        data = make_simulation(n, bench.args.seed)
        for name, Cs in (("easy", easy_grid(n)[FIFTH]), ("hard", HARD_C[FIFTH])):
            for C in Cs[:: 4 if bench.quick else 1]:
                calls = {"peer": walks(data, C, 1), "ours": walks(data, C, 2)}
                times = bench.seconds(calls, 5)
                bench.cells.append({"n": n, "grid": name, "C": float(C), **times})
            here = [c for c in bench.cells if c["n"] == n and c["grid"] == name]
            one, two = (
                float(np.mean([c[key] for c in here])) for key in ("peer", "ours")
            )
            workload = (
                f"threads n={n}, {name} grid, mean of {len(here)} C (1 | 2 threads)"
            )
            bench.add(Row(workload, one, two, two / one, "≤ 0.65", "≤ 0.55"))
    bench.note("every fifth C of either grid; the easy one is the bar")
    bench.close()


if __name__ == "__main__":
    main()
