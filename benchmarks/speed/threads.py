# SPDX-License-Identifier: BSD-3-Clause
"""Two threads ÷ one thread, leave-one-out without the fits.

For comparison, eight matrix products shared out among as many threads: what two cores
give to work that has nothing in common. Run:
``python benchmarks/speed/threads.py [--quick]``
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

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
from solved import SVC_METHODS

from leaveout.engine._solve import solve_svc


def walks(data: Simulation, C: float, n_threads: int) -> Callable[[], object]:
    """Return a call of the leave-one-out phase alone, the fit done beforehand."""
    problem = data.problem(C)
    solution = solve_svc(problem)
    walk = SVC_METHODS["walk"]
    return lambda: walk(problem, solution=solution, n_threads=n_threads)


def products(n_threads: int) -> Callable[[], None]:
    """Return a call of eight independent products of small matrices."""
    A = np.random.default_rng(0).normal(size=(300, 300))

    def run() -> None:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(lambda _: A @ A, range(8)))

    return run


def main() -> None:
    bench = Benchmark("speed_threads", __doc__, sizes=(1600,))
    with one_thread():  # outside of what is timed: it takes milliseconds
        measure(bench)
    bench.note("every fifth C of either grid; the easy one is the bar")
    bench.close()


def measure(bench: Benchmark) -> None:
    """Fill the table."""
    control = bench.seconds({"peer": products(1), "ours": products(2)}, 15)
    one, two = control["peer"], control["ours"]
    bench.add(Row("8 matrix products (1 | 2 threads)", one, two, two / one))
    for n in bench.sizes:
        data = make_simulation(n, bench.args.seed)
        for name, Cs in (("easy", easy_grid(n)[FIFTH]), ("hard", HARD_C[FIFTH])):
            for C in Cs[:: 4 if bench.quick else 1]:
                calls = {"peer": walks(data, C, 1), "ours": walks(data, C, 2)}
                times = bench.seconds(calls, 21)
                bench.cells.append({"n": n, "grid": name, "C": float(C), **times})
            here = [c for c in bench.cells if c["n"] == n and c["grid"] == name]
            one, two = (
                float(np.mean([c[key] for c in here])) for key in ("peer", "ours")
            )
            workload = (
                f"threads n={n}, {name} grid, mean of {len(here)} C (1 | 2 threads)"
            )
            bench.add(Row(workload, one, two, two / one, "≤ 0.65", "≤ 0.55"))


if __name__ == "__main__":
    main()
