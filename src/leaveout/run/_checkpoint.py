# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints in SQLite, and fingerprints that say what they belong to.

The same number for the same data or parameters, in every process.

Finished cells of a long run in one SQLite file, so that a killed run goes on.

Each cell is one transaction that SQLite has written through to the disk before ``put``
returns: whenever the process dies, the file holds all cells put before and nothing
else. Arrays are stored as npz without pickle. SQLite does not notice a flipped bit
inside a cell, so each has a checksum, over its number too; a cell that fails it counts
as not there.

The last state of a long run in one file, so that a killed run goes on.

The file is an npz without pickle, and is replaced as a whole: whenever the process
dies, it holds one state or the next.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import io
import json
import os
import sys
import sysconfig
import types
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from leaveout.exceptions import (
    CheckpointError,
    CheckpointWarning,
    ClusterLostError,
    WorkerKilledError,
)
from leaveout.run._files import write_atomically

# "lvot" in the header tells our files from other SQLite databases.
APPLICATION_ID = 0x6C766F74
# Of the tables below; a file with others is refused.
FORMAT = 2
SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE cells (number INTEGER PRIMARY KEY, arrays BLOB NOT NULL, "
    "facts TEXT NOT NULL, digest BLOB NOT NULL)",
)
# Name of the checksum among the meta.
DIGEST = "digest"
# What ends a run that may go on later.
INTERRUPTIONS = (
    KeyboardInterrupt,
    MemoryError,
    ClusterLostError,
    WorkerKilledError,
)
META = "leaveout"
# What NumPy and json raise for a file that is something else, or half of one.
NOT_OURS = (OSError, EOFError, ValueError, TypeError, LookupError, zipfile.BadZipFile)


def fingerprint(thing: Any) -> str:
    """Return a SHA-256 of what an object holds, whatever its address in memory.

    Parameters
    ----------
    thing : object
        Numbers, texts, arrays, sparse matrices, tables, estimators, functions, and
        lists, tuples, sets and dicts of these. Numbers count by value: 1, 1.0 and
        ``np.float64(1)`` are the same.

    Raises
    ------
    TypeError
        For an object whose content cannot be seen.

    Examples
    --------
    >>> import numpy as np
    >>> fingerprint({"C": [1, 10]}) == fingerprint({"C": np.array([1.0, 10.0])})
    True
    >>> fingerprint([1, 2]) == fingerprint([2, 1])
    False
    """
    digest = hashlib.sha256()
    for part in _parts(thing):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _parts(thing: Any) -> Iterator[bytes]:
    """Yield the content piece by piece."""
    if thing is None or isinstance(thing, str | bytes | type):
        name = thing.__qualname__ if isinstance(thing, type) else thing
        yield f"{type(thing).__name__} {name!r}".encode()
    elif isinstance(thing, bool | int | float | complex | np.number | np.bool_):
        yield f"number {complex(thing)!r}".encode()
    elif isinstance(thing, np.ndarray):
        yield from _array_parts(thing)
    elif sparse.issparse(thing):
        rows = thing.tocsr(copy=True)
        rows.sum_duplicates()
        yield f"sparse {rows.shape}".encode()
        for array in (rows.indptr, rows.indices, rows.data):
            yield from _array_parts(np.asarray(array))
    elif isinstance(thing, Mapping):
        yield f"mapping {len(thing)}".encode()
        for key in sorted(thing, key=repr):
            yield from _parts(key)
            yield from _parts(thing[key])
    elif isinstance(thing, list | tuple | range):
        yield from _list_parts(list(thing))
    elif isinstance(thing, set | frozenset):
        yield from _list_parts(sorted(fingerprint(item) for item in thing))
    elif hasattr(thing, "columns") or hasattr(thing, "to_numpy"):
        yield from _table_parts(thing)
    elif hasattr(thing, "get_params"):
        yield from _parts([type(thing), thing.get_params(deep=False)])
    else:
        yield from _callable_parts(thing)


def _array_parts(array: np.ndarray) -> Iterator[bytes]:
    """Numbers as float64, whatever they were; objects one by one."""
    yield f"array {array.shape}".encode()
    if array.dtype.kind in "biuf":
        yield np.ascontiguousarray(array, dtype=np.float64).tobytes()
        return
    for item in array.ravel().tolist():
        yield from _parts(item)


