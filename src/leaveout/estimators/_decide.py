# SPDX-License-Identifier: BSD-3-Clause
"""From the left-out values of all machines to labels, margins and what is ambiguous."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.estimators._pairs import one_value_per_class, vote
from leaveout.estimators._svc import SVC
from leaveout.estimators._task import Target
from leaveout.loo import MachineLoo

# Values this close to zero, relative to the terms they are sums of, have no sign.
TIE = 1e-10


def decide_one_vs_one(
    svc: SVC, task: Target, machines: list[MachineLoo]
) -> dict[str, Any]:
    """Turn the machines' values into labels, margins and their intervals."""
    values = np.column_stack([m.values for m in machines])
    lower = np.column_stack([m.lower for m in machines])
    upper = np.column_stack([m.upper for m in machines])
    # With an intercept f is of the size of the labels; without one, of any size.
    unit = 1.0 if svc.fit_intercept else 0.0
    scale = np.array([unit + np.abs(m.values).max() for m in machines])
    lower = np.where(np.abs(lower) <= TIE * scale, 0.0, lower)
    upper = np.where(np.abs(upper) <= TIE * scale, 0.0, upper)
    open_ = (lower <= 0.0) & (upper >= 0.0)
    if len(machines) == 1:
        sign = _signs(task.codes)
        ends = np.sort(np.column_stack([sign * lower[:, 0], sign * upper[:, 0]]))
        return {
            "decision_values": values[:, 0],
            "predictions": task.classes[vote(values)],
            "margins": sign * values[:, 0],
            "lower": ends[:, 0],
            "upper": ends[:, 1],
            "ambiguous": open_[:, 0],
        }
    per_class = one_value_per_class(values)
    winner = np.argmax(per_class, axis=1) if svc.break_ties else vote(values)
    margins = _margins(per_class, task.codes)
    unique = (lower == upper).all(axis=1)
    ovo = svc.decision_function_shape == "ovo"
    return {
        "decision_values": values if ovo else per_class,
        "predictions": task.classes[winner],
        "margins": margins,
        "lower": np.where(unique, margins, np.nan),
        "upper": np.where(unique, margins, np.nan),
        "ambiguous": _open_votes(values, open_, winner, svc.break_ties),
    }


def one_vs_one_margins(values: FloatArray, codes: IntArray) -> FloatArray:
    """Return the margin of each sample by the values of all machines, (n,)."""
    if values.shape[1] == 1:
        return _signs(codes) * values[:, 0]
    return _margins(one_value_per_class(values), codes)


def _signs(codes: IntArray) -> FloatArray:
    """Which sign of the only machine speaks for the true class."""
    return np.where(codes == 1, 1.0, -1.0)


def _margins(per_class: FloatArray, codes: IntArray) -> FloatArray:
    """Return true class minus best other; -inf if the true class has no machine."""
    rows = np.arange(codes.shape[0])
    others = per_class.copy()
    others[rows, codes] = -np.inf
    margins = per_class[rows, codes] - others.max(axis=1)
    return np.where(codes >= 0, margins, -np.inf)


def _open_votes(
    values: FloatArray, open_: BoolArray, winner: IntArray, break_ties: bool
) -> BoolArray:
    """Whether some choice of the undecided signs changes the winner.

    With ``break_ties`` the values count, not only the signs: any undecided machine
    makes the sample ambiguous. So do more than ten of them.
    """
    ambiguous = np.zeros(values.shape[0], dtype=bool)
    for r in np.flatnonzero(open_.any(axis=1)):
        undecided = np.flatnonzero(open_[r])
        if break_ties or undecided.size > 10:
            ambiguous[r] = True
            continue
        tries = np.tile(values[r], (2**undecided.size, 1))
        tries[:, undecided] = list(product((-1.0, 1.0), repeat=undecided.size))
        ambiguous[r] = bool(np.any(vote(tries) != winner[r]))
    return ambiguous
