# SPDX-License-Identifier: BSD-3-Clause
"""Files that are complete or absent, even after a crash."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a temporary file, fsync, rename; after an error an old file is intact."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"No folder '{path.parent}' to write '{path.name}' to.")
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder. Give the path of a file.")
    if path.exists() and not path.is_file():  # the rename would replace a device
        raise FileExistsError(f"'{path}' is not a file. Give the path of a file.")
    target = path.resolve()  # a link stays a link
    part = target.with_name(f".{path.name}.{token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException as why:
        with suppress(OSError):
            part.unlink()
        if isinstance(why, OSError) and why.errno is not None:
            # Report the name of the file, not its temporary name.
            raise OSError(why.errno, why.strerror, str(path)) from why
        raise
    with suppress(OSError):  # the rename survives a power failure; not on Windows
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
