# SPDX-License-Identifier: BSD-3-Clause
"""The exactness step: from who is on the margin to the exact coefficients, BLAS-3.

With the sets E (on the margin) and B (alpha = C) of a machine known, its coefficients
solve a linear system ("projection step" of Wang & Zou 2022; here our own, see
docs/method/consolidated)::

    [[K_EE, 1], [1', 0]] (eta_E; b) = (y_E - offset_E - K_EB eta_B; total - sum(eta_B))

and the sets are right if and only if 0 <= alpha_E <= C and the margins of the others
are on the right side. If not, those that are wrong change their set, and the system is
solved again: a primal-dual active set. Nothing is taken on trust: a machine counts as
solved when its optimality conditions hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.solve._family import Family, bias_intervals
from leaveout.solve._majorise import Iterate

# Exchanges a call; most machines need two or three.
ROUNDS = 30
PATIENCE = 3
# Numbers in one stack of systems.
STACK = 2_000_000
# Violations below this are rounding.
SLACK = 1e-12
# Added to K_EE, relative to its diagonal, so that copies do not make it singular: as
# small as rounding, or the hinge times a large C would see it in the duality gap.
RIDGE = 2e-15


def finish(family: Family, near: Iterate, tau: float) -> tuple[FloatArray, BoolArray]:
    """Solve machines exactly from iterates near their optima.

    Parameters
    ----------
    family : Family
        Some machines.
    near : Iterate
        Minimisers of the smoothed machines, roughly.
    tau : float
        Samples with |u - 1| < tau are taken to be on the margin at first.

    Returns
    -------
    eta : ndarray of shape (n_machines, n)
        Coefficients within their boxes; of unsolved machines, where it ended.
    solved : ndarray of bool, shape (n_machines,)
        Whether the optimality conditions of the machine hold.
    """
    sets = _Sets.near(family, near, tau)
    eta, solved = near.eta.copy(), np.zeros(len(family), dtype=bool)
    rows = np.arange(len(family))
    for _ in range(ROUNDS):
        part = family.take(rows)
        found, values, b = interpolate(part, sets.margin[rows], sets.bounded[rows])
        wrong = sets.exchange(rows, part, found, values, b)
        eta[rows] = part.y * np.clip(part.y * found, 0.0, part.boxes)
        solved[rows[~wrong]] = True
        rows = rows[wrong]
        if rows.size == 0:
            break
    return eta, solved


@dataclass
class _Sets:
    """Who is on the margin and who is bounded in each machine, and how it goes.

    Block principal pivoting: all samples whose set is wrong change it, as long as that
    makes them fewer; after PATIENCE rounds without a new minimum only the last of
    them, which without an intercept cannot cycle (Judice & Pires 1994).
    """

    margin: BoolArray
    bounded: BoolArray
    fewest: IntArray
    patience: IntArray

    @classmethod
    def near(cls, family: Family, near: Iterate, tau: float) -> _Sets:
        """Guess by the margins of the smoothed machines."""
        u = family.y * (near.values + family.offsets + near.b[:, None])
        present, k = family.boxes > 0.0, len(family)
        return cls(
            present & (np.abs(u - 1.0) < tau),
            present & (u <= 1.0 - tau),
            np.full(k, family.y.size + 1),
            np.full(k, PATIENCE),
        )

    def exchange(
        self,
        rows: IntArray,
        family: Family,
        eta: FloatArray,
        values: FloatArray,
        b: FloatArray,
    ) -> BoolArray:
        """Move samples whose set is wrong; return the machines that have such."""
        y, C = family.y, family.boxes
        alpha, u = y * eta, y * (values + b[:, None])
        on, at_bound = self.margin[rows], self.bounded[rows]
        idle = ~on & ~at_bound & (C > 0.0)
        size = np.maximum(1.0, np.abs(values).max(axis=1, initial=0.0))
        slack = SLACK * size[:, None]
        room = SLACK * np.minimum(C, np.abs(alpha).max(axis=1, initial=0.0)[:, None])
        too_high = on & (alpha > C + room)
        moves = too_high | (on & (alpha < -room))
        moves |= (idle & (u < 1.0 - slack)) | (at_bound & (u > 1.0 + slack))
        if family.fit_intercept:
            moves |= _holds_bias(family, eta, u, on)
        count = moves.sum(axis=1)
        better = count < self.fewest[rows]
        self.fewest[rows] = np.minimum(count, self.fewest[rows])
        self.patience[rows] = np.where(better, PATIENCE, self.patience[rows] - 1)
        single = np.flatnonzero((self.patience[rows] < 0) & (count > 1))
        last = y.size - 1 - moves[single, ::-1].argmax(axis=1)
        moves[single] = False
        moves[single, last] = True
        self.margin[rows] = on ^ moves
        self.bounded[rows] = (at_bound & ~moves) | (too_high & moves)
        return count > 0


def _holds_bias(
    family: Family, eta: FloatArray, u: FloatArray, on: BoolArray
) -> BoolArray:
    """Where nobody is on the margin and sum(eta) is wrong: whoever holds b."""
    C = family.boxes
    off = np.abs(eta.sum(axis=1) - family.totals) > SLACK * C.sum(axis=1)
    stuck = np.flatnonzero(off & ~on.any(axis=1) & (C > 0.0).any(axis=1))
    holds = np.zeros_like(on)
    distance = np.where(C[stuck] > 0.0, np.abs(u[stuck] - 1.0), np.inf)
    holds[stuck, distance.argmin(axis=1)] = True
    return holds


def interpolate(
    family: Family, margin: BoolArray, bounded: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Solve the linear systems of given sets.

    Parameters
    ----------
    family : Family
        Some machines.
    margin, bounded : ndarray of bool, shape (n_machines, n)
        Sets E and B.

    Returns
    -------
    eta : ndarray of shape (n_machines, n)
        Coefficients, in or out of their boxes.
    values : ndarray of shape (n_machines, n)
        ``K eta + offset``.
    b : ndarray of shape (n_machines,)
        Biases; where E is empty, one that is best for these values.
    """
    eta = np.where(bounded, family.y * family.boxes, 0.0)
    values = eta @ family.K + family.offsets
    missing = family.totals - eta.sum(axis=1)
    b = np.zeros(len(family))
    size = int(margin.sum(axis=1).max(initial=0))
    if size:
        # Members first, then whoever pads the system to the common size.
        members = np.argsort(~margin, axis=1, kind="stable")[:, :size]
        step = max(1, STACK // (size + 1) ** 2)
        for first in range(0, len(family), step):
            part = slice(first, first + step)
            found, b[part] = _solve_stack(
                family, margin[part], members[part], values[part], missing[part]
            )
            np.put_along_axis(eta[part], members[part], found, axis=1)
        eta[bounded] = (family.y * family.boxes)[bounded]
        values = eta @ family.K + family.offsets
    if family.fit_intercept:
        empty = np.flatnonzero(~margin.any(axis=1))
        low, high = bias_intervals(family.take(empty), eta[empty], values[empty])
        ends = np.where(np.isinf(low), high, low)
        b[empty] = 0.5 * (ends + np.where(np.isinf(high), ends, high))
    return eta, values, b


def _solve_stack(
    family: Family,
    margin: BoolArray,
    members: IntArray,
    values: FloatArray,
    missing: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Coefficients on E, zero for padding, and b, of some machines."""
    real = np.take_along_axis(margin, members, axis=1)
    k, size = members.shape
    matrix = np.zeros((k, size + 1, size + 1))
    inner = family.K[members[:, :, None], members[:, None, :]]
    inner *= real[:, :, None] & real[:, None, :]
    matrix[:, :size, :size] = inner
    diagonal = np.arange(size)
    matrix[:, diagonal, diagonal] += ~real
    target = np.zeros((k, size + 1))
    target[:, :size] = np.where(
        real, family.y[members] - np.take_along_axis(values, members, axis=1), 0.0
    )
    if family.fit_intercept:
        matrix[:, :size, size] = matrix[:, size, :size] = real
        target[:, size] = missing
    matrix[:, size, size] = ~real.any(axis=1) | (not family.fit_intercept)
    target[:, size] *= matrix[:, size, size] == 0.0
    sizes = family.K.diagonal()
    ridge = RIDGE * (sizes + (float(sizes.mean()) or 1.0))[members]
    matrix[:, diagonal, diagonal] += ridge
    try:
        found = np.linalg.solve(matrix, target[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:  # one of them is singular to the last bit
        matrix[:, diagonal, diagonal] += 1e4 * ridge
        found = np.linalg.solve(matrix, target[:, :, None])[:, :, 0]
    return found[:, :size] * real, found[:, size]
