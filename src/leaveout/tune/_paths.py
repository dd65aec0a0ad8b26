# SPDX-License-Identifier: BSD-3-Clause
"""The paths of a search: candidates that share a Gram matrix, or steps, in every fold.

Candidates that differ only in C share one Gram matrix. If steps of a Pipeline are
fitted in each fold, all C and all kernels share these steps.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning

import leaveout
from leaveout import exceptions
from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_groups, check_penalties, middle_penalty
from leaveout.adapt._prepare import has_fold_kernels, prepare
from leaveout.adapt._unwrap import ALL_FAMILIES, Model, unwrap
from leaveout.loo._family import FAMILIES
from leaveout.loo._leave_out import LooRun, leave_out, leave_out_grid
from leaveout.loo._packing import pack_results, unpack_results
from leaveout.loo._regression import LooRegressionResult
from leaveout.loo._result import ExactResult, LooResult
from leaveout.loo._summary import as_percent
from leaveout.run._checkpoint import Checkpoint, fingerprint, report_interruption
from leaveout.run._parallel import (
    count_workers,
    limit_blas,
    map_parallel,
    map_worthwhile,
    runs_here,
    show_progress,
)

# What may differ between the kernels of a path.
KERNEL_PARAMS = ("kernel", "gamma", "degree", "coef0")
# With more samples a path takes seconds: workers are started at once.
N_SAMPLES_SMALL = 1000


@dataclass(frozen=True)
class CandidatePath:
    """Candidates that differ only in C, or in the kernel and C."""

    number: int
    params: tuple[Mapping[str, Any], ...]  # all but C, of each kernel
    Cs: tuple[Any, ...]  # as passed by the user; None if the classifier has no C
    positions: tuple[int, ...]  # in the grid: all C of the first kernel, then the next


@dataclass(frozen=True)
class PathJob:
    """Data and options shared by all paths, as in :func:`leave_one_out`."""

    estimator: Any
    X: Any
    y: Any
    sample_weight: Any
    groups: Any
    method: str
    method_params: Mapping[str, Any] | None
    preprocessing: str
    catch: bool  # store a candidate's error as its outcome instead of raising it
    n_threads: int = 1


# Result of a candidate, or its error.
Outcome: TypeAlias = LooResult | LooRegressionResult | Exception


@dataclass(frozen=True)
class PathOutcome:
    """Result and ``LooRun.betas`` per C of a path, and the distinct warnings."""

    number: int
    results: tuple[Outcome, ...]
    betas: tuple[FloatArray | None, ...]
    warned: tuple[tuple[type[Warning], str], ...] = ()

    def pack(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return arrays and facts for the checkpoint; None if a candidate failed."""
        known = [result for result in self.results if isinstance(result, ExactResult)]
        if len(known) < len(self.results):
            return None
        arrays, facts = pack_results(known)
        kept = [betas for betas in self.betas if betas is not None]
        if kept:
            arrays["betas"] = np.stack(kept)
        warned = [(category.__name__, text) for category, text in self.warned]
        return arrays, {"results": facts, "warnings": warned}

    @classmethod
    def unpack(
        cls, number: int, arrays: Any, facts: Any, *, y: Any, groups: IntArray | None
    ) -> PathOutcome:
        """Undo :meth:`pack`."""
        warned = tuple(
            (getattr(exceptions, name, UserWarning), text)
            for name, text in facts["warnings"]
        )
        results = unpack_results(arrays, facts["results"], y, groups)
        betas = arrays.get("betas", [None] * len(results))
        return cls(number, tuple(results), tuple(betas), warned)


