# SPDX-License-Identifier: BSD-3-Clause
"""Lee, Lin & Wahba's classifier: a fit against clarabel, leaving out against n fits.

Gaussian classes, RBF kernel, hinge loss with C = 10. In the rows "fit", "peer" is
clarabel with the dual over its n (Q - 1) variables, asked for a relative gap of 1e-8;
"ours" is solve_llw, whose gap is in the cells. Both clocks start with the kernel matrix
in memory: clarabel is given its sparse matrices, whose making is not counted. Two to
six classes; then other classifiers with three and six classes at n = 200. In the rows
"leave-one-out", "peer" is one solve_llw per sample and "ours" the walks. The last row
is the image segmentation data, 2310 samples of 7 classes, which clarabel's dense
Hessian of order 13860 is not asked to hold: its peer is missing and its bar is minutes.
Run: ``python benchmarks/speed/llw.py --data DIR [--quick]``, DIR with mc_segment.npz
"""

import resource
import sys
from dataclasses import replace
from pathlib import Path

import clarabel
import numpy as np
from measure import Benchmark, Row, one_thread
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

from leaveout.llw._solve import LlwProblem, solve_llw
from leaveout.llw._walk import loo_llw_refit, loo_llw_walk

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from oracles.llw import llw_dual


def main():
    bench = Benchmark("speed_llw", __doc__, sizes=(100, 200, 400, 850), with_data=True)
    with one_thread():
        for Q in (2, 3, 4, 5, 6):
            for n in bench.sizes:
                problem = make_gaussian(bench.args.seed, n, Q)
                add_fit(bench, f"fit, Q={Q}, n={n}", problem)
        for Q in (3, 6):
            for name, problem in other_problems(bench.args.seed, 200, Q):
                add_fit(bench, f"fit, Q={Q}, n=200, {name}", problem)
        for n in bench.sizes[:2]:
            add_leave_one_out(bench, n, 6)
        if not bench.quick:
            add_segment(bench)
    bench.close()


def make_samples(seed, n, Q):
    """Return overlapping classes in five dimensions."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % Q
    return rng.normal(size=(n, 5)) + rng.normal(size=(Q, 5))[codes], codes


def make_gaussian(seed, n, Q, C=10.0):
    """Return a classifier with RBF kernel."""
    X, codes = make_samples(seed, n, Q)
    return LlwProblem(rbf_kernel(X, gamma=0.1), codes, np.full(n, C), Q)


def other_problems(seed, n, Q):
    """Yield names and SVMs: other C, the quadratic loss, low rank, hard margin."""
    for C in (0.1, 1000.0):
        yield f"C={C:g}", make_gaussian(seed, n, Q, C)
    yield "quadratic", make_gaussian(seed, n, Q).as_hard_margin()
    X, codes = make_samples(seed, n, Q)
    yield "linear kernel", LlwProblem(X @ X.T, codes, np.full(n, 10.0), Q)
    hard = LlwProblem(rbf_kernel(X, gamma=1.0), codes, np.full(n, np.inf), Q)
    yield "hard margin, gamma=1", hard


def add_fit(bench, workload, problem):
    """Compare with clarabel; once at n = 850, where it takes half a minute."""
    n, Q = problem.codes.size, problem.n_classes
    dual = llw_dual(problem)[:5]
    kept = {}

    def peer():
        kept["peer"] = run_clarabel(*dual)

    def ours():
        kept["ours"] = solve_llw(replace(problem))  # nothing is kept from the last

    repeats = {100: 15, 200: 5, 400: 3}.get(n, 1)
    times = bench.seconds({"peer": peer, "ours": ours}, repeats=repeats)
    bench.add(
        Row(
            workload,
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
            "machine": workload,
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
        kept["peer"] = loo_llw_refit(problem, solution)

    def ours():
        kept["ours"] = loo_llw_walk(problem, solution)

    times = bench.seconds({"peer": peer, "ours": ours}, repeats=1)
    ratio = times["peer"] / times["ours"]
    bench.add(Row(f"leave-one-out, Q={Q}, n={n}", times["peer"], times["ours"], ratio))
    difference = float(np.abs(kept["peer"].values - kept["ours"].values).max())
    counts = kept["ours"].counts
    bench.note(
        f"leave-one-out, n={n}: {counts['walks']:.0f} walks, "
        f"{counts['refits']:.0f} refits, values differ by {difference:.0e}"
    )


def run_clarabel(P, q, A, rhs, cones):
    """Return the value of the dual."""
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
            "machine": "segment",
            "peer": float("nan"),
            "ours": seconds,
            "gap": solution.duality_gap,
            "free": int((solution.state == 1).sum()),
            "objective difference": float("nan"),
        }
    )


if __name__ == "__main__":
    main()
