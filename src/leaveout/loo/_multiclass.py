# SPDX-License-Identifier: BSD-3-Clause
"""From binary decision values to classes: votes, margins and ambiguous samples.

One-vs-one follows scikit-learn and LIBSVM. For more than two classes, subproblem k
separates classes i < j, in the order (0, 1), (0, 2), ..., (1, 2), ..., and a positive
value is a vote for class i. For two classes the sign is reversed, as everywhere in
scikit-learn: a positive value is a vote for class 1.

One-vs-rest follows scikit-learn's OneVsRestClassifier. Subproblem k separates class k
from all others, and a positive value is for class k; the largest value wins, and ties
go to the lowest class. For two classes there is one subproblem, whose positive values
are for class 1; 0 is for class 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._problem import TIE

if TYPE_CHECKING:
    from leaveout.loo._task import Task


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return the classes (i, j) of each subproblem, in LIBSVM's order."""
    return list(combinations(range(n_classes), 2))


def positive_class(i: int, j: int, n_classes: int) -> int:
    """Return the class, i or j, that a positive value of their subproblem votes for."""
    return j if n_classes == 2 else i


def stack_coefficients(betas: Sequence[FloatArray], codes: IntArray) -> FloatArray:
    """Arrange the signed coefficients of all pairs, (n,) each, like ``dual_coef_``.

    A sample takes part in n_classes - 1 subproblems, one for each other class; these
    are the rows of the result, (n_classes - 1, n).
    """
    n_classes = _n_classes(len(betas))
    stacked = np.zeros((n_classes - 1, codes.shape[0]))
    for beta, (i, j) in zip(betas, class_pairs(n_classes), strict=True):
        stacked[j - 1, codes == i] = beta[codes == i]
        stacked[i, codes == j] = beta[codes == j]
    return stacked


def pair_coefficients(dual_coef: FloatArray, codes: IntArray) -> FloatArray:
    """Undo :func:`stack_coefficients`: one column per pair, (n, n_pairs)."""
    n_classes = dual_coef.shape[0] + 1
    pairs = class_pairs(n_classes)
    columns = np.zeros((codes.shape[0], len(pairs)))
    for k, (i, j) in enumerate(pairs):
        columns[codes == i, k] = dual_coef[j - 1, codes == i]
        columns[codes == j, k] = dual_coef[i, codes == j]
    return columns


def vote(values: FloatArray) -> IntArray:
    """Return the class with the most votes; ties go to the lowest class.

    A value of 0 is a vote for j, or for class 1 if there are two classes.
    """
    favours = values >= 0 if values.shape[1] == 1 else values > 0
    return elect(np.where(favours, 1, -1), _n_classes(values.shape[1]))


def one_value_per_class(values: FloatArray) -> FloatArray:
    """Return votes plus the summed values squeezed into (-1/3, 1/3), (n, n_classes).

    This is ``decision_function_shape="ovr"`` for three or more classes: the votes rank
    the classes, and the sums s break ties, as s / (3 (|s| + 1)). As in scikit-learn, a
    value of 0 is a vote for i here, unlike in :func:`vote`.
    """
    n_classes = _n_classes(values.shape[1])
    votes = _count(np.where(values < 0, -1, 1), n_classes)
    sums = np.zeros((n_classes, values.shape[0]))
    for value, (i, j) in zip(values.T.copy(), class_pairs(n_classes), strict=True):
        sums[i] += value
        sums[j] -= value
    return votes + (sums / (3 * (np.abs(sums) + 1))).T


def _n_classes(n_pairs: int) -> int:
    """Solve n_pairs = n_classes (n_classes - 1) / 2."""
    return (1 + isqrt(1 + 8 * n_pairs)) // 2


def decide_one_vs_one(
    task: Task, values: FloatArray, lower: FloatArray, upper: FloatArray
) -> dict[str, Any]:
    """Convert the values of one subproblem per pair into labels and margins.

    ``values``, ``lower`` and ``upper`` have one column per pair.
    """
    params, target = task.params, task.target
    # With an intercept f is of the order of 1; without one, it may have any size.
    slack = TIE * (float(params.fit_intercept) + np.abs(values).max(axis=0))
    same = lower is upper
    lower = np.where(np.abs(lower) <= slack, 0.0, lower)
    upper = lower if same else np.where(np.abs(upper) <= slack, 0.0, upper)
    open_ = lower == 0.0 if same else (lower <= 0.0) & (upper >= 0.0)
    if values.shape[1] == 1:
        f, sign = values[:, 0], _signs(target.codes)
        low = high = sign * lower[:, 0]
        if not same:
            high = sign * upper[:, 0]
            low, high = np.minimum(low, high), np.maximum(low, high)
        return {
            "decision_values": f,
            "predictions": target.classes[(f >= 0.0).astype(np.intp)],
            "margins": sign * f,
            "lower": low,
            "upper": high.copy() if same else high,
            "ambiguous": open_[:, 0],
        }
    per_class = one_value_per_class(values)
    winner = np.argmax(per_class, axis=1) if params.break_ties else vote(values)
    margins = _margins(per_class, target.codes)
    unique = (lower == upper).all(axis=1)
    ovo = params.decision_function_shape == "ovo"
    return {
        "decision_values": values if ovo else per_class,
        "predictions": target.classes[winner],
        "margins": margins,
        "lower": np.where(unique, margins, np.nan),
        "upper": np.where(unique, margins, np.nan),
        "ambiguous": _open_votes(values, open_, params.break_ties),
    }


