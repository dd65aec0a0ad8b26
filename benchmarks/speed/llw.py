# SPDX-License-Identifier: BSD-3-Clause
"""One fit of Lee, Lin & Wahba's machine: clarabel on the same dual ÷ ours.

Gaussian classes, six of them, RBF kernel, hinge loss with C = 10. "peer" is clarabel
with the dual written out over its n (Q - 1) variables, asked for a relative gap of
1e-8; "ours" is solve_llw, whose gap is in the cells. The last row is the image
segmentation data, 2310 samples of 7 classes, which clarabel's dense Hessian of order
13860 is not asked to hold: its peer is missing and its bar is minutes.
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

from leaveout.solve import LlwProblem, solve_llw

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from llw_oracles import llw_dual

N_CLASSES = 6


def main():
    bench = Benchmark("speed_llw", __doc__, sizes=(100, 200, 400, 850), with_data=True)
    with one_thread():
        for n in bench.sizes:
            add_gaussian(bench, n)
        if not bench.quick:
            add_segment(bench)
    bench.close()


def add_gaussian(bench, n):
    """Compare with clarabel; once at n = 850, where it takes minutes."""
    rng = np.random.default_rng(bench.args.seed)
    codes = np.arange(n) % N_CLASSES
    X = rng.normal(size=(n, 5)) + rng.normal(size=(N_CLASSES, 5))[codes]
    problem = LlwProblem(rbf_kernel(X, gamma=0.1), codes, np.full(n, 10.0), N_CLASSES)
    kept = {}

    def peer():
        kept["peer"] = run_clarabel(problem)

    def ours():
        kept["ours"] = solve_llw(problem)

    times = bench.seconds({"peer": peer, "ours": ours}, repeats=1 if n > 400 else 3)
    bench.add(
        Row(
            f"fit, Q={N_CLASSES}, n={n}",
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
            "Q": N_CLASSES,
            **times,
            "gap": solution.duality_gap,
            "free": int((solution.state == 1).sum()),
            "objective difference": abs(value - solution.objective) / abs(value),
        }
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
