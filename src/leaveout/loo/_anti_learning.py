# SPDX-License-Identifier: BSD-3-Clause
"""When the bias follows the class weights, and leaving a sample out tips it."""

from __future__ import annotations

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._problem import Problem, Solution
from leaveout.lp._lpm import LpmSolution

# Sums of boxes, and alpha and its box, that differ by less than this share are equal.
EQUAL = 1e-9


def is_anti_learning(
    problem: Problem,
    solution: Solution | LpmSolution,
    values: FloatArray,
    *,
    groups: IntArray | None = None,
    factors: FloatArray | None = None,
) -> bool:
    r"""Tell whether left-out labels follow the balance of the classes, not the data.

    Let :math:`W_\pm = \sum_{y_i = \pm 1} C_i`. Since :math:`\sum_i y_i \alpha_i = 0`,
    the sum of alpha of either class is at most the smaller W. With C small enough the
    lighter class has every alpha at its bound. Then no sample of it holds b, and b is
    where the heavier class puts it: some sample i of that class, with label s, has
    :math:`0 < \alpha_i < C_i` or marks the end of the interval of b, so that
    :math:`b = s - g_i`, where :math:`g = f - b`. For a sample r of the lighter class

    .. math:: y_r f(x_r) = -1 + y_r (g_r - g_i),

    and :math:`|g_r - g_i|` is of the order of C: the label is wrong. Leaving r out
    lowers alpha_r from its bound to 0, and its margin with it (docs/method/walk):
    the left-out label is wrong as well.

    What counts is which class is the lighter one *without* r: :math:`W_{y_r} - C_r <
    W_{-y_r}`. With equal sums, as ``class_weight="balanced"`` makes them, that is the
    class of r, whichever r is left out. All alpha are at their bounds, b is an interval
    of a length near 2 whose middle is a good bias, and the full classifier is fine; yet
    every single left-out sample tips b to the side of the other class, and the
    leave-one-out error is near 1. With sums that differ by more than any C_r it is
    always the same class: the classifier, full or not, answers with the heavier class,
    and the error is the share of the other.

    So the answer is yes if

    1. there is a bias, and every alpha of the lighter class is at its bound;
    2. of the samples whose class is the lighter one without them,
       if they are of one class: all are wrong when left out;
       if they are of both: more than half are, which is worse than a coin.

    A class with one sample does not count: without it there is nothing to balance.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution or LpmSolution
        Its optimum. In a linear programming machine the row duals are the alpha; their
        weighted sum is zero too, and with few coefficients f is hardly more than b.
    values : ndarray of shape (n,)
        Left-out decision values; only their signs are used.
    groups : ndarray of shape (n,), optional
        Group of each sample, from 0, if whole groups are left out.
    factors : ndarray of shape (n_groups, 2), optional
        Factors of the boxes of the negative and of the positive samples while a group
        is out.

    Returns
    -------
    bool

    Examples
    --------
    Two classes far apart, which any C separates; with a small one leave-one-out fails.

    >>> import numpy as np
    >>> from leaveout.engine._problem import Problem
    >>> from leaveout.engine._walk import loo_walk
    >>> from leaveout.engine._solve import solve_svc
    >>> x = np.array([-3.0, -2.0, 2.0, 3.0])
    >>> for C in (0.01, 1.0):
    ...     problem = Problem(np.outer(x, x), np.sign(x), np.full(4, C), True)
    ...     solution, values = solve_svc(problem), loo_walk(problem).values
    ...     print(is_anti_learning(problem, solution, values), np.sign(values))
    True [ 1.  1. -1. -1.]
    False [-1. -1.  1.  1.]
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
