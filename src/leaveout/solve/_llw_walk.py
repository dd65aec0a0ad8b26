# SPDX-License-Identifier: BSD-3-Clause
"""Walk from the optimum of Lee, Lin & Wahba's machine to that without one sample.

The multipliers of sample r are lowered together, ``alpha_r = (1 - t) alpha_r*`` for t
from 0 to 1, and the others stay optimal: the walk of the binary machine, with Q
columns. While the sets stay, alpha and b are linear in t; an entry that reaches a
bound, or whose slope G + b reaches 0, changes sides. For the free entries F, with
b' = -Z w and the columns of Z spanning the vectors with sum 0::

    [ H_FF + eps   E_F Z ] (alpha'_F)   ( -H_Fr alpha'_r )
    [ Z' E_F'     -delta ] (   w    ) = ( -Z' alpha'_r   )

The two tiny terms make it regular for every F. They are proximal terms around the full
optimum: the problem that is walked through has one optimum for every t. A column
without a free entry moves its b, fast, until an entry comes in. At the end they are
taken away, on the sets found, and the conditions of the true problem are verified.

All walks share the inverse of this matrix at the full optimum. An entry that has left F
borders it with a unit vector, one that has entered with its column; a walk changes few.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from leaveout._typing import FloatArray, IntArray, StateArray
from leaveout.solve._llw import (
    LlwProblem,
    LlwSolution,
    centre,
    with_certificate,
)
from leaveout.solve._llw_fast import first_event
from leaveout.solve._llw_pivot import Pivoted, exchange, violations, zero_sum_basis
from leaveout.solve._solution import BOUNDED, MARGIN, OUTSIDE

# The proximal weight of alpha; that of a singular H_FF; that of b.
REGULAR, SINGULAR, DELTA = 1e-10, 1e-6, 1e-6
# Share of a null vector of H_FF in an entry that makes it singular.
NULL = 0.01
# Entries by which a walk may differ from the full optimum, and its events at most.
CAPACITY = 200
MAX_EVENTS = 300
# Rounds at the end of a walk, solves in each; violations, and distances of free slopes
# and sums from equality, that count there.
ROUNDS, SOLVES = 4, 3
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
        b = solution.intercept + self.centred.means @ solution.coef
        self.face = _Face(self.centred.K, solution.state)
        self.start = _Point(solution.alpha * scale, b, solution.state.copy())
        self.ready = _finish(_Border(self.face), self.start, self.box, rounds=1)

    def without(self, r: int) -> LlwSolution | None:
        """Return the optimum without sample r, or None if the walk gets lost."""
        box = self.box.copy()
        box[r] = 0.0
        point, border = self.start.copy(), _Border(self.face)
        try:
            events = _walk(border, point, box, r)
            if events > MAX_EVENTS or not _finish(border, point, box, ROUNDS):
                return None
        except (linalg.LinAlgError, _BorderFullError):
            return None
        found = Pivoted(point.alpha, point.b, point.state, True, events, "walk")
        left = with_certificate(self.problem.without(r), found, self.centred, events)
        return left if left.converged else None


class _Point:
    """alpha (n, Q), b (Q,) and the sets (n, Q), which a walk changes."""

    def __init__(self, alpha: FloatArray, b: FloatArray, state: StateArray) -> None:
        self.alpha, self.b, self.state = alpha, b, state

    def copy(self) -> _Point:
        return _Point(self.alpha.copy(), self.b.copy(), self.state.copy())


class _Face:
    """The matrix of the free entries at the full optimum, inverted.

    K + 1 takes the place of K: the same on equal column sums, and regular beside them.
    Entries are numbered ``i * Q + k``.
    """

    def __init__(self, K: FloatArray, state: StateArray) -> None:
        self.K, self.shape = K + 1.0, state.shape
        self.Q = state.shape[1]
        self.entries = np.flatnonzero(state == MARGIN)
        self.rows, self.columns = np.divmod(self.entries, self.Q)
        self.position = np.full(state.size, -1)
        self.position[self.entries] = np.arange(self.entries.size)
        self.basis = zero_sum_basis(self.Q)
        self.inverse = self._invert()

    def pull(self, alpha: FloatArray) -> FloatArray:
        """-H alpha = K W, (n, Q)."""
        return self.K @ (alpha.mean(axis=1, keepdims=True) - alpha)

    def column(self, entry: int) -> FloatArray:
        """Column of the matrix that an entry beside the face would have."""
        k = entry % self.Q
        return np.concatenate([self.curve(self.entries, entry), self.basis[k]])

    def curve(self, entries: IntArray, entry: int) -> FloatArray:
        """Elements of H."""
        i, k = divmod(entry, self.Q)
        rows, columns = np.divmod(entries, self.Q)
        return self.K[i, rows] * ((columns == k) - 1.0 / self.Q)

    def _invert(self) -> FloatArray:
        """Cholesky for H + eps, then its border."""
        i, k = self.rows, self.columns
        H = self.K[np.ix_(i, i)] * ((k[:, None] == k) - 1.0 / self.Q)
        for self.eps in (REGULAR, SINGULAR):
            A = _invert_shifted(H, self.eps)
            if self.eps * A.diagonal().max(initial=0.0) < NULL:
                break
        U = A @ self.basis[k]
        T = np.linalg.inv(self.basis[k].T @ U + DELTA * np.eye(self.Q - 1))
        UT = U @ T
        return np.block([[A - UT @ U.T, UT], [UT.T, -T]])


class _BorderFullError(Exception):
    """A walk has come too far from the full optimum."""


class _Border:
    """Entries by which F differs from the face, as a border of its inverse.

    With columns V of the border, and T among them, a system has the solution
    ``lam = (T - V'Y)^-1 (low - V'u0)``, ``u = u0 - Y lam`` where Y = inverse V and
    u0 = inverse top.
    """

    def __init__(self, face: _Face) -> None:
        self.face, self.size = face, 0
        m = face.inverse.shape[0]
        self.entries = np.zeros(CAPACITY, dtype=np.intp)
        self.entered = np.zeros(CAPACITY, dtype=bool)
        self.V, self.Y = np.empty((2, CAPACITY, m))
        self.S = np.empty((CAPACITY, CAPACITY))

    def toggle(self, entry: int) -> None:
        """Let an entry leave F or enter it."""
        known = np.flatnonzero(self.entries[: self.size] == entry)
        if known.size:
            self._drop(int(known[0]))
        else:
            self._append(entry)

    def _append(self, entry: int) -> None:
        face, q = self.face, self.size
        if q == CAPACITY:
            raise _BorderFullError
        position = face.position[entry]
        self.entries[q], self.entered[q] = entry, position < 0
        if position >= 0:
            self.V[q] = 0.0
            self.V[q, position] = 1.0
            self.Y[q] = face.inverse[position]
            row = -self.Y[: q + 1, position]
        else:
            self.V[q] = face.column(entry)
            self.Y[q] = face.inverse @ self.V[q]
            row = -(self.Y[: q + 1] @ self.V[q])
            both = np.flatnonzero(self.entered[: q + 1])
            row[both] += face.curve(self.entries[both], entry)
            row[q] += face.eps
        self.S[q, : q + 1] = self.S[: q + 1, q] = row
        self.size = q + 1

    def _drop(self, p: int) -> None:
        """Put the last one in its place."""
        last = self.size - 1
        for array in (self.entries, self.entered, self.V, self.Y, self.S):
            array[p] = array[last]
        self.S[:, p] = self.S[:, last]
        self.S[p, p] = self.S[last, last]
        self.size = last

    def image(self, force: FloatArray, sums: FloatArray) -> FloatArray:
        """u0 for a right side (n, Q) and (Q,)."""
        face = self.face
        top = np.concatenate([force.ravel()[face.entries], sums @ face.basis])
        return face.inverse @ top

    def solve(
        self, image: FloatArray, force: FloatArray, given: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return alpha' (n, Q) and b' (Q,); entries that are not free as given."""
        q, face = self.size, self.face
        entries, entered = self.entries[:q], self.entered[:q]
        low = np.where(entered, force.ravel()[entries], given.ravel()[entries])
        lam = np.linalg.solve(self.S[:q, :q], low - self.V[:q] @ image)
        u = image - lam @ self.Y[:q]
        m = face.entries.size
        out = given.ravel().copy()
        out[face.entries] = u[:m]
        out[entries] = np.where(entered, lam, given.ravel()[entries])
        return out.reshape(face.shape), -(face.basis @ u[m:])


