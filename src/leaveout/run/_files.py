# SPDX-License-Identifier: BSD-3-Clause
"""Files that are whole or absent, whenever the machine stops."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it: write, fsync, rename.

    Parameters
    ----------
    path : str or Path
        The file; an older one is replaced.
    content : bytes
        All of it.

    Raises
    ------
    OSError
        It could not be written; an older file is as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "a.txt"), b"whole")
    ...     Path(folder, "a.txt").read_bytes()
    b'whole'
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"No folder '{path.parent}' to write '{path.name}' to.")
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder. Give the path of a file.")
    part = path.with_name(f".{path.name}.{token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as why:
        with suppress(OSError):
            part.unlink()
        if isinstance(why, OSError) and why.errno is not None:
            # The user knows the file, not its second name.
            raise OSError(why.errno, why.strerror, str(path)) from why
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename last through a power failure, where the system can."""
    with suppress(OSError):  # Windows does not open folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
