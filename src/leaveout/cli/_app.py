# SPDX-License-Identifier: BSD-3-Clause
"""The commands, one per question."""

import typer

from leaveout.cli._select import select

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True
)
app.command()(select)


@app.callback()
def leaveout() -> None:
    """Exact leave-one-out for support vector machines."""
