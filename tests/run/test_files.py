# SPDX-License-Identifier: BSD-3-Clause
import os
import sys

import pytest

from leaveout.run._files import write_atomically


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_file_is_replaced_or_left_as_it_was(tmp_path, monkeypatch, step):
    def fail(*_):
        raise OSError("disk full")

    path = tmp_path / "a.bin"
    for content in (b"older", b"old"):
        write_atomically(path, content)
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.bin"]


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No folder '.*nowhere' to write 'a'"):
        write_atomically(tmp_path / "nowhere" / "a", b"")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_atomically(tmp_path, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_pipes_are_refused_and_links_stay(tmp_path):
    pipe, file, link = (tmp_path / name for name in ("pipe", "file", "link"))
    os.mkfifo(pipe)
    with pytest.raises(FileExistsError, match="pipe' is not a file"):
        write_atomically(pipe, b"")
    link.symlink_to(file)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
