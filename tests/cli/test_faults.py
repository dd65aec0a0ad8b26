# SPDX-License-Identifier: BSD-3-Clause
"""Signals, full disks, read-only folders and too little memory, through the commands.

Nothing finished is lost, nothing half-written stays, and one line says what happened.
"""

import json as json_module
import os
import re
import signal
import sqlite3
import sys
import time
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo
from leaveout.run._checkpoint import Checkpoint

if sys.platform == "win32":
    pytest.skip("forks, signals and limits of POSIX", allow_module_level=True)

from forks import Fork, become_nobody, limit_file_size, limit_memory

pytestmark = pytest.mark.filterwarnings("ignore:This process")
GRID = ["--grid", "C=1,10", "--grid", "gamma=0.01:1:6"]  # six cells
TARGET = ["--target", "colour"]
GAMMAS = {"gamma": [0.5, 1.0]}
MACHINE = ["--C", "1", "--gamma", "0.1"]


def leaveout(*arguments):
    """The command line, as a program."""
    from leaveout.cli._app import app

    sys.argv = ["leaveout", *map(str, arguments)]
    app(prog_name="leaveout")


def stall_after(n_cells, told):
    """Let a search wait after it has kept some cells, and say so in a file."""
    put = Checkpoint.put

    def put_and_stall(self, *arguments):
        put(self, *arguments)
        if len(self) == n_cells:
            told.write_text("kept")
            time.sleep(600)

    Checkpoint.put = put_and_stall


