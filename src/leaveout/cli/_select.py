# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout select``: choose C and gamma."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from leaveout._model_file import installed_versions, save_model
from leaveout.cli._command import (
    Clock,
    check_files_differ,
    collect_warnings,
    command_line,
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
    prepare,
    search_grid,
)
from leaveout.cli._grid import parse_grid
from leaveout.cli._options import (
    GroupedTableOptions,
    KernelOptions,
    SelectOptions,
    ShowOptions,
)
from leaveout.estimators._svc import SVC
from leaveout.loo._leave_out import Fitted
from leaveout.report._select_report import SelectReport, describe_select
from leaveout.report._text import format_select
from leaveout.run._parallel import count_threads, limit_blas
from leaveout.tune._search import LooSearchCV

if TYPE_CHECKING:
    from leaveout.assess._loo_curve import LooCurve
    from leaveout.tune._honest import HonestLoo

# More pairs take longer than the grid; the page then has no ROC curve.
MAX_PAIRS = 200_000
# With more samples, the certificates take longer than the walks.
MAX_BOUNDS = 2000


def run_select(
    table: GroupedTableOptions,
    model: KernelOptions,
    wanted: SelectOptions,
    show: ShowOptions,
) -> None:
    """Search the grid, compute the extras, print and write the results."""
    writes = {
        "--save": wanted.save,
        "--report": wanted.page,
        "--checkpoint": wanted.checkpoint,
        "--checkpoint of --honest": _honest_checkpoint(wanted),
    }
    check_files_differ({"DATA": table.data}, writes)
    values = parse_grid(wanted.grid)
    check_parameters(values, model.kernel, "--grid {}=…")
    clock, watched = Clock(), show.watched
    with collect_warnings() as warned:
        with clock.measure("reading"):
            dataset = load(table)
        if wanted.curve:
            finer = "A finer grid does nearly the same: --grid C=0.01:1000:50."
            check_binary(dataset, "--curve", finer)
        with clock.measure("preparing"):
            prepared = prepare(dataset, standardize=not table.no_standardize)
            grid = complete_grid(values, prepared.numbers, model.kernel)
        with clock.measure("leave-one-out"):
            search = search_grid(
                prepared,
                grid,
                make_svc(model),
                n_jobs=wanted.n_jobs,
                verbose=int(watched),
                checkpoint=wanted.checkpoint,
            )
        with clock.measure("final fit"):
            best = clone(search.estimator).set_params(**search.best_params_)
            best._kept_betas = search._best_betas_
            fitted = best._fit(prepared.X, dataset.y)
        report = _make_report(prepared, search, clock, warned)
        written: list[str] = []
        try:
            if wanted.save is not None:
                with clock.measure("saving"):
                    _save(wanted.save, prepared, search, best)
                written.append(f"Model written to {wanted.save}")
            extras = _run_extras(prepared, search, fitted, wanted, watched, clock)
            report = replace(report, **extras, warnings=tuple(warned))
            if wanted.page is not None:
                from leaveout.report._page import write_page

                with clock.measure("page"):
                    write_page(report, wanted.page)
                written.append(f"Page written to {wanted.page}")
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_describe_stop(wanted)) from None
        finally:  # print the choice even if a file or an extra fails
            if show.as_json:
                print(json.dumps(describe_select(report), indent=2))
            else:
                print_result("\n".join([format_select(report), *written]))
    if show.verbose:
        print_status(str(clock))


def _describe_stop(wanted: SelectOptions) -> str:
    """Name what an interruption has left out."""
    asked = (wanted.honest, wanted.curve, wanted.page)
    names = ("--honest", "--curve", "--report")
    lost = ", ".join(name for name, value in zip(names, asked, strict=True) if value)
    return f"Stopped: the result lacks {lost}."


def _honest_checkpoint(wanted: SelectOptions) -> Path | None:
    """Return the checkpoint of the nested searches, next to that of the grid."""
    kept = wanted.checkpoint
    if kept is None or not wanted.honest:
        return None
    return kept.with_name(f"{kept.stem}.honest{kept.suffix}")


def _make_report(
    prepared: Prepared, search: LooSearchCV, clock: Clock, warned: list[str]
) -> SelectReport:
    return SelectReport(
        dataset=prepared.dataset,
        preparation=prepared.sentence,
        kernel=search.estimator.kernel,
        class_weight=search.estimator.class_weight,
        grid=search.param_grid,
        cells=search.cv_results_,
        errors=search._errors_,
        best_index=int(search.best_index_),
        result=search.best_loo_result_,
        warnings=tuple(warned),
        seconds=clock.seconds,
        command=command_line(),
        versions=installed_versions(),
    )