def make_candidates(
    estimator: Any, candidates: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """Return a clone per candidate, with its parameters.

    Where only parameters of the estimator itself differ, it is cloned once: reading its
    signature again and again takes longer than small searches.
    """
    template = clone(estimator)
    own = template.get_params(deep=False)
    simple = not any(hasattr(value, "get_params") for value in own.values())
    found = []
    for params in candidates:
        if simple and own.keys() >= params.keys():
            found.append(copy(template))
            for name, value in params.items():
                setattr(found[-1], name, clone(value, safe=False))
        else:
            found.append(set_candidate(estimator, params))
    return found


def set_candidate(estimator: Any, params: Mapping[str, Any]) -> Any:
    """Return a clone with these parameters, which are cloned, too."""
    cloned = {name: clone(value, safe=False) for name, value in params.items()}
    return clone(estimator).set_params(**cloned)


def own_C(model: Model) -> Any:  # noqa: N802
    """Return the C of a candidate, None if its classifier has none."""
    return getattr(model.estimator, "C", None)


def split_paths(
    candidates: Sequence[Mapping[str, Any]],
    models: Sequence[Model],
    kernels_at_once: int = 1,
) -> list[CandidatePath]:
    """Group candidates into paths, in the order of their first members.

    Of a Pipeline, up to ``kernels_at_once`` kernels with equal lists of C form a path.
    """
    kernels: dict[Any, list[int]] = {}
    for position, (candidate, model) in enumerate(zip(candidates, models, strict=True)):
        kernels.setdefault(_key(candidate, model, ("C",)), []).append(position)
    groups: dict[Any, list[list[int]]] = {}
    for positions in kernels.values():
        model = models[positions[0]]
        key: Any = positions[0]
        if kernels_at_once > 1 and model.steps and has_fold_kernels(model.params):
            Cs = tuple(own_C(models[k]) for k in positions)
            key = Cs, _key(candidates[positions[0]], model, ("C", *KERNEL_PARAMS))
        groups.setdefault(key, []).append(positions)
    parts = [
        group[start : start + kernels_at_once]
        for group in groups.values()
        for start in range(0, len(group), kernels_at_once)
    ]
    return [
        CandidatePath(
            number=number,
            params=tuple(
                _without(candidates[own[0]], models[own[0]], ("C",)) for own in part
            ),
            Cs=tuple(own_C(models[k]) for k in part[0]),
            positions=tuple(k for own in part for k in own),
        )
        for number, part in enumerate(parts)
    ]


def _key(candidate: Mapping[str, Any], model: Model, names: tuple[str, ...]) -> Any:
    """Return a key of a candidate that ignores some of the classifier's parameters."""
    others = _without(candidate, model, names)
    return (model.prefix, *((name, _identity(v)) for name, v in others.items()))


def _without(
    candidate: Mapping[str, Any], model: Model, names: tuple[str, ...]
) -> dict[str, Any]:
    """Return the parameters of a candidate except some of the classifier's."""
    left_out = {model.prefix + name for name in names}
    return {key: value for key, value in candidate.items() if key not in left_out}


def _identity(value: Any) -> Any:
    """Compare numbers and strings by value, everything else by identity."""
    return value if isinstance(value, Real | str | None) else id(value)


def leave_path_out(path: CandidatePath, job: PathJob) -> PathOutcome:
    """Compute leave-one-out for every candidate, in this process or in a worker."""
    with warnings.catch_warnings(record=True) as caught, limit_blas(job.n_threads):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)  # not the user's code
        results, betas = zip(*_try_path(path.params, path.Cs, job), strict=True)
    warned = dict.fromkeys((w.category, str(w.message)) for w in caught)
    return PathOutcome(path.number, results, betas, tuple(warned))


