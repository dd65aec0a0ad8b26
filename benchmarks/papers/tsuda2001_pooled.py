# SPDX-License-Identifier: BSD-3-Clause
"""Run 2 on ringnorm as the first implementation drew its training samples.

It drew 1,000 samples of each set without replacement, by ``default_rng(seed)``, seeds
0 to 4, from features in single precision; ``LooPredictor`` draws equally many from each
classifier. Bag 0 has its very samples, bags 1 to 9 the next seeds: what remains of the
difference is the draw.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from common import write_rows
from tsuda2001_common import NAME, Cell, selected
from tsuda2001_two_class import SETS, make_grid

from leaveout.adapt._fitted import read_expansion
from leaveout.assess._loo_features import leave_one_out_features, relative_to_own
from leaveout.assess._loo_member import LooMember

TARGET, BAGS, MEMBERS, PENALTY = "ringnorm", 10, 5, 30.0
NOTES = [f"pooled.csv: {TARGET}, {BAGS} bags of run 2, drawn from the pool of each set"]


@dataclass
class Bag:
    """One bag: test error of its choices and error of its rates, in per cent."""

    data: str
    bag: int
    error: float
    above_loo: float
    rate_error: float


def natural_features(cell: Cell) -> np.ndarray:
    """Return "natural" features in single precision."""
    fitted = read_expansion(cell.machine, cell.X, cell.y)
    features = leave_one_out_features(fitted, "natural")
    return features.astype(np.float32).astype(np.float64)


def draw(
    pools: list[tuple[np.ndarray, np.ndarray]], seed: int, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw equally many samples of each set: features and whether they are right."""
    random = np.random.default_rng(seed)
    parts = []
    for features, right in pools:
        rows = random.permutation(len(right))[: most // len(pools)]
        parts.append((features[rows], right[rows]))
    return np.vstack([f for f, _ in parts]), np.concatenate([r for _, r in parts])


def run(args: argparse.Namespace) -> None:
    """Measure, print, store."""
    grids = {name: make_grid("SVM", name, args) for name in SETS}
    pools = []
    for name in SETS:
        if name != TARGET:
            cells = [cell for grid in grids[name] for cell in grid]
            known = np.concatenate([~cell.ambiguous for cell in cells])
            right = ~np.concatenate([cell.wrong for cell in cells])
            features = np.vstack([natural_features(cell) for cell in cells])
            pools.append((features[known], right[known]))
    targets = [(cell, natural_features(cell)) for g in grids[TARGET] for cell in g]
    loo = np.mean([selected(cells, "LOO") for cells in grids[TARGET]])
    bags = []
    for k in range(2 if args.quick else BAGS):
        members = []
        for seed in range(MEMBERS * k, MEMBERS * (k + 1)):
            natural, right = draw(pools, seed, 500 if args.quick else 2000)
            for variant, drawn in (
                ("natural", natural), ("relative", relative_to_own(natural)),
            ):  # fmt: skip
                members.append(LooMember.learn(variant, drawn, right, PENALTY))
        misses = []
        for cell, natural in targets:
            features = {"natural": natural, "relative": relative_to_own(natural)}
            votes = [m.decide(features[m.variant]) < 0 for m in members]
            cell.scores["pooled"] = float(np.mean(votes))
            misses.append(abs(np.mean(votes) - cell.wrong.mean()))
        error = np.mean([selected(cells, "pooled") for cells in grids[TARGET]])
        above, off = 100 * float(error - loo), 100 * float(np.mean(misses))
        bags.append(Bag(TARGET, k, 100 * float(error), above, off))
        print(bags[-1], flush=True)
        if not args.quick:
            write_rows(NAME, bags, "pooled.csv")
    errors = [bag.error for bag in bags]
    print(
        f"{TARGET}, drawn from the pools: {np.mean(errors):.2f}, from "
        f"{min(errors):.2f} to {max(errors):.2f}; LOO {100 * loo:.2f}; first "
        "implementation 1.92"
    )
