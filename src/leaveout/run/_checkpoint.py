# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of long runs in SQLite, and fingerprints of what they belong to.

Each cell is one transaction, on the disk before ``put`` returns: whenever the process
dies, the file holds all cells put before and nothing else. SQLite does not notice a
flipped bit inside a cell, so each has a checksum; a cell that fails it is recomputed.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import sys
import sysconfig
import types
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from leaveout.exceptions import (
    CheckpointError,
    CheckpointWarning,
    ClusterLostError,
    WorkerKilledError,
)

APPLICATION_ID = 0x6C766F74  # "lvot", in the header of checkpoint files
FORMAT = 3  # of the tables below
SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE cells (number INTEGER PRIMARY KEY, arrays BLOB NOT NULL, "
    "facts TEXT NOT NULL, digest BLOB NOT NULL)",
)
CORRUPT = "It is corrupt: restore it from a copy, delete it, or give a new name."
# What to do about an error, by SQLite's message.
ADVICE = {
    "not a database": "Give the name of a checkpoint of leaveout, or a new name.",
    "readonly": "Give the name of a file in a folder you may write to.",
    "unable to open": "Give the name of a file in a folder you may write to.",
    "locked": "Another process keeps it locked: wait for it, or give another name.",
    "full": "Finished work is kept in the file: free some space and run again.",
    "malformed": CORRUPT,
    "decode": CORRUPT,
}
# Treated as installed, even if they run from a source tree.
PACKAGES = ("leaveout", "sklearn", "numpy", "scipy", "pandas")
SCALARS = (str, bytes, bool, int, float, complex, np.generic, type(None), type(...))


class Checkpoint:
    """Arrays and facts of finished cells, by number, in a file.

    ``meta`` identifies the run they belong to; a file with another meta is refused.
    """

    def __init__(self, path: str | os.PathLike[str], meta: Mapping[str, str]) -> None:
        import sqlite3  # imported only if needed: it takes milliseconds

        self.path = Path(path)
        check_place(self.path)
        with self._wrap_sqlite_errors():
            self._database = sqlite3.connect(
                self.path, isolation_level=None, timeout=60.0
            )
            try:
                self._database.execute("PRAGMA synchronous = EXTRA")
                with self._database:
                    self._database.execute("BEGIN IMMEDIATE")
                    self._create_or_compare(dict(meta))
            except BaseException:
                self.close()
                raise

    def put(
        self, number: int, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]
    ) -> None:
        """Store a cell; on return it is on the disk."""
        row = (number, _pack(arrays), json.dumps(facts))
        with self._wrap_sqlite_errors(), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute(
                "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?)",
                (*row, _digest(*row)),
            )

    def get(self, number: int) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the arrays and facts of a cell, None if it is absent or corrupt."""
        with self._wrap_sqlite_errors():
            found = self._database.execute(
                "SELECT arrays, facts, digest FROM cells WHERE number = ?", (number,)
            ).fetchone()
        if found is None:
            return None
        if found[2] != _digest(number, *found[:2]):
            warnings.warn(
                f"checkpoint={str(self.path)!r}: cell {number} is corrupt and will be "
                "recomputed; check the disk.",
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
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def _wrap_sqlite_errors(self) -> Iterator[None]:
        """Convert an error of SQLite to one that names the file and what to do."""
        import sqlite3

        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            text = str(error)
            advice = [ADVICE[word] for word in ADVICE if word in text]
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} cannot be used: {text}. "
                f"{advice[0] if advice else 'Check the disk.'}"
            ) from error

    def _create_or_compare(self, meta: dict[str, str]) -> None:
        """Start an empty file, or check that it belongs to this run."""
        read = self._database.execute
        if read("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in SCHEMA:
                read(statement)
            self._database.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
            return
        if read("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} is another program's SQLite database. "
                "Give another name."
            )
        file_format = read("PRAGMA user_version").fetchone()[0]
        if file_format != FORMAT:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} has format {file_format}, but this "
                f"version of leaveout uses {FORMAT}. Give another name, or delete the "
                "file."
            )
        health = read("PRAGMA quick_check(1)").fetchone()[0]
        if health != "ok":
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} cannot be used: {health}. {CORRUPT}"
            )
        found = dict(read("SELECT name, value FROM meta"))
        refuse_other_run(self.path, find_differences(found, meta))


def find_differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return the names that differ, with their values if these are short."""
    pairs = {n: (str(found.get(n)), str(wanted.get(n))) for n in {**found, **wanted}}
    return [
        f"{name} ({there} there, {here} here)"
        if max(len(there), len(here)) < 40  # longer ones are fingerprints
        else name
        for name, (there, here) in pairs.items()
        if there != here
    ]


def refuse_other_run(path: str | os.PathLike[str], differences: list[str]) -> None:
    """Raise if there are differences between a checkpoint and this run."""
    if differences:
        raise CheckpointError(
            f"checkpoint={os.fspath(path)!r} belongs to another run; what differs: "
            f"{', '.join(differences)}. Repeat the run it was started with, give "
            "another name, or delete the file."
        )


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise for a folder, and for a file in a folder that does not exist."""
    path, named = Path(path), f"checkpoint={os.fspath(path)!r}"
    if path.is_dir():
        raise CheckpointError(f"{named} is a folder. Give the name of a file in it.")
    if not path.absolute().parent.is_dir():
        raise CheckpointError(
            f"{named}: the folder {str(path.parent)!r} does not exist. Create it first."
        )


@contextmanager
def report_interruption(
    checkpoint: Checkpoint | None, total: int, unit: str = "cells"
) -> Iterator[None]:
    """If interrupted, report on stderr what is saved; the exception propagates."""
    try:
        yield
    except (KeyboardInterrupt, MemoryError, ClusterLostError, WorkerKilledError):
        if checkpoint is not None:
            sys.stderr.write(
                f"Interrupted: {len(checkpoint)} of {total} {unit} are saved in "
                f"{checkpoint.path}; run again to continue.\n"
            )
            sys.stderr.flush()
        raise


def _digest(*parts: Any) -> bytes:
    """Return the SHA-256 of a row, which may hold any types in a corrupt file."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.digest()


