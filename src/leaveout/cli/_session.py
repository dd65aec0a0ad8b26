# SPDX-License-Identifier: BSD-3-Clause
"""What all commands share: mistakes in one sentence, warnings in one line, a clock."""

from __future__ import annotations

import functools
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from leaveout.cli._bundles import spread_bundles
from leaveout.exceptions import (
    LeaveoutError,
    PreprocessingWarning,
    SingletonClassWarning,
)
from leaveout.report import format_seconds

# What a user's own data and parameters can raise; anything else is a bug of ours.
MISTAKES = (OSError, ValueError, TypeError, MemoryError, LeaveoutError)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command: a mistake ends it with exit code 1 and its message.

    ``--debug``, an option of every command, lets the error through instead.
    """
    spread = spread_bundles(function)

    @functools.wraps(spread)
    def run(**options: Any) -> None:
        try:
            spread(**options)
        except ModuleNotFoundError as missing:
            if options.get("debug") or "pip install" not in str(missing):
                raise
            _end(str(missing))
        except MISTAKES as mistake:
            if options.get("debug"):
                raise
            _end(str(mistake) or type(mistake).__name__)
        except KeyboardInterrupt:
            tell("Stopped.")
            raise typer.Exit(130) from None

    return run


def _end(message: str) -> None:
    tell(f"Error: {message}")
    raise typer.Exit(1) from None


def tell(message: str) -> None:
    """Write a line to stderr; stdout is for results."""
    typer.echo(message, err=True)


def at_terminal() -> bool:
    """Whether somebody watches stderr, so that progress is worth showing."""
    return sys.stderr.isatty()


def command_line() -> str:
    """Return what was typed."""
    return shlex.join(["leaveout", *sys.argv[1:]])


@contextmanager
def warnings_told() -> Iterator[list[str]]:
    """Write each warning once, as its message, to stderr; collect them in a list.

    Two are left out: the notes on the data tell of classes with one sample, and every
    report that the preparation is fitted once on all rows.
    """
    found: list[str] = []

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in found:
            found.append(text)
            tell(f"Warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", PreprocessingWarning)
        warnings.simplefilter("ignore", SingletonClassWarning)
        warnings.showwarning = show
        yield found


class Clock:
    """Seconds by part of the work; starting Python and its modules is the first."""

    def __init__(self) -> None:
        # CPU time of the process so far: nothing but imports has happened.
        self.seconds = {"start-up": time.process_time()}

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Add the time the block takes to a part."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self.seconds[part] = self.seconds.get(part, 0.0) + spent

    def __str__(self) -> str:
        """Return the parts in one line."""
        parts = [f"{name} {format_seconds(s)}" for name, s in self.seconds.items()]
        total = format_seconds(sum(self.seconds.values()))
        return f"Time: {', '.join(parts)}; together {total}"
