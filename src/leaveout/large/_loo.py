# SPDX-License-Identifier: BSD-3-Clause
"""Left-out labels of all rows of a FeatureSVC.

Most follow from thresholds that hold at the optimum (:mod:`leaveout.large._votes`), the
others from exact walks. The window of a problem is itself an SVM, so
:class:`~leaveout.engine._walk.Walker` can leave its rows out. The coefficients at the
end of a walk give w and b, and so how far any row outside the window can have moved.
The result is proved if no such row can have reached the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._problem import Folds, LooIntervals
from leaveout.engine._walk import Walker, settle_from_solution
from leaveout.large._features import FeatureBlock, FeatureRows, Sums
from leaveout.large._small_c import (
    ConstantOptimum,
    LinearPath,
    rows_that_matter,
    scale_window,
)
from leaveout.large._solve import Sizes
from leaveout.large._votes import (
    OpenRows,
    Tally,
    Thresholds,
    count_votes,
    favours_positive,
    label_block,
    outside_signs,
)
from leaveout.large._window import LinearOptimum, LinearProblems
from leaveout.loo._multiclass import elect, is_settled
from leaveout.run._parallel import map_in_order

# Most rows left out of one window: they are part of its Gram matrix.
WALKS_AT_ONCE = 1000
# Values compared with a block of rows at a time.
AT_ONCE = 500


class LeftOut(NamedTuple):
    """Rows left out of a window: w without each, and the range of b.

    ``known`` says whether the value is that on all rows; ``certain`` whether its sign
    holds for all optimal b: a value that is zero up to rounding has none.
    """

    values: FloatArray
    W: FloatArray
    lowest: FloatArray
    highest: FloatArray
    certain: BoolArray
    known: BoolArray


def leave_rows_out(optimum: LinearOptimum, rows: IntArray) -> LeftOut:
    """Leave out rows of the window, by their places."""
    window, solution = optimum.window, optimum.solution
    problem = window.problem
    answer = LooIntervals.from_solution(solution)
    open_ = settle_from_solution(problem, solution, answer, labels_only=False)
    # Without a row of alpha = 0 only b moves. If a row is alone in its class in the
    # window, an end of b is infinite and so not known: other rows of the class may be
    # outside.
    (*w, b), f = optimum.point, solution.decision_values
    W, lowest, highest = np.tile(w, (f.size, 1)), answer.lower - f, answer.upper - f
    wanted = np.intersect1d(open_, rows)
    if wanted.size:
        walker = Walker(problem, solution, n_threads=1, changes=True)
        found = walker.leave_out(Folds.singles(wanted))
        answer.write(wanted, found)
        assert found.changes is not None
        W[wanted] += window.C * (found.changes[:, :-1] @ window.A[:, :-1])
        middle = found.changes[:, -1] - found.values
        lowest[wanted], highest[wanted] = middle + found.lower, middle + found.upper
    noise = optimum.noise  # inf if too few digits are correct
    certain = np.maximum(answer.lower, -answer.upper) > noise
    certain &= answer.certified & np.isfinite(noise)
    W, lowest, highest = W[rows], b + lowest[rows], b + highest[rows]
    known = optimum.knows(W, lowest, highest)
    return LeftOut(answer.values[rows], W, lowest, highest, certain[rows], known)


@dataclass
class Reached(Sums):
    """How close the breakpoints of rows outside a window come to b, for each w.

    below : the largest breakpoint of the rows that were below b
    above : minus the smallest of those above
    """

    below: FloatArray
    above: FloatArray

    MAXIMA = ("below", "above")


def find_breakpoints(
    problems: LinearProblems,
    windows: Sequence[IntArray],
    moved: Sequence[FloatArray],
    block: FeatureBlock,
) -> Reached:
    """Find them in a block, for all w to which each problem may have moved."""
    f, signs = problems.decide(block.A), outside_signs(problems, windows, block)
    ends = np.full((2, sum(map(len, moved))), -np.inf)
    last = 0
    for k, W in enumerate(moved):
        parts = np.array_split(W, max(1, -(-len(W) // AT_ONCE)))
        for part in parts:
            first, last = last, last + len(part)
            for side, sign in enumerate((1.0, -1.0)):
                offset = sign * (signs[k] - f[k])
                here = np.flatnonzero((offset < 0.0) | ((offset == 0.0) & (side == 1)))
                here = here[signs[k, here] != 0.0]
                v = signs[k, here, None] - block.A[here, :-1] @ part.T
                ends[side, first:last] = (sign * v).max(axis=0, initial=-np.inf)
    return Reached(*ends)


class ProvedError(NamedTuple):
    """An interval that contains the leave-one-out error.

    Parameters
    ----------
    low, high : float
        Ends of the interval; equal if every left-out label is proved.

    Examples
    --------
    >>> error = ProvedError(0.25, 0.25)
    >>> low, high = error
    >>> error.proved
    True
    """

    low: float
    high: float

    @property
    def proved(self) -> bool:
        """Whether the interval is a single number."""
        return self.low == self.high


ProvedError.__module__ = "leaveout"


@dataclass(frozen=True)
class LinearLoo:
    """Leave-one-out at one C.

    ``labels`` are those of the ``walked`` rows, -1 if not proved. ``estimate`` is the
    error if the ``n_open`` rows without proof have the labels of the full problems.
    """

    error: ProvedError
    walked: IntArray
    labels: np.ndarray
    n_open: int
    estimate: float


def leave_one_out_linear(
    rows: FeatureRows,
    path: LinearPath,
    *,
    class_weight: FloatArray,
    class_sizes: IntArray,
    largest_weight: float,
    max_walks: int,
    sizes: Sizes,
) -> tuple[LinearPath, list[LinearLoo], Thresholds, FloatArray]:
    """Leave every row out of the problems at their optima, those of the first C first.

    ``class_sizes`` counts the rows with weight; ``largest_weight`` is the largest upper
    bound of a row, divided by C. If there are few rows, all are walked. Returns the
    path with what is known of constant classifiers, one result per C, the thresholds
    for the rows that were not walked, and the sum of hinge losses of each problem.
    """
    path = _settle_constants(rows, path, largest_weight, max_walks)
    problems, optima = path.problems, path.optima
    bounds = problems.C * largest_weight
    classes = np.column_stack([problems.positive, problems.negative])
    thresholds = Thresholds.prove(optima, bounds, class_sizes[classes] == 1)
    windows = [path.window(k) for k in path.solved]
    most_open = rows.n_rows if sizes.is_small(rows) else max_walks
    lean = replace(path, optima=[])  # it is sent to the workers of a cluster
    tally = rows.run(
        partial(count_votes, lean, thresholds, class_weight, most_open, windows)
    )
    _walk_all(rows, path, tally)
    results = [
        _assemble_result(tally, c, open_, len(class_weight))
        for c, open_ in enumerate(tally.open_rows)
    ]
    return path, results, thresholds, path.total_hinge(tally.hinge)


def _settle_constants(
    rows: FeatureRows, path: LinearPath, largest_weight: float, max_walks: int
) -> LinearPath:
    """Find the rows without which w = 0 may not be optimal, if C is large."""
    optima = list(path.optima)
    known: dict[int, tuple[bool, IntArray]] = {}
    for k, (optimum, head) in enumerate(zip(path.optima, path.of, strict=True)):
        if not isinstance(optimum, ConstantOptimum):
            continue
        heavier = largest_weight < optimum.excess
        if heavier and not optimum.survives(optimum.C * largest_weight):
            if head not in known:
                one = path.problems.take(np.array([head]))
                known[head] = rows_that_matter(rows, one, optimum.state, max_walks)
            stays, open_rows = known[head]
            optima[k] = replace(optimum, stays=stays, open_rows=open_rows)
    return replace(path, optima=optima)


def _walk_all(rows: FeatureRows, path: LinearPath, tally: Tally) -> None:
    """Settle the open votes that walks can prove, in place."""
    problems = path.problems
    n_pairs = len(problems) // len(tally.open_rows)
    jobs: list[tuple[int, IntArray]] = []  # open rows of a problem
    for k, optimum in enumerate(path.optima):
        open_ = tally.open_rows[k // n_pairs]
        known = np.isin(open_.codes, (problems.positive[k], problems.negative[k]))
        known &= open_.weight > 0.0
        waiting = np.flatnonzero(known & (open_.votes[:, k % n_pairs] == 0))
        usable = isinstance(optimum, LinearOptimum) and np.isfinite(optimum.noise)
        if usable and optimum.proved and waiting.size:
            jobs.append((k, waiting))
    if not jobs:
        return
    needed = [tally.open_rows[k // n_pairs].index[waiting] for k, waiting in jobs]
    picked = rows.gather(np.unique(np.concatenate(needed)))
    copies = [
        _merge_copies(rows, tally.open_rows[k // n_pairs], waiting)
        for k, waiting in jobs
    ]

    def walk(place: int) -> LeftOut:
        (k, waiting), (first, _) = jobs[place], copies[place]
        index = tally.open_rows[k // n_pairs].index[waiting[first]]
        nearest = tally.nearest[np.searchsorted(path.solved, path.of[k])]
        optimum, found = _optimum_at(path, k, -nearest), []
        for start in range(0, index.size, WALKS_AT_ONCE):
            chosen = picked.take(index[start : start + WALKS_AT_ONCE])
            y = np.where(chosen.codes == problems.positive[k], 1.0, -1.0)
            found.append(leave_rows_out(*optimum.with_rows(chosen, y)))
        return LeftOut(*map(np.concatenate, zip(*found, strict=True)))

    found = list(map_in_order(walk, range(len(jobs)), rows.n_threads))
    _check_breakpoints(rows, path, [k for k, _ in jobs], found)
    for (k, waiting), (_, same), left in zip(jobs, copies, found, strict=True):
        votes = np.where(favours_positive(left.values, n_pairs), 1, -1)
        votes = np.where(left.known & left.certain, votes, 0)
        tally.open_rows[k // n_pairs].votes[waiting, k % n_pairs] = votes[same]


def _optimum_at(path: LinearPath, k: int, edges: FloatArray) -> LinearOptimum:
    """Return the optimum of problem k, with the edges of its head at its optimum."""
    optimum, head = path.optima[k], path.optima[path.of[k]]
    assert isinstance(optimum, LinearOptimum)
    assert isinstance(head, LinearOptimum)
    window = replace(head.window, origin=head.point, edges=edges)
    sign = float(path.problems.heavy_sign[k])
    return replace(optimum, window=scale_window(window, optimum.window.C, sign))


def _check_breakpoints(
    rows: FeatureRows, path: LinearPath, which: list[int], found: list[LeftOut]
) -> None:
    """Compare values that no bound proves with all rows outside the windows."""
    open_ = [np.flatnonzero(left.certain & ~left.known) for left in found]
    if not sum(each.size for each in open_):
        return
    moved = [left.W[each] for left, each in zip(found, open_, strict=True)]
    windows = [path.window(path.of[k]) for k in which]
    some = path.problems.take(np.array(which))
    reached = rows.run(partial(find_breakpoints, some, windows, moved))
    ends = np.cumsum([each.size for each in open_])[:-1]
    below, above = np.split(reached.below, ends), np.split(-reached.above, ends)
    for j, (k, left, each) in enumerate(zip(which, found, open_, strict=True)):
        optimum = path.optima[k]
        assert isinstance(optimum, LinearOptimum)
        left.known[each] = below[j] + optimum.residual < left.lowest[each]
        left.known[each] &= left.highest[each] < above[j] - optimum.residual


def _merge_copies(
    rows: FeatureRows, open_: OpenRows, which: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the places of distinct rows and weights, and which of them each row is."""
    if rows.first is None:
        return np.arange(which.size), np.arange(which.size)
    columns = [rows.first[open_.index[which]], open_.weight[which]]
    _, first, same = np.unique(
        np.column_stack(columns), axis=0, return_index=True, return_inverse=True
    )
    return first, same.ravel()


