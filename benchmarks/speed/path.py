# SPDX-License-Identifier: BSD-3-Clause
"""The whole leave-one-out path over C against plain LIBSVM fits of the same path.

``easy``: the 50 lambda of Wang & Yang (2022); ``hard``: 25 C from 0.1 to 1000; their
simulation, the Gram matrix given to both. Each of our optima starts from the one
before; LIBSVM cannot. Run: ``python benchmarks/speed/path.py [--quick]``
"""

from __future__ import annotations

import numpy as np
from measure import (
    HARD_C,
    Benchmark,
    Row,
    Simulation,
    easy_grid,
    make_simulation,
    one_thread,
)

import leaveout as lo


def ours(data: Simulation, Cs: np.ndarray) -> lo.LooPath:
    """All leave-one-out values for all C."""
    return lo.loo_path(lo.SVC(kernel="precomputed"), data.K, data.y, Cs=Cs)


def peer(data: Simulation, Cs: np.ndarray) -> None:
    """Fit LIBSVM once for each C."""
    for C in Cs:
        data.fit_libsvm(C)


def main() -> None:
    bench = Benchmark("speed_path", __doc__, sizes=(200, 400, 800, 1600))
    grids = (
        ("easy", easy_grid, "≤ 2", "≤ 1"),
        ("hard", lambda n: HARD_C, "≤ 4", "≤ 2"),
    )
    with one_thread():
        for name, grid, must, goal in grids:
            for n in bench.sizes:
                data = make_simulation(n, bench.args.seed)
                Cs = np.sort(grid(n))
                ours(data, Cs[:3])  # the first call loads libraries
                times = bench.seconds(
                    {
                        "peer": lambda d=data, c=Cs: peer(d, c),
                        "ours": lambda d=data, c=Cs: ours(d, c),
                    },
                    5 if n < 1600 else 3,
                )
                ratio = times["ours"] / times["peer"]
                workload = f"{name} path n={n}, {Cs.size} C"
                row = Row(workload, times["peer"], times["ours"], ratio, must, goal)
                bench.add(row)
    bench.note("loo_path includes checking the Gram matrix and all left-out values")
    bench.close()


if __name__ == "__main__":
    main()
