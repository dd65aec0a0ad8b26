# SPDX-License-Identifier: BSD-3-Clause
"""``leave_one_out``: from an estimator and data to a LooResult."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.estimators._adapt import adapt_model, as_leaveout_svc
from leaveout.estimators._check import (
    INDEFINITE,
    check_flag,
    check_groups,
    check_kernel_size,
    check_preprocessing,
    check_sample_weight,
    count_rows,
)
from leaveout.estimators._decide import decide_one_vs_one
from leaveout.estimators._expansion import ExpansionClassifier
from leaveout.estimators._folds import refit_folds
from leaveout.estimators._leave_expansion_out import (
    adapt_expansion,
    check_expansion_options,
    leave_expansion_out,
)
from leaveout.estimators._machines import (
    Plan,
    all_certified,
    hardest,
    learns_nothing,
    total_counts,
)
from leaveout.estimators._one_vs_rest import decide_one_vs_rest
from leaveout.estimators._room import check_room
from leaveout.estimators._svc import SVC
from leaveout.estimators._task import Target, Task, make_target
from leaveout.estimators._unwrap import MACHINES, Model, unwrap
from leaveout.exceptions import CertificateWarning, SingletonClassWarning
from leaveout.kernel import is_psd, may_be_indefinite
from leaveout.loo import (
    GROUP_METHODS,
    LABEL_METHODS,
    LooMethod,
    LooResult,
    MachineLoo,
    find_method,
)
from leaveout.run import blas_threads, count_threads, count_workers


def leave_one_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    method: str = "auto",
    groups: Any = None,
    balanced: str = "frozen",
    labels_only: bool = False,
    preprocessing: str = "frozen",
    score_sample_weight: Any = None,
    method_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> LooResult:
    """Leave every sample out once, exactly, for about the price of one fit.

    The answer for sample r is that of the classifier trained on all samples but r,
    with the same C, kernel and weights. ``gamma="scale"`` and
    ``class_weight="balanced"`` are resolved once, on all rows.

    Parameters
    ----------
    estimator : SVC, LPMClassifier, LOOMClassifier, LLWClassifier, Pipeline that \
            ends in one, or OneVsRestClassifier of an SVC
        scikit-learn's SVC or ours. It need not be fitted and is not changed. An
        LPMClassifier has the methods "walk" and "refit", a LOOMClassifier "refit" and
        "bound": each sample by the machine of all, without its own term, whose error is
        ``loo_bound_``, and which certifies nothing; an LLWClassifier has "walk" and
        "refit". To these three, groups,
        ``balanced="fold"`` and ``preprocessing="refit"`` do not apply, and
        ``labels_only`` changes nothing.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed". With a Pipeline,
        whatever its first step takes.
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample, as in ``fit``. A sample with weight 0 is never trained
        on and gets the answer of the full classifier. The steps of a Pipeline do not
        get the weights.
    method : {"auto", "walk", "refit", "stopping", "consolidated", "magic"}, \
            default="auto"
        "walk" follows the optimum as the sample fades out; "refit" solves n problems;
        "stopping" solves them only until the labels are proved, and gives labels only,
        as with ``labels_only=True``; "consolidated" and "magic" solve all of them at
        once, with and without leaving known coefficients aside. All give the same
        labels.
    groups : array-like of shape (n_samples,), default=None
        Samples with equal entries are left out together, as with LeaveOneGroupOut:
        replicates, subjects, batches, or the folds of K-fold.
    balanced : {"frozen", "fold"}, default="frozen"
        With ``class_weight="balanced"``: whether the weights are those of all rows, or
        those of the rows that are left, as a refit by scikit-learn has them. The second
        refits every sample or group.
    labels_only : bool, default=False
        Stop as soon as the label of a sample is known. Its decision value is then not
        the final one, only on the right side of zero. Where values decide, among
        three classes or more with OneVsRestClassifier or ``break_ties``, it changes
        nothing.
    preprocessing : {"frozen", "refit"}, default="frozen"
        What happens to the steps of a Pipeline before the SVC. "frozen": fitted once,
        as clones, on all rows; a warning says so, and a step whose output depends on y
        is refused. "refit": the whole Pipeline is fitted anew without each sample or
        group, as cross_val_predict does; ``gamma="scale"`` and
        ``class_weight="balanced"`` are then resolved anew too. Without a Pipeline both
        are the same. The Pipeline's ``memory`` is not used.
    score_sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples in ``error``.
    method_params : mapping, default=None
        Parameters of the method alone. "refit": ``eps`` and ``seed``; "stopping": these
        and ``condition`` and ``n_trial``; "consolidated": ``rule``; see
        :func:`leaveout.loo.loo_refit`, :func:`leaveout.loo.loo_stopping` and
        :func:`leaveout.loo.loo_consolidated`. With ``eps`` labels that are not
        certified are optimal within eps only.
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
    weights = None
    if score_sample_weight is not None:
        weights = check_sample_weight(
            score_sample_weight, count_rows(X), "score_sample_weight"
        )
    model = unwrap(estimator, MACHINES)
    svc: SVC | ExpansionClassifier
    task: Target
    if isinstance(model.svc, ExpansionClassifier):
        name = check_expansion_options(
            model, method, method_params, groups, balanced, preprocessing
        )
        svc, task = adapt_expansion(model, X, y, sample_weight, stacklevel=3)
        _warn_singletons(task)
        machines = leave_expansion_out(svc, task, name, n_jobs)
        model, codes, definite = replace(model, one_vs_rest=True), None, True
    elif model.in_pipeline and preprocessing == "refit":
        svc, task, codes, machines = _refit_pipeline(
            model, X, y, sample_weight, method, method_params, groups, n_jobs
        )
        name, definite = "refit", True
    else:
        check_room(model.svc, X, method)
        svc, task = adapt_model(model, X, y, sample_weight, stacklevel=3)
        plan, definite = make_plan(
            svc,
            task,
            method,
            groups,
            balanced,
            n_jobs,
            params=method_params,
            labels_only=labels_only,
            values_decide=values_decide(model, svc, task),
        )
        name, codes = plan.name, plan.groups
        with blas_threads(1):
            machines = plan.leave_out_all(task)
    seconds = perf_counter() - started
    return summarise(
        model, svc, task, machines, name, definite, seconds, weights, groups=codes
    )


