# SPDX-License-Identifier: BSD-3-Clause
import functools
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import corrupt_checkpoints
import faults
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from leaveout import CheckpointError, CheckpointWarning
from leaveout.run._checkpoint import Checkpoint, fingerprint

if sys.platform != "win32":
    import forks

META = {"data": "a" * 40, "grid": "b" * 40, "version": "0.1.0"}
pytestmark = pytest.mark.filterwarnings("ignore:This process")  # is multi-threaded


@pytest.fixture
def path(tmp_path):
    """A checkpoint with one cell."""
    path = tmp_path / "run.db"
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(3, {"x": np.zeros(4)}, {"seconds": 0.5})
    return path


def test_cell_is_returned_bit_for_bit(path, rng):
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
        assert len(checkpoint) == 2
        assert checkpoint.get(8) is None
    assert facts == {"seconds": 0.1, "names": ["é"]}
    assert joblib.hash(found) == joblib.hash(arrays)


def test_other_runs_and_files_are_refused_and_not_changed(tmp_path, path):
    def refuse(name, message, **change):
        before = name.read_bytes() if name.is_file() else None
        with pytest.raises(CheckpointError, match=message):
            Checkpoint(name, META | change)
        assert before is None or name.read_bytes() == before

    refuse(path, r"what differs: data\. .* delete", data="c" * 40)
    refuse(path, r"version \(0\.1\.0 there, 2 here\)", version="2")
    text, other, schema = (tmp_path / name for name in ("notes", "other", "schema"))
    text.write_text("not a database, but of some length\n" * 50)
    refuse(text, "file is not a database")
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE cells (x)")
    refuse(other, "another program's SQLite database")
    schema.write_bytes(path.read_bytes().replace(b"E TABLE cells", b"E \xc1ABLE cells"))
    refuse(schema, "It is corrupt: restore it from a copy")
    refuse(tmp_path, "is a folder")
    refuse(tmp_path / "no" / "run.db", r"does not exist\. Create it first")
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 1")
    refuse(path, r"has format 1, but this version .* 3")


def test_objects_that_need_pickle_and_a_full_disk_are_refused(path):
    with Checkpoint(path, META) as checkpoint:
        with pytest.raises(ValueError, match="'x' holds objects"):
            checkpoint.put(0, {"x": np.array([object()])}, {})
        checkpoint._database.execute("PRAGMA max_page_count = 4")
        with pytest.raises(CheckpointError, match=r"disk is full\. Finished work is k"):
            checkpoint.put(1, {"x": np.zeros(100_000)}, {})
    assert faults.inspect(path) == (1, "ok")


@pytest.mark.parametrize(
    "change", ["number = 4", "arrays = x'00'", "facts = '{}'", "digest = x'00'"]
)
def test_changed_cell_is_recomputed(path, change):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"UPDATE cells SET {change}")
    with Checkpoint(path, META) as checkpoint:
        number = 4 if "number" in change else 3
        with pytest.warns(CheckpointWarning, match=f"cell {number} is corrupt"):
            assert checkpoint.get(number) is None


def test_locked_checkpoint_is_reported(path, monkeypatch):
    impatient = functools.partial(sqlite3.connect, path, isolation_level=None)
    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: impatient(timeout=0.0))
    with closing(impatient()) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CheckpointError, match=r"locked\. Another process keeps it"):
            Checkpoint(path, META)


def test_corrupt_file_is_refused_or_gives_the_same_cells(tmp_path):
    records = corrupt_checkpoints.run_trials(12, 0, tmp_path)
    assert {record["outcome"] for record in records} == {"same", "refused"}


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_killed_search_resumes_bit_identical(tmp_path):
    wanted = faults.digest(corrupt_checkpoints.search())
    put, path = Checkpoint.put, tmp_path / "search.db"

    def search():
        def put_and_die(self, *cell):
            put(self, *cell)
            if len(self) == 3:
                os.kill(os.getpid(), signal.SIGKILL)

        Checkpoint.put = put_and_die
        corrupt_checkpoints.search(path)

    assert forks.Fork(search, tmp_path).wait() == -signal.SIGKILL
    assert faults.inspect(path) == (3, "ok")
    assert faults.digest(corrupt_checkpoints.search(path)) == wanted
    assert faults.inspect(path) == (5, "ok")


