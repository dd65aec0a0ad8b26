# SPDX-License-Identifier: BSD-3-Clause
import os

import pytest

from leaveout.run._files import write_atomically


@pytest.mark.parametrize("fails", [None, "fsync", "replace"])
def test_a_file_is_replaced_or_left_as_it_was(tmp_path, monkeypatch, fails):
    path = tmp_path / "a.bin"
    write_atomically(path, b"old")

    def fail(*_):
        raise OSError("disk full")

    if fails is None:
        write_atomically(path, b"new and longer")
    else:
        monkeypatch.setattr(os, fails, fail)
        with pytest.raises(OSError, match="disk full"):
            write_atomically(path, b"new")
    assert path.read_bytes() == (b"old" if fails else b"new and longer")
    assert [file.name for file in tmp_path.iterdir()] == ["a.bin"]


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No folder '.*nowhere' to write 'a'"):
        write_atomically(tmp_path / "nowhere" / "a", b"")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_atomically(tmp_path, b"")