def _list_parts(items: list[Any]) -> Iterator[bytes]:
    """As the array of the same numbers if it is one."""
    try:
        array = np.asarray(items)
    except ValueError:  # ragged
        array = np.empty(0, dtype=object)
    if array.dtype.kind in "biuf" and array.size:
        yield from _array_parts(array)
        return
    yield f"array {(len(items),)}".encode()
    for item in items:
        yield from _parts(item)


def _table_parts(table: Any) -> Iterator[bytes]:
    """Yield a column, or a table by columns, of pandas, polars or pyarrow."""
    if not hasattr(table, "columns"):
        yield from _parts(table.to_numpy())
        return
    names = getattr(table, "column_names", table.columns)
    for position, name in enumerate(names):
        yield from _parts(str(name))
        column = table.iloc[:, position] if hasattr(table, "iloc") else table[name]
        yield from _parts(column.to_numpy())


def _callable_parts(thing: Any) -> Iterator[bytes]:
    """Yield what a function does, or what else a thing is made of."""
    if isinstance(thing, functools.partial):
        yield from _parts(["partial", thing.func, thing.args, thing.keywords])
    elif isinstance(thing, types.FunctionType):
        yield from _function_parts(thing)
    elif isinstance(thing, types.MethodType):
        yield from _parts([thing.__func__, thing.__self__])
    elif isinstance(thing, types.BuiltinFunctionType | np.ufunc | types.ModuleType):
        yield from _parts(thing.__name__)
    elif hasattr(thing, "__dict__"):
        yield from _parts([type(thing), vars(thing)])
    else:
        raise TypeError(
            f"{thing!r} cannot be compared with that of a later run: its content is "
            "not visible. Use a plain value in its place, such as an int for a "
            "random_state."
        )


# Functions whose content is being told: they may call themselves, or each other.
_being_told: ContextVar[tuple[types.FunctionType, ...]] = ContextVar(
    "_being_told", default=()
)


def _function_parts(function: types.FunctionType) -> Iterator[bytes]:
    """Yield code, defaults and closure, and what it reads of its module.

    Installed modules have versions, which are not watched here.
    """
    yield function.__qualname__.encode()
    yield from _code_parts(function.__code__)
    told = _being_told.get()
    if function in told:
        return
    token = _being_told.set((*told, function))
    try:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        yield from _parts([function.__defaults__, function.__kwdefaults__, cells])
        if not _is_installed(function):
            yield from _parts(_globals_read(function))
    finally:
        _being_told.reset(token)


def _is_installed(function: types.FunctionType) -> bool:
    own = (__package__ or "").partition(".")[0]
    folders = ("stdlib", "platstdlib", "purelib", "platlib")
    return function.__module__.partition(".")[0] == own or any(
        function.__code__.co_filename.startswith(sysconfig.get_path(folder))
        for folder in folders
    )


def _globals_read(function: types.FunctionType) -> dict[str, Any]:
    """Return the values of module-level names that a function reads."""
    codes, names = [function.__code__], set()
    while codes:
        code = codes.pop()
        names |= {
            step.argval
            for step in dis.get_instructions(code)
            if step.opname == "LOAD_GLOBAL"
        }
        codes += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    known = function.__globals__
    return {name: known[name] for name in names if name in known}


