# SPDX-License-Identifier: BSD-3-Clause
"""Methods "consolidated" and "magic": all left-out problems at once, by smoothing.

Wang & Yang (2022), after Wang & Zou (2022): leaving j out is the same as closing its
box, so all left-out problems have the same kernel matrix, and what is known of all of
them beforehand need not be solved for (docs/method/consolidated).
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._answer import Answer, settle_without_solving
from leaveout.loo._anti_learning import is_anti_learning
from leaveout.loo._duplicates import first_copies
from leaveout.loo._refit import refit_without
from leaveout.loo._result import CONSOLIDATED, REFIT, MachineLoo, middle
from leaveout.loo._screening import (
    PathMemory,
    Screened,
    Solved,
    screen_along_path,
    screen_at_same_C,
)
from leaveout.run import map_chunks
from leaveout.solve import (
    Family,
    Iterate,
    Solution,
    certify,
    solve_family,
    solve_svc,
)

RULES = ("same_C", "path")
# Left-out machines certified at a time.
BLOCK = 128


def loo_consolidated(
    problem: Problem,
    *,
    solution: Solution | None = None,
    labels_only: bool = False,
    n_threads: int = 1,
    rule: str = "same_C",
    memory: PathMemory | None = None,
) -> MachineLoo:
    """Leave every sample out of one binary machine: screen, then solve all at once.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution, optional
        Its optimum, if it is at hand.
    labels_only : bool, default=False
        Do not solve for samples that are wrong even in the full machine.
    n_threads : int, default=1
        Threads over blocks of samples.
    rule : {"same_C", "path"}, default="same_C"
        What screens. "same_C": the full solution at the same C, by balls around it.
        "path": all left-out solutions at the C before, as in the paper; at the first C
        of a path nobody is screened.
    memory : PathMemory, optional
        What the call at the C before left behind; overwritten.

    Returns
    -------
    MachineLoo
        Values with the interval of the intercept. The counts have "screened" of
        "screened_of" samples, "folds" that were solved for, majorise-minimise "steps"
        and "refits", samples whose optimum smoothing did not prove.
    """
    if rule not in RULES:
        raise ValueError(f"rule must be 'same_C' or 'path'; got {rule!r}.")
    return _leave_out(problem, solution, labels_only, n_threads, rule, memory)


def loo_magic(
    problem: Problem,
    *,
    solution: Solution | None = None,
    labels_only: bool = False,
    n_threads: int = 1,
) -> MachineLoo:
    """Leave every sample out of one binary machine: solve all at once, no screening.

    The algorithm of Wang & Zou (2022), the same as :func:`loo_consolidated` on all
    samples.

    Parameters
    ----------
    problem, solution, labels_only, n_threads
        As in :func:`loo_consolidated`.

    Returns
    -------
    MachineLoo
        Values with the interval of the intercept.
    """
    return _leave_out(problem, solution, labels_only, n_threads, None, None)


def _leave_out(
    problem: Problem,
    solution: Solution | None,
    labels_only: bool,
    n_threads: int,
    rule: str | None,
    memory: PathMemory | None,
) -> MachineLoo:
    """Both methods."""
    started = perf_counter()
    if solution is None:
        solution = solve_svc(problem)
    keep_all = rule == "path"  # the next C asks for every left-out machine
    answer = Answer.of_full_solution(solution)
    rows = settle_without_solving(
        problem, solution, answer, labels_only and not keep_all
    )
    copies = rows
    if not keep_all:
        copies = first_copies(problem.K, problem.y, problem.C, rows)
    leaders = np.unique(copies)
    screened = _screen(problem, solution, leaders, rule, memory)
    folds = _solve_folds(problem, solution, leaders, screened, n_threads)
    folds.store(answer)
    answer.copy(rows, copies)
    if keep_all and memory is not None:
        memory.last = Solved.of(problem, solution, leaders, folds.beta, folds.values)
    values = middle(answer.lower, answer.upper)
    n = problem.n_samples
    counts = {
        "screened": float(n - screened.kept.size) if rule else 0.0,
        "screened_of": float(n),
        "folds": float(leaders.size),
        "shared": float(rows.size - leaders.size),
        "steps": float(folds.n_steps),
        "refits": float(np.count_nonzero(folds.refitted)),
        "seconds": perf_counter() - started,
    }
    return MachineLoo(
        values, answer.lower, answer.upper, answer.certified, answer.settled_by, counts,
        is_anti_learning(problem, solution, values),
    )  # fmt: skip


def _screen(
    problem: Problem,
    solution: Solution,
    rows: IntArray,
    rule: str | None,
    memory: PathMemory | None,
) -> Screened:
    """Apply the rule, if there is one and something to apply it to."""
    if rule == "same_C" and solution.converged:
        return screen_at_same_C(problem, solution, rows)
    if rule == "path" and memory is not None and solution.converged:
        return screen_along_path(problem, memory.last)
    return Screened.nobody(problem)


class _Folds:
    """Left-out machines of some samples, one row each; to be proved, or refitted.

    Parameters
    ----------
    problem, solution : Problem, Solution
        The machine and its optimum.
    rows : ndarray of shape (k,)
        Samples left out.
    beta : ndarray of shape (k, n)
        Signed coefficients, zero at the left-out sample.
    n_steps : int
        Steps they took.
    """

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        rows: IntArray,
        beta: FloatArray,
        n_steps: int,
    ) -> None:
        self.problem, self.solution = problem, solution
        self.rows, self.beta, self.n_steps = rows, beta, n_steps
        self.values = np.empty_like(beta)  # K beta
        self.low, self.high = np.empty((2, rows.size))  # interval of b
        self.certified, self.refitted = np.empty((2, rows.size), dtype=bool)

    def prove(self, part: slice) -> None:
        """Check coefficients on all samples, screened ones included."""
        problem, rows = self.problem, self.rows[part]
        boxes = np.tile(problem.C, (rows.size, 1))
        boxes[np.arange(rows.size), rows] = 0.0
        whole = Family(
            problem.K, problem.y, boxes, np.zeros_like(boxes), np.zeros(rows.size),
            problem.fit_intercept,
        )  # fmt: skip
        proof = certify(whole, self.beta[part])
        self.values[part] = proof.values
        self.low[part], self.high[part] = proof.low, proof.high
        self.certified[part], self.refitted[part] = proof.optimal, ~proof.optimal

    def refit(self, which: IntArray) -> None:
        """Solve some machines anew."""
        for k in which:
            left_out = refit_without(self.problem, self.solution, self.rows[k : k + 1])
            self.beta[k] = left_out.beta
            self.values[k] = left_out.decision_values - left_out.intercept
            self.low[k], self.high[k] = left_out.intercept_interval
            self.certified[k] = left_out.converged

    def store(self, answer: Answer) -> None:
        """Write the values of the left-out samples."""
        own = self.values[np.arange(self.rows.size), self.rows]
        answer.store(self.rows, own, self.low, self.high)
        answer.certified[self.rows] = self.certified
        answer.settled_by[self.rows] = np.where(self.refitted, REFIT, CONSOLIDATED)


def _solve_folds(
    problem: Problem,
    solution: Solution,
    rows: IntArray,
    screened: Screened,
    n_threads: int,
) -> _Folds:
    """Solve the machine without each of some samples; prove it, or refit."""
    kept, k = screened.kept, rows.size
    family, start = _reduce(problem, solution, rows, screened)
    smoothed = solve_family(family, problem.C[kept], start, n_threads=n_threads)
    beta = np.tile(np.where(screened.bounded, problem.y * problem.C, 0.0), (k, 1))
    beta[:, kept] = smoothed.eta
    beta[np.arange(k), rows] = 0.0
    folds = _Folds(problem, solution, rows, beta, smoothed.n_steps)
    map_chunks(folds.prove, k, n_threads, BLOCK)
    failed = np.flatnonzero(folds.refitted)
    map_chunks(lambda part: folds.refit(failed[part]), failed.size, n_threads, size=1)
    return folds


def _reduce(
    problem: Problem, solution: Solution, rows: IntArray, screened: Screened
) -> tuple[Family, Iterate]:
    """Left-out machines on the samples that are kept, and where to start.

    Eq. (8) of the paper with ybar on L, not on S, and on L the hinge is linear: what is
    left is n_s x n_s.
    """
    K, y, C, kept = problem.K, problem.y, problem.C, screened.kept
    bounded, k = np.flatnonzero(screened.bounded), rows.size
    known = np.where(screened.bounded, y * C, 0.0)
    sigma = np.ascontiguousarray(K[np.ix_(kept, kept)])
    # The left-out sample is among the bounded ones or among the kept, or neither.
    gone, kernel = known[rows, None], K[np.ix_(rows, kept)]
    offsets = known[bounded] @ K[np.ix_(bounded, kept)] - gone * kernel
    totals = known[rows] - known.sum()
    boxes, eta = np.tile(C[kept], (k, 1)), np.tile(solution.beta[kept], (k, 1))
    own = kept == rows[:, None]
    values = (
        eta[:1] @ sigma
        - np.where(own.any(axis=1), solution.beta[rows], 0.0)[:, None] * kernel
    )
    boxes[own] = eta[own] = 0.0
    family = Family(sigma, y[kept], boxes, offsets, totals, problem.fit_intercept)
    return family, Iterate(eta, values, np.full(k, solution.intercept))
