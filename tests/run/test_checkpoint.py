# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import faults
import injuries
import numpy as np
import pytest
from injuries import run_trials as run_injuries

from leaveout import CheckpointError, CheckpointWarning
from leaveout.run._checkpoint import Checkpoint, report_interruption

if sys.platform != "win32":
    import forks

META = {"data": "a" * 64, "grid": "b" * 64, "version": "0.1.0"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def test_a_cell_comes_back_bit_by_bit(path, rng):
    arrays = {
        "values": rng.normal(size=(3, 4)),
        "odd": np.array([np.nan, np.inf, -0.0, 5e-324]),
        "flags": np.array([True, False]),
        "names": np.array(["a", "bcd"]),
    }
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(7, arrays, {"seconds": 0.1, "names": ["é"]})
    with Checkpoint(path, META) as checkpoint:
        found, facts = checkpoint.get(7)
        assert len(checkpoint) == 1
        assert checkpoint.get(8) is None
    assert facts == {"seconds": 0.1, "names": ["é"]}
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("name", ["data", "grid"])
def test_another_run_is_refused_by_name_of_what_differs(path, name):
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(0, {"x": np.zeros(1)}, {})
    with pytest.raises(
        CheckpointError, match=rf"has 1 finished .* what differs: {name}\. .* delete"
    ):
        Checkpoint(path, {**META, name: "c" * 64})
    with Checkpoint(path, META) as checkpoint:  # refused, not harmed
        assert len(checkpoint) == 1


def test_another_version_is_refused_with_both(path):
    Checkpoint(path, META).close()
    with pytest.raises(CheckpointError, match=r"version \(0\.1\.0 there, 0\.2\.0 here"):
        Checkpoint(path, {**META, "version": "0.2.0"})


def test_what_is_no_checkpoint_is_refused_and_kept(tmp_path, path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but of some length\n" * 50)
    with pytest.raises(CheckpointError, match="file is not a database"):
        Checkpoint(text, META)
    assert text.read_text().startswith("not a database")
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE cells (x)")
    other.close()
    with pytest.raises(CheckpointError, match="another program's SQLite database"):
        Checkpoint(path, META)
    with pytest.raises(CheckpointError, match="is a folder"):
        Checkpoint(tmp_path, META)
    with pytest.raises(CheckpointError, match=r"does not exist\. Make it first"):
        Checkpoint(tmp_path / "no" / "run.db", META)


def test_an_empty_file_is_a_fresh_start(path):
    path.touch()
    with Checkpoint(path, META) as checkpoint:
        assert len(checkpoint) == 0


def test_objects_that_need_pickle_are_refused(path):
    with Checkpoint(path, META) as checkpoint:
        with pytest.raises(ValueError, match="'x' holds objects"):
            checkpoint.put(0, {"x": np.array([object()])}, {})
        assert len(checkpoint) == 0


def test_what_is_got_is_what_was_put_and_nothing_else(path):
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(0, {"x": np.zeros(2)}, {})
        assert set(checkpoint.get(0)[0]) == {"x"}


def test_a_full_disk_is_told(path):
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(0, {"x": np.zeros(2)}, {})
        checkpoint._database.execute("PRAGMA max_page_count = 4")
        with pytest.raises(CheckpointError, match=r"disk is full\. 1 cells are in"):
            checkpoint.put(1, {"x": np.zeros(100_000)}, {})
        assert len(checkpoint) == 1


def delete_and_stop(checkpoint):
    with checkpoint._transaction():
        checkpoint._database.execute("DELETE FROM cells")
        raise KeyboardInterrupt


def test_an_interrupted_transaction_leaves_nothing(path):
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(0, {"x": np.zeros(2)}, {})
        with pytest.raises(KeyboardInterrupt):
            delete_and_stop(checkpoint)
        assert len(checkpoint) == 1


def test_interruption_is_told_in_one_line(path, capsys):
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(0, {"x": np.zeros(2)}, {})
        with pytest.raises(KeyboardInterrupt), report_interruption(checkpoint, 20):
            raise KeyboardInterrupt
    assert capsys.readouterr().err == (
        f"Interrupted: 1 of 20 cells are kept in {path}; run again to go on.\n"
    )
    with pytest.raises(KeyboardInterrupt), report_interruption(None, 20):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == ""


KILLED_AT = """
import os, signal, sqlite3, sys
import numpy as np
from leaveout.run._checkpoint import Checkpoint

class Deadly(sqlite3.Connection):
    left = int(sys.argv[2])
    def execute(self, *arguments):
        Deadly.left -= 1
        if Deadly.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(*arguments)

connect = sqlite3.connect
sqlite3.connect = lambda *a, **k: connect(*a, factory=Deadly, **k)
kept = 0
for n in range(1, 60):
    Deadly.left, child = n, os.fork()
    if child == 0:
        with Checkpoint(sys.argv[1], {"version": "1"}) as checkpoint:
            first = len(checkpoint)
            for number in range(first, first + 2):
                checkpoint.put(number, {"x": np.full(3000, number)}, {})
        os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    Deadly.left = 10**9
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


def test_killed_before_each_statement(path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT, str(path), "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[1] for line in lines[:-1]] == ["True"] * (len(lines) - 1)
    assert lines[-1][1] == "False"
    assert len(lines) > 10


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_killed_at_random_resumes_bit_identical(n_jobs):
    check_faults(n_kills=4 if n_jobs == 1 else 2, seed=n_jobs, n_jobs=n_jobs)


@pytest.mark.nightly
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_killed_fifty_times(n_jobs):
    check_faults(n_kills=50, seed=10 + n_jobs, n_jobs=n_jobs)


def check_faults(n_kills, seed, n_jobs):
    script = Path(__file__).parents[1] / "faults.py"
    command = [sys.executable, str(script), "--kills", str(n_kills)]
    command += ["--seed", str(seed), "--n-jobs", str(n_jobs)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    kills = [record for record in records if record["event"] == "killed"]
    finished = [record for record in records if record["event"] == "finished"]
    assert len(kills) == n_kills
    for record in kills:
        assert record["file"] in ("ok", "absent")
        assert record["kept"] >= record["kept_before"]
    assert finished
    for record in finished:
        assert record["kept"] == 10
        assert record["identical"]


def test_a_damaged_checkpoint_is_refused_or_gives_the_same(tmp_path):
    outcomes = [record["outcome"] for record in run_injuries(40, 0, tmp_path)]
    assert set(outcomes) == {"same", "refused"}


@pytest.mark.parametrize("column", ["number", "arrays", "facts", "digest"])
def test_a_cell_that_was_changed_is_computed_anew(path, column):
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(3, {"x": np.zeros(4)}, {"seconds": 0.5})
    changes = {
        "number": "number = 4",
        "arrays": "arrays = substr(arrays, 1, 100)",
        "facts": "facts = replace(facts, '0.5', '0.7')",
        "digest": "digest = x'00'",
    }
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE cells SET {changes[column]}")
    database.close()
    with Checkpoint(path, META) as checkpoint:
        number = 4 if column == "number" else 3
        with pytest.warns(CheckpointWarning, match=f"cell {number} is damaged"):
            assert checkpoint.get(number) is None
        checkpoint.put(number, {"x": np.ones(1)}, {})
        assert checkpoint.get(number)[0]["x"].tolist() == [1.0]


def test_a_changed_description_is_damage_not_another_run(path):
    Checkpoint(path, META).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE meta SET value = 'c' WHERE name = 'data'")
    database.close()
    with pytest.raises(CheckpointError, match="is damaged: its description"):
        Checkpoint(path, META)


def test_a_file_of_another_format_is_refused(path):
    Checkpoint(path, META).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 1")
    database.close()
    with pytest.raises(CheckpointError, match=r"has format 1, this version .* 2"):
        Checkpoint(path, META)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_two_searches_on_one_checkpoint(tmp_path):
    wanted = faults.digest(injuries.search())
    path = tmp_path / "run.db"

    def search():
        sys.stdout.write(faults.digest(injuries.search(path)))

    running = [forks.Fork(search, tmp_path) for _ in range(3)]
    assert [fork.wait() for fork in running] == [0, 0, 0], running[0].read_err()
    assert {fork.read_out() for fork in running} == {wanted}
    assert faults.inspect(path) == (5, "ok")


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_locked_checkpoint_says_so(path, monkeypatch):
    Checkpoint(path, META).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0.0})
    )
    with pytest.raises(CheckpointError, match=r"locked\. Another process keeps it"):
        Checkpoint(path, META)
    other.close()


def test_a_damaged_schema_that_is_no_text(tmp_path):
    path = tmp_path / "run.db"
    with Checkpoint(path, META) as kept:
        kept.put(0, {"x": np.arange(3)}, {})
    raw = path.read_bytes()
    assert raw.count(b"CREATE TABLE cells") == 1
    path.write_bytes(raw.replace(b"CREATE TABLE cells", b"CREATE \xc1ABLE cells"))
    with pytest.raises(CheckpointError, match="It is damaged: restore it from a copy"):
        Checkpoint(path, META)
