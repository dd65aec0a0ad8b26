# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout select``: choose C and gamma."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leaveout.cli import _options as opt
from leaveout.cli._command import (
    Clock,
    at_terminal,
    check_files_differ,
    collect_warnings,
    command,
    command_line,
    print_result,
    print_status,
)

if TYPE_CHECKING:
    from leaveout.cli._data import Prepared
    from leaveout.estimators._svc import SVC
    from leaveout.loo._leave_out import Fitted
    from leaveout.report._select_report import SelectReport
    from leaveout.tables._dataset import Dataset
    from leaveout.tune._search import LooSearchCV

# More pairs than these take longer than a grid; a page then has no ROC curve.
MAX_PAIRS = 200_000
# Beyond so many samples the certificates take longer than the walks.
MAX_BOUNDS = 2000


@command
def select(
    *,
    data: opt.Data = None,
    target: opt.Target = None,
    id_column: opt.IdColumn = None,
    drop: opt.Drop = None,
    categorical: opt.Categorical = None,
    groups: opt.Groups = None,
    no_standardize: opt.NoStandardize = False,
    sep: opt.Sep = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    kernel: opt.KernelName = opt.Kernel.RBF,
    class_weight: opt.Weight = None,
    grid: opt.Grid = None,
    honest: opt.Honest = False,
    curve: opt.Curve = False,
    save: opt.Save = None,
    page: opt.Page = None,
    checkpoint: opt.Checkpoint = None,
    n_jobs: opt.Jobs = 1,
    as_json: opt.Json = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Choose C and gamma by exact leave-one-out over a grid."""
    wanted = Wanted(honest, curve, save, page, checkpoint, n_jobs)
    wanted.check_files(data)
    values = opt.parse_grid(grid)
    how = (sep, decimal, encoding, no_standardize)
    table = opt.TableOptions(data, target, id_column, groups, drop, categorical, *how)
    model = opt.ModelOptions(kernel, class_weight, n_jobs)
    clock, watched = Clock(), verbose or at_terminal()
    with collect_warnings() as warned:
        prepared, search = _search(table, model, values, wanted, clock, watched)
        with clock.measure("final fit"):
            best, fitted = _fit_best(prepared, search)
        report = _make_report(prepared, search, clock, warned)
        try:
            extras = _run_extras(prepared, search, fitted, wanted, watched, clock)
            report = replace(report, **extras, warnings=tuple(warned))
            _write_files(report, prepared, search, best, wanted, clock)
        except BaseException:
            # The choice is not lost with a file or an interrupted extra.
            _print(report, Wanted(), as_json)
            raise
    _print(report, wanted, as_json)
    if verbose:
        print_status(str(clock))


@dataclass(frozen=True)
class Wanted:
    """What is wanted beside the choice, and how it is computed."""

    honest: bool = False
    curve: bool = False
    save: Path | None = None
    page: Path | None = None
    checkpoint: Path | None = None
    n_jobs: int = 1

    @property
    def honest_checkpoint(self) -> Path | None:
        """The file that keeps the folds, beside the one that keeps the cells."""
        kept = self.checkpoint
        if kept is None or not self.honest:
            return None
        return kept.with_name(f"{kept.stem}.honest{kept.suffix}")

    def check_files(self, data: Path | None) -> None:
        """Refuse files that would overwrite each other or the data."""
        writes = {
            "--save": self.save,
            "--report": self.page,
            "--checkpoint": self.checkpoint,
            "--checkpoint of --honest": self.honest_checkpoint,
        }
        check_files_differ({"DATA": data, **writes}, written=writes)


def _search(
    table: opt.TableOptions,
    model: opt.ModelOptions,
    values: dict[str, list[float]],
    wanted: Wanted,
    clock: Clock,
    watched: bool,
) -> tuple[Prepared, LooSearchCV]:
    """Read the samples and leave one out in every cell."""
    from leaveout.cli._data import load, prepare, search_grid

    with clock.measure("reading"):
        dataset = load(table)
    if wanted.curve:
        _check_curve(dataset)
    with clock.measure("preparing"):
        prepared = prepare(dataset, standardize=not table.no_standardize)
        grid = opt.complete_grid(values, prepared.numbers, model.kernel.value)
    with clock.measure("leave-one-out"):
        search = search_grid(
            prepared,
            grid,
            model.make_svc(),
            n_jobs=model.n_jobs,
            verbose=watched,
            checkpoint=wanted.checkpoint,
        )
    return prepared, search


def _fit_best(prepared: Prepared, search: LooSearchCV) -> tuple[SVC, Fitted]:
    """Return the chosen classifier, fitted from the search, and its solution."""
    from sklearn.base import clone

    best = clone(search.estimator).set_params(**search.best_params_)
    best._kept_betas = search._best_betas_
    return best, best._fit(prepared.X, prepared.dataset.y)


def _make_report(
    prepared: Prepared, search: LooSearchCV, clock: Clock, warned: list[str]
) -> SelectReport:
    from leaveout._model_file import installed_versions
    from leaveout.report._select_report import SelectReport

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
    wanted: Wanted,
    watched: bool,
    clock: Clock,
) -> dict[str, Any]:
    """Compute what was asked for beside the choice, by its name in the report."""
    found: dict[str, Any] = {}
    if wanted.honest:
        with clock.measure("honest"):
            found["honest"] = run_honest(prepared, search, wanted, watched)
    if wanted.curve:
        with clock.measure("curve"):
            found["curve"] = _run_curve(prepared, search, wanted.n_jobs)
    if wanted.page is not None:
        found |= _run_page_extras(prepared, fitted, wanted.n_jobs, clock)
    return found


def run_honest(
    prepared: Prepared, search: LooSearchCV, wanted: Wanted, watched: bool
) -> Any:
    """Leave every sample out of preparation, choice and fit."""
    import numpy as np
    from scipy import sparse
    from sklearn.base import clone

    from leaveout.tune._honest import honest_loo
    from leaveout.tune._search import LooSearchCV

    dataset = prepared.dataset
    grid = {f"svc__{name}": values for name, values in search.param_grid.items()}
    pipeline = prepared.unfitted(clone(search.estimator))
    X = dataset.X
    if not dataset.text_features and not sparse.issparse(X):
        X = np.asarray(X)  # scikit-learn checks the columns of a frame one by one
    n_folds = len(dataset.y if dataset.groups is None else np.unique(dataset.groups))
    print_status(f"Honest error: {n_folds} searches")
    return honest_loo(
        LooSearchCV(pipeline, grid, error_score="raise"),
        X,
        dataset.y,
        groups=dataset.groups,
        n_jobs=wanted.n_jobs,
        verbose=int(watched),
        checkpoint=wanted.honest_checkpoint,
    )


def _check_curve(dataset: Dataset) -> None:
    """Refuse what ``loo_curve`` cannot do, before the search."""
    n_classes = len(set(dataset.y.tolist()))
    if n_classes != 2:
        raise ValueError(
            f"--curve is for two classes; '{dataset.target_name}' has {n_classes}. "
            "A finer grid does nearly the same: --grid C=0.01:1000:50."
        )
    if dataset.groups is not None:
        raise ValueError("--curve is for single samples; omit --groups or --curve.")


def _run_curve(prepared: Prepared, search: LooSearchCV, n_jobs: int) -> Any:
    """Trace the error over the range of C of the grid, all else as chosen."""
    from sklearn.base import clone

    from leaveout.assess._loo_curve import loo_curve

    Cs = [cell["C"] for cell in search.cv_results_["params"]]
    low, high = (min(Cs), max(Cs)) if len(set(Cs)) > 1 else (1e-2, 1e3)
    svc = clone(search.estimator).set_params(**search.best_params_)
    X, y = prepared.numbers, prepared.dataset.y
    return loo_curve(svc, X, y, C_min=low, C_max=high, n_jobs=n_jobs)


def _run_page_extras(
    prepared: Prepared, fitted: Fitted, n_jobs: int, clock: Clock
) -> dict[str, Any]:
    """Compute the ranking and the bounds, for two classes without groups."""
    import numpy as np

    from leaveout.assess._bounds import tabulate_bounds
    from leaveout.assess._pair_auc import loo_pairs
    from leaveout.run._parallel import count_threads, limit_blas

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
            found["bounds"] = tabulate_bounds(
                sub.problem, solution, n_threads=n_threads
            )
    return found


def _write_files(
    report: SelectReport,
    prepared: Prepared,
    search: LooSearchCV,
    best: SVC,
    wanted: Wanted,
    clock: Clock,
) -> None:
    """Write the model and the page, if asked for."""
    if wanted.save is not None:
        with clock.measure("saving"):
            model = _final_model(prepared, search, best)
            _save(wanted.save, model, prepared.dataset, search)
    if wanted.page is not None:
        from leaveout.report._page import write_page

        with clock.measure("page"):
            write_page(report, wanted.page)


def _final_model(prepared: Prepared, search: LooSearchCV, best: SVC) -> Any:
    """Return the chosen model, with probabilities where single samples are left out."""
    from leaveout.tune._svccv import take_chosen

    if prepared.dataset.groups is not None:
        return prepared.complete(best)
    y = prepared.dataset.y
    return prepared.complete(take_chosen(search, best, prepared.X, y))


def _save(path: Path, model: Any, dataset: Dataset, search: LooSearchCV) -> None:
    from leaveout._model_file import save_model

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


def _print(report: SelectReport, wanted: Wanted, as_json: bool) -> None:
    """Print the report as text, or as JSON."""
    if as_json:
        from leaveout.report._select_report import describe_select

        print(json.dumps(describe_select(report), indent=2))
        return
    from leaveout.report._text import format_select

    print_result(format_select(report))
    if wanted.page is not None:
        print_result(f"Page written to {wanted.page}")
    if wanted.save is not None:
        print_result(f"Model written to {wanted.save}")
