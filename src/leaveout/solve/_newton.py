# SPDX-License-Identifier: BSD-3-Clause
"""Newton's method on smoothed machines, all in step: one pass serves every machine.

The smoothed primal of one machine (Wang & Yang 2022, section 2.3)::

    F(w, b) = 1/2 ||w||^2 + C sum_i c_i L_tau(y_i f_i)
    H       = diag(1, ..., 1, 0) + C / (2 tau) sum_{|u - 1| < tau} c_i (z_i, 1)(z_i, 1)'

tau starts at a width that takes a share of the rows and shrinks until about 2 D rows
are left: the exact optimum has D + 1 rows on the margin at most, so that the rows next
to it are then known, and :mod:`leaveout.solve._window` can end exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lapack

from leaveout._typing import FloatArray
from leaveout.solve._band import N_BINS, BandJob, BandSums, half_width
from leaveout.solve._linear_machines import LinearMachines

# A point is good enough for its tau if another step would gain less than this part of
# what the smoothing itself may cost.
GOOD_ENOUGH = 0.1
# The band shrinks by this factor from one tau to the next.
SHRINK = 0.2
SUFFICIENT_DECREASE = 1e-4
SMALLEST_STEP = 1e-4
# What a step may gain, relative to F, and still be called rounding.
ROUNDING = 1e-12
MOST_PASSES = 100

BandPass = Callable[[BandJob], BandSums]


def descend(
    run: BandPass,
    machines: LinearMachines,
    descents: list[Descent],
    after_pass: Callable[[], None] = lambda: None,
) -> LinearMachines:
    """Bring all machines near their optimum.

    Parameters
    ----------
    run : callable
        Makes one pass over the rows.
    machines : LinearMachines
        C and classes of the machines.
    descents : list of Descent
        Where they are; changed in place.
    after_pass : callable, optional
        Called after each pass.

    Returns
    -------
    LinearMachines
        The machines where they are now.
    """
    for _ in range(MOST_PASSES):
        open_ = np.array([k for k, d in enumerate(descents) if not d.done], np.intp)
        if open_.size == 0:
            break
        here = _assemble(machines.take(open_), [descents[k] for k in open_])
        sums = run(BandJob(here, np.array([descents[k].tau for k in open_])))
        for place, k in enumerate(open_):
            descents[k].absorb(sums, place)
        after_pass()
    return _assemble(machines, descents)


@dataclass
class Descent:
    """Where one machine is on its way.

    Parameters
    ----------
    w : ndarray of shape (D,)
        Weights at the point proposed.
    b : float
        Its intercept.
    C : float
        Regularisation.
    least : int
        Rows in the last band.
    share : float, default=1.0
        Share of the rows in the band.
    tau : float, default=2.0
        Half-width of the band. With 2 the first step from w = 0 is ridge regression.
    """

    w: FloatArray
    b: float
    C: float
    least: int
    share: float = 1.0
    tau: float = 2.0
    done: bool = False
    base: FloatArray | None = None
    direction: FloatArray | None = None
    value: float = np.inf
    promised: float = 0.0
    step: float = 1.0
    bins: np.ndarray = field(default_factory=lambda: np.zeros(N_BINS, np.int64))
    rows: float = 0.0
    radius: float = 0.0

    def on_more_rows(self, share: float) -> Descent:
        """Go on from here with more rows, of which these were a sample."""
        wider = Descent(self.w, self.b, self.C, self.least, share)
        tau = half_width(self.bins, share * self.rows)
        wider.tau = tau if tau > 0.0 else self.tau
        return wider

    def absorb(self, sums: BandSums, k: int) -> None:
        """Look at the sums at the point proposed, and propose the next one."""
        loss, _, slack, in_band, self.rows = sums.totals[k]
        self.bins, self.radius = sums.bins[k], sums.radius
        value = 0.5 * float(self.w @ self.w) + self.C * float(loss)
        wanted = self.value - SUFFICIENT_DECREASE * self.step * self.promised
        if not value <= wanted and self.step > SMALLEST_STEP:
            self.step *= 0.5
            self._go()
            return
        gradient = np.append(self.w, 0.0) - self.C * sums.pull[k]
        self.base, self.value = np.append(self.w, self.b), value
        self.direction = _newton_step(
            sums.curvature[k], self.C / (2.0 * self.tau), gradient, self._reach(),
            1e-10 * self.C * self.rows,
        )  # fmt: skip
        self.promised = -float(gradient @ self.direction)
        self.step = 1.0
        bearable = self.C * float(slack) + ROUNDING * value
        if in_band <= self.least and self.promised <= bearable:
            self.done = True
            return
        if self.promised <= GOOD_ENOUGH * bearable:
            self._narrow()
        self._go()

    def _narrow(self) -> None:
        """Take the width of the next band; what was known of F is void with it."""
        self.share = max(self.share * SHRINK, 0.75 * self.least / self.rows)
        tau = half_width(self.bins, self.share * self.rows)
        self.tau = min(tau, 0.5 * self.tau) if tau > 0.0 else self.tau * SHRINK
        self.value = np.inf

    def _reach(self) -> float:
        """How far the intercept may go: to where the band holds its share of rows."""
        wanted = max(self.share * self.rows, float(self.least))
        return self.tau + half_width(self.bins, min(wanted, self.rows))

    def _go(self) -> None:
        """Propose a point on the line."""
        assert self.base is not None
        assert self.direction is not None
        point = self.base + self.step * self.direction
        self.w, self.b = point[:-1], float(point[-1])


def _newton_step(
    curvature: FloatArray,
    factor: float,
    gradient: FloatArray,
    most: float,
    flat: float,
) -> FloatArray:
    """Return -H^-1 gradient, with the intercept moving by no more than a distance.

    Nothing holds the intercept where the band is empty, so that it is solved for last:
    ``H_ww`` is the identity at least, and the rest of the step follows from db. Slopes
    up to ``flat`` are rounding: the classes balance, and every b in a range is optimal.
    """
    H = curvature[:-1, :-1] * factor
    H[np.diag_indices(H.shape[0])] += 1.0
    coupling = curvature[:-1, -1] * factor
    _, x, _ = lapack.dposv(H, np.column_stack([gradient[:-1], coupling]), lower=1)
    slope = float(gradient[-1] - coupling @ x[:, 0])
    bend = float(curvature[-1, -1] * factor - coupling @ x[:, 1])
    if abs(slope) <= flat:
        slope = 0.0
    db = -np.sign(slope) * most if abs(slope) >= most * bend else -slope / bend
    return np.append(-x[:, 0] - db * x[:, 1], db)


def _assemble(machines: LinearMachines, descents: list[Descent]) -> LinearMachines:
    """Put the points of all machines into one object."""
    W = np.array([descent.w for descent in descents])
    return machines.moved(W, np.array([descent.b for descent in descents]))
