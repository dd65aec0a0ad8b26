# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out for the multi-class SVM of Lee, Lin & Wahba by walks.

The multipliers of sample r are lowered together, ``alpha_r = (1 - t) alpha_r*`` for t
from 0 to 1, while the others stay optimal. As long as the sets do not change, alpha and
b are linear in t; an entry that reaches a bound, or whose slope G + b reaches 0,
changes sides: a pivot in a tableau that all walks share. If all multipliers of r are 0,
only the interval of b changes, not W. If a walk does not reach a verified optimum, r is
refitted.

With alpha of all entries (numbered ``i * Q + k``) and coordinates w of b = -Z w, the
columns of Z spanning the vectors with sum 0, the conditions of the free entries F and
of the column sums are ``(T z)_S = const`` for z = (alpha, w), S = F and all of w::

    T = [ H + eps   E Z  ]      E: the column of each entry
        [ Z' E'    -delta ]

The two tiny terms make T_SS regular for every F: they are proximal terms around the
full optimum, and are removed at the end, on the final sets. With A = T_SS^-1 and R the
other entries, column j is the change of z_S and of the slopes of R

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
    intercept_bounds,
    solve_llw,
    with_certificate,
)
from leaveout.run._parallel import map_chunks, show_progress

# The proximal weight of alpha; that of a singular H_FF; that of b.
REGULAR, SINGULAR, DELTA = 1e-10, 1e-6, 1e-6
# H_FF counts as singular if an entry has a larger share in a null vector than this.
NULL = 0.01
# Columns of entries off the margin for which memory is allocated initially.
ROOM = 256
# Columns computed at once, to limit the memory of intermediate arrays.
BATCH = 64
# Most pivots of a walk.
MAX_PIVOTS = 300
# A slope whose rate is smaller than this, relative to what fades, does not change: a
# class with a constant output has a slope of exactly 0 at every sample.
NOISE = 1e-9
# Marks a range without an end, as in _llw_walk_fast.
FAR = 1e300
# At the end of a walk: most corrections, residual that needs none; smallest violation
# and residual that matter.
CORRECTIONS, TIGHT = 3, 1e-13
TOL, RESIDUAL = 1e-11, 2e-10
# Samples per task of a thread; and per thread between two lines of progress.
CHUNK, LINE = 16, 64


