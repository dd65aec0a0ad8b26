# SPDX-License-Identifier: BSD-3-Clause
"""The commands, one per question."""

from __future__ import annotations

from typing import Annotated

import typer

import leaveout
from leaveout.cli._audit import audit
from leaveout.cli._bounds import bounds
from leaveout.cli._loo import loo
from leaveout.cli._predict import predict
from leaveout.cli._select import select

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for function in (select, loo, audit, bounds, predict):
    app.command()(function)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leaveout {leaveout.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Exact leave-one-out for support vector machines."""
