# SPDX-License-Identifier: BSD-3-Clause
"""Leave samples out where every fold has a kernel, and upper bounds, of its own.

Preprocessing that is fitted without the left-out samples changes all kernel values a
little. The optimum of a fold differs from that of all samples in few states, so the
active-set method starts there: the left-out beta become 0, the others keep their
levels, and the first step moves the free beta to the fold's kernel and restores
sum(beta) = 0.

Kernel values are computed in double precision only between the samples near a kink, and
once with the bounded support vectors, whose beta are fixed. f of all others follows in
single precision with a bound on its error; those that are not clearly on their side are
evaluated in double precision, and join the near samples if they left it
(docs/method/fold). So all optimality conditions are checked on the fold's own kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from leaveout._typing import FloatArray, IntArray, StateArray
from leaveout.engine._certificate import (
    LARGEST_RATIO,
    VALUE_ACCURACY,
    cap_unreachable_bounds,
    clear_of_rounding,
    rounding_of_sum,
)
from leaveout.engine._fold_fast import FoldProblem, FoldWork
from leaveout.engine._problem import (
    BY_ROUNDING,
    CERTIFIED,
    NOT_CONVERGED,
    REFIT,
    SINGLETON,
    TIE,
    Folds,
    LooIntervals,
    Problem,
    Solution,
)
from leaveout.engine._solve import ROUNDING, make_solution, solve_svc
from leaveout.engine._walk import LARGEST_WALK, PILOTS, Walker

# Up to this many samples, all are near.
ALL_NEAR = 64
# If more than this share would be near, all are.
MOST_NEAR = 0.8
# A sample is near if it could move this many times as far as is usual. With 16, as in
# walks, fewer folds are repeated, but all take longer: kernel values cost most.
NEAR_MOVES = 5.0
# The same for moves with the kernel of a fold alone, where the others are known.
KERNEL_MOVES = 2.0
# Largest violation of the optimality conditions, relative to the size of f.
TOLERANCE = 1e-9
MAX_STEPS = 500
# Changes of coefficients by walks that are kept: 64 MB.
MOST_CHANGES = 2**23
# Rounds with more near samples before all are.
ROUNDS = 6
# With more samples that single precision cannot decide, they join at once.
FEW = 16
# States, so that a stable sort puts the samples of a fold in the order of the kernel.
NEAR, FAR_BOUNDED, FAR_ZERO, ABSENT = range(4)


class NotFiniteError(ArithmeticError):
    """Kernel values of a fold are not finite."""


class FoldKernel(Protocol):
    """Kernel values of one fold, between samples in an order that is set first."""

    def arrange(self, order: IntArray) -> None:
        """Set the order of the samples."""

    def square(self, k: int) -> tuple[FloatArray, int]:
        """Return the values between the first k, and how many are not finite."""

    def products(
        self, first: int, stop: int, start: int, beta: FloatArray, exact: bool = True
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return K[first:stop, start : start + len(beta)] @ beta and error bounds."""


class Guess(NamedTuple):
    """What is known of a fold, or of several, before it is solved."""

    place: StateArray  # (n,)
    values: FloatArray  # (n,) K beta at the start
    errors: FloatArray  # (n,) at most
    distance: float  # largest difference of a value of K from that of all samples


