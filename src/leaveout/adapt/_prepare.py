# SPDX-License-Identifier: BSD-3-Clause
"""From a user's estimator and data to a task and a plan.

Public functions call ``prepare`` for both; ``fit`` calls ``fit_task`` for the task.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout.adapt._checks import (
    check_features,
    check_flag,
    check_groups,
    check_kernel_size,
    check_labels,
    check_memory,
    check_numbers,
    check_params,
    check_preprocessing,
    check_sample_weight,
    count_rows,
)
from leaveout.adapt._pipeline import fit_steps_once, refit_folds, warn_frozen
from leaveout.adapt._unwrap import SVM_ONLY, Model, read_params, unwrap
from leaveout.exceptions import CertificateWarning, SingletonClassWarning
from leaveout.kernel._gram import (
    KERNELS,
    kernel_parameters,
    make_gram,
    may_be_indefinite,
)
from leaveout.kernel._symmetric import is_psd
from leaveout.loo._family import FAMILIES, Family
from leaveout.loo._leave_out import Plan
from leaveout.loo._task import (
    Params,
    Target,
    Task,
    make_numbers,
    make_target,
    make_task,
)
from leaveout.methods import METHODS, Method, bind_params
from leaveout.run._parallel import count_threads


def prepare(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    method: str = "auto",
    method_params: Mapping[str, Any] | None = None,
    preprocessing: str = "fold",
    labels_only: bool = False,
    n_jobs: int | None = None,
    C: float | None = None,
    families: tuple[str, ...] = SVM_ONLY,
    singletons: bool = True,
    psd_for: str = "",
    frozen_for: str = "",
    stacklevel: int = 3,
) -> tuple[Task, Plan]:
    """Check all arguments, compute the Gram matrix once, and plan the leave-one-out.

    Parameters
    ----------
    estimator, X, y, sample_weight, groups, method, method_params, preprocessing, \
            labels_only, n_jobs
        As in :func:`leaveout.leave_one_out`.
    C : float, optional
        Replaces the estimator's own C, for a list of C.
    families : tuple of str
        Families that the caller supports.
    singletons : bool, default=True
        Whether to warn about classes with one sample.
    psd_for : str, default=""
        Name of the calling function, if it requires a positive semi-definite kernel.
    frozen_for : str, default=""
        Name of the calling function, if it can only fit the steps of a Pipeline once on
        all rows; gamma="scale" and balanced class weights are then resolved there, too.
    stacklevel : int, default=3
        As in ``warnings.warn``; 3 is the caller of the function that calls this one.

    Returns
    -------
    task : Task
        Target, Gram matrix and upper bounds; gamma and balanced class weights are
        resolved on all rows. No Gram matrix if every fold has a kernel of its own.
    plan : Plan
        How samples are left out.
    """
    check_flag("labels_only", labels_only)
    check_preprocessing(preprocessing)
    n_threads = count_threads(n_jobs)
    model = unwrap(estimator, families)
    if C is not None:
        model = replace(model, params=replace(model.params, C=C))
    params, family = model.params, FAMILIES[model.params.family]
    in_folds = preprocessing == "fold" and not frozen_for
    rebalance = in_folds and params.class_weight == "balanced"
    own_kernels = in_folds and _follows_fold(model)
    own_kernels |= rebalance and not family.leaves_groups_out
    rebalance &= not own_kernels  # folds with a kernel of their own have own weights
    name, chosen = _find_method(family, method)
    _check_family_options(family, method_params, groups)
    options = bind_params(name, chosen, method_params) if method_params else {}
    if "verbose" in chosen.takes:
        options["verbose"] = params.verbose > 0
    if own_kernels:
        _check_fold_method(model, family, method, method_params)
    check_memory(model.estimator, X, method)
    source = None
    if own_kernels:
        if not model.steps:
            X = check_features(model.estimator, X, reset=None)
        task = _task_without_gram(model, X, y, sample_weight)
        if method != "refit" and has_fold_kernels(params):
            # Here, because it imports a large part of scikit-learn.
            from leaveout.adapt._folds import leave_folds_out

            source = partial(leave_folds_out, model, X)
        else:
            if family.leaves_groups_out:
                name, chosen = "refit", family.methods["refit"]
            if psd_for:
                raise ValueError(
                    f"{psd_for} cannot fit steps or gamma='scale' in each fold with "
                    f"the kernel {params.kernel!r}. Use preprocessing='frozen', or a "
                    f"number for gamma."
                )
            source = partial(
                refit_folds, model, X, n_jobs=n_jobs, stacklevel=stacklevel + 1
            )
    else:
        task = _task(model, X, y, sample_weight, frozen_for, stacklevel + 1)
        if task.gram.definite is False:
            _check_indefinite(task, psd_for, method, method_params, stacklevel + 1)
            name, chosen = "refit", family.methods["refit"]
    values_decide = len(task.target.classes) > 2 and (
        params.one_vs_rest or params.break_ties
    )
    grouped = groups is not None or rebalance
    _check_reach(name, chosen, method_params, grouped, values_decide)
    weights = task.target.weights if own_kernels else task.C
    codes = None if groups is None else check_groups(groups, weights)
    if np.count_nonzero(weights) < 2:
        raise ValueError(
            "Leave-one-out needs more than 1 sample with a weight > 0: without it, no "
            "sample is left to train on."
        )
    if codes is None and singletons:
        warn_singletons(task.target, stacklevel + 1)
    labels_only = labels_only and not values_decide and family.target == "classes"
    return task, Plan(
        family, name, options, source, codes, rebalance, labels_only, n_threads
    )


def fit_task(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    params: Params | None = None,
) -> Task:
    """Check parameters and data of a classifier or regressor, and return its task.

    ``params`` replaces the estimator's own; the estimator is then not changed.
    """
    reset = True if params is None else None
    params = read_params(estimator) if params is None else params
    family = FAMILIES[params.family]
    check_params(params, hard_margin=family.hard_margin)
    X = check_features(estimator, X, reset=reset)
    target = checked_target(y, X.shape[0], sample_weight, family)
    check_memory(estimator, X)
    gram = make_gram(X, **params.kernel_options)
    if family.needs_psd and gram.definite is None:
        gram = replace(gram, definite=is_psd(gram.K))
    return make_task(target, gram, params, X, kernel_range=family.kernel_range)


def task_on_all_rows(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Task:
    """Return the task of the full model: steps, gamma and class weights of all rows."""
    model = unwrap(estimator, SVM_ONLY)
    labels = checked_y(y, count_rows(X), FAMILIES[model.params.family])
    X = fit_steps_once(model.steps, X, labels, may_use_labels=True)
    return fit_task(model.estimator, X, y, sample_weight, model.params)


def checked_y(y: Any, n_samples: int, family: Family) -> NDArray[Any]:
    """Return a checked copy of y: class labels, or the numbers of a regression."""
    check = check_numbers if family.target == "numbers" else check_labels
    return check(y, n_samples)


def checked_target(
    y: Any, n_samples: int, sample_weight: Any = None, family: Family = FAMILIES["svc"]
) -> Target:
    """Check y and weights; raise ValueError if there is only one class."""
    checked = checked_y(y, n_samples, family)
    weights = check_sample_weight(sample_weight, n_samples)
    make = make_numbers if family.target == "numbers" else make_target
    return make(checked, weights)


def warn_singletons(target: Target, stacklevel: int) -> None:
    """Warn about classes that vanish when their only member is left out."""
    for code, row in target.singletons():
        label = target.classes.tolist()[code]
        warnings.warn(
            f"Class {label!r} has only 1 sample (row {row}). It cannot be "
            "predicted when left out and counts as an error. Merge or drop the class.",
            SingletonClassWarning,
            stacklevel=stacklevel,
        )


def _task(
    model: Model,
    X: Any,
    y: Any,
    sample_weight: Any,
    frozen_for: str,
    stacklevel: int,
) -> Task:
    """Return the task on all samples, with the Pipeline's steps fitted once."""
    if model.steps:
        checked = checked_y(y, count_rows(X), FAMILIES[model.params.family])
        X = fit_steps_once(model.steps, X, checked)
        if frozen_for:
            warn_frozen(model.steps, frozen_for, stacklevel + 1)
    return fit_task(model.estimator, X, y, sample_weight, model.params)


