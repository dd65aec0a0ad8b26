# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout bounds``: bounds and estimates beside the exact error."""

from __future__ import annotations

from typing import Any

from leaveout.cli import _options as opt
from leaveout.cli._command import command


@command
def bounds(
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
    C: opt.C = None,
    gamma: opt.Gamma = None,
    degree: opt.Degree = None,
    coef0: opt.Coef0 = None,
    n_jobs: opt.Jobs = 1,
    as_json: opt.Json = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Compare bounds and estimates of the error with the exact one."""
    from leaveout.assess._bounds import loo_bounds
    from leaveout.cli._question import run_question
    from leaveout.report._select_report import describe_bounds

    def compare(svc: Any, prepared: Any) -> Any:
        if prepared.dataset.groups is not None:
            raise ValueError("The bounds are for single samples; omit --groups.")
        return loo_bounds(svc, prepared.X, prepared.dataset.y, n_jobs=n_jobs)

    how = (sep, decimal, encoding, no_standardize)
    table = opt.TableOptions(data, target, id_column, groups, drop, categorical, *how)
    model = opt.ModelOptions(kernel, class_weight, n_jobs, C, gamma, degree, coef0)
    answer = run_question(table, model, compare)
    frame = answer.found.to_frame().reset_index()
    details = describe_bounds(answer.found)
    answer.give(details, frame, None, as_json=as_json, verbose=verbose)