class FoldSolver:
    """Solves one problem without each of its folds.

    Parameters
    ----------
    problem : Problem
        The problem on all samples; its K is that of preprocessing fitted on all.
    solution : Solution
        Its optimum.
    folds : Folds
        What is left out, with ``C_factors`` if the upper bounds change.

    Attributes
    ----------
    found : LooIntervals
        The values, one per member of the folds; ``leave_out`` fills them.
    """

    def __init__(self, problem: Problem, solution: Solution, folds: Folds) -> None:
        self.problem, self.solution, self.folds = problem, solution, folds
        self.found = LooIntervals.empty(folds.members.size)
        self.data = FoldProblem(
            problem.y, problem.offsets, problem.levels, solution.beta,
            *problem.bracket(solution.beta), problem.fit_intercept,
        )  # fmt: skip
        absent = problem.C == 0.0
        self.all_near = np.where(absent, ABSENT, NEAR).astype(np.int8)
        self.place = self.all_near
        self.n_steps, self.n_repeated = np.zeros((2, len(folds)), dtype=np.intp)
        self.n_classes = self._count_classes()
        self.moving = np.zeros(len(folds), dtype=bool)  # folds that lose a beta
        fold = np.repeat(np.arange(len(folds)), folds.sizes)
        self.moving[fold[solution.beta[folds.members] != 0.0]] = True
        factors = folds.C_factors
        self.factors = None if factors is None else factors.tolist()
        self.reason = CERTIFIED if solution.converged else NOT_CONVERGED
        # (n_folds, n + 1) of beta and b, by walks
        self.changes: FloatArray | None = None

    def walk(self, n_threads: int) -> bool:
        """Start folds where they are optimal for the kernel of all samples, by walks.

        Return whether there is memory for that.
        """
        g, n = len(self.folds), self.problem.n_samples
        if g * (n + 1) > MOST_CHANGES or self.folds.sizes.max() > LARGEST_WALK:
            return False
        self.changes = np.zeros((g, n + 1))
        problem = cap_unreachable_bounds(self.problem, self.solution)
        walker = Walker(problem, self.solution, n_threads=n_threads, changes=True)
        some = np.flatnonzero(self.moving & (self.n_classes > 1))
        folds = replace(self.folds.take(some), C_factors=None)
        self.changes[some] = walker.leave_out(folds).changes
        return True

    def parts(self) -> tuple[FloatArray, FloatArray]:
        """Return parts of the optimum, (c, n), and what folds multiply them by, (g, c).

        These are beta of the negative and of the positive samples, if their upper
        bounds change, and otherwise beta itself.
        """
        beta = self.solution.beta
        if self.folds.C_factors is None:
            return beta[None], np.ones((len(self.folds), 1))
        positive = self.problem.y > 0.0
        return beta * np.stack([~positive, positive]), self.folds.C_factors

    def guess(
        self, which: IntArray, known: FloatArray, errors: FloatArray, far: FloatArray
    ) -> list[Guess]:
        """Tell what samples of some folds are near a kink.

        Near is what the change of the kernel, times a factor, could take to a kink.

        Parameters
        ----------
        which : ndarray of shape (g,)
            The folds.
        known, errors : ndarray of shape (g, n)
            Products of their kernels with the coefficients of the optimum, scaled like
            the upper bounds, at most so far from the truth.
        far : ndarray of shape (g,)
            Largest difference of a kernel value from that of all samples.
        """
        assert self.changes is not None
        problem, solution = self.problem, self.solution
        change, b = self.changes[which, :-1], self.changes[which, -1:]
        if self.folds.C_factors is not None:
            positive = (problem.y > 0.0).astype(np.intp)
            change = change * self.folds.C_factors[which][:, positive]
        before = solution.decision_values - solution.intercept
        some = np.flatnonzero(change.any(axis=0))
        values = known + change[:, some] @ problem.K[some]
        moves, near = known - before, (change != 0.0) | solution.free
        if problem.fit_intercept and solution.free.any():  # b follows these
            shift = moves[:, solution.free].mean(axis=1, keepdims=True)
            moves, b = moves - shift, b - shift
        moves = np.abs(moves)
        reach = KERNEL_MOVES * (moves + moves.mean(axis=1, keepdims=True))
        f = values + (solution.intercept + b)
        for offset in problem.offsets:
            near |= ~(np.abs(f - (problem.y + offset)) > reach)
        if np.count_nonzero(problem.C) <= ALL_NEAR or not solution.free.any():
            near[:] = True
        near[near.mean(axis=1) > MOST_NEAR] = True
        away = np.where(solution.beta == 0.0, FAR_ZERO, FAR_BOUNDED).astype(np.int8)
        place = np.where(near, self.all_near, away)
        place[:, problem.C == 0.0] = ABSENT
        errors = errors + far[:, None] * np.abs(change).sum(axis=1, keepdims=True)
        return list(map(Guess, place, values, errors, far.tolist()))

    def pilots(self, chosen: IntArray) -> IntArray:
        """Add to the folds that are solved first, to tell what samples are near a kink.

        The left-out samples of most of them should have a beta.
        """
        n_present = np.count_nonzero(self.problem.C)
        if n_present <= ALL_NEAR or not self.solution.free.any():
            return chosen
        moving = np.flatnonzero(self.moving)
        count = min(moving.size, PILOTS - np.isin(chosen, moving).sum())
        if count <= PILOTS // 2 and chosen.size:
            return chosen
        return np.union1d(chosen, moving[np.arange(count) * moving.size // count])

    def choose_near(self, values: list[FloatArray]) -> None:
        """Choose the near samples from f of all samples without some folds, (n,) each.

        Near is what the usual moves of f, times a factor, could take to a kink.
        """
        problem, solution = self.problem, self.solution
        if np.count_nonzero(problem.C) <= ALL_NEAR or not solution.free.any():
            return
        f = solution.decision_values
        moves = np.nan_to_num(np.array(values).reshape(-1, f.shape[0]) - f)
        size = np.sqrt((moves**2).mean(axis=0)) if len(values) else np.full_like(f, 1e9)
        reach = 0.5 * NEAR_MOVES * (size + size.mean())
        distance = np.abs(problem.kinks - f[:, None]).min(axis=1)
        far = ~solution.free & (distance > reach) & (problem.C > 0.0)
        if far.mean() < 1.0 - MOST_NEAR:
            return
        self.place = self.all_near.copy()
        self.place[far] = np.where(solution.beta == 0.0, FAR_ZERO, FAR_BOUNDED)[far]

    def start(self) -> FoldWork:
        """Return memory for one thread, for all problems with as many samples."""
        return FoldWork(*self.problem.levels.shape)

    def leave_out(
        self,
        k: int,
        kernel: FoldKernel,
        work: FoldWork,
        guess: Guess | None = None,
        *,
        everywhere: bool = False,
    ) -> FloatArray | None:
        """Solve fold k on its kernel, and store the values.

        Returns f of all samples, if asked for; NaN at those with C = 0. None if one
        class is left, whose label is the value.
        """
        if self.n_classes[k] < 2:
            self._store_one_class(k)
            return None
        place, n_repeated = self.place if guess is None else guess.place, 0
        needed = self._solve(k, kernel, work, place, guess)
        while needed is not None:  # samples that left their range, or none if all may
            n_repeated += 1
            place = place.copy()
            place[needed] = NEAR
            if n_repeated == ROUNDS or needed.size == 0:
                place = self.all_near
            needed = self._solve(k, kernel, work, place, guess)
        self.n_repeated[k] = n_repeated
        self.n_steps[k] = work.n_steps
        if not everywhere:
            return None
        f = np.full(self.problem.n_samples, np.nan)
        near = work.order[: work.n_near]
        f[near] = self.problem.y[near] - work.F[: work.n_near] + work.b
        return f

    def store(
        self, k: int, values: FloatArray, top: float, reach: float, size: float
    ) -> None:
        """Store the values of fold k.

        top and reach are the largest K_ii of kept and of left-out samples, size is
        sum |beta|.
        """
        entries = slice(self.folds.begin[k], self.folds.begin[k + 1])
        self.found.lower[entries] = self.found.upper[entries] = values
        self.found.uncertified_by[entries] = self.reason
        self._check_rounding(entries, top, reach, size)

    def is_close(self, k: int, distance: float) -> bool:
        """Whether a value of fold k is so close to 0, and may have the wrong sign."""
        entries = slice(self.folds.begin[k], self.folds.begin[k + 1])
        ends = self.found.lower[entries], self.found.upper[entries]
        return any((np.abs(end) < distance).any() for end in ends)

    @property
    def counts(self) -> dict[str, float]:
        """Steps of the active set, and how many folds were solved how."""
        refits = np.count_nonzero(self.found.settled_by[self.folds.begin[:-1]] == REFIT)
        return {
            "pivots": float(self.n_steps.sum()),
            "walks": float(len(self.folds) - refits),
            "refits": float(refits),
            "repeated": float(self.n_repeated.sum()),
        }

    def _count_classes(self) -> IntArray:
        """Return how many classes are left in each fold; 2 if that does not matter."""
        problem, folds = self.problem, self.folds
        if problem.epsilon is not None or not problem.fit_intercept:
            return np.full(len(folds), 2)
        counts = np.zeros((len(folds), 2), dtype=np.intp)
        fold = np.repeat(np.arange(len(folds)), folds.sizes)
        inside = problem.C[folds.members] > 0.0
        positive = (problem.y > 0.0).astype(np.intp)
        np.add.at(counts, (fold[inside], positive[folds.members[inside]]), 1)
        left = np.bincount(positive[problem.C > 0.0], minlength=2) - counts
        return np.count_nonzero(left, axis=1)

    def _store_one_class(self, k: int) -> None:
        """Store the values of a fold without two classes: the label of the others."""
        problem, rows, found = self.problem, self.folds[k], self.found
        present = problem.C > 0.0
        present[rows] = False
        positive = bool(np.all(problem.y[present] > 0.0))
        entries = slice(self.folds.begin[k], self.folds.begin[k + 1])
        found.settled_by[entries], found.uncertified_by[entries] = SINGLETON, CERTIFIED
        found.lower[entries] = 1.0 if positive else -np.inf
        found.upper[entries] = np.inf if positive else -1.0

    def _solve(
        self,
        k: int,
        kernel: FoldKernel,
        work: FoldWork,
        place: StateArray,
        guess: Guess | None,
    ) -> IntArray | None:
        """Solve a fold on its near samples, and store the values.

        Return the samples outside that left their range instead, or none of them if all
        samples are needed because no beta is free.
        """
        down, up = (1.0, 1.0) if self.factors is None else self.factors[k]
        change = None if self.changes is None else self.changes[k, :-1]
        work.begin(self.data, place, self.folds[k], down, up, change)
        first, stop = work.n_near, work.n_present
        kernel.arrange(work.order)
        K, n_bad = kernel.square(first)
        if n_bad:
            raise NotFiniteError(f"{n_bad} kernel values are not finite.")
        bounded = work.beta[first : work.n_bounded]
        pull, _ = kernel.products(0, first, first, bounded)
        work.run(K, pull, TOLERANCE, ROUNDING * 2.0**-52, MAX_STEPS)
        optimal = work.worst <= work.tol
        unique = work.any_free or not self.problem.fit_intercept
        if not (optimal and unique):
            if first < stop:
                return work.order[:0]
            self._finish(k, K, work)
            return None
        if first < stop:
            needed = self._check_others(kernel, work, guess)
            if needed:
                return work.order[needed]
        values = work.values(self.folds[k].size)
        self.store(k, values, work.top, work.reach, work.size)
        return None

    def _check_rounding(
        self, entries: slice, top: float, reach: float, size: float
    ) -> None:
        """Mark values as not certified whose sign the rounding of this fold may change.

        A left-out sample may be far from all others in features fitted without it.
        """
        largest = max(top, (top * reach) ** 0.5)
        rounding = rounding_of_sum(largest, size)
        if reach > LARGEST_RATIO * top > 0.0:
            rounding = np.inf
        if rounding > TIE:
            found = self.found
            ends = found.lower[entries], found.upper[entries]
            clear = clear_of_rounding(*ends, rounding, self.problem.fit_intercept)
            if self.problem.epsilon is not None:
                clear &= rounding <= VALUE_ACCURACY
            found.uncertified_by[entries][~clear] = BY_ROUNDING

    def _check_others(
        self, kernel: FoldKernel, work: FoldWork, guess: Guess | None
    ) -> list[int]:
        """Return the positions of the others that left their range."""
        first, stop = work.n_near, work.n_present
        beta = work.beta[: work.n_bounded]
        unclear, known = [], False
        if guess is not None and np.isfinite(guess.distance):
            K, known = self.problem.K, True
            unclear = work.find_unknown(guess.values, guess.errors, K, guess.distance)
        if not known or len(unclear) > FEW:
            products, errors = kernel.products(first, stop, 0, beta, exact=False)
            unclear = work.find_unclear(products, errors, first)
            if errors is None or len(unclear) > FEW:
                return unclear
        exact = [kernel.products(at, at + 1, 0, beta)[0] for at in unclear]
        return [
            at
            for at, product in zip(unclear, exact, strict=True)
            if work.find_unclear(product, None, at)
        ]

    def _finish(self, k: int, K: FloatArray, work: FoldWork) -> None:
        """Store the values with their interval; solve from zero if not optimal."""
        problem, rows = self.problem, self.folds[k]
        n, entries = work.n_near, slice(self.folds.begin[k], self.folds.begin[k + 1])
        left = np.searchsorted(work.order[:n], rows)
        K = K.copy()
        K[left, left] = 0.0  # not used, and may be far larger than the others
        near, levels = work.order[:n], work.levels[:n]
        C = levels.max(axis=1) - levels.min(axis=1)
        C = 0.5 * C if problem.epsilon is not None else C
        y = problem.y[near]
        own = replace(problem, K=K, y=y, C=C, first_equal=None)
        F, M = work.F[:n].copy(), work.M[: work.n_free].copy()
        end = make_solution(own, work.beta[:n].copy(), F, M, work.n_steps, TOLERANCE)
        if not end.converged:
            end = solve_svc(own)
            self.found.settled_by[entries] = REFIT
        f = end.decision_values[left] - end.intercept
        low, high = end.intercept_interval
        self.found.lower[entries], self.found.upper[entries] = f + low, f + high
        reason = self.reason if end.converged else NOT_CONVERGED
        self.found.uncertified_by[entries] = reason
        self._check_rounding(entries, work.top, work.reach, work.size)
