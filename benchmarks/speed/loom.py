# SPDX-License-Identifier: BSD-3-Clause
"""Fit of the leave-one-out machine, n = 200 to 2000: seconds, and slope over n.

"peer" is the program as the paper writes it, slacks and all, given to HiGHS with its
defaults by SciPy's linprog: one stage, no smallest sum of coefficients, no proof.
"ours" is both stages with the certificate. Four problems: banana, noisy mixture,
waveform, and ringnorm with a narrow kernel, where every constraint can be met and the
second stage has the most to do. Run:
``python benchmarks/speed/loom.py [--quick] [--cpu]``
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from growth import slope
from measure import Benchmark, Row, one_thread
from scipy.optimize import linprog
from sklearn.preprocessing import scale

from leaveout.data import make_banana, make_mixture
from leaveout.kernel._gram import gram_matrix
from leaveout.lp._loom import LoomProblem, solve_loom

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from datasets import make_ringnorm, make_waveform

# Beyond this the peer takes too long.
LARGEST_PEER = 400


def problems(n: int, seed: int) -> dict[str, LoomProblem]:
    """Return the classifiers by name, without intercept as in the paper."""
    data = {
        "banana": (make_banana(n, random_state=seed), 1.0),
        "mixture": (make_mixture(n, 20, random_state=seed), 0.05),
        "waveform": (make_waveform(n, random_state=seed), 0.05),
        "ringnorm": (make_ringnorm(n, random_state=seed), 0.1),
    }
    made = {}
    for name, ((X, labels), gamma) in data.items():
        y = np.where(labels == np.max(labels), 1.0, -1.0)
        K = gram_matrix(scale(X), kernel="rbf", gamma=gamma)
        made[name] = LoomProblem(K, y, np.ones(n), False)
    return made


def solve_as_printed(problem: LoomProblem) -> float:
    """Solve eq. (12)-(14) with HiGHS's defaults; return the sum of the slacks."""
    n = problem.n_samples
    M = problem.K * np.outer(problem.y, problem.y)
    np.fill_diagonal(M, 0.0)
    cost = np.append(np.zeros(n), np.ones(n))
    return linprog(cost, A_ub=np.hstack([-M, -np.eye(n)]), b_ub=-np.ones(n)).fun


def main() -> None:
    bench = Benchmark("speed_loom", __doc__, sizes=(200, 400, 800, 1200, 2000))
    seconds: dict[str, list[float]] = {}
    with one_thread():
        for n in bench.sizes:
            for name, problem in problems(n, bench.args.seed).items():
                cell = measure(bench, name, problem)
                bench.cells.append(cell)
                seconds.setdefault(name, []).append(cell["ours"])
                must = "ours ≤ 60 s" if n == 2000 else ""
                ratio = cell["ours"] / cell["peer"]
                label = f"LOOM fit, {name}, n={n}"
                bench.add(Row(label, cell["peer"], cell["ours"], ratio, must))
    for name, times in seconds.items():
        if len(times) > 1:
            label = f"slope, {name}, n={bench.sizes[0]} to {bench.sizes[-1]}"
            growth = slope(bench.sizes, times)
            bench.add(Row(label, float("nan"), growth, growth, unit="-"))
    bench.close()


def measure(bench: Benchmark, name: str, problem: LoomProblem) -> dict:
    """Time one problem; both must find the same objective."""
    n, found = problem.n_samples, {}
    functions = {"ours": lambda: found.update(ours=solve_loom(problem))}
    if n <= LARGEST_PEER:
        functions["peer"] = lambda: found.update(peer=solve_as_printed(problem))
    times = {"peer": float("nan"), **bench.seconds(functions, 3 if n <= 400 else 1)}
    solution = found["ours"]
    apart = abs(found.get("peer", solution.objective) - solution.objective)
    if apart > 1e-5 * max(1.0, solution.objective):
        bench.note(f"{name}, n={n}: objectives differ by {apart:.1e}")
    return {
        "problem": name,
        "n": n,
        **times,
        "objective": solution.objective,
        "gap": solution.duality_gap,
        "coefficients": int((solution.coef != 0).sum()),
        "largest": float(np.abs(solution.coef).max()),
        "smallest kernel value": float(problem.K.min()),
        "steps": solution.n_iter,
    }


if __name__ == "__main__":
    main()
