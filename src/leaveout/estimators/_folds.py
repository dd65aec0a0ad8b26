# SPDX-License-Identifier: BSD-3-Clause
"""A Pipeline fitted anew without each sample: slow, and exact for every step."""

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
from leaveout.kernel import evaluate_expansion, is_psd, may_be_indefinite
from leaveout.loo import REFIT, MachineLoo
from leaveout.run import map_parallel
from leaveout.solve import solve_svc

# Parts of the rows per worker: enough to keep all busy to the end.
PARTS_PER_WORKER = 8


class Folds(NamedTuple):
    """Values of all machines at some left-out rows, as MachineLoo has them."""

    values: FloatArray  # (n_rows, n_machines), as are the next three
    lower: FloatArray
    upper: FloatArray
    converged: BoolArray
    definite: BoolArray  # (n_rows,)


def refit_folds(
    model: Model, svc: SVC, X: Any, target: Target, *, n_workers: int, stacklevel: int
) -> list[MachineLoo]:
    """Leave every sample out by fitting steps and machines on the others.

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
    n_workers : int
        joblib's workers over the samples.
    stacklevel : int
        Whose line a warning names.
    """
    started = perf_counter()
    check_parameters(svc)
    n = target.codes.shape[0]
    n_parts = 1 if n_workers == 1 else min(n, PARTS_PER_WORKER * n_workers)
    tasks = (
        (model, svc, X, target, rows) for rows in np.array_split(np.arange(n), n_parts)
    )
    parts = list(map_parallel(_refit_rows, tasks, n_jobs=n_workers))
    folds = Folds(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    if not folds.definite.all():
        warnings.warn(
            f"The kernel {svc.kernel!r} is not positive semi-definite in "
            f"{np.count_nonzero(~folds.definite)} of {n} folds: these are not "
            "certified. Use another kernel, or other parameters of it.",
            CertificateWarning,
            stacklevel=stacklevel,
        )
    n_machines = folds.values.shape[1]
    counts = {"refits": float(n), "seconds": (perf_counter() - started) / n_machines}
    return [
        MachineLoo(
            values=folds.values[:, k],
            lower=folds.lower[:, k],
            upper=folds.upper[:, k],
            certified=folds.converged[:, k] & folds.definite,
            settled_by=np.full(n, REFIT, dtype=np.int8),
            counts=counts,
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


def _refit_rows(
    model: Model, svc: SVC, X: Any, target: Target, rows: IntArray
) -> Folds:
    """Leave some of the rows out, one at a time."""
    svc = clone(svc)  # it notes the columns of each fold
    folds = [_refit_without(model, svc, X, target, int(r)) for r in rows]
    return Folds(*(np.array(column) for column in zip(*folds, strict=True)))


def _refit_without(
    model: Model, svc: SVC, X: Any, target: Target, r: int
) -> tuple[list[float], list[float], list[float], list[bool], bool]:
    """Fit on all rows but r; return what each machine says of r."""
    kept = np.delete(np.arange(target.codes.shape[0]), r)
    try:
        Z, z = _transform_fold(model, X, target.labels[kept], kept, r)
        Z = check_features(svc, Z, reset=True)
        z = check_features(svc, z, reset=False)
        build = build_one_vs_rest_task if model.one_vs_rest else build_task
        task = build(svc, Z, target.take(kept))
    except Exception as error:
        error.add_note(f"This happened on the rows without row {r}.")
        raise
    definite = not may_be_indefinite(svc.kernel, svc.coef0) or is_psd(task.K)
    machines = [_evaluate(svc, *machine, z) for machine in task.machines]
    values, lower, upper, converged = map(list, zip(*machines, strict=True))
    return values, lower, upper, converged, definite


def _transform_fold(
    model: Model, X: Any, labels: NDArray[Any], kept: IntArray, r: int
) -> tuple[Any, Any]:
    """Return the kept rows and row r after steps fitted on the kept rows."""
    Z, z = take_rows(X, kept), take_rows(X, np.array([r]))
    first = model.steps[0][1] if model.steps else model.svc
    if get_tags(first).input_tags.pairwise:
        Z, z = Z[:, kept], z[:, kept]
    for _, step in model.steps:
        step = clone(step)
        Z = fit_transform(step, Z, labels)
        z = step.transform(z)
    return Z, z


def _evaluate(
    svc: SVC, task: Task, i: int, j: int, z: Any
) -> tuple[float, float, float, bool]:
    """Solve one machine; return its value at z, the interval, whether it converged."""
    rows = task.rows(i, j)
    solution = solve_svc(task.problem(i, j))
    precomputed = svc.kernel == "precomputed"
    value = evaluate_expansion(
        z[:, rows] if precomputed else z,
        task.X[rows],
        solution.beta[:, None],
        np.array([solution.intercept]),
        kernel=svc.kernel,
        gamma=task.gamma,
        degree=svc.degree,
        coef0=svc.coef0,
    ).item()
    low, high = np.subtract(solution.intercept_interval, solution.intercept)
    return value, value + low, value + high, solution.converged