def summarise(
    model: Model,
    svc: Any,
    task: Target,
    machines: list[MachineLoo],
    method: str,
    definite: bool,
    seconds: float,
    weights: FloatArray | None = None,
    groups: IntArray | None = None,
) -> LooResult:
    """Put the machines of a classifier together."""
    decided = (
        decide_one_vs_rest(task, machines, groups)
        if model.one_vs_rest
        else decide_one_vs_one(svc, task, machines)
    )
    return LooResult(
        **decided,
        y=task.labels,
        certified=all_certified(machines) & definite,
        settled_by=hardest(machines),
        method=method,
        counts={**total_counts(machines), "seconds": seconds},
        weights=weights,
        groups=groups,
        machine_values=np.column_stack([machine.values for machine in machines]),
        anti_learning=learns_nothing(machines, decided["predictions"], task.labels),
    )


def choose_method(
    svc: SVC,
    task: Task,
    method: str,
    stacklevel: int = 3,
    params: Mapping[str, Any] | None = None,
) -> tuple[str, LooMethod, bool]:
    """Return the method by name, and whether the kernel is positive semi-definite."""
    name, function = find_method(method, params)
    if not may_be_indefinite(svc.kernel, svc.coef0) or is_psd(task.K):
        return name, function, True
    check_kernel_size(task.K, INDEFINITE)
    if method not in ("auto", "refit") or params:
        given = f" with method_params={dict(params)}" if params else ""
        raise ValueError(
            f"method={method!r}{given} needs a positive semi-definite kernel; "
            f"{svc.kernel!r} is not on these data. Use method='refit' (not "
            "certified), or another kernel."
        )
    warnings.warn(
        f"The kernel {svc.kernel!r} is not positive semi-definite on these data: "
        "every sample is refitted, and nothing is certified. Use another kernel, or "
        "other parameters of it.",
        CertificateWarning,
        stacklevel=stacklevel,
    )
    return (*find_method("refit"), False)


def values_decide(model: Model, svc: SVC, task: Target) -> bool:
    """Whether the values of the machines, not only their signs, make the label."""
    return len(task.classes) > 2 and (model.one_vs_rest or svc.break_ties)


def make_plan(
    svc: SVC,
    task: Task,
    method: str,
    groups: Any,
    balanced: str,
    n_jobs: int | None,
    *,
    params: Mapping[str, Any] | None = None,
    labels_only: bool = False,
    values_decide: bool = False,
    stacklevel: int = 4,
) -> tuple[Plan, bool]:
    """Check how samples are to be left out; also, whether the kernel is definite."""
    name, function, definite = choose_method(svc, task, method, stacklevel, params)
    if balanced not in ("frozen", "fold"):
        raise ValueError(f"balanced must be 'frozen' or 'fold'; got {balanced!r}.")
    rebalance = balanced == "fold" and svc.class_weight == "balanced"
    _check_reach(name, params, groups is not None or rebalance, values_decide)
    codes = None if groups is None else check_groups(groups, task.C)
    if codes is None:
        _warn_singletons(task, stacklevel)
    plan = Plan(
        name,
        function,
        count_threads(n_jobs),
        labels_only=labels_only and not values_decide,
        groups=codes,
        rebalance=rebalance,
    )
    return plan, definite


def _check_reach(
    name: str, params: Mapping[str, Any] | None, grouped: bool, values_decide: bool
) -> None:
    """Raise if the method does not apply to what is asked."""
    if grouped and (name not in GROUP_METHODS or params):
        given = f" with method_params={dict(params)}" if params else ""
        raise ValueError(
            f"method={name!r}{given} leaves out single samples with fixed boxes. With "
            "groups or balanced='fold' use method='walk' or 'refit' as they are."
        )
    if values_decide and name in LABEL_METHODS:
        raise ValueError(
            f"method={name!r} gives the signs of the machines, and here their values "
            "decide among three classes or more. Use method='walk', 'refit', "
            "'consolidated' or 'magic'."
        )


def _refit_pipeline(
    model: Model,
    X: Any,
    y: Any,
    sample_weight: Any,
    method: str,
    params: Mapping[str, Any] | None,
    groups: Any,
    n_jobs: int | None,
) -> tuple[SVC, Target, IntArray | None, list[MachineLoo]]:
    """Fit the whole Pipeline without each sample or group."""
    if method not in ("auto", "refit") or params:
        given = f" with method_params={dict(params)}" if params else ""
        raise ValueError(
            f"method={method!r}{given} needs one Gram matrix for all samples, and "
            "preprocessing='refit' makes one for each. Use method='refit', or "
            "preprocessing='frozen'."
        )
    svc = as_leaveout_svc(model.svc)
    target = make_target(y, count_rows(X), sample_weight)
    codes = None if groups is None else check_groups(groups, target.weights)
    if codes is None:
        _warn_singletons(target, stacklevel=4)
    n_workers = count_workers(n_jobs)
    with blas_threads(1):
        machines = refit_folds(
            model, svc, X, target, codes, n_workers=n_workers, stacklevel=4
        )
    return svc, target, codes, machines


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