def _follows_fold(model: Model) -> bool:
    """Whether the kernel of a fold depends on the rows that it leaves out."""
    return bool(model.steps) or _scales_gamma(model.params)


def _scales_gamma(params: Params) -> bool:
    """Whether gamma is computed from the variance of the rows."""
    has_gamma = "gamma" in kernel_parameters(params.kernel)
    return has_gamma and isinstance(params.gamma, str) and params.gamma == "scale"


def has_fold_kernels(params: Params) -> bool:
    """Whether folds can start from the solution on all samples."""
    return (
        FAMILIES[params.family].needs_psd
        and params.kernel in KERNELS
        and not may_be_indefinite(params.kernel, params.coef0)
    )


def _task_without_gram(model: Model, X: Any, y: Any, sample_weight: Any) -> Task:
    """Return the task of a Pipeline whose steps are fitted in each fold."""
    check_params(model.params)
    family = FAMILIES[model.params.family]
    target = checked_target(y, count_rows(X), sample_weight, family)
    ones = np.ones(len(target.classes))
    return Task(target, model.params, None, target.weights, ones)  # type: ignore[arg-type]


def _find_method(family: Family, method: str) -> tuple[str, Method]:
    """Return the method by name; "auto" is the first one."""
    name = next(iter(family.methods)) if method == "auto" else method
    if name not in family.methods:
        known = ", ".join(map(repr, ["auto", *family.methods]))
        what = "is not known"
        if name in METHODS:
            what = f"does not apply to {family.name}"
        raise ValueError(f"method={name!r} {what}. Use one of {known}.")
    return name, family.methods[name]