def count_cells(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT COUNT(*) FROM cells").fetchone()[0]


def leftovers(folder):
    return [file.name for file in folder.iterdir() if file.name.endswith(".part")]


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_stopped_search_keeps_its_cells(table, tmp_path, n_jobs, run):
    checkpoint, told = tmp_path / "run.db", tmp_path / "told"
    options = ["--target", "colour", *GRID, "--checkpoint", checkpoint]

    def search():
        stall_after(3, told)
        leaveout("select", table, *options, "--n-jobs", n_jobs)

    running = Fork(search, tmp_path)
    running.wait_for(told, "kept")
    running.signal(signal.SIGINT)
    assert running.wait() == 130
    # A fork ends without Python's own clean-up, which joblib remarks upon later.
    assert running.read_err().splitlines()[:2] == [
        f"Interrupted: 3 of 6 paths are kept in {checkpoint}; run again to go on.",
        "Stopped.",
    ]
    assert running.read_out() == ""
    assert not running.has_workers()
    assert count_cells(checkpoint) == 3
    whole = run("select", table, *options, "--verbose")
    assert "Resumed: 3 of 6 paths are done." in whole.stderr
    assert count_cells(checkpoint) == 6


def test_interrupted_extra_leaves_the_choice(table, tmp_path):
    told = tmp_path / "told"

    def search():
        from leaveout.cli import _select

        def stall(*_):
            told.write_text("kept")
            time.sleep(600)

        _select.run_honest = stall
        leaveout("select", table, "--target", "colour", *GRID, "--honest")

    running = Fork(search, tmp_path)
    running.wait_for(told, "kept")
    running.signal(signal.SIGINT)
    assert running.wait() == 130
    assert running.read_err().splitlines()[0] == "Stopped."
    assert "Chosen: SVC(" in running.read_out()


@pytest.mark.nightly
@pytest.mark.parametrize("step", ["fsync", "replace", "close"])
def test_killed_while_writing_leaves_the_older_file(tmp_path, step):
    path = tmp_path / "model.skops"
    model = lo.SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"])
    lo.save_model(model, path)
    older = path.read_bytes()

    def save():
        setattr(os, step, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        lo.save_model(model, path, loo_error=0.5)

    assert Fork(save, tmp_path).wait() == -signal.SIGKILL
    if step == "close":  # of the folder, after the rename
        assert lo.read_model_card(path).loo_error == 0.5
    else:
        assert path.read_bytes() == older


@pytest.fixture
def model(tmp_path, run, table):
    path = tmp_path / "model.skops"
    grid = ["--grid", "C=1", "--grid", "gamma=1"]
    assert (
        run("select", table, "--target", "colour", *grid, "--save", path).exit_code == 0
    )
    return path


COMMANDS = {
    "select --save": ["select", "DATA", *TARGET, *GRID, "--save", "FILE"],
    "select --report": ["select", "DATA", *TARGET, *GRID, "--report", "FILE"],
    "loo": ["loo", "DATA", *TARGET, *MACHINE, "--output", "FILE"],
    "audit": ["audit", "DATA", *TARGET, *MACHINE, "--output", "FILE"],
    "predict": ["predict", "MODEL", "DATA", "--output", "FILE"],
}


def filled(command, **places):
    return [places.get(part, part) for part in COMMANDS[command]]


@pytest.mark.parametrize(
    "command", ["select --save", pytest.param("predict", marks=pytest.mark.nightly)]
)
def test_full_disk_leaves_the_older_file_and_the_answer(
    table, model, tmp_path, command
):
    path = tmp_path / "result"
    path.write_text("older")
    arguments = filled(command, DATA=table, FILE=path, MODEL=model)

    def write():
        limit_file_size(200)
        leaveout(*arguments)

    reading, writing = os.pipe()  # a pipe has no size
    running = Fork(write, tmp_path, stdout=f"/proc/self/fd/{writing}")
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        out = pipe.read()
    assert running.wait() == 1
    assert running.read_err().splitlines()[-1] == f"Error: '{path}': File too large."
    assert path.read_text() == "older"
    assert leftovers(tmp_path) == []
    if command != "predict":
        assert "24 samples" in out
        assert "written" not in out


@pytest.mark.nightly
@pytest.mark.parametrize("n_bytes", [5000, 30_000])
def test_checkpoint_on_a_full_disk_keeps_what_it_has(table, tmp_path, n_bytes, run):
    checkpoint = tmp_path / "run.db"
    options = ["--target", "colour", *GRID, "--checkpoint", checkpoint]

    def search():
        limit_file_size(n_bytes)
        leaveout("select", table, *options)

    running = Fork(search, tmp_path, stdout=os.devnull)
    assert running.wait() == 1
    whole = run("select", table, *options, "--json")
    assert whole.exit_code == 0
    assert count_cells(checkpoint) == 6


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_stdout_is_an_error_in_one_line(table, model, tmp_path):
    running = Fork(
        lambda: leaveout("predict", model, table, "--json"), tmp_path, "/dev/full"
    )
    assert running.wait() == 1
    lines = running.read_err().splitlines()
    assert lines[-1] == "Error: stdout: No space left on device."
    assert "Traceback" not in running.read_err()


def test_reader_that_went_away_is_no_news(table, model, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)

    def predict():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        os.dup2(writing, 1)
        sys.stdout = open(1, "w", closefd=False)
        leaveout("predict", model, table)

    running = Fork(predict, tmp_path)
    os.close(writing)
    assert running.wait() == 1
    assert "Error" not in running.read_err()


@pytest.mark.nightly
@pytest.mark.parametrize("command", COMMANDS)
def test_read_only_folder_is_told_before_the_work(table, model, tmp_path, command):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    for path in (*tmp_path.parents, tmp_path):
        if path.stat().st_uid == os.getuid():
            path.chmod(path.stat().st_mode | 0o055)
    arguments = filled(command, DATA=table, FILE=folder / "result", MODEL=model)

    def write():
        become_nobody()
        leaveout(*arguments)

    running = Fork(write, tmp_path)
    assert running.wait() == 2
    assert "may not be written to" in re.sub(r"[│\s]+", " ", running.read_err())
    assert running.read_out() == ""


@pytest.mark.nightly
@pytest.mark.parametrize("command", ["loo", "audit", "select"])
def test_too_little_memory_is_told_with_how_much(tmp_path, rng, command):
    n = 6000  # a Gram matrix of 275 MiB
    data, output = tmp_path / "large.csv", tmp_path / "result"
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"]).round(3)
    frame.assign(kind=np.arange(n) % 2).to_csv(data, index=False)
    options = ["--grid", "C=1", "--grid", "gamma=1", "--save"]
    if command != "select":
        options = [*MACHINE, "--output"]

    def ask():
        limit_memory(200 * 2**20)
        leaveout(command, data, "--target", "kind", *options, output)

    running = Fork(ask, tmp_path)
    assert running.wait() == 1
    (line,) = running.read_err().splitlines()
    assert re.match(r"Error: The exact solution for 6000 rows needs 0\.\d GiB", line)
    assert not output.exists()
    assert leftovers(tmp_path) == []


@pytest.mark.nightly
def test_worker_that_is_killed_is_told_and_its_peers_cells_are_kept(table, tmp_path):
    checkpoint = tmp_path / "run.db"

    def search():
        from joblib.externals.loky import reusable_executor

        put = Checkpoint.put

        def put_and_kill(self, *arguments):
            put(self, *arguments)
            if len(self) == 2:
                (pid, *_) = reusable_executor._executor._processes
                os.kill(pid, signal.SIGKILL)

        Checkpoint.put = put_and_kill
        grid = ["--grid", "C=1,10", "--grid", "gamma=0.01:1:60"]
        more = ["--checkpoint", checkpoint, "--n-jobs", 2]
        leaveout("select", table, "--target", "colour", *grid, *more)

    running = Fork(search, tmp_path)
    assert running.wait() == 1
    first, last, *_ = running.read_err().splitlines()
    kept = count_cells(checkpoint)
    assert kept >= 2
    assert first.startswith(f"Interrupted: {kept} of 60 paths are kept in")
    assert last.startswith("Error: A worker process was killed")
    assert not running.has_workers()


@pytest.mark.nightly
def test_twenty_thousand_columns(run, rng, tmp_path):
    X, y = rng.normal(size=(16, 20_000)).round(3), np.repeat(["u", "v"], 8)
    X[:8, :2000] += 1.0
    table = pd.DataFrame(X, columns=[f"g{k}" for k in range(20_000)]).assign(y=y)
    path = tmp_path / "wide.csv"
    table.to_csv(path, index=False)
    how = ["--grid", "C=10", "--grid", "gamma=0.00005", "--json"]
    result = run("select", path, "--target", "y", *how)
    assert result.exit_code == 0, result.stderr
    svc = SVC(C=10, gamma=0.00005, tol=1e-8)
    wrong = cross_val_predict(svc, scale(X), y, cv=LeaveOneOut()) != y
    assert json_module.loads(result.stdout)["best"]["n_wrong"] == wrong.sum() < 8
    assert "Did you mean 'g777'?" in run("loo", path, "--target", "g 777").stderr
