# SPDX-License-Identifier: BSD-3-Clause
"""Lee, Lin & Wahba's machine: a fit against clarabel, leaving out against n fits.

Gaussian classes, RBF kernel, hinge loss with C = 10. In the rows "fit", "peer" is
clarabel with the dual written out over its n (Q - 1) variables, asked for a relative
gap of 1e-8; "ours" is solve_llw, whose gap is in the cells. Six classes at all sizes;
fewer, where clarabel's problem is smaller, at the first and the third. In the rows
"leave-one-out", "peer" is one solve_llw per sample and "ours" the walks. The last row
is the image segmentation data, 2310 samples of 7 classes, which clarabel's dense
Hessian of order 13860 is not asked to hold: its peer is missing and its bar is minutes.
Run: ``python benchmarks/speed/llw.py --data DIR [--quick]``, DIR with mc_segment.npz
"""

import resource
import sys
from pathlib import Path

import clarabel
import numpy as np
from measure import Benchmark, Row, one_thread
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

from leaveout.loo import loo_llw_refit, loo_llw_walk
from leaveout.solve import LlwProblem, solve_llw

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from llw_oracles import llw_dual


def main():
    bench = Benchmark("speed_llw", __doc__, sizes=(100, 200, 400, 850), with_data=True)
    with one_thread():
        for n in bench.sizes:
            add_fit(bench, n, 6)
        for Q in (2, 3, 4):
            for n in bench.sizes[:3:2]:
                add_fit(bench, n, Q)
        for n in bench.sizes[:2]:
            add_leave_one_out(bench, n, 6)
        if not bench.quick:
            add_segment(bench)
    bench.close()


def make_gaussian(seed, n, Q):
    """Return a machine on overlapping classes in five dimensions."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % Q
    X = rng.normal(size=(n, 5)) + rng.normal(size=(Q, 5))[codes]
    return LlwProblem(rbf_kernel(X, gamma=0.1), codes, np.full(n, 10.0), Q)


def add_fit(bench, n, Q):
    """Compare with clarabel; once at n = 850, where it takes half a minute."""
    problem = make_gaussian(bench.args.seed, n, Q)
    kept = {}

    def peer():
        kept["peer"] = run_clarabel(problem)

    def ours():
        kept["ours"] = solve_llw(problem)

    times = bench.seconds({"peer": peer, "ours": ours}, repeats=1 if n > 400 else 3)
    bench.add(
        Row(
            f"fit, Q={Q}, n={n}",
            times["peer"],
            times["ours"],
            times["peer"] / times["ours"],
            "≥ 10",
            "",
        )
    )
    solution, value = kept["ours"], kept["peer"]
    bench.cells.append(
        {
            "n": n,
            "Q": Q,
            **times,
            "gap": solution.duality_gap,
            "free": int((solution.state == 1).sum()),
            "objective difference": abs(value - solution.objective) / abs(value),
        }
    )


def add_leave_one_out(bench, n, Q):
    """Compare the walks with a fit per sample."""
    problem = make_gaussian(bench.args.seed, n, Q)
    solution = solve_llw(problem)
    kept = {}

    def peer():
        kept["peer"] = loo_llw_refit(problem, solution=solution)

    def ours():
        kept["ours"] = loo_llw_walk(problem, solution=solution)

    times = bench.seconds({"peer": peer, "ours": ours}, repeats=1)
    ratio = times["peer"] / times["ours"]
    bench.add(Row(f"leave-one-out, Q={Q}, n={n}", times["peer"], times["ours"], ratio))
    values = {k: np.column_stack([m.values for m in kept[k]]) for k in kept}
    difference = float(np.abs(values["peer"] - values["ours"]).max())
    counts = kept["ours"][0].counts
    bench.note(
        f"leave-one-out, n={n}: {counts['walks']:.0f} walks, "
        f"{counts['refits']:.0f} refits, values differ by {difference:.0e}"
    )


def run_clarabel(problem):
    """Return the value of the dual."""
    P, q, A, rhs, cones, _, _ = llw_dual(
        problem.K, problem.codes, problem.C, problem.n_classes
    )
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-8
    return -clarabel.DefaultSolver(P, q, A, rhs, cones, settings).solve().obj_val


def add_segment(bench):
    """Fit the image segmentation data."""
    stored = np.load(bench.data / "mc_segment.npz")
    varying = np.ptp(stored["X"], axis=0) > 0
    codes = np.unique(stored["y"], return_inverse=True)[1]
    n, Q = codes.size, int(codes.max()) + 1
    K = rbf_kernel(scale(stored["X"][:, varying]), gamma=0.1)
    problem = LlwProblem(K, codes, np.full(n, 10.0), Q)
    kept = {}

    def ours():
        kept["ours"] = solve_llw(problem)

    seconds = bench.seconds({"ours": ours}, repeats=1)["ours"]
    solution = kept["ours"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    bench.add(
        Row(
            f"segment, Q={Q}, n={n}", float("nan"), seconds, float("nan"), "minutes", ""
        )
    )
    bench.note(f"segment: gap {solution.duality_gap:.1e}, peak memory {memory:.1f} GiB")
    bench.cells.append(
        {
            "n": n,
            "Q": Q,
            "peer": float("nan"),
            "ours": seconds,
            "gap": solution.duality_gap,
            "free": int((solution.state == 1).sum()),
            "objective difference": float("nan"),
        }
    )


if __name__ == "__main__":
    main()
