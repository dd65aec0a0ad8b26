# SPDX-License-Identifier: BSD-3-Clause
"""Left-out labels of all rows of a FeatureSVC.

Most follow from thresholds that hold at the optimum (:mod:`leaveout.large._votes`), the
others from exact walks. The window of a problem is itself an SVM, so
:class:`~leaveout.engine._walk.Walker` can leave its rows out. The coefficients at the
end of a walk give w and b, and so how far any row outside the window can have moved.
The result is proved if no such row can have reached the margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._problem import Folds, LooIntervals
from leaveout.engine._walk import Walker, settle_from_solution
from leaveout.large._features import FeatureRows, Rows
from leaveout.large._small_c import (
    NONE,
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
)
from leaveout.large._window import LinearOptimum, NearMarginRows
from leaveout.loo._multiclass import elect, is_settled
from leaveout.run._parallel import map_in_order

# Most rows left out of one window: they are part of its Gram matrix.
WALKS_AT_ONCE = 1000
# If C is large, walks are long and end too far away for a proof: if there are many, a
# few are tried, and the others only if enough of these succeed.
FIRST_WALKS, MANY_WALKS, WORTHWHILE = 32, 100, 0.5


def leave_rows_out(
    optimum: LinearOptimum, rows: IntArray
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Leave out rows of the window, by their places.

    Returns their values, b in the middle of its interval; whether each is the value on
    all rows; and whether its sign is proved, too, for all optimal b: a value that is
    zero up to rounding has none.
    """
    window, solution = optimum.window, optimum.solution
    if np.isinf(optimum.noise):
        nothing = np.zeros(rows.size, dtype=bool)
        return solution.decision_values[rows], nothing, nothing
    problem = window.problem
    answer = LooIntervals.from_solution(solution)
    open_ = settle_from_solution(problem, solution, answer, labels_only=False)
    # Without a row of alpha = 0 only b moves. If a row is alone in its class in the
    # window, an end of b is infinite and so not known: other rows of the class may be
    # outside.
    point, f = optimum.point, solution.decision_values
    w, b = point[:-1], point[-1]
    known = optimum.knows(w, answer.lower - f + b, answer.upper - f + b)
    wanted = np.intersect1d(open_, rows)
    if wanted.size:
        walker = Walker(problem, solution, n_threads=1, changes=True)
        found = walker.leave_out(Folds.singles(wanted))
        answer.write(wanted, found)
        assert found.changes is not None
        W = window.C * (found.changes[:, :-1] @ window.A[:, :-1]) + w
        middle_b = b + found.changes[:, -1] - found.values
        ends_b = (middle_b + found.lower, middle_b + found.upper)
        known[wanted] = optimum.knows(W, *ends_b)
    values = answer.values
    known &= answer.certified
    proved = known & (np.maximum(answer.lower, -answer.upper) > optimum.noise)
    return values[rows], known[rows], proved[rows]


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
    heads = [optima[k] for k in path.solved]
    windows = [
        head.window.index if isinstance(head, LinearOptimum) else NONE for head in heads
    ]
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
    jobs: list[tuple[int, IntArray]] = []  # open rows of a problem, closest first
    for k, optimum in enumerate(path.optima):
        open_ = tally.open_rows[k // n_pairs]
        known = np.isin(open_.codes, (problems.positive[k], problems.negative[k]))
        known &= open_.weight > 0.0
        waiting = np.flatnonzero(known & (open_.votes[:, k % n_pairs] == 0))
        if isinstance(optimum, LinearOptimum) and optimum.proved and waiting.size:
            order = np.argsort(open_.closeness[waiting], kind="stable")
            jobs.append((k, waiting[order]))
    if not jobs:
        return
    nearest = [tally.nearest[np.searchsorted(path.solved, path.of[k])] for k, _ in jobs]
    needed = [tally.open_rows[k // n_pairs].index[waiting] for k, waiting in jobs]
    needed += [near.rows for near in nearest]
    picked = rows.gather(np.unique(np.concatenate(needed)))

    def walk(place: int) -> None:
        (k, every), near = jobs[place], nearest[place]
        open_, column = tally.open_rows[k // n_pairs], k % n_pairs
        leaders = _first_copies(rows, open_, every)
        waiting = every[leaders == np.arange(every.size)]
        n_first = FIRST_WALKS if waiting.size > MANY_WALKS else waiting.size
        if np.isinf(near.closest).all():
            n_first = waiting.size  # every walk is a proof
        starts = np.arange(n_first, waiting.size, WALKS_AT_ONCE)
        left = list(map(np.sort, np.split(waiting, starts)))
        for optimum in _wider_windows(path, k, near, picked):
            while left:
                chosen = picked.take(open_.index[left[0]])
                y = np.where(chosen.codes == problems.positive[k], 1.0, -1.0)
                values, known, proved = leave_rows_out(*optimum.with_rows(chosen, y))
                votes = np.where(favours_positive(values, n_pairs), 1, -1)
                open_.votes[left[0], column] = np.where(proved, votes, 0)
                if known.mean() < WORTHWHILE:
                    break
                del left[0]
            if not left:
                break
        open_.votes[every, column] = open_.votes[every[leaders], column]

    for _ in map_in_order(walk, range(len(jobs)), rows.n_threads):
        pass


def _wider_windows(
    path: LinearPath, k: int, near: NearMarginRows, picked: Rows
) -> Iterator[LinearOptimum]:
    """Yield the optimum of problem k in the window of the fit, then in a wider one.

    ``near`` are the rows outside the window of its solved problem.
    """
    optimum, head = path.optima[k], path.optima[path.of[k]]
    assert isinstance(optimum, LinearOptimum)
    assert isinstance(head, LinearOptimum)
    sign = float(path.problems.heavy_sign[k])
    more = picked.take(near.rows)
    y = np.where(more.codes == path.problems.positive[k], 1.0, -1.0)
    for edges, n_more in ((near.closest, 0), (near.edges, y.size)):
        window = replace(head.window, origin=head.point, edges=edges)
        window = scale_window(window, optimum.window.C, sign)
        some = Rows(*(column[:n_more] for column in more))
        some = some._replace(own=some.weight)
        yield replace(optimum, window=window).with_rows(some, y[:n_more])[0]


def _first_copies(rows: FeatureRows, open_: OpenRows, which: IntArray) -> IntArray:
    """For each of some open rows, the place of the first with equal row and weight."""
    if rows.first is None:
        return np.arange(which.size)
    columns = [rows.first[open_.index[which]], open_.weight[which]]
    _, first, same = np.unique(
        np.column_stack(columns), axis=0, return_index=True, return_inverse=True
    )
    return first[same.ravel()]


def _assemble_result(
    tally: Tally, c: int, open_: OpenRows, n_classes: int
) -> LinearLoo:
    settled = is_settled(open_.votes, n_classes)
    labels = np.where(settled, elect(open_.votes, n_classes), -1)
    wrong = float(tally.wrong[c])
    wrong += float(open_.weight[settled & (labels != open_.codes)].sum())
    missed = float(tally.missed[c]) - float(open_.weight[settled & open_.missed].sum())
    unknown = float(open_.weight[~settled].sum()) + open_.dropped_weight
    n_open = int((~settled).sum()) + open_.n_dropped
    low = wrong / tally.total
    high = (wrong + unknown) / tally.total if n_open else low
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
