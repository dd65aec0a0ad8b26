# SPDX-License-Identifier: BSD-3-Clause
import functools
import importlib
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import corrupt_checkpoints
import faults
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from leaveout import CheckpointError, CheckpointWarning
from leaveout.run._checkpoint import Checkpoint, fingerprint, report_interruption

if sys.platform != "win32":
    import forks

META = {"data": "a" * 40, "grid": "b" * 40, "version": "0.1.0"}
needs_fork = pytest.mark.skipif(sys.platform == "win32", reason="no fork")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def test_cell_is_returned_bit_by_bit(path, rng):
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
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "c" * 40}, r"what differs: data\. .* delete"),
        ({"version": "0.2.0"}, r"version \(0\.1\.0 there, 0\.2\.0 here\)"),
        ({"task": "honest_loo"}, r"task \(None there"),
    ],
)
def test_other_run_is_refused_with_what_differs(path, change, message):
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(0, {"x": np.zeros(1)}, {})
    with pytest.raises(CheckpointError, match=message):
        Checkpoint(path, META | change)
    with Checkpoint(path, META) as checkpoint:
        assert len(checkpoint) == 1


def test_other_files_are_refused_and_not_changed(tmp_path, path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but of some length\n" * 50)
    with pytest.raises(CheckpointError, match="file is not a database"):
        Checkpoint(text, META)
    assert text.read_text().startswith("not a database")
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE cells (x)")
    with pytest.raises(CheckpointError, match="another program's SQLite database"):
        Checkpoint(path, META)
    with pytest.raises(CheckpointError, match="is a folder"):
        Checkpoint(tmp_path, META)
    with pytest.raises(CheckpointError, match=r"does not exist\. Create it first"):
        Checkpoint(tmp_path / "no" / "run.db", META)


def test_objects_that_need_pickle_are_refused(path):
    with Checkpoint(path, META) as checkpoint:
        with pytest.raises(ValueError, match="'x' holds objects"):
            checkpoint.put(0, {"x": np.array([object()])}, {})
        assert len(checkpoint) == 0


def test_full_disk_is_reported(path):
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(0, {"x": np.zeros(2)}, {})
        checkpoint._database.execute("PRAGMA max_page_count = 4")
        with pytest.raises(CheckpointError, match=r"disk is full\. Finished work is k"):
            checkpoint.put(1, {"x": np.zeros(100_000)}, {})
        assert len(checkpoint) == 1


def test_interruption_is_reported_in_one_line(path, capsys):
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


@pytest.mark.parametrize(
    "change",
    [
        "number = 4",
        "arrays = substr(arrays, 1, 100)",
        "facts = replace(facts, '0.5', '0.7')",
        "digest = x'00'",
    ],
)
def test_changed_cell_is_recomputed(path, change):
    with Checkpoint(path, META) as checkpoint:
        checkpoint.put(3, {"x": np.zeros(4)}, {"seconds": 0.5})
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"UPDATE cells SET {change}")
    with Checkpoint(path, META) as checkpoint:
        number = 4 if "number" in change else 3
        with pytest.warns(CheckpointWarning, match=f"cell {number} is corrupt"):
            assert checkpoint.get(number) is None
        checkpoint.put(number, {"x": np.ones(1)}, {})
        assert checkpoint.get(number)[0]["x"].tolist() == [1.0]


def test_other_format_is_refused(path):
    Checkpoint(path, META).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 1")
    with pytest.raises(CheckpointError, match=r"has format 1, this version .* 3"):
        Checkpoint(path, META)


def test_corrupt_schema_that_is_not_text(path):
    Checkpoint(path, META).close()
    raw = path.read_bytes()
    assert raw.count(b"CREATE TABLE cells") == 1
    path.write_bytes(raw.replace(b"CREATE TABLE cells", b"CREATE \xc1ABLE cells"))
    with pytest.raises(CheckpointError, match="It is corrupt: restore it from a copy"):
        Checkpoint(path, META)


def test_locked_checkpoint_is_reported(path, monkeypatch):
    Checkpoint(path, META).close()
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0.0})
    )
    with closing(connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CheckpointError, match=r"locked\. Another process keeps it"):
            Checkpoint(path, META)


def test_corrupt_file_is_refused_or_gives_the_same(tmp_path):
    records = corrupt_checkpoints.run_trials(12, 0, tmp_path)
    assert {record["outcome"] for record in records} == {"same", "refused"}


@needs_fork
@pytest.mark.filterwarnings("ignore:This process")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_stopped_search_resumes_bit_identical(tmp_path, path, number):
    wanted = faults.digest(corrupt_checkpoints.search())
    put, stalled = Checkpoint.put, tmp_path / "stalled"

    def search():
        def put_and_stall(self, *cell):
            put(self, *cell)
            if len(self) == 3:
                stalled.write_text("yes")
                time.sleep(600)

        Checkpoint.put = put_and_stall
        corrupt_checkpoints.search(path)

    running = forks.Fork(search, tmp_path)
    running.wait_for(stalled, "yes")
    running.signal(number)
    assert running.wait() != 0
    assert faults.inspect(path) == (3, "ok")
    interrupted = "Interrupted: 3 of 5 paths are kept" in running.read_err()
    assert interrupted == (number == signal.SIGINT)
    assert faults.digest(corrupt_checkpoints.search(path)) == wanted
    assert faults.inspect(path) == (5, "ok")


