# SPDX-License-Identifier: BSD-3-Clause
"""Files that commands read and write: none overwrites another, pipes are read too."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import typer


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
def readable_twice(path: Path) -> Iterator[Path]:
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
