# SPDX-License-Identifier: BSD-3-Clause
"""Many linear machines on the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import FloatArray, IntArray


@dataclass(frozen=True)
class LinearMachines:
    """Binary SVMs ``f(z) = <w, z> + b``, each for two of the classes and one C.

    Parameters
    ----------
    C : ndarray of shape (L,)
        Regularisation of each machine.
    positive, negative : ndarray of int32, shape (L,)
        Its classes.
    W : ndarray of shape (L, n_components)
        Weights.
    b : ndarray of shape (L,)
        Intercepts.
    """

    C: FloatArray
    positive: np.ndarray
    negative: np.ndarray
    W: FloatArray
    b: FloatArray

    @classmethod
    def zero(
        cls, C: FloatArray, positive: IntArray, negative: IntArray, n_components: int
    ) -> LinearMachines:
        """Machines that say nothing yet."""
        return cls(
            np.asarray(C, dtype=np.float64),
            np.asarray(positive, dtype=np.int32),
            np.asarray(negative, dtype=np.int32),
            np.zeros((len(C), n_components)),
            np.zeros(len(C)),
        )

    def __len__(self) -> int:
        """Return the number of machines."""
        return self.C.shape[0]

    def take(self, which: IntArray) -> LinearMachines:
        """Return some of the machines (a copy)."""
        return LinearMachines(
            self.C[which], self.positive[which], self.negative[which],
            self.W[which], self.b[which],
        )  # fmt: skip

    def moved(self, W: FloatArray, b: FloatArray) -> LinearMachines:
        """Return the machines at another point."""
        return LinearMachines(self.C, self.positive, self.negative, W, b)

    def decide(self, Z: FloatArray) -> FloatArray:
        """Return f on some rows, (L, m)."""
        f = self.W @ Z.T
        f += self.b[:, None]
        return f

    def signs(self, codes: np.ndarray) -> FloatArray:
        """Return +1, -1, or 0 for a row that is not in the machine, (L, m)."""
        plus = codes == self.positive[:, None]
        minus = codes == self.negative[:, None]
        return plus.astype(np.float64) - minus