@needs_fork
@pytest.mark.filterwarnings("ignore:This process")
def test_three_searches_share_one_checkpoint(tmp_path, path):
    wanted = faults.digest(corrupt_checkpoints.search())

    def search():
        sys.stdout.write(faults.digest(corrupt_checkpoints.search(path)))

    running = [forks.Fork(search, tmp_path) for _ in range(3)]
    assert [fork.wait() for fork in running] == [0, 0, 0], running[0].read_err()
    assert {fork.read_out() for fork in running} == {wanted}
    assert faults.inspect(path) == (5, "ok")


X = np.arange(12.0).reshape(4, 3)
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})


def make_kernel(width):
    return lambda A, B: np.exp(-width * np.abs(A - B.T))


EQUAL = [
    (np.asfortranarray(X), X[::1].copy()),
    ({"C": 1, "gamma": 2}, {"gamma": 2, "C": 1}),
    ({"a", "b", 3}, {3, "b", "a"}),
    ([X[0, 1]] * 2, [X[0, 1], X[0, 1]]),
    (sparse.csr_array(X), sparse.csc_array(X)),
    (FRAME, FRAME.copy()),
    (make_pipeline(StandardScaler(), SVC()), make_pipeline(StandardScaler(), SVC())),
    (make_kernel(1.0), make_kernel(1.0)),
]
DIFFERENT = [
    (1, "1"),
    (None, "None"),
    ([1, 2], [2, 1]),
    ([["a"], ["b"]], [["a", "b"]]),
    (X, X + 1e-15 * (X == 11)),
    (X, X.T.reshape(4, 3)),
    (["ab", "c"], ["a", "bc"]),
    (np.array(["a", None], dtype=object), np.array(["a", "None"], dtype=object)),
    (FRAME, FRAME.rename(columns={"a": "c"})),
    (FRAME, FRAME.assign(b=["x", "y"])),
    (pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 3]})),
    (SVC(C=1), SVC(C=2)),
    (make_pipeline(StandardScaler(), SVC()), make_pipeline(SVC())),
    (SVC(kernel=lambda A, B: A @ B.T), SVC(kernel=lambda A, B: 2 * A @ B.T)),
    (functools.partial(max, 1), functools.partial(max, 2)),
    (functools.lru_cache(np.sin), functools.lru_cache(np.cos)),
    ({}.get, {1: 2}.get),
    (FunctionTransformer(np.log1p), FunctionTransformer(np.expm1)),
    (np.mean, np.median),
    (make_kernel(1.0), make_kernel(2.0)),
]


@pytest.mark.parametrize(("one", "other"), EQUAL, ids=range(len(EQUAL)))
def test_equal_fingerprints(one, other):
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=range(len(DIFFERENT)))
def test_different_fingerprints(one, other):
    assert fingerprint(one) != fingerprint(other)


def test_same_fingerprint_in_another_process():
    code = (
        "from leaveout.run._checkpoint import fingerprint\n"
        "class K:\n  def __call__(self, A, B): return A @ B.T if 'a' in {'b', 'c'} "
        "else B\n"
        "print(fingerprint([K(), lambda A: A, {'a', 'b', 'c'}, {'d': len}]))"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(prints) == 1


def test_invisible_content_is_refused():
    with pytest.raises(TypeError, match="its content is not visible"):
        fingerprint(np.random.RandomState(0))
    with pytest.raises(TypeError, match="its content is not visible"):
        fingerprint(np.random.RandomState(0).normal)


def kernel_of_module(text, **names):
    """The ``k`` of a module with this text."""
    module = {"__name__": "mine", **names}
    exec(text, module)
    return module["k"]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("def k(A, B, *, c=1.0): return A @ B.T + c", "c=2.0"),
        ("c = 1.0\ndef k(A, B): return A @ B.T + c", "c = 2.0"),
        ("def g(): return 1.0\ndef k(A, B): return A @ B.T + g()", "return 2.0"),
        ("c = 1.0\ndef k(A, B): return [c for _ in A]", "c = 2.0"),
        ("t = {'f': lambda: 1.0}\ndef k(A, B): return t['f']()", "lambda: 2.0"),
        ("class k:\n  def __call__(self, A): return super().g(A) + 1.0", "+ 2.0"),
        ("class k:\n  c = 1.0\n  def __call__(self, A): return self.c", "c = 2.0"),
        ("class b:\n  @property\n  def c(s): return 1.0\nclass k(b): pass", "return 2"),
    ],
)
def test_code_and_what_it_reads_count(text, other):
    changed = text.replace(other.replace("2", "1"), other)
    assert changed != text
    assert fingerprint(kernel_of_module(text)) == fingerprint(kernel_of_module(text))
    assert fingerprint(kernel_of_module(text)) != fingerprint(kernel_of_module(changed))


def test_module_of_the_user_counts(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    prints = []
    for width in (1.0, 1.0, 2.0):
        (tmp_path / "kernels_of_mine.py").write_text(f"def k(A): return {width} * A")
        sys.modules.pop("kernels_of_mine", None)
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        text = "import kernels_of_mine\ndef k(A, B): return kernels_of_mine.k(A)"
        prints.append(fingerprint(kernel_of_module(text)))
    assert prints[0] == prints[1] != prints[2]


def test_installed_functions_count_by_name():
    text = "def k(A, B): return rbf_kernel(A, B) + np.mean(A)"
    names = {"rbf_kernel": rbf_kernel, "np": np}
    one = fingerprint(kernel_of_module(text, **names))
    assert one == fingerprint(kernel_of_module(text, **names))
    assert one != fingerprint(kernel_of_module(text, **names | {"rbf_kernel": len}))