def one_vs_one_margins(values: FloatArray, codes: IntArray) -> FloatArray:
    """Return the margin of each sample from the values of all subproblems, (n,)."""
    if values.shape[1] == 1:
        return _signs(codes) * values[:, 0]
    return _margins(one_value_per_class(values), codes)


def _signs(codes: IntArray) -> FloatArray:
    """Return the sign of a value that votes for the true class."""
    return np.where(codes == 1, 1.0, -1.0)


def _margins(per_class: FloatArray, codes: IntArray) -> FloatArray:
    """Return true class minus best other; -inf if the true class has no value."""
    rows = np.arange(codes.shape[0])
    others = per_class.copy()
    others[rows, codes] = -np.inf
    margins = per_class[rows, codes] - others.max(axis=1)
    return np.where(codes >= 0, margins, -np.inf)


def _open_votes(values: FloatArray, open_: BoolArray, break_ties: bool) -> BoolArray:
    """Return whether some choice of the undecided signs changes the winner.

    With ``break_ties`` the values count, not only the signs, so any undecided value
    makes the sample ambiguous.
    """
    ambiguous = np.asarray(open_.any(axis=1))
    if break_ties:
        return ambiguous
    rows = np.flatnonzero(ambiguous)
    sure = np.where(open_[rows], 0, np.where(values[rows] > 0, 1, -1))
    ambiguous[rows] = ~is_settled(sure, _n_classes(values.shape[1]))
    return ambiguous


def decide_one_vs_rest(
    task: Task,
    values: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    groups: IntArray | None = None,
) -> dict[str, Any]:
    """Convert the values of one output per class into labels and margins.

    The intercepts are independent, so the interval of the margin goes from the worst to
    the best combination for the true class. If all samples of a class are left out, its
    value is -inf.
    """
    target = task.target
    slack = TIE * (1.0 + np.abs(values).max())
    decision_values = values
    if values.shape[1] == 1:
        # As two outputs of opposite sign, whose difference is f.
        decision_values = values[:, 0]
        values = np.hstack([-values, values]) / 2
        lower, upper = np.hstack([-upper, lower]) / 2, np.hstack([-lower, upper]) / 2
    else:
        gone = target.vanishing(groups)
        values[gone] = lower[gone] = upper[gone] = -np.inf
    winner = np.argmax(values, axis=1)
    return {
        "decision_values": decision_values,
        "predictions": target.classes[winner],
        "margins": _minus_best_other(values, values, target.codes),
        "lower": _minus_best_other(lower, upper, target.codes),
        "upper": _minus_best_other(upper, lower, target.codes),
        "ambiguous": _overlap(lower, upper, winner, slack),
    }


def one_vs_rest_margins(values: FloatArray, codes: IntArray) -> FloatArray:
    """Return the margin of each sample from the values of all subproblems, (n,)."""
    if values.shape[1] == 1:
        values = np.hstack([-values, values]) / 2
    return _minus_best_other(values, values, codes)


def _minus_best_other(own: FloatArray, others: FloatArray, codes: Any) -> FloatArray:
    """Return ``own`` of the true class minus the largest other; NaN if unknown."""
    known = np.flatnonzero(codes >= 0)
    rest = others[known].copy()
    rest[np.arange(known.size), codes[known]] = -np.inf
    differences = np.full(codes.shape[0], np.nan)
    differences[known] = own[known, codes[known]] - rest.max(axis=1)
    return differences


def _overlap(
    lower: FloatArray, upper: FloatArray, winner: Any, slack: float
) -> BoolArray:
    """Return whether the interval of another class overlaps that of the winner."""
    rows = np.arange(winner.shape[0])
    reach = upper >= lower[rows, winner][:, None] - slack
    reach &= upper > -np.inf
    reach[rows, winner] = False
    return reach.any(axis=1)


def elect(votes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the class with the most votes of all pairs; ties go to the lowest class.

    The sign +1 is a vote for class 1 if there are two classes, and for the first class
    of the pair if there are more, as in scikit-learn.
    """
    if n_classes == 2:
        return (votes[:, 0] > 0).astype(np.intp)
    return np.asarray(_count(votes, n_classes).argmax(axis=1))


def is_settled(votes: np.ndarray, n_classes: int) -> BoolArray:
    """Whether the class with most votes does not depend on the open ones."""
    if n_classes == 2:
        return np.asarray(votes[:, 0] != 0)
    least = _count(votes, n_classes)
    most = (n_classes - 1) - _count(-votes, n_classes)
    first = least.argmax(axis=1)
    rows = np.arange(votes.shape[0])
    # In a tie the first class wins.
    rival = most - (np.arange(n_classes) > first[:, None])
    rival[rows, first] = -1
    return np.asarray(least[rows, first] > rival.max(axis=1))


def _count(votes: np.ndarray, n_classes: int) -> IntArray:
    """Count the votes for each class, (m, n_classes)."""
    first, second = _sides(n_classes)
    counts = (votes > 0).astype(np.float32) @ first
    counts += (votes < 0).astype(np.float32) @ second
    return counts.astype(np.intp)


@cache
def _sides(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, (n_pairs, n_classes) each, which class is first and second in a pair."""
    first, second = np.array(class_pairs(n_classes)).T
    one = np.eye(n_classes, dtype=np.float32)  # counts are exact
    return one[first], one[second]
