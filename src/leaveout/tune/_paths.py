# SPDX-License-Identifier: BSD-3-Clause
"""Candidates that share a Gram matrix: all C of one kernel.

Grid points that share one kernel make a cell; grid points are ranked, one is taken.

Along C nothing but the box changes, so all C of a cell are one path.

One cell of a search: all C of one kernel, with what went wrong on the way.

All cells of a search: in parallel, over a checkpoint, with what they warned of.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning

import leaveout
from leaveout import exceptions
from leaveout._typing import IntArray
from leaveout.adapt._checks import check_groups, check_penalties
from leaveout.adapt._prepare import prepare
from leaveout.adapt._unwrap import ALL_FAMILIES, unwrap
from leaveout.exceptions import AntiLearningWarning
from leaveout.loo._leave_out import leave_out, leave_out_path
from leaveout.loo._result import LooResult, pack_results, unpack_results
from leaveout.run._checkpoint import Checkpoint, fingerprint, report_interruption
from leaveout.run._parallel import (
    count_workers,
    limit_blas,
    map_parallel,
    runs_here,
    show_progress,
)


@dataclass(frozen=True)
class CandidatePath:
    """Candidates that differ in C alone.

    Parameters
    ----------
    params : mapping
        Their parameters but C.
    Cs : tuple
        C of each, as the user gave it.
    positions : tuple of int
        Where they stand in the list of candidates.
    """

    params: Mapping[str, Any]
    Cs: tuple[Any, ...]
    positions: tuple[int, ...]


def split_paths(
    candidates: Sequence[Mapping[str, Any]], C_names: Sequence[str], Cs: Sequence[Any]
) -> list[CandidatePath]:
    """Group candidates by everything except C, in the order of their first members.

    Parameters
    ----------
    candidates : sequence of mapping
        Parameters of each candidate.
    C_names : sequence of str
        What C is called in each: "C", "svc__C" …
    Cs : sequence
        C of each, be it the candidate's or the estimator's own.

    Examples
    --------
    >>> grid = [{"C": C, "gamma": gamma} for C in (1, 10) for gamma in (0.1, 0.2)]
    >>> cells = split_paths(grid, ["C"] * 4, [1, 1, 10, 10])
    >>> [(cell.params, cell.Cs, cell.positions) for cell in cells]
    [({'gamma': 0.1}, (1, 10), (0, 2)), ({'gamma': 0.2}, (1, 10), (1, 3))]
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, (candidate, C_name) in enumerate(
        zip(candidates, C_names, strict=True)
    ):
        others = _without(candidate, C_name)
        # Values may have no hash. Those of one list are the same objects throughout.
        key = (C_name, *((name, _identity(value)) for name, value in others.items()))
        groups.setdefault(key, []).append(position)
    return [
        CandidatePath(
            params=_without(candidates[positions[0]], C_names[positions[0]]),
            Cs=tuple(Cs[k] for k in positions),
            positions=tuple(positions),
        )
        for positions in groups.values()
    ]


def _without(candidate: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in candidate.items() if key != name}


def _identity(value: Any) -> Any:
    """Numbers and texts by value, all else by object."""
    return value if isinstance(value, Real | str | None) else id(value)


@dataclass(frozen=True)
class Failure:
    """Why a candidate has no result."""

    error: Exception
    report: str


@dataclass(frozen=True)
class PathJob:
    """What a cell needs beside its parameters.

    Parameters
    ----------
    estimator : object
        The user's, with none of the candidate's parameters.
    X, y : array-like
        The data.
    sample_weight : array-like or None
        Weights for the SVC.
    groups : array-like or None
        Samples that are left out together.
    method, preprocessing, balanced : str
        As in :func:`leave_one_out`.
    n_threads : int
        Threads inside the cell.
    catch : bool
        Whether an error is a Failure, or ends the search.
    """

    estimator: Any
    X: Any
    y: Any
    sample_weight: Any
    groups: Any
    method: str
    preprocessing: str
    balanced: str
    n_threads: int = 1
    catch: bool = True


