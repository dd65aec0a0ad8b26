# SPDX-License-Identifier: BSD-3-Clause
"""Results as plain dictionaries, for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from leaveout.data import Dataset
from leaveout.loo import LooBounds, LooResult
from leaveout.report._select_report import SelectReport


def describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """Return what the data are.

    Examples
    --------
    >>> from leaveout.data import load_example
    >>> from leaveout.report import describe_dataset
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
    >>> from leaveout.report import describe_result
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
    >>> from leaveout.report import describe_bounds
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
