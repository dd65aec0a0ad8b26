# SPDX-License-Identifier: BSD-3-Clause
"""The paths of a search: candidates that differ in C alone share a Gram matrix.

Paths run one after the other or in parallel. Finished ones go to the checkpoint, and
the warnings of workers are repeated in the main process.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from leaveout.adapt._checks import check_groups
from leaveout.adapt._unwrap import MACHINES, SVMS, Model, unwrap
from leaveout.assess._leave_one_out import leave_one_out, loo_path
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

    ``params`` are their other parameters, ``Cs`` the C of each as the user gave it
    (None if the classifier has none), ``positions`` their places in the grid.
    """

    number: int
    params: Mapping[str, Any]
    Cs: tuple[Any, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class PathJob:
    """What all paths share; the options are those of :func:`leave_one_out`.

    With ``catch`` an error of a candidate becomes a Failure; else it ends the search.
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
class Failure:
    """Why a candidate has no result."""

    error: Exception


@dataclass(frozen=True)
class PathOutcome:
    """One result per C of a path, and each warning that was given, once."""

    number: int
    results: tuple[LooResult | Failure, ...]
    warned: tuple[tuple[type[Warning], str], ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a candidate has no result."""
        return any(isinstance(result, Failure) for result in self.results)

    def pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return arrays and facts for the checkpoint."""
        arrays, facts = pack_results(self.results)  # type: ignore[arg-type]
        warned = [(category.__name__, text) for category, text in self.warned]
        return arrays, {"results": facts, "warnings": warned}

    @classmethod
    def unpack(
        cls, number: int, stored: tuple[Any, Any], y: Any, groups: IntArray | None
    ) -> PathOutcome:
        """Undo :meth:`pack`."""
        arrays, facts = stored
        warned = tuple(
            (getattr(exceptions, name, UserWarning), text)
            for name, text in facts["warnings"]
        )
        results = unpack_results(arrays, facts["results"], y, groups)
        return cls(number, tuple(results), warned)


def set_candidate(estimator: Any, params: Mapping[str, Any]) -> Any:
    """Return a clone with these parameters; estimators among them are cloned, too."""
    cloned = {name: clone(value, safe=False) for name, value in params.items()}
    return clone(estimator).set_params(**cloned)


def split_paths(
    candidates: Sequence[Mapping[str, Any]], models: Sequence[Model]
) -> list[CandidatePath]:
    """Group candidates by everything except C, in the order of their first members."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    others: list[dict[str, Any]] = []
    for position, (candidate, model) in enumerate(zip(candidates, models, strict=True)):
        C_name = f"{model.prefix}C"
        others.append({key: v for key, v in candidate.items() if key != C_name})
        key = (C_name, *((name, _identity(v)) for name, v in others[-1].items()))
        groups.setdefault(key, []).append(position)
    return [
        CandidatePath(
            number=number,
            params=others[positions[0]],
            Cs=tuple(getattr(models[k].svc, "C", None) for k in positions),
            positions=tuple(positions),
        )
        for number, positions in enumerate(groups.values())
    ]


def _identity(value: Any) -> Any:
    """Compare numbers and texts by value, all else, which may not hash, by object."""
    return value if isinstance(value, Real | str | None) else id(value)


def leave_path_out(path: CandidatePath, job: PathJob) -> PathOutcome:
    """Leave one out at every C of a path, in the main process or in a worker."""
    estimator = set_candidate(job.estimator, path.params)
    with warnings.catch_warnings(record=True) as caught, limit_blas(job.n_threads):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)  # not the user's code
        results = _try_path(estimator, path.Cs, job)
    warned = dict.fromkeys((w.category, str(w.message)) for w in caught)
    return PathOutcome(path.number, tuple(results), tuple(warned))


def _try_path(
    estimator: Any, Cs: tuple[Any, ...], job: PathJob
) -> list[LooResult | Failure]:
    """Take all C at once; if that fails, each alone, so that only the bad ones fail."""
    started = perf_counter()
    try:
        results = _leave_out_path(estimator, Cs, job)
    except Exception as error:
        if not job.catch:
            raise
        if len(Cs) == 1:
            return [Failure(error)]
        return [_try_path(estimator, (C,), job)[0] for C in Cs]
    # Gram matrix and preprocessing are shared by all C.
    spent = [result.counts["seconds"] for result in results]
    shared = (perf_counter() - started - sum(spent)) / len(spent)
    return [
        replace(r, counts={**r.counts, "seconds": seconds + shared})
        for r, seconds in zip(results, spent, strict=True)
    ]


def _leave_out_path(
    estimator: Any, Cs: tuple[Any, ...], job: PathJob
) -> tuple[LooResult, ...]:
    """Leave one out at each C: as one path if possible, else one C at a time."""
    model = unwrap(estimator, MACHINES)
    how: dict[str, Any] = {
        "sample_weight": job.sample_weight,
        "method": job.method,
        "groups": job.groups,
        "balanced": job.balanced,
        "n_jobs": job.n_threads,
    }
    refit = model.in_pipeline and job.preprocessing == "refit"
    if isinstance(model.svc, SVMS) and not refit:
        return loo_path(estimator, job.X, job.y, Cs=Cs, **how).results
    how["preprocessing"] = job.preprocessing
    changes = [{} if C is None else {f"{model.prefix}C": C} for C in Cs]
    candidates = [clone(estimator).set_params(**change) for change in changes]
    return tuple(leave_one_out(own, job.X, job.y, **how) for own in candidates)


