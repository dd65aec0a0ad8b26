# SPDX-License-Identifier: BSD-3-Clause
"""Walk from the optimum of Lee, Lin & Wahba's machine to that without one sample.

The multipliers of sample r are lowered together, ``alpha_r = (1 - t) alpha_r*`` for t
from 0 to 1, and the others stay optimal: the walk of the binary machine, with Q
columns. While the sets stay, alpha and b are linear in t; an entry that reaches a
bound, or whose slope G + b reaches 0, changes sides, a pivot in the tableau that all
walks share. Its two proximal terms are taken away at the end, on the sets found, and
the conditions of the true problem are verified.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import linalg

from leaveout._typing import FloatArray, IntArray, StateArray
from leaveout.solve._llw import (
    LlwProblem,
    LlwSolution,
    centre,
    with_certificate,
)
from leaveout.solve._llw_pivot import Pivoted, exchange, strain, wrong_side
from leaveout.solve._llw_tableau import LlwTableau
from leaveout.solve._llw_walk_fast import FadingWalk, Status
from leaveout.solve._solution import BOUNDED, MARGIN, OUTSIDE

# Pivots of a walk at most.
MAX_PIVOTS = 300
# Slopes that change more slowly than this, as share of what fades, do not change: a
# class with a constant output has a slope of exactly 0 at every sample.
NOISE = 1e-9
# Stands for no end of a range, as in _llw_walk_fast.
FAR = 1e300
# At the end of a walk: exchanges, corrections of each, strain that needs none;
# violations and strain that count.
ROUNDS, CORRECTIONS, TIGHT = 4, 3, 1e-13
TOL, STRAIN = 1e-11, 2e-10


class LlwWalker:
    """The optima without one sample each, by walks from that of all.

    Parameters
    ----------
    problem : LlwProblem
        The machine.
    solution : LlwSolution
        Its optimum.

    Attributes
    ----------
    ready : bool
        Whether the optimum is one to the last digits; no walk begins elsewhere.
    """

    def __init__(self, problem: LlwProblem, solution: LlwSolution) -> None:
        self.problem, self.centred = problem, centre(problem)
        scale = self.centred.scale
        self.box = problem.box * scale
        W = scale * np.abs(solution.coef)
        # What a slope is a sum of; leaving out one sample hardly changes it.
        self.terms = np.maximum(1.0, self.centred.magnitude @ W)
        b = solution.intercept + self.centred.means @ solution.coef
        self.full = _Point(solution.alpha * scale, b, solution.state.copy())
        self.ready = False
        try:
            self.tableau = LlwTableau(self.centred.K, solution.state)
        except linalg.LinAlgError:  # an indefinite kernel
            return
        self.origin = self._quantities()
        self.ready = self._settle(self.full, self._begin(self.full), self.box, 1)
        self.origin = self._quantities()

    def without(self, r: int) -> LlwSolution | None:
        """Return the optimum without sample r, or None if the walk gets lost."""
        return next(self.without_each(np.array([r])))

    def without_each(self, rows: IntArray) -> Iterator[LlwSolution | None]:
        """Yield the optimum without each of some samples, in less time than one by one.

        All begin at once: how fast the others move as entries beside the margin fade.
        """
        fading = np.where(self.full.state[rows] == MARGIN, 0.0, self.full.alpha[rows])
        for r, start in zip(rows, self.tableau.respond(rows, -fading), strict=True):
            yield self._walk(r, start)

    def _walk(self, r: int, start: FloatArray) -> LlwSolution | None:
        """Walk to the optimum without sample r."""
        point, box = self.full.copy(), self.box.copy()
        box[r] = 0.0
        walk = self._begin(point)
        walk.aim(start, NOISE * float(point.alpha[r].max()))
        if not (self._run(walk, point, r) and self._settle(point, walk, box, ROUNDS)):
            return None
        n_pivots = walk.n_pivots
        found = Pivoted(point.alpha, point.b, point.state, True, n_pivots, "walk")
        left = with_certificate(self.problem.without(r), found, self.centred, n_pivots)
        return left if left.converged else None

    def _begin(self, point: _Point) -> FadingWalk:
        """Return a walk that begins at the full optimum and changes the sets given."""
        x, low, high = self.origin.copy()
        state, box = point.state.reshape(-1), self.box.reshape(-1)
        return FadingWalk(x, low, high, state, box, MAX_PIVOTS)

    def _quantities(self) -> FloatArray:
        """Return what a walk follows at the full optimum, and ranges, (3, length)."""
        full, box, tableau = self.full, self.box, self.tableau
        on, bounded, closed = full.state == MARGIN, full.state == BOUNDED, box == 0.0
        end = np.where(on, np.minimum(box, FAR), np.where(bounded, FAR, 0.0))
        out = np.zeros((3, tableau.length))
        out[1], out[2] = -FAR, FAR
        out[:, : box.size] = [
            np.where(on, full.alpha, self._slope(full)).ravel(),
            np.where((on | bounded) & ~closed, 0.0, -FAR).ravel(),
            np.where(closed, FAR, end).ravel(),
        ]
        out[0, tableau.coordinates] = -(full.b @ tableau.basis)
        return out

    def _run(self, walk: FadingWalk, point: _Point, r: int) -> bool:
        """Let the multipliers of r fade; return whether the end was reached."""
        tableau, Q = self.tableau, self.tableau.Q
        for entry in range(r * Q, (r + 1) * Q):
            if point.state.flat[entry] != MARGIN:
                walk.free(entry)
            elif walk.fade(entry, tableau.columns, tableau.where) != Status.DONE:
                return False
        while walk.run(tableau.columns, tableau.where) == Status.NEEDS_COLUMN:
            tableau.provide(walk.pending)
        on, bounded = point.state == MARGIN, point.state == BOUNDED
        x = walk.quantities[: on.size].reshape(on.shape)
        point.alpha = np.where(on, x, np.where(bounded, self.box, 0.0))
        point.b = -(tableau.basis @ walk.quantities[tableau.coordinates])
        return walk.left == 0.0

    def _settle(
        self, point: _Point, walk: FadingWalk, box: FloatArray, rounds: int
    ) -> bool:
        """Solve without the proximal terms; return whether all conditions hold."""
        slack = TOL * float(point.alpha.max())
        for _ in range(rounds):
            slope, off = self._correct(point, walk)
            wrong = wrong_side(
                box > 0.0, box, point.state, point.alpha, slope, TOL, slack
            )
            if not wrong.any():
                return off <= STRAIN
            if not self._exchange(walk, np.flatnonzero(wrong)):
                return False
            exchange(point.state, wrong, point.alpha, box)
            point.alpha[point.state == OUTSIDE] = 0.0
            bounded = point.state == BOUNDED
            point.alpha[bounded] = box[bounded]
        return False

    def _correct(self, point: _Point, walk: FadingWalk) -> tuple[FloatArray, float]:
        """Solve on the sets found; return slopes as shares of terms, and the strain."""
        tableau = self.tableau
        for more in reversed(range(CORRECTIONS + 1)):
            slope = self._slope(point)
            off = strain(point.state, point.alpha, slope / self.terms)
            if off <= TIGHT or not more:
                break
            free = point.state == MARGIN
            entered = np.flatnonzero(free.ravel() & ~tableau.is_basic)
            change = tableau.shift(
                np.where(free, slope, 0.0), -point.alpha.sum(axis=0), entered
            )
            walk.apply(change)
            point.alpha[free] += change[: free.size][free.ravel()]
            point.b -= tableau.basis @ change[tableau.coordinates]
        return slope / self.terms, off

    def _exchange(self, walk: FadingWalk, entries: IntArray) -> bool:
        """Pivot on entries that are on the wrong side."""
        tableau = self.tableau
        for entry in entries:
            tableau.provide(entry)
            if walk.exchange(entry, tableau.columns, tableau.where) != Status.DONE:
                return False
        return True

    def _slope(self, point: _Point) -> FloatArray:
        """G + b, (n, Q)."""
        return 1.0 / (self.tableau.Q - 1) + self.tableau.pull(point.alpha) + point.b


class _Point:
    """alpha (n, Q), b (Q,) and the sets (n, Q), which a walk changes."""

    def __init__(self, alpha: FloatArray, b: FloatArray, state: StateArray) -> None:
        self.alpha, self.b, self.state = alpha, b, state

    def copy(self) -> _Point:
        return _Point(self.alpha.copy(), self.b.copy(), self.state.copy())