def _walk(border: _Border, point: _Point, box: FloatArray, r: int) -> int:
    """Lower the multipliers of r to 0; return the number of events."""
    face, Q = border.face, border.face.Q
    given = np.zeros(face.shape)
    given[r] = -point.alpha[r]
    point.state[r] = OUTSIDE
    beside = given.copy()  # what is not in the face pulls, what is has its border
    for entry in range(r * Q, (r + 1) * Q):
        if face.position[entry] >= 0:
            border.toggle(entry)
            beside.flat[entry] = 0.0
    force = face.pull(beside)
    image = border.image(force, -beside.sum(axis=0))
    slope = 1.0 / (Q - 1) + face.pull(point.alpha) + point.b
    left, events = 1.0, 0
    while events <= MAX_EVENTS:
        rate, b_rate = border.solve(image, force, given)
        slope_rate = face.pull(rate) + b_rate - face.eps * rate
        step, entry = first_event(
            point.alpha.ravel(), rate.ravel(), slope.ravel(), slope_rate.ravel(),
            box.ravel(), point.state.ravel(),
        )  # fmt: skip
        last = step >= left
        step = min(step, left)
        point.alpha += step * rate
        point.b += step * b_rate
        if last:
            break
        slope += step * slope_rate
        left -= step
        events += 1
        _change_side(point, box, entry, bool(rate.flat[entry] < 0.0))
        slope.flat[entry] = 0.0
        border.toggle(entry)
    point.alpha[r] = 0.0
    return events


