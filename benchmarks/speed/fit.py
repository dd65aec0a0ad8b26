# SPDX-License-Identifier: BSD-3-Clause
"""One fit: ours (KKT residual <= 1e-9) against LIBSVM at its tolerance of 1e-3.

The Gram matrix is given to both; simulation of Wang & Yang (2022). Run:
``python benchmarks/speed/fit.py [--quick]``
"""

from measure import Benchmark, Row, make_simulation, one_thread

from leaveout.engine._solve import solve_svc

CS = (0.1, 1.0, 10.0, 100.0)


def main() -> None:
    bench = Benchmark("speed_fit", __doc__, sizes=(200, 500, 1000, 2000))
    with one_thread():
        for n in bench.sizes:
            data = make_simulation(n, bench.args.seed)
            for C in CS:
                times = bench.seconds(
                    {
                        "peer": lambda: data.fit_libsvm(C),  # noqa: B023
                        "ours": lambda: solve_svc(data.problem(C)),  # noqa: B023
                    },
                    7,
                )
                ratio = times["ours"] / times["peer"]
                workload = f"fit n={n} C={C:g}"
                bench.add(Row(workload, **times, ratio=ratio, must="≤ 2", goal="≤ 1"))
    bench.close()


if __name__ == "__main__":
    main()
