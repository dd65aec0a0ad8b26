# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of the multi-class SVM of Lee, Lin & Wahba by walks.

The multipliers of sample r are lowered together, ``alpha_r = (1 - t) alpha_r*`` for t
from 0 to 1, and the others stay optimal. While the sets stay, alpha and b are linear in
t; an entry that reaches a bound, or whose slope G + b reaches 0, changes sides: a pivot
in a tableau that all walks share. If all multipliers of r are 0, W stays, and only the
interval of b changes. If a walk does not reach a verified optimum, r is refitted.

With alpha of all entries (numbered ``i * Q + k``) and coordinates w of b = -Z w, the
columns of Z spanning the vectors with sum 0, the conditions of the free entries F and
of the column sums are ``(T z)_S = const`` for z = (alpha, w), S = F and all of w::

    T = [ H + eps   E Z  ]      E: the column of each entry
        [ Z' E'    -delta ]

The two tiny terms make T_SS regular for every F: they are proximal terms around the
full optimum, taken away at the end, on the sets found. With A = T_SS^-1 and R the other
entries, column j says how z_S and the slopes of R change

    with the slope of j in S:    -A_j                T_RS A_j
    with alpha_j, j in R:        -A T_Sj             T_RS A T_Sj - T_Rj

Labels are certified as in ``engine/_certificate.py``. At the optimum ``sum(alpha) /
(Q - 1) = ||W||^2 + sum C xi`` is between the optimal value and twice that, and leaving
a sample out lowers the value: without one, no dual variable is above ``2 sum(alpha)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from leaveout._typing import BoolArray, FloatArray, IntArray, StateArray
from leaveout.engine._certificate import (
    ACCURACY,
    NEAR_AMPLIFICATION,
    NEAR_ROUNDING,
    REACH,
    SEVERAL,
    nearly_coincide,
    rounding_of_sum,
)
from leaveout.engine._problem import (
    BOUNDED,
    BY_ROUNDING,
    CERTIFIED,
    MARGIN,
    NOT_CONVERGED,
    OUTSIDE,
    REFIT,
    SINGLETON,
    TIE,
    UNTOUCHED,
    WALK,
    ZERO_ALPHA,
    Folds,
    LooIntervals,
)
from leaveout.llw._llw_walk_fast import FadingWalk, Status, padded
from leaveout.llw._solve import (
    LlwPoint,
    LlwProblem,
    LlwSolution,
    centre,
    choose_intercept,
    intercept_box,
    solve_llw,
    with_certificate,
)
from leaveout.run._parallel import map_chunks, show_progress

# The proximal weight of alpha; that of a singular H_FF; that of b.
REGULAR, SINGULAR, DELTA = 1e-10, 1e-6, 1e-6
# Share of a null vector of H_FF in an entry that makes it singular.
NULL = 0.01
# Columns of entries beside the margin for which memory is taken at first.
ROOM = 256
# Columns made at once, so that what they are made of stays small.
BATCH = 64
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
# Kernel values whose largest K_ii is within 2^-20 ... 2^20 stay as they are; a C
# further than that beyond reach hides the coefficients: the problem is solved again.
RANGE = 20
# Samples a thread takes at once; and between two lines of progress, per thread.
CHUNK, LINE = 16, 64


