# SPDX-License-Identifier: BSD-3-Clause
"""Leave samples out of the machine of Lee, Lin & Wahba.

A sample whose multipliers are all 0 leaves W as it is, and only the box of b has to be
read anew without it. For the others the optimum is followed while their multipliers go
to 0 (:class:`~leaveout.solve.LlwWalker`); each end is verified, and where a walk gets
lost the sample is solved for anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import perf_counter

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.loo._llw_trust import trusted_llw
from leaveout.loo._result import (
    REFIT,
    SINGLETON,
    UNTOUCHED,
    WALK,
    ZERO_ALPHA,
    MachineLoo,
)
from leaveout.run import map_chunks, show_progress
from leaveout.solve import (
    BOUNDED,
    MARGIN,
    LlwProblem,
    LlwSolution,
    LlwWalker,
    choose_intercept,
    intercept_box,
    solve_llw,
)

# Samples a thread takes at once; and between two lines of progress, per thread.
CHUNK, LINE = 16, 64


def loo_llw_walk(
    problem: LlwProblem,
    *,
    solution: LlwSolution | None = None,
    n_threads: int = 1,
    verbose: bool = False,
) -> list[MachineLoo]:
    """Leave every sample out, by walks from the full optimum.

    Parameters
    ----------
    problem : LlwProblem
        The machine; a hard margin must be separable.
    solution : LlwSolution, optional
        Its optimum.
    n_threads : int, default=1
        Threads over samples.
    verbose : bool, default=False
        Whether to show progress on stderr.

    Returns
    -------
    list of MachineLoo
        h_k without r at x_r: one for two classes, of class 1, else one per class. The
        intervals are those of the box of b, free of each other: of more than two
        classes, some corners of it have no sum 0.
    """
    solution = solve_llw(problem) if solution is None else solution
    walker = LlwWalker(problem, solution)
    leaver = _Leaver(problem, solution, walker if walker.ready else None)
    return leaver.run(n_threads, verbose)


def loo_llw_refit(
    problem: LlwProblem,
    *,
    solution: LlwSolution | None = None,
    n_threads: int = 1,
    verbose: bool = False,
) -> list[MachineLoo]:
    """Leave every sample out, each problem solved from nothing: slow, to compare with.

    Parameters and result are those of :func:`loo_llw_walk`.
    """
    solution = solve_llw(problem) if solution is None else solution
    return _Leaver(problem, solution, None, refit_all=True).run(n_threads, verbose)


LLW_METHODS: Mapping[str, Callable[..., list[MachineLoo]]] = {
    "walk": trusted_llw(loo_llw_walk),
    "refit": trusted_llw(loo_llw_refit),
}


class _Leaver:
    """What all samples share, and where their answers go."""

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

    def run(self, n_threads: int, verbose: bool) -> list[MachineLoo]:
        """Leave everybody out, and put the columns together."""
        started = perf_counter()
        n, Q = self.values.shape
        size = n_threads * LINE
        starts = range(0, n, size)
        for first in show_progress(starts, len(starts), "left out", verbose=verbose):
            rows = np.arange(first, min(first + size, n))
            work = partial(self._leave, rows)
            map_chunks(work, rows.size, n_threads, CHUNK)
        counts = {
            "walks": float(np.count_nonzero(self.settled_by == WALK)),
            "refits": float(np.count_nonzero(self.settled_by == REFIT)),
            "systems": float(self.steps.sum()),
            "seconds": perf_counter() - started,
        }
        columns = [1] if Q == 2 else range(Q)
        return [
            MachineLoo(
                self.values[:, k].copy(), self.lower[:, k].copy(),
                self.upper[:, k].copy(), self.certified, self.settled_by,
                counts if k == columns[0] else {},
            )
            for k in columns
        ]  # fmt: skip

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
            self._solve_without(r, left)

    def _solve_without(self, r: int, walked: LlwSolution | None) -> None:
        """Take the end of the walk, or solve anew."""
        left = solve_llw(self.problem.without(r)) if walked is None else walked
        ends = left.intercept_lower, left.intercept_upper
        settled_by = REFIT if walked is None else WALK
        self._store(r, left, left.coef, left.intercept, ends, settled_by)
        self.steps[r] = left.n_iter

    def _keep(self, r: int, settled_by: int) -> None:
        """W stays; b has to do without the constraints of r."""
        can_fall, can_rise = self.can_fall.copy(), self.can_rise.copy()
        can_fall[r] = can_rise[r] = False
        ends = intercept_box(
            self.solution.gradient, can_fall, can_rise, can_fall & can_rise
        )
        b = choose_intercept(*ends)
        self._store(r, self.solution, self.solution.coef, b, ends, settled_by)

    def _without_its_class(self, r: int) -> None:
        """Leave r out with its class: a machine of one class less, or none is left."""
        problem, gone = self.problem, self.problem.codes[r]
        others = np.arange(problem.n_classes) != gone
        self.settled_by[r] = SINGLETON
        if problem.n_classes == 2:
            # Everything is of the other class: h = -1 or less for the one that is gone.
            self.values[r] = np.where(others, 1.0, -1.0)
            self.lower[r] = np.where(others, 1.0, -np.inf)
            self.upper[r] = np.where(others, np.inf, -1.0)
            self.certified[r] = True
            return
        codes = problem.codes - (problem.codes > gone)
        C = problem.C.copy()
        C[r] = 0.0
        left = solve_llw(LlwProblem(problem.K, codes, C, problem.n_classes - 1))
        base = problem.K[r] @ left.coef
        for out, b in (
            (self.values, left.intercept),
            (self.lower, left.intercept_lower),
            (self.upper, left.intercept_upper),
        ):
            out[r, others] = base + b
            out[r, gone] = -np.inf
        self.certified[r], self.steps[r] = left.converged, left.n_iter

    def _store(
        self,
        r: int,
        left: LlwSolution,
        coef: FloatArray,
        b: FloatArray,
        ends: tuple[FloatArray, FloatArray],
        settled_by: int,
    ) -> None:
        """Write down h(x_r) with its ends."""
        base = self.problem.K[r] @ coef
        self.values[r], self.lower[r], self.upper[r] = (
            base + b,
            base + ends[0],
            base + ends[1],
        )
        self.certified[r] = left.converged
        self.settled_by[r] = settled_by
