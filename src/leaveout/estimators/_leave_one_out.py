# SPDX-License-Identifier: BSD-3-Clause
"""``leave_one_out``: from an estimator and data to a LooResult."""

from __future__ import annotations

import warnings
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.estimators._adapt import adapt_model, as_leaveout_svc
from leaveout.estimators._check import (
    check_flag,
    check_preprocessing,
    check_sample_weight,
    count_rows,
)
from leaveout.estimators._folds import refit_folds
from leaveout.estimators._one_vs_rest import decide_one_vs_rest
from leaveout.estimators._pairs import one_value_per_class, vote
from leaveout.estimators._svc import SVC
from leaveout.estimators._task import Target, Task, make_target
from leaveout.estimators._unwrap import Model, unwrap
from leaveout.exceptions import CertificateWarning, SingletonClassWarning
from leaveout.kernel import is_psd, may_be_indefinite
from leaveout.loo import (
    SETTLED_BY,
    UNTOUCHED,
    LooMethod,
    LooResult,
    MachineLoo,
    find_method,
)
from leaveout.run import blas_threads, count_threads
from leaveout.solve import solve_svc

# Values this close to zero, relative to the terms they are sums of, have no sign.
TIE = 1e-10


def leave_one_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    method: str = "auto",
    labels_only: bool = False,
    preprocessing: str = "frozen",
    score_sample_weight: Any = None,
    n_jobs: int | None = None,
) -> LooResult:
    """Leave every sample out once, exactly, for about the price of one fit.

    The answer for sample r is that of the classifier trained on all samples but r,
    with the same C, kernel and weights. ``gamma="scale"`` and
    ``class_weight="balanced"`` are resolved once, on all rows.

    Parameters
    ----------
    estimator : SVC, Pipeline that ends in one, or OneVsRestClassifier of one
        scikit-learn's SVC or ours. It need not be fitted and is not changed.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed". With a Pipeline,
        whatever its first step takes.
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample, as in ``fit``. A sample with weight 0 is never trained
        on and gets the answer of the full classifier. The steps of a Pipeline do not
        get the weights.
    method : {"auto", "walk", "refit"}, default="auto"
        "walk" follows the optimum as the sample fades out; "refit" solves n problems.
    labels_only : bool, default=False
        Stop as soon as the label of a sample is known. Its decision value is then not
        the final one, only on the right side of zero. Where values decide, among
        three classes or more with OneVsRestClassifier or ``break_ties``, it changes
        nothing.
    preprocessing : {"frozen", "refit"}, default="frozen"
        What happens to the steps of a Pipeline before the SVC. "frozen": fitted once,
        as clones, on all rows; a warning says so, and a step whose output depends on y
        is refused. "refit": the whole Pipeline is fitted anew without each sample, as
        cross_val_predict does; ``gamma="scale"`` and ``class_weight="balanced"`` are
        then resolved anew too. Without a Pipeline both are the same. The Pipeline's
        ``memory`` is not used.
    score_sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples in ``error``.
    n_jobs : int, default=None
        Threads; None means 1, -1 all cores. With preprocessing="refit", joblib's
        workers.

    Returns
    -------
    LooResult
        Decision values, predictions, error, what is ambiguous, how it was settled. With
        OneVsRestClassifier, the value of a class whose only member is left out is -inf.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> res = lo.leave_one_out(SVC(C=1, gamma=0.1), X, y)
    >>> round(res.error, 4), res.n_ambiguous
    (0.0267, 0)
    """
    started = perf_counter()
    check_flag("labels_only", labels_only)
    check_preprocessing(preprocessing)
    model = unwrap(estimator)
    if model.in_pipeline and preprocessing == "refit":
        svc, task, machines = _refit_pipeline(
            model, X, y, sample_weight, method, n_jobs
        )
        name, definite = "refit", True
    else:
        svc, task = adapt_model(model, X, y, sample_weight, stacklevel=3)
        name, function, definite = _choose_method(svc, task, method)
        _warn_singletons(task)
        values_decide = len(task.classes) > 2 and (model.one_vs_rest or svc.break_ties)
        labels_only = labels_only and not values_decide
        n_threads = count_threads(n_jobs)
        with blas_threads(n_threads):
            machines = [
                _leave_out_of_machine(part, i, j, function, labels_only, n_threads)
                for part, i, j in task.machines
            ]
    weights = None
    if score_sample_weight is not None:
        weights = check_sample_weight(score_sample_weight, task.codes.shape[0])
    decided = (
        decide_one_vs_rest(task, machines)
        if model.one_vs_rest
        else _decide(svc, task, machines)
    )
    certified = np.all([m.certified for m in machines], axis=0) & definite
    counts = _total_counts(machines)
    counts["seconds"] = perf_counter() - started
    return LooResult(
        **decided,
        y=task.labels,
        certified=certified,
        settled_by=_hardest(machines),
        method=name,
        counts=counts,
        weights=weights,
    )


