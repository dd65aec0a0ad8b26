# SPDX-License-Identifier: BSD-3-Clause
"""Leave pairs out: one positive and one negative sample at a time, for the AUC."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._groups import Groups
from leaveout.loo._trust import Footing, find_footing
from leaveout.loo._walk import Walker
from leaveout.run import show_progress
from leaveout.solve import Solution, solve_svc

# Values this close, relative to the largest, are equal.
TIE = 1e-10
# The end of a walk is verified to 1e-9: what is nearer is not certainly apart.
CHECKED = 1e-8
# Pairs between two looks at progress and at Python's signals.
PAIRS_AT_A_TIME = 20_000


@dataclass(frozen=True)
class PairAUC:
    """Area under the ROC curve from pairs that were left out together.

    Parameters
    ----------
    auc : float
        Share of pairs in which the positive sample has the larger value; ties count
        one half.
    wins : ndarray of shape (n,)
        For each sample, the share of its pairs in which it is the larger: a score from
        which a ROC curve with this area can be drawn.
    n_pairs : int
        Number of pairs, positives times negatives.
    n_ties : int
        Pairs with equal values, to rounding.
    certified : bool
        Whether every pair passed its check and rounding can have turned none.
    counts : dict
        pivots, walks, refits, seconds …
    """

    auc: float
    wins: FloatArray
    n_pairs: int
    n_ties: int
    certified: bool
    counts: dict[str, float]

    def __float__(self) -> float:
        """Return the area."""
        return self.auc

    def __str__(self) -> str:
        """Small table."""
        rows = [
            ("AUC", f"{self.auc:.4f}"),
            ("pairs", self.n_pairs),
            ("ties", self.n_ties),
            ("refits", int(self.counts["refits"])),
            ("seconds", f"{self.counts['seconds']:.3g}"),
        ]
        return "\n".join(
            ["Leave-pair-out", *(f"  {name:<14}{value}" for name, value in rows)]
        )


def loo_pairs(
    problem: Problem,
    *,
    solution: Solution | None = None,
    n_threads: int = 1,
    verbose: bool = False,
) -> PairAUC:
    """Leave every pair of a positive and a negative sample out, exactly.

    Both values of a pair come from one machine that has seen neither. They share its
    intercept, so their order does not depend on it: nothing is ambiguous. Pooled
    leave-one-out values come from n machines, and their AUC is biased (Airola et al.
    2011).

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution, optional
        Its optimum, if it is at hand.
    n_threads : int, default=1
        Threads over pairs.
    verbose : bool, default=False
        Whether to say on stderr how far it is.

    Returns
    -------
    PairAUC
        The area, and each sample's share of wins.

    References
    ----------
    .. [1] A. Airola, T. Pahikkala, W. Waegeman, B. De Baets and T. Salakoski, "An
       experimental comparison of cross-validation techniques for estimating the area
       under the ROC curve", Computational Statistics & Data Analysis 55(4), 2011.
    """
    started = perf_counter()
    if solution is None:
        solution = solve_svc(problem)
    pairs = _all_pairs(problem)
    footing = find_footing(problem, solution, several=True)
    walker = Walker(footing.problem, footing.solution, n_threads=n_threads)
    above = np.zeros(pairs.shape[0])
    certified = True
    walked = 0 if _leaves_one_class(problem) else pairs.shape[0]
    starts = range(0, walked, PAIRS_AT_A_TIME)
    for start in show_progress(starts, len(starts), "pair batches", verbose=verbose):
        part = pairs[start : start + PAIRS_AT_A_TIME]
        difference, proved = _leave_out(walker, part)
        above[start : start + part.shape[0]] = difference
        certified &= proved
    walker.counts["seconds"] = perf_counter() - started
    walker.counts["rounding"] = footing.rounding
    return _summary(footing, pairs, above, certified, walker.counts)


def _all_pairs(problem: Problem) -> IntArray:
    """Every (positive, negative) pair of samples that are present, (n_pairs, 2)."""
    positive = np.flatnonzero((problem.y > 0) & (problem.C > 0))
    negative = np.flatnonzero((problem.y < 0) & (problem.C > 0))
    grid = np.meshgrid(positive, negative, indexing="ij")
    return np.column_stack([axis.ravel() for axis in grid]).astype(np.intp)


def _leave_out(walker: Walker, pairs: IntArray) -> tuple[FloatArray, bool]:
    """Value of the positive minus value of the negative, for each pair."""
    begin = np.arange(0, 2 * pairs.shape[0] + 1, 2, dtype=np.intp)
    ends = walker.leave_out(Groups(pairs.ravel(), begin))
    values = ends.values.reshape(-1, 2)
    return values[:, 0] - values[:, 1], bool(ends.certified.all())


def _leaves_one_class(problem: Problem) -> bool:
    """Whether every pair takes a whole class along: f is b alone then, for all."""
    signs = problem.y[problem.C > 0.0]
    return problem.fit_intercept and bool(
        min((signs > 0).sum(), (signs < 0).sum()) == 1
    )


def _summary(
    footing: Footing,
    pairs: IntArray,
    above: FloatArray,
    certified: bool,
    counts: dict[str, float],
) -> PairAUC:
    """Count who is above whom; certified if rounding can have changed no count."""
    apart = np.abs(above)
    smallest = TIE * (apart.max(initial=0.0) + footing.problem.fit_intercept)
    if footing.rounding <= TIE:
        smallest = max(smallest, footing.rounding)
    tie = apart <= smallest
    won = np.where(tie, 0.5, above > 0.0)
    clear = apart > max(footing.rounding, CHECKED)
    equal = tie if footing.rounding <= smallest else apart == 0.0
    certified &= bool(np.all(clear | equal))
    n = footing.problem.n_samples
    played = np.bincount(pairs.ravel(), minlength=n)
    wins = np.bincount(pairs[:, 0], won, n) + np.bincount(pairs[:, 1], 1.0 - won, n)
    return PairAUC(
        auc=float(won.mean()),
        wins=wins / np.maximum(played, 1),
        n_pairs=pairs.shape[0],
        n_ties=int(tie.sum()),
        certified=certified,
        counts=counts,
    )
