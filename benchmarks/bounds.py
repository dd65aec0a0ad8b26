# SPDX-License-Identifier: BSD-3-Clause
"""Do the bounds hold, and how close are the estimates? Random SVMs, all left out.

    python benchmarks/bounds.py [--fits 3000] [--seed 0]

The problems are those of ``random_case`` in tests/oracles/problems.py: n = 2 to 40,
four kernels, C from 1e-3 to 1e4 (with equal or unequal upper bounds), with and without
intercept, a third of them on a grid of whole numbers where samples coincide. Noisy,
small and often degenerate: a place to find violations, not one to read typical errors
from.

results.csv has one row for each name, kind and intercept. ``violated``: SVMs with
more wrong samples than the row says (a bound: wrong or ambiguous ones); must be 0 for
all that is called a bound. ``too_few``: for estimates, SVMs where it says fewer
than are certainly wrong. ``equal``: SVMs where it is the exact error.
``mean_excess``: mean of value minus exact error. The L2-SVM's bound is compared with
the L2-SVM's own leave-one-out. GACV is of the hinge loss, so that its violations mean
nothing. span.csv: left-out margins whose sets stay
the same, by a refit, and the largest deviation of the span's prediction, relative to
max(1, sum_j |beta_j K_pj|) and to max(1, |f|).
"""

from __future__ import annotations

import argparse
import csv
import platform
import sys
from collections import defaultdict
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from oracles.problems import random_case
from solved import wrong_and_ambiguous

from leaveout.assess._bounds import tabulate_bounds
from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import loo_walk
from leaveout.methods._bounds import solve_l2_svm, span_squared

RESULTS = Path(__file__).parent / "results" / "bounds"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    tally, spans = defaultdict(lambda: defaultdict(float)), []
    n_fits = 0
    for number in range(args.fits):
        problem = Problem(*random_case(rng))
        solution = solve_svc(problem)
        if not solution.converged:
            continue
        n_fits += 1
        compare(problem, solution, tally)
        if number % 4 == 0:
            spans += span_deviations(problem, solution)
    store(tally, spans, n_fits, args)


def compare(problem, solution, tally):
    """Count, row by row, the exact leave-one-out errors."""
    own = wrong_and_ambiguous(problem, loo_walk(problem, solution))
    for row in tabulate_bounds(problem, solution).rows:
        wrong, ambiguous = own
        if row.name == "radius-margin L2":
            hard, optimum = solve_l2_svm(problem)
            wrong, ambiguous = wrong_and_ambiguous(hard, loo_walk(hard, optimum))
        share = wrong if row.kind == "weak bound" else wrong | ambiguous
        counts = tally[row.name, row.kind, problem.fit_intercept]
        counts["fits"] += 1
        counts["violated"] += row.value < share.mean() - 1e-12
        counts["violated"] += row.lower > wrong.mean() + 1e-12
        counts["too_few"] += row.value < wrong.mean() - 1e-12
        counts["mean_value"] += row.value
        counts["mean_excess"] += row.value - share.mean()
        counts["equal"] += abs(row.value - share.mean()) < 1e-12


def span_deviations(problem, solution):
    """Deviation of the span's margin wherever a refit has the same sets."""
    spans = span_squared(problem, solution)
    margins = problem.y * solution.decision_values
    deviations = []
    for r in np.flatnonzero((solution.beta != 0) & np.isfinite(spans)):
        rest = problem.without(r)
        if problem.fit_intercept and np.unique(rest.y).size < 2:
            continue
        refit = solve_svc(rest)
        same = np.array_equal(refit.state, np.delete(solution.state, r))
        low, high = refit.intercept_interval
        if refit.converged and same and low == high:
            row = np.delete(problem.K[r], r)
            f = row @ refit.beta + refit.intercept
            predicted = margins[r] - solution.alpha[r] * spans[r]
            off = abs(problem.y[r] * f - predicted)
            terms = np.abs(row) @ np.abs(refit.beta)
            which = "free" if solution.free[r] else "bounded"
            deviations.append((which, off / max(1.0, terms), off / max(1.0, abs(f))))
    return deviations


def store(tally, spans, n_fits, args):
    """Print and write the tables."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = []
    for (name, kind, intercept), counts in sorted(tally.items()):
        fits = counts["fits"]
        rows.append(
            {
                "name": name,
                "kind": kind,
                "intercept": intercept,
                "fits": int(fits),
                "violated": int(counts["violated"]),
                "too_few": int(counts["too_few"]),
                "equal": int(counts["equal"]),
                "mean_value": f"{counts['mean_value'] / fits:.4g}",
                "mean_excess": f"{counts['mean_excess'] / fits:.4g}",
            }
        )
    write(RESULTS / "results.csv", rows)
    by_set = {
        which: np.array([row[1:] for row in spans if row[0] == which])
        for which in ("free", "bounded")
    }
    write(
        RESULTS / "span.csv",
        [
            {
                "p": which,
                "left_out": len(v),
                "to_its_terms": f"{v[:, 0].max():.2g}",
                "to_its_value": f"{v[:, 1].max():.2g}",
            }
            for which, v in by_set.items()
        ],
    )
    lines = [
        f"date: {date.today().isoformat()}",
        f"fits: {n_fits}",
        f"asked: {args.fits}",
        f"seed: {args.seed}",
        f"python: {platform.python_version()}",
        *(f"{name}: {version(name)}" for name in ("numpy", "scipy", "leaveout")),
    ]
    (RESULTS / "config.yaml").write_text("\n".join(lines) + "\n")


def write(path, rows):
    print(path.name)
    for row in rows:
        print("  ", *row.values())
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
