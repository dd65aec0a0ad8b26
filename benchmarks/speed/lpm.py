# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out of the linear programming machine ÷ one solve of its program.

The simulation of Wang & Yang (2022), twenty features, RBF kernel of kernlab's width.
"peer" is HiGHS on the dual, without presolve, from scratch: the fastest of six ways
to give it this program (dual or primal form, dual or primal simplex, presolve or not).
"ours" is all left-out values by pivots, certificates included, the solve not. The cells
hold the same by warm-started refits. Run: ``python benchmarks/speed/lpm.py [--quick]``
"""

import statistics

from measure import Benchmark, Row, make_simulation, one_thread

from leaveout.lp._lpm import solve_lpm
from leaveout.lp._lpm_walk import loo_lpm_refit, loo_lpm_walk

PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)


def main():
    bench = Benchmark("speed_lpm", __doc__, sizes=(100, 200, 400))
    with one_thread():
        for n in bench.sizes:
            simulation = make_simulation(n, bench.args.seed)
            cells = [measure(bench, simulation, n, C) for C in PENALTIES]
            bench.cells.extend(cells)
            peer, ours = (
                statistics.mean(cell[name] for cell in cells)
                for name in ("solve", "walks")
            )
            must, goal = ("≤ 40", "≤ 5") if n == 400 else ("", "")
            label = f"LPM leave-one-out, mean over {len(cells)} C, n={n}"
            bench.add(Row(label, peer, ours, ours / peer, must, goal))
            worst = max(cells, key=lambda cell: cell["ratio"])
            label = f"the same, C with the largest ratio ({worst['C']:g}), n={n}"
            bench.add(Row(label, worst["solve"], worst["walks"], worst["ratio"]))
    bench.close()


def measure(bench, simulation, n, C):
    """Return the times of one C; refits once, and not beyond n = 200."""
    problem = simulation.problem(C)
    solution = solve_lpm(problem)
    times = bench.seconds(
        {
            "solve": lambda: solve_lpm(problem),
            "walks": lambda: loo_lpm_walk(problem, solution),
        },
        repeats=5,
    )
    loo = loo_lpm_walk(problem, solution)
    refits = float("nan")
    if n <= 200:
        refits = bench.seconds(
            {"refits": lambda: loo_lpm_refit(problem, solution)}, repeats=1
        )["refits"]
    return {
        "n": n,
        "C": C,
        **times,
        "refits": refits,
        "ratio": times["walks"] / times["solve"],
        "coefficients": int((solution.coef != 0).sum()),
        "row duals": int((solution.row_dual > 0).sum()),
        "walks made": int(loo.counts["walks"]),
        "pivots": int(loo.counts["pivots"]),
        "refitted": int(loo.counts["refits"]),
        "certified": int(loo.certified.sum()),
        "error": float((problem_wrong(problem, loo)).mean()),
        "ambiguous": int(((loo.lower <= 0) & (loo.upper >= 0)).sum()),
    }


def problem_wrong(problem, loo):
    """Whether the middle of the range is on the wrong side."""
    return problem.y * loo.values < 0


if __name__ == "__main__":
    main()
