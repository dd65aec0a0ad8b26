# SPDX-License-Identifier: BSD-3-Clause
"""Features that end a process, or a fit, on the way; workers import this file."""

import os
import signal
from pathlib import Path

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.kernel_approximation import RBFSampler


class TroubledFeatures(TransformerMixin, BaseEstimator):
    """Fourier features whose transform does something else, once, after some calls.

    Parameters
    ----------
    folder : str
        Keeps count over all processes.
    after : int
        Calls before that.
    victim : int or None
        Process to kill; None for the one that calls, 0 for a Ctrl-C in it.
    spared : int or None
        Process whose calls do not count.
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