def _pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Write arrays as npz; refuse those that need pickle (savez cannot before 2.2)."""
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise ValueError(f"{objects[0]!r} holds objects, which need pickle.")
    buffer = io.BytesIO()
    np.savez(buffer, **dict(arrays))  # type: ignore[arg-type]
    return buffer.getvalue()


def fingerprint(thing: Any) -> str:
    """Return a hash of data, parameters and the code of functions among them.

    The hash is the same in every process. If in doubt, things differ: 1 and 1.0 do. An
    object whose content is not visible raises TypeError.
    """
    return joblib.hash(_describe(thing, ()), hash_name="sha1")


def _describe(thing: Any, outer: tuple[Any, ...]) -> Any:
    """Return values that joblib.hash sees in full, with functions replaced by code."""
    if isinstance(thing, np.generic):  # joblib distinguishes one from two equal
        return np.asarray(thing)
    if isinstance(thing, SCALARS):
        return thing
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return np.ascontiguousarray(thing)
    if sparse.issparse(thing):  # flags such as has_sorted_indices are not content
        rows = thing.tocsr(copy=True)
        rows.sum_duplicates()
        return ["sparse", rows.shape, rows.indptr, rows.indices, rows.data]
    if any(thing is other for other in outer):  # recursive code
        return thing.__name__
    return [type(thing).__name__, *(_describe(p, outer) for p in _parts(thing, outer))]


def _parts(thing: Any, outer: tuple[Any, ...]) -> Iterator[Any]:
    """Yield what an object consists of."""
    match thing:
        case np.ndarray():
            yield from (thing.shape, thing.ravel().tolist())
        case Mapping():
            yield from sorted(thing.items(), key=lambda item: repr(item[0]))
        case list() | tuple() | range():
            yield from thing
        case set() | frozenset():
            yield from sorted(fingerprint(item) for item in thing)
        case types.FunctionType() | type() | types.ModuleType():
            yield getattr(thing, "__module__", None)
            yield getattr(thing, "__qualname__", thing.__name__)
            if not _is_installed(thing):
                yield _describe(list(_code_parts(thing)), (*outer, thing))
        case types.CodeType():
            yield from (thing.co_code, thing.co_names, thing.co_consts)
        case types.BuiltinFunctionType() | np.ufunc():
            yield from (thing.__name__, getattr(thing, "__self__", None))
        case types.MethodType():
            yield from (thing.__func__, thing.__self__)
        case functools.partial():
            yield from (thing.func, thing.args, thing.keywords)
        case _ if hasattr(thing, "columns"):  # pandas, polars or pyarrow
            for k, name in enumerate(getattr(thing, "column_names", thing.columns)):
                column = thing.iloc[:, k] if hasattr(thing, "iloc") else thing[name]
                yield from (str(name), column.to_numpy())
        case _ if hasattr(thing, "to_numpy"):
            yield thing.to_numpy()
        case _ if hasattr(thing, "get_params"):
            yield from (type(thing), thing.get_params(deep=False))
        case _ if hasattr(thing, "__dict__"):
            own = {n: v for n, v in vars(thing).items() if n != "__signature__"}
            yield from (type(thing), getattr(thing, "__name__", None), own)
        case _:
            raise TypeError(
                f"{thing!r} cannot be used with checkpoint=: its content is not "
                "visible, so a later run cannot detect a change. Use a "
                "plain value, such as an int for random_state."
            )


def _code_parts(thing: Any) -> Iterator[Any]:
    """Yield the code of a function, class or module, and the values the code reads."""
    if isinstance(thing, types.FunctionType):
        yield from (thing.__code__, thing.__defaults__, thing.__kwdefaults__)
        yield [cell.cell_contents for cell in thing.__closure__ or ()]
        codes, known = [thing.__code__], thing.__globals__
        for code in codes:  # the list grows
            codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        names = {name for code in codes for name in code.co_names}
        yield {name: known[name] for name in names if name in known}
        return
    if isinstance(thing, types.ModuleType):
        yield {n: value for n, value in vars(thing).items() if not n.startswith("__")}
        return
    yield [base for base in thing.__mro__[1:] if not _is_installed(base)]
    for name, value in vars(thing).items():
        value = getattr(value, "__func__", getattr(value, "fget", value))
        is_data = isinstance(value, SCALARS) and not name.startswith("__")
        if is_data or isinstance(value, types.FunctionType):
            yield from (name, value)


def _is_installed(thing: Any) -> bool:
    """Whether a function, class or module is part of Python or an installed package."""
    if isinstance(thing, types.FunctionType):  # wrappers copy another __module__
        name = thing.__globals__.get("__name__", "")
    else:
        name = getattr(thing, "__module__", None) or thing.__name__
    if name in sys.builtin_module_names or name.partition(".")[0] in PACKAGES:
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    if name == "__main__" or file is None:
        return False
    installed = {"site-packages", "dist-packages"} & set(Path(file).parts)
    return bool(installed) or file.startswith(sysconfig.get_path("stdlib"))
