# SPDX-License-Identifier: BSD-3-Clause
"""Probabilities of classes from the values of one-vs-one machines."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from leaveout._typing import FloatArray
from leaveout.estimators._pairs import class_pairs, positive_class
from leaveout.estimators._task import Target
from leaveout.exceptions import CalibrationWarning
from leaveout.select import Sigmoid, couple_pairs, fit_sigmoid


def fit_pair_sigmoids(
    machine_values: FloatArray, target: Target, stacklevel: int = 3
) -> list[Sigmoid]:
    """Fit one sigmoid per machine, on the samples of its two classes.

    All of them were left out of the machine; what it says of other classes, which it
    was not trained on, is not needed.

    Parameters
    ----------
    machine_values : ndarray of shape (n, n_machines)
        Left-out values, as in ``LooResult.machine_values``.
    target : Target
        Classes and weights of the samples.
    stacklevel : int, default=3
        Whose line a warning names.
    """
    n_classes = len(target.classes)
    sigmoids, wrong = [], []
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        inside = np.isin(target.codes, (i, j)) & (target.weights > 0)
        sigmoid = fit_sigmoid(
            machine_values[inside, k],
            target.codes[inside] == positive_class(i, j, n_classes),
            target.weights[inside],
        )
        sigmoids.append(sigmoid)
        if sigmoid.slope == 0.0:
            wrong.append((target.classes[i], target.classes[j]))
    if wrong:
        _warn_prior(wrong, len(sigmoids), stacklevel + 1)
    return sigmoids


def class_probabilities(
    machine_values: FloatArray, sigmoids: Sequence[Sigmoid]
) -> FloatArray:
    """Return the probability of each class at the values of all machines.

    Parameters
    ----------
    machine_values : ndarray of shape (n, n_machines)
        Values of the machines at new samples.
    sigmoids : sequence of Sigmoid
        One per machine.

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    of_positive = [s(machine_values[:, k]) for k, s in enumerate(sigmoids)]
    if len(sigmoids) == 1:
        return np.column_stack([1.0 - of_positive[0], of_positive[0]])
    n_classes = round((1 + np.sqrt(1 + 8 * len(sigmoids))) / 2)
    pairwise = np.zeros((machine_values.shape[0], n_classes, n_classes))
    for (i, j), p in zip(class_pairs(n_classes), of_positive, strict=True):
        pairwise[:, i, j], pairwise[:, j, i] = p, 1.0 - p
    return couple_pairs(pairwise)


def _warn_prior(pairs: list[tuple[Any, Any]], n_machines: int, stacklevel: int) -> None:
    """Warn of machines whose left-out values say less than nothing."""
    named = ", ".join(f"{_plain(a)!r} and {_plain(b)!r}" for a, b in pairs[:3])
    more = f" and {len(pairs) - 3} more pairs" if len(pairs) > 3 else ""
    which = "" if n_machines == 1 else f" between {named}{more}"
    warnings.warn(
        f"The left-out decision values{which} order the classes the wrong way round, "
        "as they do where there is nothing to learn. The probabilities there are the "
        "shares of the classes, the same for every sample.",
        CalibrationWarning,
        stacklevel=stacklevel,
    )


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
