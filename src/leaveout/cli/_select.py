# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout select``: choose C and gamma."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from leaveout.cli import _options as options
from leaveout.cli._extras import (
    check_curve,
    honest_file,
    run_bounds,
    run_curve,
    run_honest,
    run_pairs,
)
from leaveout.cli._files import check_files_differ
from leaveout.cli._grid import complete_grid, parse_grid, search_grid
from leaveout.cli._prepared import Prepared, load, prepare
from leaveout.cli._session import (
    Clock,
    at_terminal,
    command,
    command_line,
    say,
    tell,
    warnings_told,
)
from leaveout.data import Dataset
from leaveout.estimators import SVCCV, LooSearchCV, installed_versions, save_model
from leaveout.report import SelectReport, describe_select, format_select, write_page


@dataclass(frozen=True)
class SelectOptions:
    """What is tried, and what is wanted beside the choice."""

    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="Values to try: C=1,10,100 or gamma=0.01:1:5; repeatable.",
        ),
    ] = None
    honest: Annotated[
        bool, options.flag("--honest", help="Also the error with the choice left out.")
    ] = False
    curve: Annotated[
        bool, options.flag("--curve", help="Also the error for every C (two classes).")
    ] = False
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL.skops",
            callback=options.check_folder,
            help="Write the chosen model.",
        ),
    ] = None
    page: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="PAGE.html",
            callback=options.check_folder,
            help="Write a page with figures and all samples.",
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN.db",
            callback=options.check_folder,
            help="Keep finished cells; a killed run goes on from there.",
        ),
    ] = None
    n_jobs: options.JobsOption = 1

    def check_files(self, data: Path | None) -> None:
        """Refuse files that would overwrite each other or the data."""
        folds = None
        if self.honest and self.checkpoint is not None:
            folds = honest_file(self.checkpoint)
        writes = {
            "--save": self.save,
            "--report": self.page,
            "--checkpoint": self.checkpoint,
            "--checkpoint of --honest": folds,
        }
        check_files_differ({"DATA": data, **writes}, written=writes)


@command
def select(
    table: options.TableOptions,
    family: options.FamilyOptions,
    wanted: SelectOptions,
    talk: options.TalkOptions,
) -> None:
    """Choose C and gamma by exact leave-one-out over a grid."""
    wanted.check_files(table.data)
    clock, values = Clock(), parse_grid(wanted.grid)
    watched = talk.verbose or at_terminal()
    with warnings_told() as warned:
        with clock.measure("reading"):
            dataset = load(table)
        if wanted.curve:
            check_curve(dataset)
        with clock.measure("preparing"):
            prepared = prepare(dataset, standardize=table.standardize)
            values = complete_grid(values, prepared.numbers, family.kernel.value)
        with clock.measure("leave-one-out"):
            search = search_grid(
                prepared,
                values,
                family.make_svc(),
                n_jobs=wanted.n_jobs,
                verbose=watched,
                checkpoint=wanted.checkpoint,
            )
        report = SelectReport(
            dataset=dataset,
            preparation=prepared.sentence,
            kernel=search.estimator.kernel,
            class_weight=search.estimator.class_weight,
            grid=values,
            cells=search.cv_results_,
            best_index=int(search.best_index_),
            result=search.best_loo_result_,
            warnings=tuple(warned),
            seconds=clock.seconds,
            command=command_line(),
            versions=installed_versions(),
        )
        try:
            extras = _run_extras(prepared, search, wanted, watched, clock)
            report = replace(report, **extras, warnings=tuple(warned))
            _write_files(report, prepared, search, wanted, clock)
        except BaseException:
            # Hours of work are not lost with a file, nor with what takes too long.
            _print(report, SelectOptions(), talk)
            raise
    _print(report, wanted, talk)
    if talk.verbose:
        tell(str(clock))


def _write_files(
    report: SelectReport,
    prepared: Prepared,
    search: LooSearchCV,
    wanted: SelectOptions,
    clock: Clock,
) -> None:
    """Write the model and the page, if asked for."""
    if wanted.save is not None:
        with clock.measure("final fit"):
            model = _final_model(prepared, search)
        with clock.measure("saving"):
            _save(wanted.save, model, prepared.dataset, search)
    if wanted.page is not None:
        with clock.measure("page"):
            write_page(report, wanted.page)


def _run_extras(
    prepared: Prepared,
    search: LooSearchCV,
    wanted: SelectOptions,
    watched: bool,
    clock: Clock,
) -> dict[str, Any]:
    """Compute what was asked for beside the choice, by its name in the report."""
    found: dict[str, Any] = {}
    if wanted.honest:
        with clock.measure("honest"):
            found["honest"] = run_honest(
                prepared, search, wanted.n_jobs, watched, wanted.checkpoint
            )
    if wanted.curve:
        with clock.measure("curve"):
            found["curve"] = run_curve(prepared, search, wanted.n_jobs)
    if wanted.page is not None:
        with clock.measure("pairs"):
            found["pairs"] = run_pairs(prepared, search, wanted.n_jobs)
        with clock.measure("bounds"):
            found["bounds"] = run_bounds(prepared, search, wanted.n_jobs)
    return found


def _print(
    report: SelectReport, wanted: SelectOptions, talk: options.TalkOptions
) -> None:
    """Print the report as text, or as JSON."""
    if talk.as_json:
        print(json.dumps(describe_select(report), indent=2))
        return
    say(format_select(report))
    if wanted.page is not None:
        say(f"Page written to {wanted.page}")
    if wanted.save is not None:
        say(f"Model written to {wanted.save}")


def _final_model(prepared: Prepared, search: LooSearchCV) -> Any:
    """Return the chosen model, with probabilities where single samples are left out."""
    dataset, best = prepared.dataset, search.best_estimator_
    if dataset.groups is None:
        # One cell, the chosen one: the same machine, and Platt's sigmoid beside it.
        names = {"C": "Cs", "gamma": "gammas"}
        chosen: dict[str, Any] = {
            names.get(name, name): [value] if name in names else value
            for name, value in search.best_params_.items()
        }
        best = SVCCV(best.kernel, class_weight=best.class_weight, **chosen)
        best.fit(prepared.X, dataset.y)
    return prepared.whole(best)


def _save(path: Path, model: Any, dataset: Dataset, search: LooSearchCV) -> None:
    result = search.best_loo_result_
    save_model(
        model,
        path,
        loo_error=result.error,
        feature_names=dataset.feature_names,
        details={
            "data": dataset.name,
            "target": dataset.target_name,
            "n_samples": len(dataset.y),
            "loo_standard_error": result.standard_error,
            "parameters": search.best_params_,
            "command": command_line(),
        },
    )