def _try_path(
    params: tuple[Mapping[str, Any], ...], Cs: tuple[Any, ...], job: PathJob
) -> list[tuple[Outcome, FloatArray | None]]:
    """Run all at once; if that fails, each alone, so that only bad ones fail."""
    started = perf_counter()
    try:
        estimators = [set_candidate(job.estimator, own) for own in params]
        fitted = _leave_path_out(estimators, Cs, job)
    except Exception as error:
        if not job.catch:
            raise
        if len(params) > 1:
            parts = [_try_path((own,), Cs, job) for own in params]
        elif len(Cs) > 1:
            parts = [_try_path(params, (C,), job) for C in Cs]
        else:
            return [(error, None)]
        return [outcome for part in parts for outcome in part]
    # Gram matrix and preprocessing are shared by all.
    spent = sum(run.result.counts["seconds"] for run in fitted)
    shared = (perf_counter() - started - spent) / len(fitted)
    found: list[tuple[Outcome, FloatArray | None]] = []
    for run in fitted:
        seconds = run.result.counts["seconds"] + shared
        counts = {**run.result.counts, "seconds": seconds}
        found.append((replace(run.result, counts=counts), run.betas))
    return found


def _leave_path_out(
    estimators: Sequence[Any], Cs: tuple[Any, ...], job: PathJob
) -> list[LooRun]:
    """Compute leave-one-out for each kernel at each C, together where possible."""
    model = unwrap(estimators[0], ALL_FAMILIES)
    how: dict[str, Any] = {
        "sample_weight": job.sample_weight,
        "groups": job.groups,
        "method": job.method,
        "method_params": job.method_params,
        "preprocessing": job.preprocessing,
        "n_jobs": job.n_threads,
        "families": ALL_FAMILIES,
    }
    if not FAMILIES[model.params.family].bounds_alpha:
        found = []
        for C in Cs:
            change = {} if C is None else {f"{model.prefix}C": C}
            own = clone(estimators[0]).set_params(**change)
            found.append(leave_out(*prepare(own, job.X, job.y, **how)))
        return found
    penalties = check_penalties(Cs)
    how["C"] = middle_penalty(penalties)
    prepared = [prepare(own, job.X, job.y, **how) for own in estimators]
    tasks = [task for task, _ in prepared]
    runs_of_kernels = leave_out_grid(tasks, prepared[0][1], penalties)
    return [run for runs in runs_of_kernels for run in runs]


def run_paths(
    paths: Sequence[CandidatePath],
    job: PathJob,
    labels: NDArray[Any],
    *,
    n_jobs: int | None,
    verbose: int,
    checkpoint: str | os.PathLike[str] | None,
) -> tuple[list[Outcome], list[FloatArray | None]]:
    """Run every path; return result and betas of each candidate."""
    n_workers = count_workers(n_jobs)
    if len(paths) == 1 and runs_here():  # parallelise over samples instead
        job, n_workers = replace(job, n_threads=n_workers), 1
    groups = None
    if job.groups is not None:
        groups = check_groups(job.groups, np.ones(len(labels)))
    how = (job.method, job.method_params, job.preprocessing)
    # Scoring is not included: results hold predictions, which are scored later.
    kept = open_checkpoint(
        checkpoint,
        data=[job.X, job.y, job.sample_weight, job.groups],
        estimator=[job.estimator, *how],
        grid=[[path.params, path.Cs, path.positions] for path in paths],
    )
    done = run_tasks(
        leave_path_out,
        [(path, job) for path in paths],
        kept,
        partial(PathOutcome.unpack, y=labels, groups=groups),
        partial(_show, paths=paths, verbose=verbose),
        n_workers=n_workers,
        small=len(labels) <= N_SAMPLES_SMALL,
        unit="paths",
        verbose=verbose,
    )
    for category, text in dict.fromkeys(w for k in done for w in done[k].warned):
        warnings.warn(text, category, stacklevel=3)
    order = np.argsort([position for path in paths for position in path.positions])
    results = [result for path in paths for result in done[path.number].results]
    betas = [own for path in paths for own in done[path.number].betas]
    return [results[k] for k in order], [betas[k] for k in order]


def open_checkpoint(path: str | os.PathLike[str] | None, **parts: Any) -> Any:
    """Open the checkpoint of a run identified by ``parts``, if there is a path."""
    if path is None:
        return nullcontext()
    meta = {name: fingerprint(part) for name, part in parts.items()}
    return Checkpoint(path, {**meta, "version": leaveout.__version__})


