# SPDX-License-Identifier: BSD-3-Clause
"""leaveout select.

The expensive extras of ``leaveout select``: each first says how long it takes.

``leaveout select``: choose C and gamma.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from scipy import sparse
from sklearn.base import clone

from leaveout._model_file import installed_versions, save_model
from leaveout.assess._bounds import LooBounds, loo_bounds
from leaveout.assess._loo_curve import LooCurve, loo_curve
from leaveout.assess._pair_auc import PairAUC, leave_pair_out_auc
from leaveout.cli import _options as options
from leaveout.cli._command import (
    Clock,
    at_terminal,
    check_files_differ,
    command,
    command_line,
    print_result,
    print_status,
    warnings_told,
)
from leaveout.cli._data import Prepared, load, prepare
from leaveout.cli._grid import complete_grid, parse_grid, search_grid
from leaveout.estimators._svc import SVC
from leaveout.report._page import write_page
from leaveout.report._select_report import SelectReport, describe_select
from leaveout.report._text import format_seconds, format_select
from leaveout.run._parallel import count_threads
from leaveout.tables._dataset import Dataset
from leaveout.tune._honest import HonestLoo, honest_loo
from leaveout.tune._search import LooSearchCV
from leaveout.tune._svccv import SVCCV

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
    print_status(
        f"Error for every C from {low:g} to {high:g}: about {format_seconds(spent)}"
    )
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
    print_status(f"Honest error: {n_folds} searches, about {format_seconds(seconds)}")


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
        print_status(str(clock))


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
    print_result(format_select(report))
    if wanted.page is not None:
        print_result(f"Page written to {wanted.page}")
    if wanted.save is not None:
        print_result(f"Model written to {wanted.save}")


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
