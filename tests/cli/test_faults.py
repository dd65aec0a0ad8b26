# SPDX-License-Identifier: BSD-3-Clause
"""Signals, full disks, read-only folders and killed workers, through the commands.

Nothing finished is lost, nothing half-written stays, and one line says what happened.
"""

import os
import signal
import sqlite3
import sys
from contextlib import closing

import pytest

from leaveout.run._checkpoint import Checkpoint

if sys.platform == "win32":
    pytest.skip("forks, signals and limits of POSIX", allow_module_level=True)

from forks import Fork, limit_file_size, sleep

pytestmark = pytest.mark.filterwarnings("ignore:This process")
SELECT = "select DATA --target colour --grid C=1,10 --grid gamma=0.01:1:6"  # six paths


def leaveout(command, **places):
    """Run the command line, as a program; words in capitals stand for files."""
    from leaveout.cli._app import app

    sys.argv = ["leaveout", *(str(places.get(p, p)) for p in command.split())]
    app(prog_name="leaveout")


def act_after(n_cells, action):
    """Do something after a search has kept some cells."""
    put = Checkpoint.put

    def put_and_act(self, *arguments):
        put(self, *arguments)
        if len(self) == n_cells:
            action()

    Checkpoint.put = put_and_act


def count_cells(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT COUNT(*) FROM cells").fetchone()[0]


def interrupt(function, folder):
    """Run a function that stalls, in a fork, until Ctrl-C; return the ended fork."""
    told = folder / "told"

    def stall(*_):
        told.write_text("kept")
        sleep()

    running = Fork(lambda: function(stall), folder)
    running.wait_for(told, "kept")
    running.signal(signal.SIGINT)
    assert running.wait() == 130
    assert not running.has_workers()
    return running


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_stopped_search_keeps_its_cells(table, tmp_path, n_jobs, run):
    kept = tmp_path / "run.db"
    command = f"{SELECT} --checkpoint {kept}"

    def search(stall):
        act_after(3, stall)
        leaveout(f"{command} --n-jobs {n_jobs}", DATA=table)

    stopped = interrupt(search, tmp_path)
    # A fork ends without Python's own clean-up, which joblib remarks upon later.
    assert stopped.read_err().splitlines()[:2] == [
        f"Interrupted: 3 of 6 paths are saved in {kept}; run again to continue.",
        "Stopped.",
    ]
    assert stopped.read_out() == ""
    assert count_cells(kept) == 3
    whole = run(*command.replace("DATA", str(table)).split(), "--verbose")
    assert "Resumed with 3 of 6 paths done." in whole.stderr
    assert count_cells(kept) == 6


def test_interrupted_extra_leaves_the_choice(table, tmp_path):
    def search(stall):
        from leaveout.cli import _select

        _select.run_honest = stall
        files = {"DATA": table, "PAGE": page, "MODEL": model}
        leaveout(f"{SELECT} --honest --report PAGE --save MODEL", **files)

    page, model = tmp_path / "page.html", tmp_path / "model.skops"
    stopped = interrupt(search, tmp_path)
    lost = "Stopped: the result lacks --honest, --report."
    assert stopped.read_err().splitlines()[0] == lost
    assert "Chosen: SVC(" in stopped.read_out()
    assert model.exists()
    assert not page.exists()


def test_full_disk_leaves_the_older_file_and_the_answer(table, tmp_path):
    path = tmp_path / "result"
    path.write_text("older")

    def write():
        limit_file_size(500)
        leaveout(f"{SELECT} --save FILE", DATA=table, FILE=path)

    reading, writing = os.pipe()  # a pipe has no size
    running = Fork(write, tmp_path, stdout=f"/proc/self/fd/{writing}")
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        out = pipe.read()
    assert running.wait() == 1
    assert running.read_err().splitlines()[-1] == f"Error: '{path}': File too large."
    assert path.read_text() == "older"
    assert list(tmp_path.glob(".*.part")) == []
    assert "24 samples" in out
    assert "written" not in out


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_stdout_is_an_error_in_one_line(table, tmp_path):
    def ask():
        leaveout("loo DATA --target colour --C 1 --gamma 1 --json", DATA=table)

    running = Fork(ask, tmp_path, "/dev/full")
    assert running.wait() == 1
    assert running.read_err() == "Error: stdout: No space left on device.\n"


def test_reader_that_went_away_is_no_news(full_table, model, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)

    def predict():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        os.dup2(writing, 1)
        sys.stdout = open(1, "w", closefd=False)
        leaveout("predict MODEL DATA", MODEL=model, DATA=full_table)

    running = Fork(predict, tmp_path)
    os.close(writing)
    assert running.wait() == 1
    assert "Error" not in running.read_err()


@pytest.mark.nightly
def test_worker_that_is_killed_is_told_and_its_peers_cells_are_kept(table, tmp_path):
    checkpoint = tmp_path / "run.db"

    def kill_worker():
        from joblib.externals.loky import reusable_executor

        (pid, *_) = reusable_executor._executor._processes
        os.kill(pid, signal.SIGKILL)

    def search():
        act_after(2, kill_worker)
        command = SELECT.replace("1:6", "1:60")
        leaveout(f"{command} --checkpoint {checkpoint} --n-jobs 2", DATA=table)

    running = Fork(search, tmp_path)
    assert running.wait() == 1
    first, last, *_ = running.read_err().splitlines()
    kept = count_cells(checkpoint)
    assert kept >= 2
    assert first.startswith(f"Interrupted: {kept} of 60 paths are saved in")
    assert last.startswith("Error: A worker process was killed")
    assert not running.has_workers()
