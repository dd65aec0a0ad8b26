# SPDX-License-Identifier: BSD-3-Clause
"""Finished cells of a long run in one SQLite file, so that a killed run goes on.

Each cell is one transaction that SQLite has written through to the disk before ``put``
returns: whenever the process dies, the file holds all cells put before and nothing
else. Arrays are stored as npz without pickle.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from leaveout.exceptions import CheckpointError, ClusterLostError

# "lvot" in the header tells our files from other SQLite databases.
APPLICATION_ID = 0x6C766F74
SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE cells (number INTEGER PRIMARY KEY, arrays BLOB NOT NULL, "
    "facts TEXT NOT NULL)",
)


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
        If the file belongs to another run, or is none of ours.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from leaveout.run import Checkpoint
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
        self._database = sqlite3.connect(self.path, isolation_level=None, timeout=60.0)
        try:
            self._database.execute("PRAGMA synchronous = EXTRA")
            with self._transaction():
                self._create_or_compare(dict(meta))
        except sqlite3.DatabaseError as error:
            self.close()
            raise CheckpointError(
                f"checkpoint={str(path)!r} cannot be used: {error}. Give the name of a "
                "file that leaveout made, or of none."
            ) from error
        except BaseException:
            self.close()
            raise

    def put(
        self, number: int, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]
    ) -> None:
        """Keep a cell; on return it is on the disk."""
        import sqlite3

        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        row = (number, buffer.getvalue(), json.dumps(facts))
        try:
            with self._transaction():
                self._database.execute(
                    "INSERT OR REPLACE INTO cells VALUES (?, ?, ?)", row
                )
        except sqlite3.Error as error:  # no space left, a file system gone …
            raise CheckpointError(
                f"checkpoint={str(self.path)!r}: a finished cell cannot be kept: "
                f"{error}. {len(self)} cells are in the file."
            ) from error

    def get(self, number: int) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Return the arrays and facts of a cell, None if it is not there."""
        found = self._database.execute(
            "SELECT arrays, facts FROM cells WHERE number = ?", (number,)
        ).fetchone()
        if found is None:
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

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, whatever interrupts it."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def _create_or_compare(self, meta: dict[str, str]) -> None:
        """Start an empty file, or check that it belongs to this run."""
        query = "SELECT COUNT(*) FROM sqlite_master"
        if self._database.execute(query).fetchone()[0] == 0:
            for statement in SCHEMA:
                self._database.execute(statement)
            self._database.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
            return
        identity = self._database.execute("PRAGMA application_id").fetchone()[0]
        if identity != APPLICATION_ID:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} is another program's SQLite database. "
                "Give another name."
            )
        found = dict(self._database.execute("SELECT name, value FROM meta"))
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


@contextmanager
def interruption_told(checkpoint: Checkpoint | None, total: int) -> Iterator[None]:
    """On Ctrl-C or a lost cluster, say on stderr what is kept; the error goes on."""
    try:
        yield
    except (KeyboardInterrupt, ClusterLostError):
        if checkpoint is not None:
            sys.stderr.write(
                f"Interrupted: {len(checkpoint)} of {total} cells are kept in "
                f"{checkpoint.path}; run again to go on.\n"
            )
            sys.stderr.flush()
        raise


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
