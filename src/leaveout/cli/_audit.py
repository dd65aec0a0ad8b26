# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout audit``: samples that may be mislabelled."""

from __future__ import annotations

import json
from typing import Annotated

import numpy as np
import typer

from leaveout.cli import _options as options
from leaveout.cli._machine import make_machine, parse_gamma
from leaveout.cli._prepared import load, prepare
from leaveout.cli._session import Clock, at_terminal, command, tell, warnings_told
from leaveout.estimators import suspects
from leaveout.report import describe_dataset, format_dataset
from leaveout.run import write_atomically


@command
def audit(
    data: options.DataArgument = None,
    target: options.TargetOption = None,
    top: Annotated[int, typer.Option(min=1, help="How many samples to list.")] = 20,
    C: options.PenaltyOption = None,
    gamma: options.GammaOption = None,
    kernel: options.KernelOption = options.Kernel.RBF,
    degree: options.DegreeOption = 3,
    coef0: options.Coef0Option = 0.0,
    class_weight: options.ClassWeightOption = None,
    standardize: options.StandardizeOption = True,
    id_column: options.IdOption = None,
    drop: options.DropOption = None,
    categorical: options.CategoricalOption = None,
    output: options.OutputOption = None,
    n_jobs: options.JobsOption = 1,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
    debug: options.DebugOption = False,
) -> None:
    """List the samples whose label all others together speak against."""
    clock, width = Clock(), parse_gamma(gamma)
    with clock.measure("reading"):
        dataset = load(
            data, target, id_column=id_column, drop=drop, categorical=categorical
        )
    with warnings_told() as warned:
        with clock.measure("preparing"):
            prepared = prepare(dataset, standardize=standardize)
            svc, model = make_machine(
                prepared,
                kernel=kernel.value,
                C=C,
                gamma=width,
                degree=degree,
                coef0=coef0,
                class_weight=class_weight and class_weight.value,
                n_jobs=n_jobs,
            )
        with clock.measure("leave-one-out"):
            ids = dataset.ids
            found = suspects(
                svc,
                prepared.X,
                dataset.y,
                ids=np.arange(1, len(dataset.y) + 1) if ids is None else ids,
                top=top,
                n_jobs=n_jobs,
                verbose=int(verbose or at_terminal()),
            )
    frame = found.to_frame().assign(row=found.rows + 1)  # rows as people count
    frame.index.name = dataset.id_name or "id"
    if output is not None:
        write_atomically(output, frame.to_csv(index=ids is not None).encode())
    if as_json:
        table = {
            **describe_dataset(dataset),
            "preparation": prepared.sentence,
            "model": model,
            "error": found.error,
            "suspects": json.loads(
                frame.reset_index(names="id").to_json(orient="records")
            ),
            "warnings": warned,
            "seconds": clock.seconds,
        }
        print(json.dumps(table, indent=2))
    else:
        print(format_dataset(dataset))
        print(f"{prepared.sentence}\n\n{model}\n{found}")
        if output is not None:
            print(f"Samples written to {output}")
    if verbose:
        tell(str(clock))