def _choose_method(svc: SVC, task: Task, method: str) -> tuple[str, LooMethod, bool]:
    """Return the method by name, and whether the kernel is positive semi-definite."""
    name, function = find_method(method)
    if not may_be_indefinite(svc.kernel, svc.coef0) or is_psd(task.K):
        return name, function, True
    if method not in ("auto", "refit"):
        raise ValueError(
            f"method={method!r} needs a positive semi-definite kernel; {svc.kernel!r} "
            "is not on these data. Use method='refit' (not certified), or another "
            "kernel."
        )
    warnings.warn(
        f"The kernel {svc.kernel!r} is not positive semi-definite on these data: "
        "every sample is refitted, and nothing is certified. Use another kernel, or "
        "other parameters of it.",
        CertificateWarning,
        stacklevel=3,
    )
    return (*find_method("refit"), False)


def _refit_pipeline(
    model: Model, X: Any, y: Any, sample_weight: Any, method: str, n_jobs: int | None
) -> tuple[SVC, Target, list[MachineLoo]]:
    """Fit the whole Pipeline without each sample."""
    if method not in ("auto", "refit"):
        raise ValueError(
            f"method={method!r} needs one Gram matrix for all samples, and "
            "preprocessing='refit' makes one for each. Use method='refit', or "
            "preprocessing='frozen'."
        )
    svc = as_leaveout_svc(model.svc)
    target = make_target(y, count_rows(X), sample_weight)
    _warn_singletons(target, stacklevel=4)
    n_workers = count_threads(n_jobs)
    with blas_threads(1):
        machines = refit_folds(model, svc, X, target, n_workers=n_workers, stacklevel=4)
    return svc, target, machines


def _warn_singletons(target: Target, stacklevel: int = 3) -> None:
    """Warn of classes that vanish when their only member is left out."""
    labels = target.classes.tolist()
    for code, row in target.singletons():
        warnings.warn(
            f"Class {labels[code]!r} has 1 sample (row {row}): leaving it out "
            "leaves no such class; it counts as an error. Merge or drop the class.",
            SingletonClassWarning,
            stacklevel=stacklevel,
        )


def _leave_out_of_machine(
    task: Task, i: int, j: int, method: LooMethod, labels_only: bool, n_threads: int
) -> MachineLoo:
    """Leave every sample out of the machine between classes i and j.

    The machine does not know the samples of other classes, nor those with weight 0:
    they get its value as it is.
    """
    rows, problem = task.rows(i, j), task.problem(i, j)
    solution = solve_svc(problem)
    part = method(
        problem, solution=solution, labels_only=labels_only, n_threads=n_threads
    )
    n = task.codes.shape[0]
    if rows.size == n:
        return part
    values = task.K[:, rows] @ solution.beta + solution.intercept
    low, high = np.subtract(solution.intercept_interval, solution.intercept)
    lower, upper = values + low, values + high
    certified = np.full(n, solution.converged)
    settled_by = np.full(n, UNTOUCHED, dtype=np.int8)
    for whole, own in (
        (values, part.values),
        (lower, part.lower),
        (upper, part.upper),
        (certified, part.certified),
        (settled_by, part.settled_by),
    ):
        whole[rows] = own
    return MachineLoo(values, lower, upper, certified, settled_by, part.counts)


