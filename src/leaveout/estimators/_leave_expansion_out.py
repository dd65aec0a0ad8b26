# SPDX-License-Identifier: BSD-3-Clause
"""Leave samples out of classifiers by linear programs: what applies, and what not."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from leaveout.estimators._expansion import (
    ExpansionClassifier,
    make_expansion_task,
)
from leaveout.estimators._frozen import transform_once
from leaveout.estimators._task import Task
from leaveout.estimators._unwrap import Model
from leaveout.loo import MachineLoo
from leaveout.run import blas_threads, count_threads


def adapt_expansion(
    model: Model, X: Any, y: Any, sample_weight: Any, *, stacklevel: int
) -> tuple[ExpansionClassifier, Task]:
    """Return an unfitted clone and what it is to be fitted on."""
    classifier = clone(model.svc)
    if model.steps:
        X = transform_once(model.steps, X, y, stacklevel=stacklevel + 1)
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
    classifier: ExpansionClassifier, task: Task, name: str, n_jobs: int | None
) -> list[MachineLoo]:
    """Leave everybody out of every machine."""
    with blas_threads(1):
        return classifier._leave_out_all(task, name, count_threads(n_jobs))