def _assemble_result(
    tally: Tally, c: int, open_: OpenRows, n_classes: int
) -> LinearLoo:
    settled = is_settled(open_.votes, n_classes)
    labels = np.where(settled, elect(open_.votes, n_classes), -1)
    wrong = float(tally.wrong[c])
    wrong += float(open_.weight[settled & (labels != open_.codes)].sum())
    missed = float(tally.missed[c]) - float(open_.weight[settled & open_.missed].sum())
    unknown = float(tally.unknown[c]) - float(open_.weight[settled].sum())
    n_open = int(tally.n_open[c]) - int(settled.sum())
    low = wrong / tally.total
    high = (wrong + max(unknown, 0.0)) / tally.total if n_open else low
    order = np.argsort(open_.index)
    estimate = min(low + max(missed, 0.0) / tally.total, high)
    return LinearLoo(
        ProvedError(low, high), open_.index[order], labels[order], n_open, estimate
    )


def label_rows(
    rows: FeatureRows,
    path: LinearPath,
    thresholds: Thresholds,
    loo: LinearLoo,
    c: int,
    n_classes: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the left-out class of every row at the c-th C, and if it is proved."""
    n_pairs = n_classes * (n_classes - 1) // 2
    group = slice(c * n_pairs, (c + 1) * n_pairs)
    job = partial(
        label_block, path.problems.take(group), thresholds.part(group), n_classes
    )
    labels = rows.run(job)
    codes, proved = np.concatenate(labels.codes), np.concatenate(labels.proved)
    settled = loo.labels >= 0
    walked = loo.walked[settled]
    codes[walked], proved[walked] = loo.labels[settled], True
    return codes, proved
