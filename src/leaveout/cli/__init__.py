# SPDX-License-Identifier: BSD-3-Clause
"""Command line: parse, call, print; no mathematics.

Imports: everything, inside functions, so that ``--help`` takes no time.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, the entry point of ``leaveout``."""
    try:
        from leaveout.cli._app import app
    except ModuleNotFoundError as missing:
        if missing.name != "typer":
            raise
        sys.exit("The command line needs typer: pip install 'leaveout[cli]'.")
    app(prog_name="leaveout")
