# SPDX-License-Identifier: BSD-3-Clause
"""Shared by all commands: errors and warnings in one line each, and a clock.

Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature, signature
from io import TextIOWrapper
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from leaveout._messages import printable
from leaveout.exceptions import (
    LeaveoutError,
    PreprocessingWarning,
    SingletonClassWarning,
)
from leaveout.loo._summary import wrap

# Errors that a user's data and parameters can cause; anything else is a bug.
MISTAKES = (OSError, ValueError, TypeError, MemoryError, LeaveoutError)
OPTION_OF_KEYWORD = {
    "id_column": "--id",
    "group_column": "--groups",
    "n_jobs": "--n-jobs",
    **{
        name: f"--{name}"
        for name in "target drop categorical sep decimal encoding checkpoint".split()
    },
}
_KEYWORD = re.compile(rf"\b({'|'.join(OPTION_OF_KEYWORD)})=(?=(['\"])?)")


def write_options(message: str) -> str:
    """Replace the keywords in messages by options: drop= by --drop."""
    return _KEYWORD.sub(
        lambda found: OPTION_OF_KEYWORD[found[1]] + (" " if found[2] else ""), message
    )


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command: a mistake ends it with exit code 1 and its message.

    A parameter that is a dataclass stands for its fields, each an option. ``--debug``,
    an option of every command, lets errors through.
    """
    kinds = get_type_hints(function, include_extras=True)

    @functools.wraps(function)
    def run(**options: Any) -> None:
        if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
            # Characters that the encoding lacks are escaped, so no result is lost.
            sys.stdout.reconfigure(errors="backslashreplace")
        for name, kind in kinds.items():
            if is_dataclass(kind):
                parts = [options.pop(field.name) for field in fields(kind)]
                options[name] = kind(*parts)  # type: ignore[operator]
        try:
            function(**options)
            sys.stdout.flush()  # a full disk is reported below
        except KeyboardInterrupt as stop:
            print_status(str(stop) or "Stopped.")
            raise typer.Exit(130) from None
        except (*MISTAKES, ModuleNotFoundError) as mistake:
            missing = isinstance(mistake, ModuleNotFoundError)
            if options["show"].debug or (missing and "pip install" not in str(mistake)):
                raise
            lost = _drop_broken_stdout()
            if not isinstance(mistake, BrokenPipeError):
                print_status(f"Error: {'stdout: ' * lost}{_message(mistake)}")
            raise typer.Exit(1) from None

    parameters = signature(function).parameters.values()
    found = [part for p in parameters for part in _expand(p, kinds[p.name])]
    run.__signature__ = Signature(found)  # type: ignore[attr-defined]
    run.__annotations__ = {part.name: part.annotation for part in found}
    return run


def _expand(parameter: Parameter, kind: Any) -> list[Parameter]:
    """Return a parameter, or those for the fields of its dataclass."""
    if not is_dataclass(kind):
        return [parameter.replace(annotation=kind)]
    found, hints = [], get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint = hints[field.name]
        if "typer" in field.metadata:
            hint = Annotated[hint, field.metadata["typer"]]
        option = parameter.replace(name=field.name, annotation=hint)
        found.append(option.replace(default=field.default))
    return found


def _message(mistake: BaseException) -> str:
    """Return the message of an error, without the number of the system."""
    if isinstance(mistake, OSError) and mistake.strerror:
        place = "" if mistake.filename is None else f"'{mistake.filename}': "
        return f"{place}{mistake.strerror}."
    if isinstance(mistake, MemoryError) and not isinstance(mistake, LeaveoutError):
        reason = f": {str(mistake).rstrip('.')}" if str(mistake) else ""
        return f"Out of memory{reason}. Use fewer samples or a smaller --n-jobs."
    return write_options(str(mistake)) or type(mistake).__name__


def _drop_broken_stdout() -> bool:
    """Return whether stdout is broken; if so, prevent a second error at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return True
    return False


def check_files_differ(
    read: Mapping[str, Path | None], written: Mapping[str, Path | None]
) -> None:
    """Refuse two options that name the same file, if one of them is written."""
    files = [*read.items(), *written.items()]
    for (first, path), (second, other) in combinations(files, 2):
        if second in written and path and other and _are_same(path, other):
            raise typer.BadParameter(
                f"{first} and {second} name the same file, '{other}', which would be "
                f"overwritten. Give {second} another name."
            )


def _are_same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)  # also by links, and in other capitals
    return path.resolve() == other.resolve()


def print_status(message: str) -> None:
    """Write a line to stderr, broken into shorter ones if a person reads it."""
    if sys.stderr.isatty():
        message = wrap(message.splitlines())
    typer.echo(printable(message, keep="\n"), err=True)


def print_result(text: str) -> None:
    """Write a result for people to stdout."""
    typer.echo(printable(text, keep="\n"))


def command_line() -> str:
    """Return the command as typed."""
    return shlex.join(["leaveout", *sys.argv[1:]])


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Write each warning once, as its message, to stderr; collect them in a list.

    Two of ours are left out: the notes on the data mention classes with one sample, and
    every report says that the preparation is fitted once on all rows. Deprecation
    warnings of dependencies are hidden.
    """
    found: list[str] = []

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in found:
            found.append(text)
            print_status(f"Warning: {text}")

    hidden = (DeprecationWarning, PendingDeprecationWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for category in (PreprocessingWarning, SingletonClassWarning, *hidden):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show
        yield found


class Clock:
    """Seconds per part of the work; the first is the start of Python."""

    def __init__(self) -> None:
        # CPU time of the process so far: nothing but imports has happened.
        self.seconds = {"start-up": time.process_time()}

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Record the time that a part takes."""
        started = time.perf_counter()
        yield
        self.seconds[part] = time.perf_counter() - started

    def __str__(self) -> str:
        """Return the parts in one line."""
        from leaveout.report._text import format_seconds

        parts = [f"{name} {format_seconds(s)}" for name, s in self.seconds.items()]
        total = format_seconds(sum(self.seconds.values()))
        return f"Time: {', '.join(parts)}; total {total}"
