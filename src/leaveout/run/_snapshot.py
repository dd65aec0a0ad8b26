# SPDX-License-Identifier: BSD-3-Clause
"""The last state of a long run in one file, so that a killed run goes on.

The file is an npz without pickle, and is replaced as a whole: whenever the process
dies, it holds one state or the next.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from leaveout.exceptions import CheckpointError
from leaveout.run._atomic import write_atomically
from leaveout.run._checkpoint import _check_place, _differences, _pack

META = "leaveout"
# What NumPy and json raise for a file that is something else, or half of one.
NOT_OURS = (OSError, EOFError, ValueError, TypeError, LookupError, zipfile.BadZipFile)


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
    >>> from leaveout.run import Snapshot
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
