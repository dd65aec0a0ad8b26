# SPDX-License-Identifier: BSD-3-Clause
"""The optimum of a large window, by the augmented Lagrangian method.

The smoothed hinge is shifted by the multipliers q = alpha / (C c) of the previous round
(docs/method/large)::

    q_i = clip(q_i' + (1 - h_i) / 2 tau, 0, 1)

At a fixed point the smoothing has no effect, so tau need not tend to 0. Each round is
solved by Newton's method with matrices of size D; no Gram matrix is needed.
"""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray
from leaveout.large._newton import BALANCED, _newton_step

MOST_ROUNDS, MOST_STEPS = 60, 30
# Relative duality gap at which the exact solver takes over.
ACCURATE = 1e-5
FASTER = 0.25


def refine_point(
    Z: FloatArray, y: FloatArray, bounds: FloatArray, point: FloatArray, tau: float
) -> tuple[FloatArray, FloatArray]:
    """Return a point (w, b) close to the optimum of an SVM, and alpha / C_i there.

    ``bounds`` are the C_i; ``point`` is close to the optimum of the problem smoothed
    with half-width tau.
    """
    A = np.column_stack([Z, np.ones(len(y))])
    q = np.full(len(y), 0.5)
    for _ in range(MOST_ROUNDS):
        point, q = _solve_round(A, y, bounds, point, q, tau)
        short = 1.0 - y * (A @ point)
        hinge = np.maximum(short, 0.0)
        gap = float(bounds @ (hinge - q * short))
        primal = 0.5 * float(point[:-1] @ point[:-1]) + float(bounds @ hinge)
        if gap <= ACCURATE * primal:
            break
        tau *= FASTER
    return point, q


def _solve_round(
    A: FloatArray,
    y: FloatArray,
    bounds: FloatArray,
    point: FloatArray,
    before: FloatArray,
    tau: float,
) -> tuple[FloatArray, FloatArray]:
    """Minimise the shifted smoothed loss; return the point and its multipliers."""
    base, direction = point, np.zeros_like(point)
    value, promised, step = np.inf, 0.0, 1.0
    flat = BALANCED * float(bounds.sum())
    best = before
    for _ in range(MOST_STEPS):
        short = 1.0 - y * (A @ point)
        raw = before + short / (2.0 * tau)
        q = np.clip(raw, 0.0, 1.0)
        loss = tau * q**2 + 2.0 * tau * np.maximum(raw - 1.0, 0.0)
        here = 0.5 * float(point[:-1] @ point[:-1]) + float(bounds @ loss)
        gradient = np.append(point[:-1], 0.0) - (bounds * y * q) @ A
        if not here <= value - 1e-4 * step * promised and step > 1e-4:
            slope, fall = float(gradient @ direction), max(promised, 0.0)
            secant = fall / (fall + slope) if slope > 0.0 else 0.5
            step *= min(max(secant, 0.05), 0.6)
            point = base + step * direction
            continue
        active = (raw > 0.0) & (raw < 1.0)
        some = A[active] * np.sqrt(bounds[active])[:, None]
        base, value, step, best = point, here, 1.0, q
        direction = _newton_step(some.T @ some, 0.5 / tau, gradient, 2.0, flat)
        promised = -float(gradient @ direction)
        if promised <= 1e-15 * here:
            break
        point = base + direction
    return base, best
