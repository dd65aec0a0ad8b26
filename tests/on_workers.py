# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for tests of FeatureSVC that run on workers, which import this file."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import RBFSampler


@dataclass(frozen=True)
class Trouble:
    """Kill a process once, after some calls, counted over processes in a folder.

    ``victim`` is None for the calling process, 0 for a Ctrl-C in it; calls of the
    ``spared`` process do not count.
    """

    folder: str
    after: int = 0
    victim: int | None = None
    spared: int | None = os.getpid()

    def __call__(self):
        if os.getpid() == self.spared:
            return
        with Path(self.folder, "calls").open("ab") as file:
            file.write(b".")
            if file.tell() <= self.after:
                return
        try:
            Path(self.folder, "trouble").touch(exist_ok=False)
        except FileExistsError:
            return
        if self.victim == 0:
            raise KeyboardInterrupt
        os.kill(self.victim or os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class TroubledKernel:
    number: int
    trouble: Trouble

    def __call__(self, A, B):
        self.trouble()
        squares = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
        return np.exp(-0.01 * (1 + self.number) * squares)


class TroubledFeatures(RBFSampler):
    def __init__(self, trouble, random_state=0):
        super().__init__(gamma=0.1, n_components=20, random_state=random_state)
        self.trouble = trouble

    def transform(self, X):
        self.trouble()
        return super().transform(X)


def assert_same_model(one, other):
    for name in ("coef_", "intercept_", "objective_"):
        wanted, found = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(found, wanted, 0, atol=1e-10 * abs(wanted).max())
    assert other.loo_error_ == one.loo_error_
    np.testing.assert_array_equal(other.loo_labels_, one.loo_labels_)
    np.testing.assert_array_equal(other.loo_proved_, one.loo_proved_)
