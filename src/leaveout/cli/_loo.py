# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout loo``: the leave-one-out error of one classifier."""

from __future__ import annotations

from typing import Any

from leaveout.cli import _options as opt
from leaveout.cli._command import command


@command
def loo(
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
    output: opt.Output = None,
    n_jobs: opt.Jobs = 1,
    as_json: opt.Json = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Leave every sample out of one classifier; by default the best one."""
    from leaveout.assess._leave_one_out import leave_one_out
    from leaveout.cli._question import run_question
    from leaveout.report._select_report import describe_result
    from leaveout.tables._files import insert_names

    def leave_out(svc: Any, prepared: Any) -> Any:
        y, groups = prepared.dataset.y, prepared.dataset.groups
        return leave_one_out(svc, prepared.X, y, groups=groups, n_jobs=n_jobs)

    how = (sep, decimal, encoding, no_standardize)
    table = opt.TableOptions(data, target, id_column, groups, drop, categorical, *how)
    model = opt.ModelOptions(kernel, class_weight, n_jobs, C, gamma, degree, coef0)
    answer = run_question(table, model, leave_out, output)
    frame, prepared = answer.found.to_frame(), answer.prepared
    insert_names(frame, prepared.dataset.id_name or "row", prepared.names)
    details = describe_result(answer.found)
    answer.give(details, frame, output, as_json=as_json, verbose=verbose)