def _change_side(point: _Point, box: FloatArray, entry: int, falls: bool) -> None:
    """Put an entry at its bound, or set it free."""
    if point.state.flat[entry] != MARGIN:
        point.state.flat[entry] = MARGIN
    elif falls:
        point.state.flat[entry], point.alpha.flat[entry] = OUTSIDE, 0.0
    else:
        point.state.flat[entry] = BOUNDED
        point.alpha.flat[entry] = box.flat[entry]


def _finish(border: _Border, point: _Point, box: FloatArray, rounds: int) -> bool:
    """Solve without the proximal terms; return whether all conditions hold."""
    face, open_ = border.face, box > 0.0
    nothing = np.zeros(face.shape)
    for _ in range(rounds):
        for _ in range(SOLVES):
            slope = 1.0 / (face.Q - 1) + face.pull(point.alpha) + point.b
            image = border.image(slope, -point.alpha.sum(axis=0))
            change, b_change = border.solve(image, slope, nothing)
            point.alpha += change
            point.b += b_change
        violated, strain = violations(
            face.K,
            open_,
            box,
            point.state,
            point.alpha,
            point.b,
            TOL,
            slack=TOL * float(point.alpha.max()),
        )
        if not violated.any():
            if strain <= STRAIN:
                return True
            continue
        for entry in np.flatnonzero(violated):
            border.toggle(int(entry))
        exchange(point.state, violated, point.alpha, box)
        point.alpha[point.state == OUTSIDE] = 0.0
        bounded = point.state == BOUNDED
        point.alpha[bounded] = box[bounded]
    return False


def _invert_shifted(H: FloatArray, eps: float) -> FloatArray:
    """(H + eps I)^-1, H positive semi-definite."""
    if H.size == 0:
        return H
    shifted = H.T.copy()
    shifted[np.diag_indices(H.shape[0])] += eps
    factor, failed = lapack.dpotrf(shifted, lower=1, overwrite_a=1)
    if failed:
        raise linalg.LinAlgError
    inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    diagonal = inverse.diagonal().copy()
    lower = np.tril(inverse)
    lower += lower.T.copy()
    lower[np.diag_indices_from(lower)] = diagonal
    return lower