def _code_parts(code: types.CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield " ".join(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(constant).encode()


class Checkpoint:
    """Arrays and facts of finished cells, by number, in a file.

    Parameters
    ----------
    path : str or path-like
        The file; made if it does not exist.
    meta : mapping of str to str
        What the cells belong to: fingerprints of the data and the grid, versions … A
        file with another meta is refused.

    Raises
    ------
    CheckpointError
        If the file belongs to another run, is damaged, cannot be written, or is none of
        ours.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "run.db")
    ...     with Checkpoint(path, {"data": "a"}) as first:
    ...         first.put(3, {"x": np.arange(2)}, {"seconds": 0.5})
    ...     with Checkpoint(path, {"data": "a"}) as again:
    ...         again.get(3)
    ({'x': array([0, 1])}, {'seconds': 0.5})
    """

    def __init__(self, path: str | os.PathLike[str], meta: Mapping[str, str]) -> None:
        import sqlite3  # only those who keep cells pay for it

        self.path = Path(path)
        _check_place(self.path)
        with self._errors_told():
            self._database = sqlite3.connect(
                self.path, isolation_level=None, timeout=60.0
            )
        try:
            with self._errors_told():
                self._database.execute("PRAGMA synchronous = EXTRA")
                with self._transaction():
                    self._create_or_compare(dict(meta))
        except BaseException:
            self.close()
            raise

    def put(
        self, number: int, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]
    ) -> None:
        """Keep a cell; on return it is on the disk."""
        import sqlite3

        row = (number, _pack(arrays), json.dumps(facts))
        try:
            with self._transaction():
                self._database.execute(
                    "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?)",
                    (*row, _digest(row)),
                )
        except sqlite3.Error as error:  # no space left, a file system gone …
            raise CheckpointError(
                f"checkpoint={str(self.path)!r}: a finished cell cannot be kept: "
                f"{error}. {self._count()} cells are in the file."
            ) from error

    def get(self, number: int) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Return the arrays and facts of a cell, None if it is not there or damaged."""
        with self._errors_told():
            found = self._database.execute(
                "SELECT arrays, facts, digest FROM cells WHERE number = ?", (number,)
            ).fetchone()
        if found is None:
            return None
        if found[2] != _digest((number, *found[:2])):
            warnings.warn(
                f"checkpoint={str(self.path)!r}: cell {number} is damaged; it is "
                "computed anew. Is the disk?",
                CheckpointWarning,
                stacklevel=2,
            )
            return None
        with np.load(io.BytesIO(found[0]), allow_pickle=False) as arrays:
            return dict(arrays), json.loads(found[1])

    def __len__(self) -> int:
        """Return the number of cells."""
        return self._database.execute("SELECT COUNT(*) FROM cells").fetchone()[0]

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _count(self) -> str:
        """Return the number of cells as text, also if the file is past reading."""
        try:
            return str(len(self))
        except Exception:
            return "An unknown number of"

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        """Turn what SQLite says of a file into an error that names it."""
        import sqlite3

        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # What SQLite says of a damaged schema quotes it, bytes and all.
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} cannot be used: {error}. {_hint(error)}"
            ) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, whatever interrupts it."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                with suppress(Exception):  # the first error is the one to tell
                    self._database.execute("ROLLBACK")
            raise

    def _create_or_compare(self, meta: dict[str, str]) -> None:
        """Start an empty file, or check that it belongs to this run."""
        query = "SELECT COUNT(*) FROM sqlite_master"
        if self._database.execute(query).fetchone()[0] == 0:
            for statement in SCHEMA:
                self._database.execute(statement)
            whole = {**meta, DIGEST: _digest(sorted(meta.items())).hex()}
            self._database.executemany("INSERT INTO meta VALUES (?, ?)", whole.items())
            return
        identity = self._database.execute("PRAGMA application_id").fetchone()[0]
        if identity != APPLICATION_ID:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} is another program's SQLite database. "
                "Give another name."
            )
        self._check_health()
        found = dict(self._database.execute("SELECT name, value FROM meta"))
        if found.pop(DIGEST, None) != _digest(sorted(found.items())).hex():
            raise CheckpointError(_damaged(self.path, "its description has changed"))
        differing = [
            name for name in {**found, **meta} if found.get(name) != meta.get(name)
        ]
        if differing:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} has {len(self)} finished cells of "
                f"another run; what differs: {_differences(differing, found, meta)}. "
                "Go on with what it was begun with, give another name, or delete the "
                "file."
            )

    def _check_health(self) -> None:
        """Refuse a file of another format, and one that SQLite finds damaged."""
        file_format = self._database.execute("PRAGMA user_version").fetchone()[0]
        if file_format != FORMAT:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} has format {file_format}, this version "
                f"of leaveout {FORMAT}. Give another name, or delete the file."
            )
        health = self._database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if health != "ok":
            raise CheckpointError(_damaged(self.path, health))


def _digest(parts: Sequence[Any]) -> bytes:
    """SHA-256 of a row, whatever kinds of things a damaged file may hold in it."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.digest()


def _damaged(path: Path, why: str) -> str:
    return (
        f"checkpoint={str(path)!r} is damaged: {why}. Restore it from a copy, delete "
        "it, or give another name."
    )


def _hint(error: Exception) -> str:
    """Say what to do about an error of SQLite."""
    text = str(error)
    if "not a database" in text:
        return "Give the name of a file that leaveout made, or of none."
    if "malformed" in text or "decode" in text:
        return "It is damaged: restore it from a copy, delete it, or give another name."
    if "readonly" in text or "unable to open" in text:
        return "Give the name of a file in a folder you may write to."
    if "locked" in text:
        return "Another process keeps it locked; wait for it, or give another name."
    return "Is the disk full, or gone?"


@contextmanager
def report_interruption(
    checkpoint: Checkpoint | None, total: int, unit: str = "cells"
) -> Iterator[None]:
    """On Ctrl-C and the like, say on stderr what is kept; the exception goes on."""
    try:
        yield
    except INTERRUPTIONS:
        if checkpoint is not None:
            sys.stderr.write(
                f"Interrupted: {len(checkpoint)} of {total} {unit} are kept in "
                f"{checkpoint.path}; run again to go on.\n"
            )
            sys.stderr.flush()
        raise


def _pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Write arrays as npz; refuse those that only pickle could write.

    ``np.savez(allow_pickle=False)`` would do, but before NumPy 2.2 takes the word for
    the name of an array, and pickles.
    """
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise ValueError(f"{objects[0]!r} holds objects, which no checkpoint keeps.")
    buffer = io.BytesIO()
    np.savez(buffer, **dict(arrays))  # type: ignore[arg-type]
    return buffer.getvalue()


def _check_place(path: Path) -> None:
    """Refuse a folder, and a file in a folder that is not there."""
    if path.is_dir():
        raise CheckpointError(
            f"checkpoint={str(path)!r} is a folder. Give the name of a file in it."
        )
    if not path.absolute().parent.is_dir():
        raise CheckpointError(
            f"checkpoint={str(path)!r}: the folder {str(path.parent)!r} does not "
            "exist. Make it first."
        )


def _differences(
    names: list[str], found: Mapping[str, str], wanted: Mapping[str, str]
) -> str:
    """Name what differs; versions with their values, fingerprints without."""
    short = {
        name: len(found.get(name, "")) < 40 and len(wanted.get(name, "")) < 40
        for name in names
    }
    return ", ".join(
        f"{name} ({found.get(name)} there, {wanted.get(name)} here)"
        if short[name]
        else name
        for name in names
    )


class Snapshot:
    """Arrays in a file, and what they belong to.

    Parameters
    ----------
    path : str or path-like
        The file; it is read if it exists, and made by the first :meth:`save`.

    Attributes
    ----------
    arrays : dict of ndarray or None
        The last state; None if there is no file yet.
    found : dict of str to str
        What the state of the file belongs to.

    Raises
    ------
    CheckpointError
        If the file is none of ours.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.npz")
    ...     Snapshot(path).save({"data": "a"}, {"x": np.arange(2)})
    ...     again = Snapshot(path)
    >>> again.compare({"data": "a"})
    >>> again.arrays["x"]
    array([0, 1])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        _check_place(self.path)
        self.found: dict[str, str] = {}
        self.arrays: dict[str, np.ndarray] | None = None
        if self.path.exists():
            self.found, self.arrays = self._read()

    def compare(self, meta: Mapping[str, str]) -> None:
        """Refuse the file if it belongs to something else."""
        if self.arrays is None:
            return
        differing = [name for name in meta if self.found.get(name) != meta[name]]
        if differing:
            self.refuse(_differences(differing, self.found, meta))

    def refuse(self, differences: str) -> None:
        """Raise the error that says what differs."""
        raise CheckpointError(
            f"checkpoint={str(self.path)!r} belongs to another fit; what differs: "
            f"{differences}. Go on with what it was begun with, give another name, or "
            "delete the file."
        )

    def save(self, meta: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the state; on return it is on the disk."""
        content = _pack({META: np.array(json.dumps(dict(meta))), **arrays})
        try:
            write_atomically(self.path, content)
        except OSError as error:  # no space left, a file system gone …
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} cannot be written: {error}."
            ) from error
        self.found, self.arrays = dict(meta), dict(arrays)

    def _read(self) -> tuple[dict[str, str], dict[str, np.ndarray]]:
        try:
            content = io.BytesIO(self.path.read_bytes())
            with np.load(content, allow_pickle=False) as file:
                arrays = dict(file)
            return json.loads(str(arrays.pop(META))), arrays
        except NOT_OURS as error:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} cannot be used: it is not a checkpoint "
                "of a fit. Give the name of a file that leaveout made, or of none."
            ) from error
