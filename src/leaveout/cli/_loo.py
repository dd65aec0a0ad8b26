# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout loo``: the leave-one-out error of one machine."""

from __future__ import annotations

import json

import numpy as np

from leaveout.cli import _options as options
from leaveout.cli._machine import make_machine, parse_gamma
from leaveout.cli._prepared import load, prepare
from leaveout.cli._session import Clock, command, tell, warnings_told
from leaveout.estimators import leave_one_out
from leaveout.report import describe_dataset, describe_result, format_dataset
from leaveout.run import write_atomically


@command
def loo(
    data: options.DataArgument = None,
    target: options.TargetOption = None,
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
    groups: options.GroupsOption = None,
    output: options.OutputOption = None,
    n_jobs: options.JobsOption = 1,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Leave every sample out of one machine; without --C and --gamma, the best one."""
    clock, width = Clock(), parse_gamma(gamma)
    with clock.measure("reading"):
        dataset = load(
            data,
            target,
            id_column=id_column,
            groups=groups,
            drop=drop,
            categorical=categorical,
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
            result = leave_one_out(
                svc, prepared.X, dataset.y, groups=dataset.groups, n_jobs=n_jobs
            )
    if output is not None:
        frame = result.to_frame()
        n = len(frame)
        ids = np.arange(1, n + 1) if dataset.ids is None else dataset.ids
        frame.insert(0, dataset.id_name or "row", ids, allow_duplicates=True)
        write_atomically(output, frame.to_csv(index=False).encode())
    if as_json:
        found = {
            **describe_dataset(dataset),
            "preparation": prepared.sentence,
            "model": model,
            **describe_result(result),
            "warnings": warned,
            "seconds": clock.seconds,
        }
        print(json.dumps(found, indent=2))
    else:
        print(format_dataset(dataset))
        print(f"{prepared.sentence}\n\n{model}\n{result}")
        if output is not None:
            print(f"Samples written to {output}")
    if verbose:
        tell(str(clock))
