# SPDX-License-Identifier: BSD-3-Clause
"""Left-out labels of many rows, from bounds at the full solution.

Let row r have upper bound c in a problem with optimum (w, b), and let R be the largest
distance of a row from the centre. The optimum without r is within rho of w, and for
y_r = +1 (docs/method/large, from docs/method/walk)::

    f_r - (b - b') - 2 rho R  <=  left-out value  <=  f_r - (b - b_lo)
    rho = c R + sqrt(c^2 R^2 + c (b_lo - b'))

b_lo is the smallest optimal intercept, b' the order statistic of the breakpoints after
the positive class has lost the weight c. For y_r = -1 all signs change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import has_room
from leaveout.large._features import Chosen, FeatureBlock, Sums
from leaveout.large._small_c import ConstantOptimum, LinearPath
from leaveout.large._window import LinearOptimum, LinearProblems
from leaveout.loo._multiclass import elect, is_settled

# Left-out values closer to zero than this are left to a walk.
SLACK = 1e-10
# Rows with h above 1 by this much are not on the margin.
BEYOND = 1e-8


class Thresholds(NamedTuple):
    """Thresholds of h = y f that settle the left-out label, per class and problem.

    ``wrong_below`` and ``right_above`` are for the positive and the negative class.
    ``elsewhere`` is for rows a problem was not trained on: f below the first threshold
    is negative for all optimal intercepts, f above the second positive. All are (L, 2).
    ``exceptions`` are rows that may change a constant classifier.
    """

    wrong_below: FloatArray
    right_above: FloatArray
    elsewhere: FloatArray
    exceptions: list[IntArray]

    @classmethod
    def prove(
        cls,
        optima: Sequence[LinearOptimum | ConstantOptimum],
        bounds: FloatArray,
        alone: BoolArray,
    ) -> Thresholds:
        """Derive the thresholds from the optima; ``bounds`` (L,) are the largest C_i.

        ``alone`` (L, 2) says whether a class has only one row. Without that row only
        the other class is left, so its label is wrong.
        """
        wrong = np.full((len(optima), 2), -np.inf)
        right = np.full((len(optima), 2), np.inf)
        elsewhere = np.tile([-np.inf, np.inf], (len(optima), 1))
        exceptions = [np.empty(0, dtype=np.intp)] * len(optima)
        settle: Callable[[float, float], tuple[float, float]]
        for k, (optimum, bound) in enumerate(zip(optima, bounds, strict=True)):
            if not optimum.proved:
                continue
            if isinstance(optimum, ConstantOptimum):
                settle, elsewhere[k] = optimum.settle, 0.0
                exceptions[k] = optimum.open_rows
            else:
                settle = partial(_settled, optimum)
                elsewhere[k] = _settled_elsewhere(optimum)
            for side, sign in enumerate((1.0, -1.0)):
                wrong[k, side], right[k, side] = settle(sign, float(bound))
        wrong[alone], right[alone] = np.inf, np.inf
        return cls(wrong, right, elsewhere, exceptions)

    def part(self, which: slice) -> Thresholds:
        wrong, right, elsewhere, exceptions = self
        return Thresholds(
            wrong[which], right[which], elsewhere[which], exceptions[which]
        )


def _settled(optimum: LinearOptimum, sign: float, bound: float) -> tuple[float, float]:
    noise, R = optimum.noise, optimum.radius
    if np.isinf(noise):
        return -np.inf, np.inf
    low, far = optimum.intercept_without(sign, bound)
    b = sign * optimum.solution.intercept
    wrong_below = b - low - SLACK - noise
    right_above = np.inf
    if np.isfinite(far):
        rho = bound * R + np.sqrt((bound * R) ** 2 + bound * (low - far))
        right_above = float(b - far + 2.0 * rho * R + SLACK + noise)
    found = optimum.solution
    if has_room(optimum.window.weight, found.alpha, found.free):
        # Beyond the margin alpha = 0, and with a free support vector nothing changes.
        right_above = min(right_above, 1.0 + BEYOND + noise)
    return wrong_below, right_above


def _settled_elsewhere(optimum: LinearOptimum) -> tuple[float, float]:
    """Return the thresholds of f for rows that were not trained on."""
    solution, R = optimum.solution, optimum.radius
    # These rows may be longer than those of the problem, which scales the error.
    longer = optimum.window.C * R * R / optimum.top if optimum.top > 0.0 else 1.0
    noise = optimum.noise * max(1.0, longer)
    low, high = solution.intercept_interval
    return solution.intercept - high - noise, solution.intercept - low + noise


@dataclass
class OpenRows(Chosen):
    """Rows whose label at one C is not settled yet; the ``most`` closest are kept.

    ``closeness`` is the smallest h of an open problem; rows with smaller values come
    first. ``votes`` (m, n_pairs) are +1, -1, or 0 if open; ``missed`` marks the rows
    that the full problems label wrongly.
    """

    index: IntArray
    closeness: FloatArray
    votes: np.ndarray
    codes: np.ndarray
    weight: FloatArray
    missed: BoolArray
    most: int

    COLUMNS = ("index", "closeness", "votes", "codes", "weight", "missed")

    def _cut(self) -> None:
        if self.index.size > self.most:
            order = np.argsort(self.closeness, kind="stable")
            self._keep(np.sort(order[: self.most]))


@dataclass
class Tally(Sums):
    """Weight of rows proved wrong at each C, and of open rows that are missed.

    unknown, n_open : weight and number of open rows at each C
    total : weight of all rows
    hinge : sum of hinge losses of each solved problem
    nearest : minus the distances from b, below and above, of the nearest rows outside
        the window of each
    """

    wrong: FloatArray
    missed: FloatArray
    unknown: FloatArray
    n_open: IntArray
    total: float
    open_rows: list[OpenRows]
    hinge: FloatArray
    nearest: FloatArray

    MAXIMA = ("nearest",)


def count_votes(
    path: LinearPath,
    thresholds: Thresholds,
    class_weight: FloatArray,
    most_open: int,
    windows: Sequence[IntArray],
    block: FeatureBlock,
) -> Tally:
    """Settle the rows of a block as far as possible, at every C.

    The problems of the first C come first, one for each pair of classes.
    ``class_weight`` is a factor of the bounds and not part of the error. ``most_open``
    rows are kept at each C for walks; ``windows`` are the rows in each solved window.
    """
    problems, solved = path.problems, path.problems.take(path.solved)
    f_solved = solved.decide(block.A)
    f = path.expand(f_solved)
    n_classes = len(class_weight)
    n_pairs = n_classes * (n_classes - 1) // 2
    signs = problems.signs(block.codes) * (block.own > 0.0)
    all_votes = left_out_votes(f, signs, thresholds, block.start)
    weight = block.own / class_weight[block.codes]
    open_rows, wrong, missed, unknown, n_open = [], [], [], [], []
    for first in range(0, len(problems), n_pairs):
        group = slice(first, first + n_pairs)
        votes = all_votes[group]
        guess, settled = label_votes(f[group], votes, n_classes)
        off = guess != block.codes
        wrong.append(float(weight[settled & off].sum()))
        missed.append(float(weight[~settled & off].sum()))
        rows = np.flatnonzero(~settled)
        unknown.append(float(weight[rows].sum()))
        n_open.append(rows.size)
        # Walks cannot settle the vote of a problem that was not trained on the row.
        walkable = (votes[:, rows] == 0) & (signs[group][:, rows] != 0.0)
        doubt = np.where(walkable, (signs[group] * f[group])[:, rows], np.inf)
        open_rows.append(
            OpenRows(
                block.start + rows, doubt.min(axis=0, initial=np.inf),
                votes[:, rows].T, block.codes[rows], weight[rows], off[rows],
                most_open,
            )
        )  # fmt: skip
    signs = solved.signs(block.codes) * (block.weight > 0.0)
    hinge = np.maximum(np.abs(signs) - signs * f_solved, 0.0) @ block.weight
    signs = outside_signs(solved, windows, block)
    offset = np.where(signs != 0.0, signs - f_solved, np.nan)
    sides = (
        np.where(offset < 0.0, offset, -np.inf),
        np.where(offset >= 0.0, -offset, -np.inf),
    )
    nearest = np.column_stack([each.max(axis=1) for each in sides])
    return Tally(
        np.array(wrong), np.array(missed), np.array(unknown), np.array(n_open),
        float(weight.sum()), open_rows, hinge, nearest,
    )  # fmt: skip


def outside_signs(
    problems: LinearProblems, windows: Sequence[IntArray], block: FeatureBlock
) -> FloatArray:
    """Return the signs of a block's rows, 0 for those in the windows."""
    signs = problems.signs(block.codes) * (block.weight > 0.0)
    for row, window in zip(signs, windows, strict=True):
        low, high = np.searchsorted(window, [block.start, block.start + row.size])
        row[window[low:high] - block.start] = 0.0
    return signs


