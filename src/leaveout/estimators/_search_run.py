# SPDX-License-Identifier: BSD-3-Clause
"""All cells of a search: in parallel, over a checkpoint, with what they warned of."""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning

import leaveout
from leaveout.estimators._check import check_groups
from leaveout.estimators._search_cell import (
    CellOutcome,
    CellRun,
    Failure,
    leave_cell_out,
    unpack_outcome,
)
from leaveout.exceptions import AntiLearningWarning
from leaveout.loo import LooResult
from leaveout.run import (
    Checkpoint,
    count_workers,
    fingerprint,
    interruption_told,
    map_parallel,
    runs_here,
    show_progress,
)
from leaveout.select import Cell


def run_cells(
    cells: Sequence[Cell],
    run: CellRun,
    labels: NDArray[Any],
    *,
    n_jobs: int | None,
    verbose: int,
    checkpoint: str | os.PathLike[str] | None,
    stacklevel: int,
) -> list[LooResult | Failure]:
    """Leave one out in every cell; return one result per candidate.

    Only one loop is parallel: the one over cells, or that over samples if there is a
    single cell. That does not depend on how many cells a checkpoint has already.
    """
    n_workers = count_workers(n_jobs)
    here = runs_here()
    if len(cells) == 1 and here:
        run, n_workers = replace(run, n_threads=n_workers), 1
    groups = None
    if run.groups is not None:
        groups = check_groups(run.groups, np.ones(len(labels)))
    found: dict[int, CellOutcome] = {}
    with _open(checkpoint, cells, run) as kept:
        for number in range(len(cells)):
            stored = None if kept is None else kept.get(number)
            if stored is not None:
                found[number] = unpack_outcome(number, stored, labels, groups)
        if verbose and found:
            sys.stderr.write(
                f"Resumed: {len(found)} of {len(cells)} cells are there.\n"
            )
        tasks = [(k, cell, run) for k, cell in enumerate(cells) if k not in found]
        if here:  # else a single cell belongs to the cluster, too
            n_workers = min(n_workers, max(1, len(tasks)))
        with (
            closing(
                map_parallel(leave_cell_out, tasks, n_jobs=n_workers, ordered=False)
            ) as outcomes,
            interruption_told(kept, len(cells)),
        ):
            for outcome in _tell(outcomes, len(tasks), cells, verbose):
                if kept is not None and not outcome.failed:
                    kept.put(outcome.number, *outcome.pack())
                found[outcome.number] = outcome
    _repeat_warnings(found.values(), stacklevel + 1)
    results: dict[int, LooResult | Failure] = {}
    for number, cell in enumerate(cells):
        results.update(zip(cell.positions, found[number].results, strict=True))
    return [results[position] for position in range(len(results))]


def report_failures(
    results: Sequence[LooResult | Failure], error_score: Any, *, stacklevel: int
) -> None:
    """Warn of candidates that failed; raise if all did."""
    failures = [result for result in results if isinstance(result, Failure)]
    if not failures:
        return
    reasons = Counter(f"{type(f.error).__name__}: {f.error}" for f in failures)
    if len(failures) == len(results):
        if len(reasons) == 1:
            raise failures[0].error
        raise ValueError(f"All {len(results)} candidates failed:{_listed(reasons)}")
    warnings.warn(
        f"{len(failures)} of {len(results)} candidates failed; their score is set to "
        f"{error_score}, error_score='raise' shows where they do:{_listed(reasons)}",
        FitFailedWarning,
        stacklevel=stacklevel,
    )


def report_anti_learning(best: LooResult | Failure, stacklevel: int = 4) -> None:
    """Warn if the chosen candidate follows the balance of the classes."""
    if isinstance(best, LooResult) and best.anti_learning:
        text = f"No candidate is better than the one taken. {best.anti_learning_note}"
        warnings.warn(text, AntiLearningWarning, stacklevel=stacklevel)


def _listed(reasons: Counter[str]) -> str:
    return "".join(f"\n  {count} with {reason}" for reason, count in reasons.items())


def _open(
    path: str | os.PathLike[str] | None, cells: Sequence[Cell], run: CellRun
) -> Any:
    """Open the checkpoint of these data, this estimator and this grid, if asked for.

    Scoring is no part of it: the cells keep predictions, and are scored at the end.
    """
    if path is None:
        return nullcontext()
    grid = [[cell.params, cell.Cs, cell.positions] for cell in cells]
    how = [run.estimator, run.method, run.preprocessing, run.balanced]
    meta = {
        "data": fingerprint([run.X, run.y, run.sample_weight, run.groups]),
        "estimator": fingerprint(how),
        "grid": fingerprint(grid),
        "version": leaveout.__version__,
    }
    return Checkpoint(path, meta)


def _tell(
    outcomes: Iterator[CellOutcome], total: int, cells: Sequence[Cell], verbose: int
) -> Iterator[CellOutcome]:
    """Pass the outcomes on, with one line of progress, or one line for each."""
    if verbose < 2:
        shown = verbose > 0 and total > 0
        yield from show_progress(outcomes, total, "Cells", verbose=shown)
        return
    for done, outcome in enumerate(outcomes, start=1):
        known = [r for r in outcome.results if isinstance(r, LooResult)]
        lowest = f"{min(r.error for r in known):.4f}" if known else "none, failed"
        seconds = sum(r.counts["seconds"] for r in known)
        sys.stderr.write(
            f"Cell {done} of {total}: {dict(cells[outcome.number].params)}, "
            f"{len(outcome.results)} C, lowest error {lowest}, {seconds:.2f} s\n"
        )
        sys.stderr.flush()
        yield outcome


def _repeat_warnings(outcomes: Any, stacklevel: int) -> None:
    """Give each warning of the cells once, here: other processes are not heard."""
    warned = dict.fromkeys(w for outcome in outcomes for w in outcome.warned)
    for category, text in warned:
        warnings.warn(text, category, stacklevel=stacklevel)
