# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout select``: choose C and gamma."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from leaveout.cli import _options as options
from leaveout.cli._extras import check_curve, run_curve, run_honest, run_pairs
from leaveout.cli._grid import complete_grid, parse_grid, search_grid
from leaveout.cli._prepared import Prepared, load, prepare
from leaveout.cli._session import (
    Clock,
    at_terminal,
    command,
    command_line,
    tell,
    warnings_told,
)
from leaveout.estimators import SVCCV, LooSearchCV, installed_versions, save_model
from leaveout.report import SelectReport, describe_select, format_select, write_page


@command
def select(
    data: options.DataArgument = None,
    target: options.TargetOption = None,
    id_column: options.IdOption = None,
    drop: options.DropOption = None,
    categorical: options.CategoricalOption = None,
    groups: options.GroupsOption = None,
    kernel: options.KernelOption = options.Kernel.RBF,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="Values to try: C=1,10,100 or gamma=0.01:1:5; repeatable.",
        ),
    ] = None,
    class_weight: options.ClassWeightOption = None,
    standardize: options.StandardizeOption = True,
    honest: Annotated[
        bool, typer.Option("--honest", help="Also the error with the choice left out.")
    ] = False,
    curve: Annotated[
        bool, typer.Option("--curve", help="Also the error for every C (two classes).")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL.skops",
            callback=options.check_folder,
            help="Write the chosen model.",
        ),
    ] = None,
    report_path: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="PAGE.html",
            callback=options.check_folder,
            help="Write a page with figures and all samples.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN.db",
            callback=options.check_folder,
            help="Keep finished cells; a killed run goes on from there.",
        ),
    ] = None,
    n_jobs: options.JobsOption = 1,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Choose C and gamma by exact leave-one-out over a grid."""
    clock, watched = Clock(), verbose or at_terminal()
    values = parse_grid(grid)
    with clock.measure("reading"):
        dataset = load(
            data,
            target,
            id_column=id_column,
            groups=groups,
            drop=drop,
            categorical=categorical,
        )
    if curve:
        check_curve(dataset)
    with warnings_told() as warned:
        with clock.measure("preparing"):
            prepared = prepare(dataset, standardize=standardize)
            values = complete_grid(values, prepared.numbers, kernel.value)
        with clock.measure("leave-one-out"):
            search = search_grid(
                prepared,
                values,
                kernel=kernel.value,
                class_weight=class_weight and class_weight.value,
                n_jobs=n_jobs,
                verbose=watched,
                checkpoint=checkpoint,
            )
        more: dict[str, Any] = {}
        if honest:
            with clock.measure("honest"):
                more["honest"] = run_honest(
                    prepared, search, n_jobs, watched, checkpoint
                )
        if curve:
            with clock.measure("curve"):
                more["curve"] = run_curve(prepared, search, n_jobs)
        if report_path is not None:
            with clock.measure("pairs"):
                more["pairs"] = run_pairs(prepared, search, n_jobs)
        if save is not None:
            with clock.measure("saving"):
                _save(save, prepared, search)
    report = SelectReport(
        dataset=dataset,
        preparation=prepared.sentence,
        kernel=kernel.value,
        class_weight=class_weight and class_weight.value,
        grid=values,
        cells=search.cv_results_,
        best_index=int(search.best_index_),
        result=search.best_loo_result_,
        warnings=tuple(warned),
        seconds=clock.seconds,
        command=command_line(),
        versions=installed_versions(),
        **more,
    )
    if report_path is not None:
        write_page(report, report_path)
    if as_json:
        print(json.dumps(describe_select(report), indent=2))
    else:
        print(format_select(report))
        if report_path is not None:
            print(f"Page written to {report_path}")
        if save is not None:
            print(f"Model written to {save}")
    if verbose:
        tell(str(clock))


def _save(path: Path, prepared: Prepared, search: LooSearchCV) -> None:
    """Write the chosen model, with probabilities where single samples are left out."""
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
    result = search.best_loo_result_
    save_model(
        prepared.whole(best),
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
