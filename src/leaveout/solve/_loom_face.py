# SPDX-License-Identifier: BSD-3-Clause
"""All optima of a leave-one-out machine with the smallest sum of coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import FloatArray
from leaveout.exceptions import LeaveoutError
from leaveout.solve._highs import open_highs


@dataclass(frozen=True)
class LoomFace:
    """The polyhedron ``low <= M a + y b <= high``, ``least <= a <= most``, scaled.

    Parameters
    ----------
    M : ndarray of shape (n, n)
        Margins by coefficients.
    y : ndarray of shape (n,) or None
        Signs; None without an intercept.
    w : ndarray of shape (n,)
        Weights; a sample without has no constraint.
    least, most : ndarray of shape (n,)
        Bounds of a.
    low, high : ndarray of shape (n,)
        Bounds of the margins.
    scale : float
        What K was divided by; the coefficients are a / scale.
    unique : bool
        Whether strict complementarity proves that it is one point.
    """

    M: FloatArray
    y: FloatArray | None
    w: FloatArray
    least: FloatArray
    most: FloatArray
    low: FloatArray
    high: FloatArray
    scale: float
    unique: bool

    def range_of(self, slope: FloatArray) -> tuple[float, float]:
        """Return least and largest value of ``slope @ a + b`` on the face.

        Raises
        ------
        LeaveoutError
            If HiGHS finds no optimum.
        """
        fixed = self.least == self.most
        columns, rows = np.flatnonzero(~fixed), np.flatnonzero(self.w > 0.0)
        base = float(slope[fixed] @ self.least[fixed])
        G = self.M[np.ix_(rows, columns)]
        cost, least, most = slope[columns], self.least[columns], self.most[columns]
        if self.y is not None:
            G = np.column_stack([G, self.y[rows]])
            cost, least = np.append(cost, 1.0), np.append(least, -np.inf)
            most = np.append(most, np.inf)
        if cost.size == 0:
            return base, base
        done = self.M[rows] @ np.where(fixed, self.least, 0.0)
        bounds = self.low[rows] - done, self.high[rows] - done
        return (
            base + _smallest(cost, G, (least, most), bounds),
            base - _smallest(-cost, G, (least, most), bounds),
        )


def _smallest(
    cost: FloatArray,
    G: FloatArray,
    columns: tuple[FloatArray, FloatArray],
    rows: tuple[FloatArray, FloatArray],
) -> float:
    """Return the smallest cost; -inf if there is none."""
    n_rows, n_columns = G.shape
    start = np.arange(n_columns + 1) * n_rows
    index = np.tile(np.arange(n_rows), n_columns)
    matrix = start, index, np.ascontiguousarray(G.T).ravel()
    highs = open_highs(cost, matrix, columns, rows, tolerance=1e-8)
    highs.setOptionValue("presolve", "off")
    highs.run()
    status = highs.modelStatusToString(highs.getModelStatus())
    if status == "Unbounded":
        return -np.inf
    if status != "Optimal":
        raise LeaveoutError(
            f"HiGHS found no end of the optimal face (status {status!r})."
        )
    return float(highs.getInfo().objective_function_value)
