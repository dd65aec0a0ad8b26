# SPDX-License-Identifier: BSD-3-Clause
"""One classifier: as typed, or chosen on the default grid if C or gamma is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leaveout.cli._command import (
    Clock,
    at_terminal,
    check_files_differ,
    collect_warnings,
    print_result,
    print_status,
)
from leaveout.cli._data import Prepared, load, prepare, search_grid
from leaveout.cli._options import (
    ModelOptions,
    TableOptions,
    complete_grid,
    parameters_of,
)
from leaveout.estimators._svc import SVC
from leaveout.report._select_report import describe_dataset
from leaveout.report._text import format_dataset, format_model
from leaveout.run._files import write_atomically
from leaveout.tables._files import format_csv

if TYPE_CHECKING:
    from pandas import DataFrame

# What SVC takes where nothing is typed.
POLY_DEFAULTS = {"degree": 3, "coef0": 0.0}


@dataclass(frozen=True)
class Answer:
    """What a command found out about one classifier; ``str(found)`` is shown."""

    prepared: Prepared
    model: str
    parameters: dict[str, Any]
    found: Any
    warned: list[str]
    clock: Clock

    def give(
        self,
        details: dict[str, Any],
        table: DataFrame,
        output: Path | None,
        *,
        as_json: bool,
        verbose: bool,
    ) -> None:
        """Print it, as text or with its details as JSON; write the table if asked."""
        try:
            if output is not None:
                write_atomically(output, format_csv(table).encode())
        except BaseException:
            # A result is not lost with its file.
            self._print(details, None, as_json)
            raise
        self._print(details, output, as_json)
        if verbose:
            print_status(str(self.clock))

    def _print(
        self, details: dict[str, Any], output: Path | None, as_json: bool
    ) -> None:
        dataset, sentence = self.prepared.dataset, self.prepared.sentence
        if as_json:
            whole = {
                **describe_dataset(dataset),
                "preparation": sentence,
                "model": self.model,
                "parameters": self.parameters,
                **details,
                "warnings": self.warned,
                "seconds": self.clock.seconds,
            }
            print(json.dumps(whole, indent=2))
        else:
            print_result(format_dataset(dataset))
            print_result(f"{sentence}\n\n{self.model}\n{self.found}")
            if output is not None:
                print_result(f"Samples written to {output}")


def run_question(
    table: TableOptions,
    options: ModelOptions,
    question: Callable[[SVC, Prepared], Any],
    output: Path | None = None,
) -> Answer:
    """Read the samples, make the classifier, and ask a question about both."""
    check_files_differ({"DATA": table.data, "--output": output}, written=["--output"])
    clock = Clock()
    with collect_warnings() as warned:
        with clock.measure("reading"):
            dataset = load(table)
        with clock.measure("preparing"):
            prepared = prepare(dataset, standardize=not table.no_standardize)
            svc, params = _make_svc(prepared, options)
        with clock.measure("leave-one-out"):
            found = question(svc, prepared)
    model = format_model(options.kernel.value, params, svc.class_weight)
    return Answer(prepared, model, params, found, warned, clock)


def _make_svc(prepared: Prepared, options: ModelOptions) -> tuple[SVC, dict[str, Any]]:
    """Return an SVC not fitted yet, and its parameters."""
    svc, kernel = options.make_svc(), options.kernel.value
    given = {name: getattr(options, name) for name in ("C", "gamma", "degree", "coef0")}
    uses = parameters_of(kernel)
    for name, value in given.items():
        if value is not None and name not in uses:
            raise ValueError(f"--{name} has no meaning for --kernel {kernel}.")
    params: dict[str, Any] = {
        name: POLY_DEFAULTS.get(name) if value is None else value
        for name, value in given.items()
        if name in uses
    }
    if None in params.values():
        fixed = {name: [v] for name, v in params.items() if v is not None}
        grid = complete_grid(fixed, prepared.numbers, kernel)
        search = search_grid(
            prepared, grid, svc, n_jobs=options.n_jobs, verbose=at_terminal()
        )
        params = search.best_params_
        print_status("Parameters chosen by leave-one-out; --C and --gamma set them.")
    return svc.set_params(**params), params