def _run_extras(
    prepared: Prepared,
    search: LooSearchCV,
    fitted: Fitted,
    wanted: SelectOptions,
    watched: bool,
    clock: Clock,
) -> dict[str, Any]:
    """Compute the optional parts of the report, by their names in it."""
    found: dict[str, Any] = {}
    if wanted.honest:
        with clock.measure("honest"):
            found["honest"] = run_honest(prepared, search, wanted, watched)
    if wanted.curve:
        with clock.measure("curve"):
            found["curve"] = _run_curve(prepared, search, wanted.n_jobs)
    if wanted.page is not None:
        found |= _run_page_extras(prepared, search, fitted, wanted.n_jobs, clock)
    return found


def run_honest(
    prepared: Prepared, search: LooSearchCV, wanted: SelectOptions, watched: bool
) -> HonestLoo:
    """Leave each sample out of preparation, tuning and fit."""
    from leaveout.tune._honest import honest_loo

    dataset = prepared.dataset
    grid = {f"svc__{name}": values for name, values in search.param_grid.items()}
    first = "passthrough" if prepared.preparation is None else prepared.preparation
    pipeline = clone(Pipeline([("prepare", first), ("svc", search.estimator)]))
    X = dataset.X
    if not dataset.text_features and not sparse.issparse(X):
        X = np.asarray(X)  # scikit-learn checks the columns of a frame one by one
    n_folds = len(dataset.y if dataset.groups is None else np.unique(dataset.groups))
    print_status(f"Nested leave-one-out: {n_folds} searches")
    return honest_loo(
        LooSearchCV(pipeline, grid, error_score="raise"),
        X,
        dataset.y,
        groups=dataset.groups,
        n_jobs=wanted.n_jobs,
        verbose=int(watched),
        checkpoint=_honest_checkpoint(wanted),
    )


def _run_curve(prepared: Prepared, search: LooSearchCV, n_jobs: int) -> LooCurve:
    """Trace the error over the range of C of the grid, all else as chosen."""
    from leaveout.assess._loo_curve import loo_curve

    Cs = [cell["C"] for cell in search.cv_results_["params"]]
    low, high = (min(Cs), max(Cs)) if len(set(Cs)) > 1 else (1e-2, 1e3)
    svc = clone(search.estimator).set_params(**search.best_params_)
    X, y = prepared.numbers, prepared.dataset.y
    return loo_curve(svc, X, y, C_min=low, C_max=high, n_jobs=n_jobs)


def _run_page_extras(
    prepared: Prepared,
    search: LooSearchCV,
    fitted: Fitted,
    n_jobs: int,
    clock: Clock,
) -> dict[str, Any]:
    """Compute the ranking and the bounds, for two classes without groups."""
    from leaveout.assess._bounds import tabulate_bounds
    from leaveout.assess._pair_auc import loo_pairs

    counts = np.unique(prepared.dataset.y, return_counts=True)[1]
    found: dict[str, Any] = {}
    grouped = prepared.dataset.groups is not None
    if counts.size != 2 or grouped or not fitted.task.gram.definite:
        return found
    [sub], [solution] = fitted.subproblems, fitted.solutions
    n_threads = count_threads(n_jobs)
    if counts.sum() >= 3 and counts.prod() <= MAX_PAIRS:
        with clock.measure("pairs"), limit_blas(1):
            found["pairs"] = loo_pairs(sub.problem, solution, n_threads=n_threads)
    if counts.sum() <= MAX_BOUNDS:
        with clock.measure("bounds"), limit_blas(1):
            result = search.best_loo_result_
            found["bounds"] = tabulate_bounds(sub.problem, solution, result)
    return found


def _save(path: Path, prepared: Prepared, search: LooSearchCV, best: SVC) -> None:
    """Write the chosen model, with probabilities where single samples are left out."""
    from leaveout.tune._svccv import take_chosen

    dataset, result = prepared.dataset, search.best_loo_result_
    model: Any = best
    if dataset.groups is None:
        model = take_chosen(search, best, prepared.X, dataset.y)
    if prepared.preparation is not None:
        model = Pipeline([("prepare", prepared.preparation), ("svc", model)])
    save_model(
        model,
        path,
        loo_error=result.error,
        feature_names=dataset.feature_names,
        details={
            "data": dataset.name,
            "target": dataset.target_name,
            "id": dataset.id_name,
            "n_samples": len(dataset.y),
            "loo_standard_error": result.standard_error,
            "parameters": search.best_params_,
            "command": command_line(),
        },
    )
