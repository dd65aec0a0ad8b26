# SPDX-License-Identifier: BSD-3-Clause
"""Gradient and Hessian of the smoothed machines, summed over one block of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import FloatArray
from leaveout.kernel import FeatureBlock
from leaveout.solve._band_fast import sum_band
from leaveout.solve._linear_machines import LinearMachines

# |u - 1| is counted by powers of two from 2^-60 to 2^20.
FIRST_EXPONENT, N_BINS = -60, 80


@dataclass
class BandSums:
    """What a pass at one point adds up, without the factor C of each machine.

    Parameters
    ----------
    totals : ndarray of shape (L, 5)
        Smoothed loss, hinge, complementarity, rows in the band, rows.
    pull : ndarray of shape (L, D + 1)
        Sum of weight * s * q * (z, 1): the gradient of the loss is ``-C pull``.
    curvature : ndarray of shape (L, D + 1, D + 1)
        Sum of weight * (z, 1)(z, 1)' over the band.
    bins : ndarray of int64, shape (L, N_BINS)
        Rows by the exponent of |u - 1|.
    radius : float
        Largest norm of a row.
    """

    totals: FloatArray
    pull: FloatArray
    curvature: FloatArray
    bins: np.ndarray
    radius: float

    def add(self, other: BandSums) -> None:
        """Take over the sums of another block."""
        self.totals += other.totals
        self.pull += other.pull
        self.curvature += other.curvature
        self.bins += other.bins
        self.radius = max(self.radius, other.radius)


@dataclass(frozen=True)
class BandJob:
    """Sum the smoothed machines over a block: one function for threads and clusters.

    Parameters
    ----------
    machines : LinearMachines
        Where to look.
    tau : ndarray of shape (L,)
        Half-width of the smoothed corner of each machine.
    """

    machines: LinearMachines
    tau: FloatArray

    def __call__(self, block: FeatureBlock) -> BandSums:
        """Return the sums over the block."""
        machines, Z = self.machines, block.Z
        f = machines.decide(Z)
        share, band = np.empty(f.shape), np.empty(f.shape, dtype=np.uint8)
        totals = np.empty((len(machines), 5))
        bins = np.zeros((len(machines), N_BINS), dtype=np.int64)
        sum_band(
            f, block.codes, machines.positive, machines.negative, block.weight,
            self.tau, share, band, totals, bins, FIRST_EXPONENT,
        )  # fmt: skip
        pull = np.empty((len(machines), Z.shape[1] + 1))
        pull[:, :-1] = share @ Z
        pull[:, -1] = share.sum(axis=1)
        curvature = np.empty((len(machines), Z.shape[1] + 1, Z.shape[1] + 1))
        for k in range(len(machines)):
            _curvature(block, np.flatnonzero(band[k]), curvature[k])
        return BandSums(totals, pull, curvature, bins, largest_norm(Z))


def _curvature(block: FeatureBlock, rows: np.ndarray, out: FloatArray) -> None:
    """Write the sum of weight * (z, 1)(z, 1)' over some rows."""
    weight = block.weight[rows]
    A = block.Z[rows]
    A *= np.sqrt(weight)[:, None]
    np.matmul(A.T, A, out=out[:-1, :-1])
    out[:-1, -1] = out[-1, :-1] = A.T @ np.sqrt(weight)
    out[-1, -1] = weight.sum()


def largest_norm(Z: FloatArray) -> float:
    """Largest Euclidean norm of a row."""
    return float(np.sqrt(np.einsum("ij,ij->i", Z, Z).max(initial=0.0)))


def half_width(bins: np.ndarray, n_rows: float) -> float:
    """Return tau such that about this many rows have |u - 1| <= tau.

    Between two powers of two the rows are taken as spread evenly.
    """
    edges = np.ldexp(1.0, FIRST_EXPONENT + np.arange(-1, N_BINS))
    edges[0] = 0.0
    counts = np.concatenate([[0], np.cumsum(bins)])
    return float(np.interp(n_rows, counts, edges, right=edges[-1]))