class LlwTableau:
    """Columns of the tableau: those of S at once, others on request.

    K + 1 takes the place of K: the same on equal column sums, and regular beside them.
    ``columns`` (n_columns, length) has those of S first; ``where`` is the row of each
    entry in it, or -1. Rows are padded.
    """

    def __init__(self, K: FloatArray, state: StateArray) -> None:
        self.K, self.shape = K + 1.0, state.shape
        self.Q = state.shape[1]
        self.n_entries = state.size
        self.basis = linalg.helmert(self.Q).T
        self.entries = np.flatnonzero(state == MARGIN)
        self.coordinates = np.arange(self.n_entries, self.n_entries + self.Q - 1)
        self.basic = np.concatenate([self.entries, self.coordinates])
        self.is_basic = (state == MARGIN).reshape(-1)
        self.length = padded(self.n_entries + self.Q - 1)
        self.where = np.full(self.n_entries + self.Q - 1, -1)
        self.where[self.basic] = np.arange(self.basic.size)
        self.inverse = self._invert()
        self.columns = np.zeros((self.basic.size + ROOM, self.length))
        self._fill_basic()
        self._size, self._lock = self.basic.size, Lock()

    def pull(self, alpha: FloatArray) -> FloatArray:
        """-H alpha = K W, (n, Q)."""
        return self.K @ (alpha.sum(axis=1, keepdims=True) / self.Q - alpha)

    def provide(self, entry: int) -> None:
        """Make the column of an entry, unless it is there."""
        with self._lock:
            if self.where[entry] >= 0:
                return
            if self._size == self.columns.shape[0]:
                # Walks that run keep the old array, whose rows stay what they are.
                grown = np.zeros((2 * self._size, self.length))
                grown[: self._size] = self.columns
                self.columns = grown
            alpha = np.zeros((1, self.Q))
            alpha[0, entry % self.Q] = 1.0
            rows = np.array([entry // self.Q])
            self.columns[self._size] = self.respond(rows, alpha)[0]
            self.where[entry] = self._size
            self._size += 1

    def respond(self, rows: IntArray, alpha: FloatArray) -> FloatArray:
        """Change of all as entries beside the margin change, (m, length).

        ``alpha`` (m, Q) is the change of each of the samples ``rows``.
        """
        moved = np.zeros((rows.size, self.length))
        # T z for z that is not 0 in one sample only
        W = alpha.mean(axis=1, keepdims=True) - alpha
        n_all = self.n_entries
        moved[:, :n_all] = (self.K[rows][:, :, None] * -W[:, None]).reshape(-1, n_all)
        moved[:, n_all : n_all + self.Q - 1] = alpha @ self.basis
        for m, r in enumerate(rows):
            moved[m, r * self.Q : (r + 1) * self.Q] += self.eps * alpha[m]
        force = moved[:, self.basic]
        moved[:, self.basic] = 0.0
        return force @ self.columns[: self.basic.size] - moved

    def shift(self, slope: FloatArray, sums: FloatArray, also: IntArray) -> FloatArray:
        """Change of z_S, and of the slopes of the entries ``also`` beside S.

        ``slope`` (n, Q) is added to the slope of every entry, ``sums`` to the column
        sums.
        """
        force = np.concatenate([slope.ravel()[self.entries], sums @ self.basis])
        change = np.zeros(self.length)
        change[self.basic] = self.inverse @ force
        change[also] = slope.ravel()[also] - force @ self.columns[: force.size, also]
        return change

    def _invert(self) -> FloatArray:
        """Cholesky for H + eps, then its border."""
        i, k = np.divmod(self.entries, self.Q)
        H = self.K[np.ix_(i, i)] * ((k[:, None] == k) - 1.0 / self.Q)
        for self.eps in (REGULAR, SINGULAR):
            A = _invert_shifted(H, self.eps)
            if self.eps * A.diagonal().max(initial=0.0) < NULL:
                break
        U = A @ self.basis[k]
        T = np.linalg.inv(self.basis[k].T @ U + DELTA * np.eye(self.Q - 1))
        UT = U @ T
        return np.block([[A - UT @ U.T, UT], [UT.T, -T]])

    def _fill_basic(self) -> None:
        """Columns of S: T_RS A_j beside S, -A_j on it."""
        n, Q = self.shape
        n_free, size = self.entries.size, self.basic.size
        for first in range(0, size, BATCH):
            part = slice(first, min(first + BATCH, size))
            A = self.inverse[part]
            alpha = np.zeros((A.shape[0], n, Q))
            alpha.reshape(-1, n * Q)[:, self.entries] = A[:, :n_free]
            W = alpha.mean(axis=2, keepdims=True) - alpha
            stacked = np.ascontiguousarray(W.transpose(1, 0, 2)).reshape(n, -1)
            slopes = (self.K @ stacked).reshape(n, -1, Q).transpose(1, 0, 2)
            b = (A[:, n_free:] @ self.basis.T)[:, None]
            self.columns[part, : n * Q] = (b - slopes).reshape(-1, n * Q)
            self.columns[part, self.basic] = -A


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
    return np.tril(inverse) + np.tril(inverse, -1).T


class LlwWalker:
    """The optima without one sample each, by walks from that of all.

    ``ready`` says whether the start is an optimum to the last digits.
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

    def without_each(self, rows: IntArray) -> Iterator[LlwSolution | None]:
        """Yield the optimum without each of some samples, None if not reached."""
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
        found = LlwPoint(point.alpha, point.state, True, walk.n_pivots, "walk")
        left = with_certificate(self.problem.without(r), found, self.centred)
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
        for _ in range(rounds):
            slope, off = self._correct(point, walk)
            wrong = point.violations(slope, box)
            if not wrong.any():
                return off <= STRAIN
            if not self._exchange(walk, np.flatnonzero(wrong)):
                return False
            point.exchange(wrong, box)
        return False

    def _correct(self, point: _Point, walk: FadingWalk) -> tuple[FloatArray, float]:
        """Solve on the sets found; return slopes as shares of terms, and the strain."""
        tableau = self.tableau
        for more in reversed(range(CORRECTIONS + 1)):
            slope = self._slope(point)
            off = point.strain(slope / self.terms)
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


@dataclass
class _Point:
    """alpha (n, Q), b (Q,) and the sets (n, Q), which a walk changes."""

    alpha: FloatArray
    b: FloatArray
    state: StateArray

    def copy(self) -> _Point:
        """Return a copy whose arrays are its own."""
        return _Point(self.alpha.copy(), self.b.copy(), self.state.copy())

    def strain(self, slope: FloatArray) -> float:
        """How far free slopes are from 0, and column sums from each other."""
        sums = self.alpha.sum(axis=0)
        uneven = float(sums.max() - sums.min()) / max(float(sums.max()), 1e-300)
        return max(uneven, float(np.abs(slope[self.state == MARGIN]).max(initial=0.0)))

    def violations(self, slope: FloatArray, box: FloatArray) -> BoolArray:
        """Entries that break a condition: slopes by TOL, free alpha relative to all."""
        state, alpha, slack = self.state, self.alpha, TOL * float(self.alpha.max())
        wrong = (state == MARGIN) & ((alpha < -slack) | (alpha > box + slack))
        wrong |= (box > 0.0) & (state == OUTSIDE) & (slope > TOL)
        wrong |= (state == BOUNDED) & (slope < -TOL)
        return wrong

    def exchange(self, wrong: BoolArray, box: FloatArray) -> None:
        """Move free entries to the bound they passed; the others become free."""
        free = wrong & (self.state == MARGIN)
        self.state[wrong & ~free] = MARGIN
        self.state[free & (self.alpha < 0.0)] = OUTSIDE
        self.state[free & (self.alpha > box)] = BOUNDED
        self.alpha[self.state == OUTSIDE] = 0.0
        bounded = self.state == BOUNDED
        self.alpha[bounded] = box[bounded]


def drop_unsafe_llw(
    problem: LlwProblem, solution: LlwSolution, found: LooIntervals, folds: Folds | None
) -> LooIntervals:
    """Mark the samples whose label rounding may have changed as not certified."""
    rounding = np.inf
    if solution.converged:
        top = float(problem.K.diagonal().max())
        rounding = rounding_of_sum(top, float(solution.alpha.sum()))
        if nearly_coincide(problem.K, np.flatnonzero(problem.C > 0.0)):
            rounding = SEVERAL * max(NEAR_AMPLIFICATION * rounding, NEAR_ROUNDING)
    clear = _is_clear(found.values, rounding)
    reasons = np.where(found.certified & ~clear, BY_ROUNDING, found.uncertified_by)
    counts = {**found.counts, "rounding": rounding}
    return replace(found, uncertified_by=reasons.astype(np.int8), counts=counts)


def bring_to_scale(
    problem: LlwProblem, solution: LlwSolution
) -> tuple[LlwProblem, LlwSolution]:
    """Return the problem with finite upper bounds lowered that no alpha reaches."""
    reach = REACH * float(solution.alpha.sum())
    bounds = np.where(np.isfinite(problem.C), problem.C, 0.0)
    if not solution.converged or not 0.0 < reach < bounds.max():
        return problem, solution
    C = np.where(np.isinf(problem.C), np.inf, np.minimum(problem.C, reach))
    capped = replace(problem, C=C)
    if bounds.max() > np.ldexp(reach, RANGE):
        solution = solve_llw(capped)
    return capped, solution


def _is_clear(values: FloatArray, rounding: float) -> BoolArray:
    """Whether the largest value stands clear of the second, (n,)."""
    if values.shape[1] == 1:
        apart = 2.0 * np.abs(values[:, 0])
    else:
        second, first = np.sort(values, axis=1)[:, -2:].T
        apart = first - second
    clear: BoolArray = (apart > 2.0 * rounding) & (rounding <= ACCURACY)
    return clear | (rounding <= TIE)


def loo_llw_walk(
    problem: LlwProblem,
    solution: LlwSolution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
    verbose: bool = False,
) -> LooIntervals:
    """Leave every sample out, by walks from the full optimum.

    Parameters are those of :func:`~leaveout.engine._walk.loo_walk`; single samples
    only, and a hard margin must be separable. ``verbose`` shows progress on stderr. The
    values are h_k without r at x_r: one column for two classes, of class 1, else one
    per class. The intervals are those of each b_k, free of each other: of more than two
    classes, some corners of it have no sum 0.
    """
    walker = LlwWalker(problem, solution)
    leaver = _Leaver(problem, solution, walker if walker.ready else None)
    return leaver.run(n_threads, verbose)


def loo_llw_refit(
    problem: LlwProblem,
    solution: LlwSolution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
    verbose: bool = False,
) -> LooIntervals:
    """Do the same, each problem solved from nothing: slow, to compare with."""
    return _Leaver(problem, solution, None, refit_all=True).run(n_threads, verbose)


LLW_METHODS = {"walk": loo_llw_walk, "refit": loo_llw_refit}


class _Leaver:
    """What all samples share, and their results."""

    def __init__(
        self,
        problem: LlwProblem,
        solution: LlwSolution,
        walker: LlwWalker | None,
        refit_all: bool = False,
    ) -> None:
        self.problem, self.solution = problem, solution
        self.walker, self.refit_all = walker, refit_all
        n, Q = problem.open.shape
        self.values, self.lower, self.upper = np.empty((3, n, Q))
        self.certified = np.zeros(n, dtype=bool)
        self.settled_by = np.zeros(n, dtype=np.int8)
        self.steps = np.zeros(n, dtype=np.intp)
        present = problem.C > 0.0
        self.members = np.bincount(problem.codes[present], minlength=Q)
        state = solution.state
        self.can_fall = (state == MARGIN) | (state == BOUNDED)
        self.can_rise = problem.open & (state != BOUNDED)

    def run(self, n_threads: int, verbose: bool) -> LooIntervals:
        """Leave every sample out, and put the columns together."""
        n, Q = self.values.shape
        size = n_threads * LINE
        starts = range(0, n, size)
        for first in show_progress(starts, len(starts), "left out", verbose=verbose):
            rows = np.arange(first, min(first + size, n))
            map_chunks(partial(self._leave, rows), rows.size, n_threads, CHUNK)
        counts = {
            "walks": float(np.count_nonzero(self.settled_by == WALK)),
            "refits": float(np.count_nonzero(self.settled_by == REFIT)),
            "systems": float(self.steps.sum()),
        }
        columns = [1] if Q == 2 else list(range(Q))
        reasons = np.where(self.certified, CERTIFIED, NOT_CONVERGED).astype(np.int8)
        return LooIntervals(
            self.lower[:, columns], self.upper[:, columns], self.settled_by, reasons,
            counts, chosen=self.values[:, columns],
        )  # fmt: skip

    def _leave(self, rows: IntArray, part: slice) -> None:
        """Keep what is known, and solve without each of the others."""
        others = []
        for r in rows[part]:
            if self.problem.C[r] == 0.0:
                self._keep(r, UNTOUCHED)
            elif self.members[self.problem.codes[r]] == 1:
                self._without_its_class(r)
            elif not (self.refit_all or self.solution.alpha[r].any()):
                self._keep(r, ZERO_ALPHA)
            else:
                others.append(r)
        if not others:
            return
        walked: Iterable[LlwSolution | None] = [None] * len(others)
        if self.walker is not None:
            walked = self.walker.without_each(np.array(others))
        for r, left in zip(others, walked, strict=True):
            if left is None:
                self._store(r, solve_llw(self.problem.without(r)), REFIT)
            else:
                self._store(r, left, WALK)

    def _keep(self, r: int, settled_by: int) -> None:
        """Keep W; b loses the constraints of r."""
        can_fall, can_rise = self.can_fall.copy(), self.can_rise.copy()
        can_fall[r] = can_rise[r] = False
        low, high = intercept_box(
            self.solution.gradient, can_fall, can_rise, can_fall & can_rise
        )
        b = choose_intercept(low, high)
        kept = replace(self.solution, intercept=b, intercept_lower=low,
                       intercept_upper=high, n_iter=0)  # fmt: skip
        self._store(r, kept, settled_by)

    def _without_its_class(self, r: int) -> None:
        """Leave r out with its class: a problem of one class less, or none is left."""
        problem, gone = self.problem, self.problem.codes[r]
        others = np.arange(problem.n_classes) != gone
        if problem.n_classes == 2:
            # Everything is of the other class: h = -1 or less for the one that is gone.
            self.values[r] = np.where(others, 1.0, -1.0)
            self.lower[r] = np.where(others, 1.0, -np.inf)
            self.upper[r] = np.where(others, np.inf, -1.0)
            self.certified[r], self.settled_by[r] = True, SINGLETON
            return
        codes = problem.codes - (problem.codes > gone)
        C = problem.without(r).C
        left = solve_llw(LlwProblem(problem.K, codes, C, problem.n_classes - 1))
        self._store(r, left, SINGLETON, others)

    def _store(
        self, r: int, left: LlwSolution, settled_by: int, classes: Any = slice(None)
    ) -> None:
        """Store h(x_r) with its ends; classes that are gone have -inf."""
        base = self.problem.K[r] @ left.coef
        for out, b in (
            (self.values, left.intercept),
            (self.lower, left.intercept_lower),
            (self.upper, left.intercept_upper),
        ):
            out[r] = -np.inf
            out[r, classes] = base + b
        self.certified[r], self.settled_by[r] = left.converged, settled_by
        self.steps[r] = left.n_iter
