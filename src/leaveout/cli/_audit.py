# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout audit``: samples that may be mislabelled."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from leaveout.assess._suspects import Suspects, suspects
from leaveout.cli import _options as options
from leaveout.cli._command import at_terminal, command
from leaveout.cli._data import Prepared
from leaveout.cli._question import run_question
from leaveout.estimators._svc import SVC
from leaveout.tables._files import insert_names, to_records


@command
def audit(
    table: options.TableOptions,
    machine: options.MachineOptions,
    talk: options.TalkOptions,
    top: Annotated[int, typer.Option(min=1, help="How many samples to list.")] = 20,
    output: options.OutputOption = None,
    n_jobs: options.JobsOption = 1,
) -> None:
    """List the samples whose label the others speak against, the worst first."""

    def find(svc: SVC, prepared: Prepared) -> Suspects:
        found = suspects(
            svc,
            prepared.X,
            prepared.dataset.y,
            ids=prepared.names,
            top=top,
            groups=prepared.dataset.groups,
            n_jobs=n_jobs,
            verbose=int(talk.verbose or at_terminal()),
        )
        return replace(found, id_name=prepared.dataset.id_name or "row")

    answer = run_question(table, machine, n_jobs, find, output)
    found, dataset = answer.found, answer.prepared.dataset
    frame = found.to_frame().assign(row=found.rows + 1)  # rows as people count
    named = frame.reset_index(names="id")
    details = {
        "error": found.error,
        "n_flagged": found.n_flagged,
        "suspects": to_records(named),
    }
    if dataset.ids is not None:
        insert_names(frame, dataset.id_name or "id", frame.index)
    answer.give(details, frame, output, talk)
