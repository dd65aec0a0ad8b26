# SPDX-License-Identifier: BSD-3-Clause
"""How far a FeatureSVC has come, in a file, so that a fit cut short goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from leaveout._typing import FloatArray
from leaveout.data import ClassSample
from leaveout.exceptions import ClusterLostError
from leaveout.run import Snapshot, fingerprint
from leaveout.solve import LinearProgress

FIELDS = ("W", "b", "tau", "share", "done")


class KeptProgress:
    """The checkpoint of one fit, or none.

    Parameters
    ----------
    path : str, path-like or None
        The file.
    parameters : mapping
        What the fit was asked for.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, parameters: Mapping[str, Any]
    ) -> None:
        self.file = None if path is None else Snapshot(path)
        self.meta: dict[str, str] = {}
        self.probe = np.empty(0)
        if self.file is not None:
            self._compare({"parameters": fingerprint(parameters)})

    @property
    def n_passes(self) -> int:
        """Passes that the file is worth."""
        if self.file is None or self.file.arrays is None:
            return 0
        return int(self.file.arrays["n_passes"])

    def choose_seed(self, drawn: int, *, free: bool) -> int:
        """Return the seed of the fit: that of the file if none was asked for."""
        if self.file is None:
            return drawn
        seed = self.file.found.get("seed", str(drawn)) if free else str(drawn)
        self._compare({"seed": seed})
        return int(seed)

    def resume(
        self, n_rows: int, classes: Sequence[Any], samples: Sequence[ClassSample],
        probe: FloatArray,
    ) -> LinearProgress | None:  # fmt: skip
        """Return where the file has come to with these rows and features.

        The samples are chosen by the numbers of the rows, so that they are the same
        here and on a cluster; features may differ by rounding.
        """
        if self.file is None:
            return None
        content = [[s.n_rows, s.hashes, s.X, s.weight] for s in samples]
        self._compare({"data": fingerprint([n_rows, list(classes), content])})
        self.probe = probe
        arrays = self.file.arrays
        if arrays is None:
            return None
        known = arrays["probe"]
        if known.shape != self.probe.shape or not np.allclose(known, self.probe):
            self.file.refuse("features, which must have a random_state")
        return LinearProgress(**{name: arrays[name] for name in FIELDS})

    def put(self, progress: LinearProgress, n_passes: int) -> None:
        """Keep where the fit is now."""
        if self.file is None:
            return
        arrays = {name: getattr(progress, name) for name in FIELDS}
        arrays |= {"probe": self.probe, "n_passes": np.array(n_passes)}
        self.file.save(self.meta, arrays)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say how to go on after Ctrl-C, or after a cluster was lost."""
        try:
            yield
        except KeyboardInterrupt:
            if self.n_passes:
                sys.stderr.write(f"Interrupted: {self._how_to_go_on()}\n")
                sys.stderr.flush()
            raise
        except ClusterLostError as error:
            text = f"{error} {self._how_to_go_on()}"
            raise ClusterLostError(text) from error.__cause__

    def _how_to_go_on(self) -> str:
        if self.file is None:
            return "With checkpoint=path a fit can go on after such a loss."
        if not self.n_passes:
            return f"Nothing is kept in {self.file.path} yet; run again."
        return (
            f"{self.n_passes} passes are kept in {self.file.path}; run again, on a "
            "cluster or without, to go on."
        )

    def _compare(self, meta: dict[str, str]) -> None:
        assert self.file is not None
        self.meta |= meta
        self.file.compare(meta)
