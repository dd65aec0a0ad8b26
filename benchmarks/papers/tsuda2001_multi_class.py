# SPDX-License-Identifier: BSD-3-Clause
"""Figure 5 of Tsuda, Rätsch, Mika & Müller (2001): many classes, one at a time."""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
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

N_CLASSES, PER_CLASS = 8, 80
PENALTY = 10.0
# Eleven widths sigma, as in the paper; here in units of the median distance.
WIDTHS = np.arange(0.2, 1.3, 0.1)
SPLITS = {"SVM": 5, "LPM": 3}
NOTES = [
    f"Fig. 5: splits SVM {SPLITS['SVM']}, LPM {SPLITS['LPM']}, C = {PENALTY:g}; "
    "error bars over splits and classes"
]


def load_classes(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return eight digits, 80 samples of each, in random order."""
    X, y = load_digits(return_X_y=True)
    rows = [random.permutation(np.flatnonzero(y == c))[:PER_CLASS] for c in range(8)]
    order = random.permutation(np.concatenate(rows))
    return X[order] / 16.0, y[order]


def grid_of_class(
    kind: str, label: int, X: np.ndarray, y: np.ndarray, widths: np.ndarray
) -> list[Cell]:
    """Fit one class against the rest with every width, smallest gamma first."""
    half, sign = len(y) // 2, np.where(y == label, 1, -1)
    squares = ((X[:50, None] - X[:50]) ** 2).sum(axis=2)
    median = np.median(squares[np.triu_indices(50, 1)])
    train, test = (X[:half], sign[:half]), (X[half:], sign[half:])
    return [
        measure(kind, PENALTY, 1.0 / (median * width**2), train, test)
        for width in widths[::-1]
    ]


def run(args: argparse.Namespace) -> None:
    """Measure, print, store."""
    rows: list[Row] = []
    guesses: list[Guess] = []
    n_classes = 3 if args.quick else N_CLASSES
    widths = WIDTHS[::5] if args.quick else WIDTHS
    for kind, n_splits in SPLITS.items():
        groups: list[list[Cell]] = []
        single: dict[str, list[Guess]] = {name: [] for name in PREDICTORS}
        for split in range(1 if args.quick else n_splits):
            random = np.random.default_rng([args.seed, split])
            X, y = load_classes(random)
            first = int(random.integers(n_classes))
            learned = grid_of_class(kind, first, X, y, widths)
            tested = [
                grid_of_class(kind, c, X, y, widths)
                for c in range(n_classes)
                if c != first
            ]
            everything = [cell for cells in tested for cell in cells]
            for name in PREDICTORS:
                predictors = learn(learned, name, args.quick)
                single[name].append(
                    guess(everything, name, predictors, "Fig. 5", f"digits {kind}")
                )
            groups += tested
        bounds = ["Span", "JH", "SVC"] if kind == "SVM" else []
        criteria = ["OPT", "LOO", *bounds, *PREDICTORS]
        rows += summarise("Fig. 5", f"digits {kind}", groups, criteria)
        guesses += [mean_guess(parts) for parts in single.values()]
    show(rows, guesses)
    if not args.quick:
        store("multi_class", rows, guesses)


def mean_guess(parts: list[Guess]) -> Guess:
    """Average over splits."""
    means = {
        name: float(np.mean([getattr(part, name) for part in parts]))
        for name in ("accuracy", "majority", "rate_error", "seconds_share")
    }
    n = sum(part.n_samples for part in parts)
    first = parts[0]
    return Guess(first.figure, first.data, first.features, **means, n_samples=n)