def run_paths(
    paths: Sequence[CandidatePath],
    job: PathJob,
    labels: NDArray[Any],
    *,
    n_jobs: int | None,
    verbose: int,
    checkpoint: str | os.PathLike[str] | None,
    stacklevel: int,
) -> list[LooResult | Failure]:
    """Leave one out on every path; return one result per candidate.

    Only one loop is parallel: the one over paths, or that over samples if there is a
    single path. This does not depend on how many paths a checkpoint already has.
    """
    n_workers = count_workers(n_jobs)
    here = runs_here()
    if len(paths) == 1 and here:
        job, n_workers = replace(job, n_threads=n_workers), 1
    groups = None
    if job.groups is not None:
        groups = check_groups(job.groups, np.ones(len(labels)))
    done: dict[int, PathOutcome] = {}
    with _open_checkpoint(checkpoint, paths, job) as kept:
        for number in range(len(paths)):
            stored = None if kept is None else kept.get(number)
            if stored is not None:
                done[number] = PathOutcome.unpack(number, stored, labels, groups)
        if verbose and done:
            sys.stderr.write(f"Resumed: {len(done)} of {len(paths)} paths are done.\n")
        tasks = [(path, job) for path in paths if path.number not in done]
        if here:  # on a cluster even a single path goes to a worker
            n_workers = min(n_workers, max(1, len(tasks)))
        with (
            closing(
                map_parallel(leave_path_out, tasks, n_jobs=n_workers, ordered=False)
            ) as outcomes,
            report_interruption(kept, len(paths), "paths"),
        ):
            for outcome in _show(outcomes, len(tasks), paths, verbose):
                if kept is not None and not outcome.failed:
                    kept.put(outcome.number, *outcome.pack())
                done[outcome.number] = outcome
    repeat_warnings(done.values(), stacklevel + 1)
    results: dict[int, LooResult | Failure] = {}
    for path in paths:
        results.update(zip(path.positions, done[path.number].results, strict=True))
    return [results[position] for position in range(len(results))]


def _open_checkpoint(
    path: str | os.PathLike[str] | None, paths: Sequence[CandidatePath], job: PathJob
) -> Any:
    """Open the checkpoint of these data, this estimator and this grid, if asked for.

    Scoring is not part of it: results hold predictions, which are scored at the end.
    """
    if path is None:
        return nullcontext()
    options = [job.estimator, job.method, job.preprocessing, job.balanced]
    meta = {
        "data": fingerprint([job.X, job.y, job.sample_weight, job.groups]),
        "estimator": fingerprint(options),
        "grid": fingerprint([[own.params, own.Cs, own.positions] for own in paths]),
        "version": leaveout.__version__,
    }
    return Checkpoint(path, meta)


def _show(
    outcomes: Iterator[PathOutcome],
    total: int,
    paths: Sequence[CandidatePath],
    verbose: int,
) -> Iterator[PathOutcome]:
    """Pass the outcomes on, with one line of progress, or one line for each."""
    if verbose < 2:
        shown = verbose > 0 and total > 0
        yield from show_progress(outcomes, total, "Paths", verbose=shown)
        return
    for count, outcome in enumerate(outcomes, start=1):
        known = [r for r in outcome.results if isinstance(r, LooResult)]
        lowest = f"{min(r.error for r in known):.4f}" if known else "none, failed"
        seconds = sum(r.counts["seconds"] for r in known)
        sys.stderr.write(
            f"Path {count} of {total}: {dict(paths[outcome.number].params)}, "
            f"{len(outcome.results)} C, lowest error {lowest}, {seconds:.2f} s\n"
        )
        sys.stderr.flush()
        yield outcome


def repeat_warnings(outcomes: Iterable[Any], stacklevel: int) -> None:
    """Give each warning of the workers once, in the main process."""
    warned = dict.fromkeys(w for outcome in outcomes for w in outcome.warned)
    for category, text in warned:
        warnings.warn(text, category, stacklevel=stacklevel)


def report_failures(
    results: Sequence[LooResult | Failure], error_score: Any, *, stacklevel: int
) -> None:
    """Warn of candidates that failed; raise if all did."""
    failures = [result for result in results if isinstance(result, Failure)]
    if not failures:
        return
    reasons = Counter(f"{type(f.error).__name__}: {f.error}" for f in failures)
    listed = "".join(f"\n  {count} with {reason}" for reason, count in reasons.items())
    if len(failures) == len(results):
        if len(reasons) == 1:
            raise failures[0].error
        raise ValueError(f"All {len(results)} candidates failed:{listed}")
    warnings.warn(
        f"{len(failures)} of {len(results)} candidates failed and get the score "
        f"{error_score}; error_score='raise' shows where:{listed}",
        FitFailedWarning,
        stacklevel=stacklevel,
    )
