# SPDX-License-Identifier: BSD-3-Clause
"""Figure 3 of Tsuda et al. (2001) again, with other draws of training samples.

The figure uses the first draw. The others show how much depends on it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from common import write_rows
from tsuda2001_common import NAME, guess, learn, selected
from tsuda2001_two_class import FIGURES, SETS, make_grid

DRAWS = 10
NOTES = [f"draws.csv: {DRAWS} draws of the training samples; Fig. 3 has seed 0"]


@dataclass
class Draw:
    """One bag: test error of its choices and error of its rates, in per cent."""

    figure: str
    data: str
    criterion: str
    seed: int
    error: float
    above_loo: float
    rate_error: float


def run(args: argparse.Namespace) -> None:
    """Measure, print, store."""
    draws: list[Draw] = []
    kind, figure = "SVM", FIGURES["SVM"]
    grids = {name: make_grid(kind, name, args) for name in SETS}
    for name in SETS:
        others = [
            cell for n in SETS if n != name for cells in grids[n] for cell in cells
        ]
        tested = [cell for cells in grids[name] for cell in cells]
        loo = np.mean([selected(cells, "LOO") for cells in grids[name]])
        for criterion in ("Run 1", "Run 2"):
            for seed in range(2 if args.quick else DRAWS):
                predictors = learn(others, criterion, args.quick, seed)
                off = guess(tested, criterion, predictors, figure, name).rate_error
                error = np.mean([selected(cells, criterion) for cells in grids[name]])
                above = 100 * float(error - loo)
                draws.append(
                    Draw(figure, name, criterion, seed, 100 * float(error), above, off)
                )
            here = [d for d in draws if (d.data, d.criterion) == (name, criterion)]
            errors = np.array([d.error for d in here])
            print(
                f"{figure:<9}{name:<10}{criterion:<8}{errors.mean():6.2f}, from "
                f"{errors.min():.2f} to {errors.max():.2f} in {errors.size} draws; "
                f"LOO {100 * loo:.2f}; rates off by "
                f"{np.mean([d.rate_error for d in here]):.1f} points",
                flush=True,
            )
    if not args.quick:
        write_rows(NAME, draws, "draws.csv")
