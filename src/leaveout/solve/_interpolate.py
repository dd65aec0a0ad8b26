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

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.solve._family import Family, bias_intervals
from leaveout.solve._majorise import Iterate

# Exchanges a call; most machines need two or three.
ROUNDS = 8
# Numbers in one stack of systems.
STACK = 2_000_000
# Violations below this are rounding.
SLACK = 1e-10
# Added to K_EE, relative to its diagonal, so that copies do not make it singular. The
# margins move by this times alpha, below all tolerances.
RIDGE = 1e-13


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
    u = family.y * (near.values + family.offsets + near.b[:, None])
    present = family.boxes > 0.0
    margin = present & (np.abs(u - 1.0) < tau)
    bounded = present & (u <= 1.0 - tau)
    eta, solved = near.eta.copy(), np.zeros(len(family), dtype=bool)
    rows = np.arange(len(family))
    for _ in range(ROUNDS):
        part = family.take(rows)
        found, values, b = interpolate(part, margin[rows], bounded[rows])
        wrong = _exchange(part, found, values, b, margin, bounded, rows)
        eta[rows] = part.y * np.clip(part.y * found, 0.0, part.boxes)
        solved[rows[~wrong]] = True
        rows = rows[wrong]
        if rows.size == 0:
            break
    return eta, solved


def _exchange(
    family: Family,
    eta: FloatArray,
    values: FloatArray,
    b: FloatArray,
    margin: BoolArray,
    bounded: BoolArray,
    rows: IntArray,
) -> BoolArray:
    """Move samples whose set is wrong; return the machines that have such."""
    y, C = family.y, family.boxes
    alpha, u = y * eta, y * (values + b[:, None])
    on, at_bound = margin[rows], bounded[rows]
    idle = ~on & ~at_bound & (C > 0.0)
    slack = SLACK * np.maximum(1.0, np.abs(values).max(axis=1, initial=0.0))[:, None]
    too_low = on & (alpha < -SLACK * C)
    too_high = on & (alpha > C * (1.0 + SLACK))
    enters = (idle & (u < 1.0 - slack)) | (at_bound & (u > 1.0 + slack))
    wrong = (too_low | too_high | enters).any(axis=1)
    if family.fit_intercept:
        # Nobody on the margin and unbalanced: whoever holds b enters.
        off = np.abs(eta.sum(axis=1) - family.totals)
        stuck = ~on.any(axis=1) & (off > SLACK * C.sum(axis=1)) & (C > 0.0).any(axis=1)
        distance = np.where(C > 0.0, np.abs(u - 1.0), np.inf)
        k = np.flatnonzero(stuck)
        enters[k, distance[k].argmin(axis=1)] = True
        wrong |= stuck
    margin[rows] = (on & ~too_low & ~too_high) | enters
    bounded[rows] = (at_bound | too_high) & ~enters
    return wrong


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
    scale = float(family.K.diagonal().mean()) or 1.0
    matrix[:, diagonal, diagonal] += RIDGE * scale
    found = np.linalg.solve(matrix, target[:, :, None])[:, :, 0]
    return found[:, :size] * real, found[:, size]