def _check_family_options(family: Family, method_params: Any, groups: Any) -> None:
    """Refuse options that need methods for more than single samples."""
    if family.leaves_groups_out:
        return
    for what, given in {"method_params": method_params, "groups": groups}.items():
        if given is not None:
            raise ValueError(
                f"{family.name} does not support {what}: only single samples are left "
                "out. Use sklearn.model_selection.cross_val_predict for other folds."
            )


def _check_fold_method(
    model: Model,
    family: Family,
    method: str,
    method_params: Mapping[str, Any] | None,
) -> None:
    """Raise if a method needs one Gram matrix for all folds."""
    if model.params.kernel == "precomputed" and not family.leaves_groups_out:
        raise ValueError(
            f"{family.name} with kernel='precomputed': steps of a Pipeline and "
            "balanced class weights cannot be fitted in each fold. Use "
            "preprocessing='frozen'."
        )
    if method in ("auto", "walk", "refit") and not method_params:
        return
    why, instead = "the steps of the Pipeline are fitted", ""
    if not model.steps:
        why, instead = "gamma='scale' is computed", "a number for gamma, "
    raise ValueError(
        f"method={method!r}{_given(method_params)} needs one Gram matrix for all "
        f"samples, but {why} in each fold. Use {instead}preprocessing='frozen' or "
        "method='auto'."
    )


def _check_indefinite(
    task: Task,
    psd_for: str,
    method: str,
    method_params: Mapping[str, Any] | None,
    stacklevel: int,
) -> None:
    """Warn that every fold is refitted; raise if the function or method cannot."""
    kernel = task.params.kernel
    if psd_for:
        raise ValueError(
            f"{psd_for} needs a positive semi-definite kernel; {kernel!r} is not on "
            "these data. Use leave_one_out(..., method='refit') or another kernel."
        )
    check_kernel_size(task.K, "A kernel that is not positive semi-definite")
    if method not in ("auto", "refit") or method_params:
        raise ValueError(
            f"method={method!r}{_given(method_params)} needs a positive semi-definite "
            f"kernel; {kernel!r} is not on these data. Use method='refit' (not "
            "certified) or another kernel."
        )
    warnings.warn(
        f"The kernel {kernel!r} is not positive semi-definite on these data: "
        "every sample is left out by a refit, and nothing is certified. Use another "
        "kernel or other kernel parameters.",
        CertificateWarning,
        stacklevel=stacklevel,
    )


def _check_reach(
    name: str,
    method: Method,
    params: Mapping[str, Any] | None,
    grouped: bool,
    values_decide: bool,
) -> None:
    """Raise if the method does not apply."""
    if grouped and ("groups" not in method.takes or params):
        raise ValueError(
            f"method={name!r}{_given(params)} leaves out single samples with fixed "
            "upper bounds. With groups or class_weight='balanced' use method='walk' or "
            "'refit' without method_params, or preprocessing='frozen'."
        )
    if values_decide and "values" not in method.takes:
        raise ValueError(
            f"method={name!r} gives only the signs of the binary subproblems, but here "
            "their values decide between three or more classes. Use method='walk', "
            "'refit', 'consolidated' or 'magic'."
        )


def _given(params: Mapping[str, Any] | None) -> str:
    return f" with method_params={dict(params)}" if params else ""
