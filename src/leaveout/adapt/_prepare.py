# SPDX-License-Identifier: BSD-3-Clause
"""From a user's estimator and data to a task and a plan.

From the estimator a user has to our SVC and what it is to be fitted on.

``leave_one_out``: from an estimator and data to a LooResult.

Leave samples out of classifiers by linear programs: what applies, and what not.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import (
    INDEFINITE,
    check_groups,
    check_kernel_size,
)
from leaveout.adapt._pipeline import fit_steps_once
from leaveout.adapt._unwrap import Model, unwrap
from leaveout.estimators._base import KernelClassifier, make_expansion_task
from leaveout.estimators._svc import SVC
from leaveout.exceptions import CertificateWarning, SingletonClassWarning
from leaveout.kernel._gram import may_be_indefinite
from leaveout.kernel._symmetric import is_psd
from leaveout.loo._leave_out import (
    Plan,
    all_certified,
    costliest_step,
    mostly_anti_learning,
    total_counts,
)
from leaveout.loo._multiclass import decide_one_vs_one, decide_one_vs_rest
from leaveout.loo._result import LooResult
from leaveout.loo._task import (
    Target,
    Task,
    make_one_vs_rest_task,
    make_task,
)
from leaveout.methods import GROUP_METHODS, LABEL_METHODS, LooMethod, find_method
from leaveout.run._parallel import count_threads, limit_blas

if TYPE_CHECKING:
    from leaveout.engine._problem import LooIntervals

SHARED_PARAMETERS = (
    "C",
    "kernel",
    "degree",
    "gamma",
    "coef0",
    "class_weight",
    "decision_function_shape",
    "break_ties",
)


def adapt_svc(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None
) -> tuple[SVC, Task]:
    """Return our SVC with the estimator's parameters, and what it is to be fitted on.

    Parameters
    ----------
    estimator : SVC, or Pipeline that ends in one
        scikit-learn's SVC or ours. It need not be fitted and is not changed. Of
        scikit-learn's SVC, ``tol``, ``max_iter``, ``cache_size``, ``shrinking``,
        ``probability``, ``verbose`` and ``random_state`` are ignored: they steer
        LIBSVM, not the optimum. The steps of a Pipeline are fitted once on all rows,
        as clones, without its ``memory``; a warning says so.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed". With a Pipeline,
        whatever its first step takes.
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample, >= 0.

    Returns
    -------
    svc : SVC
        Unfitted.
    task : Task
        Classes, Gram matrix over all rows, boxes; gamma and balanced class weights are
        resolved once, on all rows.

    Raises
    ------
    TypeError
        For any other estimator, with advice on what to use instead.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> svc, task = adapt_svc(SVC(C=3, gamma=0.5), [[0.0], [1.0], [2.0]], [0, 0, 1])
    >>> svc
    SVC(C=3, gamma=0.5)
    >>> task.C, task.codes
    (array([3., 3., 3.]), array([0, 0, 1]))
    """
    model = unwrap(estimator)
    if model.one_vs_rest:
        raise TypeError(
            "OneVsRestClassifier goes into leave_one_out only. Pass the SVC itself, "
            "which treats more than two classes one-vs-one."
        )
    return adapt_model(model, X, y, sample_weight, stacklevel=4)


def adapt_model(
    model: Model, X: Any, y: Any, sample_weight: Any = None, *, stacklevel: int
) -> tuple[SVC, Task]:
    """Do what :func:`adapt_svc` does, for one-vs-rest too: ask ``task.machines``.

    Warnings name the line ``stacklevel`` above.
    """
    svc = as_leaveout_svc(model.svc)
    if model.steps:
        X = fit_steps_once(model.steps, X, y, stacklevel=stacklevel + 1)
    make = make_one_vs_rest_task if model.one_vs_rest else make_task
    return svc, make(svc, X, y, sample_weight)


def as_leaveout_svc(estimator: Any) -> SVC:
    """Return an unfitted leaveout.SVC with the parameters of the estimator."""
    if isinstance(estimator, SVC):
        return clone(estimator)
    return SVC(**{name: getattr(estimator, name) for name in SHARED_PARAMETERS})


def assemble_result(
    model: Model,
    svc: Any,
    task: Target,
    machines: list[LooIntervals],
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
        settled_by=costliest_step(machines),
        method=method,
        counts={**total_counts(machines), "seconds": seconds},
        weights=weights,
        groups=groups,
        machine_values=np.column_stack([machine.values for machine in machines]),
        anti_learning=mostly_anti_learning(
            machines, decided["predictions"], task.labels
        ),
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


def adapt_expansion(
    model: Model, X: Any, y: Any, sample_weight: Any, *, stacklevel: int
) -> tuple[KernelClassifier, Task]:
    """Return an unfitted clone and what it is to be fitted on."""
    classifier = clone(model.svc)
    if model.steps:
        X = fit_steps_once(model.steps, X, y, stacklevel=stacklevel + 1)
    return classifier, make_expansion_task(classifier, X, y, sample_weight)


def check_expansion_options(
    model: Model,
    method: str,
    params: Any,
    groups: Any,
    balanced: str,
    preprocessing: str,
) -> str:
    """Return the name of the method; ValueError for what the classifier cannot do."""
    kind, methods = type(model.svc).__name__, list(model.svc._loo_methods())
    name = methods[0] if method == "auto" else method
    if name not in methods:
        known = ", ".join(repr(name) for name in ["auto", *methods])
        raise ValueError(
            f"method={method!r} does not apply to {kind}. Use one of {known}."
        )
    refused = {
        "method_params": params,
        "groups": groups is not None,
        "balanced='fold'": balanced == "fold" and model.svc.class_weight == "balanced",
        "preprocessing='refit'": model.in_pipeline and preprocessing == "refit",
    }
    for what, given in refused.items():
        if given:
            raise ValueError(
                f"{what} does not apply to {kind}: single samples are left out, "
                "with weights and preprocessing as on all rows. Use "
                "sklearn.model_selection.cross_val_predict for refits."
            )
    return name


def leave_expansion_out(
    classifier: KernelClassifier, task: Task, name: str, n_jobs: int | None
) -> list[LooIntervals]:
    """Leave everybody out of every machine."""
    with limit_blas(1):
        return classifier._leave_out_all(task, name, count_threads(n_jobs))
