# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout bounds``: bounds and estimates beside the exact error."""

from __future__ import annotations

from leaveout.assess._bounds import LooBounds, loo_bounds
from leaveout.cli import _options as options
from leaveout.cli._command import command
from leaveout.cli._data import Prepared
from leaveout.cli._question import run_question
from leaveout.estimators._svc import SVC
from leaveout.report._select_report import describe_bounds


@command
def bounds(
    table: options.TableOptions,
    machine: options.MachineOptions,
    talk: options.TalkOptions,
    n_jobs: options.JobsOption = 1,
) -> None:
    """Compare bounds and estimates of the error of one machine with the exact one."""

    def compare(svc: SVC, prepared: Prepared) -> LooBounds:
        if prepared.dataset.groups is not None:
            raise ValueError(
                "The bounds are for single samples left out; leave --groups away."
            )
        return loo_bounds(svc, prepared.X, prepared.dataset.y, n_jobs=n_jobs)

    answer = run_question(table, machine, n_jobs, compare)
    frame = answer.found.to_frame().reset_index()
    answer.give(describe_bounds(answer.found), frame, None, talk)