def _decide(svc: SVC, task: Target, machines: list[MachineLoo]) -> dict[str, Any]:
    """Turn the machines' values into labels, margins and their intervals."""
    values = np.column_stack([m.values for m in machines])
    lower = np.column_stack([m.lower for m in machines])
    upper = np.column_stack([m.upper for m in machines])
    scale = np.array([1.0 + np.abs(m.values).max() for m in machines])
    lower = np.where(np.abs(lower) <= TIE * scale, 0.0, lower)
    upper = np.where(np.abs(upper) <= TIE * scale, 0.0, upper)
    open_ = (lower <= 0.0) & (upper >= 0.0)
    if len(machines) == 1:
        sign = np.where(task.codes == 1, 1.0, -1.0)
        ends = np.sort(np.column_stack([sign * lower[:, 0], sign * upper[:, 0]]))
        return {
            "decision_values": values[:, 0],
            "predictions": task.classes[vote(values)],
            "margins": sign * values[:, 0],
            "lower": ends[:, 0],
            "upper": ends[:, 1],
            "ambiguous": open_[:, 0],
        }
    per_class = one_value_per_class(values)
    winner = np.argmax(per_class, axis=1) if svc.break_ties else vote(values)
    margins = _margins(per_class, task.codes)
    unique = (lower == upper).all(axis=1)
    ovo = svc.decision_function_shape == "ovo"
    return {
        "decision_values": values if ovo else per_class,
        "predictions": task.classes[winner],
        "margins": margins,
        "lower": np.where(unique, margins, np.nan),
        "upper": np.where(unique, margins, np.nan),
        "ambiguous": _open_votes(values, open_, winner, svc.break_ties),
    }


def _margins(per_class: FloatArray, codes: IntArray) -> FloatArray:
    """Return true class minus best other."""
    rows = np.arange(codes.shape[0])
    others = per_class.copy()
    others[rows, codes] = -np.inf
    return per_class[rows, codes] - others.max(axis=1)


def _open_votes(
    values: FloatArray, open_: BoolArray, winner: IntArray, break_ties: bool
) -> BoolArray:
    """Whether some choice of the undecided signs changes the winner.

    With ``break_ties`` the values count, not only the signs: any undecided machine
    makes the sample ambiguous. So do more than ten of them.
    """
    ambiguous = np.zeros(values.shape[0], dtype=bool)
    for r in np.flatnonzero(open_.any(axis=1)):
        undecided = np.flatnonzero(open_[r])
        if break_ties or undecided.size > 10:
            ambiguous[r] = True
            continue
        tries = np.tile(values[r], (2**undecided.size, 1))
        tries[:, undecided] = list(product((-1.0, 1.0), repeat=undecided.size))
        ambiguous[r] = bool(np.any(vote(tries) != winner[r]))
    return ambiguous


def _total_counts(machines: list[MachineLoo]) -> dict[str, float]:
    """Sum the counts of the machines."""
    totals: dict[str, float] = {}
    for machine in machines:
        for name, count in machine.counts.items():
            totals[name] = totals.get(name, 0.0) + count
    return totals


def _hardest(machines: list[MachineLoo]) -> np.ndarray:
    """Name, for each sample, the costliest way it was settled over the machines."""
    codes = np.column_stack([m.settled_by for m in machines])
    cost = np.arange(1, len(SETTLED_BY) + 1)
    cost[UNTOUCHED] = 0
    worst = np.argmax(cost[codes], axis=1)
    return np.array(SETTLED_BY)[codes[np.arange(codes.shape[0]), worst]]
