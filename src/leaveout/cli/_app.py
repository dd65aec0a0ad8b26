# SPDX-License-Identifier: BSD-3-Clause
"""The commands, one per question."""

from __future__ import annotations

from typing import Annotated

import typer

import leaveout
from leaveout.cli._audit import audit
from leaveout.cli._bounds import bounds
from leaveout.cli._loo import loo
from leaveout.cli._options import NO_VALUE
from leaveout.cli._predict import predict
from leaveout.cli._select import select

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
EXAMPLES = {
    select: "leaveout select table.csv --target species --save model.skops",
    loo: "leaveout loo table.csv --target species --C 10 --gamma 0.05",
    audit: "leaveout audit table.csv --target species --id sample",
    bounds: "leaveout bounds table.csv --target species --C 10 --gamma 0.05",
    predict: "leaveout predict model.skops new.csv > classes.csv",
}


for function, example in EXAMPLES.items():
    app.command(epilog=f"Example: {example}")(function)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leaveout {leaveout.__version__}")
        raise typer.Exit


@app.callback(
    epilog="To begin: leaveout select table.csv --target COLUMN; without a table it "
    "shows what it does on breast-cancer data."
)
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar=NO_VALUE,
            callback=_show_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    """Exact leave-one-out for support vector machines."""
