# SPDX-License-Identifier: BSD-3-Clause
"""How much memory this process can still use: system, container and ulimit.

Allocating is not a test, because Linux overcommits. psutil ignores container limits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

GIB = 2**30
# Limit, usage and reclaimable page cache, by controller: versions 2 and 1.
CGROUP_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that can still be allocated, None if unknown."""
    if given := os.environ.get("LEAVEOUT_MEMORY_GIB"):
        try:
            return int(float(given) * GIB)
        except ValueError as error:
            raise ValueError(
                "LEAVEOUT_MEMORY_GIB must be a number of GiB, such as 24; it is "
                f"{given!r}."
            ) from error
    bounds = [_free_on_system(root), _left_of_ulimit(root), *_left_in_cgroups(root)]
    return min((max(0, b) for b in bounds if b is not None), default=None)


def _free_on_system(root: Path) -> int | None:
    """Return the memory available without swapping, or all memory if unknown."""
    available = _field(root / "proc/meminfo", "MemAvailable:")
    if available is not None:
        return available * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return None


def _left_of_ulimit(root: Path) -> int | None:
    """Return what is left of ``ulimit -v`` after the addresses in use."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    pages = _read(root / "proc/self/statm").split()
    return limit - (int(pages[0]) * resource.getpagesize() if pages else 0)


def _left_in_cgroups(root: Path) -> Iterator[int]:
    """Yield what the control groups of a container or a batch system leave."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controller, path = line.split(":", 2)
        if controller not in CGROUP_FILES:
            continue
        limit_file, usage_file, reclaimable = CGROUP_FILES[controller]
        top = root / "sys/fs/cgroup" / controller
        group = top / path.strip("/")
        # A container may see its own group as the root; limits of outer groups count.
        for folder in (f for f in (group, *group.parents) if f.is_relative_to(top)):
            limit, usage = (_read(folder / name) for name in (limit_file, usage_file))
            if limit.strip().isdigit() and usage.strip().isdigit():
                spare = _field(folder / "memory.stat", reclaimable) or 0
                yield int(limit) - int(usage) + spare


def _field(path: Path, name: str) -> int | None:
    """Return the number after a name in a file of "name number" lines."""
    fields = (line.split() for line in _read(path).splitlines())
    return next((int(words[1]) for words in fields if words[:1] == [name]), None)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
