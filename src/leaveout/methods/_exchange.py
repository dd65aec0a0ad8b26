# SPDX-License-Identifier: BSD-3-Clause
r"""The exactness step of all folds, from one factorisation: a shared tableau.

E are the samples on the margin of the full solution. Take z as independent and w as
dependent variables; T[c] is the response of w to z_c::

                off E     on E                 c \ column   off E        on E
    z           eta       f                    off E        S            -(K_.E, 1) G
    w           f         eta                  on E         G (K_E., 1)  G_EE

    G = [[K_EE, 1], [1', 0]]^-1,    S = K - (K_.E, 1) G (K_E., 1)'

A fold has its own margin; D are the samples on one margin but not on both. Off D, z is
known: eta = 0 or y C, f = y. On D, w is known, and T_DD x = rest gives z: a system of
the size of D, which is about 2 to 12 (docs/method/consolidated).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import weighted_median_intervals
from leaveout.engine._problem import BOUNDED, Problem, Solution
from leaveout.methods._smoothing import FoldProblems

# (rounds, patience): after ``patience`` rounds in which the number of wrong samples did
# not fall, one sample is moved at a time. Near-duplicates that move together overshoot,
# and the sets grow; the second attempt starts again from the full solution.
FIRST, SECOND = (12, 3), (100, 0)
# Violations below this are rounding errors.
SLACK = 1e-11
# Added to the diagonal of T_DD, so that duplicates do not make it singular.
RIDGE, LARGER_RIDGE = 2e-15, 1e-9
# Matrix entries in one stack of systems.
STACK = 2_000_000
# Products with fewer non-zeros than this share, in wider matrices, are sparse.
SPARSE, WIDE = 1 / 12, 128
# Where no S_ii reaches this share of max K_ii, K has the rank of K_EE. Each sample that
# joins the margin must then replace another, which exchanges of sets do not find.
LOW_RANK = 1e-9


@dataclass(frozen=True)
class Tableau:
    """T and the full solution at one b."""

    T: FloatArray  # (n, n)
    margin: BoolArray  # (n,), E
    bounded: BoolArray  # (n,), alpha = C
    y: FloatArray
    beta: FloatArray
    f: FloatArray  # decision values, y on E
    is_low_rank: bool

    @classmethod
    def of(
        cls, problem: Problem, solution: Solution, margin: BoolArray, b: float
    ) -> Tableau:
        """Factor the bordered kernel on the margin, m^3 + n^2 m flops."""
        K, y = problem.K, problem.y
        E, N = np.flatnonzero(margin), np.flatnonzero(~margin)
        m, border = E.size, int(problem.fit_intercept and E.size > 0)
        basis = np.ones((m + border, y.size))
        basis[:m] = K[E]
        bordered = np.zeros((m + border, m + border))
        bordered[:, :m], bordered[:m, m:] = basis[:, E], 1.0
        G = np.linalg.inv(bordered)
        H = G[:m] @ basis
        T = np.empty_like(K)
        T[N] = K[N] - (basis[:, N].T @ G) @ basis
        T[E] = H
        T[:, E] = -H.T
        T[np.ix_(E, E)] = G[:m, :m]
        inside = float(T.diagonal()[N].max(initial=0.0))
        f = solution.decision_values + (b - solution.intercept)
        bounded = (solution.state == BOUNDED) & ~margin
        return cls(
            T, margin, bounded, y, solution.beta, np.where(margin, y, f),
            N.size > 0 and inside < LOW_RANK * float(K.diagonal().max()),
        )  # fmt: skip

    def take(self, which: IntArray) -> Tableau:
        """Return the tableau of some samples; those left out stay as they are."""
        if which.size == self.y.size:
            return self
        return Tableau(
            self.T[np.ix_(which, which)], self.margin[which], self.bounded[which],
            self.y[which], self.beta[which], self.f[which], self.is_low_rank,
        )  # fmt: skip

    def first_order(self, rows: IntArray) -> FloatArray:
        """Change of w when each row is left out, as long as no set changes, (k, n)."""
        own = np.where(self.margin[rows], self.T[rows, rows], 1.0)
        step = np.divide(
            -self.beta[rows], own, out=np.zeros(rows.size), where=np.abs(own) > 1e-12
        )
        return step[:, None] * self.T[rows]


def tableaus(
    problem: Problem, solution: Solution, rows: IntArray
) -> Iterator[tuple[IntArray, Tableau]]:
    """Yield the tableau for each of some groups of left-out samples.

    If no sample is on the margin, b can be anywhere in an interval. Without a positive
    sample it moves to the lower end, without a negative one to the upper end, and the
    sample that determines this end joins the margin.
    """
    if solution.free.any() or not problem.fit_intercept:
        yield rows, Tableau.of(problem, solution, solution.free, solution.intercept)
        return
    low, high = solution.intercept_interval
    for sign, b in ((1.0, low), (-1.0, high)):
        part = rows[problem.y[rows] == sign]
        if part.size:
            f = solution.decision_values + (b - solution.intercept)
            distance = np.where(problem.C > 0.0, np.abs(problem.y - f), np.inf)
            nearest = np.arange(f.size) == distance.argmin()
            yield part, Tableau.of(problem, solution, nearest, b)


class Exchange:
    """Folds on the way from the full solution to their own, one row per fold.

    ``shift`` is the change of w because of left-out samples that are not in the
    tableau.
    """

    def __init__(
        self, tableau: Tableau, folds: FoldProblems, shift: FloatArray
    ) -> None:
        self.tableau, self.folds = tableau, folds
        E, present, k = tableau.margin, folds.C > 0.0, len(folds)
        self.on, self.bounded = E & present, tableau.bounded & present
        self.z = np.tile(np.where(E, tableau.f, tableau.beta), (k, 1))
        self.w = np.where(E, tableau.beta, tableau.f) + shift
        self.fewest = np.full(k, tableau.y.size + 1)
        self.stalled = np.zeros(k, dtype=np.intp)

    def take(self, which: IntArray) -> Exchange:
        """Return some of the folds (a copy)."""
        some = copy(self)
        some.folds = self.folds.take(which)
        for name in ("on", "bounded", "z", "w", "fewest", "stalled"):
            setattr(some, name, getattr(self, name)[which])
        return some

    def put(self, which: IntArray, other: Exchange) -> None:
        """Write some of the folds."""
        for name in ("on", "bounded", "z", "w", "fewest", "stalled"):
            getattr(self, name)[which] = getattr(other, name)

    @property
    def target(self) -> FloatArray:
        """Coefficients of the samples off the margin."""
        return np.where(self.bounded, self.tableau.y * self.folds.C, 0.0)

    @property
    def eta(self) -> FloatArray:
        """Coefficients; those of the sets' linear system, which may violate C."""
        E = self.tableau.margin
        return np.where(self.on, np.where(E, self.w, self.z), self.target)

    def predict(self, values: FloatArray, eta: FloatArray) -> None:
        """Predict the sets from the change of f and eta in the smoothed problems."""
        ref, C = self.tableau, self.folds.C
        h, alpha = ref.y * (values + ref.f), ref.y * (eta + ref.beta)
        was, present = self.bounded, C > 0.0
        crosses = np.where(was, h > 1.0, h < 1.0) & present & ~ref.margin
        above = np.where(ref.margin, alpha > C, crosses & ~was & (alpha >= C)) & present
        below = np.where(ref.margin, alpha < 0.0, was & (alpha <= 0.0)) & present
        self.on = (self.on | crosses) & ~above & ~below
        self.bounded = (was & ~crosses) | above

    def run(self, rounds: int, patience: int) -> BoolArray:
        """Exchange samples between the sets until all are right; return which are."""
        solved = np.zeros(len(self.folds), dtype=bool)
        rows, now = np.arange(solved.size), self
        for _ in range(rounds):
            now._fill_empty_margins()
            now._solve()
            wrong = now._exchange(patience)
            if now is not self:
                self.put(rows, now)
            solved[rows[~wrong]] = True
            rows = rows[wrong]
            if rows.size == 0:
                break
            now = self.take(rows)
        return solved

    def refine(self) -> FloatArray:
        """Correct f on the margin by its true values; return eta within its bounds.

        Where points nearly coincide, T is inaccurate.
        """
        folds, y, E = self.folds, self.tableau.y, self.tableau.margin
        eta = self.eta
        f = eta @ folds.K + folds.offsets
        if folds.fit_intercept:
            short = np.where(self.on, y - f, 0.0).sum(axis=1)
            f += (short / np.maximum(self.on.sum(axis=1), 1))[:, None]
        self.z, self.w = np.where(E, f, eta), np.where(E, eta, f)
        self._solve()
        return y * np.clip(y * self.eta, 0.0, folds.C)

    def _solve(self) -> None:
        """Solve the linear systems of the current sets."""
        y, E, target = self.tableau.y, self.tableau.margin, self.target
        D = self.on ^ E
        change = np.where(D, 0.0, np.where(E, y, target) - self.z)
        r, c = np.nonzero(change)
        self._change(r, c, change[r, c])
        wanted = np.where(E, target, y) - self.w
        r, c = np.nonzero(D)
        self._change(r, c, self._solve_stacks(D.sum(axis=1), c, wanted[D]))

    def _change(self, r: IntArray, c: IntArray, by: FloatArray) -> None:
        """Change z in some places, and w accordingly."""
        if by.size == 0:
            return
        T, (k, n) = self.tableau.T, self.z.shape
        self.z[r, c] += by
        if n > WIDE and by.size < SPARSE * k * n:
            begin = np.concatenate([[0], np.cumsum(np.bincount(r, minlength=k))])
            self.w += csr_array((by, c, begin), shape=(k, n)) @ T
        else:
            dense = np.zeros((k, n))
            dense[r, c] = by
            self.w += dense @ T

    def _solve_stacks(
        self, sizes: IntArray, c: IntArray, wanted: FloatArray
    ) -> FloatArray:
        """Solve T_DD' x = wanted for each fold; entries are fold by fold."""
        T, x = self.tableau.T, np.empty(c.size)
        first = np.cumsum(sizes) - sizes
        for d in np.unique(sizes[sizes > 0]).tolist():
            group, step = first[sizes == d], max(1, STACK // (d * d))
            for start in range(0, group.size, step):
                at = group[start : start + step, None] + np.arange(d)
                matrix = T[c[at][:, None, :], c[at][:, :, None]]
                diagonal = np.einsum("kii->ki", matrix)
                diagonal += RIDGE * (1.0 + np.abs(diagonal))
                try:
                    x[at] = np.linalg.solve(matrix, wanted[at][:, :, None])[:, :, 0]
                except np.linalg.LinAlgError:  # one of them is exactly singular
                    diagonal += LARGER_RIDGE
                    x[at] = np.linalg.solve(matrix, wanted[at][:, :, None])[:, :, 0]
        return x

    def _exchange(self, patience: int) -> BoolArray:
        """Move samples that are in a wrong set; return which folds have any.

        All of them are moved; if their number does not fall, only the last one is
        (block principal pivoting, Judice & Pires 1994).
        """
        y, E, C = self.tableau.y, self.tableau.margin, self.folds.C
        on, bounded = self.on, self.bounded
        found = y * np.where(on ^ E, self.z, self.w)  # alpha on the margin, h off it
        size = np.maximum(1.0, np.abs(np.where(on, 0.0, found)).max(axis=1, initial=0))
        slack = SLACK * size[:, None]
        least = np.where(on, -SLACK * C, np.where(bounded, -np.inf, 1.0 - slack))
        most = np.where(on, (1.0 + SLACK) * C, np.where(bounded, 1.0 + slack, np.inf))
        above = found > most
        moves = (above | (found < least)) & (C > 0.0)
        count = moves.sum(axis=1)
        self.stalled = np.where(count < self.fewest, 0, self.stalled + 1)
        self.fewest = np.minimum(count, self.fewest)
        single = np.flatnonzero((self.stalled > patience) & (count > 1))
        last = y.size - 1 - moves[single, ::-1].argmax(axis=1)
        moves[single] = False
        moves[single, last] = True
        self.bounded = (bounded & ~moves) | (on & above & moves)
        self.on = on ^ moves
        return count > 0

    def _fill_empty_margins(self) -> None:
        """With an intercept, put the sample that determines b on an empty margin."""
        empty = np.flatnonzero(~self.on.any(axis=1))
        if empty.size == 0 or not self.folds.fit_intercept:
            return
        y, E, C = self.tableau.y, self.tableau.margin, self.folds.C[empty]
        points = y - np.where(E, self.z[empty], self.w[empty])
        level = (C * (y > 0)).sum(axis=1) - self.folds.totals[empty]
        low, high = weighted_median_intervals(points, C, level)
        b = np.where(np.isfinite(low), low, high)[:, None]
        nearest = np.where(C > 0.0, np.abs(points - b), np.inf).argmin(axis=1)
        self.on[empty, nearest], self.bounded[empty, nearest] = True, False


def solve_exactly(
    tableau: Tableau,
    folds: FoldProblems,
    shift: FloatArray,
    values: FloatArray,
    eta: FloatArray,
) -> FloatArray:
    """Solve folds from predicted changes of f and eta; return coefficients.

    Unfinished folds start again from the full solution. Coefficients are not optimal
    where the exchange did not end, which the caller must check.
    """
    exchange = Exchange(tableau, folds, shift)
    exchange.predict(values, eta)
    open_ = np.flatnonzero(~exchange.run(*FIRST))
    if open_.size and not tableau.is_low_rank:
        again = Exchange(tableau, folds.take(open_), shift[open_])
        again.run(*SECOND)
        exchange.put(open_, again)
    return exchange.refine()
