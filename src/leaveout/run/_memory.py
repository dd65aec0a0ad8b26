# SPDX-License-Identifier: BSD-3-Clause
"""How much memory this process may still take: the machine's, a container's, a limit's.

Linux grants memory it does not have and ends the process that uses it: nobody can ask
by trying.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# The user's own word, in GiB, before all that the system says.
VARIABLE = "LEAVEOUT_MEMORY_GIB"
GIB = 2**30


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that can still be taken, None if the system does not tell.

    Parameters
    ----------
    root : Path
        Where proc and sys are.

    Examples
    --------
    >>> import os
    >>> os.environ["LEAVEOUT_MEMORY_GIB"] = "2.5"
    >>> available_memory()
    2684354560
    >>> del os.environ["LEAVEOUT_MEMORY_GIB"]
    """
    if told := os.environ.get(VARIABLE):
        try:
            return int(float(told) * GIB)
        except ValueError as error:
            raise ValueError(
                f"{VARIABLE} must be a number of GiB, such as 24; it is {told!r}."
            ) from error
    bounds = [_free_on_machine(root), _left_of_limit(root), *_left_in_groups(root)]
    known = [max(0, bound) for bound in bounds if bound is not None]
    return min(known, default=None)


def _free_on_machine(root: Path) -> int | None:
    """Return what can be had without swapping; if that is not told, all there is."""
    for line in _lines(root / "proc/meminfo"):
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return None


def _left_of_limit(root: Path) -> int | None:
    """Return what ``ulimit -v`` leaves beyond the addresses in use."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    pages = "".join(_lines(root / "proc/self/statm")).split()
    return limit - (int(pages[0]) * resource.getpagesize() if pages else 0)


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield what the control groups of a container or a batch system leave.

    Pages of files that can be given back at once count as free, as in MemAvailable.
    """
    files = {
        "": ("memory.max", "memory.current", "inactive_file"),
        "memory": (
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
        ),
    }  # version 2, version 1
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.strip().split(":", 2)
        if controllers not in files:
            continue
        limit_file, usage_file, spare_name = files[controllers]
        top = root / "sys/fs/cgroup" / controllers
        inner = top / path.strip("/")
        # Inside a container the group may be the root of what can be seen.
        for folder in (f for f in (inner, *inner.parents) if f.is_relative_to(top)):
            limit, usage = (
                "".join(_lines(folder / name)).strip()
                for name in (limit_file, usage_file)
            )
            if limit.isdigit() and usage.isdigit():
                yield int(limit) - int(usage) + _spare(folder, spare_name)


def _spare(folder: Path, name: str) -> int:
    for line in _lines(folder / "memory.stat"):
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


def _lines(path: Path) -> list[str]:
    """Return the lines of a file, none if it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
