# SPDX-License-Identifier: BSD-3-Clause
"""``cv_results_``: one entry per candidate, under GridSearchCV's names."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout._typing import BoolArray, FloatArray
from leaveout.estimators._scoring import Scoring
from leaveout.estimators._search_cell import Failure
from leaveout.loo import LooResult
from leaveout.select import rank_candidates, tabulate_params


def tabulate(
    candidates: Sequence[dict[str, Any]],
    results: Sequence[LooResult | Failure],
    scoring: Scoring,
    X: Any,
    y: NDArray[Any],
    n_splits: int,
) -> tuple[dict[str, Any], list[str]]:
    """Score every candidate; return ``cv_results_`` and the names of the scores."""
    scores: list[dict[str, float]] = []
    errors: list[dict[str, float]] = []
    seconds = []
    for result in results:
        started = perf_counter()
        own: dict[str, float] = {}
        spread: dict[str, float] = {}
        if isinstance(result, LooResult):
            own, spread = scoring.score(result, X, y)
        scores.append(own)
        errors.append(spread)
        seconds.append(perf_counter() - started if own else np.nan)
    fullest: dict[str, float] = max(scores, key=len)  # a failed function names one
    names = list(fullest)
    known = [result for result in results if isinstance(result, LooResult)]
    failed = np.array([isinstance(result, Failure) for result in results])
    unknown = np.full(len(results), np.nan)
    table: dict[str, Any] = {
        "mean_fit_time": _fit_seconds(results) / n_splits,
        "std_fit_time": unknown.copy(),
        "mean_score_time": np.array(seconds) / n_splits,
        "std_score_time": unknown.copy(),
        **tabulate_params(candidates),
        "params": list(candidates),
    }
    for name in names:
        default = np.nan if scoring.error_score == "raise" else scoring.error_score
        means = np.array([own.get(name, default) for own in scores], dtype=np.float64)
        table[f"mean_test_{name}"] = means
        table[f"std_test_{name}"] = np.array([own.get(name, np.nan) for own in errors])
        table[f"rank_test_{name}"] = rank_candidates(means, avoid=failed)
    table["n_ambiguous"] = _masked([r.n_ambiguous for r in known], failed, np.intp)
    table["anti_learning"] = _masked([r.anti_learning for r in known], failed, np.bool_)
    return table, names


def _fit_seconds(results: Sequence[LooResult | Failure]) -> FloatArray:
    return np.array(
        [
            result.counts["seconds"] if isinstance(result, LooResult) else np.nan
            for result in results
        ]
    )


def _masked(values: Sequence[Any], failed: BoolArray, dtype: Any) -> Any:
    """Return one entry per candidate, masked where it failed."""
    column = np.ma.MaskedArray(np.zeros(failed.size, dtype), mask=failed)
    column[~failed] = values
    return column