@dataclass(frozen=True)
class PathOutcome:
    """Results of the candidates of a cell, in order.

    Parameters
    ----------
    number : int
        Which cell.
    results : tuple of LooResult or Failure
        One for each C.
    warned : tuple of (type, str)
        Warnings given on the way, each once.
    """

    number: int
    results: tuple[LooResult | Failure, ...]
    warned: tuple[tuple[type[Warning], str], ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a candidate has no result."""
        return any(isinstance(result, Failure) for result in self.results)

    def pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return arrays and facts for a file."""
        arrays, facts = pack_results(self.results)  # type: ignore[arg-type]
        warned = [(category.__name__, text) for category, text in self.warned]
        return arrays, {"results": facts, "warnings": warned}


def unpack_outcome(
    number: int,
    stored: tuple[dict[str, Any], dict[str, Any]],
    y: Any,
    groups: IntArray | None = None,
) -> PathOutcome:
    """Undo :meth:`PathOutcome.pack`."""
    arrays, facts = stored
    warned = tuple(
        (getattr(exceptions, name, UserWarning), text)
        for name, text in facts["warnings"]
    )
    results = unpack_results(arrays, facts["results"], y, groups)
    return PathOutcome(number, tuple(results), warned)


def leave_path_out(number: int, cell: CandidatePath, run: PathJob) -> PathOutcome:
    """Leave one out at every C of a cell."""
    estimator = set_candidate(run.estimator, cell.params)
    with warnings.catch_warnings(record=True) as caught, limit_blas(run.n_threads):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)  # not the user's code
        results = _leave_out(estimator, cell.Cs, run)
    warned = dict.fromkeys((w.category, str(w.message)) for w in caught)
    return PathOutcome(number, tuple(results), tuple(warned))


def set_candidate(estimator: Any, params: Any) -> Any:
    """Return a clone with parameters, of which estimators are cloned too."""
    cloned = {name: clone(value, safe=False) for name, value in params.items()}
    return clone(estimator).set_params(**cloned)


def _leave_out(
    estimator: Any, Cs: tuple[Any, ...], run: PathJob
) -> list[LooResult | Failure]:
    """Take all C at once; if that fails, each alone, so that only the bad ones fail."""
    started = perf_counter()
    try:
        results = _follow_path(estimator, Cs, run)
    except Exception as error:
        if not run.catch:
            raise
        if len(Cs) == 1:
            return [Failure(error, traceback.format_exc())]
        return [_leave_out(estimator, (C,), run)[0] for C in Cs]
    # Gram matrix and preprocessing are shared by all C.
    spent = [result.counts["seconds"] for result in results]
    shared = (perf_counter() - started - sum(spent)) / len(spent)
    return [
        replace(r, counts={**r.counts, "seconds": seconds + shared})
        for r, seconds in zip(results, spent, strict=True)
    ]


def _follow_path(
    estimator: Any, Cs: tuple[Any, ...], run: PathJob
) -> tuple[LooResult, ...]:
    """Leave one out at each C: one path, or one C after the other."""
    model = unwrap(estimator, ALL_FAMILIES)
    how: dict[str, Any] = {
        "sample_weight": run.sample_weight,
        "groups": run.groups,
        "method": run.method,
        "preprocessing": run.preprocessing,
        "balanced": run.balanced,
        "n_jobs": run.n_threads,
        "families": ALL_FAMILIES,
    }
    refit = model.in_pipeline and run.preprocessing == "refit"
    # A Gram matrix per fold, no C, or an infinite one: one C after the other.
    if refit or model.params.family in ("loom", "llw"):
        name = f"{model.prefix}C"
        results = []
        for C in Cs:
            own = clone(estimator).set_params(**({} if C is None else {name: C}))
            results.append(leave_out(*prepare(own, run.X, run.y, **how)).result)
        return tuple(results)
    penalties = check_penalties(Cs)
    task, plan = prepare(estimator, run.X, run.y, **how)
    return tuple(leave_out_path(task, plan, penalties))


def run_paths(
    cells: Sequence[CandidatePath],
    run: PathJob,
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
    found: dict[int, PathOutcome] = {}
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
                map_parallel(leave_path_out, tasks, n_jobs=n_workers, ordered=False)
            ) as outcomes,
            report_interruption(kept, len(cells)),
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
    path: str | os.PathLike[str] | None, cells: Sequence[CandidatePath], run: PathJob
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
    outcomes: Iterator[PathOutcome],
    total: int,
    cells: Sequence[CandidatePath],
    verbose: int,
) -> Iterator[PathOutcome]:
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
