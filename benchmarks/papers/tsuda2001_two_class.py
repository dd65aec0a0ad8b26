# SPDX-License-Identifier: BSD-3-Clause
"""Figures 3 and 4 of Tsuda, Rätsch, Mika & Müller (2001): two classes, three sets."""

from __future__ import annotations

import argparse

from common import load
from tsuda2001_common import (
    PREDICTORS,
    Cell,
    Guess,
    Row,
    guess,
    learn,
    measure,
    show,
    store,
    summarise,
)

SETS = ("twonorm", "ringnorm", "heart")
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
# gamma times the number of features; the sets have unit variances.
WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
FIGURES = {"SVM": "Fig. 3", "LPM": "Fig. 4"}
REALISATIONS = 10
NOTES = [
    f"Figs. 3, 4: {REALISATIONS} realisations, as in the paper",
    f"Figs. 3, 4: grid C {PENALTIES}, gamma times features {WIDTHS}",
    "Figs. 3, 4: error bars are standard errors over realisations",
]


def make_grid(kind: str, name: str, args: argparse.Namespace) -> list[list[Cell]]:
    """Return the cells of the grid, realisation by realisation."""
    data = load(args.data, name, args.seed)
    most = 150 if args.quick else None
    Cs, widths = (PENALTIES[1::2], WIDTHS[::2]) if args.quick else (PENALTIES, WIDTHS)
    grids = []
    for split in data.splits[: 2 if args.quick else REALISATIONS]:
        rows, test = split.train[:most], (data.X[split.test], data.y[split.test])
        train = data.X[rows], data.y[rows]
        grids.append(
            [
                measure(kind, C, width / data.X.shape[1], train, test)
                for C in Cs
                for width in widths
            ]
        )
    return grids


def run(args: argparse.Namespace) -> None:
    """Measure, print, store."""
    rows: list[Row] = []
    guesses: list[Guess] = []
    for kind, figure in FIGURES.items():
        grids = {name: make_grid(kind, name, args) for name in SETS}
        bounds = ["Span", "JH", "SVC"] if kind == "SVM" else []
        for name in SETS:
            others = [
                cell for n in SETS if n != name for cells in grids[n] for cell in cells
            ]
            tested = [cell for cells in grids[name] for cell in cells]
            guesses += [
                guess(tested, label, learn(others, label, args.quick), figure, name)
                for label in PREDICTORS
            ]
            criteria = ["OPT", "LOO", *bounds, *PREDICTORS]
            rows += summarise(figure, name, grids[name], criteria)
    show(rows, guesses)
    if not args.quick:
        store("two_class", rows, guesses)
