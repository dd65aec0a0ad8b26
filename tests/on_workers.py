# SPDX-License-Identifier: BSD-3-Clause
"""What tests run on workers, which import this file: a test module they cannot."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.kernel_approximation import RBFSampler


def make_trouble(folder, after, victim):
    """Kill a process once, after some calls, which the folder counts over processes.

    ``victim`` is None for the process that calls, 0 for a Ctrl-C in it.
    """
    folder = Path(folder)
    with (folder / "calls").open("ab") as file:
        file.write(b".")
    if (folder / "calls").stat().st_size <= after:
        return
    try:
        (folder / "trouble").touch(exist_ok=False)
    except FileExistsError:
        return
    if victim == 0:
        raise KeyboardInterrupt
    os.kill(victim or os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class TroubledKernel:
    """An rbf kernel, the same everywhere, bit by bit; trouble in other processes."""

    number: int
    folder: str
    after: int = 0
    victim: int | None = None
    spared: int = os.getpid()

    def __call__(self, A, B):
        if os.getpid() != self.spared:
            make_trouble(self.folder, self.after, self.victim)
        squares = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
        return np.exp(-0.01 * (1 + self.number) * squares)


class TroubledFeatures(TransformerMixin, BaseEstimator):
    """Fourier features whose transform makes trouble, not in the ``spared`` process."""

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
            make_trouble(self.folder, self.after, self.victim)
        return self.sampler_.transform(X)
