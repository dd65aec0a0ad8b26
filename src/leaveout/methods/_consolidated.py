# SPDX-License-Identifier: BSD-3-Clause
"""Methods "consolidated" and "magic": all left-out problems at once, by smoothing.

Wang & Yang (2022), after Wang & Zou (2022): leaving j out is the same as C_j = 0, so
all left-out problems have the same kernel matrix, and coefficients that are the same in
all of them need not be solved for. Steps (docs/method/consolidated):

1. ``_screening``: which coefficients are the same in all left-out problems.
2. ``_smoothing``: minimise the smoothed problems, and the smoothed full problem.
3. ``_exchange``: predict the sets from the differences, and exchange samples between
   them until the linear system of the sets is optimal.
4. ``_proof``: check the result on all samples. A fold that does not pass is refitted.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._problem import (
    CERTIFIED,
    CONSOLIDATED,
    Folds,
    LooIntervals,
    Problem,
    Solution,
)
from leaveout.engine._solve import refit_each
from leaveout.engine._walk import settle_from_solution
from leaveout.methods._exchange import Tableau, solve_exactly, tableaus
from leaveout.methods._proof import Prover
from leaveout.methods._screening import (
    PathMemory,
    Screened,
    Solved,
    screen_along_path,
    screen_at_same_C,
    screen_by_first_order,
)
from leaveout.methods._smoothing import TAU, FoldProblems, Iterate, Majoriser, minimise
from leaveout.run._parallel import map_chunks

RULES = ("first_order", "same_C", "path")
# Folds worked on at a time, at least: enough for BLAS-3, few enough for the cache.
BLOCK = 128


def loo_consolidated(
    problem: Problem,
    solution: Solution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
    rule: str = "first_order",
    memory: PathMemory | None = None,
) -> LooIntervals:
    """Leave every sample out of one binary SVM: screen, then solve all at once.

    Parameters
    ----------
    problem, solution, folds, n_threads
        As in :func:`~leaveout.engine._walk.loo_walk`; single samples only.
    labels_only : bool, default=False
        Do not solve for samples that are wrong even in the full solution.
    rule : {"first_order", "same_C", "path"}, default="first_order"
        Screening rule. "first_order" keeps the samples that the first-order change of
        the full solution can bring to the margin. It is not safe by itself; folds in
        which it was wrong fail the proof and are refitted. "same_C"
        uses bounds around the full solution at the same C. "path" uses all left-out
        solutions at the previous C, as in the paper; at the first C of a path no sample
        is screened.
    memory : PathMemory, optional
        Results of the call at the previous C; overwritten.

    Returns
    -------
    LooIntervals
        The counts hold "screened" of "screened_of" samples, "folds" that were solved,
        majorise-minimise "steps", and "refits": samples whose optimum smoothing did not
        prove.
    """
    if rule not in RULES:
        names = ", ".join(map(repr, RULES))
        raise ValueError(f"rule must be one of {names}; got {rule!r}.")
    return _leave_out(problem, solution, labels_only, n_threads, rule, memory)


def loo_magic(
    problem: Problem,
    solution: Solution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
) -> LooIntervals:
    """Leave every sample out of one binary SVM: solve all at once, no screening.

    This is the algorithm of Wang & Zou (2022): :func:`loo_consolidated` without
    screening.
    """
    return _leave_out(problem, solution, labels_only, n_threads, None, None)


def _leave_out(
    problem: Problem,
    solution: Solution,
    labels_only: bool,
    n_threads: int,
    rule: str | None,
    memory: PathMemory | None,
) -> LooIntervals:
    """Run either method."""
    keep_all = rule == "path"  # the next C needs every left-out solution
    found = LooIntervals.from_solution(solution)
    rows = settle_from_solution(problem, solution, found, labels_only and not keep_all)
    copies = rows if keep_all else problem.first_copies(rows)
    leaders = np.unique(copies)
    folds = _Folds(problem, solution, leaders, keep_all)
    folds.solve(rule, memory, n_threads)
    n_refits = folds.store(found, n_threads)
    found.share_with_copies(rows, copies)
    if folds.values is not None and memory is not None:
        memory.last = Solved.of(problem, solution, leaders, folds.values, folds.norms)
    counts = {
        "screened": float(folds.n_screened) if rule else 0.0,
        "screened_of": float(problem.n_samples),
        "folds": float(leaders.size),
        "shared": float(rows.size - leaders.size),
        "steps": float(folds.steps.sum()),
        "refits": float(n_refits),
    }
    return replace(found, counts=counts)


class _Folds:
    """Problems without one sample each; those that are not proved are refitted."""

    def __init__(
        self, problem: Problem, solution: Solution, rows: IntArray, everywhere: bool
    ) -> None:
        self.problem, self.solution, self.rows = problem, solution, rows
        self.everywhere = everywhere
        n, k = problem.n_samples, rows.size
        self.values = np.empty((k, n)) if everywhere else None  # K beta
        self.own, self.low, self.high, self.norms = np.zeros((4, k))
        self.proved = np.zeros(k, dtype=bool)
        self.steps = np.zeros(k)
        self.n_screened = 0

    def solve(
        self, rule: str | None, memory: PathMemory | None, n_threads: int
    ) -> None:
        """Screen, solve and prove."""
        problem, solution, rows = self.problem, self.solution, self.rows
        groups: list[tuple[IntArray, Tableau]] = []
        if solution.converged and rows.size:
            with suppress(np.linalg.LinAlgError):  # then all folds are refitted
                groups = list(tableaus(problem, solution, rows))
        if groups:
            screened = _screen(problem, solution, groups, rule, memory)
            self.n_screened = problem.n_samples - screened.kept.size
            reduced = _Reduced(problem, solution, screened)
            reduced.smooth()
            for members, tableau in groups:
                which = np.searchsorted(rows, members)
                self._solve_group(reduced, tableau, which, n_threads)

    def _solve_group(
        self, reduced: _Reduced, tableau: Tableau, which: IntArray, n_threads: int
    ) -> None:
        """Solve folds that share a tableau."""
        small = tableau.take(reduced.kept)

        def run(part: slice) -> None:
            block = which[part]
            rows = self.rows[block]
            eta, self.steps[block[0]] = reduced.solve(rows, small, tableau)
            proof = reduced.prove(rows, eta, self.everywhere)
            self.own[block], self.norms[block] = proof.own, proof.norms
            self.low[block], self.high[block] = proof.low, proof.high
            self.proved[block] = proof.optimal
            if self.values is not None:
                self.values[block] = proof.values

        map_chunks(run, which.size, n_threads, reduced.block)

    def store(self, found: LooIntervals, n_threads: int) -> int:
        """Write the values of the left-out samples; return the number of refits."""
        rows, failed = self.rows, np.flatnonzero(~self.proved)
        found.lower[rows], found.upper[rows] = self.own + self.low, self.own + self.high
        found.settled_by[rows], found.uncertified_by[rows] = CONSOLIDATED, CERTIFIED
        refitted = refit_each(
            self.problem, self.solution, Folds.singles(rows[failed]),
            n_threads=n_threads, changes=self.everywhere,
        )  # fmt: skip
        found.write(rows[failed], refitted)
        if self.values is not None and refitted.changes is not None:
            betas = self.solution.beta + refitted.changes[:, :-1]
            self.values[failed] = values = betas @ self.problem.K
            squared = np.einsum("ki,ki->k", betas, values)
            self.norms[failed] = np.sqrt(np.maximum(0.0, squared))
        return failed.size


def _screen(
    problem: Problem,
    solution: Solution,
    groups: list[tuple[IntArray, Tableau]],
    rule: str | None,
    memory: PathMemory | None,
) -> Screened:
    """Apply a screening rule."""
    if rule == "first_order":
        return screen_by_first_order(problem, groups)
    if rule == "same_C":
        rows = np.concatenate([members for members, _ in groups])
        return screen_at_same_C(problem, solution, rows)
    if rule == "path" and memory is not None:
        return screen_along_path(problem, memory.last)
    return Screened.nothing(problem)


class _Reduced:
    """The problem on the kept samples, and its folds.

    Eq. (8) of the paper, with ybar on L instead of S. The hinge is linear on L, so the
    remaining problem is n_s x n_s.
    """

    def __init__(
        self, problem: Problem, solution: Solution, screened: Screened
    ) -> None:
        self.problem, self.kept = problem, screened.kept
        kept, K, C = self.kept, problem.K, problem.C
        self.known = np.where(screened.bounded, problem.y * C, 0.0)
        self.place = np.full(problem.n_samples, -1)
        self.place[kept] = np.arange(kept.size)
        self.full = FoldProblems(
            K if kept.size == problem.n_samples else K[np.ix_(kept, kept)],
            problem.y[kept],
            C[None, kept],
            (self.known @ K)[None, kept],
            np.array([-self.known.sum()]),
            problem.fit_intercept,
        )
        beta = solution.beta[None, kept]
        self.start = Iterate(beta, beta @ self.full.K, np.array([solution.intercept]))
        # With a small C the heavier class is near the margin, at distances of order C.
        spread = float(np.ptp(solution.decision_values))
        self.tau = TAU * (min(1.0, spread) or 1.0) if problem.fit_intercept else TAU
        self.prove = Prover(problem, screened).prove

    @property
    def block(self) -> int:
        """Folds worked on at a time."""
        return min(max(BLOCK, 256 * BLOCK // max(1, self.kept.size)), 8 * BLOCK)

    def smooth(self) -> None:
        """Factor for the majorise-minimise steps, and smooth the full problem."""
        full, self.smoothed = self.full, self.start.take(np.array([0]))
        if self.kept.size:
            C, fit_intercept = full.C[0], full.fit_intercept
            self.majoriser = Majoriser.of(full.K, C, self.tau, fit_intercept)
            minimise(full, self.majoriser, self.smoothed)

    def leave_out(self, rows: IntArray, near: Iterate) -> tuple[FoldProblems, Iterate]:
        """Return the problem without each row, and its start near the full optimum."""
        full, k, place = self.full, np.arange(rows.size), self.place[rows]
        kernel = self.problem.K[np.ix_(rows, self.kept)]
        gone = self.known[rows]
        C, eta = np.tile(full.C, (k.size, 1)), np.tile(near.eta, (k.size, 1))
        inside = np.flatnonzero(place >= 0)
        own = np.zeros(k.size)
        own[inside] = near.eta[0, place[inside]]
        C[inside, place[inside]] = eta[inside, place[inside]] = 0.0
        folds = replace(
            full, C=C, offsets=full.offsets - gone[:, None] * kernel,
            totals=full.totals + gone,
        )  # fmt: skip
        values = near.values - own[:, None] * kernel
        return folds, Iterate(eta, values, np.full(k.size, near.b[0]))

    def solve(
        self, rows: IntArray, small: Tableau, tableau: Tableau
    ) -> tuple[FloatArray, int]:
        """Smooth and solve the folds of some rows; return eta and number of steps."""
        if self.kept.size == 0:
            return np.empty((rows.size, 0)), 0
        full = self.smoothed
        folds, at = self.leave_out(rows, full)
        n_steps = minimise(folds, self.majoriser, at)
        change = at.values + folds.offsets + at.b[:, None]
        change -= full.values + self.full.offsets + full.b
        # Left-out samples that are not kept change f and eta of the others.
        screened = np.where(self.place[rows] < 0, -tableau.beta[rows], 0.0)
        shift = screened[:, None] * tableau.T[np.ix_(rows, self.kept)]
        eta = solve_exactly(small, folds, shift, change, at.eta - full.eta)
        return eta, n_steps
