# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout audit``: samples that may be mislabelled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leaveout.cli import _options as opt
from leaveout.cli._command import at_terminal, command


@command
def audit(
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
    top: opt.Top = 20,
    output: opt.Output = None,
    n_jobs: opt.Jobs = 1,
    as_json: opt.Json = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """List the samples whose labels the rest of the data contradict, worst first."""
    from leaveout.assess._suspects import suspects
    from leaveout.cli._question import run_question
    from leaveout.tables._files import insert_names, to_records

    def find(svc: Any, prepared: Any) -> Any:
        found = suspects(
            svc,
            prepared.X,
            prepared.dataset.y,
            ids=prepared.names,
            top=top,
            groups=prepared.dataset.groups,
            n_jobs=n_jobs,
            verbose=int(verbose or at_terminal()),
        )
        return replace(found, id_name=prepared.dataset.id_name or "row")

    how = (sep, decimal, encoding, no_standardize)
    table = opt.TableOptions(data, target, id_column, groups, drop, categorical, *how)
    model = opt.ModelOptions(kernel, class_weight, n_jobs, C, gamma, degree, coef0)
    answer = run_question(table, model, find, output)
    found, dataset = answer.found, answer.prepared.dataset
    frame = found.to_frame().assign(row=found.rows + 1)  # counted from 1
    details = {
        "error": found.error,
        "n_flagged": found.n_flagged,
        "suspects": to_records(frame.reset_index(names="id")),
    }
    if dataset.ids is not None:
        insert_names(frame, dataset.id_name or "id", frame.index)
    answer.give(details, frame, output, as_json=as_json, verbose=verbose)
