# SPDX-License-Identifier: BSD-3-Clause
"""What every command does: print, measure time, handle signals, open files.

Files that commands read and write: none overwrites another, pipes are read too.

What all commands share: mistakes in one sentence, warnings in one line, a clock.

A command that is told to stop, by Ctrl-C, by the system or because its terminal is
gone, ends the same way: workers are stopped, half-written files removed, what a
checkpoint has is told.
"""

from __future__ import annotations

import functools
import os
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from leaveout._messages import printable
from leaveout.cli._options import flatten_dataclass_options
from leaveout.exceptions import (
    LeaveoutError,
    PreprocessingWarning,
    SingletonClassWarning,
)
from leaveout.report._text import format_seconds

# What a user's own data and parameters can raise; anything else is a bug of ours.
MISTAKES = (OSError, ValueError, TypeError, MemoryError, LeaveoutError)
# Signals that ask a process to end; Windows has one of them.
STOP_SIGNALS = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
]


def check_files_differ(
    files: Mapping[str, Path | None], *, written: Collection[str]
) -> None:
    """Refuse two options that name the same file, if one of them is written.

    Parameters
    ----------
    files : mapping of str to Path or None
        Files by their options.
    written : collection of str
        The options whose files are written.

    Raises
    ------
    BadParameter
        Names both options.
    """
    named = [(option, path) for option, path in files.items() if path is not None]
    for (first, path), (second, other) in combinations(named, 2):
        if {first, second} & set(written) and _are_same(path, other):
            raise typer.BadParameter(
                f"{first} and {second} name the same file, '{other}', which would be "
                f"overwritten. Give {second} another name."
            )


def _are_same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)  # also by links, and in other capitals
    return path.resolve() == other.resolve()


@contextmanager
def spool_pipe(path: Path) -> Iterator[Path]:
    """Give a pipe's content as a file: it is looked at, then read.

    Messages name the pipe all the same.
    """
    if path.is_file() or path.is_dir() or not path.exists():
        yield path
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        copy.write_bytes(path.read_bytes())
        try:
            yield copy
        except (OSError, ValueError) as why:
            raise type(why)(str(why).replace(str(copy), str(path))) from why


class Stopped(KeyboardInterrupt):
    """A signal has asked the process to end; its number is the argument."""


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command: a mistake ends it with exit code 1 and its message.

    ``--debug``, an option of every command, lets the error through instead.
    """
    spread = flatten_dataclass_options(function)

    @functools.wraps(spread)
    def run(**options: Any) -> None:
        _let_stdout_take_any_letter()
        try:
            with _stop_signals_raised():
                spread(**options)
                sys.stdout.flush()  # a full disk shows here, while it can be told
        except ModuleNotFoundError as missing:
            if options.get("debug") or "pip install" not in str(missing):
                raise
            _end(str(missing))
        except MISTAKES as mistake:
            if options.get("debug"):
                raise
            lost = _let_go_of_stdout()
            if not isinstance(mistake, BrokenPipeError):
                _end(("stdout: " if lost else "") + _message(mistake))
            raise typer.Exit(1) from None
        except Stopped as signalled:
            print_status("Stopped.")
            raise typer.Exit(128 + signalled.args[0]) from None
        except KeyboardInterrupt:
            print_status("Stopped.")
            raise typer.Exit(130) from None

    return run


@contextmanager
def _stop_signals_raised() -> Iterator[None]:
    """Let the signals that end a process raise; a second one ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise Stopped(number)

    ours = [s for s in STOP_SIGNALS if signal.getsignal(s) is signal.SIG_DFL]
    for number in ours:  # nohup ignores SIGHUP; so do we then
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _message(mistake: BaseException) -> str:
    """Return what to say of an error, without the number of the operating system."""
    if isinstance(mistake, OSError) and mistake.strerror:
        place = "" if mistake.filename is None else f"'{mistake.filename}': "
        return f"{place}{mistake.strerror}."
    if isinstance(mistake, MemoryError) and not isinstance(mistake, LeaveoutError):
        reason = str(mistake).rstrip(".") or "no more is to be had"
        return f"Not enough memory: {reason}. Use fewer samples or --n-jobs."
    return str(mistake) or type(mistake).__name__


def _let_stdout_take_any_letter() -> None:
    """Write letters that the encoding of stdout lacks as codes: no result is lost."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _let_go_of_stdout() -> bool:
    """Whether stdout takes no more; what it was to take is then dropped.

    Else Python would try again at its end, and complain in its own way.
    """
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return True
    return False


def _end(message: str) -> None:
    print_status(f"Error: {message}")
    raise typer.Exit(1) from None


def print_status(message: str) -> None:
    """Write a line to stderr; stdout is for results."""
    typer.echo(printable(message, keep="\n"), err=True)


def print_result(text: str) -> None:
    """Write a result for people to stdout."""
    typer.echo(printable(text, keep="\n"))


def at_terminal() -> bool:
    """Whether somebody watches stderr, so that progress is worth showing."""
    return sys.stderr.isatty()


def command_line() -> str:
    """Return what was typed."""
    return shlex.join(["leaveout", *sys.argv[1:]])


@contextmanager
def warnings_told() -> Iterator[list[str]]:
    """Write each warning once, as its message, to stderr; collect them in a list.

    Two of ours are left out: the notes on the data tell of classes with one sample, and
    every report that the preparation is fitted once on all rows. What packages tell of
    each other's future is not for users of a command.
    """
    found: list[str] = []

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in found:
            found.append(text)
            print_status(f"Warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", PreprocessingWarning)
        warnings.simplefilter("ignore", SingletonClassWarning)
        for category in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", category)
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
