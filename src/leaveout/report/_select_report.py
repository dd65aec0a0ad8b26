# SPDX-License-Identifier: BSD-3-Clause
"""SelectReport, all that a report on a choice of parameters shows; results for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.loo._result import LooResult, wilson_interval
from leaveout.tables._dataset import Dataset

if TYPE_CHECKING:
    from leaveout.assess._bounds import LooBounds
    from leaveout.assess._loo_curve import LooCurve
    from leaveout.assess._pair_auc import PairAUC
    from leaveout.tune._honest import HonestLoo


@dataclass(frozen=True)
class SelectReport:
    """A grid of parameters, the leave-one-out error of each cell, and the choice.

    Text, JSON and the page are made from this. ``grid`` has the values tried by name,
    C first; ``cells`` one entry per cell, under the names of ``cv_results_``, and
    ``errors`` its leave-one-out error; ``preparation`` is a sentence on what was done
    to the features.
    """

    dataset: Dataset
    preparation: str
    kernel: str
    class_weight: str | None
    grid: Mapping[str, list[float]]
    cells: Mapping[str, Any]
    errors: FloatArray
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
    def anti_learning(self) -> BoolArray:
        """Cells with C so small that class proportions alone decide."""
        return np.asarray(self.cells["anti_learning"], dtype=bool)

    @property
    def best_params(self) -> dict[str, float]:
        """Parameters of the chosen cell."""
        return dict(self.cells["params"][self.best_index])

    @property
    def edges(self) -> list[tuple[str, str, str]]:
        """C and gamma at an end of their values, and a grid two decades longer.

        One entry for each: name, "smallest" or "largest", and the option.
        """
        found = []
        for name in ("C", "gamma"):
            values, chosen = sorted(self.grid.get(name, [])), self.best_params.get(name)
            if len(values) < 2 or chosen not in (values[0], values[-1]):
                continue
            low, high, end = values[0], values[-1], "largest"
            if chosen == low:
                low, end = low / 100, "smallest"
            else:
                high *= 100
            longer = f"--grid {name}={low:.4g}:{high:.4g}:{len(values) + 2}"
            found.append((name, end, longer))
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
        """Error of always predicting the largest class."""
        n = len(self.dataset.y)
        return (n - max(self.class_counts.values())) / n


def describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """Return names, sizes, class counts and notes."""
    labels, counts = np.unique(dataset.y, return_counts=True)
    groups = dataset.groups
    names = [str(label) for label in labels.tolist()]
    return {
        "data": dataset.name,
        "target": dataset.target_name,
        "n_samples": dataset.X.shape[0],
        "n_features": dataset.X.shape[1],
        "n_groups": None if groups is None else len(np.unique(groups)),
        "class_counts": dict(zip(names, counts.tolist(), strict=True)),
        "notes": list(dataset.notes),
    }


def describe_result(result: LooResult) -> dict[str, Any]:
    """Return the error of a classifier and how far it is certain."""
    return {
        "error": result.error,
        "standard_error": result.standard_error,
        "interval": list(result.interval),
        "n_wrong": int(result.wrong.sum()),
        "n_ambiguous": result.n_ambiguous,
        "n_not_certified": int((~result.certified).sum()),
    }


def describe_bounds(bounds: LooBounds) -> dict[str, Any]:
    """Return bounds and estimates by their names."""
    fields = ("kind", "lower", "value", "note")
    rows = {row.name: {f: getattr(row, f) for f in fields} for row in bounds.rows}
    return {"fit_intercept": bounds.fit_intercept, "bounds": rows}


def describe_cells(report: SelectReport) -> list[dict[str, Any]]:
    """Return one entry per cell of the grid, in the order of the search."""
    intervals = wilson_interval(report.errors, report.result.n_effective)
    return [
        {
            "params": dict(params),
            "error": float(report.errors[k]),
            "standard_error": float(report.cells["std_test_score"][k]),
            "interval": [float(end[k]) for end in intervals],
            "n_ambiguous": int(report.cells["n_ambiguous"][k]),
            "anti_learning": bool(report.anti_learning[k]),
        }
        for k, params in enumerate(report.cells["params"])
    ]


def describe_select(report: SelectReport) -> dict[str, Any]:
    """Return the report on a choice of parameters."""
    found: dict[str, Any] = {
        **describe_dataset(report.dataset),
        "preparation": report.preparation,
        "kernel": report.kernel,
        "class_weight": report.class_weight,
        "grid": {name: list(values) for name, values in report.grid.items()},
        "cells": [cell.pop("params") | cell for cell in describe_cells(report)],
        "best": {**report.best_params, **describe_result(report.result)},
        "wrong_by_class": {str(k): n for k, n in report.wrong_by_class.items()},
        "majority_error": report.majority_error,
        "at_end_of_grid": {name: end for name, end, _ in report.edges},
    }
    if report.honest is not None:
        found["honest"] = {
            "error": report.honest.error,
            "standard_error": report.honest.standard_error,
            "interval": list(report.honest.interval),
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
