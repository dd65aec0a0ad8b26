# SPDX-License-Identifier: BSD-3-Clause
"""Available memory as reported by several kinds of systems."""

import resource

import pytest

from leaveout.run._memory import available_memory

GIB = 2**30
V1 = "memory/docker/1/memory"  # a container with cgroups version 1


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The files of a system with 8 GiB free and no limits."""
    monkeypatch.delenv("LEAVEOUT_MEMORY_GIB", raising=False)
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda what: (unlimited, unlimited))
    write(tmp_path / "proc/meminfo", f"MemTotal: 1 kB\nMemAvailable: {8 * 2**20} kB\n")
    groups = "5:cpu:/\n4:memory:/docker/1\n0::/batch/job\n"
    write(tmp_path / "proc/self/cgroup", groups)
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(text))


@pytest.mark.parametrize(
    ("limit", "usage", "spare", "left"),
    [
        ("batch/job/memory.max", "batch/job/memory.current", "inactive_file", 2),
        ("batch/memory.max", "batch/memory.current", "active_file", 1),
        ("memory.max", "memory.current", "inactive_file", 2),
        (f"{V1}.limit_in_bytes", f"{V1}.usage_in_bytes", "total_inactive_file", 2),
        (f"{V1}.limit_in_bytes", f"{V1}.usage_in_bytes", "inactive_file", 1),
    ],
)
def test_limits_of_containers(root, limit, usage, spare, left):
    group = root / "sys/fs/cgroup"
    write(group / limit, "max")
    write(group / usage, 3 * GIB)
    assert available_memory(root) == 8 * GIB
    write(group / limit, 4 * GIB)
    write((group / limit).with_name("memory.stat"), f"anon 5\n{spare} {GIB}\n")
    assert available_memory(root) == left * GIB
    write(group / usage, 6 * GIB)
    assert available_memory(root) == 0


def test_ulimit_and_environment_variable(root, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda what: (4 * GIB, 9 * GIB))
    write(root / "proc/self/statm", f"{GIB // resource.getpagesize()} 1 1 1 0 1 0")
    assert available_memory(root) == 3 * GIB
    monkeypatch.setenv("LEAVEOUT_MEMORY_GIB", "0.5")
    assert available_memory(root) == GIB // 2
    monkeypatch.setenv("LEAVEOUT_MEMORY_GIB", "much")
    with pytest.raises(ValueError, match="LEAVEOUT_MEMORY_GIB must be a number of GiB"):
        available_memory(root)
