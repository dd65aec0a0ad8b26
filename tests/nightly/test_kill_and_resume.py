# SPDX-License-Identifier: BSD-3-Clause
"""Searches killed at random moments or before each statement; corrupt checkpoints."""

import os
import signal
import sqlite3
import sys

import corrupt_checkpoints
import faults
import numpy as np
import pytest

from leaveout.run._checkpoint import Checkpoint

if sys.platform != "win32":
    import forks

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore:This process"),
    pytest.mark.skipif(sys.platform == "win32", reason="no fork"),
]


def test_killed_before_each_statement(tmp_path):
    left = 10**9
    connect = sqlite3.connect

    def count_down(statement):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(*arguments, **options):
        database = connect(*arguments, **options)
        database.set_trace_callback(count_down)  # sees COMMIT too
        return database

    def put_two(n):
        nonlocal left
        left = n
        sqlite3.connect = counted
        with Checkpoint(tmp_path / "run.db", {"version": "1"}) as checkpoint:
            first = len(checkpoint)
            for number in range(first, first + 2):
                checkpoint.put(number, {"x": np.full(3000, number)}, {})

    kept, codes = 0, []
    while 0 not in codes:
        codes.append(forks.Fork(lambda: put_two(len(codes) + 1), tmp_path).wait())
        with Checkpoint(tmp_path / "run.db", {"version": "1"}) as checkpoint:
            assert len(checkpoint) >= kept, "a kept cell is gone"
            kept = len(checkpoint)
            for number in range(kept):
                assert (checkpoint.get(number)[0]["x"] == number).all()
    assert set(codes[:-1]) == {-signal.SIGKILL}
    assert 10 < len(codes) < 60


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_search_killed_at_random_resumes_bit_identical(n_jobs, tmp_path):
    records = list(faults.run_trials(20, n_jobs, n_jobs, tmp_path))
    kills = [record for record in records if record["event"] == "killed"]
    finished = [record for record in records if record["event"] == "finished"]
    assert len(kills) == 20
    for record in kills:
        assert record["file"] in ("ok", "absent")
        assert record["kept"] >= record["kept_before"]
    assert finished
    assert all(end["identical"] and end["kept"] == 10 for end in finished)


def test_corrupt_file_is_refused_or_gives_the_same(tmp_path):
    records = corrupt_checkpoints.run_trials(1000, 1, tmp_path)
    assert {record["outcome"] for record in records} == {"same", "refused"}
