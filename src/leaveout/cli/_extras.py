# SPDX-License-Identifier: BSD-3-Clause
"""The expensive extras of ``leaveout select``: each first says how long it takes."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from leaveout.cli._prepared import Prepared
from leaveout.cli._session import tell
from leaveout.data import Dataset
from leaveout.estimators import (
    SVC,
    LooSearchCV,
    honest_loo,
    leave_pair_out_auc,
    loo_bounds,
    loo_curve,
)
from leaveout.loo import LooBounds, LooCurve, PairAUC
from leaveout.report import format_seconds
from leaveout.run import count_threads
from leaveout.select import HonestLoo

# The curve of this many samples is traced to see how fast the machine is.
N_PROBE = 150
# Seconds grow with this power of the number of samples: 2.3 to 3.3 were measured.
CURVE_GROWTH = 2.8
# More pairs than these take longer than a grid; a page then has no ROC curve.
MAX_PAIRS = 200_000
# Beyond so many samples the certificates take longer than the walks.
MAX_BOUNDS = 2000


def check_curve(dataset: Dataset) -> None:
    """Refuse what ``loo_curve`` cannot do, before the search."""
    n_classes = len(np.unique(dataset.y))
    if n_classes != 2:
        raise ValueError(
            f"--curve is for two classes; '{dataset.target_name}' has {n_classes}. "
            "A finer grid does nearly the same: --grid C=0.01:1000:50."
        )
    if dataset.groups is not None:
        raise ValueError("--curve leaves out single samples; leave out --groups or it.")


def run_curve(prepared: Prepared, search: LooSearchCV, n_jobs: int) -> LooCurve:
    """Trace the error over the range of C of the grid, all else as chosen."""
    svc, y = clone(search.best_estimator_), prepared.dataset.y
    Cs = [cell["C"] for cell in search.cv_results_["params"]]
    low, high = (min(Cs), max(Cs)) if len(set(Cs)) > 1 else (1e-2, 1e3)
    rows = _probe_rows(y)
    started = perf_counter()
    X = prepared.numbers
    curve = loo_curve(svc, X[rows], y[rows], C_min=low, C_max=high, n_jobs=n_jobs)
    if len(rows) == len(y):
        return curve
    spent = (perf_counter() - started) * (len(y) / len(rows)) ** CURVE_GROWTH
    tell(f"Error for every C from {low:g} to {high:g}: about {format_seconds(spent)}")
    return loo_curve(svc, X, y, C_min=low, C_max=high, n_jobs=n_jobs)


def run_pairs(prepared: Prepared, search: LooSearchCV, n_jobs: int) -> PairAUC | None:
    """Leave out every pair of the chosen machine, if there are two classes, no groups.

    Returns None where the pairs do not apply, leave no sample or are too many.
    """
    y = prepared.dataset.y
    counts = np.unique(y, return_counts=True)[1]
    if counts.size != 2 or len(y) < 3 or prepared.dataset.groups is not None:
        return None
    if counts.prod() > MAX_PAIRS:
        return None
    return leave_pair_out_auc(
        clone(search.best_estimator_), prepared.numbers, y, n_jobs=n_jobs
    )


def run_bounds(
    prepared: Prepared, search: LooSearchCV, n_jobs: int
) -> LooBounds | None:
    """Compare bounds of the chosen machine's error; None where they do not apply."""
    y = prepared.dataset.y
    grouped = prepared.dataset.groups is not None
    if np.unique(y).size != 2 or grouped or len(y) > MAX_BOUNDS:
        return None
    svc = clone(search.best_estimator_)
    return loo_bounds(svc, prepared.numbers, y, n_jobs=n_jobs)


def _probe_rows(y: np.ndarray) -> np.ndarray:
    """Return some rows in which the classes have their shares."""
    order = np.argsort(y, kind="stable")
    return np.sort(order[:: max(1, len(y) // N_PROBE)])


def honest_file(checkpoint: Path) -> Path:
    """Return the file that keeps the folds, beside the one that keeps the cells."""
    return checkpoint.with_name(f"{checkpoint.stem}.honest{checkpoint.suffix}")


def run_honest(
    prepared: Prepared,
    search: LooSearchCV,
    n_jobs: int,
    watched: bool,
    checkpoint: Path | None,
) -> HonestLoo:
    """Leave every sample out of preparation, choice and fit."""
    dataset = prepared.dataset
    given = search.estimator
    inner = SVC(kernel=given.kernel, class_weight=given.class_weight)
    grid = {f"svc__{name}": values for name, values in search.param_grid.items()}
    whole = LooSearchCV(prepared.unfitted(inner), grid, error_score="raise")
    X = dataset.X
    if not dataset.text_features and not sparse.issparse(X):
        X = np.asarray(X)  # scikit-learn checks the columns of a frame one by one
    _tell_honest_time(whole, X, dataset, n_jobs)
    kept = None if checkpoint is None else honest_file(checkpoint)
    return honest_loo(
        whole,
        X,
        dataset.y,
        groups=dataset.groups,
        n_jobs=n_jobs,
        verbose=int(watched),
        checkpoint=kept,
    )


def _tell_honest_time(
    search: LooSearchCV, X: Any, dataset: Dataset, n_jobs: int
) -> None:
    """Search once, and say how long as many searches as there are folds will take."""
    n_folds = len(dataset.y if dataset.groups is None else np.unique(dataset.groups))
    started = perf_counter()
    clone(search).fit(X, dataset.y, groups=dataset.groups)
    seconds = (perf_counter() - started) * n_folds / min(count_threads(n_jobs), n_folds)
    tell(f"Honest error: {n_folds} searches, about {format_seconds(seconds)}")
