# SPDX-License-Identifier: BSD-3-Clause
"""Numeric columns with a different transformation in each fold, and their statistics.

Statistics of the rows that remain are those of all rows minus those of the left-out
rows, in O(n p) for all folds together (docs/method/fold).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._problem import Folds


@dataclass(frozen=True)
class FoldRows:
    """The rows of each fold; a fold without rows stands for the fit on all rows.

    Parameters
    ----------
    n : int
        Number of rows.
    folds : Folds
        Rows that are left out together.
    y : ndarray of shape (n,)
        Labels or targets.
    """

    n: int
    folds: Folds
    y: NDArray[Any]

    def only(self, k: int) -> FoldRows:
        """Return one of the folds."""
        return FoldRows(self.n, Folds.of([self.folds[k]]), self.y)

    def kept(self, k: int) -> IntArray:
        """Rows that remain, in order."""
        mask = np.ones(self.n, dtype=bool)
        mask[self.folds[k]] = False
        return np.flatnonzero(mask)

    @cached_property
    def n_kept(self) -> FloatArray:
        """Number of rows that remain in each fold, (g, 1)."""
        sizes = [np.unique(rows).size for rows in self.folds]
        return self.n - np.array(sizes, dtype=np.float64)[:, None]

    def describe(self, k: int) -> str:
        """Name a fold in a message."""
        rows = self.folds[k]
        if rows.size == 0:
            return "on all rows"
        names = ", ".join(str(row) for row in rows[:5]) + " …" * (rows.size > 5)
        return f"in the fold that leaves out row{'s' * (rows.size > 1)} {names}"