class LlwTableau:
    """Columns of the tableau: those of S at once, others on request.

    K + 1 replaces K: for equal column sums it is the same, and otherwise regular.
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
        """Compute the column of an entry unless it exists."""
        with self._lock:
            if self.where[entry] >= 0:
                return
            if self._size == self.columns.shape[0]:
                # Running walks keep the old array, whose rows do not change.
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
        """Change of all quantities as entries off the margin change, (m, length).

        ``alpha`` (m, Q) is the change of each of the samples ``rows``.
        """
        moved = np.zeros((rows.size, self.length))
        # T z for z that is nonzero in one sample only
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
        """Change of z_S, and of the slopes of the entries ``also`` outside S.

        ``slope`` (n, Q) is added to the slope of every entry, ``sums`` to the column
        sums.
        """
        force = np.concatenate([slope.ravel()[self.entries], sums @ self.basis])
        change = np.zeros(self.length)
        change[self.basic] = self.inverse @ force
        change[also] = slope.ravel()[also] - force @ self.columns[: force.size, also]
        return change

    def _invert(self) -> FloatArray:
        """Invert H + eps by Cholesky, then add the border."""
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
        """Compute the columns of S: T_RS A_j outside S, -A_j on it."""
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
    """The optima without one sample each, by walks from the full optimum.

    ``ready`` says whether the start is an accurate optimum.
    """

    def __init__(self, problem: LlwProblem, solution: LlwSolution) -> None:
        self.problem, self.centred = problem, centre(problem)
        scale = self.centred.scale
        self.upper = problem.upper * scale
        W = scale * np.abs(solution.coef)
        # Size of the terms of a slope; leaving out one sample hardly changes it.
        self.terms = np.maximum(1.0, self.centred.magnitude @ W)
        b = solution.intercept + self.centred.means @ solution.coef
        self.full = _Point(solution.alpha * scale, b, solution.state.copy())
        self.ready = False
        try:
            self.tableau = LlwTableau(self.centred.K, solution.state)
        except linalg.LinAlgError:  # an indefinite kernel
            return
        self.origin = self._quantities()
        self.ready = self._settle(self.full, self._begin(self.full), self.upper)
        self.origin = self._quantities()

    def without_each(self, rows: IntArray) -> Iterator[LlwSolution | None]:
        """Yield the optimum without each of some samples, or None if not reached."""
        fading = np.where(self.full.state[rows] == MARGIN, 0.0, self.full.alpha[rows])
        for r, start in zip(rows, self.tableau.respond(rows, -fading), strict=True):
            yield self._walk(r, start)

    def _walk(self, r: int, start: FloatArray) -> LlwSolution | None:
        """Walk to the optimum without sample r."""
        point, upper = self.full.copy(), self.upper.copy()
        upper[r] = 0.0
        walk = self._begin(point)
        walk.aim(start, NOISE * float(point.alpha[r].max()))
        if not (self._run(walk, point, r) and self._settle(point, walk, upper)):
            return None
        found = LlwPoint(point.alpha, point.state, True, walk.n_pivots)
        left = with_certificate(self.problem.without(r), found, self.centred)
        return left if left.converged else None

    def _begin(self, point: _Point) -> FadingWalk:
        """Return a walk that starts at the full optimum and changes the given sets."""
        x, low, high = self.origin.copy()
        state, upper = point.state.reshape(-1), self.upper.reshape(-1)
        return FadingWalk(x, low, high, state, upper, MAX_PIVOTS)

    def _quantities(self) -> FloatArray:
        """Return basic quantities and their ranges at the full optimum, (3, length)."""
        full, upper, tableau = self.full, self.upper, self.tableau
        on, bounded, closed = full.state == MARGIN, full.state == BOUNDED, upper == 0.0
        end = np.where(on, np.minimum(upper, FAR), np.where(bounded, FAR, 0.0))
        out = np.zeros((3, tableau.length))
        out[1], out[2] = -FAR, FAR
        out[:, : upper.size] = [
            np.where(on, full.alpha, self._slope(full)).ravel(),
            np.where((on | bounded) & ~closed, 0.0, -FAR).ravel(),
            np.where(closed, FAR, end).ravel(),
        ]
        out[0, tableau.coordinates] = -(full.b @ tableau.basis)
        return out

    def _run(self, walk: FadingWalk, point: _Point, r: int) -> bool:
        """Fade out the multipliers of r; return whether the end was reached."""
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
        point.alpha = np.where(on, x, np.where(bounded, self.upper, 0.0))
        point.b = -(tableau.basis @ walk.quantities[tableau.coordinates])
        return walk.left == 0.0

    def _settle(self, point: _Point, walk: FadingWalk, upper: FloatArray) -> bool:
        """Solve without the proximal terms; return whether all conditions hold."""
        slope, off = self._correct(point, walk)
        return off <= RESIDUAL and not point.violations(slope, upper).any()

    def _correct(self, point: _Point, walk: FadingWalk) -> tuple[FloatArray, float]:
        """Solve on the final sets; return relative slopes and the residual."""
        tableau = self.tableau
        for more in reversed(range(CORRECTIONS + 1)):
            slope = self._slope(point)
            off = point.residual(slope / self.terms)
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
        """Return a deep copy."""
        return _Point(self.alpha.copy(), self.b.copy(), self.state.copy())

    def residual(self, slope: FloatArray) -> float:
        """Largest free slope, and largest difference of column sums."""
        sums = self.alpha.sum(axis=0)
        uneven = float(sums.max() - sums.min()) / max(float(sums.max()), 1e-300)
        return max(uneven, float(np.abs(slope[self.state == MARGIN]).max(initial=0.0)))

    def violations(self, slope: FloatArray, upper: FloatArray) -> BoolArray:
        """Entries that violate a condition: slopes by TOL, free alpha relatively."""
        state, alpha, slack = self.state, self.alpha, TOL * float(self.alpha.max())
        wrong = (state == MARGIN) & ((alpha < -slack) | (alpha > upper + slack))
        wrong |= (upper > 0.0) & (state == OUTSIDE) & (slope > TOL)
        wrong |= (state == BOUNDED) & (slope < -TOL)
        return wrong


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


def _is_clear(values: FloatArray, rounding: float) -> BoolArray:
    """Whether the largest value exceeds the second by more than rounding, (n,)."""
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

    Parameters are those of :func:`~leaveout.engine._walk.loo_walk`; folds are single
    samples, only their values are valid, and a hard margin must be separable.
    ``verbose`` shows progress on stderr. The values are h_k without r at x_r: one
    column for two classes, of class 1, else one per class. Each interval is that of its
    b_k alone: with more than two classes, not all combinations of their ends sum to 0.
    """
    walker = LlwWalker(problem, solution)
    leaver = _Leaver(problem, solution, walker if walker.ready else None)
    return leaver.run(folds, n_threads, verbose)


def loo_llw_refit(
    problem: LlwProblem,
    solution: LlwSolution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
    verbose: bool = False,
) -> LooIntervals:
    """Do the same, but solve each problem from scratch: slow, for comparison."""
    leaver = _Leaver(problem, solution, None, refit_all=True)
    return leaver.run(folds, n_threads, verbose)


LLW_METHODS = {"walk": loo_llw_walk, "refit": loo_llw_refit}


class _Leaver:
    """Data shared by all samples, and their results."""

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

    def run(self, folds: Folds | None, n_threads: int, verbose: bool) -> LooIntervals:
        """Leave every sample out, and combine the columns."""
        n, Q = self.values.shape
        members = np.arange(n) if folds is None else folds.members
        size = n_threads * LINE
        starts = range(0, members.size, size)
        for first in show_progress(starts, len(starts), "left out", verbose=verbose):
            rows = members[first : first + size]
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
        """Store the known values, and solve without each of the other samples."""
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
        """Keep W and drop the constraints of r on b."""
        can_fall, can_rise = self.can_fall.copy(), self.can_rise.copy()
        can_fall[r] = can_rise[r] = False
        low, high = intercept_bounds(
            self.solution.gradient, can_fall, can_rise, can_fall & can_rise
        )
        b = choose_intercept(low, high)
        kept = replace(self.solution, intercept=b, intercept_lower=low,
                       intercept_upper=high, n_iter=0)  # fmt: skip
        self._store(r, kept, settled_by)

    def _without_its_class(self, r: int) -> None:
        """Leave r out with its class: one class fewer remains, or no problem."""
        problem, gone = self.problem, self.problem.codes[r]
        others = np.arange(problem.n_classes) != gone
        if problem.n_classes == 2:
            # All samples are of the other class: h <= -1 for the missing one.
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
        """Store h(x_r) with its ends; missing classes have -inf."""
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