def label_votes(
    f: FloatArray, votes: np.ndarray, n_classes: int
) -> tuple[np.ndarray, BoolArray]:
    """Return the class of each row, and whether open votes cannot change it.

    Open votes are replaced by those of the full problems f, (n_pairs, m).
    """
    full = np.where(favours_positive(f, len(f)), 1, -1)
    guess = elect(np.where(votes == 0, full, votes).T, n_classes)
    return guess, is_settled(votes.T, n_classes)


def favours_positive(f: FloatArray, n_pairs: int) -> BoolArray:
    """Whether f favours the positive class; 0 does for two classes, as in predict."""
    return f >= 0.0 if n_pairs == 1 else f > 0.0


def left_out_votes(
    f: FloatArray, signs: FloatArray, thresholds: Thresholds, start: int
) -> np.ndarray:
    """Return the sign that each problem without the row gives it, 0 if open; (L, m).

    ``start`` is the number of the first row.

    A problem not trained on the row keeps its sign if all optimal intercepts agree.
    """
    h = signs * f
    side = (signs < 0.0).astype(np.intp)
    k = np.arange(f.shape[0])[:, None]
    right = h > thresholds.right_above[k, side]
    wrong = h < thresholds.wrong_below[k, side]
    own = np.where(right, signs, np.where(wrong, -signs, 0.0))
    below, above = thresholds.elsewhere.T[:, :, None]
    kept = np.where(f > above, 1.0, np.where(f < below, -1.0, 0.0))
    votes = np.where(signs == 0.0, kept, own).astype(np.int8)
    for row, rows in zip(votes, thresholds.exceptions, strict=True):
        here = rows - start
        row[here[(here >= 0) & (here < row.size)]] = 0
    return votes


@dataclass
class Labels(Sums):
    """Labels of blocks, in their order."""

    codes: list[np.ndarray]
    proved: list[np.ndarray]


def label_block(
    problems: LinearProblems, thresholds: Thresholds, n_classes: int,
    block: FeatureBlock,
) -> Labels:  # fmt: skip
    """Label the rows of a block at one C, by left-out labels where proved."""
    f = problems.decide(block.A)
    signs = problems.signs(block.codes) * (block.own > 0.0)
    votes = left_out_votes(f, signs, thresholds, block.start)
    codes, proved = label_votes(f, votes, n_classes)
    return Labels([codes], [proved])