X = np.arange(12.0).reshape(4, 3)
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})


EQUAL = [
    (np.asfortranarray(X), X[::1].copy()),
    ({"C": 1, "gamma": {"a", 3}}, {"gamma": {3, "a"}, "C": 1}),
    ([X[0, 1]] * 2, [X[0, 1], X[0, 1]]),
    (sparse.csr_array(X), sparse.csc_array(X)),
    ([FRAME, make_pipeline(SVC())], [FRAME.copy(), make_pipeline(SVC())]),
]
# A module with a function or class k, and a change that matters.
CODE = [
    ("def k(A, B, *, c=1.0): return A @ B.T + c", "c=2.0"),
    ("def m(c): return lambda A, B: c * A\nk = m(1.0)", "m(2.0)"),
    ("c = 1.0\ndef k(A, B): return A @ B.T + c", "c = 2.0"),
    ("def g(): return 1.0\ndef k(A, B): return A @ B.T + g()", "return 2.0"),
    ("c = 1.0\ndef k(A, B): return [c for _ in A]", "c = 2.0"),
    ("t = {'f': lambda: 1.0}\ndef k(A, B): return t['f']()", "lambda: 2.0"),
    ("class k:\n  def __call__(self, A): return super().g(A) + 1.0", "+ 2.0"),
    ("class k:\n  c = 1.0\n  def __call__(self, A): return self.c", "c = 2.0"),
    ("import types\nm = types.ModuleType('m')\nm.c = 1.0\ndef k(A): m", "c = 2.0"),
    ("class b:\n  @property\n  def c(s): return 1.0\nclass k(b): pass", "return 2"),
]
DIFFERENT = [
    (1, "1"),
    ([["a"], ["b"]], [["a", "b"]]),
    (X, X + 1e-15 * (X == 11)),
    (X, X.T.reshape(4, 3)),
    (sparse.csr_array((2, 3)), sparse.csr_array((2, 4))),
    (np.array(["a", None], dtype=object), np.array(["a", "None"], dtype=object)),
    (FRAME, FRAME.rename(columns={"a": "c"})),
    (pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 3]})),
    (make_pipeline(SVC(C=1)), make_pipeline(SVC(C=2))),
    (functools.partial(max, 1), functools.partial(max, 2)),
    (functools.lru_cache(np.sin), functools.lru_cache(np.cos)),
    ({}.get, {1: 2}.get),
    (SVC(kernel=lambda A, B: A @ B.T), SVC(kernel=lambda A, B: 2 * A @ B.T)),
]


def test_fingerprints_differ_if_content_does():
    for one, other in EQUAL:
        assert fingerprint(one) == fingerprint(other), one
    for one, other in DIFFERENT:
        assert fingerprint(one) != fingerprint(other), one
    for hidden in (np.random.RandomState(0), np.random.RandomState(0).normal):
        with pytest.raises(TypeError, match="its content is not visible"):
            fingerprint(hidden)


@pytest.mark.parametrize(("text", "other"), CODE)
def test_code_and_the_values_it_reads_matter(text, other):
    prints = []
    for version in (text, text, text.replace(other.replace("2", "1"), other)):
        module = {"__name__": "mine"}
        exec(version, module)
        prints.append(fingerprint(module["k"]))
    assert prints[0] == prints[1] != prints[2]


def test_same_fingerprint_in_another_process():
    code = (
        "from leaveout.run._checkpoint import fingerprint\n"
        "class K:\n  def __call__(self, A): return A if 'a' in {'b', 'c'} else 0\n"
        "print(fingerprint([K(), lambda A: A, {'a', 'b', 'c'}, {'d': len}]))"
    )
    command = [sys.executable, "-c", code]
    assert len({subprocess.check_output(command) for _ in range(2)}) == 1
