# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout loo``, ``audit`` and ``bounds``: questions about one classifier.

A missing C or gamma is chosen on the default grid.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from leaveout.cli._command import (
    Clock,
    check_files_differ,
    collect_warnings,
    print_result,
    print_status,
)
from leaveout.cli._data import (
    Prepared,
    check_binary,
    check_parameters,
    complete_grid,
    load,
    make_svc,
    parameters_of,
    prepare,
    search_grid,
)
from leaveout.cli._grid import GRID_PARAMETERS
from leaveout.cli._options import (
    ModelOptions,
    ShowOptions,
    TableOptions,
    check_ending,
)
from leaveout.estimators._svc import SVC
from leaveout.loo._summary import wrap
from leaveout.report._select_report import (
    describe_bounds,
    describe_dataset,
    describe_result,
)
from leaveout.report._text import format_dataset, format_model, format_result
from leaveout.run._files import write_atomically
from leaveout.tables._files import format_csv, insert_names, to_records

if TYPE_CHECKING:
    from pandas import DataFrame

# Defaults of SVC.
POLY_DEFAULTS = {"degree": 3, "coef0": 0.0}
SUSPECTS_LEGEND = """\
margin: of the prediction when left out; below 0 it differs from the label
influence: mean change of the margins of all other samples without this one"""
BOUNDS_LEGEND = """\
A bound is never below the exact error, an estimate may be.
Values above 100 % carry no information."""


class Choice(NamedTuple):
    """A classifier, not fitted yet, its parameters, and among how many chosen."""

    svc: SVC
    params: dict[str, Any]
    n_candidates: int


class Answer(NamedTuple):
    """A result: as text, for JSON, and as the table of --output."""

    text: str
    details: dict[str, Any]
    table: DataFrame


def leave_out(choice: Choice, prepared: Prepared, n_jobs: int) -> Answer:
    """Leave each sample out."""
    from leaveout.assess._leave_one_out import leave_one_out

    dataset = prepared.dataset
    how: Any = {"groups": dataset.groups, "n_jobs": n_jobs}
    found: Any = leave_one_out(choice.svc, prepared.X, dataset.y, **how)
    table = found.to_frame().rename(columns={"y": "label"})
    insert_names(table, dataset.id_name or "row", prepared.names)
    advice = "; leaveout select --honest computes the error to report"
    lines = format_result(found, choice.n_candidates, advice)
    lines += filter(None, [found.anti_learning_note])
    return Answer(wrap(lines), describe_result(found), table)


def find_suspects(
    choice: Choice, prepared: Prepared, n_jobs: int, *, top: int, watched: bool
) -> Answer:
    """List samples that may be mislabelled."""
    from leaveout.assess._suspects import suspects

    dataset = prepared.dataset
    found = suspects(
        choice.svc,
        prepared.X,
        dataset.y,
        ids=prepared.names,
        top=top,
        groups=dataset.groups,
        n_jobs=n_jobs,
        verbose=int(watched),
    )
    found = replace(found, id_name=dataset.id_name or "row")
    table = found.to_frame().assign(row=found.rows + 1)  # counted from 1
    details = {
        "error": found.error,
        "n_flagged": found.n_flagged,
        "suspects": to_records(table.reset_index(names="id")),
    }
    if dataset.ids is not None:
        insert_names(table, dataset.id_name or "id", table.index)
    return Answer(f"{found}\n{SUSPECTS_LEGEND}", details, table)


def compare_bounds(choice: Choice, prepared: Prepared, n_jobs: int) -> Answer:
    """Compute bounds and estimates next to the exact error."""
    from leaveout.assess._bounds import loo_bounds

    found = loo_bounds(choice.svc, prepared.X, prepared.dataset.y, n_jobs=n_jobs)
    text = f"{found}\n{BOUNDS_LEGEND}"
    return Answer(text, describe_bounds(found), found.to_frame())


def run_question(
    question: Callable[[Choice, Prepared, int], Answer],
    table: TableOptions,
    model: ModelOptions,
    n_jobs: int,
    show: ShowOptions,
    output: Path | None = None,
) -> None:
    """Read the samples, choose the classifier, compute, print and write."""
    check_files_differ({"DATA": table.data}, {"--output": output})
    check_ending(output, "--output writes CSV", ".csv", ".txt")
    given = [name for name in GRID_PARAMETERS if getattr(model, name) is not None]
    check_parameters(given, model.kernel, "--{}")
    clock = Clock()
    with collect_warnings() as warned:
        with clock.measure("reading"):
            dataset = load(table)
        if question is compare_bounds:
            other = "Keep the rows of two, or use leaveout loo."
            check_binary(dataset, "leaveout bounds", other)
        with clock.measure("preparing"):
            prepared = prepare(dataset, standardize=not table.no_standardize)
            choice = _choose(prepared, model, n_jobs)
        with clock.measure("leave-one-out"):
            answer = question(choice, prepared, n_jobs)
    code = format_model(model.kernel, choice.params, model.class_weight)
    head = f"{format_dataset(dataset)}\n{wrap([prepared.sentence])}"
    text = f"{head}\n\n{code}\n{answer.text}"
    try:
        if output is not None:
            write_atomically(output, format_csv(answer.table).encode())
            text += f"\nSamples written to {output}"
    finally:  # print the result even if the file cannot be written
        if show.as_json:
            full = {
                **describe_dataset(dataset),
                "preparation": prepared.sentence,
                "model": code,
                "parameters": choice.params,
                "n_candidates": choice.n_candidates,
                **answer.details,
                "warnings": warned,
                "seconds": clock.seconds,
            }
            print(json.dumps(full, indent=2))
        else:
            print_result(text)
    if show.verbose:
        print_status(str(clock))


def _choose(prepared: Prepared, options: ModelOptions, n_jobs: int) -> Choice:
    """Choose the parameters that are not given, on the default grid."""
    svc, kernel = make_svc(options), options.kernel
    given = {name: getattr(options, name) for name in GRID_PARAMETERS}
    uses = parameters_of(kernel)
    params: dict[str, Any] = {
        name: POLY_DEFAULTS.get(name) if value is None else value
        for name, value in given.items()
        if name in uses
    }
    n_candidates = 1
    if None in params.values():
        fixed = {name: [v] for name, v in params.items() if v is not None}
        grid = complete_grid(fixed, prepared.numbers, kernel)
        verbose = int(sys.stderr.isatty())
        search = search_grid(prepared, grid, svc, n_jobs=n_jobs, verbose=verbose)
        chosen = [name for name, value in params.items() if value is None]
        params, n_candidates = search.best_params_, len(search.cv_results_["params"])
        flags = " and ".join(f"--{name}" for name in chosen)
        print_status(
            f"{' and '.join(chosen)} chosen among {n_candidates} candidates; "
            f"use {flags} to set {'it' if len(chosen) == 1 else 'them'}."
        )
    return Choice(svc.set_params(**params), params, n_candidates)
