# SPDX-License-Identifier: BSD-3-Clause
import os

import pytest

from leaveout.run._files import write_atomically


def test_replaces_an_older_file(tmp_path):
    path = tmp_path / "a.bin"
    write_atomically(path, b"old")
    write_atomically(path, b"new and longer")
    assert path.read_bytes() == b"new and longer"
    assert [file.name for file in tmp_path.iterdir()] == ["a.bin"]


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_failure_leaves_the_older_file_and_no_other(tmp_path, monkeypatch, fails):
    path = tmp_path / "a.bin"
    write_atomically(path, b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, fails, fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.bin"]


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No folder '.*nowhere' to write 'a'"):
        write_atomically(tmp_path / "nowhere" / "a", b"")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_atomically(tmp_path, b"")
