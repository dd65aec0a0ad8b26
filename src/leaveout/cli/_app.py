# SPDX-License-Identifier: BSD-3-Clause
"""The commands, one per question; each imports what it needs when it runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import leaveout
from leaveout.cli import _options as opt
from leaveout.cli._command import command

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # with rich, --help takes twice as long
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leaveout {leaveout.__version__}")
        raise typer.Exit


@app.callback(
    epilog="Start with: leaveout select table.csv --target COLUMN. Without a table, "
    "the command runs on breast-cancer data."
)
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    """Exact leave-one-out cross-validation of support vector machines."""


@app.command(
    epilog="Example: leaveout select table.csv --target species --save model.skops"
)
@command
def select(
    *,
    table: opt.GroupedTableOptions,
    model: opt.KernelOptions,
    wanted: opt.SelectOptions,
    show: opt.ShowOptions,
) -> None:
    """Choose C and gamma by exact leave-one-out over a grid."""
    from leaveout.cli._select import run_select

    run_select(table, model, wanted, show)


@app.command(
    epilog="Example: leaveout loo table.csv --target species --C 10 --gamma 0.05"
)
@command
def loo(
    *,
    table: opt.GroupedTableOptions,
    model: opt.ModelOptions,
    output: opt.Output = None,
    n_jobs: opt.Jobs = 1,
    show: opt.ShowOptions,
) -> None:
    """Compute the leave-one-out error of one classifier."""
    from leaveout.cli._question import leave_out, run_question

    run_question(leave_out, table, model, n_jobs, show, output)


@app.command(epilog="Example: leaveout audit table.csv --target species --id sample")
@command
def audit(
    *,
    table: opt.GroupedTableOptions,
    model: opt.ModelOptions,
    top: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of samples to list.",
            parser=opt.reader("a positive whole number", int, lambda n: n > 0),
        ),
    ] = 20,
    output: opt.Output = None,
    n_jobs: opt.Jobs = 1,
    show: opt.ShowOptions,
) -> None:
    """List samples whose labels the rest of the data contradicts."""
    from leaveout.cli._question import find_suspects, run_question

    question = partial(find_suspects, top=top, watched=show.watched)
    run_question(question, table, model, n_jobs, show, output)


@app.command(
    epilog="Example: leaveout bounds table.csv --target species --C 10 --gamma 0.05"
)
@command
def bounds(
    *,
    table: opt.TableOptions,
    model: opt.ModelOptions,
    n_jobs: opt.Jobs = 1,
    show: opt.ShowOptions,
) -> None:
    """Compare bounds and estimates with the exact error, for two classes."""
    from leaveout.cli._question import compare_bounds, run_question

    run_question(compare_bounds, table, model, n_jobs, show)


@app.command(epilog="Example: leaveout predict model.skops new.csv > predictions.csv")
@command
def predict(
    *,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file written by --save.")
    ],
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="New samples with the same column names; - reads stdin.",
        ),
    ],
    id_column: opt.IdColumn = None,
    how: opt.FormatOptions,
    output: opt.Output = None,
    show: opt.ShowOptions,
) -> None:
    """Predict the classes of new samples, and their probabilities."""
    from leaveout.cli._predict import run_predict

    run_predict(model, data, id_column, how, output, show)
