# SPDX-License-Identifier: BSD-3-Clause
"""What tests run on workers, which import this file: a test module they cannot."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.kernel_approximation import RBFSampler


def rbf(A, B):
    """The same kernel everywhere, bit by bit."""
    squares = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-0.2 * squares)


@dataclass(frozen=True)
class TracingKernel:
    """An rbf kernel that notes in a folder which processes computed it."""

    folder: str

    def __call__(self, A, B):
        Path(self.folder, str(os.getpid())).touch()
        return rbf(A, B)


@dataclass(frozen=True)
class FatalKernel:
    """An rbf kernel whose first call in a process other than the given one is fatal."""

    folder: str
    survivor: int

    def __call__(self, A, B):
        if os.getpid() != self.survivor:
            try:
                Path(self.folder, "killed").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return rbf(A, B)


class TroubledFeatures(TransformerMixin, BaseEstimator):
    """Fourier features whose transform makes trouble, once, after some calls.

    ``folder`` keeps count over all processes but ``spared``; ``victim`` is the process
    to kill, None for the one that calls, 0 for a Ctrl-C in it.
    """

    def __init__(self, folder, after, victim=None, spared=None):
        self.folder = folder
        self.after = after
        self.victim = victim
        self.spared = spared

    def fit(self, X, y=None):
        self.sampler_ = RBFSampler(gamma=0.1, n_components=20, random_state=0).fit(X)
        return self

    def transform(self, X):
        if os.getpid() != self.spared:
            self._make_trouble()
        return self.sampler_.transform(X)

    def _make_trouble(self):
        folder = Path(self.folder)
        with (folder / "calls").open("ab") as file:
            file.write(b".")
        if (folder / "calls").stat().st_size <= self.after:
            return
        try:
            (folder / "trouble").touch(exist_ok=False)
        except FileExistsError:
            return
        if self.victim == 0:
            raise KeyboardInterrupt
        os.kill(self.victim or os.getpid(), signal.SIGKILL)
