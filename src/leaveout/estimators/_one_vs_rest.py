# SPDX-License-Identifier: BSD-3-Clause
"""One-vs-rest as scikit-learn's OneVsRestClassifier does it.

Machine k stands between class k and all others, and a positive value speaks for class
k; the largest value wins, the lowest class among equals. For two classes there is one
machine, whose positive values speak for class 1, and 0 is class 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.base import clone

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.estimators._check import check_features
from leaveout.estimators._svc import SVC
from leaveout.estimators._task import (
    Target,
    Task,
    build_task,
    check_parameters,
    make_target,
    resolve_class_weight,
)
from leaveout.loo import MachineLoo

# Values this close, relative to the largest, are equal.
TIE = 1e-10


@dataclass(frozen=True)
class OneVsRestTask(Task):
    """A task whose machines stand between one class and the rest.

    Parameters
    ----------
    parts : tuple of Task
        One task of two classes per machine, 1 for the class and 0 for the rest; they
        share the Gram matrix. As in scikit-learn, ``class_weight`` of the SVC speaks
        of these 0 and 1.
    """

    parts: tuple[Task, ...]

    @property
    def machines(self) -> list[tuple[Task, int, int]]:
        """The task and the two classes of each machine."""
        return [(part, 0, 1) for part in self.parts]


def make_one_vs_rest_task(
    svc: SVC, X: Any, y: Any, sample_weight: Any = None
) -> OneVsRestTask:
    """Do what ``make_task`` does, for one machine per class."""
    check_parameters(svc)
    X = check_features(svc, X, reset=True)
    target = make_target(y, X.shape[0], sample_weight)
    return build_one_vs_rest_task(svc, X, target)


def build_one_vs_rest_task(
    svc: SVC,
    X: Any,
    target: Target,
    gram: tuple[FloatArray, float | None] | None = None,
) -> OneVsRestTask:
    """Do what ``build_task`` does, for one machine per class."""
    whole = build_task(clone(svc).set_params(class_weight=None), X, target, gram)
    n_classes = len(whole.classes)
    codes = [1] if n_classes == 2 else range(n_classes)
    values = {field.name: getattr(whole, field.name) for field in fields(whole)}
    parts = tuple(_against_rest(svc, values, code) for code in codes)
    return OneVsRestTask(**values, parts=parts)


def _against_rest(svc: SVC, whole: dict[str, Any], code: int) -> Task:
    """Return the task between one class and the rest; rows without class stay out."""
    labels = (whole["codes"] == code).astype(np.intp)
    codes = np.where(whole["codes"] < 0, -1, labels)
    target = Target(labels, np.array([0, 1]), codes, whole["weights"])
    class_weight = resolve_class_weight(svc.class_weight, target)
    own = {
        "labels": labels,
        "classes": target.classes,
        "codes": codes,
        "class_weight": class_weight,
        "C": whole["C"] * class_weight[codes],
    }
    return Task(**{**whole, **own})


def decide_one_vs_rest(
    target: Target, machines: Sequence[MachineLoo], groups: IntArray | None = None
) -> dict[str, Any]:
    """Turn the values of one machine per class into labels, margins and intervals.

    The machines' intercepts are free of each other, so the interval of the margin runs
    from the worst for the true class to the best. A class whose only member, or whose
    only group, is left out is not there: its value is -inf.
    """
    values = np.column_stack([m.values for m in machines])
    lower = np.column_stack([m.lower for m in machines])
    upper = np.column_stack([m.upper for m in machines])
    slack = TIE * (1.0 + np.abs(values).max())
    decision_values = values
    if len(machines) == 1:
        # As two machines of opposite sign, whose difference is f.
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
    """Return the margin of each sample by the values of all machines, (n,)."""
    if values.shape[1] == 1:
        values = np.hstack([-values, values]) / 2
    return _minus_best_other(values, values, codes)


def _minus_best_other(own: FloatArray, others: FloatArray, codes: Any) -> FloatArray:
    """Return ``own`` of the true class minus the largest of the others; else NaN."""
    known = np.flatnonzero(codes >= 0)
    rest = others[known].copy()
    rest[np.arange(known.size), codes[known]] = -np.inf
    differences = np.full(codes.shape[0], np.nan)
    differences[known] = own[known, codes[known]] - rest.max(axis=1)
    return differences


def _overlap(
    lower: FloatArray, upper: FloatArray, winner: Any, slack: float
) -> BoolArray:
    """Whether the interval of some other class reaches that of the winner."""
    rows = np.arange(winner.shape[0])
    reach = upper >= lower[rows, winner][:, None] - slack
    reach &= upper > -np.inf
    reach[rows, winner] = False
    return reach.any(axis=1)
