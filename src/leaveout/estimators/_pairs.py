# SPDX-License-Identifier: BSD-3-Clause
"""One-vs-one as scikit-learn and LIBSVM do it: machines, coefficients, votes.

For more than two classes, machine k stands between classes i < j, in the order (0, 1),
(0, 2), ..., (1, 2), ..., and a positive value speaks for class i. For two classes the
sign is turned, as everywhere in scikit-learn: a positive value speaks for class 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import isqrt

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.loo import elect


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return the classes (i, j) of each machine, in LIBSVM's order."""
    return list(combinations(range(n_classes), 2))


def positive_class(i: int, j: int, n_classes: int) -> int:
    """Return which of i < j a positive value of their machine speaks for."""
    return j if n_classes == 2 else i


def stack_coefficients(betas: Sequence[FloatArray], codes: IntArray) -> FloatArray:
    """Lay the signed coefficients of all machines out as ``dual_coef_`` is.

    A sample of class i takes part in n_classes - 1 machines, those against each other
    class in turn, and these are its rows.

    Parameters
    ----------
    betas : sequence of ndarray of shape (n,)
        Per machine, zero for the samples of other classes.
    codes : ndarray of shape (n,)
        Class of each sample.

    Returns
    -------
    ndarray of shape (n_classes - 1, n)
    """
    n_classes = _n_classes(len(betas))
    stacked = np.zeros((n_classes - 1, codes.shape[0]))
    for beta, (i, j) in zip(betas, class_pairs(n_classes), strict=True):
        stacked[j - 1, codes == i] = beta[codes == i]
        stacked[i, codes == j] = beta[codes == j]
    return stacked


def machine_coefficients(dual_coef: FloatArray, codes: IntArray) -> FloatArray:
    """Undo :func:`stack_coefficients`: one column per machine, (n, n_machines)."""
    n_classes = dual_coef.shape[0] + 1
    pairs = class_pairs(n_classes)
    columns = np.zeros((codes.shape[0], len(pairs)))
    for k, (i, j) in enumerate(pairs):
        columns[codes == i, k] = dual_coef[j - 1, codes == i]
        columns[codes == j, k] = dual_coef[i, codes == j]
    return columns


def vote(values: FloatArray) -> IntArray:
    """Return the class with most votes, the lowest among equals.

    Parameters
    ----------
    values : ndarray of shape (n, n_machines)
        A value of 0 is a vote for j; of two classes, it is one for class 1.
    """
    favours = values >= 0 if values.shape[1] == 1 else values > 0
    return elect(np.where(favours, 1, -1), _n_classes(values.shape[1]))


def one_value_per_class(values: FloatArray) -> FloatArray:
    """Return votes plus a share below 1/2 of the summed values, (n, n_classes).

    What ``decision_function_shape="ovr"`` gives for three classes or more: the votes
    order the classes, the sums s break ties, squeezed to s / (3 (|s| + 1)). A value of
    0 is a vote for i here, unlike in :func:`vote`; scikit-learn has it so.
    """
    n_classes = _n_classes(values.shape[1])
    votes = np.zeros((values.shape[0], n_classes))
    sums = np.zeros_like(votes)
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        for_j = values[:, k] < 0
        votes[:, i] += ~for_j
        votes[:, j] += for_j
        sums[:, i] += values[:, k]
        sums[:, j] -= values[:, k]
    return votes + sums / (3 * (np.abs(sums) + 1))


def _n_classes(n_machines: int) -> int:
    """Solve n_machines = n_classes (n_classes - 1) / 2."""
    return (1 + isqrt(1 + 8 * n_machines)) // 2
