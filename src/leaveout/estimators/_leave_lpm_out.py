# SPDX-License-Identifier: BSD-3-Clause
"""Leave samples out of an LPMClassifier: what applies to it, and what does not."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from leaveout.estimators._frozen import transform_once
from leaveout.estimators._lpm import LPMClassifier, lpm_problems, make_lpm_task
from leaveout.estimators._task import Task
from leaveout.estimators._unwrap import Model
from leaveout.loo import LPM_METHODS, MachineLoo
from leaveout.run import blas_threads, count_threads


def adapt_lpm(
    model: Model, X: Any, y: Any, sample_weight: Any, *, stacklevel: int
) -> tuple[LPMClassifier, Task]:
    """Return an unfitted clone and what it is to be fitted on."""
    lpm = clone(model.svc)
    if model.steps:
        X = transform_once(model.steps, X, y, stacklevel=stacklevel + 1)
    return lpm, make_lpm_task(lpm, X, y, sample_weight)


def check_lpm_options(
    model: Model,
    method: str,
    params: Any,
    groups: Any,
    balanced: str,
    preprocessing: str,
) -> str:
    """Return the name of the method; ValueError for what an LPMClassifier cannot do."""
    name = "walk" if method == "auto" else method
    known = ", ".join(repr(name) for name in ["auto", *LPM_METHODS])
    if name not in LPM_METHODS:
        raise ValueError(
            f"method={method!r} does not apply to LPMClassifier. Use one of {known}."
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
                f"{what} does not apply to LPMClassifier: single samples are left out, "
                "with weights and preprocessing as on all rows. Use "
                "sklearn.model_selection.cross_val_predict for refits."
            )
    return name


def leave_lpm_out(task: Task, name: str, n_jobs: int | None) -> list[MachineLoo]:
    """Leave everybody out of every machine."""
    method, n_threads = LPM_METHODS[name], count_threads(n_jobs)
    with blas_threads(1):
        return [method(p, n_threads=n_threads) for p in lpm_problems(task)]
