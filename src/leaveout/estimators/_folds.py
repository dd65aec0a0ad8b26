# SPDX-License-Identifier: BSD-3-Clause
"""A Pipeline fitted anew without each sample or group: slow, and exact throughout."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.estimators._check import check_features
from leaveout.estimators._frozen import fit_transform
from leaveout.estimators._one_vs_rest import build_one_vs_rest_task
from leaveout.estimators._svc import SVC
from leaveout.estimators._task import Target, Task, build_task, check_parameters
from leaveout.estimators._unwrap import Model
from leaveout.exceptions import CertificateWarning
from leaveout.kernel import gram_matrix, is_psd, may_be_indefinite
from leaveout.loo import REFIT, MachineLoo, ask_elsewhere, middle
from leaveout.run import map_parallel
from leaveout.solve import solve_svc

# Parts of the rows per worker: enough to keep all busy to the end.
PARTS_PER_WORKER = 8


class Folds(NamedTuple):
    """Values of all machines at some left-out rows, as MachineLoo has them."""

    values: FloatArray  # (n_rows, n_machines), as are the next three
    lower: FloatArray
    upper: FloatArray
    certified: BoolArray
    definite: BoolArray  # (n_rows,)


def refit_folds(
    model: Model,
    svc: SVC,
    X: Any,
    target: Target,
    groups: IntArray | None = None,
    *,
    n_workers: int,
    stacklevel: int,
) -> list[MachineLoo]:
    """Leave every sample or group out by fitting steps and machines on the others.

    gamma and balanced class weights are resolved on the rows that are left, as a refit
    does. A class that loses its only member keeps its machines; they have one class and
    speak for it.

    Parameters
    ----------
    model : Model
        The steps, and one machine per class or per pair.
    svc : SVC
        With the parameters of ``model.svc``.
    X : object
        What the first step takes.
    target : Target
        Classes and weights of all rows. The steps do not get the weights.
    groups : ndarray of shape (n,), default=None
        Rows with the same number, from 0, are left out together.
    n_workers : int
        joblib's workers over the samples or groups.
    stacklevel : int
        Whose line a warning names.
    """
    started = perf_counter()
    check_parameters(svc)
    n = target.codes.shape[0]
    groups = np.arange(n) if groups is None else groups
    n_groups = int(groups.max()) + 1
    n_parts = 1 if n_workers == 1 else min(n_groups, PARTS_PER_WORKER * n_workers)
    tasks = (
        (model, svc, X, target, groups, numbers)
        for numbers in np.array_split(np.arange(n_groups), n_parts)
    )
    parts = list(map_parallel(_refit_groups, tasks, n_jobs=n_workers))
    # The parts go group by group; back to the order of the rows.
    folds = _concatenate(parts, np.argsort(np.argsort(groups, kind="stable")))
    if not folds.definite.all():
        warnings.warn(
            f"The kernel {svc.kernel!r} is not positive semi-definite in "
            f"{np.count_nonzero(~folds.definite)} of {n} folds: these are not "
            "certified. Use another kernel, or other parameters of it.",
            CertificateWarning,
            stacklevel=stacklevel,
        )
    n_machines = folds.values.shape[1]
    seconds = (perf_counter() - started) / n_machines
    return [
        MachineLoo(
            values=folds.values[:, k],
            lower=folds.lower[:, k],
            upper=folds.upper[:, k],
            certified=folds.certified[:, k] & folds.definite,
            settled_by=np.full(n, REFIT, dtype=np.int8),
            counts={"refits": float(n_groups), "seconds": seconds},
        )
        for k in range(n_machines)
    ]


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return some rows of an array, a sparse matrix, a table or a list."""
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[rows]
    if sparse.issparse(X):
        return X.tocsr()[rows]
    if not hasattr(X, "shape"):
        return [X[row] for row in rows]
    if isinstance(X, np.ndarray) or not hasattr(X, "take"):
        return X[rows]
    return X.take(rows)  # pyarrow


def take_columns(X: Any, columns: IntArray) -> Any:
    """Return some columns of an array, a sparse matrix, a table or a list of rows."""
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[:, columns]
    return (X if hasattr(X, "shape") else np.asarray(X))[:, columns]


def _refit_groups(
    model: Model, svc: SVC, X: Any, target: Target, groups: IntArray, numbers: IntArray
) -> Folds:
    """Leave some of the groups out, one at a time."""
    svc = clone(svc)  # it notes the columns of each fold
    return _concatenate(
        [_refit_without(model, svc, X, target, groups == number) for number in numbers]
    )


def _concatenate(folds: list[Folds], order: Any = slice(None)) -> Folds:
    columns = zip(*folds, strict=True)
    return Folds(*(np.concatenate(column)[order] for column in columns))


def _refit_without(
    model: Model, svc: SVC, X: Any, target: Target, left_out: BoolArray
) -> Folds:
    """Fit on the other rows; return what each machine says of those left out."""
    kept, rows = np.flatnonzero(~left_out), np.flatnonzero(left_out)
    try:
        Z, z = _transform_fold(model, X, target.labels[kept], kept, rows)
        Z = check_features(svc, Z, reset=True)
        z = check_features(svc, z, reset=False)
        build = build_one_vs_rest_task if model.one_vs_rest else build_task
        task = build(svc, Z, target.take(kept))
    except Exception as error:
        names = ", ".join(str(row) for row in rows[:5])
        error.add_note(f"This happened without row {names}{' …' * (rows.size > 5)}.")
        raise
    definite = not may_be_indefinite(svc.kernel, svc.coef0) or is_psd(task.K)
    machines = [_evaluate(svc, *machine, z) for machine in task.machines]
    values, lower, upper, certified = (
        np.column_stack(column) for column in zip(*machines, strict=True)
    )
    return Folds(values, lower, upper, certified, np.full(rows.size, definite))


def _transform_fold(
    model: Model, X: Any, labels: NDArray[Any], kept: IntArray, rows: IntArray
) -> tuple[Any, Any]:
    """Return the kept and the left-out rows after steps fitted on the kept ones."""
    Z, z = take_rows(X, kept), take_rows(X, rows)
    first = model.steps[0][1] if model.steps else model.svc
    if get_tags(first).input_tags.pairwise:
        Z, z = take_columns(Z, kept), take_columns(z, kept)
    for _, step in model.steps:
        step = clone(step)
        Z = fit_transform(step, Z, labels)
        z = step.transform(z)
    return Z, z


def _evaluate(
    svc: SVC, task: Task, i: int, j: int, z: Any
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Solve one machine; return values at z, intervals, certificates."""
    rows, problem = task.rows(i, j), task.problem(i, j)
    if svc.kernel == "precomputed":
        K = z[:, rows]
    else:
        K = gram_matrix(
            z,
            task.X[rows],
            kernel=svc.kernel,
            gamma=task.gamma,
            degree=svc.degree,
            coef0=svc.coef0,
        )
    lower, upper, certified = ask_elsewhere(problem, solve_svc(problem), K)
    return middle(lower, upper), lower, upper, certified
