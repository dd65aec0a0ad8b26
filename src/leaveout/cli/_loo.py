# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout loo``: the leave-one-out error of one machine."""

from __future__ import annotations

from leaveout.assess._leave_one_out import leave_one_out
from leaveout.cli import _options as options
from leaveout.cli._command import command
from leaveout.cli._data import Prepared
from leaveout.cli._question import run_question
from leaveout.estimators._svc import SVC
from leaveout.loo._result import LooResult
from leaveout.report._select_report import describe_result
from leaveout.tables._files import insert_names


@command
def loo(
    table: options.TableOptions,
    machine: options.MachineOptions,
    talk: options.TalkOptions,
    output: options.OutputOption = None,
    n_jobs: options.JobsOption = 1,
) -> None:
    """Leave every sample out of one machine; without --C and --gamma, the best one."""

    def leave_out(svc: SVC, prepared: Prepared) -> LooResult:
        y, groups = prepared.dataset.y, prepared.dataset.groups
        return leave_one_out(svc, prepared.X, y, groups=groups, n_jobs=n_jobs)

    answer = run_question(table, machine, n_jobs, leave_out, output)
    frame = answer.found.to_frame()
    prepared = answer.prepared
    insert_names(frame, prepared.dataset.id_name or "row", prepared.names)
    answer.give(describe_result(answer.found), frame, output, talk)
