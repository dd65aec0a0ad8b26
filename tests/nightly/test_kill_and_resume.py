# SPDX-License-Identifier: BSD-3-Clause
"""Searches killed at random moments or before each statement; corrupt checkpoints."""

import json
import os
import subprocess
import sys
from pathlib import Path

import corrupt_checkpoints
import pytest

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform == "win32", reason="no fork"),
]
KILLED_AT = """
import os, signal, sqlite3, sys
import numpy as np
from leaveout.run._checkpoint import Checkpoint

left = 10**9

def count_down(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def connect(*arguments, connect=sqlite3.connect, **options):
    database = connect(*arguments, **options)
    database.set_trace_callback(count_down)  # sees COMMIT too
    return database

sqlite3.connect = connect
kept = 0
for n in range(1, 60):
    child = os.fork()
    if child == 0:
        left = n
        with Checkpoint(sys.argv[1], {"version": "1"}) as checkpoint:
            first = len(checkpoint)
            for number in range(first, first + 2):
                checkpoint.put(number, {"x": np.full(3000, number)}, {})
        os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    with Checkpoint(sys.argv[1], {"version": "1"}) as checkpoint:
        assert len(checkpoint) >= kept, "a kept cell is gone"
        kept = len(checkpoint)
        for number in range(kept):
            arrays, _ = checkpoint.get(number)
            assert (arrays["x"] == number).all()
    print(n, killed, kept)
    if not killed:
        break
"""


def test_killed_before_each_statement(tmp_path):
    command = [sys.executable, "-c", KILLED_AT, str(tmp_path / "run.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[1] for line in lines[:-1]] == ["True"] * (len(lines) - 1)
    assert lines[-1][1] == "False"
    assert len(lines) > 10


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_search_killed_at_random_resumes_bit_identical(n_jobs):
    script = Path(__file__).parents[1] / "faults.py"
    command = [sys.executable, str(script), "--kills", "20"]
    command += ["--seed", str(n_jobs), "--n-jobs", str(n_jobs)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    kills = [record for record in records if record["event"] == "killed"]
    finished = [record for record in records if record["event"] == "finished"]
    assert len(kills) == 20
    for record in kills:
        assert record["file"] in ("ok", "absent")
        assert record["kept"] >= record["kept_before"]
    assert finished
    for record in finished:
        assert record["kept"] == 10
        assert record["identical"]


def test_corrupt_file_is_refused_or_gives_the_same(tmp_path):
    records = corrupt_checkpoints.run_trials(1000, 1, tmp_path)
    assert {record["outcome"] for record in records} == {"same", "refused"}
