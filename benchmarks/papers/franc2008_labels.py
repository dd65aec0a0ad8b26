# SPDX-License-Identifier: BSD-3-Clause
"""Compare the labels of all methods, and check every proved label.

    python benchmarks/papers/franc2008_labels.py --data DIR [--quick] [--resume]

The 13 IDA sets, six linear and six RBF machines each: splits, models and the referee
(LIBSVM at tol=1e-8, polished, and clarabel) are those of benchmarks/exactness.py.

- "walk", "stopping" (exact mode) and "refit" with eps=1e-6 leave out every sample.
  ``differ``: labels that differ although the sample is not ambiguous. An SMO solve of
  "refit" that is not within eps after SMO_WORK is ended by the active set, from where
  SMO stands; ``refit_capped`` counts these. Their end is optimal, so within any eps.
- ``checked`` samples, first those that no check settles, are solved by the referee:
  all of them for n <= 200, 220 a machine for n <= 500, 20 for n <= 700, else 12.
  ``certified`` counts those whose label "stopping" certified in exact mode,
  ``certified_stopping`` those of them that P < H settled. ``certified_auxiliary`` and
  ``certified_ball``: of those that no check settles, proved within eps=1e-3 by each of
  the two conditions. ``wrong``: of all these, labels that are not the referee's, or
  that the referee calls ambiguous.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import exactness
from common import read_rows, write_config, write_rows
from exactness import ROUNDING, Model, Referee, Reference
from solved import SVC_METHODS

from leaveout.engine._problem import REFIT, STOPPING, LooIntervals, Problem
from leaveout.engine._solve import solve_svc
from leaveout.methods._stopping import LeftOutSolver, check_left_out
from leaveout.methods._stopping_fast import Condition
from leaveout.run._parallel import limit_blas

IDA = [  # small ones first
    f"ida_{name}"
    for name in (
        "thyroid titanic heart breast_cancer banana twonorm ringnorm waveform diabetis "
        "flare_solar german splice image"
    ).split()
]
QUICK = ["ida_heart", "ida_thyroid", "ida_titanic"]
# SMO steps times n of one left-out problem, about 0.1 s, before the active set ends it;
# fewer for the sets with more than 700 samples. RBF machines need up to 80 n steps,
# linear ones at large C thousands of n.
SMO_WORK, SMO_WORK_LARGE = 10**8, 4 * 10**7


@dataclass
class Row:
    """One machine."""

    data: str
    kernel: str
    C: str
    gamma: str
    n: int
    open: int
    ambiguous: int
    proved: int
    refits: int
    stopping_differ: int
    refit_capped: int
    refit_differ: int
    checked: int
    certified: int
    certified_stopping: int
    certified_auxiliary: int
    certified_ball: int
    wrong: int
    seconds: float


def n_checked(n: int) -> int:
    """How many samples of a machine the referee solves."""
    return n if n <= 200 else 220 if n <= 500 else 20 if n <= 700 else 12


def count_different(ours: np.ndarray, walk: LooIntervals) -> int:
    """Labels unlike those of the walk, among the samples that have one."""
    sure = (walk.lower > ROUNDING) | (walk.upper < -ROUNDING)
    return int(np.sum(sure & (np.sign(ours) != np.sign(walk.values))))


def count_wrong(
    lower: np.ndarray, upper: np.ndarray, certified: np.ndarray, truths: list[Reference]
) -> int:
    """Certified margins with another sign than the referee's, or where he sees two."""
    wrong = 0
    for k in np.flatnonzero(certified):
        low, high = truths[k].low, truths[k].high
        two = low < -ROUNDING and high > ROUNDING
        one = low > ROUNDING or high < -ROUNDING
        if two and (lower[k] > 0 or upper[k] < 0):
            wrong += 1
        elif one and not (lower[k] > 0 if low > 0 else upper[k] < 0):
            wrong += 1
    return wrong


