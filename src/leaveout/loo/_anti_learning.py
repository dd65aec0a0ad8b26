# SPDX-License-Identifier: BSD-3-Clause
"""When the intercept follows the class weights, and leaving a sample out tips it."""

from __future__ import annotations

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._problem import Problem, Solution
from leaveout.lp._lpm import LpmSolution

# Sums of C, and alpha and its C, that differ by less than this share are equal.
EQUAL = 1e-9


def is_anti_learning(
    problem: Problem,
    solution: Solution | LpmSolution,
    values: FloatArray,
    *,
    groups: IntArray | None = None,
    factors: FloatArray | None = None,
) -> bool:
    r"""Return whether left-out labels follow the balance of the classes, not the data.

    Let :math:`W_\pm = \sum_{y_i = \pm 1} C_i`. Since :math:`\sum_i y_i \alpha_i = 0`,
    the sum of alpha of either class is at most the smaller W. With C small enough the
    lighter class has every alpha at its bound. Then no sample of it determines b: some
    sample i of the heavier class, with label s, has :math:`0 < \alpha_i < C_i` or is at
    the end of the interval of b, so that :math:`b = s - g_i`, where :math:`g = f - b`.
    For a sample r of the lighter class

    .. math:: y_r f(x_r) = -1 + y_r (g_r - g_i),

    and :math:`|g_r - g_i|` is of the order of C: the label is wrong. Leaving r out
    lowers alpha_r from its bound to 0, and its margin with it (docs/method/walk):
    the left-out label is wrong as well.

    What counts is which class is the lighter one *without* r: :math:`W_{y_r} - C_r <
    W_{-y_r}`. With equal sums, as ``class_weight="balanced"`` makes them, that is the
    class of r, whichever r is left out: the full classifier is good, with b in the
    middle of an interval of a length near 2, and yet the leave-one-out error is near 1.
    With sums that differ by more than any C_r it is always the same class: the
    classifier, full or not, answers with the heavier class.

    So the answer is yes if

    1. there is an intercept, and every alpha of the lighter class is at its bound;
    2. of the samples whose class is the lighter one without them,
       if they are of one class: all are wrong when left out;
       if they are of both: more than half are, which is worse than a coin.

    A class with one sample does not count: without it there is nothing to balance. In
    an LPM the row duals are the alpha. Of ``values`` only the signs are used;
    ``factors``, (n_groups, 2), multiply C of the negative and the positive samples
    while a group is left out.
    """
    y, C = problem.y, problem.C
    totals = np.array([C[y < 0].sum(), C[y > 0].sum()])
    lighter = y == (-1.0 if totals[0] <= totals[1] else 1.0)
    at_bound = solution.alpha >= C * (1.0 - EQUAL)
    if not problem.fit_intercept or not at_bound[lighter].all():
        return False
    tipped = _is_lighter_without(problem, totals, groups, factors)
    wrong = (y * values < 0.0)[tipped]
    if wrong.size == 0:
        return False
    both = bool(np.ptp(y[tipped]))
    return bool(2 * wrong.sum() > wrong.size if both else wrong.all())


def _is_lighter_without(
    problem: Problem,
    totals: FloatArray,
    groups: IntArray | None,
    factors: FloatArray | None,
) -> BoolArray:
    """Whether the class of a sample is there and the lighter one without its group."""
    y, C = problem.y, problem.C
    codes = np.arange(y.size) if groups is None else groups
    gone = [np.bincount(codes, np.where(y == sign, C, 0.0)) for sign in (-1.0, 1.0)]
    left = totals - np.column_stack(gone)
    # A difference of sums is zero only up to rounding.
    left[left <= EQUAL * totals] = 0.0
    if factors is not None:
        left = left * factors
    own = np.where(y > 0, left[codes, 1], left[codes, 0])
    other = np.where(y > 0, left[codes, 0], left[codes, 1])
    return (C > 0.0) & (own > 0.0) & (own < other * (1.0 - EQUAL))
