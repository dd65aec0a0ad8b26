# SPDX-License-Identifier: BSD-3-Clause
"""Memory that is left, as systems of several kinds tell it."""

import resource

import pytest

from leaveout.run._memory import available_memory

GIB = 2**30


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine with 8 GiB free and no limits, as files."""
    monkeypatch.delenv("LEAVEOUT_MEMORY_GIB", raising=False)
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda what: (unlimited, unlimited))
    write(tmp_path / "proc/meminfo", f"MemTotal: 1 kB\nMemAvailable: {8 * 2**20} kB\n")
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(text))


def test_machine(root):
    assert available_memory(root) == 8 * GIB


def test_here():
    assert available_memory() > 0


def test_word_of_the_user_comes_first(root, monkeypatch):
    monkeypatch.setenv("LEAVEOUT_MEMORY_GIB", "0.5")
    assert available_memory(root) == GIB // 2
    monkeypatch.setenv("LEAVEOUT_MEMORY_GIB", "much")
    with pytest.raises(ValueError, match="LEAVEOUT_MEMORY_GIB must be a number of GiB"):
        available_memory(root)


def test_limit_of_the_shell(root, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda what: (4 * GIB, 9 * GIB))
    pages = GIB // resource.getpagesize()
    write(root / "proc/self/statm", f"{pages} 1 1 1 0 1 0")
    assert available_memory(root) == 3 * GIB


def test_container_with_version_2(root):
    write(root / "proc/self/cgroup", "0::/\n")
    group = root / "sys/fs/cgroup"
    write(group / "memory.max", 4 * GIB)
    write(group / "memory.current", 3 * GIB)
    write(group / "memory.stat", f"anon 5\ninactive_file {GIB}\n")
    assert available_memory(root) == 2 * GIB
    write(group / "memory.max", "max")
    assert available_memory(root) == 8 * GIB


def test_limit_of_an_outer_group(root):
    write(root / "proc/self/cgroup", "0::/batch/job\n")
    group = root / "sys/fs/cgroup/batch"
    write(group / "memory.max", 4 * GIB)
    write(group / "memory.current", GIB)
    write(group / "job/memory.max", "max")
    write(group / "job/memory.current", GIB)
    assert available_memory(root) == 3 * GIB


def test_container_with_version_1(root):
    write(root / "proc/self/cgroup", "5:cpu:/\n4:memory:/docker/1\n0::/\n")
    group = root / "sys/fs/cgroup/memory/docker/1"
    write(group / "memory.limit_in_bytes", 4 * GIB)
    write(group / "memory.usage_in_bytes", 3 * GIB)
    write(group / "memory.stat", f"inactive_file 1\ntotal_inactive_file {GIB}\n")
    assert available_memory(root) == 2 * GIB


def test_group_that_is_full_leaves_nothing(root):
    write(root / "proc/self/cgroup", "0::/\n")
    write(root / "sys/fs/cgroup/memory.max", GIB)
    write(root / "sys/fs/cgroup/memory.current", GIB + 1)
    assert available_memory(root) == 0