def run_tasks(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    checkpoint: Any,
    unpack: Callable[..., Any],
    show: Callable[[Iterator[Any], int], Iterator[Any]],
    *,
    n_workers: int,
    small: bool,
    unit: str,
    verbose: int,
) -> dict[int, Any]:
    """Run the tasks missing in the checkpoint; return all outcomes by number.

    An outcome has a ``number`` and a method ``pack``, which ``unpack`` undoes. If the
    tasks may be ``small``, workers are started only if it pays.
    """
    done: dict[int, Any] = {}
    with checkpoint as kept:
        for number in range(len(tasks)):
            stored = None if kept is None else kept.get(number)
            if stored is not None:
                done[number] = unpack(number, *stored)
        if verbose > 0 and done:
            sys.stderr.write(f"Resumed with {len(done)} of {len(tasks)} {unit} done.\n")
        left = [task for number, task in enumerate(tasks) if number not in done]
        if runs_here():  # on a cluster even a single task goes to a worker
            n_workers = min(n_workers, max(1, len(left)))
        run = map_worthwhile if small else partial(map_parallel, ordered=False)
        with (
            closing(run(function, left, n_jobs=n_workers)) as outcomes,
            report_interruption(kept, len(tasks), unit),
        ):
            for outcome in show(outcomes, len(left)) if left else ():
                packed = None if kept is None else outcome.pack()
                if packed is not None:
                    kept.put(outcome.number, *packed)
                done[outcome.number] = outcome
    return {number: done[number] for number in range(len(tasks))}


def _show(
    outcomes: Iterator[PathOutcome],
    total: int,
    paths: Sequence[CandidatePath],
    verbose: int,
) -> Iterator[PathOutcome]:
    """Pass on the outcomes, with one progress line, or one line per outcome."""
    if verbose < 2:
        n_cells = sum(len(path.positions) for path in paths)
        label = f"{n_cells} cells, paths"
        yield from show_progress(outcomes, total, label, verbose=verbose > 0)
        return
    for count, outcome in enumerate(outcomes, start=1):
        known = [r for r in outcome.results if isinstance(r, ExactResult)]
        seconds = sum(r.counts["seconds"] for r in known)
        sys.stderr.write(
            f"Path {count} of {total}: {_describe_path(paths[outcome.number])}, "
            f"{_describe_best(known)}, {seconds:.2f} s\n"
        )
        yield outcome


def _describe_path(path: CandidatePath) -> str:
    """Return what the candidates of a path have in common, in words."""
    first, *others = path.params
    same = {k: v for k, v in first.items() if all(p.get(k) is v for p in others)}
    kernels = f"{len(path.params)} kernels, " if others else ""
    return f"{same}, {kernels}{len(path.Cs)} C"


def _describe_best(results: Sequence[Any]) -> str:
    """Return the lowest error of some results, in words."""
    if not results:
        return "lowest error none, failed"
    if isinstance(results[0], LooRegressionResult):
        return f"lowest RMSE {min(result.rmse for result in results):.4g}"
    return f"lowest error {as_percent(min(result.error for result in results))}"


def report_failures(results: Sequence[Outcome], error_score: Any) -> None:
    """Warn about candidates that failed; raise if all failed."""
    failures = [result for result in results if isinstance(result, Exception)]
    if not failures:
        return
    reasons = Counter(f"{type(error).__name__}: {error}" for error in failures)
    listed = "".join(f"\n  {count} with {reason}" for reason, count in reasons.items())
    if len(failures) == len(results):
        if len(reasons) == 1:
            raise failures[0]
        raise ValueError(f"All {len(results)} candidates failed:{listed}")
    warnings.warn(
        f"{len(failures)} of {len(results)} candidates failed; their score is "
        f"{error_score}. Set error_score='raise' for a traceback.{listed}",
        FitFailedWarning,
        stacklevel=3,
    )
