# SPDX-License-Identifier: BSD-3-Clause
"""SelectReport and its JSON.

Results as plain dictionaries, for JSON.

All that a report on a choice of parameters can show, in one object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.assess._bounds import LooBounds
from leaveout.assess._loo_curve import LooCurve
from leaveout.assess._pair_auc import PairAUC
from leaveout.loo._result import LooResult
from leaveout.tables._dataset import Dataset
from leaveout.tune._honest import HonestLoo


def describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """Return what the data are.

    Examples
    --------
    >>> from leaveout.tables._dataset import load_example
    >>> describe_dataset(load_example())["class_counts"]
    {'benign': 357, 'malignant': 212}
    """
    labels, counts = np.unique(dataset.y, return_counts=True)
    groups = dataset.groups
    return {
        "data": dataset.name,
        "target": dataset.target_name,
        "n_samples": dataset.X.shape[0],
        "n_features": dataset.X.shape[1],
        "n_groups": None if groups is None else len(np.unique(groups)),
        "class_counts": dict(
            zip(map(str, labels.tolist()), counts.tolist(), strict=True)
        ),
        "notes": list(dataset.notes),
    }


def describe_result(result: LooResult) -> dict[str, Any]:
    """Return the error of a machine and how far to trust it.

    Examples
    --------
    >>> import leaveout as lo
    >>> X, y = [[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1]
    >>> describe_result(lo.leave_one_out(lo.SVC(C=1, gamma=1), X, y))["n_wrong"]
    0
    """
    return {
        "error": result.error,
        "standard_error": result.standard_error,
        "n_wrong": int(result.wrong.sum()),
        "n_ambiguous": result.n_ambiguous,
        "n_not_certified": int((~result.certified).sum()),
    }


def describe_bounds(bounds: LooBounds) -> dict[str, Any]:
    """Return bounds and estimates with what each is worth.

    Examples
    --------
    >>> import leaveout as lo
    >>> X, y = [[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1]
    >>> found = describe_bounds(lo.loo_bounds(lo.SVC(C=10, gamma=1), X, y))
    >>> found["bounds"]["exact"]["value"], found["bounds"]["span"]["kind"]
    (0.0, 'estimate')
    """
    rows = {
        row.name: {
            "kind": row.kind,
            "lower": row.lower,
            "value": row.value,
            "note": row.note,
        }
        for row in bounds.rows
    }
    return {"fit_intercept": bounds.fit_intercept, "bounds": rows}


def describe_select(report: SelectReport) -> dict[str, Any]:
    """Return the report on a choice of parameters."""
    errors = report.errors.tolist()
    cells = [
        {
            **params,
            "error": error,
            "standard_error": float(spread),
            "n_ambiguous": int(n_ambiguous),
            "anti_learning": bool(anti),
        }
        for params, error, spread, n_ambiguous, anti in zip(
            report.cells["params"],
            errors,
            report.cells["std_test_score"],
            report.cells["n_ambiguous"],
            report.anti_learning,
            strict=True,
        )
    ]
    found: dict[str, Any] = {
        **describe_dataset(report.dataset),
        "preparation": report.preparation,
        "kernel": report.kernel,
        "class_weight": report.class_weight,
        "grid": {name: list(values) for name, values in report.grid.items()},
        "cells": cells,
        "best": {**report.best_params, **describe_result(report.result)},
        "wrong_by_class": {str(k): n for k, n in report.wrong_by_class.items()},
        "majority_error": report.majority_error,
        "at_end_of_grid": {name: end for name, end, _ in report.edges},
    }
    if report.honest is not None:
        found["honest"] = {
            "error": report.honest.error,
            "standard_error": report.honest.standard_error,
        }
    if report.curve is not None:
        found["curve"] = {
            "C": report.curve.breakpoints.tolist(),
            "errors": report.curve.errors.tolist(),
            "best_interval": list(report.curve.best_interval),
        }
    if report.bounds is not None:
        found |= describe_bounds(report.bounds)
    found["warnings"] = list(report.warnings)
    found["seconds"] = {name: round(s, 4) for name, s in report.seconds.items()}
    found["command"] = report.command
    found["versions"] = dict(report.versions)
    return found


@dataclass(frozen=True)
class SelectReport:
    """A grid of parameters, the leave-one-out error of each cell, and the choice.

    Plain results only: every face of it (text, JSON, a page) is made from this.

    Parameters
    ----------
    dataset : Dataset
        The samples, with names and notes.
    preparation : str
        Sentence on what was done to the features.
    kernel : str
        Kernel of the machine.
    class_weight : str or None
        As given to the SVC.
    grid : mapping of str to list of float
        Values tried, by name of the parameter; "C" first.
    cells : mapping of str to array-like
        One entry per cell, under the names of ``LooSearchCV.cv_results_``.
    best_index : int
        The chosen cell.
    result : LooResult
        Leave-one-out of the chosen cell, one entry per sample.
    honest : HonestLoo, optional
        Nested leave-one-out.
    curve : LooCurve, optional
        The error for every C, at the other parameters of the chosen cell.
    pairs : PairAUC, optional
        Leave-pair-out, for two classes.
    bounds : LooBounds, optional
        Bounds and estimates of the chosen machine's error, for two classes.
    warnings : tuple of str
        What the run warned of.
    seconds : mapping of str to float
        How long each part took.
    command : str
        What to type to repeat it.
    versions : mapping of str to str
        Of Python and the packages.
    """

    dataset: Dataset
    preparation: str
    kernel: str
    class_weight: str | None
    grid: Mapping[str, list[float]]
    cells: Mapping[str, Any]
    best_index: int
    result: LooResult
    honest: HonestLoo | None = None
    curve: LooCurve | None = None
    pairs: PairAUC | None = None
    bounds: LooBounds | None = None
    warnings: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def errors(self) -> FloatArray:
        """Leave-one-out error of each cell."""
        n = len(self.dataset.y)
        # Scores are shares of n samples: whole numbers again, not 1 - 0.9166… .
        return np.rint(n * (1.0 - np.asarray(self.cells["mean_test_score"]))) / n

    @property
    def anti_learning(self) -> BoolArray:
        """Cells where the balance of the classes decides, not the features."""
        return np.asarray(self.cells["anti_learning"], dtype=bool)

    @property
    def best_params(self) -> dict[str, float]:
        """Parameters of the chosen cell."""
        return dict(self.cells["params"][self.best_index])

    @property
    def edges(self) -> list[tuple[str, str, tuple[float, float, int]]]:
        """Widths and penalties chosen at an end of their values, and a grid beyond it.

        One entry for each: name, "smallest" or "largest", and low, high and number of a
        grid that reaches two decades further.
        """
        found = []
        for name in ("C", "gamma"):
            values, chosen = sorted(self.grid.get(name, [])), self.best_params.get(name)
            if len(values) < 2 or chosen not in (values[0], values[-1]):
                continue
            low, high = values[0], values[-1]
            if chosen == low:
                found.append((name, "smallest", (low / 100, high, len(values) + 2)))
            else:
                found.append((name, "largest", (low, high * 100, len(values) + 2)))
        return found

    @property
    def class_counts(self) -> dict[Any, int]:
        """Number of samples of each class, the largest first."""
        return dict(Counter(self.dataset.y.tolist()).most_common())

    @property
    def wrong_by_class(self) -> dict[Any, int]:
        """Number of samples of each class that are wrong when left out."""
        wrong = Counter(self.dataset.y[self.result.wrong].tolist())
        return {label: wrong[label] for label in self.class_counts}

    @property
    def majority_error(self) -> float:
        """Error of always saying the largest class."""
        return 1.0 - max(self.class_counts.values()) / len(self.dataset.y)