def check(model: Model, seed: int) -> Row:
    """Everything about one machine."""
    started = process_time()
    y, n = model.y, len(model.y)
    problem = Problem(model.K, y, np.full(n, model.C))
    solution = solve_svc(problem)
    walk = SVC_METHODS["walk"](problem, solution=solution)
    stopping = SVC_METHODS["stopping"](problem, solution=solution)
    refit, open_rows = check_left_out(problem, solution)
    rng = np.random.default_rng(seed)
    open_rows = rng.permutation(open_rows)
    cap = (SMO_WORK if n <= 700 else SMO_WORK_LARGE) // n**2
    smo = LeftOutSolver(problem, solution, 1e-6, steps_per_sample=cap)
    refits = smo.leave_out(open_rows)
    refit.write(open_rows, refits)
    others = rng.permutation(np.setdiff1d(np.arange(n), open_rows))
    rows = np.concatenate([open_rows, others])[: n_checked(n)]
    referee = Referee(model)
    truths = [referee.leave_out(int(r)) for r in rows]
    sign = y[rows]

    def margins(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = sign[: lower.size] * lower, sign[: lower.size] * upper
        return np.minimum(low, high), np.maximum(low, high)

    ends = margins(stopping.lower[rows], stopping.upper[rows])
    certified = stopping.certified[rows]
    wrong = count_wrong(*ends, certified, truths)
    proved = []
    paper = LeftOutSolver(problem, solution, 1e-3, steps_per_sample=50)
    unsettled = rows[: open_rows.size]
    for condition in (Condition.AUXILIARY, Condition.BALL):
        out = paper.leave_out(unsettled, condition)
        stopped = out.settled_by == STOPPING
        wrong += count_wrong(*margins(out.lower, out.upper), stopped, truths)
        proved.append(int(stopped.sum()))
    return Row(
        *model.key,
        n=n,
        open=open_rows.size,
        ambiguous=int(np.sum((walk.lower <= ROUNDING) & (walk.upper >= -ROUNDING))),
        proved=int(stopping.counts["proved"]),
        refits=int(stopping.counts["refits"]),
        stopping_differ=count_different(stopping.values, walk),
        refit_capped=int(np.sum(refits.settled_by == REFIT)),
        refit_differ=count_different(refit.values, walk),
        checked=rows.size,
        certified=int(certified.sum()),
        certified_stopping=int(np.sum(stopping.settled_by[rows] == STOPPING)),
        certified_auxiliary=proved[0],
        certified_ball=proved[1],
        wrong=wrong,
        seconds=round(process_time() - started, 1),
    )


def summarise(rows: list[Row]) -> None:
    def total(name: str) -> int:
        return sum(getattr(row, name) for row in rows)

    print(
        f"\n{len(rows)} machines, {total('n')} left-out samples, {total('ambiguous')} "
        f"ambiguous: labels of stopping unlike the walk's {total('stopping_differ')}; "
        f"of refit (eps=1e-6) {total('refit_differ')}; of {total('open')} SMO solves "
        f"{total('refit_capped')} were ended by the active set.\n"
        f"{total('checked')} samples solved anew by the referee, {total('certified')} "
        f"of them certified ({total('certified_stopping')} by P < H); within eps=1e-3 "
        f"{total('certified_auxiliary')} proved by P < H and "
        f"{total('certified_ball')} by the ball; {total('wrong')} wrong."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz sets")
    parser.add_argument("--quick", action="store_true", help="3 sets, 3 + 3 machines")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="keep rows already there")
    args = parser.parse_args()
    name = "franc2008_labels"
    rows: list[Row] = read_rows(name, Row) if args.resume else []
    done = {(row.data, row.kernel, row.C, row.gamma) for row in rows}
    with limit_blas(1):
        for data in QUICK if args.quick else IDA:
            X, y = exactness.load(args.data, data, args.seed)
            for model in exactness.models(data, X, y, args.quick):
                if model.key not in done:
                    rows.append(check(model, args.seed))
                    print(rows[-1], flush=True)
                    if not args.quick:
                        write_rows(name, rows)
    summarise(rows)
    if not args.quick:
        write_config(name, __file__, args)


if __name__ == "__main__":
    main()
