# SPDX-License-Identifier: BSD-3-Clause
"""One cell of a search: all C of one kernel, with what went wrong on the way."""

from __future__ import annotations

import traceback
import warnings
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from sklearn.base import clone

from leaveout import exceptions
from leaveout._typing import IntArray
from leaveout.estimators._leave_one_out import leave_one_out
from leaveout.estimators._loo_path import loo_path
from leaveout.estimators._unwrap import MACHINES, SVMS, unwrap
from leaveout.loo import LooResult, pack_results, unpack_results
from leaveout.run import blas_threads
from leaveout.select import Cell


@dataclass(frozen=True)
class Failure:
    """Why a candidate has no result."""

    error: Exception
    report: str


@dataclass(frozen=True)
class CellRun:
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
class CellOutcome:
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
) -> CellOutcome:
    """Undo :meth:`CellOutcome.pack`."""
    arrays, facts = stored
    warned = tuple(
        (getattr(exceptions, name, UserWarning), text)
        for name, text in facts["warnings"]
    )
    results = unpack_results(arrays, facts["results"], y, groups)
    return CellOutcome(number, tuple(results), warned)


def leave_cell_out(number: int, cell: Cell, run: CellRun) -> CellOutcome:
    """Leave one out at every C of a cell."""
    estimator = set_candidate(run.estimator, cell.params)
    with warnings.catch_warnings(record=True) as caught, blas_threads(run.n_threads):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)  # not the user's code
        results = _leave_out(estimator, cell.Cs, run)
    warned = dict.fromkeys((w.category, str(w.message)) for w in caught)
    return CellOutcome(number, tuple(results), tuple(warned))


def set_candidate(estimator: Any, params: Any) -> Any:
    """Return a clone with parameters, of which estimators are cloned too."""
    cloned = {name: clone(value, safe=False) for name, value in params.items()}
    return clone(estimator).set_params(**cloned)


def _leave_out(
    estimator: Any, Cs: tuple[Any, ...], run: CellRun
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
    estimator: Any, Cs: tuple[Any, ...], run: CellRun
) -> tuple[LooResult, ...]:
    """Leave one out at each C: one path, or one C after the other."""
    model = unwrap(estimator, MACHINES)
    how: dict[str, Any] = {
        "sample_weight": run.sample_weight,
        "method": run.method,
        "groups": run.groups,
        "balanced": run.balanced,
        "n_jobs": run.n_threads,
    }
    refit = model.in_pipeline and run.preprocessing == "refit"
    if isinstance(model.svc, SVMS) and not refit:
        return loo_path(estimator, run.X, run.y, Cs=Cs, **how).results
    name = f"{model.prefix}C"
    return tuple(
        leave_one_out(
            # A machine without a C has None here.
            clone(estimator).set_params(**({} if C is None else {name: C})),
            run.X,
            run.y,
            preprocessing=run.preprocessing,
            **how,
        )
        for C in Cs
    )
